//! A B-tree over one column, from keys in ascending order. Keys may be null, and several rows may
//! have the same key: equal keys share a tuple with a posting list (`_bt_load` in `nbtsort.c`,
//! `nbtdedup.c`).

use super::tree::{ALTERNATIVE_TID, HIGH_KEY_TID, Tree, Truncate, u16_at};
use super::tuple::{TUPLE_HEADER, TupleId};
use crate::{Geometry, LINE_POINTER};

/// In `t_info`: there are nulls (`INDEX_NULL_MASK`).
const HAS_NULLS: u16 = 0x8000;
/// In `t_info`: a value's type has no fixed length (`INDEX_VAR_MASK`).
const HAS_VARWIDTH: u16 = 0x4000;
/// The null bitmap of an index tuple, bytes: `INDEX_MAX_KEYS` bits.
const NULLS: usize = 4;
/// In the offset of a TID: it leads to a posting list (`BT_IS_POSTING`).
const IS_POSTING: u16 = 0x2000;
/// In the offset of a pivot's TID: a heap TID is at its end (`BT_PIVOT_HEAP_TID_ATTR`).
const HAS_HEAP_TID: u16 = 0x1000;
/// `ItemPointerData`, bytes.
const TID: usize = 6;

/// Whether a type's values have all the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLength {
    /// As integers, times and uuids.
    Fixed,
    /// As texts, whose lengths differ.
    Varying,
}

/// Builds the main fork of a B-tree index over one column from keys in order, nulls last. Equal keys are equal bytes, and
/// come in the order of their rows' places. The sink is given blocks as by [`BtreeBuilder`](super::BtreeBuilder).
///
/// The blocks are, apart from LSN, checksum and the hole between `pd_lower` and `pd_upper`, those that CREATE INDEX of
/// PostgreSQL 13 to 18 builds; tests compare.
#[derive(Debug)]
pub struct SortedBuilder {
    tree: Tree<Single>,
    /// Greatest length of a tuple with a posting list, bytes; none if equal keys have tuples of
    /// their own.
    longest: Option<usize>,
    /// Key of the rows whose tuple is not written yet: the bytes between header and posting list.
    key: Vec<u8>,
    is_null: bool,
    length: KeyLength,
    /// Places of these rows, as `ItemPointerData`.
    places: Vec<u8>,
    /// A tuple that is being made.
    tuple: Vec<u8>,
}

/// An index of one column.
#[derive(Debug)]
struct Single;

impl SortedBuilder {
    /// An empty index. `fillfactor` is the leaves', in percent. If `is_unique`, equal keys do not
    /// share tuples; only nulls can then be equal.
    pub fn new(geometry: Geometry, length: KeyLength, fillfactor: u8, is_unique: bool) -> Self {
        // A tenth of a page, and no more than leaves room for a line pointer.
        let longest = ((geometry.block_size() * 10 / 100) & !7) - LINE_POINTER;
        Self {
            tree: Tree::new(geometry, fillfactor, Single),
            longest: (!is_unique).then_some(longest as usize),
            key: Vec::new(),
            is_null: false,
            length,
            places: Vec::new(),
            tuple: Vec::new(),
        }
    }

    /// Adds a row. The key is given as it is stored, without padding (a text with its header); none
    /// is null. It must be so short that the server does not compress it.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the index gets more than 2^32 - 1 blocks.
    pub fn push<E>(
        &mut self,
        key: Option<&[u8]>,
        row: TupleId,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.shares(key) {
            self.flush(sink)?;
            self.key.clear();
            self.is_null = key.is_none();
            self.key.extend_from_slice(key.unwrap_or(&[0; NULLS]));
            self.key.resize(
                (TUPLE_HEADER as usize + self.key.len()).next_multiple_of(8) - TUPLE_HEADER as usize,
                0,
            );
        }
        self.places.extend_from_slice(&place(row));
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
        self.flush(sink)?;
        self.tree.finish(sink)
    }

    /// Whether a row with this key goes into the tuple that is not written yet.
    fn shares(&self, key: Option<&[u8]>) -> bool {
        let Some(longest) = self.longest else { return false };
        let is_equal = match key {
            _ if self.places.is_empty() => false,
            Some(key) => !self.is_null && self.key.starts_with(key),
            None => self.is_null,
        };
        let bytes = TUPLE_HEADER as usize + self.key.len() + self.places.len() + TID;
        is_equal && bytes.next_multiple_of(8) <= longest
    }

    /// Writes the tuple of the rows that have been collected.
    fn flush<E>(&mut self, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let rows =
            u16::try_from(self.places.len() / TID).expect("a posting list has at most a tenth of a page");
        let end_of_key = TUPLE_HEADER as usize + self.key.len();
        let (tid, list, flag): ([u8; TID], &[u8], u16) = match rows {
            0 => return Ok(()),
            1 => (*self.places.first_chunk().expect("it is one place"), &[], 0),
            _ => {
                let block = u32::try_from(end_of_key).expect("a key is short");
                let list = TupleId { block, offset: rows | IS_POSTING };
                (place(list), &self.places, ALTERNATIVE_TID)
            }
        };
        self.tuple.clear();
        self.tuple.extend_from_slice(&tid);
        self.tuple.extend_from_slice(&[0; 2]);
        self.tuple.extend_from_slice(&self.key);
        self.tuple.extend_from_slice(list);
        self.tuple.resize(self.tuple.len().next_multiple_of(8), 0);
        let kind = match (self.is_null, self.length) {
            (true, _) => HAS_NULLS,
            (false, KeyLength::Fixed) => 0,
            (false, KeyLength::Varying) => HAS_VARWIDTH,
        };
        set_info(&mut self.tuple, flag | kind);
        let extra = u32::try_from(self.tuple.len() - end_of_key).expect("a tuple is shorter than a page");
        self.tree.push(&self.tuple, extra, sink)?;
        self.places.clear();
        Ok(())
    }
}

impl Truncate for Single {
    /// The high key between two leaves: the key, and the place of the left leaf's last row if both
    /// leaves have the same key there.
    fn high_key(&self, last: &[u8], next: &[u8]) -> Vec<u8> {
        let kind = |tuple: &[u8]| u16_at(tuple, 6) & (HAS_NULLS | HAS_VARWIDTH);
        let end = end_of_key(next);
        let key = TUPLE_HEADER as usize..end;
        let is_same = kind(last) == kind(next) && end_of_key(last) == end && last[key.clone()] == next[key];
        let mut tuple = next[..end].to_vec();
        let mut attributes = 1_u16;
        if is_same {
            attributes |= HAS_HEAP_TID;
            tuple.resize(end + HIGH_KEY_TID as usize - TID, 0);
            tuple.extend_from_slice(last_place(last));
        }
        tuple[4..6].copy_from_slice(&attributes.to_le_bytes());
        set_info(&mut tuple, ALTERNATIVE_TID | kind(next));
        tuple
    }
}

/// Number of rows in a tuple's posting list; none if it has none.
fn posting_list(tuple: &[u8]) -> Option<usize> {
    let is_alternative = u16_at(tuple, 6) & ALTERNATIVE_TID != 0;
    is_alternative.then(|| usize::from(u16_at(tuple, 4) & !IS_POSTING))
}

/// Start of a leaf tuple's posting list, or end of the tuple.
fn end_of_key(tuple: &[u8]) -> usize {
    match posting_list(tuple) {
        Some(_) => usize::from(u16_at(tuple, 2)),
        None => tuple.len(),
    }
}

/// The greatest TID of a leaf tuple (`BTreeTupleGetMaxHeapTID`).
fn last_place(tuple: &[u8]) -> &[u8] {
    match posting_list(tuple) {
        Some(rows) => &tuple[end_of_key(tuple) + (rows - 1) * TID..][..TID],
        None => &tuple[..TID],
    }
}

/// `ItemPointerData`.
fn place(TupleId { block, offset }: TupleId) -> [u8; TID] {
    let mut bytes = [0; TID];
    bytes[..4].copy_from_slice(&block.rotate_left(16).to_le_bytes());
    bytes[4..].copy_from_slice(&offset.to_le_bytes());
    bytes
}

/// Sets `t_info`: the tuple's length, and these flags.
fn set_info(tuple: &mut [u8], flags: u16) {
    let info = u16::try_from(tuple.len()).expect("at most a tenth of a page") | flags;
    tuple[6..8].copy_from_slice(&info.to_le_bytes());
}
