//! `PGRIG_HOME/journal/<id>.json`: the state of a server before pgrig changed it.
//!
//! The journal is written completely and durably before the first change, and deleted when
//! everything is restored. It names the process that makes the changes
//! ([`Process`](crate::process::Process)). Once that process is gone, the pgrig that gets the
//! flock(2) of `<id>.lock` restores everything. The process also locks the journal itself, for
//! pgrigs that cannot see that process.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::SettingsError;
use super::private;
use super::record::Record;
use crate::process::{Process, ProcessState};

/// Attempts to get a lock: a process that cleans up may hold it for a moment.
const TRIES: u32 = 100;
const EVERY: Duration = Duration::from_millis(10);

/// A journal of this process, or of a process that is gone and whose changes no other process is
/// restoring.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// The changes that the journal holds.
    pub record: Record,
    _claim: Option<Claim>,
    /// Lock of the journal itself: older versions of pgrig check only this one.
    _lock: Option<File>,
}

impl Journal {
    /// Writes a journal durably into `directory`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(directory: &Path, record: Record) -> Result<Self, SettingsError> {
        let path = directory.join(format!("{}.json", record.id));
        let write = || {
            private::make_directory(directory)?;
            if let Some(parent) = directory.parent() {
                File::open(parent)?.sync_all()?;
            }
            save(&path, &record)
        };
        match write() {
            Ok(lock) => Ok(Self { path, record, _claim: None, _lock: Some(lock) }),
            Err(error) => Err(SettingsError::Journal { path: directory.to_owned(), error }),
        }
    }

    /// All that are in `directory`, by age.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn all(directory: &Path) -> Result<Vec<JournalState>, SettingsError> {
        let failed = |error| SettingsError::Journal { path: directory.to_owned(), error };
        let list = || {
            private::close_directory(directory)?;
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()
        };
        let mut paths = match list() {
            Ok(paths) => paths,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        paths.sort();
        let mut all = Vec::new();
        for path in paths {
            let found = match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => find(&path),
                Some("partial") => discard(&path).map(|()| None),
                Some("lock") if !path.with_extension("json").exists() => discard(&path).map(|()| None),
                _ => Ok(None),
            };
            all.extend(found.unwrap_or_else(|error| {
                Some(JournalState::Unreadable(SettingsError::Journal { path, error }))
            }));
        }
        Ok(all)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records in the journal why the changes stay.
    ///
    /// # Errors
    /// If that cannot be written; the journal is then unchanged.
    pub fn give_up(self, why: String) -> io::Result<()> {
        let mut record = self.record;
        record.gave_up = Some(why);
        save(&self.path, &record).map(drop)
    }

    /// Deletes the journal: everything is restored.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn close(&self) -> Result<(), SettingsError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let deleted = fs::remove_file(&self.path).and_then(|()| File::open(directory)?.sync_all());
        deleted.map_err(|error| SettingsError::Journal { path: self.path.clone(), error })
    }
}

/// State of a journal that was found.
#[derive(Debug)]
pub enum JournalState {
    /// Its process still runs.
    Live(Record),
    /// Its process may still run, in another container or on another machine; this process cannot
    /// see that.
    Elsewhere(Unclaimed),
    /// Its process is gone, and another process is restoring the changes.
    InHand {
        /// Content of the journal.
        record: Record,
        /// The process that restores them, if it is known.
        pid: Option<u32>,
    },
    /// Its process is gone. While this is held, no other process restores the changes.
    Dead(Journal),
    /// The journal cannot be read.
    Unreadable(SettingsError),
}

/// A journal whose process is not known to be gone.
#[derive(Debug)]
pub struct Unclaimed {
    /// Path of the file.
    pub path: PathBuf,
    /// The changes that the journal holds.
    pub record: Record,
}

impl Unclaimed {
    /// Claims the journal, for a caller that knows that its process is gone. None if the journal
    /// has been deleted.
    ///
    /// # Errors
    /// If it cannot be read or locked.
    pub fn claim(self) -> io::Result<Option<JournalState>> {
        claim(&self.path, self.record, None)
    }
}

/// The lock of the process that restores changes. The lock file is deleted with it.
#[derive(Debug)]
struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // If it stays, it is in nobody's way.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes the file completely and durably under another name, then renames it. Returns it, locked.
fn save(path: &Path, record: &Record) -> io::Result<File> {
    let partial = path.with_extension("partial");
    let mut file = locked(&partial)?;
    let text = record.text()?;
    let written = file.set_len(0).and_then(|()| file.write_all(&text)).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&partial, path)) {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    // The lock goes with the file, not with its name.
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
    Ok(file)
}

/// Creates a file and locks it. A process that cleans up may have locked and deleted it in between;
/// then it is created again.
fn locked(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = private::make(path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            Ok(()) | Err(TryLockError::WouldBlock) => std::thread::sleep(EVERY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other(format!("another process holds the lock of {}", path.display())))
}

fn find(path: &Path) -> io::Result<Option<JournalState>> {
    let Some((file, record)) = read(path)? else { return Ok(None) };
    let is_locked = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    let state = match &record.process {
        Some(process) => match process.state(&record.host) {
            ProcessState::Unknown if is_locked => ProcessState::Runs,
            state => state,
        },
        // An older pgrig's, whose lock anybody could take.
        None if is_locked && Process::of(record.pid).is_some() => ProcessState::Runs,
        None if is_locked => ProcessState::Unknown,
        None => ProcessState::Gone,
    };
    match state {
        ProcessState::Runs => Ok(Some(JournalState::Live(record))),
        ProcessState::Unknown => {
            Ok(Some(JournalState::Elsewhere(Unclaimed { path: path.to_owned(), record })))
        }
        ProcessState::Gone => claim(path, record, Some(file)),
    }
}

/// Reads a journal; none if it has just been deleted.
fn read(path: &Path) -> io::Result<Option<(File, Record)>> {
    let mut file = match private::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some((file, Record::parse(&text)?)))
}

fn claim(path: &Path, record: Record, lock: Option<File>) -> io::Result<Option<JournalState>> {
    let place = path.with_extension("lock");
    let mut file = loop {
        let mut file = private::make(&place)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &place) => break file,
            // Its last holder has deleted it.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid)?;
                return Ok(Some(JournalState::InHand { record, pid: pid.parse().ok() }));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    };
    // On a full disk the file does not name this process, which can restore the settings in any case.
    let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
    let claim = Claim { path: place, _lock: file };
    // Its content now: the process that held it before may have restored everything.
    let Some((_, record)) = read(path)? else { return Ok(None) };
    Ok(Some(JournalState::Dead(Journal { path: path.to_owned(), record, _claim: Some(claim), _lock: lock })))
}

/// Deletes a file that its writer left unfinished when it died: nothing had been changed yet.
fn discard(path: &Path) -> io::Result<()> {
    match private::open(path) {
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
    use std::os::unix::fs::PermissionsExt;

    use super::super::record::tests::record;
    use super::*;

    fn only(directory: &Path) -> JournalState {
        let mut all = Journal::all(directory).unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        all.pop().unwrap()
    }

    fn begin(directory: &Path, change: impl FnOnce(&mut Process)) -> Journal {
        let mut record = record();
        change(record.process.as_mut().unwrap());
        Journal::begin(directory, record).unwrap()
    }

    fn gone(process: &mut Process) {
        process.start -= 1;
    }

    #[test]
    fn a_journal_is_live_until_its_process_is_gone_whoever_holds_its_lock() {
        let home = tempfile::tempdir().unwrap();
        assert!(Journal::all(&home.path().join("none")).unwrap().is_empty());
        let journal = begin(home.path(), |_| ());
        assert!(matches!(only(home.path()), JournalState::Live(live) if live == journal.record));
        journal.close().unwrap();
        let journal = begin(home.path(), gone);
        let JournalState::Dead(dead) = only(home.path()) else {
            panic!("its lock is held, and its process is gone")
        };
        assert_eq!(dead.record, journal.record);
        // The journal names the process that restores it.
        let own = std::process::id();
        assert!(matches!(only(home.path()), JournalState::InHand { pid, .. } if pid == Some(own)));
        drop(dead);
        let JournalState::Dead(dead) = only(home.path()) else { panic!("nobody puts it back any more") };
        dead.close().unwrap();
        drop(dead);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_process_that_cannot_be_seen_does_not_count_as_gone() {
        let home = tempfile::tempdir().unwrap();
        let in_a_container = |process: &mut Process| {
            let boot = process.machine.split_once(' ').unwrap().0;
            process.machine = format!("{boot} pid:[1]");
        };
        let journal = begin(home.path(), in_a_container);
        assert!(matches!(only(home.path()), JournalState::Live(_)), "its lock is held");
        drop(journal);
        let JournalState::Elsewhere(unclaimed) = only(home.path()) else { panic!("it may run") };
        assert!(matches!(unclaimed.claim(), Ok(Some(JournalState::Dead(_)))));
    }

    #[test]
    fn of_an_older_pgrig_s_journal_the_lock_tells() {
        let home = tempfile::tempdir().unwrap();
        let mut old = record();
        old.process = None;
        let journal = Journal::begin(home.path(), old.clone()).unwrap();
        assert!(matches!(only(home.path()), JournalState::Live(_)));
        let text = fs::read_to_string(journal.path()).unwrap();
        let gone = text.replace(&format!("\"pid\": {}", old.pid), "\"pid\": 4194305");
        fs::write(journal.path(), gone).unwrap();
        assert!(matches!(only(home.path()), JournalState::Elsewhere(_)), "somebody else holds its lock");
        drop(journal);
        assert!(matches!(only(home.path()), JournalState::Dead(_)));
    }

    #[test]
    fn only_its_owner_can_open_anything() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("journal");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let journal = begin(&directory, gone);
        assert_eq!((mode(&directory), mode(journal.path())), (0o700, 0o600));
        // As an older pgrig left them.
        set(&directory, 0o755);
        set(journal.path(), 0o644);
        let found = only(&directory);
        assert!(matches!(&found, JournalState::Dead(_)));
        assert_eq!((mode(&directory), mode(journal.path())), (0o700, 0o600));
        assert_eq!(mode(&journal.path().with_extension("lock")), 0o600);
    }

    #[test]
    fn why_it_was_given_up_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let journal = begin(home.path(), gone);
        journal.give_up("the server is gone".to_owned()).unwrap();
        let JournalState::Dead(dead) = only(home.path()) else { panic!("its process is gone") };
        assert_eq!(dead.record.gave_up.as_deref(), Some("the server is gone"));
    }

    #[test]
    fn what_was_never_finished_goes_and_what_cannot_be_read_hides_nothing() {
        let home = tempfile::tempdir().unwrap();
        for left in ["1.partial", "2.lock"] {
            fs::write(home.path().join(left), "{").unwrap();
        }
        let newer = fs::read_to_string(begin(home.path(), gone).path()).unwrap();
        let newer = newer.replace("\"format_version\": 1", "\"format_version\": 1000");
        let other = r#"{ "format_version": 1000, "changes": [] }"#;
        for (damaged, text) in
            [("0.json", ""), ("3.json", "{"), ("4.json", newer.as_str()), ("5.json", other)]
        {
            fs::write(home.path().join(damaged), text).unwrap();
        }
        let all = Journal::all(home.path()).unwrap();
        let unreadable = all.iter().filter_map(|found| match found {
            JournalState::Unreadable(error) => Some(error.to_string()),
            _ => None,
        });
        let unreadable: Vec<String> = unreadable.collect();
        for (error, part) in
            unreadable.iter().zip(["0.json", "3.json", "a newer pgrig wrote it", "a newer pgrig wrote it"])
        {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!((unreadable.len(), all.len()), (4, 5));
        drop(all);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 5);
    }
}
