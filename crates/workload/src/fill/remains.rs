//! What a fill that did not finish has left behind.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::request::{InitStep, Persistence};

/// How far the fill has come, as its own commits tell: true even when the server is gone.
#[derive(Debug)]
pub(super) struct Progress {
    step: Mutex<InitStep>,
    dropped: AtomicBool,
    tables_committed: AtomicBool,
    rows_committed: AtomicU64,
}

/// What is there after a fill that did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Nothing of it was committed.
    Nothing {
        /// Whether the tables that it was to replace are gone already.
        dropped: bool,
    },
    /// The tables are there, with so many accounts.
    Tables {
        /// Their schema.
        schema: String,
        /// Rows of pgbench_accounts in committed chunks.
        rows: u64,
        /// Whether that is all of them.
        complete: bool,
        /// Unlogged tables are emptied if the server crashed.
        persistence: Persistence,
    },
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            step: Mutex::new(InitStep::Drop),
            dropped: false.into(),
            tables_committed: false.into(),
            rows_committed: AtomicU64::new(0),
        }
    }

    pub(super) fn enter(&self, step: InitStep) {
        *self.step.lock().expect("nobody panics holding this") = step;
    }

    pub(super) fn step(&self) -> InitStep {
        *self.step.lock().expect("nobody panics holding this")
    }

    pub(super) fn commit_drop(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    pub(super) fn commit_tables(&self) {
        self.tables_committed.store(true, Ordering::SeqCst);
    }

    pub(super) fn commit_rows(&self, rows: u64) {
        self.rows_committed.fetch_add(rows, Ordering::SeqCst);
    }

    pub(super) fn remains(&self, schema: &str, accounts: u64, persistence: Persistence) -> Remains {
        if !self.tables_committed.load(Ordering::SeqCst) {
            return Remains::Nothing { dropped: self.dropped.load(Ordering::SeqCst) };
        }
        let rows = self.rows_committed.load(Ordering::SeqCst);
        Remains::Tables { schema: schema.to_owned(), rows, complete: rows == accounts, persistence }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { dropped } => {
                write!(f, "Nothing is left behind: none of it was committed.")?;
                if *dropped { write!(f, " The tables it was to replace are dropped.") } else { Ok(()) }
            }
            Self::Tables { schema, rows, complete, persistence } => {
                let all = if *complete { "all " } else { "" };
                write!(
                    f,
                    "What is there: pgbench's tables in schema {schema}, {all}{rows} accounts committed; \
                     later steps are not done. The same command with --drop starts over."
                )?;
                if *persistence == Persistence::Unlogged {
                    write!(f, " If the server crashed, its recovery empties these unlogged tables.")?;
                }
                Ok(())
            }
        }
    }
}
