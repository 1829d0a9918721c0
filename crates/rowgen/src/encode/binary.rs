//! COPY's binary format: per row a field count, then a length and big-endian bytes for each field.

use std::ops::Range;

use super::Counter;
use crate::{Column, Kind, Values};

pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
pub(super) const TRAILER: &[u8] = b"\xff\xff";

/// Every row has the same length, so it is a template with the changing fields patched in.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    template: Vec<u8>,
    patches: Vec<Patch>,
}

#[derive(Clone, Debug)]
struct Patch {
    offset: usize,
    width: Width,
    values: Values,
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Four,
    Eight,
}

impl Rows {
    pub(super) fn new(columns: &[Column]) -> Self {
        let count = i16::try_from(columns.len()).expect("PostgreSQL has at most 1600 columns");
        let mut template = count.to_be_bytes().to_vec();
        let mut patches = Vec::new();
        for column in columns {
            let width = match column.kind {
                Kind::Int4 | Kind::Char(_) => Width::Four,
                Kind::Int8 | Kind::Timestamp => Width::Eight,
                _ => unimplemented!(),
            };
            match &column.values {
                Values::Serial { .. } | Values::Group { .. } => {
                    push_int(&mut template, width, 0);
                    let offset = template.len() - width.bytes();
                    patches.push(Patch { offset, width, values: column.values.clone() });
                }
                Values::Int(value) => push_int(&mut template, width, *value),
                Values::Text(text) => push_field(&mut template, text.as_bytes()),
                Values::Null => template.extend((-1_i32).to_be_bytes()),
                _ => unimplemented!(),
            }
        }
        Self { template, patches }
    }

    pub(super) fn encode(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let length = self.template.len();
        let start = out.len();
        for _ in range.clone() {
            out.extend_from_slice(&self.template);
        }
        for patch in &self.patches {
            let mut counter = Counter::at(&patch.values, range.start).expect("only changing fields");
            for row in out[start..].chunks_exact_mut(length) {
                patch.write(row, counter.next());
            }
        }
    }
}

impl Patch {
    #[inline]
    fn write(&self, row: &mut [u8], value: u64) {
        match self.width {
            Width::Four => {
                // Ids past int's range live in bigint columns: see pgbench::account_id.
                let value = u32::try_from(value).expect("a 4-byte id");
                row[self.offset..self.offset + 4].copy_from_slice(&value.to_be_bytes());
            }
            Width::Eight => row[self.offset..self.offset + 8].copy_from_slice(&value.to_be_bytes()),
        }
    }
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

fn push_int(template: &mut Vec<u8>, width: Width, value: i64) {
    match width {
        Width::Four => {
            let value = i32::try_from(value).expect("an int constant fits its column");
            push_field(template, &value.to_be_bytes());
        }
        Width::Eight => push_field(template, &value.to_be_bytes()),
    }
}

fn push_field(template: &mut Vec<u8>, bytes: &[u8]) {
    let length = i32::try_from(bytes.len()).expect("a field is below 2 GB");
    template.extend(length.to_be_bytes());
    template.extend(bytes);
}
