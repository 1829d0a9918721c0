//! Index tuples with one short key (`access/itup.h`, `access/nbtree.h`).

use crate::max_align;

/// `IndexTupleData` before the key, bytes.
pub(super) const TUPLE_HEADER: u32 = 8;
/// A tuple with a key of up to 8 bytes, bytes.
pub(super) const TUPLE: usize = 16;

/// In `t_info`: the TID is a pivot's (`INDEX_ALT_TID_MASK`).
const PIVOT: u16 = 0x2000;
/// Bits of `ItemPointerData` that hold the block.
const BLOCK_BITS: u64 = 0xFFFF_FFFF;
/// Shift of the offset number within `ItemPointerData`.
const OFFSET_SHIFT: u32 = 32;

/// Length of an index tuple with a key of so many bytes, bytes.
pub(super) fn tuple_length(key: u32) -> u32 {
    max_align(TUPLE_HEADER + key)
}

/// A heap tuple's place (`ItemPointerData`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TupleId {
    /// Number of the block in the heap, from 0.
    pub block: u32,
    /// The tuple's line pointer in it, from 1.
    pub offset: u16,
}

/// An index tuple: as two words because that is how it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuple {
    /// TID and `t_info`, as they are in memory.
    head: u64,
    /// The key's bytes and zeros behind them.
    key: u64,
}

impl Tuple {
    /// A leaf's tuple: a key, and the row that is `behind` line pointers after `first`.
    pub(super) fn leaf(first: TupleId, behind: u32, key: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "its length is 16 bytes")]
        let first = head(first.block, first.offset, TUPLE as u16);
        Self { head: first + (u64::from(behind) << OFFSET_SHIFT), key }
    }

    /// A downlink: the page `child` begins with `low_key`, or is the leftmost.
    pub(super) fn downlink(child: u32, low_key: Option<u64>) -> Self {
        const ATTRIBUTES: u16 = 1;
        #[expect(clippy::cast_possible_truncation, reason = "lengths are 8 and 16 bytes")]
        match low_key {
            Some(key) => Self { head: head(child, ATTRIBUTES, TUPLE as u16 | PIVOT), key },
            None => Self { head: head(child, 0, TUPLE_HEADER as u16 | PIVOT), key: 0 },
        }
    }

    /// The high key that is made from a leaf's last tuple. `_bt_truncate` keeps the key, which is
    /// enough to tell the pages apart, and the block of the TID.
    pub(super) fn into_high_key(self) -> Self {
        Self::downlink(self.block(), Some(self.key))
    }

    /// The heap's block, or the child.
    pub(super) fn block(self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "16 bits of the word each")]
        let (high, low) = (self.head as u16, (self.head >> 16) as u16);
        u32::from(high) << 16 | u32::from(low)
    }

    pub(super) fn key(self) -> u64 {
        self.key
    }

    pub(super) fn to_bytes(self) -> [u8; TUPLE] {
        (u128::from(self.key) << 64 | u128::from(self.head)).to_le_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; TUPLE]) -> Self {
        let word = u128::from_le_bytes(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the word's halves")]
        Self { head: word as u64, key: (word >> 64) as u64 }
    }
}

/// TID (the block's high half first) and `t_info`.
fn head(block: u32, offset: u16, info: u16) -> u64 {
    let block = u64::from(block.rotate_left(16)) & BLOCK_BITS;
    u64::from(info) << 48 | u64::from(offset) << OFFSET_SHIFT | block
}
