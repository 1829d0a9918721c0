//! Files of backups: deleted, and moved.

use std::path::Path;
use std::{fs, io};

use crate::error::{BackupError, OnPath};

/// Deletes a backup, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).on("delete", path),
        Ok(_) => fs::remove_file(path).on("delete", path),
        Err(_) => Ok(()),
    }
}

/// Moves a directory of files, also to another disk.
pub(super) fn move_files(from: &Path, to: &Path) -> Result<(), BackupError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        moved => return moved.on("move", from),
    }
    fs::create_dir(to).on("create", to)?;
    for entry in fs::read_dir(from).on("read", from)? {
        let entry = entry.on("read", from)?;
        let path = entry.path();
        fs::copy(&path, to.join(entry.file_name())).on("copy", &path)?;
    }
    remove(from)
}

#[cfg(test)]
mod tests {
    use testkit::{Mount, Need, require};

    use super::*;

    #[test]
    fn files_are_moved_also_to_another_disk() {
        if !require(Need::Mounts) {
            return;
        }
        let directory = testkit::directory();
        let [from, other] = ["from", "other"].map(|name| directory.path().join(name));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&other).unwrap();
        let _disk = Mount::tmpfs(&other, 10);
        fs::write(from.join("segment"), "WAL").unwrap();
        let [here, there] = [directory.path().join("here"), other.join("there")];
        move_files(&from, &here).unwrap();
        move_files(&here, &there).unwrap();
        assert_eq!(fs::read_to_string(there.join("segment")).unwrap(), "WAL");
        assert!(!from.exists() && !here.exists());
    }
}
