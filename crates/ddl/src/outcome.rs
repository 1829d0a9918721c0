//! The result of a measurement.

use std::collections::{BTreeMap, BTreeSet};

use measure::Sample;
use serde::Serialize;

use crate::find::{Class, Lock, LockMode, Work};
use crate::forecast::{Figure, Forecast};
use crate::locale::UnknownLocale;
use crate::objects::Objects;
use crate::parted::Node;
use crate::rowless::{Rowless, UnknownZone, Unmatched};
use crate::run::types::Changed;
use crate::run::unsuited::Unsuited;
use crate::script::Statement;
use crate::thinned::Thinned;
use crate::triggers::Fired;

/// A migration that was measured, as far as it ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// All statements, in order.
    pub statements: Vec<StatementOutcome>,
    /// Bytes of all tables and indexes before the migration, at the largest size.
    pub bytes: u64,
    /// The least `--up-to` with which these tables are filled, bytes: they may come out smaller or larger.
    pub up_to: u64,
    /// Whether these tables have all rows for which the user asked, so that a larger `--up-to` fills no more.
    pub is_whole: bool,
    /// The readers and writers meanwhile, if there were any.
    pub probed: Option<Probed>,
    /// The same with a transaction that was open before the migration.
    pub probed_blocked: Option<Probed>,
    /// Tables that statements used and that had no rows, each with the number of the first such statement.
    pub unfilled: Vec<(String, usize)>,
    /// Better ways that were measured.
    pub alternatives: Vec<Alternative>,
}

/// A better way of a statement, measured in its place.
#[derive(Clone, Debug, Serialize)]
pub struct Alternative {
    /// The number of the statement that it replaces.
    pub number: usize,
    /// Whether that statement shares a transaction: this way needs a migration of its own, without a transaction.
    pub needs_own_migration: bool,
    /// The statements of the better way, measured like those of the migration.
    pub statements: Vec<StatementOutcome>,
}

/// A statement, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct StatementOutcome {
    /// Its number, from 1.
    pub number: usize,
    /// Its text, and where the text stands.
    #[serde(flatten)]
    pub statement: Statement,
    /// Work and locks; none if it did not run, or concerns only the session or the transaction.
    pub found: Option<Effects>,
    /// Why it failed, if it did.
    pub failed: Option<Failed>,
    /// The tables with rows that decide on its cost, `schema.name`.
    pub tables: Vec<String>,
    /// Its cost at each size, ascending; nothing if it did not run.
    pub measured: Vec<AtSize>,
    /// Its disk space at each size at which it was looked at, ascending.
    #[serde(skip)]
    pub(crate) spaces: Vec<SpaceAt>,
    /// Its cost at the size that the user asked for, if that is larger than the largest measured one.
    pub forecast: Option<Forecast>,
    /// Partitions without generated rows on which it works: its time in the original is not measured.
    pub rowless: Vec<Rowless>,
    /// Columns that it changes between timestamp and timestamptz in a time zone for which nobody asked.
    pub zone: Option<UnknownZone>,
    /// The locale, if it finds rows by the pattern of a text in the order of bytes, and the original has another order, or one that is not known.
    #[serde(skip)]
    pub locale: Option<UnknownLocale>,
    /// Tables on which it works, and of which earlier statements have removed most rows.
    pub thinned: Vec<Thinned>,
    /// The longest waits of readers and writers meanwhile.
    pub stall: Option<Stall>,
    /// The same with a transaction that was open before the migration.
    pub blocked: Option<Stall>,
}

/// Effects of a statement.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Effects {
    /// Class of the statement, decided by the heaviest part of its work.
    pub class: Class,
    /// Its work on relations, the heaviest first.
    pub works: Vec<Work>,
    /// Locks that it takes in addition to those that its transaction has, the strongest first.
    pub locks: Vec<Lock>,
    /// Locks that earlier statements of its transaction took, on any table, and that block readers or writers while it runs, the strongest first.
    pub inherited: Vec<Lock>,
    /// The strongest lock that its transaction had before it on the tables that it names or works on.
    #[serde(skip)]
    pub(crate) kept_on_own: Option<LockMode>,
    /// Why it may take more locks than these, if pgrig could not make it wait to read them: a phrase, with the remedy.
    pub unknown_locks: Option<String>,
    /// Tables whose rows it writes, but of which it changed none.
    pub unmatched: Vec<Unmatched>,
    /// The tables that the statement and its functions change.
    #[serde(skip)]
    pub(crate) by_text: ByText,
    /// Columns and constraints that it drops, and columns to which it gives a type.
    #[serde(skip)]
    pub(crate) changed: Vec<Changed>,
    /// Whether it runs only outside of transactions.
    pub is_alone: bool,
    /// Whether it concerns all partitions of a table.
    pub(crate) is_partitioned: bool,
    /// Whether it works on tables that the one that it names has as partitions or children, or on that one, and on no others.
    #[serde(skip)]
    pub(crate) is_within: bool,
    /// Whether no other session sees the table that it names: that is temporary, or its transaction has made it.
    #[serde(skip)]
    pub(crate) is_unshared: bool,
    /// The partitioned table that it names, and its partitions, each after the one of which it is a part.
    #[serde(skip)]
    pub(crate) partitions: Vec<Node>,
    /// The constraints and indexes of these tables after it.
    #[serde(skip)]
    pub(crate) objects: Objects,
    /// The columns of the primary key that it adds, as far as they may be NULL before it, as SQL.
    #[serde(skip)]
    pub(crate) nullable: Vec<String>,
    /// Whether it adds a column of a domain, whose constraints the server checks by a rewrite.
    #[serde(skip)]
    pub(crate) adds_domain: bool,
    /// The table that it attaches as a partition.
    #[serde(skip)]
    pub(crate) attached: Option<Attached>,
    /// Reasons for which the same with CONCURRENTLY would fail or do less.
    #[serde(skip)]
    pub(crate) obstacles: Obstacles,
    /// Triggers that an UPDATE of the table that it rewrites may fire.
    #[serde(skip)]
    pub(crate) fired: Fired,
    /// Times that it waited for transactions of others.
    pub waits: usize,
    /// Disk space that it takes while it runs.
    pub space: Space,
    /// Whether the server counted temporary files of it, or of its transaction, that no reading saw: so their size is not known.
    pub missed_temporary: bool,
    /// OIDs of the tables that decide on its cost.
    #[serde(skip)]
    pub(crate) tables: BTreeSet<u32>,
    /// OIDs of all tables of which its transaction has a lock or one on an index, with the locks on the table itself.
    #[serde(skip)]
    pub(crate) held: BTreeMap<u32, Vec<LockMode>>,
    /// OIDs of the tables on which or on whose indexes it takes locks in addition to those that its transaction has, with these locks, if
    /// others may use the table.
    #[serde(skip)]
    pub(crate) taken: BTreeMap<u32, Vec<LockMode>>,
}

/// OIDs of tables on which code works: named by its text, also in branches that did not run, or by events.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByText {
    /// Those of which rows are written.
    pub(crate) written: BTreeSet<u32>,
    /// Those that code copies into new files.
    pub(crate) copied: BTreeSet<u32>,
    /// Those that code has written anew, each with the number of times, as the server's events tell.
    pub(crate) rewritten: BTreeMap<u32, u64>,
}

/// Reasons for which REINDEX or REFRESH MATERIALIZED VIEW with CONCURRENTLY fails or does less.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obstacles {
    /// The indexes of exclusion constraints that REINDEX has built, as SQL: CONCURRENTLY skips them, or fails.
    pub(crate) excluding: Vec<String>,
    /// The obstacle of the materialized view that REFRESH names, if it has one.
    pub(crate) view: Option<View>,
}

/// A materialized view for which CONCURRENTLY fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// It has no unique index on plain columns of all its rows.
    Keyless,
    /// It has one, and was not populated before the statement.
    Unpopulated,
}

/// A table that becomes a partition.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// Its name for people.
    pub(crate) name: String,
    /// OIDs of it, and of its own partitions.
    pub(crate) tables: BTreeSet<u32>,
    /// OIDs of the partitions that are there already.
    pub(crate) others: BTreeSet<u32>,
}

/// Disk space at its peak, beyond the space before, without WAL. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Files of the database: tables and indexes, new files beside those that they replace.
    pub files: u64,
    /// Temporary files, for example of sorts; none if the role may not see them, or no reading saw those that the server counted.
    pub temporary: Option<u64>,
}

/// Disk space at one size of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpaceAt {
    /// The place of the size.
    pub(crate) place: usize,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) space: Space,
}

impl Space {
    /// All of it.
    pub fn all(self) -> u64 {
        self.files + self.temporary.unwrap_or_default()
    }
}

/// A statement that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The server's message.
    pub message: String,
    /// Advice for the user, if there is any.
    pub remedy: Option<String>,
    /// If it fails because of the rows: the table and columns that the server names.
    #[serde(skip)]
    pub(crate) unsuited: Option<Box<Unsuited>>,
    /// Whether the server refuses it whatever rows there are.
    #[serde(skip)]
    pub(crate) is_certain: bool,
}

/// The runs of a statement at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtSize {
    /// Bytes of the tables that it works on, with their indexes, before the migration.
    pub bytes: u64,
    /// Rows of these tables.
    pub rows: u64,
    /// The cost in each run.
    pub runs: Vec<Cost>,
}

/// The cost of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds from sending it to the server's answer; outside of a transaction with its commit.
    pub seconds: f64,
    /// Bytes of WAL that the server wrote meanwhile.
    pub wal: u64,
    /// Seconds from its start to the end of its transaction: as long it keeps its locks.
    pub held: f64,
}

/// The longest waits of readers and writers while a statement ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// The longest wait of a reader; none if no wait of a reader counts for the statement.
    pub read: Option<Wait>,
    /// The longest wait of a writer; none if no wait of a writer counts for the statement.
    pub write: Option<Wait>,
    /// Tables whose readers or writers would wait for the statement, and that had none until its locks ended: `schema.name`.
    pub unprobed: Vec<String>,
    /// The number of an earlier statement of its transaction, if waits for a lock of that one went on while this statement ran, and they are
    /// longer than `read` and `write`: they count there.
    pub counts_for: Option<usize>,
    /// Deadlocks with the statement that the server ended with an error of a reader or writer.
    pub deadlocks: Vec<Deadlock>,
    /// Seconds of the statement in this run.
    pub seconds: f64,
    /// Why the statement failed in this run, if it did.
    pub failed: Option<String>,
}

/// The longest wait of a probe for its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// Seconds from the scheduled start to the answer.
    pub seconds: f64,
    /// Those of them in which it waited for a lock.
    pub lock: f64,
    /// The table.
    pub name: String,
    /// Whether the answer was an error, for example because the migration has dropped the table.
    pub is_failed: bool,
}

/// A deadlock that a reader or writer lost: it got an error in the place of its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deadlock {
    /// The table.
    pub name: String,
    /// Whether it read or wrote.
    pub kind: ProbeKind,
    /// Seconds from the scheduled start to the error.
    pub seconds: f64,
}

/// Kinds of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// It reads rows.
    Read,
    /// It writes rows.
    Write,
}

/// The readers and writers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probed {
    /// Each with its table, or the user's script, for people.
    pub names: Vec<String>,
    /// Tables without one, each with the reason.
    pub unprobed: Vec<String>,
    /// Scheduled starts in a second, of each in the order of the names.
    pub per_second: Vec<f64>,
    /// The longest waits before the migration.
    pub baseline: Baseline,
    /// Those that could not go on.
    pub stopped: Vec<Stopped>,
}

/// The longest waits before the migration, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// The longest wait of a reader, seconds; none if there was no reader.
    pub read: Option<f64>,
    /// The longest wait of a writer, seconds; none if there was no writer.
    pub write: Option<f64>,
}

/// A probe whose statement failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// The table.
    pub name: String,
    /// Whether it read or wrote.
    pub kind: ProbeKind,
    /// The statement of the migration that ran, or ran last.
    pub number: Option<usize>,
    /// The server's message.
    pub message: String,
}

impl ProbeKind {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "reader",
            Self::Write => "writer",
        }
    }
}

impl Stall {
    /// The longer of both waits.
    pub fn longest(&self) -> Option<&Wait> {
        self.read.iter().chain(&self.write).max_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }
}

/// A table with rows of its own, before the migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableAt {
    /// Its OID.
    #[serde(skip)]
    pub(crate) oid: u32,
    /// OID of the table of which it is a partition; else its own.
    #[serde(skip)]
    pub(crate) root: u32,
    /// `schema.name`.
    pub name: String,
    /// Number of its rows.
    pub rows: u64,
    /// Its bytes with its indexes.
    pub bytes: u64,
    /// Its bytes without indexes and TOAST.
    #[serde(skip)]
    pub(crate) main: u64,
}

/// A median with the least and the greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least value.
    pub low: f64,
    /// The median of all values.
    pub median: f64,
    /// The greatest value.
    pub high: f64,
}

impl AtSize {
    /// Seconds of the runs.
    pub fn seconds(&self) -> Option<Spread> {
        self.spread(|cost| cost.seconds)
    }

    /// Seconds that it keeps its locks.
    pub fn held(&self) -> Option<Spread> {
        self.spread(|cost| cost.held)
    }

    /// Bytes of WAL.
    pub fn wal(&self) -> Option<Spread> {
        #[expect(clippy::cast_precision_loss, reason = "documents have floating numbers")]
        self.spread(|cost| cost.wal as f64)
    }

    fn spread(&self, value: impl Fn(&Cost) -> f64) -> Option<Spread> {
        let values: Vec<f64> = self.runs.iter().map(value).collect();
        let sample = Sample::new(values)?;
        Some(Spread { low: sample.lowest(), median: sample.median(), high: sample.highest() })
    }
}

impl Outcome {
    /// The `--up-to` with which the tables of a statement have at least so many bytes, rounded up to two digits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, not negative")]
    pub fn up_to(&self, one: &StatementOutcome, bytes: u64) -> u64 {
        let filled = one.largest().map_or(self.bytes, |largest| largest.bytes).max(1);
        let needed = (bytes as f64 * self.up_to as f64 / filled as f64).ceil() as u64;
        let step = 10_u64.pow(needed.checked_ilog10().unwrap_or_default().saturating_sub(1));
        needed.div_ceil(step) * step
    }

    /// The `--up-to` with which each figure of a statement's forecast has a value that has none beyond a boundary, bytes; none if there is no such
    /// figure, or no larger size.
    pub fn advised(&self, one: &StatementOutcome) -> Option<u64> {
        let forecast = one.forecast.as_ref().filter(|_| !self.is_whole)?;
        let figures = [forecast.seconds, forecast.wal, forecast.space].into_iter().chain(forecast.temporary);
        let measure = |figure| match figure {
            Figure::Beyond { measure, .. } => Some(self.up_to(one, measure)),
            _ => None,
        };
        figures.filter_map(measure).max()
    }

    /// The statements that failed.
    pub fn failed(&self) -> impl Iterator<Item = (&StatementOutcome, &Failed)> {
        self.statements.iter().filter_map(|one| Some((one, one.failed.as_ref()?)))
    }
}

impl StatementOutcome {
    /// Of statements that have not run.
    pub(crate) fn of_all(statements: &[Statement]) -> Vec<Self> {
        let outcome = |(statement, number): (&Statement, usize)| Self {
            number,
            statement: statement.clone(),
            found: None,
            failed: None,
            tables: Vec::new(),
            measured: Vec::new(),
            spaces: Vec::new(),
            forecast: None,
            rowless: Vec::new(),
            zone: None,
            locale: None,
            thinned: Vec::new(),
            stall: None,
            blocked: None,
        };
        statements.iter().zip(1..).map(outcome).collect()
    }

    /// Its cost at the largest size.
    pub fn largest(&self) -> Option<&AtSize> {
        self.measured.last()
    }

    /// Seconds that it keeps its locks, at the largest size.
    pub fn held(&self) -> Option<f64> {
        Some(self.largest()?.held()?.median)
    }
}
