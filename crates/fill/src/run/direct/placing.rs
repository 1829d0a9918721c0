//! Places of tuples in blocks, as COPY chooses them: in turn, whatever thread has made them.

use page::{Geometry, HeapPage, TupleFlags, TupleId};

use super::Failure;

/// Tuple bodies, one after another.
#[derive(Default)]
pub(super) struct Bodies {
    pub(super) bytes: Vec<u8>,
    shapes: Vec<(usize, TupleFlags)>,
}

impl Bodies {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.shapes.clear();
    }

    /// Adds the body that `write` appends; `write` returns the body's flags.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> TupleFlags) {
        let begin = self.bytes.len();
        let flags = write(&mut self.bytes);
        self.shapes.push((self.bytes.len() - begin, flags));
    }

    pub(super) fn len(&self) -> usize {
        self.shapes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], TupleFlags)> {
        let mut rest = &*self.bytes;
        self.shapes.iter().map(move |&(length, flags)| {
            let (bytes, after) = rest.split_at(length);
            rest = after;
            (bytes, flags)
        })
    }
}

/// Place of the next tuples of a relation.
#[derive(Default)]
pub(super) struct Placing {
    /// Blocks that are full.
    blocks: u32,
    /// The tuples of the open block, which may get further ones.
    open: Bodies,
    /// Tuples placed, those of the open block included.
    tuples: u64,
}

/// Blocks of a piece.
pub(super) struct Placed {
    pub(super) first_block: u32,
    /// Tuples that come before the piece's own: those of the block that was open.
    held: Bodies,
    /// Number of tuples of each block.
    pub(super) tuples_of_pages: Vec<u32>,
}

impl Placing {
    /// Blocks so far.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Tuples of the block that is open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Tuples so far.
    pub(super) fn tuples(&self) -> u64 {
        self.tuples
    }

    /// Gives a piece of so many tuples its blocks. The last block stays open for the first tuples
    /// of the next piece, if there is one.
    pub(super) fn place<'b, I>(
        &mut self,
        bodies: impl Fn() -> I,
        count: usize,
        is_last: bool,
        (geometry, fillfactor): (Geometry, u8),
    ) -> Result<Placed, Failure>
    where
        I: Iterator<Item = (&'b [u8], TupleFlags)>,
    {
        let held = std::mem::take(&mut self.open);
        let all = || after(&held, bodies());
        let lengths = all().map(|(bytes, _)| u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let mut tuples_of_pages: Vec<u32> = geometry.rows_of_pages(lengths, fillfactor).collect();
        self.tuples += count as u64;
        if !is_last && let Some(open) = tuples_of_pages.pop() {
            let full: usize = tuples_of_pages.iter().map(|tuples| *tuples as usize).sum();
            debug_assert_eq!(full + open as usize, held.len() + count);
            for (bytes, flags) in all().skip(full) {
                self.open.push(|out| {
                    out.extend_from_slice(bytes);
                    flags
                });
            }
        }
        let first_block = self.blocks;
        let more = u32::try_from(tuples_of_pages.len()).ok();
        // The greatest number is no block's (InvalidBlockNumber).
        let blocks = more.and_then(|more| first_block.checked_add(more)).filter(|blocks| *blocks < u32::MAX);
        self.blocks = blocks.ok_or(Failure::TooLarge)?;
        Ok(Placed { first_block, held, tuples_of_pages })
    }
}

impl Placed {
    /// Places of the piece's own tuples, if the open block has `open` tuples before them.
    pub(super) fn places(&self, open: usize) -> impl Iterator<Item = TupleId> {
        let open = u32::try_from(open).expect("a page has at most 32768 bytes");
        let pages = self.tuples_of_pages.iter().copied().chain([open]);
        let all = (self.first_block..).zip(pages).flat_map(|(block, tuples)| {
            (1..).take(tuples as usize).map(move |offset| TupleId { block, offset })
        });
        all.skip(self.held.len())
    }

    /// Length of the pages, bytes.
    pub(super) fn bytes(&self, geometry: Geometry) -> usize {
        self.tuples_of_pages.len() * geometry.block_size() as usize
    }

    /// Builds the pages of the tuples, of which `bodies` are the piece's own.
    pub(super) fn build<'b>(
        &self,
        bodies: impl Iterator<Item = (&'b [u8], TupleFlags)>,
        pages: &mut [u8],
        (geometry, fillfactor, checksums): (Geometry, u8, bool),
    ) {
        let mut bodies = after(&self.held, bodies);
        let blocks = pages.chunks_exact_mut(geometry.block_size() as usize);
        for ((block, page), tuples) in (self.first_block..).zip(blocks).zip(&self.tuples_of_pages) {
            let mut page = HeapPage::begin(page, block, fillfactor);
            for (bytes, flags) in bodies.by_ref().take(*tuples as usize) {
                page.push(bytes, flags);
            }
            page.finish(checksums);
        }
    }
}

/// The held tuples and then these.
fn after<'h, 'b: 'h>(
    held: &'h Bodies,
    bodies: impl Iterator<Item = (&'b [u8], TupleFlags)>,
) -> impl Iterator<Item = (&'h [u8], TupleFlags)> {
    held.iter().chain(bodies.map(|(bytes, flags)| -> (&'h [u8], TupleFlags) { (bytes, flags) }))
}
