//! Reads a backup: files are opened, counted and watched here; a module for each kind reads them.

mod base;
mod custom;
mod directory;
mod file;
mod manifest_check;
mod plain;
mod segments;
mod table;
mod tar_dump;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::CheckError;
use super::format::archive::TooNew;
use super::format::compression::{Frames, Method};
use super::outcome::Outcome;
use super::plan::{Kind, Plan};

const BUFFER: usize = 256 << 10;
/// Bytes that tell a file's compression.
const MAGIC: u64 = 8;
/// Remedy for parts of a dump without a checksum.
const DUMP_REMEDY: &str = "compress the next dump as a whole, with a program that adds a checksum: pg_dump --format=custom --compress=0 DBNAME | zstd > FILE";

pub(super) fn check(plan: &Plan, watch: &Watch<'_>) -> Result<Outcome, CheckError> {
    let mut outcome = Outcome::default();
    let run = Run { plan, watch };
    match plan.kind {
        Kind::File | Kind::Stream => file::check(&run, &mut outcome),
        Kind::DumpDirectory => directory::check(&run, &mut outcome),
        Kind::Base => base::plain(&run, &mut outcome),
        Kind::BaseTar => base::tars(&run, &mut outcome),
    }?;
    watch.check_unchanged()?;
    let files: BTreeSet<PathBuf> = watch.opened.borrow().iter().map(|(path, _)| path.clone()).collect();
    outcome.files = files.len() as u64;
    outcome.bytes = watch.furthest.borrow().values().map(|furthest| furthest.get()).sum();
    Ok(outcome)
}

/// A check that is under way.
pub(super) struct Run<'a> {
    plan: &'a Plan,
    watch: &'a Watch<'a>,
}

/// Watches over all files that are read.
pub(super) struct Watch<'a> {
    /// Bytes that were read, those of a file that is read twice counted twice.
    read: &'a AtomicU64,
    /// The furthest byte that was read of each file.
    furthest: RefCell<BTreeMap<PathBuf, Rc<Cell<u64>>>>,
    /// The first error of the system.
    failure: RefCell<Option<CheckError>>,
    /// Files as they were when they were opened.
    opened: RefCell<Vec<(PathBuf, FileStamp)>>,
}

/// Length of a file, and the time of its last change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        Self { length: found.len(), seconds: found.mtime(), nanoseconds: found.mtime_nsec() }
    }
}

impl<'a> Watch<'a> {
    pub(super) fn new(read: &'a AtomicU64) -> Self {
        let (failure, opened) = (RefCell::default(), RefCell::default());
        Self { read, furthest: RefCell::default(), failure, opened }
    }

    /// Opens a file.
    fn open(&'a self, path: &Path) -> Result<Input<'a>, CheckError> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (found, file) = opened.map_err(|error| CheckError::read(path, error))?;
        self.opened.borrow_mut().push((path.to_owned(), FileStamp::of(&found)));
        Ok(self.input(path, Box::new(file)))
    }

    fn stdin(&'a self, path: &Path) -> Input<'a> {
        self.input(path, Box::new(io::stdin()))
    }

    fn input(&'a self, path: &Path, inner: Box<dyn Read>) -> Input<'a> {
        Input {
            inner: BufReader::with_capacity(BUFFER, inner),
            path: path.to_owned(),
            at: Rc::default(),
            furthest: Rc::clone(self.furthest.borrow_mut().entry(path.to_owned()).or_default()),
            watch: self,
        }
    }

    fn check_unchanged(&self) -> Result<(), CheckError> {
        for (path, before) in self.opened.borrow().iter() {
            let is_same = fs::metadata(path).is_ok_and(|found| FileStamp::of(&found) == *before);
            if !is_same {
                return Err(CheckError::Changed { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Turns an error into damage of this file, unless the check has to end.
    fn settle<T>(
        &self,
        outcome: &mut Outcome,
        file: &str,
        at: Option<u64>,
        result: io::Result<T>,
    ) -> Result<Option<T>, CheckError> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        self.check_readable()?;
        if let Some(TooNew(version)) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Err(CheckError::TooNew { path: file.into(), version: version.clone() });
        }
        outcome.damage(file, at, text(&error));
        Ok(None)
    }

    /// An error if the check has to end.
    fn check_readable(&self) -> Result<(), CheckError> {
        self.failure.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// Damage in words.
fn text(error: &io::Error) -> String {
    let text = error.to_string();
    // A tar file whose last member is cut off has an error of its own (tar's archive.rs: `skip`).
    if error.kind() == io::ErrorKind::UnexpectedEof || text == "unexpected EOF during skip" {
        return "it ends in the middle: it is cut off".to_owned();
    }
    text
}

/// A file that is read once, from its start.
struct Input<'a> {
    inner: BufReader<Box<dyn Read>>,
    path: PathBuf,
    at: Rc<Cell<u64>>,
    furthest: Rc<Cell<u64>>,
    watch: &'a Watch<'a>,
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.inner.buffer().is_empty() {
            return Ok(self.inner.buffer());
        }
        loop {
            match self.inner.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.watch.failure.borrow_mut().get_or_insert(CheckError::read(&self.path, error));
                    return Err(io::Error::other("unreadable"));
                }
            }
        }
        Ok(self.inner.buffer())
    }

    fn consume(&mut self, bytes: usize) {
        self.inner.consume(bytes);
        self.at.set(self.at.get() + bytes as u64);
        self.furthest.set(self.furthest.get().max(self.at.get()));
        self.watch.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let read = available.len().min(buffer.len());
        buffer[..read].copy_from_slice(&available[..read]);
        self.consume(read);
        Ok(read)
    }
}

/// The content of a file, without its compression.
struct Stream<'a> {
    content: BufReader<Frames<Chain<Cursor<Vec<u8>>, Input<'a>>>>,
    method: Method,
    /// Whether the compression has a checksum of everything so far.
    covered: Rc<Cell<bool>>,
    /// Bytes of the file that were read.
    at: Rc<Cell<u64>>,
    is_empty: bool,
}

impl<'a> Stream<'a> {
    /// Finds the compression by the first bytes.
    fn new(mut input: Input<'a>) -> io::Result<Self> {
        let at = Rc::clone(&input.at);
        let mut head = Vec::new();
        input.by_ref().take(MAGIC).read_to_end(&mut head)?;
        let method = Method::of(&head);
        let is_empty = head.is_empty();
        let frames = Frames::new(method, Cursor::new(head).chain(input));
        let covered = frames.covered();
        Ok(Self { content: BufReader::with_capacity(BUFFER, frames), method, covered, at, is_empty })
    }

    /// The same, for a file that must have this compression.
    fn of(mut input: Input<'a>, method: Method) -> io::Result<Self> {
        let at = Rc::clone(&input.at);
        let is_empty = input.fill_buf()?.is_empty();
        let frames = Frames::new(method, Cursor::new(Vec::new()).chain(input));
        let covered = frames.covered();
        Ok(Self { content: BufReader::with_capacity(BUFFER, frames), method, covered, at, is_empty })
    }
}

/// Reads to the end.
fn drain(input: &mut (impl Read + ?Sized)) -> io::Result<u64> {
    let mut piece = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match input.read(&mut piece)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}
