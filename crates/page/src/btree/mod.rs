//! A B-tree as CREATE INDEX builds it from distinct ascending fixed-length keys (`nbtsort.c`): how many
//! blocks it takes, and the blocks themselves.

mod builder;
mod composite;
mod layout;
mod metapage;
mod open_page;
mod sorted;
mod tree;
mod tuple;

pub use builder::{BtreeBuilder, BtreeKey};
pub use composite::CompositeBuilder;
pub use sorted::{KeyLength, SortedBuilder};
pub use tuple::TupleId;

use crate::Geometry;
use layout::Layout;

/// A leaf page's default fillfactor, percent (`BTREE_DEFAULT_FILLFACTOR`).
pub const LEAF_FILLFACTOR: u8 = 90;
/// `BTPageOpaqueData` at the page's end, bytes.
const SPECIAL: u32 = 16;
/// The metapage's block (`BTREE_METAPAGE`); the tree begins behind it.
const METAPAGE: u32 = 0;

impl Geometry {
    /// Blocks of the index: the metapage, leaves and inner levels. `key` is the key's length in
    /// bytes, `fillfactor` the leaves' in percent.
    pub fn btree_blocks(self, rows: u64, key: u32, fillfactor: u8) -> u64 {
        const METAPAGES: u64 = 1;
        if rows == 0 {
            return METAPAGES;
        }
        let mut level = pages(rows, Layout::leaf(self, key, fillfactor).kept());
        let mut blocks = METAPAGES + level;
        let inner = Layout::inner(self, key).kept();
        while level > 1 {
            level = pages(level, inner);
            blocks += level;
        }
        blocks
    }
}

/// Pages of a level: every full page keeps `kept` items, the last one may keep one more.
fn pages(items: u64, kept: u32) -> u64 {
    (items - 1).div_ceil(u64::from(kept)).max(1)
}
