//! Rows attribute by attribute.

use super::attribute::{Attribute, Content, Layout, payload};
use super::batch::{Features, Tuples};
use super::computed::Computing;
use crate::generate::Reader;
use crate::value::Value;

/// `SizeofHeapTupleHeader`: what comes before a body.
const FIXED_HEADER: usize = 23;
/// `MAXIMUM_ALIGNOF`.
const MAX_ALIGN: usize = 8;

/// Rows that may differ in length and in what is NULL.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    pub(super) attributes: Vec<Attribute>,
}

/// An attribute while rows are written.
enum Field<'a> {
    Null,
    Constant(Layout, &'a [u8]),
    Generated(Layout, Reader<'a>),
    Computed(Layout, Computing<'a>),
}

impl Varying {
    pub(super) fn new(attributes: Vec<Attribute>) -> Self {
        Self { attributes }
    }

    pub(super) fn encode(&self, rows: impl Iterator<Item = u64>, out: &mut Tuples) {
        let mut fields: Vec<Field<'_>> = self.attributes.iter().map(Field::from).collect();
        let may_have_nulls = self.attributes.iter().any(Attribute::may_be_null);
        for row in rows {
            out.push(|out| {
                let begin = out.len();
                let has_nulls = may_have_nulls && fields.iter_mut().any(|field| field.is_null(row));
                out.resize(begin + before_attributes(fields.len(), has_nulls), 0);
                if has_nulls {
                    for (position, field) in fields.iter_mut().enumerate() {
                        // A 1 says that there is a value (`att_isnull` in `access/tupmacs.h`).
                        out[begin + position / 8] |= u8::from(!field.is_null(row)) << (position % 8);
                    }
                }
                let start = out.len();
                let mut has_varwidth = false;
                for field in &mut fields {
                    has_varwidth |= field.write(row, start, out);
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
            Content::Generated { generator, .. } => Self::Generated(attribute.layout, Reader::new(generator)),
            Content::Computed(computed) => Self::Computed(attribute.layout, computed.into()),
        }
    }
}

impl Field<'_> {
    fn is_null(&mut self, row: u64) -> bool {
        match self {
            Self::Null => true,
            Self::Constant(..) => false,
            Self::Generated(_, reader) => reader.is_null(row),
            Self::Computed(_, computing) => computing.is_null(row),
        }
    }

    /// Appends the row's attribute; whether it is of a varying-length type, and not NULL.
    fn write(&mut self, row: u64, start: usize, out: &mut Vec<u8>) -> bool {
        let layout = match self {
            Self::Null => return false,
            Self::Constant(layout, bytes) => {
                layout.write(start, out, |out| out.extend_from_slice(bytes));
                *layout
            }
            Self::Generated(layout, reader) => {
                let kind = reader.kind();
                match reader.value(row) {
                    Value::Null => return false,
                    value => layout.write(start, out, |out| payload(kind, value, out)),
                }
                *layout
            }
            Self::Computed(layout, computing) => {
                if computing.is_null(row) {
                    return false;
                }
                layout.write(start, out, |out| computing.write(row, out));
                *layout
            }
        };
        matches!(layout, Layout::Varlena { .. })
    }
}
