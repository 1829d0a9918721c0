//! `PGRIG_HOME/journal/<id>.json`: what a server was like before pgrig changed it.
//!
//! Written whole, and made durable, before the first change; never changed; deleted when all is as it was. Whoever
//! holds its flock(2) is at work on that server: its owner, or later one that puts things back. The lock goes with
//! its holder in whatever way that dies.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use crate::quote::qualified;

/// Goes up when an older pgrig would misread it.
const FORMAT_VERSION: u32 = 1;

/// Which server it is, and how to get there. Never holds a password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// pgrig's own instance of this name.
    Own(String),
    /// What [`crate::connect::recipe`] says.
    Named(String),
}

/// A setting that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its name as in pg_settings.
    pub name: String,
    /// What postgresql.auto.conf said; none: nothing.
    pub altered: Option<String>,
    /// What SHOW said.
    pub shown: String,
}

/// A table whose persistence is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
}

impl Table {
    /// Schema and name, quoted.
    pub fn qualified(&self) -> String {
        qualified(&self.schema, &self.name)
    }
}

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format_version: u32,
    /// Names the file, and in pg_stat_activity the session.
    pub id: String,
    /// The process that changes things.
    pub pid: u32,
    /// The server.
    pub place: Place,
    /// `system_identifier`, where the role may ask for it.
    pub system_identifier: Option<String>,
    /// Settings that are changed by ALTER SYSTEM.
    pub settings: Vec<Before>,
    /// Tables that are made unlogged, in an order in which that can be done; they were logged.
    pub tables: Vec<Table>,
}

impl Record {
    /// Of this process, without any change yet.
    pub fn new(place: Place, system_identifier: Option<String>) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let pid = std::process::id();
        Self {
            format_version: FORMAT_VERSION,
            id: format!("{:x}-{pid:x}", since.as_nanos()),
            pid,
            place,
            system_identifier,
            settings: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// What a person types to put all of it back.
    pub fn remedy(&self) -> Vec<String> {
        let logged = self.tables.iter().rev();
        let logged = logged.map(|table| format!("ALTER TABLE {} SET LOGGED;", table.qualified()));
        let settings =
            self.settings.iter().map(|before| super::alter(&before.name, before.altered.as_deref()) + ";");
        let reload = (!self.settings.is_empty()).then(|| "SELECT pg_reload_conf();".to_owned());
        // As [`super::durable`] does.
        let is_fsync = self.settings.iter().any(|before| before.name == "fsync");
        let sync = is_fsync.then(|| "CHECKPOINT; -- and then run sync on the server's machine.".to_owned());
        settings.chain(reload).chain(logged).chain(sync).collect()
    }
}

/// A journal whose lock is held.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// What it says.
    pub record: Record,
    _lock: File,
}

impl Journal {
    /// Writes a journal into `directory`, so that it survives whatever happens next.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(directory: &Path, record: Record) -> Result<Self, SettingsError> {
        let failed = |error| SettingsError::Journal { path: directory.to_owned(), error };
        let write = || {
            fs::create_dir_all(directory)?;
            if let Some(parent) = directory.parent() {
                File::open(parent)?.sync_all()?;
            }
            let path = directory.join(format!("{}.json", record.id));
            let partial = path.with_extension("partial");
            let mut file = locked(&partial)?;
            file.write_all(&serde_json::to_vec_pretty(&record)?)?;
            file.sync_all()?;
            // The lock goes with the file, not with its name.
            fs::rename(&partial, &path)?;
            File::open(directory)?.sync_all()?;
            Ok((path, file))
        };
        let (path, lock) = write().map_err(failed)?;
        Ok(Self { path, record, _lock: lock })
    }

    /// All that are in `directory`, by age.
    ///
    /// # Errors
    /// If the directory or a journal in it cannot be read.
    pub fn all(directory: &Path) -> Result<Vec<Found>, SettingsError> {
        let failed = |error| SettingsError::Journal { path: directory.to_owned(), error };
        let mut paths = match fs::read_dir(directory) {
            Ok(entries) => {
                entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(failed)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        paths.sort();
        let mut found = Vec::new();
        for path in paths {
            let read = match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => read(&path),
                Some("partial") => discard(&path).map(|()| None),
                _ => Ok(None),
            };
            found.extend(read.map_err(|error| SettingsError::Journal { path, error })?);
        }
        Ok(found)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes it: all is as it was.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn close(self) -> Result<(), SettingsError> {
        let Self { path, .. } = self;
        fs::remove_file(&path).map_err(|error| SettingsError::Journal { path, error })
    }
}

/// A journal that is there.
#[derive(Debug)]
pub enum Found {
    /// Its process is at work.
    Live(Record),
    /// Its process is gone; the lock is ours now.
    Dead(Journal),
}

/// A new file, locked. Whoever tidies up may have deleted it before it was locked: then once more.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::options().create(true).append(true).open(path)?;
        file.lock()?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Found>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        // Closed by its owner a moment ago.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_live = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if !is_at(&file, path) {
        return Ok(None);
    }
    let record: Record = serde_json::from_str(&text)?;
    if record.format_version > FORMAT_VERSION {
        return Err(io::Error::other("it was written by a newer pgrig; use that one"));
    }
    if is_live {
        return Ok(Some(Found::Live(record)));
    }
    Ok(Some(Found::Dead(Journal { path: path.to_owned(), record, _lock: file })))
}

/// Nothing was changed yet when its writer died.
fn discard(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) if file.try_lock().is_ok() && is_at(&file, path) => fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let before = |name: &str, altered: Option<&str>| Before {
            name: name.to_owned(),
            altered: altered.map(str::to_owned),
            shown: "on".to_owned(),
        };
        let table = |name: &str| Table { schema: "s".to_owned(), name: name.to_owned() };
        let mut record = Record::new(Place::Own("default".to_owned()), Some("1".to_owned()));
        record.settings = vec![before("fsync", None), before("x.y", Some("it's"))];
        record.tables = vec![table("child"), table("parent")];
        record
    }

    #[test]
    fn a_journal_is_live_until_its_holder_is_gone_and_gone_when_closed() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Journal::all(&directory.path().join("none")).unwrap().is_empty());
        let journal = Journal::begin(directory.path(), record()).unwrap();
        let told = journal.record.clone();
        assert!(matches!(&Journal::all(directory.path()).unwrap()[..], [Found::Live(live)] if *live == told));
        drop(journal);
        let mut found = Journal::all(directory.path()).unwrap();
        let Some(Found::Dead(dead)) = found.pop() else { panic!("{found:?}") };
        assert_eq!(dead.record, told);
        // Whoever puts it back holds it meanwhile.
        assert!(matches!(&Journal::all(directory.path()).unwrap()[..], [Found::Live(_)]));
        dead.close().unwrap();
        assert!(Journal::all(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn one_that_was_never_finished_is_put_away_and_a_damaged_one_told() {
        let directory = tempfile::tempdir().unwrap();
        let partial = directory.path().join("1.partial");
        fs::write(&partial, "{").unwrap();
        assert!(Journal::all(directory.path()).unwrap().is_empty());
        assert!(!partial.exists());
        let damaged = directory.path().join("1.json");
        fs::write(&damaged, "{").unwrap();
        let error = Journal::all(directory.path()).unwrap_err().to_string();
        assert!(error.contains("1.json"), "{error}");
    }

    #[test]
    fn the_remedy_is_what_a_person_can_type() {
        let expected = [
            "ALTER SYSTEM RESET \"fsync\";",
            "ALTER SYSTEM SET \"x\".\"y\" = 'it''s';",
            "SELECT pg_reload_conf();",
            "ALTER TABLE \"s\".\"parent\" SET LOGGED;",
            "ALTER TABLE \"s\".\"child\" SET LOGGED;",
            "CHECKPOINT; -- and then run sync on the server's machine.",
        ];
        assert_eq!(record().remedy(), expected);
    }
}
