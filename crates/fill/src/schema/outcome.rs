//! The result of a schema fill.

use std::time::Duration;

use measure::Event;

use super::views::Unpopulated;
use crate::limits::StopReason;
use crate::outcome::Outcome;
use crate::part_work::{self, FillId, PartWork};
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
    /// Materialized views that stay unpopulated.
    pub unpopulated: Vec<Unpopulated>,
    /// How this part of the fill ended; none if there is but one process.
    pub part_end: Option<PartEnd>,
    /// When this part worked; none if there is but one process.
    pub(crate) part_work: Option<PartWork>,
    /// The fill that it is a part of.
    pub fill: Option<FillId>,
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

    /// Readings of the server's clock and the end of this part; none if there is but one process.
    pub fn part_events(&self) -> Vec<Event> {
        let Some(work) = &self.part_work else { return Vec::new() };
        let at = self.elapsed.as_secs_f64();
        let end = part_work::event(at, self.part_end.as_ref(), self.fill.as_ref(), &[]);
        work.events().chain([end]).collect()
    }

    /// Bytes that the tables and indexes have grown by.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.outcome.grown().total()).sum()
    }
}
