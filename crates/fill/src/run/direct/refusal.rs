//! Why rows cannot be written as pages.

use thiserror::Error;

/// Why a table's pages cannot be written straight into its files. Each says what would help.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotDirect {
    /// Another machine, or no right to look.
    #[error(
        "the server's data directory cannot be seen from here: run pgrig on the server's machine, as its operating \
         system user or root, and as a superuser or a member of pg_read_all_settings; where the directory has another \
         path here (a container's volume, say) give --data-directory PATH"
    )]
    Unseen,
    /// What the server has just made is not in the directory.
    #[error(
        "{path} is not as the server says: the directory is a copy of its data directory, or a tablespace has another path here. Nothing was written"
    )]
    Copy {
        /// The file.
        path: String,
    },
    /// Its files may not be written.
    #[error(
        "{path} may not be written by this operating system user: run pgrig as the server's own, or as root"
    )]
    ReadOnly {
        /// The data directory.
        path: String,
    },
    /// A format that is not known here.
    #[error(
        "the server's {what} is {found}, pages are written here for {known} only: leave out --method direct"
    )]
    Format {
        /// Which part of the format.
        what: &'static str,
        /// The server's.
        found: String,
        /// Ours.
        known: &'static str,
    },
    /// Texts are stored in an encoding that they are not made in.
    #[error("the database's encoding is {encoding}, and texts are made in UTF8: leave out --method direct")]
    Encoding {
        /// Of the database.
        encoding: String,
    },
    /// Replicas and backups would miss the rows.
    #[error(
        "wal_level is {level}, so that WAL has to have every row of a permanent table: give --unlogged, or set \
         wal_level = minimal and max_wal_senders = 0 (pgrig's own server in its profile bulk has that)"
    )]
    WalLevel {
        /// Of the server.
        level: String,
    },
    /// Another storage engine.
    #[error("the tables' access method is {found}: pages are written for heap only")]
    AccessMethod {
        /// Of the table.
        found: String,
    },
    /// Rows cannot come in one go.
    #[error("rows come {0}, and pages are written a whole table at a time")]
    InChunks(String),
    /// A column cannot be written.
    #[error("{0}")]
    Column(String),
    /// A row is too long.
    #[error(
        "its rows may have {longest} bytes, and above {threshold} PostgreSQL compresses them or moves parts of them out (TOAST)"
    )]
    Toast {
        /// Of a row, bytes.
        longest: u32,
        /// Bytes.
        threshold: u32,
    },
    /// The server itself has to look at each row.
    #[error("{0}, which only the server can see to")]
    Duties(String),
    /// A table that is there cannot be given new files.
    #[error("a table that is there is truncated in the transaction that fills it, and {0}")]
    Truncate(String),
    /// What --ddl makes of it is more than an empty table.
    #[error("{0}")]
    Ddl(String),
    /// Its size follows only from its rows.
    #[error(
        "how many rows a size takes is known only afterwards for this table: give --rows instead of a SIZE"
    )]
    Size,
    /// The relation is not as it should be in the transaction that fills it.
    #[error("{relation} is not what was expected: {problem}. Nothing was written")]
    Relation {
        /// Its name.
        relation: String,
        /// What is wrong.
        problem: String,
    },
}
