//! Destination of SQL: standard output or a file, plain or compressed.

use failure::{Class, Classified};
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::source::Form;

/// Size of the buffer, bytes; larger writes bypass it.
const BUFFER: usize = 256 << 10;
/// zstd's default level, and then gzip's.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: flate2::Compression = flate2::Compression::new(6);

/// Compression of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

impl Compression {
    /// The compression of a file's name: `.gz`, `.zst`, `.sql`.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            "sql" => Some(Self::None),
            _ => None,
        }
    }

    /// The compression for the same form as an input file.
    pub fn of_form(form: Form) -> Self {
        match form {
            Form::Plain | Form::Archive => Self::None,
            Form::Gzip => Self::Gzip,
            Form::Zstd => Self::Zstd,
        }
    }
}

/// Why nothing can be written there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// An error of the file system.
    #[error("cannot write {path}: {error}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        error: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Stdout(#[source] io::Error),
    /// A terminal, which does not get compressed output.
    #[error("compressed output does not go to a terminal: use -o FILE, > FILE or --compress none")]
    Terminal,
}

impl Classified for SinkError {
    fn class(&self) -> Class {
        match self {
            Self::Io { .. } | Self::Stdout(_) => Class::Machine,
            Self::Terminal => Class::Request,
        }
    }
}

/// Takes SQL. A file appears under its name only when it is complete.
pub struct Sink {
    encoder: Encoder,
    /// The file to rename at the end, and its final name.
    file: Option<(NamedTempFile, PathBuf)>,
}

enum Encoder {
    None(BufWriter<File>),
    /// Not dropped, because dropping the encoder would write its end, and an incomplete file would
    /// look complete.
    Gzip(ManuallyDrop<flate2::write::GzEncoder<BufWriter<File>>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Sink {
    /// Standard output.
    ///
    /// # Errors
    /// If it is a terminal, and compressed bytes would go there.
    pub fn stdout(compression: Compression) -> Result<Self, SinkError> {
        let stdout = io::stdout();
        if compression != Compression::None && stdout.is_terminal() {
            return Err(SinkError::Terminal);
        }
        // Without the buffer that std puts before it.
        let file = stdout.as_fd().try_clone_to_owned().map(File::from);
        let encoder = file.and_then(|file| Encoder::new(file, compression)).map_err(SinkError::Stdout)?;
        Ok(Self { encoder, file: None })
    }

    /// A file, which replaces one of that name when it is finished.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn file(path: &Path, compression: Compression) -> Result<Self, SinkError> {
        Self::open(path, compression).map_err(|error| SinkError::Io { path: path.to_owned(), error })
    }

    fn open(path: &Path, compression: Compression) -> io::Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            // A pipe or device, which nothing can replace.
            let encoder = Encoder::new(File::options().write(true).open(&path)?, compression)?;
            return Ok(Self { encoder, file: None });
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut prefix = name.to_owned();
        prefix.push(".");
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            // Without the bits of the umask.
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(directory.unwrap_or(Path::new(".")))?;
        // The file gets the permissions of the file that it replaces.
        if let Ok(replaced) = fs::metadata(&path) {
            file.as_file().set_permissions(replaced.permissions())?;
        }
        let encoder = Encoder::new(file.as_file().try_clone()?, compression)?;
        Ok(Self { encoder, file: Some((file, path)) })
    }

    /// The file under its temporary name; none if the output is not a new file.
    pub fn unfinished(&self) -> Option<&Path> {
        self.file.as_ref().map(|(file, _)| file.path())
    }

    /// Finishes the output, and renames the file to its final name.
    ///
    /// # Errors
    /// If that fails; there is no file then.
    pub fn finish(self) -> io::Result<()> {
        let mut output = match self.encoder {
            Encoder::None(output) => output,
            Encoder::Gzip(encoder) => ManuallyDrop::into_inner(encoder).finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        output.flush()?;
        match self.file {
            Some((file, path)) => file.persist(path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}

impl Encoder {
    fn new(file: File, compression: Compression) -> io::Result<Self> {
        let output = BufWriter::with_capacity(BUFFER, file);
        Ok(match compression {
            Compression::None => Self::None(output),
            Compression::Gzip => {
                Self::Gzip(ManuallyDrop::new(flate2::write::GzEncoder::new(output, GZIP_LEVEL)))
            }
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(output, ZSTD_LEVEL)?),
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::None(output) => output.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
        }
    }

    /// Writes out the buffer. Compressed bytes are flushed only at the end, where they are
    /// smallest.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::None(output) => output.flush(),
            Encoder::Gzip(_) | Encoder::Zstd(_) => Ok(()),
        }
    }
}
