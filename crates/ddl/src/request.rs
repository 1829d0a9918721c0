//! The request of a measurement.

use std::time::Duration;

use fill::{RowsRule, is_name_of};
use serde::Serialize;

use crate::probing::Probing;
use crate::schema::Schema;
use crate::script::Script;

/// Tables that a sentence names.
const NAMED: usize = 8;

/// A migration to be measured.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The tables that the migration finds.
    pub schema: Schema,
    /// The statements of the migration.
    pub script: Script,
    /// The amount of data for which the user wants to know.
    pub amount: Amount,
    /// Greatest size of all tables that are filled, bytes. For more, there is a forecast.
    pub up_to: u64,
    /// Sizes and repetitions.
    pub effort: Effort,
    /// Readers and writers meanwhile; none if their waits are not measured.
    pub probes: Option<Probes>,
    /// Whether better ways are measured, too, where one is known.
    pub alternatives: bool,
    /// Specifications of single columns: `table.column=specification`.
    pub columns: Vec<String>,
    /// Seed of the random values.
    pub seed: u64,
}

impl Request {
    /// Tables that have no rows in the original, but for those to which the user gives rows.
    pub(crate) fn without_rows(&self) -> Vec<String> {
        self.schema.empty().into_iter().filter(|table| !self.names(table)).collect()
    }

    /// A sentence about the tables whose rows are estimates, but for those to which the user gives rows; none if there are none.
    pub fn estimated(&self) -> Option<String> {
        let names = self.schema.estimated.iter().filter(|table| !self.names(table));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let origin = &self.schema.origin;
        (!names.is_empty()).then(|| {
            format!(
                "tables of {origin} that were not analyzed: {first}{more}. pgrig estimates their rows from their sizes: for better \
                 estimates, run ANALYZE there, or give --rows TABLE=ROWS"
            )
        })
    }

    /// Whether the user gives the rows or the size of this table, `schema.name`.
    fn names(&self, table: &str) -> bool {
        let is_named = |name: &str| table.split_once('.').is_some_and(|names| is_name_of(names, name));
        match &self.amount {
            Amount::Sizes(sizes) => sizes.iter().any(|size| is_named(&size.table)),
            Amount::Rules(rules) => rules.iter().any(|rule| is_named(&rule.table)),
            Amount::AsOriginal | Amount::Size(_) | Amount::Rows(_) => false,
        }
    }
}

/// Readers and writers that use the tables while the migration runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Probes {
    /// The reader's work; none for lookups by key.
    pub read: Option<Probing>,
    /// The writer's work; none for updates by key.
    pub write: Option<Probing>,
    /// Time that a transaction which has read the tables is open, from before the migration on, in a run of its own.
    pub blocker: Option<Duration>,
}

impl Probes {
    /// Whether the user gives any of their work.
    pub(crate) fn is_own(&self) -> bool {
        self.read.is_some() || self.write.is_some()
    }
}

/// The amount of data in the tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// As many rows as the original has.
    AsOriginal,
    /// Bytes that all tables and their indexes take.
    Size(u64),
    /// Bytes that some tables take, with their indexes.
    Sizes(Vec<TableSize>),
    /// Rows of each table.
    Rows(u64),
    /// Rows of some tables; others get rows in proportion to those that they reference.
    Rules(Vec<RowsRule>),
}

/// The size of a table with its indexes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableSize {
    /// `name` or `schema.name`.
    pub table: String,
    /// Bytes of the table and its indexes.
    pub bytes: u64,
}

/// The ratio of the largest size to the one before it.
pub(crate) const STEP: f64 = 4.0;

/// Sizes at which is measured, and repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// One size, once.
    Quick,
    /// Three sizes: five runs at each of the smaller two, three at the largest.
    Full,
}

impl Effort {
    /// The sizes as fractions of the largest, ascending, with the runs at each.
    pub(crate) fn sizes(self) -> &'static [(f64, usize)] {
        match self {
            Self::Quick => &[(1.0, 1)],
            Self::Full => &[(1.0 / STEP / STEP, 5), (1.0 / STEP, 5), (1.0, 3)],
        }
    }
}
