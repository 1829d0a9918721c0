//! Why tables were not made unlogged, or logged again.

use connect::ConnectError;
use failure::{Class, Classified};
use server::SurveyError;
use server::quote::{identifier, shell_word};

/// Most tables that an error names one by one.
const MOST_NAMED: usize = 10;

const TOO_MANY_LOCKS: &str = "the server has no room for the locks of one transaction on so many tables; nothing \
                              was changed: raise max_locks_per_transaction (and restart the server)";

/// A publication that tables are in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Publication {
    /// Name of the publication.
    pub name: String,
    /// `FOR ALL TABLES`: no table can be taken out of it.
    pub(crate) is_of_all: bool,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UnlogError {
    /// There is no such schema.
    #[error(
        "there is no schema \"{schema}\" in this database: check the name; names are as in pg_namespace, not folded to lower case"
    )]
    NoSchema {
        /// The name that the user gave.
        schema: String,
    },
    /// A table to keep does not exist.
    #[error(
        "--exclude-table {name}: there is no such table or sequence: give SCHEMA.TABLE, quoted as in SQL if it is not \
         all lower case"
    )]
    NoTable {
        /// The name that the user gave.
        name: String,
    },
    /// The server takes no changes.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// A table belongs to another role.
    #[error("{}, or give --exclude-table {}", not_owner(.object, .owner), shell_word(.object))]
    NotOwner {
        /// The table or sequence, qualified.
        object: String,
        /// The role that owns the object.
        owner: String,
    },
    /// Tables would leave a publication.
    #[error("{}, or {}", published(.tables, .publications), unpublished(.tables, .publications))]
    Published {
        /// The tables, qualified.
        tables: Vec<String>,
        /// Publications of the tables.
        publications: Vec<Publication>,
    },
    /// A logged table would reference an unlogged one.
    #[error(
        "{referencing} references {referenced}, and {outside} is not in --schema: a logged table may not \
         reference an unlogged one, so include both (--schema) or neither (--exclude-table {})",
        shell_word(.selected)
    )]
    Outside {
        /// The table with the foreign key, qualified.
        referencing: String,
        /// The table that it references, qualified.
        referenced: String,
        /// The one of the two that was not selected.
        outside: String,
        /// The other one.
        selected: String,
    },
    /// Triggers of a foreign key that must be dropped and added again are disabled, and would come back enabled.
    #[error("{}, or give --exclude-table {}", disabled_triggers(.constraint, .table), shell_word(.table))]
    DisabledTriggers {
        /// Name of the foreign key.
        constraint: String,
        /// Its table, qualified.
        table: String,
    },
    /// Another session holds a lock.
    #[error(
        "{holder} locks {what}. pgrig changed nothing. Wait until the lock is released, run {ending}, or give a longer \
         --lock-timeout"
    )]
    Locked {
        /// The table that could not be locked, qualified, or `a table`.
        what: String,
        /// The holder, as a phrase.
        holder: String,
        /// The statement that ends the holder.
        ending: String,
    },
    /// The transaction needs more locks than the server has.
    #[error("{TOO_MANY_LOCKS}, or change one schema at a time (--schema): {error}")]
    TooManyLocks {
        /// The server's words.
        error: ConnectError,
    },
    /// A statement failed.
    #[error("{error}; the transaction was rolled back, and nothing was changed. The statement: {statement}")]
    Statement {
        /// The statement that failed.
        statement: String,
        /// The server's words.
        error: ConnectError,
    },
    /// The user interrupted it, and the server did not tell whether the transaction was rolled
    /// back.
    #[error(
        "interrupted while the server did not answer: the server rolls the transaction back, unless it was \
         already committing"
    )]
    Silent,
    /// The user ended it.
    #[error("interrupted: rolled back, nothing was changed")]
    Interrupted,
    /// The connection was lost while the server committed.
    #[error(
        "{error}; pgrig does not know whether the server committed the transaction: repeat the command, which completes \
         the work or reports that nothing is left to do"
    )]
    InDoubt {
        /// The error by which the connection was lost.
        error: ConnectError,
    },
    /// A query failed, or there is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Classified for UnlogError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::NoSchema { .. }
            | Self::NoTable { .. }
            | Self::NotOwner { .. }
            | Self::Published { .. }
            | Self::Outside { .. }
            | Self::DisabledTriggers { .. } => Class::Request,
            Self::Locked { .. }
            | Self::TooManyLocks { .. }
            | Self::Statement { .. }
            | Self::Silent
            | Self::InDoubt { .. } => Class::Machine,
            Self::Interrupted => Class::Interrupted,
        }
    }
}

fn not_owner(object: &str, owner: &str) -> String {
    format!("{object} belongs to role {owner}: connect as that role or as a superuser")
}

fn disabled_triggers(constraint: &str, table: &str) -> String {
    format!(
        "foreign key {constraint} of {table} is part of a cycle, so pgrig must drop it and add it again. That would enable \
         its triggers, which are disabled: run ALTER TABLE {table} ENABLE TRIGGER ALL first"
    )
}

fn published(tables: &[String], publications: &[Publication]) -> String {
    let (these, are) = if tables.len() == 1 { ("table", "is") } else { ("tables", "are") };
    let more = match tables.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = tables[..tables.len().min(MOST_NAMED)].join(", ");
    let by: Vec<String> = publications
        .iter()
        .map(|by| format!("{}{}", by.name, if by.is_of_all { " (FOR ALL TABLES)" } else { "" }))
        .collect();
    let drop: Vec<String> = publications.iter().map(|by| identifier(&by.name)).collect();
    format!(
        "{these} {named}{more} {are} published by publication {}, and unlogged tables are not replicated: if this is a \
         database for tests, DROP PUBLICATION {}",
        by.join(", "),
        drop.join(", ")
    )
}

/// A further remedy.
fn unpublished(tables: &[String], publications: &[Publication]) -> String {
    if publications.iter().any(|publication| publication.is_of_all) {
        return "unlog a dump made with pg_dump --no-publications (pgrig testdb unlog FILE); --exclude-table does not help, \
                because FOR ALL TABLES includes every table"
            .to_owned();
    }
    if tables.len() > MOST_NAMED {
        return "give --exclude-table TABLE for each of them".to_owned();
    }
    let keep: Vec<String> =
        tables.iter().map(|table| format!("--exclude-table {}", shell_word(table))).collect();
    format!("give {}", keep.join(" "))
}

impl UnlogError {
    /// The problem of the database, or of this role's rights in it, with the remedy, without options of `testdb
    /// unlog`. None if the error is not about the database.
    pub(crate) fn hindrance(&self) -> Option<String> {
        match self {
            Self::NotOwner { object, owner } => Some(not_owner(object, owner)),
            Self::Published { tables, publications } => Some(published(tables, publications)),
            Self::DisabledTriggers { constraint, table } => Some(disabled_triggers(constraint, table)),
            Self::TooManyLocks { error } => Some(format!("{TOO_MANY_LOCKS} ({error})")),
            Self::Statement { .. } => Some(self.to_string()),
            _ => None,
        }
    }
}
