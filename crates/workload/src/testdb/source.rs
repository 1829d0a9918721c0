//! Where SQL comes from: a file, plain or compressed, or an archive that pg_restore reads.

use std::io::{self, Read};
use std::path::PathBuf;

/// A file or standard input: plain SQL, gzip or zstd of it, or an archive of pg_dump's.
#[derive(Debug)]
pub struct Source {
    path: Option<PathBuf>,
}

impl Source {
    /// A file, or the directory of an archive in directory format.
    ///
    /// # Errors
    /// If it is not there.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        Ok(Self { path: Some(path.into()) })
    }

    /// Standard input.
    pub fn stdin() -> Self {
        Self { path: None }
    }

    /// The SQL. May be called again if [`Source::can_be_read_again`].
    ///
    /// # Errors
    /// If it cannot be opened, or is nothing that can be read.
    pub fn open(&self) -> Result<Box<dyn Read + Send>, SourceError> {
        todo!()
    }

    /// Whether it is a file: a pipe can be read only once.
    pub fn can_be_read_again(&self) -> bool {
        todo!()
    }

    /// SHA-256 of the file's bytes, hexadecimal; of a directory: of its files' names and bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn hash(&self) -> Result<String, SourceError> {
        todo!()
    }
}

/// Why SQL cannot be had from a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file system says no.
    #[error("cannot read {what}: {error}")]
    Io {
        /// Which file.
        what: String,
        /// Why.
        error: io::Error,
    },
}
