//! Errors of checks.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use failure::{Class, Classified};

use super::request::STDIN;

/// The reason why a backup cannot be checked. Damage is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}", path = named(.path), why = why(.error))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Neither a file nor a directory.
    #[error("{path} is {what}, which can be read only once: give its content as standard input (pgrig backup check - < FILE)", path = .path.display())]
    Special {
        /// The file.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// Standard input is a terminal.
    #[error("standard input is a terminal: give a backup (pgrig backup check - < FILE)")]
    Terminal,
    /// A file of another kind.
    #[error(
        "{path} is not a backup that pgrig knows. pgrig reads dumps of pg_dump and pg_dumpall, and base backups of pg_basebackup, also if \
         gzip, zstd or lz4 has compressed them. If another program has compressed or encrypted the file, undo that first, for example: xz -dc \
         FILE | pgrig backup check -", path = named(.path)
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A tar file of something else.
    #[error(
        "{path} is a tar file, but not one of pg_dump or pg_basebackup: unpack it, and give the directory of the backup in it", path = named(.path)
    )]
    OtherTar {
        /// The file.
        path: PathBuf,
    },
    /// A tar file of a base backup in a form that another program has made.
    #[error(
        "{path} is compressed or encrypted with a program that pgrig does not know: undo that in this directory, for example with xz -d, and check the \
         directory again", path = .path.display()
    )]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// A directory of something else.
    #[error(
        "{path} is not a directory of a backup: it has neither toc.dat (pg_dump), nor backup_manifest, base.tar or PG_VERSION (pg_basebackup); \
         check the path", path = .path.display()
    )]
    OtherDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A data directory in use.
    #[error(
        "{path} is the data directory of a server (it has postmaster.pid), not a backup: make a backup of it (pg_basebackup -D DIR), and check that backup", path = .path.display()
    )]
    DataDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A part of a backup in a directory.
    #[error("{path} is a part of a backup: give the directory that contains all of its files", path = .path.display())]
    Part {
        /// The file.
        path: PathBuf,
    },
    /// A base backup from standard input.
    #[error(
        "standard input is a base backup as a tar file, which pgrig reads more than once: store it in a file, not compressed or compressed with gzip, zstd or lz4 \
         (xz -dc FILE > base.tar), and give the path of that; or the directory of all files, if there are several"
    )]
    Streamed,
    /// An archive or a manifest of a later version.
    #[error("{path} has format version {version}, which this pgrig does not know: update pgrig", path = named(.path))]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Version of the format.
        version: String,
    },
    /// `--wal-directory` without a base backup.
    #[error("{path} is a dump, which needs no WAL: leave out --wal-directory", path = named(.path))]
    NeedsNoWal {
        /// The file.
        path: PathBuf,
    },
    /// Something writes to the backup.
    #[error("{path} was changed while pgrig read it: check the backup again once it is complete", path = .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// The backup, as a message names it.
fn named(path: &Path) -> Cow<'_, str> {
    if path.as_os_str() == STDIN { Cow::Borrowed("standard input") } else { path.to_string_lossy() }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist; check the path".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("{error}; run pgrig as a user that may read it, for example the owner of the backup")
        }
        _ => error.to_string(),
    }
}

impl CheckError {
    pub(super) fn read(path: &Path, error: io::Error) -> Self {
        Self::Read { path: path.to_owned(), error }
    }
}

impl Classified for CheckError {
    fn class(&self) -> Class {
        match self {
            Self::Read { error, .. } => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
                    Class::Request
                }
                _ if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => Class::Request,
                _ => Class::Machine,
            },
            Self::Special { .. }
            | Self::Terminal
            | Self::Unknown { .. }
            | Self::OtherTar { .. }
            | Self::Packed { .. }
            | Self::OtherDirectory { .. }
            | Self::DataDirectory { .. }
            | Self::Part { .. }
            | Self::Streamed
            | Self::TooNew { .. }
            | Self::NeedsNoWal { .. }
            | Self::Changed { .. } => Class::Request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_has_its_name() {
        let of = |path: &str| CheckError::Unknown { path: path.into() }.to_string();
        assert!(of("-").starts_with("standard input is not a backup that pgrig knows"), "{}", of("-"));
        assert!(of("./-").starts_with("./- is not a backup"), "{}", of("./-"));
    }
}
