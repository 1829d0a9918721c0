//! A B-tree as CREATE INDEX builds it from distinct ascending fixed-length keys
//! (`nbtsort.c`, `_bt_buildadd`).

use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// A leaf page's default fillfactor, percent (`BTREE_DEFAULT_FILLFACTOR`).
pub const LEAF_FILLFACTOR: u8 = 90;
/// An inner page's fillfactor, percent: not configurable (`BTREE_NONLEAF_FILLFACTOR`).
const INNER_FILLFACTOR: u8 = 70;
/// `BTPageOpaqueData` at the page's end, bytes.
const SPECIAL: u32 = 16;
/// `IndexTupleData` before the key, bytes.
const INDEX_TUPLE: u32 = 8;

impl Geometry {
    /// Blocks of the index: the metapage, leaves and inner levels. `key` is the key's length in
    /// bytes, `fillfactor` the leaves' in percent.
    pub fn btree_blocks(self, rows: u64, key: u32, fillfactor: u8) -> u64 {
        const METAPAGE: u64 = 1;
        if rows == 0 {
            return METAPAGE;
        }
        let tuple = max_align(INDEX_TUPLE + key);
        let mut level = pages(rows, self.kept(tuple, tuple, fillfactor));
        let mut blocks = METAPAGE + level;
        // A level's first downlink has no key: it stands for everything below the second.
        let inner = self.kept(max_align(INDEX_TUPLE), tuple, INNER_FILLFACTOR);
        while level > 1 {
            level = pages(level, inner);
            blocks += level;
        }
        blocks
    }

    /// Items that a full page keeps: it takes items until less than its reserve is free; when one
    /// more comes, the last of them becomes its high key and moves on to the next page.
    fn kept(self, first: u32, other: u32, fillfactor: u8) -> u64 {
        let high_key = LINE_POINTER;
        let usable = self.block_size() - PAGE_HEADER - SPECIAL - high_key;
        let free_with = |items: u32| {
            usable - (first + LINE_POINTER) - (items - 1) * (other + LINE_POINTER) - LINE_POINTER
        };
        let mut items = 1;
        while free_with(items) >= self.reserved(fillfactor).max(other) {
            items += 1;
        }
        u64::from(items - 1)
    }
}

/// Pages of a level: every full page keeps `kept` items, the last one may keep one more.
fn pages(items: u64, kept: u64) -> u64 {
    (items - 1).div_ceil(kept).max(1)
}
