//! Writes files as a whole: readers never see a part of one, and no partial file is left behind.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::app::failure::Usage;

/// Treatment of a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is replaced.
    Replaced,
    /// It stays, and that is an error.
    Kept,
}

/// Refuses a file that cannot be written because of its place: to be called before any work. `option` is as the user gave
/// it.
///
/// # Errors
/// If it has no name, is a directory, has no directory (perhaps no longer), or exists and is kept.
pub(crate) fn refuse_unwritable(option: &str, file: &Path, existing: Existing) -> Result<(), Usage> {
    let shown = file.display();
    if file.as_os_str().is_empty() {
        return Err(Usage(format!("{option} is empty: give the name of a file")));
    }
    refuse_lost_directory(file)?;
    if file.is_dir() {
        let example = file.join("FILE");
        return Err(Usage(format!(
            "{option} {shown} is a directory: give the name of a file, for example {}",
            example.display()
        )));
    }
    if existing == Existing::Kept && file.exists() {
        return Err(Usage(format!("{shown} exists: give another FILE, or --force to overwrite it")));
    }
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(Usage(format!(
            "{option} {shown}: there is no directory {}; check the path",
            directory.display()
        )));
    }
    if access(directory, AccessFlags::W_OK).is_err() && !file.exists() {
        return Err(Usage(format!(
            "{option} {shown}: this user may not write in {}: give a file in another directory",
            directory.display()
        )));
    }
    Ok(())
}

/// Refuses a relative path if the working directory was deleted: nothing can be written there.
///
/// # Errors
/// If it was.
pub(crate) fn refuse_lost_directory(file: &Path) -> Result<(), Usage> {
    if file.is_absolute() || std::env::current_dir().is_ok() {
        return Ok(());
    }
    Err(Usage(format!(
        "cannot write {}: the working directory no longer exists. Change to another one (cd), or give an absolute path",
        file.display()
    )))
}

/// Writes a temporary file beside the file and renames it. A device or a pipe is written to
/// directly.
///
/// # Errors
/// If it cannot be written, or exists and is kept: [`io::ErrorKind::AlreadyExists`].
pub(crate) fn whole(file: &Path, text: &[u8], existing: Existing) -> io::Result<()> {
    let found = file.metadata();
    if existing == Existing::Replaced && found.is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(file, text);
    }
    // A link stays one.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut beside = tempfile::Builder::new()
        .prefix(".pgrig-")
        .suffix(".partial")
        // The user's mask decides.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    beside.write_all(text)?;
    beside.as_file().sync_all()?;
    let placed = match existing {
        Existing::Replaced => beside.persist(&file),
        Existing::Kept => beside.persist_noclobber(&file),
    };
    placed.map(drop).map_err(|error| error.error)
}
