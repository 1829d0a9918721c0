//! A tree of tuples of any length, built from its leaves upwards (`_bt_buildadd` in `nbtsort.c`).

use super::metapage::{Root, metapage};
use super::tuple::TUPLE_HEADER;
use super::{METAPAGE, SPECIAL};
use crate::layout::PageHeader;
use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// An inner page's fillfactor, percent.
const INNER_FILLFACTOR: u8 = 70;
/// Room for a heap TID in a leaf's high key, bytes.
pub(super) const HIGH_KEY_TID: u32 = 8;
/// In `t_info`: the TID is a pivot's or leads to a posting list (`INDEX_ALT_TID_MASK`).
pub(super) const ALTERNATIVE_TID: u16 = 0x2000;
/// In `t_info`: the tuple's length (`INDEX_SIZE_MASK`).
const LENGTH: u16 = 0x1FFF;
/// Flags of a page (`BTP_LEAF`, `BTP_ROOT`).
const LEAF: u32 = 1;
const ROOT: u32 = 2;
/// In a line pointer: it has a tuple (`LP_NORMAL`).
const NORMAL: u32 = 1 << 15;

/// Makes a leaf's high key (`_bt_truncate` in `nbtutils.c`): a pivot tuple that separates the leaf's last tuple from
/// the first one of its right neighbour.
pub(super) trait Truncate {
    fn high_key(&self, last: &[u8], next: &[u8]) -> Vec<u8>;
}

/// Pages under construction.
#[derive(Debug)]
pub(super) struct Tree<T> {
    geometry: Geometry,
    /// Fillfactor of leaves, percent.
    fillfactor: u8,
    truncate: T,
    /// The levels, from the leaves up.
    levels: Vec<Level>,
    blocks: u32,
    /// Whether equal keys may share tuples (`btm_allequalimage`): equal keys of the types that are
    /// written are equal bytes.
    shares_equal: bool,
}

/// A level's open page.
#[derive(Debug)]
struct Level {
    bytes: Vec<u8>,
    lower: u32,
    upper: u32,
    block: u32,
    number: u32,
    /// Free space below which a page is full.
    reserve: u32,
    /// Number of its items, without the place of the high key.
    items: u32,
    /// Bytes of the last item that a high key made from it leaves out.
    extra: u32,
    /// Lower bound of the page, as a pivot tuple.
    low_key: Vec<u8>,
}

impl<T: Truncate> Tree<T> {
    /// An empty tree.
    pub(super) fn new(geometry: Geometry, fillfactor: u8, truncate: T) -> Self {
        let (levels, blocks, shares_equal) = (Vec::new(), METAPAGE + 1, true);
        Self { geometry, fillfactor, truncate, levels, blocks, shares_equal }
    }

    /// Says in the metapage that equal keys do not share tuples.
    pub(super) fn keep_equal_apart(&mut self) {
        self.shares_equal = false;
    }

    /// Adds a leaf's tuple. `extra` is the length of its posting list, bytes.
    pub(super) fn push<E>(
        &mut self,
        tuple: &[u8],
        extra: u32,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.add(0, tuple, extra, sink)
    }

    /// Finishes the tree; returns how many blocks it has, the metapage included.
    pub(super) fn finish<E>(mut self, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<u32, E> {
        let mut root = None;
        // Linking the last page of a level may add a level yet.
        for number in 0.. {
            let Some(level) = self.levels.get_mut(number) else { break };
            let downlink = level.downlink();
            let is_root = number + 1 == self.levels.len();
            if !is_root {
                self.add(number + 1, &downlink, 0, sink)?;
            }
            let level = &mut self.levels[number];
            if is_root {
                root = Some(Root { block: level.block, level: level.number });
            }
            level.slide_left();
            level.close(is_root, 0);
            sink(level.block, &level.bytes)?;
        }
        sink(METAPAGE, &metapage(self.geometry, root, self.shares_equal))?;
        Ok(self.blocks)
    }

    fn add<E>(
        &mut self,
        number: usize,
        tuple: &[u8],
        extra: u32,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if number == self.levels.len() {
            let block = self.allocate();
            self.levels.push(Level::new(self.geometry, number, self.fillfactor, block));
        }
        let is_leaf = number == 0;
        if self.levels[number].is_full(length(tuple), is_leaf) {
            self.turn(number, sink)?;
        }
        let level = &mut self.levels[number];
        if level.items == 0 && !is_leaf {
            level.put(&minus_infinity(tuple));
        } else {
            level.put(tuple);
        }
        level.extra = extra;
        Ok(())
    }

    /// Finishes a full page and begins the next one of its level, whose first item is the full one's last.
    fn turn<E>(
        &mut self,
        number: usize,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let next = self.allocate();
        let level = &mut self.levels[number];
        let first = level.last_item().to_vec();
        let high_key = match number {
            0 => self.truncate.high_key(level.item_before_last(), &first),
            _ => first.clone(),
        };
        level.finish_before(next, &high_key);
        sink(level.block, &level.bytes)?;
        let (downlink, previous) = (level.downlink(), level.block);
        level.begin(next, previous);
        level.put(&if number == 0 { first } else { minus_infinity(&first) });
        level.low_key = high_key;
        self.add(number + 1, &downlink, 0, sink)
    }

    fn allocate(&mut self) -> u32 {
        let block = self.blocks;
        self.blocks = block.checked_add(1).expect("an index has at most 2^32 - 1 blocks");
        block
    }
}

impl Level {
    fn new(geometry: Geometry, number: usize, fillfactor: u8, block: u32) -> Self {
        let fillfactor = if number == 0 { fillfactor } else { INNER_FILLFACTOR };
        let mut level = Self {
            bytes: vec![0; geometry.block_size() as usize],
            lower: 0,
            upper: 0,
            block,
            number: u32::try_from(number).expect("a tree has a handful of levels"),
            reserve: geometry.reserved(fillfactor),
            items: 0,
            extra: 0,
            low_key: minus_infinity(&[0; 8]),
        };
        level.begin(block, 0);
        level
    }

    /// Becomes an empty page, right of the block `previous`.
    fn begin(&mut self, block: u32, previous: u32) {
        self.bytes.fill(0);
        // The first line pointer is the high key's.
        self.lower = PAGE_HEADER + LINE_POINTER;
        self.upper = self.special();
        self.block = block;
        self.items = 0;
        self.extra = 0;
        self.set_special(0, previous);
        self.set_special(8, self.number);
    }

    /// Whether an item of so many bytes goes to the next page.
    fn is_full(&self, item: u32, is_leaf: bool) -> bool {
        let free = (self.upper - self.lower).saturating_sub(LINE_POINTER);
        let needed = item + if is_leaf { HIGH_KEY_TID } else { 0 };
        self.items > 0 && (free < needed || free + self.extra < self.reserve && self.items > 1)
    }

    fn put(&mut self, tuple: &[u8]) {
        self.upper -= max_align(length(tuple));
        self.write(self.upper, tuple);
        self.set_line_pointer(self.items + 1, self.upper, length(tuple));
        self.lower += LINE_POINTER;
        self.items += 1;
    }

    /// The last item, which lies lowest on the page.
    fn last_item(&self) -> &[u8] {
        self.item_at(self.upper)
    }

    fn item_before_last(&self) -> &[u8] {
        self.item_at(self.upper + max_align(length(self.last_item())))
    }

    fn item_at(&self, begin: u32) -> &[u8] {
        let item = &self.bytes[begin as usize..];
        &item[..usize::from(u16_at(item, 6) & LENGTH)]
    }

    fn downlink(&self) -> Vec<u8> {
        let mut tuple = self.low_key.clone();
        tuple[..4].copy_from_slice(&self.block.rotate_left(16).to_le_bytes());
        tuple
    }

    /// The last item becomes the high key.
    fn finish_before(&mut self, next: u32, high_key: &[u8]) {
        let end = self.upper + max_align(length(self.last_item()));
        self.bytes[self.upper as usize..end as usize].fill(0);
        self.upper = end - max_align(length(high_key));
        self.write(self.upper, high_key);
        self.set_line_pointer(0, self.upper, length(high_key));
        self.lower -= LINE_POINTER;
        let lower = self.lower as usize;
        self.bytes[lower..lower + LINE_POINTER as usize].fill(0);
        self.close(false, next);
    }

    /// The last page of a level has no high key (`_bt_slideleft`).
    fn slide_left(&mut self) {
        let (begin, lower) = (PAGE_HEADER as usize, self.lower as usize);
        self.bytes.copy_within(begin + LINE_POINTER as usize..lower, begin);
        self.bytes[lower - LINE_POINTER as usize..lower].fill(0);
        self.lower -= LINE_POINTER;
    }

    fn close(&mut self, is_root: bool, next: u32) {
        let special = self.special();
        PageHeader { flags: 0, lower: self.lower, upper: self.upper, special }.write(&mut self.bytes);
        let flags = if self.number == 0 { LEAF } else { 0 } | if is_root { ROOT } else { 0 };
        self.set_special(4, next);
        self.set_special(12, flags);
    }

    fn write(&mut self, at: u32, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn set_line_pointer(&mut self, pointer: u32, offset: u32, length: u32) {
        self.write(PAGE_HEADER + pointer * LINE_POINTER, &(offset | NORMAL | length << 17).to_le_bytes());
    }

    /// Start of the special space.
    fn special(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("a page") - SPECIAL
    }

    /// Sets a field of `BTPageOpaqueData`: the previous page (0), the next one (4), the level (8), flags (12).
    fn set_special(&mut self, field: u32, value: u32) {
        self.write(self.special() + field, &value.to_le_bytes());
    }
}

/// A downlink without a key: it stands for everything below the next one.
fn minus_infinity(downlink: &[u8]) -> Vec<u8> {
    let mut tuple = downlink[..TUPLE_HEADER as usize].to_vec();
    tuple[4..6].fill(0);
    tuple[6..8].copy_from_slice(&(8 | ALTERNATIVE_TID).to_le_bytes());
    tuple
}

fn length(tuple: &[u8]) -> u32 {
    u32::try_from(tuple.len()).expect("a tuple is shorter than a page")
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
