//! Small operations on files that several modules need.

use crate::account::Account;
use crate::error::OnPath;
use crate::{Error, Result};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Creates a directory and its missing parents, each with `mode` whatever the umask says. Existing
/// ones are left as they are.
pub(crate) fn create_dirs(path: &Path, mode: u32) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dirs(parent, mode)?;
    }
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)).on("chmod", path),
        // Another pgrig was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error).on("create directory", path),
    }
}

/// Replaces a file as a whole: readers see the old or the new one. The directory may belong to the
/// server's account, hence no symbolic link is followed: the new file is made exclusively and renamed.
/// The file is given to `owner`, if there is one.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32, owner: Option<&Account>) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(dir)
        .on("write", path)?;
    file.write_all(content).on("write", path)?;
    if let Some(owner) = owner {
        owner.give_file(file.as_file(), path)?;
    }
    file.persist(path).map_err(|e| e.error).on("write", path)?;
    Ok(())
}

/// Syncs a file or directory to disk.
pub(crate) fn sync(path: &Path) -> Result<()> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.on("sync", path)
}

/// Bytes that a directory tree takes on disk. Files that vanish meanwhile count as 0.
pub(crate) fn disk_usage(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let below = if metadata.is_dir() { disk_usage(&entry.path()) } else { 0 };
            Some(metadata.blocks() * 512 + below)
        })
        .sum()
}

/// Bytes that an ordinary process can still write on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(path).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

/// `path` with its existing part resolved: usable for a file that does not exist yet.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(resolved), _, _) => resolved,
        (Err(_), Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// FNV-1a: a short name for a long path that never changes (std's hasher does not promise that).
pub(crate) fn path_hash(path: &Path) -> String {
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The path as a word of a shell command.
pub(crate) fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Calls `probe` at this interval until it returns a value, or until the deadline (None).
pub(crate) fn poll<T>(
    deadline: Duration,
    every: Duration,
    mut probe: impl FnMut() -> Option<T>,
) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(every);
    }
}

/// The instance's name: the last part of its directory.
pub(crate) fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The path as text: configuration files, URLs and JSON need it.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        let shown = path.display();
        Error::Home(format!("{shown} is not valid UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_resolves_what_exists() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(canonical(&real.join("link/a/b")), real.join("a/b"));
    }

    #[test]
    fn hash_is_fnv_1a() {
        // The published test vector.
        assert_eq!(path_hash(Path::new("foobar")), "85944171f73967e8");
    }

    #[test]
    fn shell_words() {
        assert_eq!(shell_quoted(Path::new("/usr/lib/x-1")), "/usr/lib/x-1");
        assert_eq!(shell_quoted(Path::new("/a b'c")), r"'/a b'\''c'");
    }
}
