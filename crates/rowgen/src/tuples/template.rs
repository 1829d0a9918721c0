//! Rows of one length: a body is copied, and the bytes that differ from row to row are overwritten.

use super::attribute::{Attribute, Content, is_integer, is_its_text, payload};
use super::batch::{Features, Tuples};
use super::varying::{Varying, before_attributes};
use crate::generate::{Generator, Reader};
use crate::value::Value;

/// Size of the copies of a body that are appended in one step, bytes.
const COPIED: usize = 16 << 10;

/// A body with the places of the bytes that change from row to row.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// Copies of the body: enough to copy at once, few enough to stay in the processor's cache while the changing
    /// bytes are patched in.
    copies: Vec<u8>,
    /// Length of one body, bytes.
    length: usize,
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
    /// None if the lengths, or the columns that are NULL, differ from row to row.
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
                Content::Computed(_) => return None,
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
        let length = body.bytes.len();
        let copies = body.bytes.repeat((COPIED / length).max(1));
        Some(Self { copies, length, features, patches })
    }

    /// Length of a body, bytes.
    pub(super) fn length(&self) -> u32 {
        u32::try_from(self.length).expect("a row is below 1 GB")
    }

    pub(super) fn encode(&self, mut rows: impl Iterator<Item = u64> + Clone, out: &mut Tuples) {
        let mut patching: Vec<Patching<'_>> = self.patches.iter().map(Patching::from).collect();
        loop {
            let count = rows.clone().take(self.copies.len() / self.length).count();
            let Some(last) = count.checked_sub(1) else { return };
            let bodies = out.push_many(&self.copies[..count * self.length], self.length, self.features);
            for patching in &mut patching {
                patching.patch(bodies, self.length, rows.clone());
            }
            rows.nth(last);
        }
    }
}

/// A [`Patch`] being made.
struct Patching<'a> {
    patch: &'a Patch,
    reader: Reader<'a>,
    scratch: Vec<u8>,
}

impl<'a> From<&'a Patch> for Patching<'a> {
    fn from(patch: &'a Patch) -> Self {
        Self { patch, reader: Reader::new(&patch.generator), scratch: Vec::new() }
    }
}

impl Patching<'_> {
    /// Overwrites the payload in each of the bodies, which stand one after another, by those of the
    /// rows.
    fn patch(&mut self, bodies: &mut [u8], body: usize, rows: impl Iterator<Item = u64>) {
        let Self { patch: Patch { offset, length, generator }, reader, scratch } = self;
        let (offset, length) = (*offset, *length);
        let kind = reader.kind();
        let places = bodies.chunks_exact_mut(body).map(|body| &mut body[offset..offset + length]).zip(rows);
        match (is_integer(kind) && !generator.is_literal(), length) {
            (true, 4) => places.for_each(|(place, row)| {
                place.copy_from_slice(&reader.units(row).to_le_bytes()[..4]);
            }),
            (true, 8) => places.for_each(|(place, row)| {
                place.copy_from_slice(&reader.units(row).to_le_bytes());
            }),
            _ => places.for_each(|(place, row)| match reader.value(row) {
                // Fillers: worth the shortest way.
                Value::Plain(bytes) if bytes.len() == length && is_its_text(kind) => {
                    place.copy_from_slice(bytes);
                }
                Value::Bytes(bytes) => place.copy_from_slice(bytes),
                value => {
                    scratch.clear();
                    payload(kind, value, scratch);
                    place.copy_from_slice(scratch);
                }
            }),
        }
    }
}
