//! The files that a relation's fork consists of (`storage/smgr/md.c`).

use std::num::NonZeroU32;

use crate::Geometry;

/// Division of a fork into files: all have the same number of blocks but the last, which may have fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    geometry: Geometry,
    blocks: NonZeroU32,
}

/// Location of a block in its relation's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLocation {
    /// The segment, from 0.
    pub segment: u32,
    /// Bytes before the block in the segment's file.
    pub offset: u64,
}

impl Segments {
    /// The segments of a server with so many blocks per segment (`pg_control_init()`; usually a
    /// gigabyte).
    pub fn new(geometry: Geometry, blocks: NonZeroU32) -> Self {
        Self { geometry, blocks }
    }

    /// Blocks in a full segment.
    pub fn blocks(self) -> NonZeroU32 {
        self.blocks
    }

    /// Place of a block of the fork.
    pub fn place(self, block: u32) -> BlockLocation {
        let offset = u64::from(block % self.blocks) * u64::from(self.geometry.block_size());
        BlockLocation { segment: block / self.blocks, offset }
    }

    /// Number of segments of a fork of so many blocks. One without blocks has an empty one.
    pub fn count(self, blocks: u32) -> u32 {
        blocks.div_ceil(self.blocks.get()).max(1)
    }

    /// Bytes of a segment in a fork of so many blocks.
    pub fn bytes(self, segment: u32, blocks: u32) -> u64 {
        let before = u64::from(segment) * u64::from(self.blocks.get());
        let here = u64::from(blocks).saturating_sub(before).min(self.blocks.get().into());
        here * u64::from(self.geometry.block_size())
    }

    /// The suffix of a segment's path: nothing, `.1`, `.2` …
    pub fn suffix(segment: u32) -> String {
        if segment == 0 { String::new() } else { format!(".{segment}") }
    }
}
