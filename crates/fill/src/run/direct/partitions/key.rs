//! Values of the columns by which rows are partitioned, as the server compares and hashes them.

use rowgen::{Column, Kind, RowHash, Table, TupleEncoder, Tuples};
use tokio_postgres::types::{FromSql, Type};

use super::super::sorted::{Sortable, characters};
use super::numeric::Numeric;
use crate::run::rows::Batch;

/// A value that is not NULL. Those of one column are all of one variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// An integer, or a type that is stored as one.
    Integer(i64),
    Uuid(u128),
    /// Compared byte by byte.
    Text(Vec<u8>),
    Numeric(Numeric),
}

impl Key {
    pub(super) fn hash_into(&self, hash: &mut RowHash) {
        match self {
            Self::Integer(key) => hash.integer(*key),
            Self::Uuid(key) => hash.bytes(&key.to_be_bytes()),
            Self::Text(key) => hash.bytes(key),
            Self::Numeric(key) => key.hash_into(hash),
        }
    }
}

/// How values of a type are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Integer,
    /// Its labels with their OIDs.
    Enum(Vec<(String, u32)>),
    Uuid,
    Text,
    /// `char(n)`: blanks at the end do not count (`bpcharcmp`, `hashbpchar`).
    Padded,
    Numeric,
}

impl Form {
    /// None if pgrig does not compare values of this kind.
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        Some(match kind {
            Kind::Bool
            | Kind::Int2
            | Kind::Int4
            | Kind::Int8
            | Kind::Date
            | Kind::Time
            | Kind::Timestamp
            | Kind::TimestampTz => Self::Integer,
            Kind::Enum { labels, oids, .. } => {
                Self::Enum(labels.iter().cloned().zip(oids.iter().copied()).collect())
            }
            Kind::Uuid => Self::Uuid,
            Kind::Text | Kind::Varchar(_) => Self::Text,
            Kind::Char(_) => Self::Padded,
            Kind::Numeric(_) => Self::Numeric,
            _ => return None,
        })
    }

    /// Whether the order of keys is that of the server's values; `has_bytes`: whether it compares texts byte by byte.
    pub(super) fn is_ordered(&self, has_bytes: bool) -> bool {
        match self {
            Self::Integer | Self::Uuid | Self::Numeric => true,
            Self::Text | Self::Padded => has_bytes,
            Self::Enum(_) => false,
        }
    }

    /// The type that literals are cast to.
    pub(super) fn sql(kind: &Kind) -> String {
        match kind {
            Kind::Varchar(_) => Kind::Text.sql(),
            kind => kind.sql(),
        }
    }

    /// Reads a stored value.
    fn of_stored(&self, stored: &[u8]) -> Key {
        match self {
            Self::Integer | Self::Enum(_) => Key::Integer(i64::of(stored)),
            Self::Uuid => Key::Uuid(u128::of(stored)),
            Self::Text => Key::Text(characters(stored).to_vec()),
            Self::Padded => Key::Text(unpadded(characters(stored)).to_vec()),
            Self::Numeric => Key::Numeric(Numeric::of_stored(characters(stored))),
        }
    }

    /// Reads a value in the binary format of the protocol.
    pub(super) fn of_wire(&self, wire: &[u8]) -> Option<Key> {
        Some(match self {
            Self::Integer => {
                let stored: Vec<u8> = wire.iter().rev().copied().collect();
                Key::Integer(i64::of(&stored))
            }
            Self::Enum(labels) => {
                let (_, oid) = labels.iter().find(|(label, _)| label.as_bytes() == wire)?;
                Key::Integer(oid.cast_signed().into())
            }
            Self::Uuid => Key::Uuid(u128::from_be_bytes(wire.try_into().ok()?)),
            Self::Text => Key::Text(wire.to_vec()),
            Self::Padded => Key::Text(unpadded(wire).to_vec()),
            Self::Numeric => Key::Numeric(Numeric::of_wire(wire)?),
        })
    }
}

/// A text without the blanks at its end.
fn unpadded(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
    &text[..text.len() - blanks]
}

/// A value as the server sends it.
pub(super) struct Wire(pub(super) Vec<u8>);

impl<'a> FromSql<'a> for Wire {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A column of which keys are made.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) column: Column,
    pub(super) form: Form,
    /// Encoder of a table that has only this column.
    encoder: TupleEncoder,
}

impl KeyColumn {
    /// None if pgrig does not make or compare its values.
    pub(super) fn of(table: &Table, name: &str) -> Option<Self> {
        let column = table.columns.iter().find(|column| column.name == name)?;
        let alone = Table { columns: vec![column.clone()], ..table.clone() };
        let encoder = TupleEncoder::new(&alone).ok()?;
        Some(Self { column: column.clone(), form: Form::of(&column.kind)?, encoder })
    }

    /// The keys of these rows; None is NULL.
    pub(super) fn keys(&self, rows: &Batch, tuples: &mut Tuples, out: &mut Vec<Option<Key>>) {
        tuples.clear();
        out.clear();
        match rows {
            Batch::Range(range) => self.encoder.encode(range.clone(), tuples),
            Batch::Listed(rows) => self.encoder.encode_rows(rows, tuples),
        }
        // Before the value is a byte of padding, and where there is none, the null bitmap.
        out.extend(
            tuples.bodies().map(|body| (!body.has_nulls).then(|| self.form.of_stored(&body.bytes[1..]))),
        );
    }
}
