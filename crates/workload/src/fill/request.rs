//! What is asked for.

use std::num::NonZeroU16;

use serde::Serialize;

/// A fill as asked for, before anything is known of the server.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// How much.
    pub amount: Amount,
    /// Schema for the tables; none means the session's current one.
    pub schema: Option<String>,
    /// Logged or unlogged.
    pub persistence: Persistence,
    /// Percent of each page that is filled, 10 to 100; pgbench's tables except history.
    pub fillfactor: u8,
    /// Loading connections; none means chosen from cores and server.
    pub streams: Option<NonZeroU16>,
    /// COPY's format; none means chosen from the transport.
    pub format: Option<CopyFormat>,
    /// What is done besides creating and filling the tables.
    pub steps: Steps,
}

/// How much data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes that the finished tables and their indexes take (`pg_total_relation_size`).
    Size(u64),
    /// pgbench's scale: 100,000 accounts each.
    Scale(u64),
    /// Rows of pgbench_accounts.
    Rows(u64),
}

/// Whether the tables survive a crash of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Ordinary tables.
    Logged,
    /// No WAL; emptied by crash recovery.
    Unlogged,
}

/// COPY's format, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// Optional steps; creating and generating are always done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// Drop existing tables of these names first.
    pub drop: bool,
    /// Leave pages all-visible and statistics fresh.
    pub vacuum: bool,
    /// Build primary keys.
    pub primary_keys: bool,
}

/// A step of filling, in the order in which they run; pgbench's `--init-steps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitStep {
    /// Existing tables go.
    Drop,
    /// New ones are created.
    Create,
    /// Rows are generated and loaded.
    Generate,
    /// Pages all-visible, statistics fresh.
    Vacuum,
    /// Primary keys are built.
    PrimaryKeys,
}

impl InitStep {
    /// All steps in order.
    pub const ALL: [Self; 5] = [Self::Drop, Self::Create, Self::Generate, Self::Vacuum, Self::PrimaryKeys];

    /// Its name in tables and run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Create => "create",
            Self::Generate => "generate",
            Self::Vacuum => "vacuum",
            Self::PrimaryKeys => "primary-keys",
        }
    }
}

impl Steps {
    /// Whether `step` is done.
    pub fn includes(self, step: InitStep) -> bool {
        match step {
            InitStep::Drop => self.drop,
            InitStep::Create | InitStep::Generate => true,
            InitStep::Vacuum => self.vacuum,
            InitStep::PrimaryKeys => self.primary_keys,
        }
    }
}
