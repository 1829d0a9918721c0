//! COPY's text format: fields separated by tabs, `\N` for NULL, backslash escapes.

use std::ops::Range;

use super::Counter;
use crate::{Column, Values};

/// A row is constant stretches of bytes with numbers between them.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    fields: Vec<Field>,
    /// What follows the last number, up to and with the line feed.
    tail: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Field {
    before: Vec<u8>,
    values: Values,
}

impl Rows {
    pub(super) fn new(columns: &[Column]) -> Self {
        let mut fields = Vec::new();
        let mut constant = Vec::new();
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                constant.push(b'\t');
            }
            match &column.values {
                Values::Serial { .. } | Values::Group { .. } => fields
                    .push(Field { before: std::mem::take(&mut constant), values: column.values.clone() }),
                Values::Int(value) => constant.extend(value.to_string().as_bytes()),
                Values::Text(text) => escape(text, &mut constant),
                Values::Null => constant.extend(b"\\N"),
                _ => unimplemented!(),
            }
        }
        constant.push(b'\n');
        Self { fields, tail: constant }
    }

    pub(super) fn encode(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut counters: Vec<Counter> = self
            .fields
            .iter()
            .map(|field| Counter::at(&field.values, range.start).expect("only changing fields"))
            .collect();
        let mut digits = itoa::Buffer::new();
        for _ in range {
            for (field, counter) in self.fields.iter().zip(&mut counters) {
                out.extend_from_slice(&field.before);
                out.extend_from_slice(digits.format(counter.next()).as_bytes());
            }
            out.extend_from_slice(&self.tail);
        }
    }
}

fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            byte => out.push(byte),
        }
    }
}
