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

/// The treatment of columns whose value is the same in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// Sent with every row.
    Sent,
    /// Left out: the table gives them as column defaults, which costs the server neither
    /// parsing nor padding.
    Defaulted,
}

/// Turns a table's rows into COPY data, without the columns that are left to the server.
///
/// Successive ranges concatenate to the bytes of the whole range.
#[derive(Clone, Debug)]
pub struct Encoder {
    columns: Vec<Column>,
    rows: FormatRows,
}

#[derive(Clone, Debug)]
enum FormatRows {
    Text(text::TextRows),
    Binary(binary::BinaryRows),
}

impl Encoder {
    /// An encoder for the table's rows.
    ///
    /// # Panics
    /// If a column's values do not suit its type ([`Column::check`]) or the table cannot be written
    /// in this format ([`Encoder::supports`]).
    pub fn new(table: &Table, format: Format, constants: Constants) -> Self {
        let sent = |column: &&Column| {
            column.values != Values::Server && (constants == Constants::Sent || !column.values.is_constant())
        };
        let columns: Vec<Column> = table.columns.iter().filter(sent).cloned().collect();
        let rows = match format {
            Format::Text => FormatRows::Text(text::TextRows::new(table, &columns)),
            Format::Binary => FormatRows::Binary(binary::BinaryRows::new(table, &columns)),
        };
        Self { columns, rows }
    }

    /// Whether all of the table's columns can be written in this format: in text any can.
    pub fn supports(table: &Table, format: Format) -> bool {
        format == Format::Text || table.columns.iter().all(binary::supports)
    }

    /// Names of the columns in each encoded row, in order: COPY's column list.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Bytes that open the COPY data, before the first row.
    pub fn header(&self) -> &'static [u8] {
        match self.rows {
            FormatRows::Text(_) => b"",
            FormatRows::Binary(_) => binary::HEADER,
        }
    }

    /// Bytes that close the COPY data, after the last row.
    pub fn trailer(&self) -> &'static [u8] {
        match self.rows {
            FormatRows::Text(_) => b"",
            FormatRows::Binary(_) => binary::TRAILER,
        }
    }

    /// Appends the rows numbered `range` (from 0) to `out`.
    pub fn encode(&self, range: Range<u64>, out: &mut Vec<u8>) {
        match &self.rows {
            FormatRows::Text(rows) => rows.encode(range, out),
            FormatRows::Binary(rows) => rows.encode(range, out),
        }
    }

    /// Appends the rows with these numbers to `out`, in this order.
    pub fn encode_rows(&self, rows: &[u64], out: &mut Vec<u8>) {
        let numbers = rows.iter().copied();
        match &self.rows {
            FormatRows::Text(rows) => rows.encode(numbers, out),
            FormatRows::Binary(rows) => rows.encode(numbers, out),
        }
    }
}
