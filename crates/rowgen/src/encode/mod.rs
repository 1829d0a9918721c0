//! Rows as bytes that COPY reads.

mod binary;
mod text;

use std::ops::Range;

use crate::{Column, Table, Values};

/// COPY's wire formats (PostgreSQL documentation, COPY, "File Formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated text.
    Text,
    /// Binary: lengths and big-endian values.
    Binary,
}

impl Format {
    /// The word that COPY's FORMAT option takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }
}

/// What becomes of columns whose value is the same in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// Sent with every row.
    Sent,
    /// Left out: the table gives them as column defaults, which costs the server neither
    /// parsing nor padding.
    Defaulted,
}

/// Turns ranges of a table's rows into COPY data.
///
/// Ranges that follow one another concatenate to what the whole range gives.
#[derive(Clone, Debug)]
pub struct Encoder {
    columns: Vec<Column>,
    rows: Rows,
}

#[derive(Clone, Debug)]
enum Rows {
    Text(text::Rows),
    Binary(binary::Rows),
}

impl Encoder {
    /// An encoder for the table's rows.
    pub fn new(table: &Table, format: Format, constants: Constants) -> Self {
        let sent = |column: &&Column| constants == Constants::Sent || !column.values.is_constant();
        let columns: Vec<Column> = table.columns.iter().filter(sent).cloned().collect();
        let rows = match format {
            Format::Text => Rows::Text(text::Rows::new(&columns)),
            Format::Binary => Rows::Binary(binary::Rows::new(&columns)),
        };
        Self { columns, rows }
    }

    /// Names of the columns in each encoded row, in order: COPY's column list.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Bytes that open the COPY data, before the first row.
    pub fn header(&self) -> &'static [u8] {
        match self.rows {
            Rows::Text(_) => b"",
            Rows::Binary(_) => binary::HEADER,
        }
    }

    /// Bytes that close the COPY data, after the last row.
    pub fn trailer(&self) -> &'static [u8] {
        match self.rows {
            Rows::Text(_) => b"",
            Rows::Binary(_) => binary::TRAILER,
        }
    }

    /// Appends the rows numbered `range` (from 0) to `out`.
    pub fn encode(&self, range: Range<u64>, out: &mut Vec<u8>) {
        match &self.rows {
            Rows::Text(rows) => rows.encode(range, out),
            Rows::Binary(rows) => rows.encode(range, out),
        }
    }
}

/// A column that changes from row to row, being read in row order.
#[derive(Clone, Debug)]
struct Counter {
    value: u64,
    /// Rows until the value goes up by one.
    left: u64,
    size: u64,
    last: u64,
}

impl Counter {
    /// Positioned at `row`; none where every row has the same value.
    fn at(values: &Values, row: u64) -> Option<Self> {
        match *values {
            Values::Serial { .. } => Some(Self { value: row + 1, left: 1, size: 1, last: u64::MAX }),
            Values::Group { size, groups } => Some(Self {
                value: (row / size + 1).min(groups),
                left: size - row % size,
                size,
                last: groups,
            }),
            _ => None,
        }
    }

    fn next(&mut self) -> u64 {
        let value = self.value;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.size;
            self.value = (value + 1).min(self.last);
        }
        value
    }
}
