//! A tree over several columns, whose pivot tuples differ in length: the high key of a leaf keeps no more columns than
//! tell it from its right neighbour (`nbtsort.c`, `_bt_truncate` in `nbtutils.c`).

use super::metapage::{Root, metapage};
use super::tuple::{TUPLE_HEADER, TupleId};
use super::{BtreeKey, METAPAGE, SPECIAL};
use crate::layout::PageHeader;
use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// An inner page's fillfactor, percent.
const INNER_FILLFACTOR: u8 = 70;
/// What a leaf's high key might need for a heap TID, bytes.
const HIGH_KEY_TID: u32 = 8;
/// In `t_info`: the TID is a pivot's (`INDEX_ALT_TID_MASK`).
const PIVOT: u16 = 0x2000;
/// Flags of a page (`BTP_LEAF`, `BTP_ROOT`).
const LEAF: u32 = 1;
const ROOT: u32 = 2;
/// In a line pointer: it has a tuple (`LP_NORMAL`).
const NORMAL: u32 = 1 << 15;

/// Builds the main fork of a B-tree index over several integer columns from keys in ascending order, all of them
/// different. The sink is given blocks as by [`BtreeBuilder`](super::BtreeBuilder).
#[derive(Debug)]
pub struct CompositeBuilder {
    geometry: Geometry,
    columns: Vec<BtreeKey>,
    fillfactor: u8,
    /// From the leaves up.
    levels: Vec<Level>,
    /// Of the last row.
    last: Vec<i64>,
    blocks: u32,
    /// A tuple that is being made.
    scratch: Vec<u8>,
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
    /// Its items, the place of the high key aside.
    items: u32,
    /// Below which nothing is on this page: a pivot tuple.
    low_key: Vec<u8>,
    /// The key of the last item of a leaf but one.
    before_last: Vec<i64>,
}

impl CompositeBuilder {
    /// An empty index over columns of these types. `fillfactor` is the leaves', in percent.
    pub fn new(geometry: Geometry, columns: &[BtreeKey], fillfactor: u8) -> Self {
        Self {
            geometry,
            columns: columns.to_vec(),
            fillfactor,
            levels: Vec::new(),
            last: Vec::new(),
            blocks: METAPAGE + 1,
            scratch: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the key is not greater than the one before, has another number of columns than the index, or if the index
    /// gets more than 2^32 - 1 blocks.
    pub fn push<E>(
        &mut self,
        key: &[i64],
        row: TupleId,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(key.len() == self.columns.len(), "a key of {} columns", key.len());
        assert!(self.last.is_empty() || *self.last < *key, "keys do not ascend at {key:?}");
        let mut tuple = std::mem::take(&mut self.scratch);
        self.tuple(key, (row.block, row.offset), 0, &mut tuple);
        self.add(0, &tuple, sink)?;
        self.scratch = tuple;
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// Finishes the index; returns how many blocks it has.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the index gets more than 2^32 - 1 blocks.
    pub fn finish<E>(mut self, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<u32, E> {
        let mut root = None;
        // Linking the last page of a level may add a level yet.
        for number in 0.. {
            let Some(level) = self.levels.get_mut(number) else { break };
            let downlink = level.downlink();
            let is_root = number + 1 == self.levels.len();
            if !is_root {
                self.add(number + 1, &downlink, sink)?;
            }
            let level = &mut self.levels[number];
            if is_root {
                root = Some(Root { block: level.block, level: level.number });
            }
            level.slide_left();
            level.close(is_root, 0);
            sink(level.block, &level.bytes)?;
        }
        sink(METAPAGE, &metapage(self.geometry, root))?;
        Ok(self.blocks)
    }

    /// `_bt_buildadd`.
    fn add<E>(
        &mut self,
        number: usize,
        tuple: &[u8],
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
        if is_leaf {
            level.before_last.clone_from(&self.last);
        }
        Ok(())
    }

    /// Finishes a full page and begins the next one of its level, whose first item is the full one's last.
    fn turn<E>(
        &mut self,
        number: usize,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let next = self.allocate();
        let high_key = if number == 0 { self.high_key() } else { self.levels[number].last_item() };
        let level = &mut self.levels[number];
        let first = level.last_item();
        level.finish_before(next, &high_key);
        sink(level.block, &level.bytes)?;
        let (downlink, previous) = (level.downlink(), level.block);
        let mut page = Level::new(self.geometry, number, self.fillfactor, next);
        page.put(&if number == 0 { first } else { minus_infinity(&first) });
        page.low_key = high_key;
        page.set_special(0, previous);
        self.levels[number] = page;
        self.add(number + 1, &downlink, sink)
    }

    /// A leaf's last item as its high key (`_bt_truncate`): no more columns than tell it from the item before.
    fn high_key(&self) -> Vec<u8> {
        let level = &self.levels[0];
        let same = self.last.iter().zip(&level.before_last).take_while(|(one, other)| one == other).count();
        let columns = (same + 1).min(self.columns.len());
        let item = level.last_item();
        let block = u32::from(u16_at(&item, 0)) << 16 | u32::from(u16_at(&item, 2));
        let attributes = u16::try_from(columns).expect("an index has at most 32 columns");
        let mut tuple = Vec::new();
        self.tuple(&self.last[..columns], (block, attributes), PIVOT, &mut tuple);
        tuple
    }

    /// Makes an index tuple with the first columns of a key.
    fn tuple(&self, key: &[i64], (block, offset): (u32, u16), flags: u16, tuple: &mut Vec<u8>) {
        tuple.clear();
        tuple.extend_from_slice(&block.rotate_left(16).to_le_bytes());
        tuple.extend_from_slice(&offset.to_le_bytes());
        tuple.extend_from_slice(&[0; 2]);
        for (kind, value) in self.columns.iter().zip(key) {
            let length = kind.length() as usize;
            tuple.resize(tuple.len().next_multiple_of(length), 0);
            tuple.extend_from_slice(&value.to_le_bytes()[..length]);
        }
        tuple.resize(tuple.len().next_multiple_of(8), 0);
        let info = u16::try_from(tuple.len()).expect("up to 32 columns of 8 bytes") | flags;
        tuple[6..8].copy_from_slice(&info.to_le_bytes());
    }

    fn allocate(&mut self) -> u32 {
        let block = self.blocks;
        self.blocks = block.checked_add(1).expect("an index has at most 2^32 - 1 blocks");
        block
    }
}

impl Level {
    fn new(geometry: Geometry, number: usize, fillfactor: u8, block: u32) -> Self {
        let special = geometry.block_size() - SPECIAL;
        let fillfactor = if number == 0 { fillfactor } else { INNER_FILLFACTOR };
        let mut level = Self {
            bytes: vec![0; geometry.block_size() as usize],
            // The first line pointer is the high key's.
            lower: PAGE_HEADER + LINE_POINTER,
            upper: special,
            block,
            number: u32::try_from(number).expect("a tree has a handful of levels"),
            reserve: geometry.reserved(fillfactor),
            items: 0,
            low_key: minus_infinity(&[0; 8]),
            before_last: Vec::new(),
        };
        level.set_special(8, level.number);
        level
    }

    /// Whether an item of so many bytes goes to the next page.
    fn is_full(&self, item: u32, is_leaf: bool) -> bool {
        let free = (self.upper - self.lower).saturating_sub(LINE_POINTER);
        let needed = item + if is_leaf { HIGH_KEY_TID } else { 0 };
        self.items > 0 && (free < needed || free < self.reserve && self.items > 1)
    }

    fn put(&mut self, tuple: &[u8]) {
        self.upper -= max_align(length(tuple));
        self.write(self.upper, tuple);
        self.set_line_pointer(self.items + 1, self.upper, length(tuple));
        self.lower += LINE_POINTER;
        self.items += 1;
    }

    /// The last item is the lowest on the page.
    fn last_item(&self) -> Vec<u8> {
        let begin = self.upper as usize;
        let length = usize::from(u16_at(&self.bytes[begin..], 6) & 0x1FFF);
        self.bytes[begin..begin + length].to_vec()
    }

    fn downlink(&self) -> Vec<u8> {
        let mut tuple = self.low_key.clone();
        tuple[..4].copy_from_slice(&self.block.rotate_left(16).to_le_bytes());
        tuple
    }

    /// The last item becomes the high key.
    fn finish_before(&mut self, next: u32, high_key: &[u8]) {
        let end = self.upper + max_align(length(&self.last_item()));
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
        let special = u32::try_from(self.bytes.len()).expect("a page") - SPECIAL;
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

    /// Sets a field of `BTPageOpaqueData`: the previous page (0), the next one (4), the level (8), flags (12).
    fn set_special(&mut self, field: u32, value: u32) {
        let special = u32::try_from(self.bytes.len()).expect("a page") - SPECIAL;
        self.write(special + field, &value.to_le_bytes());
    }
}

/// A downlink without a key: it stands for everything below the next one.
fn minus_infinity(downlink: &[u8]) -> Vec<u8> {
    let mut tuple = downlink[..TUPLE_HEADER as usize].to_vec();
    tuple[4..6].fill(0);
    tuple[6..8].copy_from_slice(&(8 | PIVOT).to_le_bytes());
    tuple
}

fn length(tuple: &[u8]) -> u32 {
    u32::try_from(tuple.len()).expect("a tuple is shorter than a page")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
