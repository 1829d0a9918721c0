//! Why tables were not made unlogged, or logged again.

use crate::connect::ConnectError;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UnlogError {
    /// There is no such schema.
    #[error(
        "there is no schema \"{schema}\" in this database; names are as in pg_namespace, not folded to lower case"
    )]
    NoSchema {
        /// As given.
        schema: String,
    },
    /// What is to be kept is not there.
    #[error(
        "there is no table or sequence {name} to keep in the search_path: write SCHEMA.TABLE as SQL would, {name:?}"
    )]
    NoTable {
        /// As given.
        name: String,
    },
    /// The server takes no changes.
    #[error("{why}: connect to the primary, as a role that may write there")]
    ReadOnly {
        /// `the server is a standby` or another reason.
        why: &'static str,
    },
    /// A table is somebody else's.
    #[error(
        "{object} belongs to role {owner}: connect as that one or as a superuser, or give --keep {object}"
    )]
    NotOwner {
        /// The table or sequence, qualified.
        object: String,
        /// Its owner.
        owner: String,
    },
    /// A table would leave a publication.
    #[error(
        "table {table} is published by publication {publication}, and unlogged tables are not replicated: drop the \
         publication if this is a database for tests (DROP PUBLICATION), or give --keep {table}"
    )]
    Published {
        /// The table, qualified.
        table: String,
        /// One that it is in.
        publication: String,
    },
    /// A logged table would reference an unlogged one.
    #[error(
        "{referencing} references {referenced} and is outside of --schema: a logged table may not reference an unlogged \
         one, so take both (--schema) or neither (--keep {kept})"
    )]
    Outside {
        /// The table with the foreign key, qualified.
        referencing: String,
        /// The table that it references, qualified.
        referenced: String,
        /// Which of them was selected.
        kept: String,
    },
    /// Triggers of a foreign key that must be dropped and added again are disabled, and would come back enabled.
    #[error(
        "foreign key {constraint} of {table} is one of a circle and must be dropped and added again, but its triggers are \
         disabled (ALTER TABLE … DISABLE TRIGGER), and would come back enabled: enable them first, or give --keep {table}"
    )]
    DisabledTriggers {
        /// The constraint.
        constraint: String,
        /// Its table, qualified.
        table: String,
    },
    /// Somebody else holds a lock.
    #[error(
        "{what} is locked by {holder}: nothing was changed. Wait for its end, end it (SELECT pg_terminate_backend(…)), or \
         wait longer for it (--lock-timeout)"
    )]
    Locked {
        /// The table that could not be locked, qualified, or `a table`.
        what: String,
        /// Who has it, as a phrase.
        holder: String,
    },
    /// The transaction needs more locks than the server has room for.
    #[error(
        "the server has no room for the locks of one transaction on so many tables; nothing was changed: raise \
         max_locks_per_transaction (and restart it), or go schema by schema (--schema): {error}"
    )]
    TooManyLocks {
        /// The server's words.
        error: ConnectError,
    },
    /// A statement failed.
    #[error("{error}; nothing was changed: all of it is one transaction. The statement: {statement}")]
    Statement {
        /// What failed.
        statement: String,
        /// The server's words.
        error: ConnectError,
    },
    /// The user ended it.
    #[error("interrupted: rolled back, nothing was changed")]
    Interrupted,
    /// The connection was lost while the server committed.
    #[error(
        "{error}; whether the transaction was committed is not known: give the same command again, which does the rest or says that nothing is left to do"
    )]
    InDoubt {
        /// How it was lost.
        error: ConnectError,
    },
    /// A query failed, or there is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl UnlogError {
    /// Whether the request was wrong (exit status 2) rather than the server or the machine (1).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoSchema { .. }
            | Self::NoTable { .. }
            | Self::ReadOnly { .. }
            | Self::NotOwner { .. }
            | Self::Published { .. }
            | Self::Outside { .. }
            | Self::DisabledTriggers { .. } => true,
            Self::Connect(error) => error.is_usage(),
            _ => false,
        }
    }
}
