//! Unix sockets, whose paths may be longer than `sockaddr_un` allows: then they are reached through their directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};
use tokio::net::{UnixListener, UnixStream};

/// The longest path that fits, the final zero byte taken off.
const MAX: usize = 107;

/// Listens on this path, which only this user can reach from the first moment on. The caller must
/// have removed an earlier socket.
///
/// # Errors
/// If it cannot be made.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let (_directory, path) = short(path)?;
    let before = umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}

pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_directory, path) = short(path)?;
    UnixStream::connect(path).await
}

/// A path that fits, as long as the directory is open.
fn short(path: &Path) -> io::Result<(Option<File>, PathBuf)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if path.as_os_str().len() > MAX => {
            let directory = File::open(parent)?;
            let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
            Ok((Some(directory), path))
        }
        _ => Ok((None, path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn others_have_no_way_in() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        let _listener = listen(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }

    #[tokio::test]
    async fn paths_of_any_length_can_be_reached() {
        let home = tempfile::tempdir().unwrap();
        for length in [1, 60, 200] {
            let directory = home.path().join("x".repeat(length));
            std::fs::create_dir(&directory).unwrap();
            let path = directory.join("socket");
            let listener = listen(&path).unwrap();
            let (there, here) = tokio::join!(listener.accept(), connect(&path));
            there.unwrap();
            here.unwrap();
        }
    }
}
