//! COPY's binary format: per row a field count, then a length and big-endian bytes for each field.

mod field;

use self::field::{fixed_length, is_integer};
use crate::generate::{Generator, Reader};
use crate::value::Value;
use crate::{Column, Table, Values};

pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
pub(super) const TRAILER: &[u8] = b"\xff\xff";

/// Whether the column's values have a binary form here.
pub(super) fn supports(column: &Column) -> bool {
    let written = |values: &Values| match values {
        Values::Server | Values::Null | Values::Int(_) => true,
        values if values.is_literal() => field::is_its_text(&column.kind),
        _ => field::has_form(&column.kind),
    };
    written(column.values.without_nulls())
}

/// Rows as they can be written fastest.
#[derive(Clone, Debug)]
pub(super) enum BinaryRows {
    /// Every row has the same length.
    Fixed(Fixed),
    Varying(Varying),
}

impl BinaryRows {
    pub(super) fn new(table: &Table, columns: &[Column]) -> Self {
        let count = i16::try_from(columns.len()).expect("PostgreSQL has at most 1600 columns");
        let mut constant = count.to_be_bytes().to_vec();
        let mut fields = Vec::new();
        for column in columns {
            assert!(supports(column), "{} has no binary form", column.kind.sql());
            match &column.values {
                Values::Int(value) => field::write(&column.kind, Value::Units(*value), &mut constant),
                Values::Text(text) => field::write(&column.kind, Value::Text(text), &mut constant),
                Values::Null => field::write(&column.kind, Value::Null, &mut constant),
                _ => fields.push(Field {
                    before: std::mem::take(&mut constant),
                    generator: Generator::new(table, column),
                }),
            }
        }
        let varying = Varying { fields, tail: constant };
        Fixed::from(&varying).map_or_else(|| Self::Varying(varying), Self::Fixed)
    }

    pub(super) fn encode(&self, rows: impl Iterator<Item = u64> + Clone, out: &mut Vec<u8>) {
        match self {
            Self::Fixed(fixed) => fixed.encode(&rows, out),
            Self::Varying(varying) => varying.encode(rows, out),
        }
    }
}

/// Constant stretches of bytes with changing fields between them.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    fields: Vec<Field>,
    /// The bytes after the last changing field.
    tail: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Field {
    before: Vec<u8>,
    generator: Generator,
}

impl Varying {
    fn encode(&self, rows: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
        let mut fields: Vec<(&[u8], Reader<'_>)> =
            self.fields.iter().map(|field| (&*field.before, Reader::new(&field.generator))).collect();
        for row in rows {
            for (before, reader) in &mut fields {
                out.extend_from_slice(before);
                let kind = reader.kind();
                field::write(kind, reader.value(row), out);
            }
            out.extend_from_slice(&self.tail);
        }
    }
}

/// A template of a row with the changing fields patched in.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    template: Vec<u8>,
    patches: Vec<Patch>,
}

#[derive(Clone, Debug)]
struct Patch {
    offset: usize,
    length: usize,
    generator: Generator,
}

impl Fixed {
    /// None if a field's length changes.
    fn from(rows: &Varying) -> Option<Self> {
        let mut template = Vec::new();
        let mut patches = Vec::new();
        for Field { before, generator } in &rows.fields {
            let length = fixed_length(generator.kind()).filter(|_| !generator.may_be_null())?;
            template.extend_from_slice(before);
            template.extend(u32::try_from(length).expect("a few bytes").to_be_bytes());
            patches.push(Patch { offset: template.len(), length, generator: generator.clone() });
            template.resize(template.len() + length, 0);
        }
        template.extend_from_slice(&rows.tail);
        Some(Self { template, patches })
    }

    fn encode(&self, rows: &(impl Iterator<Item = u64> + Clone), out: &mut Vec<u8>) {
        let start = out.len();
        for _ in rows.clone() {
            out.extend_from_slice(&self.template);
        }
        let mut scratch = Vec::new();
        for Patch { offset, length, generator } in &self.patches {
            let mut reader = Reader::new(generator);
            let kind = reader.kind();
            let fields = out[start..].chunks_exact_mut(self.template.len());
            let fields = fields.map(|row| &mut row[*offset..*offset + *length]);
            match (is_integer(kind), *length) {
                (true, 4) => fields.zip(rows.clone()).for_each(|(field, row)| {
                    field.copy_from_slice(&reader.units(row).to_be_bytes()[4..]);
                }),
                (true, 8) => fields.zip(rows.clone()).for_each(|(field, row)| {
                    field.copy_from_slice(&reader.units(row).to_be_bytes());
                }),
                _ => fields.zip(rows.clone()).for_each(|(field, row)| {
                    scratch.clear();
                    field::write(kind, reader.value(row), &mut scratch);
                    field.copy_from_slice(&scratch[size_of::<u32>()..]);
                }),
            }
        }
    }
}
