//! The plan of a measurement: what is filled, before the first statement runs.

use fill::SchemaPlan;
use serde::Serialize;

use crate::find::shown_relation;

/// The tables that are filled for the migration.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The tables, in the order in which they are filled.
    pub tables: Vec<PlannedTable>,
    /// Settings of the original that the migration's session gets.
    pub settings: Vec<(String, String)>,
    /// Warnings for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A table that is filled.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedTable {
    /// Schema and name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its size with indexes, about.
    pub bytes: u64,
}

impl Plan {
    pub(crate) fn of(plan: &SchemaPlan, settings: Vec<(String, String)>) -> Self {
        let tables = plan.tables.iter().map(|table| PlannedTable {
            name: shown_relation(&table.schema, &table.name),
            rows: table.rows,
            bytes: table.predicted,
        });
        Self { tables: tables.collect(), settings, warnings: plan.warnings.clone() }
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Bytes of all tables and indexes, about.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}
