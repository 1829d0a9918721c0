//! The description of a table's rows.

use serde::{Deserialize, Serialize};

use crate::{Kind, Values};

/// A table and how each of its columns' values follow from the row number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Unquoted name, without schema.
    pub name: String,
    /// Columns in the table's order.
    pub columns: Vec<Column>,
    /// Number of rows: row numbers run from 0 to `rows - 1`. `u64::MAX` where the end is open.
    pub rows: u64,
    /// Seed of the random values: the same table with another seed gets other values.
    pub seed: u64,
}

/// One column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Unquoted name.
    pub name: String,
    /// Its PostgreSQL type.
    pub kind: Kind,
    /// Whether it is declared NOT NULL.
    pub not_null: bool,
    /// Values of its rows.
    pub values: Values,
}

impl Column {
    /// A nullable column.
    pub fn new(name: &str, kind: Kind, values: Values) -> Self {
        Self { name: name.to_owned(), kind, not_null: false, values }
    }

    /// The same column, declared NOT NULL.
    #[must_use]
    pub fn not_null(self) -> Self {
        Self { not_null: true, ..self }
    }
}
