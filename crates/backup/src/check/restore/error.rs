//! Errors of restores. A backup that cannot be restored is no error.

use std::path::PathBuf;

use failure::{Class, Classified};
use measure::human::counted;

use crate::error::{BackupError, extensions, them};

/// The reason why a backup cannot be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Standard input can be read only once.
    #[error("--restore reads the backup twice: give it as a file or a directory, not as standard input")]
    Stdin,
    /// There is no version in the backup.
    #[error("{path} does not name the version of its server: give --pg-version VERSION", path = .path.display())]
    NoVersion {
        /// The backup.
        path: PathBuf,
    },
    /// A base backup is of one version.
    #[error("{path} is a base backup of PostgreSQL {own}, which only that version can run: leave out --pg-version {asked}", path = .path.display())]
    OtherVersion {
        /// The backup.
        path: PathBuf,
        /// Its version.
        own: u16,
        /// The other one.
        asked: u16,
    },
    /// pgrig has no server of that version.
    #[error(
        "{path} is a backup of PostgreSQL {version}, and pgrig has no server of that version: give the directory of an \
         installed one: --bin DIR", path = .path.display()
    )]
    UnknownVersion {
        /// The backup.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// A restore would write to other places.
    #[error(
        "{path} has tablespaces, which a restore creates at their original places: pgrig does not restore it. Restore it by hand on another \
         machine", path = .path.display()
    )]
    Tablespaces {
        /// The backup.
        path: PathBuf,
    },
    /// The replay of WAL would write to other places.
    #[error(
        "{path} has WAL that creates a tablespace: a restored server would create it again, in the directory of the original. Make another backup \
         while no tablespace is created, or restore this one by hand on another machine", path = .path.display()
    )]
    NewTablespace {
        /// The backup.
        path: PathBuf,
    },
    /// A server on a copy would write to the place to which a link leads.
    #[error(
        "{path} has the link {link}: a server on a copy would change the files behind this link. Unpack the backup, replace the \
         link by a directory or file of its own, and give the directory", path = .path.display()
    )]
    Link {
        /// The backup.
        path: PathBuf,
        /// The link, as the backup names it.
        link: String,
    },
    /// A part of a chain of backups.
    #[error(
        "{path} is an incremental backup, which cannot be restored alone: combine it with the earlier backups into a full backup \
         (pg_combinebackup), and give the full backup", path = .path.display()
    )]
    Incremental {
        /// The backup.
        path: PathBuf,
    },
    /// WAL of which nobody knows how much is needed.
    #[error("{path} has no backup_manifest, so pgrig does not know which WAL to copy: copy it into pg_wal yourself, and leave out --wal-directory", path = .path.display())]
    WalWithoutManifest {
        /// The backup.
        path: PathBuf,
    },
    /// A tar file whose members have another directory before them.
    #[error("in {path}, the files of the backup are in a subdirectory: unpack {path}, and give the directory that contains PG_VERSION", path = .path.display())]
    Nested {
        /// The backup.
        path: PathBuf,
    },
    /// A program that decompresses.
    #[error(
        "the program {program}, which decompresses the backup for the restore, is not installed: install it"
    )]
    NoProgram {
        /// Its name.
        program: &'static str,
    },
    /// The scratch server lacks extensions.
    #[error(
        "the restore needs the {}, and the scratch server (PostgreSQL {version}) does not have {}: give --bin DIR, the directory of the programs \
         of a PostgreSQL that has {}{}", extensions(names), them(names), them(names), also(*others)
    )]
    Extensions {
        /// Their names.
        names: Vec<String>,
        /// Version of the scratch server.
        version: u16,
        /// Further errors.
        others: u64,
    },
    /// The client programs are too old.
    #[error(
        "the programs in {dir} ({version}) are older than the pg_dump that made {path}: install client programs of the newest version, \
         or give their directory: --bin DIR", path = .path.display(), dir = .dir.display()
    )]
    OldPrograms {
        /// The backup.
        path: PathBuf,
        /// Directory of the programs.
        dir: PathBuf,
        /// Their version.
        version: String,
    },
    /// The superuser of a restored server is not known.
    #[error(
        "the restored server has no superuser \"{name}\" that may log in: give the name of one: --superuser NAME"
    )]
    NoSuperuser {
        /// The name that was tried.
        name: String,
    },
    /// A program, a scratch server or the machine.
    #[error(transparent)]
    Backup(#[from] BackupError),
}

impl Classified for RestoreError {
    fn class(&self) -> Class {
        match self {
            Self::Stdin
            | Self::NoVersion { .. }
            | Self::OtherVersion { .. }
            | Self::UnknownVersion { .. }
            | Self::Tablespaces { .. }
            | Self::NewTablespace { .. }
            | Self::Link { .. }
            | Self::Incremental { .. }
            | Self::WalWithoutManifest { .. }
            | Self::Nested { .. }
            | Self::NoProgram { .. }
            | Self::OldPrograms { .. }
            | Self::Extensions { .. }
            | Self::NoSuperuser { .. } => Class::Request,
            Self::Backup(error) => error.class(),
        }
    }

    fn is_explained_by_log(&self) -> bool {
        false
    }
}

/// Further errors that may have the same cause, if there are any.
fn also(others: u64) -> String {
    match others {
        0 => String::new(),
        _ => format!(". This may also be the cause of {}", counted(others, "other error")),
    }
}
