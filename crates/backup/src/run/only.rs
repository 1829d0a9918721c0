//! The right to the scratch servers and backups of a home: one run has it from before it deletes anything until all of it is deleted.

use std::path::PathBuf;
use std::{fs, io};

use pgserver::{Home, LockFile};

use crate::error::{BackupError, OnPath};

/// The lock file, in the home of the scratch servers.
const FILE: &str = "lock";
/// Attempts to lock a file that another run deletes at this moment.
const ATTEMPTS: u32 = 50;

/// The right, until it is dropped. The kernel takes it back however the process ends.
pub(super) struct Only {
    path: PathBuf,
    /// Held.
    _file: LockFile,
}

impl Only {
    /// Takes it. Creates the directories of the home, and deletes nothing.
    ///
    /// # Errors
    /// [`BackupError::Busy`] if another run has it.
    pub(super) fn take(home: &Home) -> Result<Self, BackupError> {
        let path = home.root().join(FILE);
        for _ in 0..ATTEMPTS {
            home.create()?;
            let file = match LockFile::open(&path) {
                // A run that has ended has deleted the directory, too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.on("open", &path)?,
            };
            if !file.try_lock().on("lock", &path)? {
                return Err(BackupError::Busy(file.holder()));
            }
            if file.is_at(&path) {
                return Ok(Self { path, _file: file });
            }
        }
        Err(BackupError::Busy(None))
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        // While the lock is held. If it stays, it is in nobody's way.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_of_a_home_has_the_right_and_leaves_no_file() {
        let directory = testkit::directory();
        testkit::open_to_all(directory.path());
        let home = Home::at(&directory.path().join("home")).unwrap();
        let held = Only::take(&home).unwrap();
        let refused = Only::take(&home).err().unwrap();
        assert!(matches!(refused, BackupError::Busy(Some(pid)) if pid == std::process::id()), "{refused}");
        assert!(held.path.is_file());
        let path = held.path.clone();
        drop(held);
        assert!(!path.exists());
        drop(Only::take(&home).unwrap());
    }
}
