//! The request to make tables unlogged, or logged again.

use std::time::Duration;

/// The persistence that tables and sequences get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Logged to unlogged.
    Unlogged,
    /// Unlogged to logged.
    Logged,
}

impl Direction {
    /// The keyword of ALTER TABLE … SET.
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Self::Unlogged => "UNLOGGED",
            Self::Logged => "LOGGED",
        }
    }

    /// pg_class.relpersistence of objects that still have to be changed.
    pub(super) fn from(self) -> char {
        match self {
            Self::Unlogged => 'p',
            Self::Logged => 'u',
        }
    }

    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Unlogged => Self::Logged,
            Self::Logged => Self::Unlogged,
        }
    }

    /// The adjective for a changed table.
    pub fn after(self) -> &'static str {
        match self {
            Self::Unlogged => "unlogged",
            Self::Logged => "logged",
        }
    }
}

/// The tables and sequences of a database to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlogRequest {
    /// The new persistence.
    pub direction: Direction,
    /// Only these schemas; all but the system's if none is named.
    pub schemas: Vec<String>,
    /// Tables and sequences that stay as they are, as SQL would name them: `[schema.]name`. A partitioned table stands
    /// for its partitions.
    pub keep: Vec<String>,
    /// Whether sequences are changed too, if the server can do that (PostgreSQL 15 and later).
    pub sequences: bool,
    /// Time to wait for each lock.
    pub lock_timeout: Duration,
}

impl UnlogRequest {
    /// All tables and sequences of the database, with 10 s for each lock.
    pub fn whole_database(direction: Direction) -> Self {
        Self {
            direction,
            schemas: Vec::new(),
            keep: Vec::new(),
            sequences: true,
            lock_timeout: Duration::from_secs(10),
        }
    }
}
