//! Places of the items on a level's pages.

use super::SPECIAL;
use super::tuple::{TUPLE_HEADER, tuple_length};
use crate::{Geometry, LINE_POINTER, PAGE_HEADER};

/// An inner page's fillfactor, percent: not configurable (`BTREE_NONLEAF_FILLFACTOR`).
const INNER_FILLFACTOR: u8 = 70;
/// Bytes that a leaf's high key might need for a heap TID: kept free even if keys are distinct.
const HIGH_KEY_TID: u32 = 8;

/// The items of every page of a level: they fill the page from its special space downwards, all of
/// the same length except the first. So the same item has the same place in each page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Start of the special space, bytes from the start of the page.
    pub(super) special: u32,
    /// The first item's length, bytes.
    pub(super) first: u32,
    /// Any other item's length, bytes.
    pub(super) other: u32,
    /// Number of items of a full page, including its later high key.
    pub(super) capacity: u32,
}

impl Layout {
    /// Leaves with keys of so many bytes, filled to a fillfactor (percent).
    pub(super) fn leaf(geometry: Geometry, key: u32, fillfactor: u8) -> Self {
        let tuple = tuple_length(key);
        Self::new(geometry, tuple, tuple, tuple + HIGH_KEY_TID, geometry.reserved(fillfactor))
    }

    /// Inner pages over keys of so many bytes. Their first item has no key: it leads to all keys
    /// below the second item's.
    pub(super) fn inner(geometry: Geometry, key: u32) -> Self {
        let tuple = tuple_length(key);
        Self::new(geometry, TUPLE_HEADER, tuple, tuple, geometry.reserved(INNER_FILLFACTOR))
    }

    /// As `_bt_buildadd`: a page is full once less than `needed` is free, or, with two items at least,
    /// less than `reserve`.
    fn new(geometry: Geometry, first: u32, other: u32, needed: u32, reserve: u32) -> Self {
        let special = geometry.block_size() - SPECIAL;
        let free_with = |items: u32| {
            let high_key_and_next = 2 * LINE_POINTER;
            let taken = first + (items - 1) * other + items * LINE_POINTER;
            (special - PAGE_HEADER).saturating_sub(high_key_and_next + taken)
        };
        let mut items = 1;
        while free_with(items) >= needed && (items < 2 || free_with(items) >= reserve) {
            items += 1;
        }
        Self { special, first, other, capacity: items }
    }

    /// Items that a full page keeps: the last one becomes its high key and moves on to the next page.
    pub(super) fn kept(self) -> u32 {
        self.capacity - 1
    }

    /// Length of the item with this index (from 0), bytes.
    pub(super) fn length(self, item: u32) -> u32 {
        if item == 0 { self.first } else { self.other }
    }

    /// Start of the item with this index (from 0), bytes from the start of the page.
    pub(super) fn start(self, item: u32) -> u32 {
        self.special - self.first - item * self.other
    }
}
