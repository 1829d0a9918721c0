//! The remains of a fill that did not finish.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::plan::Plan;
use crate::request::InitStep;

/// Progress of the fill according to its own commits. It is known even if the server is gone.
#[derive(Debug)]
pub(super) struct Progress {
    step: Mutex<InitStep>,
    dropped: AtomicBool,
    tables_committed: AtomicBool,
    rows_committed: AtomicU64,
}

/// The state of the tables after a fill that did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Nothing of it was committed.
    Nothing {
        /// The state of the tables that the fill was to replace.
        replaced: Replaced,
    },
    /// The tables are there, with so many rows.
    Tables {
        /// The bulk table, with its schema.
        table: String,
        /// Its rows in committed chunks.
        rows: u64,
        /// Whether these are all rows.
        complete: bool,
        /// Whether the same command completes the fill.
        resumable: bool,
        /// Whether it fails again as long as the cause is there: a row or a trigger is at fault.
        is_stuck: bool,
        /// The way to start over.
        start_over: StartOver,
        /// Whether some tables are unlogged: a crash of the server has emptied those.
        unlogged: bool,
        /// Whether the tables had rows before the fill.
        append: bool,
    },
}

/// The way to start over instead of completing a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartOver {
    /// --no-resume is enough: pgrig's own tables are replaced, others get more rows.
    Replace,
    /// The user's table was there before, and pgrig does not empty it.
    Empty,
    /// The user's SQL has created the table.
    Drop,
    /// The table is one of several: the error of the schema fill names the way.
    WithOthers,
}

/// The state of the tables that --drop names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// There were none.
    None,
    /// They are still there.
    Kept,
    /// They are gone: they were dropped first, in a transaction of their own.
    Dropped,
}

impl Progress {
    pub(super) fn new(plan: &Plan) -> Self {
        let there = plan.is_created() || !plan.includes(InitStep::Create);
        Self {
            step: Mutex::new(InitStep::Drop),
            dropped: false.into(),
            tables_committed: there.into(),
            rows_committed: plan.rows_done().into(),
        }
    }

    /// Rows in committed chunks, those of an interrupted run included.
    pub(super) fn rows(&self) -> u64 {
        self.rows_committed.load(Ordering::SeqCst)
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

    pub(super) fn remains(&self, plan: &Plan, unlogged: bool) -> Remains {
        if !self.tables_committed.load(Ordering::SeqCst) {
            let replaced = match self.dropped.load(Ordering::SeqCst) {
                _ if plan.dropped.is_empty() => Replaced::None,
                true => Replaced::Dropped,
                false => Replaced::Kept,
            };
            return Remains::Nothing { replaced };
        }
        let rows = self.rows();
        Remains::Tables {
            table: format!("{}.{}", plan.schema, plan.tables.bulk.name),
            rows,
            complete: plan.rows() == Some(rows),
            resumable: plan.has_ledger(),
            is_stuck: false,
            start_over: match plan.is_own_table() {
                true if plan.includes(InitStep::Create) => StartOver::Drop,
                true => StartOver::Empty,
                false => StartOver::Replace,
            },
            unlogged,
            append: plan.append,
        }
    }
}

impl StartOver {
    /// The way to start over a fill of several tables, as the end of a sentence.
    pub(crate) fn of_all(self) -> &'static str {
        match self {
            Self::Drop => ". To start over, drop everything that this fill has created, and give --no-resume",
            Self::Empty => ". To start over, run TRUNCATE on the tables, and give --no-resume",
            Self::Replace | Self::WithOthers => "",
        }
    }
}

impl Remains {
    /// Marks the remains as those of a fill that fails again as long as the cause is there.
    pub(crate) fn stuck(mut self) -> Self {
        if let Self::Tables { is_stuck, .. } = &mut self {
            *is_stuck = true;
        }
        self
    }

    /// Marks the remains as those of a table among others.
    pub(crate) fn with_others(&mut self) {
        if let Self::Tables { start_over, .. } = self {
            *start_over = StartOver::WithOthers;
        }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { replaced } => {
                write!(f, "Nothing was committed, so there is no new table.")?;
                match replaced {
                    Replaced::None => Ok(()),
                    Replaced::Kept => write!(f, " The old tables are unchanged."),
                    Replaced::Dropped => write!(f, " pgrig has dropped the old tables, as --drop says."),
                }
            }
            Self::Tables { table, rows, complete, resumable, is_stuck, start_over, unlogged, append } => {
                let again = if *is_stuck {
                    "To complete the fill, remove the cause and repeat the command"
                } else {
                    "To complete the fill, repeat the command"
                };
                let all = if *complete { "all " } else { "" };
                if *rows == 1 {
                    write!(f, "State: {table} has 1 new row, which is committed;")?;
                } else {
                    write!(f, "State: {table} has {all}{rows} new rows, which are committed;")?;
                }
                write!(f, " pgrig did not run the later steps.")?;
                if *resumable {
                    match start_over {
                        StartOver::Replace => write!(
                            f,
                            " {again}. To start over, give --no-resume{}.",
                            if *append { "" } else { " --drop" }
                        )?,
                        StartOver::Empty => write!(
                            f,
                            " {again}. To start over, run TRUNCATE {table} and give --no-resume; to add \
                             to the rows, give --no-resume --append."
                        )?,
                        StartOver::Drop => {
                            write!(f, " {again}. To start over, drop {table} and give --no-resume.")?;
                        }
                        StartOver::WithOthers => {}
                    }
                }
                if !*unlogged {
                    return Ok(());
                }
                write!(f, " If the server crashed, its recovery empties these unlogged tables.")?;
                match (*resumable, *append) {
                    (false, _) => Ok(()),
                    (true, false) => write!(f, " To fill them again, repeat the command."),
                    (true, true) => write!(
                        f,
                        " The rows from before this fill are then lost too; the repeated command reports that."
                    ),
                }
            }
        }
    }
}
