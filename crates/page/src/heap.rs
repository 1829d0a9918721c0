//! Heap tuples and pages (`access/htup_details.h`, `heap_multi_insert` in `heapam.c`).

use std::iter::Peekable;

use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// `HeapTupleHeaderData` up to the null bitmap, bytes.
pub const TUPLE_HEADER: u32 = 23;
/// The longest payload that a one-byte varlena header can describe, bytes.
const SHORT_VARLENA: u32 = 126;

/// PostgreSQL toasts tuples so that a page has room for at least this many
/// (`TOAST_TUPLES_PER_PAGE`).
const TOAST_TUPLES_PER_PAGE: u32 = 4;

/// Tuples that COPY collects before it writes them (`MAX_BUFFERED_TUPLES` in `copyfrom.c`).
const COPY_BATCH: u32 = 1000;
/// Blocks by which a heap is extended at once, at most (`MAX_BUFFERS_TO_EXTEND_BY` in `hio.c`).
const MOST_EXTENSION: u64 = 64;

/// A column's value as a tuple stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A fixed-length type: `typlen` and the alignment that `typalign` stands for, bytes.
    Fixed {
        /// Length, bytes.
        length: u32,
        /// Alignment, bytes.
        align: u32,
    },
    /// A varlena of so many bytes of payload, neither compressed nor toasted.
    Text {
        /// Length of the payload, bytes.
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
    /// Number of tuples of `tuple` bytes that COPY puts in a page at a fillfactor (percent, 10 to 100).
    ///
    /// As `heap_multi_insert`: a further tuple goes in while the page's free space, less a line
    /// pointer, holds it and the reserve. The first tuple always goes in.
    pub fn rows_per_page(self, tuple: u32, fillfactor: u8) -> u32 {
        let mut free_space = FreeSpace::new(self, fillfactor);
        free_space.take_from(&mut std::iter::repeat(tuple).peekable())
    }

    /// Number of rows that COPY puts in each page of a heap, given the length of each row's body (the tuple less the
    /// [`TUPLE_HEADER`]; bytes), in order.
    ///
    /// PostgreSQL 14 and later add a row to a page that has a single small row, even beyond the
    /// fillfactor, if the new row is so long that it would exceed the fillfactor of an empty page
    /// too (`RelationGetBufferForTuple` in `hio.c`). This function does not do so.
    ///
    /// ```
    /// let bodies = [98; 100];
    /// let pages: Vec<u32> = page::Geometry::new(8192).rows_of_pages(bodies, 100).collect();
    /// assert_eq!(pages, [61, 39]);
    /// ```
    pub fn rows_of_pages(
        self,
        bodies: impl IntoIterator<Item = u32>,
        fillfactor: u8,
    ) -> impl Iterator<Item = u32> {
        let mut tuples = bodies.into_iter().map(|body| TUPLE_HEADER + body).peekable();
        std::iter::from_fn(move || {
            let rows = FreeSpace::new(self, fillfactor).take_from(&mut tuples);
            (rows > 0).then_some(rows)
        })
    }

    /// Length of the longest tuple that PostgreSQL stores as it is, header included, bytes: it compresses longer
    /// ones, or moves parts of them out (`TOAST_TUPLE_THRESHOLD` in `access/heaptoast.h`).
    pub fn toast_threshold(self) -> u32 {
        let before = max_align(PAGE_HEADER + TOAST_TUPLES_PER_PAGE * LINE_POINTER);
        // Rounded down to the alignment of tuples.
        (self.block_size() - before) / TOAST_TUPLES_PER_PAGE / max_align(1) * max_align(1)
    }

    /// Blocks of a heap filled from empty with `rows` tuples.
    pub fn heap_blocks(self, rows: u64, tuple: u32, fillfactor: u8) -> u64 {
        rows.div_ceil(u64::from(self.rows_per_page(tuple, fillfactor)))
    }

    /// The most blocks, at most `limit`, that one COPY into a table of its own transaction fills
    /// without leaving extended blocks empty.
    ///
    /// Since PostgreSQL 16 a COPY extends the heap first by the blocks that its first batch needs,
    /// then each time by as many blocks as it has added so far, up to 64 (`RelationAddBlocks` in
    /// `hio.c`). Blocks that it does not fill stay empty. Older releases extend block by block, so
    /// any number of blocks is filled.
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

/// The free space of a page that is being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeSpace {
    rows: u32,
    /// Bytes between the line pointers and the tuples.
    free: u32,
    /// Bytes that the fillfactor keeps free.
    reserved: u32,
}

impl FreeSpace {
    /// The free space of an empty page.
    pub(crate) fn new(geometry: Geometry, fillfactor: u8) -> Self {
        let free = geometry.block_size() - PAGE_HEADER;
        Self { rows: 0, free, reserved: geometry.reserved(fillfactor) }
    }

    /// Whether a tuple of so many bytes goes in: `heap_multi_insert`'s rule.
    pub(crate) fn takes(self, tuple: u32) -> bool {
        let free = self.free.checked_sub(LINE_POINTER);
        self.rows == 0 || free.is_some_and(|free| free >= max_align(tuple) + self.reserved)
    }

    /// Takes a further tuple. A tuple that is longer than the page leaves nothing free.
    pub(crate) fn take(&mut self, tuple: u32) {
        self.rows += 1;
        self.free = self.free.saturating_sub(LINE_POINTER + max_align(tuple));
    }

    /// Takes tuples as long as they fit; returns the number of tuples in the page.
    fn take_from(&mut self, tuples: &mut Peekable<impl Iterator<Item = u32>>) -> u32 {
        while let Some(tuple) = tuples.next_if(|&tuple| self.takes(tuple)) {
            self.take(tuple);
        }
        self.rows
    }

    /// Tuples that were taken.
    pub(crate) fn rows(self) -> u32 {
        self.rows
    }

    /// End of the line pointers and start of the tuples, bytes from the start of the page.
    pub(crate) fn bounds(self) -> (u32, u32) {
        let lower = PAGE_HEADER + self.rows * LINE_POINTER;
        (lower, lower + self.free)
    }
}
