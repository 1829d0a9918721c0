//! Directories that end with their test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use tempfile::TempDir;

/// Bytes that a directory in memory must have free.
const ROOM: u64 = 3 << 30;

/// A directory for a home. In memory where there is space: an fsync costs nothing there.
pub fn directory() -> TempDir {
    tempfile::Builder::new().prefix("test-").tempdir_in(parent()).unwrap()
}

/// The directory of throw-away homes.
pub(crate) fn parent() -> PathBuf {
    let memory = || Some(PathBuf::from("/dev/shm")).filter(|memory| has_room(memory));
    std::env::var_os("PGRIG_TEST_DIR").map(PathBuf::from).or_else(memory).unwrap_or_else(std::env::temp_dir)
}

/// A directory for a home that must not be in memory.
pub fn disk_directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Programs must run there too.
fn has_room(parent: &Path) -> bool {
    statvfs(parent).is_ok_and(|space| {
        space.blocks_available() * space.fragment_size() > ROOM && !space.flags().contains(FsFlags::ST_NOEXEC)
    })
}

/// Lets every account enter the directory.
pub fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, Permissions::from_mode(0o711)).unwrap();
}
