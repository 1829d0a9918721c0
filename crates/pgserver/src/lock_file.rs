//! Lock files. flock(2) works on a read-only descriptor, so anybody who can open a lock file can hold its lock:
//! only its owner may open it.

use nix::fcntl::OFlag;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Time after which pgrig prints the reason for which it waits.
pub const TELL_AFTER: Duration = Duration::from_secs(1);

/// A lock file, open. Its lock, once taken, is held until this is dropped.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Opens the file, or creates it with mode 0600. If an older pgrig left it readable to others,
    /// removes those permissions.
    ///
    /// # Errors
    /// If it cannot be opened or made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path)?;
        if file.metadata()?.mode() & 0o077 != 0 {
            match file.set_permissions(Permissions::from_mode(0o600)) {
                // The file of another user, who shares it with this one.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                done => done?,
            }
        }
        Ok(Self(file))
    }

    /// Takes the lock; false if another process holds it.
    ///
    /// # Errors
    /// If the file system has no locks.
    pub fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether another process holds the lock.
    ///
    /// # Errors
    /// If the file system has no locks.
    pub fn is_held(&self) -> io::Result<bool> {
        match self.0.try_lock_shared() {
            Ok(()) => self.0.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The process that holds the lock, if it can be seen from here.
    pub fn holder(&self) -> Option<u32> {
        let meta = self.0.metadata().ok()?;
        holder_in(&fs::read_to_string("/proc/locks").ok()?, meta.dev(), meta.ino())
    }

    /// The same in words: `process 123 (pgrig, of user alice)`.
    pub fn holder_text(&self) -> String {
        let unseen = "a process in another container or on another machine";
        self.holder().map_or_else(|| unseen.to_owned(), describe)
    }

    /// Whether the path still leads to this file: the file may have been deleted and created again.
    pub fn is_at(&self, path: &Path) -> bool {
        match (self.0.metadata(), fs::metadata(path)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    /// Content of the file.
    pub(crate) fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        let mut file = &self.0;
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces the file's content.
    pub(crate) fn write(&self, text: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text)
    }
}

/// `process 123 (pgrig, of user alice)`.
fn describe(pid: u32) -> String {
    let proc = Path::new("/proc").join(pid.to_string());
    let name = fs::read_to_string(proc.join("comm")).unwrap_or_default();
    let user = fs::metadata(&proc).ok().map(|meta| meta.uid());
    match (name.trim(), user) {
        ("", _) | (_, None) => format!("process {pid}"),
        (name, Some(uid)) => {
            let user = nix::unistd::User::from_uid(uid.into()).ok().flatten();
            let user = user.map_or_else(|| uid.to_string(), |user| user.name);
            format!("process {pid} ({name}, of user {user})")
        }
    }
}

/// Parses proc_locks(5): `1: FLOCK  ADVISORY  WRITE 708 fe:00:9977 0 EOF`. Waiting processes have
/// an arrow after the number. The device may differ from that of stat(2) (btrfs, overlayfs); then
/// only the inode is compared.
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let found = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ["FLOCK", _, _, pid, file, ..] = fields[..] else { return None };
        let (place, number) = file.rsplit_once(':')?;
        (number.parse() == Ok(inode)).then_some((pid.parse().ok()?, place))
    });
    let found: Vec<(u32, &str)> = found.collect();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let place = format!("{major:02x}:{minor:02x}");
    let exact = found.iter().find(|(_, at)| *at == place);
    exact.or(found.first()).map(|(pid, _)| *pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_its_owner_can_open_it() {
        let dir = tempfile::tempdir().unwrap();
        let (fresh, old) = (dir.path().join("fresh"), dir.path().join("old"));
        fs::write(&old, "").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        for path in [&fresh, &old] {
            LockFile::open(path).unwrap();
            assert_eq!(mode(path), 0o600);
        }
        std::os::unix::fs::symlink(&old, dir.path().join("link")).unwrap();
        LockFile::open(&dir.path().join("link")).unwrap_err();
    }

    #[test]
    fn the_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let [held, other] = [LockFile::open(&path).unwrap(), LockFile::open(&path).unwrap()];
        assert!(!other.is_held().unwrap());
        assert_eq!(other.holder(), None);
        assert!(held.try_lock().unwrap());
        assert!(other.is_held().unwrap());
        assert_eq!(other.holder(), Some(std::process::id()));
        assert!(other.holder_text().starts_with(&format!("process {} (", std::process::id())));
        drop(held);
        assert!(other.try_lock().unwrap());
    }

    #[test]
    fn the_kernels_list_is_understood() {
        let locks = "1: POSIX  ADVISORY  WRITE 3 fe:00:7 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4 00:2b:7 0 EOF\n\
                     3: FLOCK  ADVISORY  READ  5 fe:00:7 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 6 fe:00:7 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 8 fe:00:9 0 EOF\n";
        let device = nix::sys::stat::makedev(0xfe, 0);
        assert_eq!(holder_in(locks, device, 7), Some(5));
        assert_eq!(holder_in(locks, device + 1, 9), Some(8));
        assert_eq!(holder_in(locks, device, 1), None);
    }
}
