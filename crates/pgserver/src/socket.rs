//! Chooses the directory of the server's Unix socket, whose path must fit into `sockaddr_un`.

use crate::account::Account;
use crate::error::OnPath;
use crate::files::path_hash;
use crate::{Error, Result};
use nix::unistd::Uid;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Length of the longest path that fits, without the final zero byte.
const MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// Name of the socket file, with the longest port.
const FILE: &str = "/.s.PGSQL.65535";

/// `<instance>/socket`, or a short directory in /tmp if that is too long.
pub(crate) fn directory(instance: &Path, account: &Account) -> PathBuf {
    let own = instance.join("socket");
    if own.as_os_str().len() + FILE.len() <= MAX {
        return own;
    }
    // /tmp and not TMPDIR, which may be long too, and must be the same for every process.
    let name = format!("pgrig-{}-{}", account.uid(), path_hash(instance));
    Path::new("/tmp").join(name)
}

/// Creates it, private to the account. In /tmp another user may have created it before.
pub(crate) fn prepare(dir: &Path, account: &Account) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => return account.give(dir),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).on("create directory", dir),
    }
    let meta = fs::symlink_metadata(dir).on("read", dir)?;
    // Root was killed before it could give it away.
    let unfinished = meta.uid() == Uid::effective().as_raw();
    let problem = if !meta.is_dir() {
        "the path is not a directory".to_owned()
    } else if meta.uid() != account.uid() && !unfinished {
        format!("it belongs to uid {}", meta.uid())
    } else if meta.mode() & 0o077 != 0 {
        format!("its mode is {:o}", meta.mode() & 0o777)
    } else {
        return account.give(dir);
    };
    Err(Error::SocketDirectory { path: dir.to_owned(), problem })
}

/// As an element of the list `unix_socket_directories`.
pub(crate) fn list_element(dir: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if dir.chars().all(plain) { dir.to_owned() } else { format!("\"{}\"", dir.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_fits() {
        let account = Account::choose().unwrap();
        for length in [1, 50, 84, 85, 86, 87, 200] {
            let instance = PathBuf::from(format!("/{}", "x".repeat(length)));
            let dir = directory(&instance, &account);
            assert!(dir.as_os_str().len() + FILE.len() <= MAX, "{dir:?}");
            assert_eq!(dir.starts_with("/tmp"), length > MAX - FILE.len() - 8);
        }
    }

    #[test]
    fn a_directory_of_others_is_refused() {
        let account = Account::choose().unwrap();
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("s");
        prepare(&dir, &account).unwrap();
        prepare(&dir, &account).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&dir, open).unwrap();
        let message = prepare(&dir, &account).unwrap_err().to_string();
        assert!(message.contains("755"), "{message}");
        fs::remove_dir(&dir).unwrap();
        fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        prepare(&dir, &account).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().uid(), account.uid());
        fs::remove_dir(&dir).unwrap();
        std::os::unix::fs::symlink("/", &dir).unwrap();
        prepare(&dir, &account).unwrap_err();
    }

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(list_element("/tmp/a-b"), "/tmp/a-b");
        assert_eq!(list_element("/a, b\"c"), "\"/a, b\"\"c\"");
    }
}
