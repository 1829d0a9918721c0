//! Rows as *tuple bodies*: what PostgreSQL stores of a row in a heap page, for those who write pages
//! themselves.
//!
//! A body is all of a heap tuple after its fixed header of 23 bytes (`HeapTupleHeaderData` in
//! `access/htup_details.h`): the null bitmap if the row has NULLs, zeros up to the next multiple of 8
//! (23 bytes included), and the attributes as `heap_fill_tuple` (`access/common/heaptuple.c`) lays them
//! out. Integers are little-endian: a page goes to a server on the same machine, and pgrig runs on
//! little-endian ones only.

mod array;
mod attribute;
mod batch;
mod jsonb;
mod literal;
mod longest;
mod shape;
mod template;
mod varying;

use std::ops::Range;

use thiserror::Error;

use self::attribute::Attribute;
pub use self::batch::{Body, Tuples};
use self::template::Template;
use self::varying::Varying;
use crate::{Column, Table, Values};

/// Why a table's rows cannot be made as tuple bodies.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unstorable {
    /// The type's stored form holds what only the server knows, or is not known here.
    #[error("{column} has type {kind}, which pgrig writes by COPY only")]
    Kind {
        /// Unquoted name.
        column: String,
        /// Its type.
        kind: String,
    },
    /// The column is left to the server.
    #[error("{column} gets its values from the server (default, identity or generated), so only by COPY")]
    Server {
        /// Unquoted name.
        column: String,
    },
    /// A given value that the server must read, or would refuse.
    #[error("{column} has the value '{value}', which only the server can read as {kind}, so by COPY")]
    Literal {
        /// Unquoted name.
        column: String,
        /// Its type.
        kind: String,
        /// The first such value.
        value: String,
    },
}

/// Turns a table's rows into tuple bodies, all of its columns in their order.
///
/// Text is stored in UTF-8, `money` with two decimals, and times with all their microseconds: a server
/// with another encoding, or a `time(p)` or `timestamp(p)`, stores something else. [`crate::Kind::oid`] tells
/// which type a column must have.
#[derive(Clone, Debug)]
pub struct TupleEncoder {
    attributes: u16,
    longest: u32,
    /// Rows that have values in all columns.
    limit: u64,
    rows: RowTemplate,
}

/// Rows as they can be written fastest.
#[derive(Clone, Debug)]
enum RowTemplate {
    /// Every row has the same length.
    Even(Template),
    Uneven(Varying),
}

impl TupleEncoder {
    /// An encoder for the table's rows.
    ///
    /// # Errors
    /// [`Unstorable`] names a column that cannot be written and says why.
    ///
    /// # Panics
    /// If a column's values do not suit its type ([`Column::check`]).
    pub fn new(table: &Table) -> Result<Self, Unstorable> {
        Self::supports(table)?;
        let attributes: Vec<Attribute> =
            table.columns.iter().map(|column| Attribute::new(table, column)).collect();
        let longest = longest::body(&attributes);
        let count = u16::try_from(attributes.len()).expect("PostgreSQL has at most 1600 columns");
        let varying = Varying::new(attributes);
        let rows = Template::new(&varying).map_or_else(|| RowTemplate::Uneven(varying), RowTemplate::Even);
        let limit = table.columns.iter().map(limit).min().unwrap_or(u64::MAX);
        Ok(Self { attributes: count, longest, limit, rows })
    }

    /// Whether all of the table's columns can be written.
    ///
    /// # Errors
    /// [`Unstorable`] names the first column that cannot, and says why.
    pub fn supports(table: &Table) -> Result<(), Unstorable> {
        table.columns.iter().try_for_each(supports)
    }

    /// Number of attributes in each body.
    pub fn attributes(&self) -> u16 {
        self.attributes
    }

    /// Length of every body, if all have the same, bytes.
    pub fn fixed_length(&self) -> Option<u32> {
        match &self.rows {
            RowTemplate::Even(template) => Some(template.length()),
            RowTemplate::Uneven(_) => None,
        }
    }

    /// No body is longer, bytes. Its tuple has 23 more; one of more than `TOAST_TUPLE_THRESHOLD`
    /// (`access/heaptoast.h`, 2032 bytes for blocks of 8 kB) PostgreSQL would compress, or move parts of it
    /// out, which is not done here.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Appends the rows numbered `range` (from 0).
    ///
    /// # Panics
    /// If a column is [`Values::Unique`] and there are not so many values; COPY's server would refuse them.
    pub fn encode(&self, range: Range<u64>, out: &mut Tuples) {
        self.check(range.clone().next_back());
        match &self.rows {
            RowTemplate::Even(template) => template.encode(range, out),
            RowTemplate::Uneven(varying) => varying.encode(range, out),
        }
    }

    /// Appends the rows with these numbers, in this order.
    ///
    /// # Panics
    /// As [`TupleEncoder::encode`].
    pub fn encode_rows(&self, rows: &[u64], out: &mut Tuples) {
        self.check(rows.iter().copied().max());
        let numbers = rows.iter().copied();
        match &self.rows {
            RowTemplate::Even(template) => template.encode(numbers, out),
            RowTemplate::Uneven(varying) => varying.encode(numbers, out),
        }
    }

    fn check(&self, last: Option<u64>) {
        if let Some(row) = last {
            assert!(row < self.limit, "a column of unique values has no value for row {row}");
        }
    }
}

/// For how many rows the column has values.
fn limit(column: &Column) -> u64 {
    match &column.values {
        Values::Unique(turn) => match column.kind.distinct() {
            Some(distinct) if turn.of > distinct => distinct.saturating_mul(turn.every),
            _ => u64::MAX,
        },
        Values::Nulls { values, .. } => limit(&Column { values: (**values).clone(), ..column.clone() }),
        _ => u64::MAX,
    }
}

/// Length of a `jsonb` without its header, bytes; none if the text has what is not read here.
pub(crate) fn jsonb_length(text: &str) -> Option<u32> {
    let mut bytes = Vec::new();
    jsonb::payload(text, &mut bytes)?;
    u32::try_from(bytes.len()).ok()
}

fn supports(column: &Column) -> Result<(), Unstorable> {
    let values = match &column.values {
        Values::Nulls { values, .. } => values,
        values => values,
    };
    let name = || column.name.clone();
    match values {
        Values::Null => Ok(()),
        Values::Server => Err(Unstorable::Server { column: name() }),
        _ if !attribute::has_form(&column.kind) => {
            Err(Unstorable::Kind { column: name(), kind: column.kind.sql() })
        }
        values => match values.literals().find(|text| !literal::is_readable(&column.kind, text)) {
            None => Ok(()),
            Some(text) => {
                Err(Unstorable::Literal { column: name(), kind: column.kind.sql(), value: text.to_owned() })
            }
        },
    }
}
