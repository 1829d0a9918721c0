//! Writes rows attribute by attribute.

use super::attribute::{Attribute, Content, Layout, payload};
use super::batch::{Features, Tuples};
use super::computed::Computing;
use crate::Kind;
use crate::generate::Reader;

/// `SizeofHeapTupleHeader`: the bytes before a body.
const FIXED_HEADER: usize = 23;
/// `MAXIMUM_ALIGNOF`.
const MAX_ALIGN: usize = 8;

/// Rows that may differ in length and in their NULLs.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    pub(super) attributes: Vec<Attribute>,
}

/// An attribute while rows are written.
enum Field<'a> {
    Null,
    Constant(Layout, &'a [u8]),
    Generated {
        layout: Layout,
        reader: Reader<'a>,
        /// Whether the reader can append the text directly as it is stored.
        is_appended: bool,
    },
    Computed(Layout, Computing<'a>),
}

impl Varying {
    pub(super) fn new(attributes: Vec<Attribute>) -> Self {
        Self { attributes }
    }

    pub(super) fn encode(&self, rows: impl Iterator<Item = u64>, out: &mut Tuples) {
        let mut fields: Vec<Field<'_>> = self.attributes.iter().map(Field::from).collect();
        let nullable: Vec<usize> =
            (0..fields.len()).filter(|at| self.attributes[*at].may_be_null()).collect();
        // A 1 says that there is a value (`att_isnull` in `access/tupmacs.h`).
        let mut full = vec![u8::MAX; fields.len().div_ceil(8)];
        if let (Some(last), used @ 1..) = (full.last_mut(), fields.len() % 8) {
            *last = (1 << used) - 1;
        }
        let mut bitmap = full.clone();
        for row in rows {
            out.push(|out| {
                bitmap.copy_from_slice(&full);
                let mut has_nulls = false;
                for position in &nullable {
                    let is_null = fields[*position].is_null(row);
                    bitmap[position / 8] &= !(u8::from(is_null) << (position % 8));
                    has_nulls |= is_null;
                }
                let begin = out.len();
                out.resize(begin + before_attributes(fields.len(), has_nulls), 0);
                if has_nulls {
                    out[begin..begin + bitmap.len()].copy_from_slice(&bitmap);
                }
                let start = out.len();
                let mut has_varwidth = false;
                for (position, field) in fields.iter_mut().enumerate() {
                    if bitmap[position / 8] >> (position % 8) & 1 == 1 {
                        has_varwidth |= field.write(row, start, out);
                    }
                }
                Features { has_nulls, has_varwidth }
            });
        }
    }
}

/// Length of bitmap and padding, bytes.
pub(super) fn before_attributes(attributes: usize, has_nulls: bool) -> usize {
    let bitmap = if has_nulls { attributes.div_ceil(8) } else { 0 };
    (FIXED_HEADER + bitmap).next_multiple_of(MAX_ALIGN) - FIXED_HEADER
}

impl Attribute {
    pub(super) fn may_be_null(&self) -> bool {
        match &self.content {
            Content::Null | Content::Computed(_) => true,
            Content::Constant(_) => false,
            Content::Generated { generator, .. } => generator.may_be_null(),
        }
    }
}

impl<'a> From<&'a Attribute> for Field<'a> {
    fn from(attribute: &'a Attribute) -> Self {
        match &attribute.content {
            Content::Null => Self::Null,
            Content::Constant(bytes) => Self::Constant(attribute.layout, bytes),
            Content::Generated { generator, .. } => Self::Generated {
                layout: attribute.layout,
                reader: Reader::new(generator),
                is_appended: matches!(generator.kind(), Kind::Text | Kind::Varchar(_)),
            },
            Content::Computed(computed) => Self::Computed(attribute.layout, computed.into()),
        }
    }
}

impl Field<'_> {
    fn is_null(&mut self, row: u64) -> bool {
        match self {
            Self::Null => true,
            Self::Constant(..) => false,
            Self::Generated { reader, .. } => reader.is_null(row),
            Self::Computed(_, computing) => computing.is_null(row),
        }
    }

    /// Appends the row's attribute, which is not NULL; whether it is of a varying-length type.
    fn write(&mut self, row: u64, start: usize, out: &mut Vec<u8>) -> bool {
        let layout = match self {
            Self::Null => return false,
            Self::Constant(layout, bytes) => {
                layout.write(start, out, |out| out.extend_from_slice(bytes));
                *layout
            }
            Self::Generated { layout, reader, is_appended } => {
                let kind = reader.kind();
                layout.write(start, out, |out| {
                    if !*is_appended || reader.append(row, out).is_none() {
                        payload(kind, reader.present(row), out);
                    }
                });
                *layout
            }
            Self::Computed(layout, computing) => {
                layout.write(start, out, |out| computing.write(row, out));
                *layout
            }
        };
        matches!(layout, Layout::Varlena { .. })
    }
}
