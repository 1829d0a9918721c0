//! The heap's two maps (`visibilitymap.c`; `fsm_internals.h` and `freespace.c`).

use crate::layout::PageHeader;
use crate::{Geometry, PAGE_HEADER, set_checksum};

/// Bits in the visibility map for each heap block.
const BITS_PER_HEAP_BLOCK: u64 = 2;
/// Heap blocks for each byte of the visibility map.
const HEAP_BLOCKS_PER_BYTE: u64 = 8 / BITS_PER_HEAP_BLOCK;
/// `FSMPageData` before its nodes, bytes.
const FSM_HEADER: u32 = 4;

impl Geometry {
    /// Blocks of the visibility map once every heap block is marked in it.
    pub fn visibility_map_blocks(self, heap_blocks: u64) -> u64 {
        heap_blocks.div_ceil(self.heap_blocks_per_map_block())
    }

    /// Heap blocks that a block of the visibility map is for.
    fn heap_blocks_per_map_block(self) -> u64 {
        u64::from(self.block_size() - PAGE_HEADER) * HEAP_BLOCKS_PER_BYTE
    }

    /// Blocks of the free space map after a vacuum of the whole heap; 0 for an empty heap.
    ///
    /// A tree whose leaves have a byte for each heap block; upper pages precede the leaves.
    pub fn free_space_map_blocks(self, heap_blocks: u64) -> u64 {
        if heap_blocks == 0 {
            return 0;
        }
        let nodes = self.block_size() - PAGE_HEADER - FSM_HEADER;
        let slots = u64::from(nodes - (self.block_size() / 2 - 1));
        // FSM_TREE_DEPTH: as many levels as 2^32 blocks need.
        let depth = if slots >= 1626 { 3 } else { 4 };
        std::iter::successors(Some(heap_blocks.div_ceil(slots)), |pages| Some(pages.div_ceil(slots)))
            .take(depth)
            .sum()
    }
}

/// Writes the visibility map's page for this block of the map, in which the first `heap_blocks` of the
/// heap are all-visible and all-frozen and no others; with its checksum if the server has them enabled.
///
/// # Panics
/// For a buffer whose length is no block size of PostgreSQL's.
pub fn visibility_map_page(page: &mut [u8], block: u32, heap_blocks: u64, checksums: bool) {
    let geometry = Geometry::of(page);
    let per_page = geometry.heap_blocks_per_map_block();
    let marked = heap_blocks.saturating_sub(u64::from(block) * per_page).min(per_page);
    PageHeader::plain(geometry).write(page);

    let (_, map) = page.split_at_mut(PAGE_HEADER as usize);
    let full = (marked / HEAP_BLOCKS_PER_BYTE) as usize;
    let (whole, rest) = map.split_at_mut(full);
    // Both bits, VISIBILITYMAP_ALL_VISIBLE and VISIBILITYMAP_ALL_FROZEN, of every heap block.
    whole.fill(0xff);
    rest.fill(0);
    if let Some(partial) = rest.first_mut() {
        // The lowest bits are the first block's.
        *partial = (1 << (marked % HEAP_BLOCKS_PER_BYTE * BITS_PER_HEAP_BLOCK)) - 1;
    }
    if checksums {
        set_checksum(page, block);
    }
}
