//! Source of SQL: a file, plain or compressed, or an archive that pg_restore reads.

use failure::{Class, Classified};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

pub use super::archive::end_pg_restores;
use super::archive::{self, Archive, ArchiveError};

/// Bytes of a compressed file that are read at a time.
const COMPRESSED_BUFFER: usize = 256 << 10;
/// UTF-8's byte order mark, which some editors write first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes at the beginning that are read to recognise the format: tar's magic number is the last
/// one.
const HEAD: usize = 512;
/// The first file of a directory or tar of pg_dump.
const CONTENTS: &str = "toc.dat";

/// A file or standard input: SQL, gzip or zstd of it, or an archive of pg_dump's (custom, tar, directory).
#[derive(Clone, Debug)]
pub struct Source {
    location: Location,
}

#[derive(Clone, Debug)]
enum Location {
    File(PathBuf),
    Directory(PathBuf),
    /// Standard input that is a file, and its position at the beginning.
    StdinFile(u64),
    Pipe,
}

/// SQL that can be read.
pub struct Opened {
    /// The SQL as plain text, decompressed or converted.
    pub sql: Box<dyn Read + Send>,
    /// Format of the file.
    pub form: Form,
    /// Bytes of the file that have been read so far, if they can be counted.
    pub read: Arc<AtomicU64>,
}

/// Format of a file with SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// SQL without compression.
    Plain,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// pg_dump's own, which pg_restore reads.
    Archive,
}

/// Why a source gives no SQL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// An error of the file system, or of damaged data.
    #[error("cannot read {what}: {}", why(error))]
    Io {
        /// Name of the file, as texts show it.
        what: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file has another format.
    #[error("{what} is not a dump: {why}")]
    NotSql {
        /// Name of the file, as texts show it.
        what: String,
        /// The problem, and the remedy.
        why: String,
    },
    /// pg_restore cannot be used.
    #[error("{what} is a pg_dump archive: {error}")]
    Archive {
        /// Name of the file, as texts show it.
        what: String,
        /// Why pg_restore did not read it.
        #[source]
        error: ArchiveError,
    },
    /// Standard input, a pipe or a device can be read only once.
    #[error("{what} can be read only once: give the dump as a file")]
    ReadOnce {
        /// Name of the file, as texts show it.
        what: String,
    },
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist; check the path".to_owned(),
        _ => error.to_string(),
    }
}

impl Classified for SourceError {
    fn class(&self) -> Class {
        match self {
            // Data that cannot be decompressed: the user's own file is damaged, not the machine.
            Self::Io { error, .. }
                if [io::ErrorKind::NotFound, io::ErrorKind::InvalidData].contains(&error.kind()) =>
            {
                Class::Request
            }
            Self::NotSql { .. } | Self::ReadOnce { .. } => Class::Request,
            Self::Io { .. } | Self::Archive { .. } => Class::Machine,
        }
    }
}

impl Source {
    /// A file, or the directory of an archive in directory format.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        let path = path.into();
        let metadata = fs::metadata(&path)
            .map_err(|error| SourceError::Io { what: path.display().to_string(), error })?;
        let location = if metadata.is_dir() { Location::Directory(path) } else { Location::File(path) };
        Ok(Self { location })
    }

    /// Standard input as a source.
    pub fn stdin() -> Self {
        let start = stdin_file().and_then(|mut file| {
            let is_file = file.metadata()?.is_file();
            Ok(if is_file { Some(file.stream_position()?) } else { None })
        });
        Self { location: start.ok().flatten().map_or(Location::Pipe, Location::StdinFile) }
    }

    /// Whether it can be opened more than once; false for a pipe.
    pub fn can_be_read_again(&self) -> bool {
        match &self.location {
            Location::File(path) => path.is_file(),
            Location::Directory(_) | Location::StdinFile(_) => true,
            Location::Pipe => false,
        }
    }

    /// Bytes of the file, if it is one.
    pub fn size(&self) -> Option<u64> {
        match &self.location {
            Location::File(path) => {
                fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len())
            }
            Location::StdinFile(start) => stdin_file().ok()?.metadata().ok()?.len().checked_sub(*start),
            Location::Directory(_) | Location::Pipe => None,
        }
    }

    /// The SQL from its beginning.
    ///
    /// # Errors
    /// If it cannot be opened, or contains no SQL. That pg_restore cannot read an archive shows
    /// only when it is read.
    pub fn open(&self) -> Result<Box<dyn Read + Send>, SourceError> {
        self.open_watched().map(|opened| opened.sql)
    }

    /// As [`Source::open`], with format and progress.
    ///
    /// # Errors
    /// See [`Source::open`].
    pub fn open_watched(&self) -> Result<Opened, SourceError> {
        if let Location::Directory(path) = &self.location {
            if !path.join(CONTENTS).is_file() {
                let why = format!("a directory without {CONTENTS}, so not a pg_dump archive");
                return Err(self.not_sql(why));
            }
            return self.restore(Archive::Named(path.clone()), Arc::default());
        }
        let file = self.open_file().map_err(|error| self.io(error))?;
        let read = Arc::default();
        let counted = Box::new(Counted { input: file, read: Arc::clone(&read) });
        self.unwrap(counted, read, Form::Plain)
    }

    /// SHA-256 of the file's bytes, hexadecimal; of a directory: of its files' names, sizes and bytes.
    ///
    /// # Errors
    /// If it cannot be read, or only once.
    pub fn hash(&self) -> Result<String, SourceError> {
        let mut hash = Sha256::new();
        match &self.location {
            Location::Directory(path) => hash_directory(path, &mut hash),
            Location::File(_) | Location::StdinFile(_) if self.can_be_read_again() => {
                self.open_file().and_then(|file| hash_bytes(file, &mut hash))
            }
            _ => return Err(SourceError::ReadOnce { what: self.to_string() }),
        }
        .map_err(|error| self.io(error))?;
        Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    fn open_file(&self) -> io::Result<File> {
        match &self.location {
            Location::File(path) | Location::Directory(path) => File::open(path),
            Location::StdinFile(start) => {
                let mut file = stdin_file()?;
                file.seek(SeekFrom::Start(*start))?;
                Ok(file)
            }
            Location::Pipe => stdin_file(),
        }
    }

    /// Decompresses the input or passes it to pg_restore; an archive may be within a compressed
    /// file.
    fn unwrap(
        &self,
        mut input: Box<dyn Read + Send>,
        read: Arc<AtomicU64>,
        outer: Form,
    ) -> Result<Opened, SourceError> {
        let mut head = Vec::with_capacity(HEAD);
        input.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(|error| self.io(error))?;
        if head.starts_with(BYTE_ORDER_MARK) {
            // As psql does.
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let form = form(&head).map_err(|why| self.not_sql(why))?;
        let input = Box::new(io::Cursor::new(head).chain(input));
        match (form, outer) {
            (Form::Plain, _) => Ok(Opened { sql: input, form: outer, read }),
            (Form::Archive, Form::Plain) => {
                let archive = match &self.location {
                    Location::File(path) if path.is_file() => Archive::Named(path.clone()),
                    Location::StdinFile(_) => {
                        Archive::Open(self.open_file().map_err(|error| self.io(error))?)
                    }
                    _ => Archive::Streamed(input),
                };
                self.restore(archive, read)
            }
            (Form::Archive, _) => self.restore(Archive::Streamed(input), read),
            (Form::Gzip, Form::Plain) => {
                let input = BufReader::with_capacity(COMPRESSED_BUFFER, input);
                let sql = flate2::bufread::MultiGzDecoder::new(input);
                self.unwrap(Box::new(Decoded { sql, method: "gzip" }), read, form)
            }
            (Form::Zstd, Form::Plain) => {
                let input = BufReader::with_capacity(COMPRESSED_BUFFER, input);
                let sql = zstd::stream::read::Decoder::with_buffer(input).map_err(|error| self.io(error))?;
                self.unwrap(Box::new(Decoded { sql, method: "zstd" }), read, form)
            }
            (Form::Gzip | Form::Zstd, _) => Err(self.not_sql("it is compressed twice".to_owned())),
        }
    }

    fn restore(&self, archive: Archive, read: Arc<AtomicU64>) -> Result<Opened, SourceError> {
        let sql = archive::restore(archive)
            .map_err(|error| SourceError::Archive { what: self.to_string(), error })?;
        Ok(Opened { sql: Box::new(sql), form: Form::Archive, read })
    }

    fn io(&self, error: io::Error) -> SourceError {
        SourceError::Io { what: self.to_string(), error }
    }

    fn not_sql(&self, why: String) -> SourceError {
        SourceError::NotSql { what: self.to_string(), why }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.location {
            Location::File(path) | Location::Directory(path) => path.display().fmt(f),
            Location::StdinFile(_) | Location::Pipe => f.write_str("standard input"),
        }
    }
}

/// The form of a file with this beginning; otherwise the name of a form that pgrig cannot read.
fn form(head: &[u8]) -> Result<Form, String> {
    let unpack = |program: &str| Err(format!("unpack it first: {program} -dk FILE"));
    match head {
        [0x1f, 0x8b, ..] => Ok(Form::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Form::Zstd),
        [b'P', b'G', b'D', b'M', b'P', ..] => Ok(Form::Archive),
        _ if head.get(257..262) == Some(b"ustar") => {
            let is_of_pg_dump = head.starts_with(CONTENTS.as_bytes());
            if is_of_pg_dump {
                Ok(Form::Archive)
            } else {
                Err("a tar file, but not a pg_dump archive".to_owned())
            }
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => unpack("lz4"),
        [b'B', b'Z', b'h', ..] => unpack("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => unpack("xz"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Err("it is in UTF-16, as PowerShell's > writes: use pg_dump --file, or iconv -f UTF-16 -t UTF-8"
                .to_owned())
        }
        _ if head.contains(&0) => Err("it has bytes that are not text".to_owned()),
        _ => Ok(Form::Plain),
    }
}

/// Standard input as a file, without std's buffer.
fn stdin_file() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

fn hash_directory(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    let mut files =
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        let file = File::open(file)?;
        hash.update(file.metadata()?.len().to_le_bytes());
        hash_bytes(file, hash)?;
    }
    Ok(())
}

fn hash_bytes(mut input: impl Read, hash: &mut Sha256) -> io::Result<()> {
    let mut buffer = vec![0; COMPRESSED_BUFFER];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => hash.update(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Adds the format to errors of decoding.
struct Decoded<R> {
    sql: R,
    method: &'static str,
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sql.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Other => {
                let text = format!(
                    "the {} data are damaged or cut off ({error}): make or copy the file again",
                    self.method
                );
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
            _ => error,
        })
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
