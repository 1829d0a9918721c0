//! Files that only their owner can open: flock(2) works on a read-only descriptor, so anybody who can open a file can
//! hold its lock.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// Makes a directory, if it is not there, that only its owner can enter.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    close_directory(path)
}

/// Removes the permissions of others from a directory that an older pgrig made.
pub(super) fn close_directory(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.mode() & 0o077 != 0 {
        ours(fs::set_permissions(path, Permissions::from_mode(0o700)))?;
    }
    Ok(())
}

/// Opens a file. Removes the permissions of others, if an older pgrig made it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    opened(File::options().read(true), path)
}

/// Opens a file to write to, and makes it if it is not there.
pub(super) fn make(path: &Path) -> io::Result<File> {
    opened(File::options().read(true).write(true).create(true).truncate(false), path)
}

fn opened(options: &mut fs::OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        ours(file.set_permissions(Permissions::from_mode(0o600)))?;
    }
    Ok(file)
}

/// Ignores the error that a file belongs to another user: such files stay as they are.
fn ours(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}
