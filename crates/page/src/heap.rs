//! Heap tuples and pages (`access/htup_details.h`, `heap_multi_insert` in `heapam.c`).

use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// `HeapTupleHeaderData` up to the null bitmap, bytes.
const TUPLE_HEADER: u32 = 23;
/// The longest payload that a one-byte varlena header can describe, bytes.
const SHORT_VARLENA: u32 = 126;

/// Tuples that COPY collects before it writes them (`MAX_BUFFERED_TUPLES` in `copyfrom.c`).
const COPY_BATCH: u32 = 1000;
/// Blocks by which a heap is extended at once, at most (`MAX_BUFFERS_TO_EXTEND_BY` in `hio.c`).
const MOST_EXTENSION: u64 = 64;

/// A column's value as a tuple stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A fixed-length type: `typlen` and the alignment that `typalign` stands for, bytes.
    Fixed {
        /// Bytes.
        length: u32,
        /// Bytes.
        align: u32,
    },
    /// A varlena of so many bytes of payload, neither compressed nor toasted.
    Text {
        /// Bytes.
        length: u32,
    },
    /// NULL: a bit in the null bitmap, no data.
    Null,
}

/// Length of a tuple in bytes, header included, not rounded up: `t_len`.
///
/// # Panics
/// For more columns than a `u32` counts.
pub fn tuple_length(attributes: &[Attribute]) -> u32 {
    let columns = u32::try_from(attributes.len()).expect("at most 1600 columns");
    let bitmap = if attributes.contains(&Attribute::Null) { columns.div_ceil(8) } else { 0 };
    let data = attributes.iter().fold(0, |offset: u32, attribute| match *attribute {
        Attribute::Fixed { length, align } => offset.next_multiple_of(align) + length,
        Attribute::Text { length } if length <= SHORT_VARLENA => offset + 1 + length,
        Attribute::Text { length } => offset.next_multiple_of(4) + 4 + length,
        Attribute::Null => offset,
    });
    max_align(TUPLE_HEADER + bitmap) + data
}

impl Geometry {
    /// How many tuples of `tuple` bytes COPY puts in a page at a fillfactor (percent, 10 to 100).
    ///
    /// As `heap_multi_insert`: a further tuple goes in while the page's free space, less a line
    /// pointer, holds it and the reserve. The first tuple always goes in.
    pub fn rows_per_page(self, tuple: u32, fillfactor: u8) -> u32 {
        let tuple = max_align(tuple);
        let usable = self.block_size() - PAGE_HEADER;
        let free_after = |rows: u32| usable.checked_sub(rows * (tuple + LINE_POINTER) + LINE_POINTER);
        let mut rows = 1;
        while free_after(rows).is_some_and(|free| free >= tuple + self.reserved(fillfactor)) {
            rows += 1;
        }
        rows
    }

    /// Blocks of a heap filled from empty with `rows` tuples.
    pub fn heap_blocks(self, rows: u64, tuple: u32, fillfactor: u8) -> u64 {
        rows.div_ceil(u64::from(self.rows_per_page(tuple, fillfactor)))
    }

    /// The most blocks, at most `limit`, that one COPY into a table of its own transaction fills
    /// without leaving extended blocks empty.
    ///
    /// Since PostgreSQL 16 a COPY extends the heap by what its first batch needs, then each time by
    /// as much as in all before, up to 64 blocks (`RelationAddBlocks` in `hio.c`); what is left
    /// when it ends stays empty. Older releases extend block by block, so any number does.
    pub fn blocks_without_waste(self, tuple: u32, fillfactor: u8, limit: u64) -> u64 {
        let rows_per_page = self.rows_per_page(tuple, fillfactor);
        let mut extended = u64::from(COPY_BATCH.div_ceil(rows_per_page)).min(MOST_EXTENSION);
        loop {
            let next = extended + extended.min(MOST_EXTENSION);
            if next > limit {
                return extended;
            }
            extended = next;
        }
    }
}
