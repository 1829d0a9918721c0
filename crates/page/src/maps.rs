//! The heap's two maps (`visibilitymap.c`; `fsm_internals.h` and `freespace.c`).

use crate::{Geometry, PAGE_HEADER};

/// Bits in the visibility map for each heap block.
const BITS_PER_HEAP_BLOCK: u64 = 2;
/// `FSMPageData` before its nodes, bytes.
const FSM_HEADER: u32 = 4;

impl Geometry {
    /// Blocks of the visibility map once every heap block is marked in it.
    pub fn visibility_map_blocks(self, heap_blocks: u64) -> u64 {
        let map_bytes = u64::from(self.block_size() - PAGE_HEADER);
        heap_blocks.div_ceil(map_bytes * 8 / BITS_PER_HEAP_BLOCK)
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
