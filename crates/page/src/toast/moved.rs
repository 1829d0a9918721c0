//! Values that were moved out of rows, as tuples of the TOAST table.

use super::{HEADER, header};
use crate::TupleFlags;

/// Values that were moved out of some rows, cut into chunks.
#[derive(Clone, Debug, Default)]
pub struct MovedValues {
    /// Places of the values' numbers in the bodies.
    pub(super) pointers: Vec<usize>,
    /// Number of chunks of each value.
    pub(super) chunks: Vec<u32>,
    /// Bodies of the chunks' tuples.
    bytes: Vec<u8>,
    /// Ends of the bodies in `bytes`.
    ends: Vec<usize>,
}

impl MovedValues {
    /// Flags of the chunks' tuples.
    pub const FLAGS: TupleFlags =
        TupleFlags { attributes: 3, has_nulls: false, has_varwidth: true, has_external: false };

    /// Takes all values out; the memory stays.
    pub fn clear(&mut self) {
        self.pointers.clear();
        self.chunks.clear();
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of values.
    ///
    /// # Panics
    /// For more than 2^32 - 1 values.
    pub fn len(&self) -> u32 {
        u32::try_from(self.chunks.len()).expect("a batch of rows is below 4 GB")
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Numbers the values from `first` on, in the chunks and in the bodies, which are those that
    /// [`Toaster::toast`](super::Toaster::toast) appended to.
    pub fn number(&mut self, first: u32, bodies: &mut [u8]) {
        let mut start = 0;
        let mut ends = self.ends.iter();
        for ((number, pointer), chunks) in (0..).zip(&self.pointers).zip(&self.chunks) {
            let id = first.wrapping_add(number);
            bodies[*pointer..][..4].copy_from_slice(&id.to_le_bytes());
            for end in ends.by_ref().take(*chunks as usize) {
                self.bytes[start + 1..][..4].copy_from_slice(&id.to_le_bytes());
                start = *end;
            }
        }
    }

    /// Bodies of the chunks' tuples, in order.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let body = &self.bytes[start..*end];
            start = *end;
            body
        })
    }

    /// Keys of the chunks in the TOAST table's index, in order: the value's number, counted from `first`, and the
    /// chunk's number in the value.
    pub fn keys(&self, first: u32) -> impl Iterator<Item = [i64; 2]> {
        (i64::from(first)..)
            .zip(&self.chunks)
            .flat_map(|(id, chunks)| (0..*chunks).map(move |chunk| [id, i64::from(chunk)]))
    }

    pub(super) fn push(&mut self, data: &[u8], chunk: usize) {
        let mut count = 0_u32;
        for data in data.chunks(chunk) {
            self.bytes.extend([0; 5]);
            self.bytes.extend(count.to_le_bytes());
            self.bytes.extend(header(data.len() + HEADER, false));
            self.bytes.extend_from_slice(data);
            self.ends.push(self.bytes.len());
            count += 1;
        }
        self.chunks.push(count);
        // Known once the row is written.
        self.pointers.push(0);
    }
}
