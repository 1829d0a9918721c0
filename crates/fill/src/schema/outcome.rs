//! The result of a schema fill.

use std::time::Duration;

use crate::limits::StopReason;
use crate::outcome::Outcome;
use crate::run::PartEnd;

/// A schema that was filled.
#[derive(Clone, Debug, Default)]
pub struct SchemaOutcome {
    /// The tables that this run filled, in order.
    pub tables: Vec<FilledTable>,
    /// Time of foreign keys that were made after the rows; those made side by side are added.
    pub foreign_keys: Duration,
    /// Wall-clock time of all, from the tables' creation to the record's removal.
    pub elapsed: Duration,
    /// Why it ended before all tables were filled; none if they are. The same request fills the rest.
    pub stopped: Option<StopReason>,
    /// Materialized views that were refreshed.
    pub refreshed: Vec<String>,
    /// How this part of the fill ended; none if there is but one process.
    pub part_end: Option<PartEnd>,
    /// Parts whose chunks this one has loaded, because they were not there and other tables reference these rows.
    pub absent: Vec<u32>,
}

/// A table that was filled.
#[derive(Clone, Debug)]
pub struct FilledTable {
    /// Its place in the plan, from 0.
    pub place: usize,
    /// The result of its fill.
    pub outcome: Outcome,
}

impl SchemaOutcome {
    /// Rows that this run loaded.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.outcome.rows).sum()
    }

    /// Bytes that the tables and indexes have grown by.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.outcome.grown().total()).sum()
    }
}
