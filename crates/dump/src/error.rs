//! Why a dump cannot be read or changed.

use failure::{Class, Classified};
use std::{fmt, io};

use sql::Unterminated;

/// Why a dump cannot be read or changed. Tables are named as SQL writes them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The input failed.
    #[error("cannot read the dump: {0}")]
    Read(#[source] io::Error),
    /// The output failed.
    #[error("cannot write the dump: {0}")]
    Write(#[source] io::Error),
    /// The dump ends within a construct: it is cut off, or it is not SQL.
    #[error(
        "the dump ends inside {within}, which began at or after line {line}: it is truncated, or not SQL. Make it again"
    )]
    EndsWithin {
        /// The construct that is not closed.
        within: Within,
        /// Line of the piece in which it ends.
        line: u64,
    },
    /// A statement does not end within a gigabyte.
    #[error(
        "line {line}: a statement of more than 1 GiB, which PostgreSQL cannot read: check that the file is SQL; if it is, \
         make the dump without --inserts"
    )]
    TooLong {
        /// First line of the statement.
        line: u64,
    },
    /// A backslash within a statement, which psql would take for a command.
    #[error("line {line} has a backslash inside a statement, which psql would run as a command: remove it")]
    MetaWithinStatement {
        /// Line of the backslash.
        line: u64,
    },
    /// `\copy … from stdin`, whose data only psql reads.
    #[error("line {line}: \\copy works only in psql: write COPY … FROM stdin")]
    DataOfCommand {
        /// Line of the command.
        line: u64,
    },
    /// COPY's data would begin in the middle of a line.
    #[error("line {line} has more text after COPY … FROM stdin; begin a new line there")]
    AfterCopy {
        /// Line of the COPY.
        line: u64,
    },
    /// A second pass found something else than the first.
    #[error("the file changed while pgrig read it: repeat the command when nothing writes to it")]
    Changed,
    /// Not a valid name of a table.
    #[error("\"{0}\" is not a table name: write [schema.]table, with double quotes where SQL needs them")]
    Name(String),
    /// A table to leave logged that the dump does not create.
    #[error(
        "--exclude-table {0}: the dump does not create a logged table of that name: check the name, or give SCHEMA.TABLE"
    )]
    NoSuchTable(String),
    /// A table that must stay logged was found in one pass, after it had been made unlogged.
    #[error(
        "pgrig has already made table {table} unlogged, but {why}: give the dump as a file, which pgrig can read twice, or \
         leave the table logged: --exclude-table '{table}'"
    )]
    TooLate {
        /// The table that had to stay as it was.
        table: String,
        /// The reason for which it had to stay logged.
        why: String,
    },
}

/// The construct in which the text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// A comment from `/*`.
    Comment,
    /// A string in single quotes.
    Literal,
    /// A name in double quotes.
    QuotedName,
    /// A string in dollar quotes.
    DollarQuotes,
    /// Parentheses that are not closed.
    Parentheses,
    /// A function's body from BEGIN ATOMIC.
    Body,
    /// The lines after COPY … FROM stdin, without `\.`.
    CopyData,
    /// A statement or line that more text could still change; never at the end of all text.
    Token,
}

impl From<Unterminated> for Within {
    fn from(unterminated: Unterminated) -> Self {
        match unterminated {
            Unterminated::Comment => Self::Comment,
            Unterminated::Literal => Self::Literal,
            Unterminated::QuotedName => Self::QuotedName,
            Unterminated::DollarQuotes => Self::DollarQuotes,
            Unterminated::Token => Self::Token,
        }
    }
}

impl Classified for DumpError {
    fn class(&self) -> Class {
        match self {
            // The dump is the user's: if it is wrong, another one is the remedy.
            Self::Name(_)
            | Self::NoSuchTable(_)
            | Self::TooLate { .. }
            | Self::EndsWithin { .. }
            | Self::TooLong { .. }
            | Self::MetaWithinStatement { .. }
            | Self::DataOfCommand { .. }
            | Self::AfterCopy { .. } => Class::Request,
            // Damaged data of a compressed dump.
            Self::Read(error) if error.kind() == io::ErrorKind::InvalidData => Class::Request,
            Self::Read(_) | Self::Write(_) | Self::Changed => Class::Machine,
        }
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comment => "a comment",
            Self::Literal => "a string",
            Self::QuotedName => "a quoted name",
            Self::DollarQuotes => "a dollar-quoted string",
            Self::Parentheses => "parentheses",
            Self::Body => "a function's body",
            Self::CopyData => "COPY data",
            Self::Token => "a statement",
        })
    }
}
