//! Sizes of values in a heap tuple, to predict a table's size.

mod text;

use crate::generate::{Generator, Reader};
use crate::numeric::{Digits, has_short_header};
use crate::units::decimals;
use crate::value::Value;
use crate::{Column, Kind, Precision, Table, Values, render};

/// A value as a tuple stores it, not yet compressed or moved out of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// NULL: no bytes, a bit in the null bitmap.
    Null,
    /// Of a fixed-length type.
    Fixed {
        /// `typlen`, bytes.
        length: u32,
        /// Alignment by `typalign`, bytes.
        align: u32,
    },
    /// Of a varying-length type. Exact for numbers, text, bytes and bits; for text search and
    /// `jsonb` with escapes within a few percent.
    Varying {
        /// Bytes, with the header of 1 or 4 bytes.
        length: u32,
        /// Bytes; 1 with the short header.
        align: u32,
    },
}

/// Tells how a table's rows are stored.
#[derive(Clone, Debug)]
pub struct Storage {
    generators: Vec<Option<Generator>>,
}

impl Storage {
    /// For all of the table's columns. Those left to the server are taken to have values as any
    /// column of their type, or NULL if there are none.
    ///
    /// # Panics
    /// If a column's values do not suit its type.
    pub fn new(table: &Table) -> Self {
        let generator = |column: &Column| match column.values {
            Values::Server => {
                let column = Column { values: Values::Any, ..column.clone() };
                column.check().is_ok().then(|| Generator::new(table, &column))
            }
            _ => Some(Generator::new(table, column)),
        };
        Self { generators: table.columns.iter().map(generator).collect() }
    }

    /// The values of a row, column by column.
    pub fn row(&self, row: u64) -> impl Iterator<Item = Stored> {
        self.generators.iter().map(move |generator| {
            generator.as_ref().map_or(Stored::Null, |generator| {
                let mut reader = Reader::new(generator);
                stored(reader.kind(), reader.value(row))
            })
        })
    }
}

impl Kind {
    /// Whether all values of the type have the same length.
    pub fn has_fixed_width(&self) -> bool {
        self.fixed_width().is_some()
    }

    /// Length and alignment of the type's values, bytes; none if they differ in length.
    pub(crate) fn fixed_width(&self) -> Option<(u32, u32)> {
        Some(match self {
            Self::Bool => (1, 1),
            Self::Int2 => (2, 2),
            Self::Int4 | Self::Float4 | Self::Date | Self::Oid | Self::Enum { .. } => (4, 4),
            Self::Int8
            | Self::Float8
            | Self::Money
            | Self::PgLsn
            | Self::Time
            | Self::Timestamp
            | Self::TimestampTz => (8, 8),
            Self::TimeTz => (12, 8),
            Self::Interval | Self::Point => (16, 8),
            Self::Circle | Self::Line => (24, 8),
            Self::Lseg | Self::Box => (32, 8),
            Self::Uuid => (16, 1),
            Self::Macaddr => (6, 4),
            Self::Macaddr8 => (8, 4),
            Self::Name => (64, 1),
            _ => return None,
        })
    }

    /// Alignment of values, those of varying length with long headers, bytes.
    pub(crate) fn align(&self) -> u32 {
        self.fixed_width().map_or_else(|| self.varying_align(), |(_, align)| align)
    }

    /// Alignment of a varying-length type's values with long headers, bytes.
    pub(crate) fn varying_align(&self) -> u32 {
        let is_double = match self {
            Self::Path | Self::Polygon | Self::Composite { .. } => true,
            // Not `element.align().max(4)`: rustc 1.95 (LLVM 22) turns that recursion into a loop that
            // returns the element's alignment and loses the maximum, as tests with `name[]` showed.
            Self::Array(element) | Self::Range { element, .. } | Self::Multirange { element, .. } => {
                element.align() == 8
            }
            _ => false,
        };
        if is_double { 8 } else { 4 }
    }
}

fn stored(kind: &Kind, value: Value<'_>) -> Stored {
    if value == Value::Null {
        return Stored::Null;
    }
    if let Some((length, align)) = kind.fixed_width() {
        return Stored::Fixed { length, align };
    }
    let length = match value {
        Value::Bytes(bytes) => count(bytes),
        Value::Bits { length, .. } => bits(length),
        Value::Address(_) => IPV4,
        Value::Units(units) => match kind {
            Kind::Numeric(precision) => {
                let digits = Digits::new(units.unsigned_abs().into(), decimals(*precision));
                // Without a scale the decimals are few.
                numeric(digits.digits().len(), precision.map_or(0, scale), digits.weight)
            }
            kind => text::length(kind, itoa::Buffer::new().format(units)),
        },
        Value::Plain(bytes) => text::length(kind, std::str::from_utf8(bytes).expect("ASCII")),
        Value::Text(text) => text::length(kind, text),
        value @ (Value::Json(_) | Value::Elements(_)) => {
            let mut text = Vec::new();
            render::value(kind, value, &mut text);
            text::length(kind, std::str::from_utf8(&text).expect("put together from text"))
        }
        Value::Null | Value::Real(_) | Value::Uuid(_) => unreachable!("of types with a fixed length"),
    };
    varying(kind, length)
}

/// A value of varying length, with its header. A short header is used up to 127 bytes, itself
/// included.
fn varying(kind: &Kind, length: u32) -> Stored {
    // typstorage in pg_type.dat: a plain one has no short header.
    if length <= 126 && *kind != Kind::TsQuery {
        Stored::Varying { length: 1 + length, align: 1 }
    } else {
        Stored::Varying { length: 4 + length, align: kind.varying_align() }
    }
}

/// Address family, bits of the network, address (`inet_struct`).
const IPV4: u32 = 6;

/// Length of a bit string: the number of bits, then the bits.
fn bits(length: u32) -> u32 {
    4 + length.div_ceil(8)
}

/// A header, then digits of base 10,000 (`NumericShort`, `NumericLong`).
fn numeric(digits: usize, scale: u16, weight: i16) -> u32 {
    let header = if has_short_header(scale, weight) { 2 } else { 4 };
    header + 2 * u32::try_from(digits).expect("few digits")
}

/// Decimals shown.
fn scale(precision: Precision) -> u16 {
    precision.scale.max(0).cast_unsigned()
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("a value is below 1 GB")
}
