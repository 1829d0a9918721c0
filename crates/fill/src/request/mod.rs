//! The request of a fill.

mod check;
mod differences;
mod part;
mod steps;

use std::num::{NonZeroU16, NonZeroU32};

use catalog::TableInfo;
use rowgen::Payload;
use serde::{Deserialize, Serialize};

pub use self::part::Part;
pub(crate) use self::part::Share;
pub use self::steps::{InitStep, InitSteps, Letters};
use crate::error::FillError;

/// A fill as asked for, before anything is known of the server.
///
/// The same request given again completes a fill that was interrupted. Therefore everything that
/// decides which rows go where is in the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Request {
    /// The kind of tables.
    pub subject: Subject,
    /// The amount of data.
    pub amount: Amount,
    /// Whether rows are added to the existing ones; ids continue.
    pub append: bool,
    /// Schema for the tables; none means the session's current one.
    pub schema: Option<String>,
    /// Logged or unlogged.
    pub persistence: Persistence,
    /// Percent of each page that is filled, 10 to 100; pgbench's tables except history.
    pub fillfactor: u8,
    /// Partitions of the bulk table, if it is partitioned.
    pub partitions: Option<Partitions>,
    /// The bulk table's index.
    pub index: IndexKind,
    /// Tablespace of tables; none means the session's default.
    pub tablespace: Option<String>,
    /// Tablespace of indexes; none means the session's default.
    pub index_tablespace: Option<String>,
    /// Whether autovacuum may visit the tables.
    pub autovacuum: bool,
    /// The content of the filler column.
    pub payload: Payload,
    /// Method of making and loading rows.
    pub method: MethodChoice,
    /// Loading connections; none means chosen from cores and server.
    pub streams: Option<NonZeroU16>,
    /// COPY's format; none means chosen from the transport.
    pub format: Option<CopyFormat>,
    /// Bytes of heap that are loaded and committed as a unit; none means chosen.
    pub chunk: Option<u64>,
    /// Whether rows are committed chunk by chunk even if that is slower, because a limit or a probe
    /// acts between chunks.
    pub in_chunks: bool,
    /// The steps, in order.
    pub steps: InitSteps,
    /// Whether the fill is only a measurement: its tables are marked, and
    /// [`clear_scratch`](crate::clear_scratch) drops them.
    #[serde(default)]
    pub is_scratch: bool,
    /// The part of the fill that this process loads; none if it loads all. The ledger does not hold it, so any number of
    /// parts completes a fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Place of the table among those of a schema that parts fill.
    #[serde(skip)]
    pub place: Option<u32>,
}

impl Request {
    /// A request for pgbench's tables, with defaults for everything else.
    pub fn new(amount: Amount, steps: InitSteps) -> Self {
        Self {
            subject: Subject::Pgbench,
            amount,
            append: false,
            schema: None,
            persistence: Persistence::Logged,
            fillfactor: 100,
            partitions: None,
            index: IndexKind::Btree,
            tablespace: None,
            index_tablespace: None,
            autovacuum: true,
            payload: Payload::Blank,
            method: MethodChoice::Auto,
            streams: None,
            format: None,
            chunk: None,
            in_chunks: false,
            steps,
            is_scratch: false,
            part: None,
            place: None,
        }
    }

    /// Whether rows may have to be frozen while the load goes on: those that are written to WAL, of
    /// a fill without a known end.
    pub(crate) fn freezes(&self) -> bool {
        self.amount == Amount::Unbounded && self.persistence == Persistence::Logged
    }

    /// Whether triggers of a table of the user's run for the rows.
    pub(crate) fn triggers(&self) -> Triggers {
        match &self.subject {
            Subject::Table(own) => own.triggers,
            Subject::Pgbench | Subject::Series => Triggers::On,
        }
    }

    /// Refuses requests that cannot work on any server.
    ///
    /// # Errors
    /// [`FillError::Combination`] names the contradicting options, and the remedy.
    pub fn check(&self) -> Result<(), FillError> {
        check::combinations(self)
    }

    /// Whether one transaction fills the table with others of a cycle of references.
    pub(crate) fn is_in_cycle(&self) -> bool {
        matches!(&self.subject, Subject::Table(own) if own.in_cycle)
    }

    /// The order of the rows of the table.
    pub(crate) fn order(&self) -> RowOrder {
        match &self.subject {
            Subject::Table(own) => own.order,
            _ => RowOrder::Any,
        }
    }
}

/// The tables to fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// pgbench's four; pgbench_accounts holds the bulk.
    Pgbench,
    /// One integer column, by CREATE TABLE AS: article 000's level 0.
    Series,
    /// A table of the user's.
    Table(OwnTable),
}

/// A user's table, and the specifications of its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTable {
    /// Its name, `name` or `schema.name` as in SQL; none means the only one that `ddl` creates.
    pub name: Option<String>,
    /// SQL that creates it first.
    pub ddl: Option<String>,
    /// Whether roles that the SQL names and the server does not have are created.
    #[serde(default)]
    pub create_roles: bool,
    /// Specifications of single columns: `column=specification`, see [`rowgen::spec`].
    pub columns: Vec<String>,
    /// Seed of the random values.
    pub seed: u64,
    /// Whether names of columns say nothing of their values.
    #[serde(default)]
    pub plain: bool,
    /// Whether the table's triggers run for the rows.
    #[serde(default)]
    pub triggers: Triggers,
    /// Tables that the same fill of a schema fills later, as SQL names them. They are empty, and may be truncated
    /// together with this one because they reference it.
    #[serde(default)]
    pub together: Vec<String>,
    /// Whether one transaction fills it with other tables that it references and that reference it.
    #[serde(default)]
    pub in_cycle: bool,
    /// The order of its rows.
    #[serde(default)]
    pub order: RowOrder,
}

/// The physical order of the rows of a table of the user's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOrder {
    /// Several streams may load the rows side by side.
    #[default]
    Any,
    /// As they are made: columns have the correlation of a model with the physical order.
    Kept,
}

/// Whether the triggers of a table of the user's run for the rows that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Triggers {
    /// Triggers run as for any other INSERT or COPY.
    #[default]
    On,
    /// Triggers do not run. Foreign keys are proved all the same.
    Off,
}

impl Triggers {
    /// Removes triggers from the description of a table, if the triggers do not run.
    pub(crate) fn left_of(self, info: &mut TableInfo) {
        if self == Self::Off {
            info.triggers.clear();
        }
    }
}

/// The amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes that the finished tables and their indexes take (`pg_total_relation_size`); with
    /// `append`, bytes that they grow by.
    Size(u64),
    /// pgbench's scale: 100,000 accounts each.
    Scale(u64),
    /// Rows of the bulk table.
    Rows(u64),
    /// Until a limit stops it.
    Unbounded,
    /// No rows: the steps do not generate any.
    Nothing,
}

/// Whether the tables survive a crash of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Ordinary tables, which survive a crash.
    Logged,
    /// No WAL; emptied by crash recovery.
    Unlogged,
}

/// Partitions of pgbench_accounts, as pgbench's `--partitions` and `--partition-method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    /// Number of partitions.
    pub count: NonZeroU32,
    /// Method by which a row gets its partition.
    pub method: PartitionMethod,
}

/// The way to choose a row's partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionMethod {
    /// Ranges of aid of equal length.
    Range,
    /// The hash of aid.
    Hash,
}

impl PartitionMethod {
    /// As PARTITION BY takes it.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Range => "RANGE",
            Self::Hash => "HASH",
        }
    }
}

/// The index that the bulk table gets in the step `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexKind {
    /// A primary key.
    Btree,
    /// A block range index: tiny, and the worst case for fetching by key (article 000).
    Brin,
    /// No index at all.
    None,
}

/// Requested method of making and loading rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodChoice {
    /// The planner's choice.
    Auto,
    /// COPY of rows that pgrig makes.
    Copy,
    /// INSERT … SELECT generate_series: nothing crosses the network.
    Server,
    /// The same seed rows for each chunk, straight into the leaf: article 000's bonus level. They
    /// are loaded by COPY, which extends a heap by 64 blocks at a time and writes each block once.
    /// INSERT … SELECT extends it by one block, which it first writes empty.
    Reinsert,
    /// Dense COPY, then VACUUM FULL at the final fillfactor.
    Explode,
    /// Direct pages, written straight into the tables' files.
    Direct,
}

impl MethodChoice {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Copy => "copy",
            Self::Server => "server",
            Self::Reinsert => "reinsert",
            Self::Explode => "explode",
            Self::Direct => "direct",
        }
    }
}

/// COPY's format, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyFormat {
    /// Fewest bytes on the wire.
    Text,
    /// Cheapest to parse.
    Binary,
}

impl CopyFormat {
    /// Its name, as COPY's FORMAT option takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }
}
