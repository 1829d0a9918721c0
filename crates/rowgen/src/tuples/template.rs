//! Rows of one length: a body that is copied, with what changes patched in.

use super::attribute::{Attribute, Content, is_integer, payload};
use super::batch::{Features, Tuples};
use super::varying::{Varying, before_attributes};
use crate::generate::{Generator, Reader};

/// A body with the places of what changes in it.
#[derive(Clone, Debug)]
pub(super) struct Template {
    body: Vec<u8>,
    features: Features,
    patches: Vec<Patch>,
}

/// A payload that changes from row to row, but not in length.
#[derive(Clone, Debug)]
struct Patch {
    offset: usize,
    length: usize,
    generator: Generator,
}

impl Template {
    /// None if lengths, or what is NULL, differ from row to row.
    pub(super) fn new(rows: &Varying) -> Option<Self> {
        // Any row will do.
        let mut row = Tuples::new();
        rows.encode([0].into_iter(), &mut row);
        let body = row.bodies().next()?;
        let before = before_attributes(rows.attributes.len(), body.has_nulls);
        let mut patches = Vec::new();
        let mut end = 0;
        for Attribute { layout, content } in &rows.attributes {
            let length = match content {
                Content::Null => continue,
                Content::Constant(bytes) => u32::try_from(bytes.len()).expect("a value is below 1 GB"),
                Content::Generated { generator, lengths: (least, most) } => {
                    if least != most || generator.may_be_null() {
                        return None;
                    }
                    *most
                }
            };
            let place = layout.place(end, length);
            if let Content::Generated { generator, .. } = content {
                let (offset, length) = (before + place.payload as usize, length as usize);
                patches.push(Patch { offset, length, generator: generator.clone() });
            }
            end = place.end;
        }
        let features = Features { has_nulls: body.has_nulls, has_varwidth: body.has_varwidth };
        debug_assert_eq!(body.bytes.len(), before + end as usize);
        Some(Self { body: body.bytes.to_vec(), features, patches })
    }

    pub(super) fn length(&self) -> u32 {
        u32::try_from(self.body.len()).expect("a row is below 1 GB")
    }

    pub(super) fn encode(&self, rows: &(impl Iterator<Item = u64> + Clone), out: &mut Tuples) {
        let bodies = out.push_copies(&self.body, self.features, rows.clone().count());
        let mut scratch = Vec::new();
        for Patch { offset, length, generator } in &self.patches {
            let mut reader = Reader::new(generator);
            let kind = reader.kind();
            let places = bodies.chunks_exact_mut(self.body.len());
            let places = places.map(|body| &mut body[*offset..*offset + *length]);
            let integer = is_integer(kind) && !generator.is_literal();
            match (integer, *length) {
                (true, 4) => places.zip(rows.clone()).for_each(|(place, row)| {
                    place.copy_from_slice(&reader.units(row).to_le_bytes()[..4]);
                }),
                (true, 8) => places.zip(rows.clone()).for_each(|(place, row)| {
                    place.copy_from_slice(&reader.units(row).to_le_bytes());
                }),
                _ => places.zip(rows.clone()).for_each(|(place, row)| {
                    scratch.clear();
                    payload(kind, reader.value(row), &mut scratch);
                    place.copy_from_slice(&scratch);
                }),
            }
        }
    }
}
