//! COPY's text format: fields separated by tabs, `\N` for NULL, backslash escapes.

use crate::generate::{Generator, Reader};
use crate::value::Value;
use crate::{Column, Kind, Table, Values, render};

/// A row is constant stretches of bytes with changing fields between them.
#[derive(Clone, Debug)]
pub(super) struct TextRows {
    fields: Vec<Field>,
    /// The bytes after the last changing field, up to and with the line feed.
    tail: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Field {
    before: Vec<u8>,
    generator: Generator,
}

impl TextRows {
    pub(super) fn new(table: &Table, columns: &[Column]) -> Self {
        let mut fields = Vec::new();
        let mut constant = Vec::new();
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                constant.push(b'\t');
            }
            match &column.values {
                Values::Int(value) => constant.extend(value.to_string().as_bytes()),
                Values::Text(text) => escape(text.as_bytes(), &mut constant),
                Values::Null => constant.extend(NULL),
                _ => fields.push(Field {
                    before: std::mem::take(&mut constant),
                    generator: Generator::new(table, column),
                }),
            }
        }
        constant.push(b'\n');
        Self { fields, tail: constant }
    }

    pub(super) fn encode<'a>(&'a self, rows: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
        let reading = |field: &'a Field| {
            let integer = matches!(field.generator.kind(), Kind::Int2 | Kind::Int4 | Kind::Int8);
            (&*field.before, Reader::new(&field.generator), integer)
        };
        let mut fields: Vec<(&[u8], Reader<'_>, bool)> = self.fields.iter().map(reading).collect();
        let mut digits = itoa::Buffer::new();
        for row in rows {
            for (before, reader, integer) in &mut fields {
                out.extend_from_slice(before);
                let kind = reader.kind();
                match reader.counted(row) {
                    // By far the most frequent: worth the shortest way.
                    Some(number) if *integer => out.extend_from_slice(digits.format(number).as_bytes()),
                    _ => write(kind, reader.value(row), out),
                }
            }
            out.extend_from_slice(&self.tail);
        }
    }
}

const NULL: &[u8] = b"\\N";

fn write(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    match (value, kind) {
        (Value::Null, _) => out.extend_from_slice(NULL),
        (Value::Text(text), _) => escape(text.as_bytes(), out),
        (Value::Units(units), Kind::Enum { labels, .. }) => {
            escape(render::label(labels, units).as_bytes(), out);
        }
        (Value::Bytes(bytes), _) => {
            out.extend_from_slice(b"\\\\x");
            render::hex(bytes, out);
        }
        (value @ Value::Elements(_), kind) => {
            let start = out.len();
            render::value(kind, value, out);
            if out[start..].iter().any(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r')) {
                let text = out.split_off(start);
                escape(&text, out);
            }
        }
        (value, kind) => render::value(kind, value, out),
    }
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            byte => out.push(*byte),
        }
    }
}
