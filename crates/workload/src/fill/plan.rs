//! A plan is data: printed before anything is touched, kept in the run document, obeyed by the steps.

use std::num::NonZeroU16;

use serde::Serialize;

use super::predict::Sizes;
use super::request::{CopyFormat, InitStep, Persistence};

/// What will be done, with what, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Schema of the tables.
    pub schema: String,
    /// Whether that schema has to be created.
    pub create_schema: bool,
    /// Existing tables that are dropped first.
    pub dropped: Vec<String>,
    /// Bytes that those take, as of their last vacuum.
    pub dropped_bytes: u64,
    /// Rows of pgbench_accounts.
    pub accounts: u64,
    /// pgbench's scale: rows of pgbench_branches.
    pub scale: u64,
    /// Logged or unlogged.
    pub persistence: Persistence,
    /// Percent.
    pub fillfactor: u8,
    /// The steps, in order.
    pub steps: Vec<InitStep>,
    /// How accounts are loaded.
    pub method: Method,
    /// Whether the checkpointer is kept writing while rows come in, so that two cores are at work.
    pub write_behind: bool,
    /// Whether loading sessions have the kernel start writing early (`backend_flush_after`), so that
    /// the disk works while rows are made, not after.
    pub flush_early: bool,
    /// Options of VACUUM; none without that step.
    pub vacuum: Option<&'static str>,
    /// COPY's format.
    pub format: CopyFormat,
    /// How primary keys are built; none without that step.
    pub index_build: Option<IndexBuild>,
    /// What it will take.
    pub predicted: Prediction,
    /// Why method, streams and format are what they are: a sentence each.
    pub reasons: Vec<String>,
}

/// How accounts are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Method {
    /// COPY (FREEZE) in the transaction that creates the tables: all or nothing.
    FrozenCopy {
        /// Rows that one COPY command loads.
        chunk_rows: u64,
    },
    /// Concurrent COPYs into one table, a transaction per chunk.
    ParallelCopy {
        /// Connections.
        streams: NonZeroU16,
        /// Rows loaded as a unit.
        chunk_rows: u64,
    },
}

impl Method {
    /// Rows that one COPY command loads.
    pub fn chunk_rows(self) -> u64 {
        match self {
            Self::FrozenCopy { chunk_rows } | Self::ParallelCopy { chunk_rows, .. } => chunk_rows,
        }
    }
}

/// Session settings for building primary keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IndexBuild {
    /// `maintenance_work_mem`, bytes.
    pub maintenance_work_mem: u64,
    /// `max_parallel_maintenance_workers`; none leaves the server's own.
    pub parallel_workers: Option<u32>,
}

/// What the plan expects to take, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Finished tables and indexes.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// WAL written.
    pub wal: u64,
    /// Temporary files while indexes are built.
    pub temporary: u64,
}

impl Prediction {
    /// The most disk that is taken at any moment, bytes: WAL may pile up to `max_wal_size` or be
    /// held by a slot, so all of it counts.
    pub fn peak(&self) -> u64 {
        self.sizes.total() + self.wal + self.temporary
    }
}

impl Plan {
    /// Whether the plan has this step.
    pub fn includes(&self, step: InitStep) -> bool {
        self.steps.contains(&step)
    }
}
