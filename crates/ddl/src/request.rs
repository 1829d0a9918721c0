//! The request of a measurement.

use fill::{RowsRule, SchemaAmount};
use serde::Serialize;

use crate::schema::Schema;
use crate::script::Script;

/// A migration to be measured.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The tables that the migration finds.
    pub schema: Schema,
    /// The migration.
    pub script: Script,
    /// The amount of data.
    pub amount: Amount,
    /// Specifications of single columns: `table.column=specification`.
    pub columns: Vec<String>,
    /// Seed of the random values.
    pub seed: u64,
}

/// The amount of data in the tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes that all tables and their indexes take.
    Size(u64),
    /// Rows of each table.
    Rows(u64),
    /// Rows of some tables; others get rows in proportion to those that they reference.
    Rules(Vec<RowsRule>),
}

impl Amount {
    /// For a fill: the amount, and the rules of the user.
    pub(crate) fn for_fill(&self) -> (SchemaAmount, Vec<RowsRule>) {
        match self {
            Self::Size(size) => (SchemaAmount::Size(*size), Vec::new()),
            Self::Rows(rows) => (SchemaAmount::Rows(*rows), Vec::new()),
            Self::Rules(rules) => (SchemaAmount::Rules, rules.clone()),
        }
    }
}
