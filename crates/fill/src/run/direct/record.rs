//! `PGRIG_HOME/direct/<id>.json`: the files that a transaction has created and whose pages are
//! written past the server.
//!
//! After a crash PostgreSQL does not remove the files of tables whose transaction never committed.
//! Therefore the files and the transaction are recorded durably before the first page is written;
//! [`super::abandoned`] removes the record. The process that holds the record's flock(2) is working
//! on the files.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

/// To be increased when an older pgrig would misread the record.
const FORMAT_VERSION: u32 = 1;
/// Suffixes of the files that the server creates with a relation, after the relation's file number.
const MADE: [&str; 2] = ["", "_init"];

/// The part that no later pgrig changes.
#[derive(Deserialize)]
struct Format {
    format_version: u32,
}

/// The files that a process writes, recorded before it creates them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format_version: u32,
    /// The process that writes.
    pub(super) pid: u32,
    /// The server's system identifier.
    pub(super) system_identifier: i64,
    /// The server's data directory, as this machine sees it.
    pub(super) data_directory: PathBuf,
    /// The database's oid.
    pub(super) database: u32,
    /// The transaction's 64-bit number.
    pub(super) transaction: String,
    /// Identifies the start of the server, or the end of recovery after a crash, since which the
    /// transaction could run.
    pub(super) lifetime: String,
    pub(super) relations: Vec<Files>,
}

/// The files of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    /// As SQL names it.
    pub(super) name: String,
    /// Oid of the tablespace; 0 for the database's default.
    pub(super) tablespace: u32,
    /// Number of its files.
    pub(super) filenode: u32,
    /// Path of the main fork within the data directory.
    pub(super) path: PathBuf,
    /// Files that the server has made.
    pub(super) made: Vec<Identity>,
}

/// One file, whatever it is called later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The part of its name after the relation's number.
    pub(super) suffix: String,
    inode: u64,
    /// Device number; set only if the file system does not report when the file was created.
    device: Option<u64>,
    /// Time of the file's creation, nanoseconds since 1970.
    made_at: Option<u64>,
}

impl Identity {
    fn of(suffix: &str, file: &Metadata) -> Self {
        let made_at = file.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let made_at = made_at.and_then(|since| u64::try_from(since.as_nanos()).ok());
        // A device's number may be another one after the machine was started again.
        let device = if made_at.is_none() { Some(file.dev()) } else { None };
        Self { suffix: suffix.to_owned(), inode: file.ino(), device, made_at }
    }
}

impl Files {
    fn of(row: &Row, data_directory: &Path) -> Option<Self> {
        let path = PathBuf::from(row.get::<_, String>("path"));
        let mut files = Self {
            name: row.get("name"),
            tablespace: row.get("tablespace"),
            filenode: row.get("filenode"),
            path,
            made: Vec::new(),
        };
        files.made = MADE.iter().filter_map(|suffix| files.identity(data_directory, suffix)).collect();
        (!files.made.is_empty()).then_some(files)
    }

    fn identity(&self, data_directory: &Path, suffix: &str) -> Option<Identity> {
        let mut path = data_directory.join(&self.path).into_os_string();
        path.push(suffix);
        Some(Identity::of(suffix, &fs::symlink_metadata(path).ok().filter(Metadata::is_file)?))
    }

    /// Whether one of the files that the transaction created still exists under its name. If so, no
    /// other relation has got its number, because the server looks for such a file first
    /// (`GetNewRelFileNumber`, catalog.c).
    pub(super) fn are_there(&self, data_directory: &Path) -> bool {
        self.made.iter().any(|made| self.identity(data_directory, &made.suffix).as_ref() == Some(made))
    }
}

impl Record {
    /// Reads the rows of `direct_files.sql`.
    pub(super) fn of(rows: &[Row], data_directory: &Path) -> Option<Self> {
        let first = rows.first()?;
        Some(Self {
            format_version: FORMAT_VERSION,
            pid: std::process::id(),
            system_identifier: first.get("system_identifier"),
            data_directory: data_directory.to_owned(),
            database: first.get("database"),
            transaction: first.get("transaction"),
            lifetime: first.get("lifetime"),
            relations: rows.iter().filter_map(|row| Files::of(row, data_directory)).collect(),
        })
    }
}

/// Path of a record that cannot be read, with the error.
type Unreadable = (PathBuf, io::Error);

/// A record on disk, whose lock is held.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(super) path: PathBuf,
    pub(super) record: Record,
    _lock: File,
}

impl Recorded {
    /// Writes the record and syncs it to disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn begin(directory: &Path, record: Record) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The process that made the directory may not have synced its name.
        if COUNT.load(Ordering::Relaxed) == 0 || !directory.exists() {
            Self::make(directory)?;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{:x}-{:x}-{count}.json", since.as_nanos(), record.pid));
        let partial = path.with_extension("partial");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.lock()?;
        file.write_all(&serde_json::to_vec_pretty(&record)?)?;
        file.sync_all()?;
        // The lock goes with the file, not with its name.
        fs::rename(&partial, &path)?;
        File::open(directory)?.sync_all()?;
        Ok(Self { path, record, _lock: file })
    }

    /// Creates the directory, if it does not exist, and syncs its name to disk.
    fn make(directory: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => fs::set_permissions(directory, Permissions::from_mode(0o700))?,
        }
        directory.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    /// The records in `directory` that no process works on, and the paths of records that cannot be read, with the
    /// reasons.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(super) fn all(directory: &Path) -> io::Result<(Vec<Self>, Vec<Unreadable>)> {
        let mut paths = match fs::read_dir(directory) {
            Ok(entries) => {
                entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        paths.sort();
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for path in paths {
            match Self::open(&path) {
                Ok(recorded) => found.extend(recorded),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => unreadable.push((path, error)),
            }
        }
        Ok((found, unreadable))
    }

    fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let (ours, there) = (file.metadata()?, fs::metadata(path)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Ok(None);
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => {}
            // No page was written yet when its writer died.
            Some("partial") => return fs::remove_file(path).map(|()| None),
            _ => return Ok(None),
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if serde_json::from_str::<Format>(&text)?.format_version > FORMAT_VERSION {
            return Err(io::Error::other("a newer pgrig wrote it; use that pgrig"));
        }
        let record: Record = serde_json::from_str(&text)?;
        Ok(Some(Self { path: path.to_owned(), record, _lock: file }))
    }

    /// Deletes the record: its files belong to the server, or are gone.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub(crate) fn close(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(data: &Path) -> Files {
        let path = PathBuf::from("16384");
        let mut files =
            Files { name: "t".to_owned(), tablespace: 0, filenode: 16384, path, made: Vec::new() };
        files.made.extend(files.identity(data, ""));
        files
    }

    #[test]
    fn another_file_of_the_same_name_is_not_the_one_that_was_recorded() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("16384"), "").unwrap();
        let files = files(data.path());
        fs::write(data.path().join("16384"), "grown").unwrap();
        assert!(files.are_there(data.path()));
        fs::rename(data.path().join("16384"), data.path().join("kept")).unwrap();
        assert!(!files.are_there(data.path()));
        fs::copy(data.path().join("kept"), data.path().join("16384")).unwrap();
        assert!(!files.are_there(data.path()), "a copy");
    }

    #[test]
    fn a_record_is_private_and_found_once_its_process_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("direct");
        assert!(Recorded::all(&directory).unwrap().0.is_empty());
        let record = Record {
            format_version: FORMAT_VERSION,
            pid: 1,
            system_identifier: -1,
            data_directory: home.path().to_owned(),
            database: 5,
            transaction: "18446744073709551615".to_owned(),
            lifetime: "1/1".to_owned(),
            relations: Vec::new(),
        };
        let recorded = Recorded::begin(&directory, record.clone()).unwrap();
        for (path, mode) in [(&directory, 0o700), (&recorded.path, 0o600)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        assert!(Recorded::all(&directory).unwrap().0.is_empty(), "it is locked");
        drop(recorded);
        fs::write(directory.join("damaged.json"), "{").unwrap();
        fs::write(directory.join("begun.partial"), "{").unwrap();
        let (mut found, unreadable) = Recorded::all(&directory).unwrap();
        assert_eq!(found.pop().unwrap().record, record);
        assert_eq!(unreadable.len(), 1);
        assert!(!directory.join("begun.partial").exists());
    }
}
