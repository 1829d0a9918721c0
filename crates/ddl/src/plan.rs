//! The plan of a measurement: the tables that are filled, and the sizes at which is measured.

use serde::Serialize;

/// The work that is planned.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The tables that are filled, in the order in which they are filled, at the largest size.
    pub tables: Vec<PlannedTable>,
    /// Tables that stay empty, because no statement uses them.
    pub empty: Vec<String>,
    /// Tables that stay empty though a statement uses them, because they have no rows in the original.
    pub without_rows: Vec<String>,
    /// Sizes at which is measured, ascending.
    pub sizes: Vec<PlannedSize>,
    /// Constraints of the migration that the rows satisfy, as SQL, and `column=specification` of columns that it casts, and of keys of default partitions.
    pub suited: Vec<String>,
    /// Default partitions that get rows, because a statement works on them.
    pub defaults: Vec<PlannedDefault>,
    /// Settings of the original that the migration's session gets.
    pub settings: Vec<(String, String)>,
    /// Seconds that all takes, at speeds that pgrig assumes, without the time in triggers, functions and DO.
    pub seconds: u64,
    /// Warnings for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A table that is filled.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedTable {
    /// Schema and name.
    pub name: String,
    /// Number of rows that it gets.
    pub rows: u64,
    /// Its size with indexes, about.
    pub bytes: u64,
}

/// A default partition that gets rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedDefault {
    /// Its name for people.
    pub partition: String,
    /// Name of its table for people.
    pub table: String,
    /// Its share of the table's rows, above 0 and below 1.
    pub share: f64,
    /// Whether pgrig assumes the share, because nothing tells that of the original.
    pub is_assumed: bool,
}

/// A size at which is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlannedSize {
    /// Bytes of all tables and indexes, about.
    pub bytes: u64,
    /// Number of times that the migration runs at this size.
    pub runs: usize,
}

impl Plan {
    /// Bytes of all tables and indexes at the largest size, about.
    pub fn bytes(&self) -> u64 {
        self.sizes.last().map_or(0, |size| size.bytes)
    }
}
