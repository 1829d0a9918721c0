//! A block range index with minmax summaries, as CREATE INDEX builds it (`brin_pageops.c`,
//! `brin_revmap.h`).

use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// Heap blocks that a summary stands for (`BRIN_DEFAULT_PAGES_PER_RANGE`).
const PAGES_PER_RANGE: u64 = 128;
/// `BrinSpecialSpace` at the page's end, bytes.
const SPECIAL: u32 = 8;
/// `SizeOfBrinTuple`, bytes.
const BRIN_TUPLE: u32 = 5;
/// `ItemPointerData`: an entry of the range map, bytes.
const ITEM_POINTER: u32 = 6;

impl Geometry {
    /// Blocks of the index over so many heap blocks: the metapage, the range map and the summaries.
    /// `key` is the key's length in bytes.
    pub fn brin_blocks(self, heap_blocks: u64, key: u32) -> u64 {
        const METAPAGE: u64 = 1;
        let usable = self.block_size() - PAGE_HEADER - SPECIAL;
        let summary = max_align(max_align(BRIN_TUPLE) + 2 * key) + LINE_POINTER;
        let ranges = heap_blocks.div_ceil(PAGES_PER_RANGE);
        let map = ranges.div_ceil(u64::from(usable / ITEM_POINTER)).max(1);
        let summaries = ranges.div_ceil(u64::from(usable / summary)).max(1);
        METAPAGE + map + summaries
    }
}
