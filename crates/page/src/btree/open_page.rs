//! The page of a level that is being filled.

use super::SPECIAL;
use super::layout::Layout;
use super::tuple::{TUPLE, Tuple};
use crate::layout::PageHeader;
use crate::{LINE_POINTER, PAGE_HEADER};

/// Flags in the special space (`BTP_LEAF`, `BTP_ROOT`).
const LEAF: u16 = 1 << 0;
const ROOT: u16 = 1 << 1;
/// `LP_NORMAL`, shifted to where `ItemIdData` has its flags.
const NORMAL: u32 = 1 << 15;

fn header(lower: u32, upper: u32, special: u32) -> PageHeader {
    PageHeader { flags: 0, lower, upper, special }
}

/// The rightmost page of its level so far.
///
/// All full pages of a level differ only in their tuples and in the special space, so one buffer serves
/// them all: header and line pointers are written once.
#[derive(Debug)]
pub(super) struct OpenPage {
    bytes: Box<[u8]>,
    layout: Layout,
    level: u32,
    block: u32,
    /// Lower bound of the keys on this page; none for the leftmost page.
    low_key: Option<u64>,
    items: u32,
}

impl OpenPage {
    /// The first page of a level (0 is the leaves').
    pub(super) fn new(layout: Layout, level: u32, block: u32) -> Self {
        let mut bytes = vec![0; (layout.special + SPECIAL) as usize].into_boxed_slice();
        let last = layout.capacity - 1;
        header(pointer_at(layout.capacity), layout.start(last), layout.special).write(&mut bytes);
        let mut page = Self { bytes, layout, level, block, low_key: None, items: 0 };
        // The last item is the high key, and that comes first.
        page.set_line_pointer(0, last);
        (0..last).for_each(|item| page.set_line_pointer(item + 1, item));
        page.set_special(8, level);
        page.set_flags(if level == 0 { LEAF } else { 0 });
        page
    }

    pub(super) fn block(&self) -> u32 {
        self.block
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of items that still fit.
    pub(super) fn room(&self) -> u32 {
        self.layout.capacity - self.items
    }

    /// The tuple for this page in the level above.
    pub(super) fn downlink(&self) -> Tuple {
        Tuple::downlink(self.block, self.low_key)
    }

    /// Adds an item; an inner page's first one loses its key. There must be room.
    pub(super) fn put(&mut self, tuple: Tuple) {
        self.write(self.items, tuple);
        self.items += 1;
    }

    /// Adds tuples to a leaf. There must be room.
    pub(super) fn put_all(&mut self, tuples: impl ExactSizeIterator<Item = Tuple>) {
        let end = self.layout.start(self.items) as usize + TUPLE;
        let place = &mut self.bytes[end - tuples.len() * TUPLE..end];
        self.items += u32::try_from(tuples.len()).expect("no more than there is room for");
        for (slot, tuple) in place.as_chunks_mut().0.iter_mut().rev().zip(tuples) {
            *slot = tuple.to_bytes();
        }
    }

    /// Finishes the full page as the left neighbour of the block `next`. To be followed, once it is
    /// written, by [`Self::turn`].
    pub(super) fn finish_before(&mut self, next: u32) -> Successor {
        let last = self.layout.capacity - 1;
        let tuple = self.read(last);
        if self.level == 0 {
            self.write(last, tuple.into_high_key());
        }
        self.set_special(4, next);
        Successor { block: next, first: tuple }
    }

    /// Becomes the next page of the level.
    pub(super) fn turn(&mut self, successor: Successor) {
        let Successor { block, first } = successor;
        self.set_special(0, self.block);
        self.set_special(4, 0);
        self.block = block;
        self.low_key = Some(first.key());
        self.items = 0;
        self.put(if self.level == 0 { first } else { Tuple::downlink(first.block(), None) });
    }

    /// Finishes the page as the last of its level. It has no high key, so the line pointers move up
    /// by one (`_bt_slideleft`, which leaves a copy of the last line pointer after the end).
    pub(super) fn finish_last(&mut self, is_root: bool) {
        let (items, upper) = (self.items, self.layout.start(self.items - 1));
        header(pointer_at(items), upper, self.layout.special).write(&mut self.bytes);
        (0..items).for_each(|item| self.set_line_pointer(item, item));
        self.set_line_pointer(items, items - 1);
        self.bytes[pointer_at(items + 1) as usize..upper as usize].fill(0);
        if is_root {
            self.set_flags(if self.level == 0 { LEAF | ROOT } else { ROOT });
        }
    }

    fn write(&mut self, item: u32, tuple: Tuple) {
        let (start, length) = (self.layout.start(item) as usize, self.layout.length(item) as usize);
        self.bytes[start..start + length].copy_from_slice(&tuple.to_bytes()[..length]);
    }

    /// An item that is not the first.
    fn read(&self, item: u32) -> Tuple {
        let start = self.layout.start(item) as usize;
        let bytes = self.bytes[start..].first_chunk().expect("an item ends before the special space");
        Tuple::from_bytes(*bytes)
    }

    /// Has the line pointer with this index (from 0) show the item.
    fn set_line_pointer(&mut self, pointer: u32, item: u32) {
        let item_id = self.layout.start(item) | NORMAL | self.layout.length(item) << 17;
        self.set_u32(pointer_at(pointer), item_id);
    }

    /// Sets a field of `BTPageOpaqueData`: the previous page (0), the next one (4), the level (8).
    fn set_special(&mut self, field: u32, value: u32) {
        self.set_u32(self.layout.special + field, value);
    }

    fn set_flags(&mut self, flags: u16) {
        // The vacuum cycle id behind them is 0.
        self.set_special(12, flags.into());
    }

    fn set_u32(&mut self, at: u32, value: u32) {
        self.bytes[at as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

/// The page that comes after a full one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Successor {
    block: u32,
    /// Its first tuple, which is the last one of the page before.
    first: Tuple,
}

/// Place of the line pointer with this index (from 0), bytes from the start of the page.
fn pointer_at(pointer: u32) -> u32 {
    PAGE_HEADER + pointer * LINE_POINTER
}
