//! A relation fork's segment files, written past the page cache where the file system can.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use page::{BlockLocation, Geometry, Segments};

use super::Failure;

/// Alignment of a buffer for O_DIRECT, bytes: no sector or page is larger.
const ALIGNMENT: usize = 4096;

/// Lets this process have as many files open as the system allows: each segment of a gigabyte is one.
pub(super) fn allow_many_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Tables of a terabyte then fail, with an error that says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// A fork that is being written. Segments are created in order, because the server looks for the
/// next segment only if the one before exists. The files that were created here are removed when
/// this is dropped, unless [kept](Self::keep): the server may have removed the relation before the
/// last segment was created.
pub(super) struct Fork {
    first: PathBuf,
    geometry: Geometry,
    segments: Segments,
    owner: Owner,
    open: Mutex<Vec<Arc<File>>>,
    /// Number of segments that the server has created.
    found: usize,
    /// Whether the file system supports O_DIRECT, as far as is known.
    unbuffered: AtomicBool,
    kept: AtomicBool,
}

/// Makes everything that was written, and the names of the files, reach the disk. Files are synced
/// in parallel: the file system then makes the disk flush its cache fewer times.
///
/// # Errors
/// If the disk fails.
pub(super) fn sync(forks: &[&Fork]) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let syncing: Vec<_> = forks.iter().map(|fork| (fork, scope.spawn(|| fork.sync_files()))).collect();
        syncing.into_iter().try_for_each(|(fork, thread)| {
            thread.join().expect("it does not panic").map_err(|error| fork.failure(error))
        })
    })?;
    let directories: BTreeMap<&Path, &Fork> = forks.iter().map(|fork| (fork.directory(), *fork)).collect();
    directories.values().try_for_each(|fork| fork.sync_directory().map_err(|error| fork.failure(error)))
}

/// Owner and mode of a server's file.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
    mode: u32,
}

impl Owner {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self { user: metadata.uid(), group: metadata.gid(), mode: metadata.permissions().mode() & 0o777 })
    }
}

impl Fork {
    /// The main fork, whose first segment the server has created.
    ///
    /// # Errors
    /// If the file is not there or may not be written.
    pub(super) fn of_server(path: PathBuf, geometry: Geometry, segments: Segments) -> io::Result<Self> {
        let owner = Owner::of(&path)?;
        let mut fork = Self::new(path, geometry, segments, owner);
        let first = fork.open_file(&fork.first, false)?;
        fork.lock().push(Arc::new(first));
        fork.found = 1;
        Ok(fork)
    }

    /// Another fork of the same relation, which is not there yet: `suffix` is `_vm`, say.
    pub(super) fn beside(&self, suffix: &str) -> Self {
        let mut path = self.first.clone().into_os_string();
        path.push(suffix);
        Self::new(path.into(), self.geometry, self.segments, self.owner)
    }

    fn new(first: PathBuf, geometry: Geometry, segments: Segments, owner: Owner) -> Self {
        let (unbuffered, kept) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { first, geometry, segments, owner, open: Mutex::default(), found: 0, unbuffered, kept }
    }

    /// Writes whole blocks, the first of which is number `block`. Threads may write different
    /// blocks at the same time, in any order.
    ///
    /// # Errors
    /// If a file cannot be made or written: the volume may be full.
    pub(super) fn write(&self, block: u32, bytes: &[u8]) -> io::Result<()> {
        let block_size = self.geometry.block_size() as usize;
        let mut block = block;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.segments.blocks().get() - block % self.segments.blocks();
            let (now, later) = rest.split_at(rest.len().min(room as usize * block_size));
            self.write_within(block, now)?;
            block = block.saturating_add(room);
            rest = later;
        }
        Ok(())
    }

    /// Writes blocks that are all of one segment.
    fn write_within(&self, block: u32, bytes: &[u8]) -> io::Result<()> {
        let BlockLocation { segment, offset } = self.segments.place(block);
        let was_unbuffered = self.is_unbuffered();
        match self.segment(segment)?.write_all_at(bytes, offset) {
            Err(error) if error.kind() == ErrorKind::InvalidInput && was_unbuffered => {
                self.reopen_buffered()?;
                self.segment(segment)?.write_all_at(bytes, offset)
            }
            written => written,
        }
    }

    fn sync_files(&self) -> io::Result<()> {
        self.lock().iter().try_for_each(|file| file.sync_all())
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(self.directory())?.sync_all()
    }

    fn directory(&self) -> &Path {
        self.first.parent().unwrap_or(Path::new("."))
    }

    /// Says that all is written: from now on the server removes the files if the transaction fails.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Whether the file is written past the page cache (O_DIRECT).
    pub(super) fn is_unbuffered(&self) -> bool {
        self.unbuffered.load(Ordering::Relaxed)
    }

    /// The failure that stands for an error of [`Self::write`] or [`sync`].
    pub(super) fn failure(&self, source: io::Error) -> Failure {
        Failure::File { path: self.first.display().to_string(), source }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<File>>> {
        self.open.lock().expect("nobody panics holding this")
    }

    fn path(&self, segment: u32) -> PathBuf {
        let mut path = self.first.clone().into_os_string();
        path.push(Segments::suffix(segment));
        path.into()
    }

    /// The file of a segment. The segment and those before it are created if they do not exist.
    fn segment(&self, number: u32) -> io::Result<Arc<File>> {
        let mut open = self.lock();
        while open.len() <= number as usize {
            self.refuse_abandoned(&open)?;
            let next = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let file = self.open_file(&self.path(next), true)?;
            open.push(Arc::new(file));
        }
        Ok(Arc::clone(&open[number as usize]))
    }

    /// Refuses to create a segment once the server has dropped the relation: nobody would remove
    /// the file.
    fn refuse_abandoned(&self, open: &[Arc<File>]) -> io::Result<()> {
        match open.first() {
            Some(first) if !is_at(first, &self.first) => {
                Err(io::Error::other("the server has removed the table meanwhile"))
            }
            _ => Ok(()),
        }
    }

    fn open_file(&self, path: &Path, create: bool) -> io::Result<File> {
        let open = |flags| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(create).mode(self.owner.mode).custom_flags(flags);
            options.open(path)
        };
        let file = match open(if self.is_unbuffered() { OFlag::O_DIRECT.bits() } else { 0 }) {
            // Some file systems have made the file before they refuse the flag.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.unbuffered.store(false, Ordering::Relaxed);
                if create && path.exists() {
                    fs::remove_file(path)?;
                }
                open(0)?
            }
            file => file?,
        };
        if create {
            // The mask that new files' modes go through is ours, not the server's.
            file.set_permissions(fs::Permissions::from_mode(self.owner.mode))?;
            let made = file.metadata()?;
            if (made.uid(), made.gid()) != (self.owner.user, self.owner.group) {
                fchown(&file, Some(self.owner.user), Some(self.owner.group))?;
            }
        }
        Ok(file)
    }

    /// Opens all files again, for the page cache.
    fn reopen_buffered(&self) -> io::Result<()> {
        let mut open = self.lock();
        self.unbuffered.store(false, Ordering::Relaxed);
        for (number, file) in (0..).zip(open.iter_mut()) {
            *file = Arc::new(self.open_file(&self.path(number), false)?);
        }
        Ok(())
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Relaxed) {
            return;
        }
        // From the end: the server, which may be removing them too, stops at the first that is missing.
        for (number, file) in (0..).zip(&*self.lock()).collect::<Vec<_>>().into_iter().rev() {
            // Nothing can be done about a failure here, and the server will try to do the same.
            let _ = file.set_len(0);
            let path = self.path(number);
            if number as usize >= self.found && is_at(file, &path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether the file is still where it was opened.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |of: io::Result<fs::Metadata>| of.map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let there = identity(fs::metadata(path));
    there.is_some() && there == identity(file.metadata())
}

/// Memory that begins where O_DIRECT wants it to, used again and again.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// `length` bytes, with their last contents unless the buffer has to grow.
    pub(super) fn of(&mut self, length: usize) -> &mut [u8] {
        if self.0.len() < length + ALIGNMENT {
            self.0 = vec![0; length + ALIGNMENT];
        }
        let start = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[start..start + length]
    }
}
