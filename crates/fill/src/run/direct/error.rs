//! Errors of writing pages.

use std::io::{self, ErrorKind};

use connect::ConnectError;
use thiserror::Error;

use super::refusal::NotDirect;

/// An error while pages are written: of the server, of a requirement, or of the file system.
#[derive(Debug, Error)]
pub enum Failure {
    /// The server refused a statement.
    #[error(transparent)]
    Server(#[from] ConnectError),
    /// A requirement is not fulfilled.
    #[error(transparent)]
    NotDirect(#[from] NotDirect),
    /// A file could not be made or written.
    #[error("{path}: {source}{}", remedy(.source))]
    File {
        /// The fork's first file.
        path: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A row that PostgreSQL refuses too.
    #[error(
        "a row needs {longest} bytes even with TOAST, and a page holds {most}: give shorter values with --column"
    )]
    TooLong {
        /// Length of the row, bytes.
        longest: usize,
        /// Length of the longest row that fits, bytes.
        most: usize,
    },
    /// The table would have more than 2^32 - 2 blocks.
    #[error("the table needs more blocks than PostgreSQL allows: give --partitions")]
    TooLarge,
    /// A row violates a constraint of the table.
    #[error(
        "a row of {table} violates {constraints}: {row}. The transaction was rolled back. Describe the columns with \
         --column"
    )]
    Broken {
        /// Name of the table.
        table: String,
        /// Names of CHECKs or of a foreign key.
        constraints: String,
        /// The row as text.
        row: String,
    },
    /// No partition takes a row.
    #[error(
        "no partition of {table} takes the row with the key ({key}). Nothing was written. Add a partition, or describe \
         the key with --column"
    )]
    NoPartition {
        /// Name of the partitioned table.
        table: String,
        /// The row's partition key as text.
        key: String,
    },
    /// Rows of a table have the same key in a unique index.
    #[error(
        "two rows have the same key in the unique index {index}: {row}. The transaction was rolled back. Give one \
         of its columns unique values with --column {}",
        unique(columns)
    )]
    Duplicate {
        /// Qualified and quoted.
        index: String,
        /// The columns of its key, without those of expressions.
        columns: Box<[String]>,
        /// One of them as text.
        row: String,
    },
    /// The server sees another size than pgrig has written.
    #[error(
        "{relation}: the server sees {found} bytes, and pgrig wrote {written}. pgrig rolled the fill back. Report this \
         as a bug; to fill the table now, give --method copy"
    )]
    Unseen {
        /// The relation, and its fork.
        relation: String,
        /// Bytes of the fork that the server sees.
        found: u64,
        /// Bytes that pgrig wrote into it.
        written: u64,
    },
}

impl Failure {
    /// The lack of room, without a remedy; none for other errors.
    pub(crate) fn lack(&self) -> Option<String> {
        match self {
            Self::File { path, source } if is_full(source) => Some(format!("{path}: {source}")),
            _ => None,
        }
    }
}

/// The values of `--column` that make one of these columns unique.
fn unique(columns: &[String]) -> String {
    if columns.is_empty() {
        return "'NAME=unique'".to_owned();
    }
    columns.iter().map(|column| format!("'{column}=unique'")).collect::<Vec<_>>().join(" or ")
}

/// The remedy, where there is one.
fn remedy(error: &io::Error) -> &'static str {
    if is_full(error) { ". Free some space there, or give a smaller SIZE" } else { "" }
}

/// Whether there is no room for the file.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
