//! Small file systems.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::directory::{disk_directory, parent};
use crate::need::{Need, require};
use crate::program::{does, told};

/// A small file system, unmounted in the end; ask for [`Need::Mounts`](crate::Need::Mounts) first.
pub struct Mount {
    at: PathBuf,
    /// The image file of an ext4.
    image: Option<NamedTempFile>,
}

impl Mount {
    /// Calls `body` with a tmpfs, then with an ext4, each of so many megabytes. Skips the test where nothing can be mounted.
    pub fn on_each(megabytes: u32, body: impl Fn(&Self)) {
        if !require(Need::Mounts) {
            return;
        }
        let [one, other] = [disk_directory(), disk_directory()];
        body(&Self::tmpfs(one.path(), megabytes));
        body(&Self::ext4(other.path(), megabytes));
    }

    /// A tmpfs of so many megabytes.
    pub fn tmpfs(at: &Path, megabytes: u32) -> Self {
        Self::try_tmpfs(at, megabytes).expect("a tmpfs can be mounted")
    }

    /// An ext4 of so many megabytes, with blocks that are reserved for root, as is usual.
    pub fn ext4(at: &Path, megabytes: u32) -> Self {
        Self::try_ext4(at, megabytes).expect("an ext4 can be mounted")
    }

    pub(crate) fn try_tmpfs(at: &Path, megabytes: u32) -> Option<Self> {
        Self::try_tmpfs_with(at, megabytes, "mode=0755")
    }

    pub(crate) fn try_tmpfs_with(at: &Path, megabytes: u32, options: &str) -> Option<Self> {
        let options = format!("size={megabytes}m,{options}");
        let mounted = does("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", text(at)]);
        mounted.then(|| Self { at: at.to_owned(), image: None })
    }

    /// A tmpfs with mount options.
    pub fn tmpfs_with(at: &Path, megabytes: u32, options: &str) -> Self {
        Self::try_tmpfs_with(at, megabytes, options).expect("a tmpfs can be mounted")
    }

    /// The same, or none where it cannot be mounted. Its image is where throw-away homes are.
    pub fn try_ext4(at: &Path, megabytes: u32) -> Option<Self> {
        let image = NamedTempFile::new_in(parent()).unwrap();
        image.as_file().set_len(u64::from(megabytes) << 20).unwrap();
        let made = does("mkfs.ext4", &["-q", "-m", "5", text(image.path())])
            && does("mount", &["-o", "loop", text(image.path()), text(at)]);
        made.then(|| Self { at: at.to_owned(), image: Some(image) })
    }

    /// Its mount point.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Free for an ordinary user, bytes.
    pub fn free(&self) -> u64 {
        let space = nix::sys::statvfs::statvfs(&self.at).unwrap();
        space.blocks_available() * space.fragment_size()
    }

    /// Writes a file of this many bytes.
    pub fn take(&self, name: &str, bytes: u64) {
        fs::write(self.at.join(name), vec![1; usize::try_from(bytes).unwrap()]).unwrap();
    }

    /// Makes it larger.
    pub fn grow(&self, megabytes: u32) {
        let Some(image) = &self.image else {
            let size = format!("remount,size={megabytes}m");
            assert!(does("mount", &["-o", &size, text(&self.at)]));
            return;
        };
        image.as_file().set_len(u64::from(megabytes) << 20).unwrap();
        let device = told("findmnt", &["-n", "-o", "SOURCE", text(&self.at)]);
        assert!(does("losetup", &["-c", device.trim()]));
        if does("resize2fs", &[device.trim()]) {
            return;
        }
        // Some sandboxes do not let a mounted one be resized (CAP_SYS_RESOURCE).
        let image = text(image.path());
        assert!(does("umount", &[text(&self.at)]));
        assert!(does("e2fsck", &["-f", "-p", image]));
        assert!(does("resize2fs", &[image]));
        assert!(does("mount", &["-o", "loop", image, text(&self.at)]));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        does("umount", &[text(&self.at)]);
    }
}

/// Writes zeros to a new file until its file system is full.
pub fn fill_up(path: &Path) {
    let mut file = File::create(path).unwrap();
    // In large pieces: unoptimised code fills the small ones of `io::repeat` slowly.
    let zeros = vec![0; 1 << 20];
    let error = loop {
        if let Err(error) = file.write_all(&zeros) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
