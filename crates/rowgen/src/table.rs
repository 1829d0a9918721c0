//! What a table's rows are made of.

/// A table and how each of its columns' values follow from the row number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Unquoted name, without schema.
    pub name: &'static str,
    /// Columns in the table's order.
    pub columns: Vec<Column>,
    /// How many rows: row numbers run from 0 to `rows - 1`.
    pub rows: u64,
}

/// One column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Unquoted name.
    pub name: &'static str,
    /// Its PostgreSQL type.
    pub kind: Kind,
    /// Whether it is declared NOT NULL.
    pub not_null: bool,
    /// What stands in it.
    pub values: Values,
}

/// The PostgreSQL types that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int`, 4 bytes.
    Int4,
    /// `bigint`, 8 bytes.
    Int8,
    /// `char(n)`: blank-padded by the server to n characters.
    Char(u16),
    /// `timestamp` without time zone, 8 bytes.
    Timestamp,
}

/// How a column's value follows from its row number (counted from 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// The row number + 1.
    Serial,
    /// `row / size + 1`, and at most `groups`: each group has `size` members, the last one the rest.
    Group {
        /// Rows in a group.
        size: u64,
        /// Number of groups.
        groups: u64,
    },
    /// The same integer in every row.
    Int(i64),
    /// The same text in every row.
    Text(String),
    /// NULL in every row.
    Null,
}

impl Values {
    /// Whether every row has the same value, so that it need not be sent row by row.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Text(_) | Self::Null)
    }
}

impl Column {
    /// A nullable column.
    pub fn new(name: &'static str, kind: Kind, values: Values) -> Self {
        Self { name, kind, not_null: false, values }
    }

    /// The same column, declared NOT NULL.
    #[must_use]
    pub fn not_null(self) -> Self {
        Self { not_null: true, ..self }
    }
}

impl Kind {
    /// The type as written in CREATE TABLE.
    pub fn sql(self) -> String {
        match self {
            Self::Int4 => "int".into(),
            Self::Int8 => "bigint".into(),
            Self::Char(n) => format!("char({n})"),
            Self::Timestamp => "timestamp".into(),
        }
    }
}
