//! A tree over several columns, whose pivot tuples differ in length: the high key of a leaf keeps no more columns than
//! tell it from its right neighbour (`nbtsort.c`, `_bt_truncate` in `nbtutils.c`).

use super::BtreeKey;
use super::tree::{ALTERNATIVE_TID, Tree, Truncate};
use super::tuple::{TUPLE_HEADER, TupleId};
use crate::Geometry;

/// Builds the main fork of a B-tree index over several integer columns from keys in ascending order, all of them
/// different. The sink is given blocks as by [`BtreeBuilder`](super::BtreeBuilder).
#[derive(Debug)]
pub struct CompositeBuilder {
    tree: Tree<Columns>,
    columns: Columns,
    /// Key of the last row.
    last: Vec<i64>,
    /// Buffer for the tuple that is being built.
    tuple: Vec<u8>,
}

/// The types of an index's columns.
#[derive(Clone, Debug)]
struct Columns(Vec<BtreeKey>);

impl CompositeBuilder {
    /// An empty index over columns of these types. `fillfactor` is the leaves', in percent.
    pub fn new(geometry: Geometry, columns: &[BtreeKey], fillfactor: u8) -> Self {
        let columns = Columns(columns.to_vec());
        Self {
            tree: Tree::new(geometry, fillfactor, columns.clone()),
            columns,
            last: Vec::new(),
            tuple: Vec::new(),
        }
    }

    /// For an index where equal keys do not share tuples: those of catalogs and TOAST tables before PostgreSQL 14
    /// (`_bt_allequalimage` in `nbtutils.c`).
    pub fn keep_equal_apart(&mut self) {
        self.tree.keep_equal_apart();
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
        assert!(key.len() == self.columns.0.len(), "a key of {} columns", key.len());
        assert!(self.last.is_empty() || *self.last < *key, "keys do not ascend at {key:?}");
        self.columns.tuple(key, row, &mut self.tuple);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.tree.push(&self.tuple, 0, sink)
    }

    /// Finishes the index; returns how many blocks it has.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the index gets more than 2^32 - 1 blocks.
    pub fn finish<E>(self, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<u32, E> {
        self.tree.finish(sink)
    }
}

impl Columns {
    /// Makes an index tuple.
    fn tuple(&self, key: &[i64], row: TupleId, tuple: &mut Vec<u8>) {
        tuple.clear();
        tuple.extend_from_slice(&row.block.rotate_left(16).to_le_bytes());
        tuple.extend_from_slice(&row.offset.to_le_bytes());
        tuple.extend_from_slice(&[0; 2]);
        for (kind, value) in self.0.iter().zip(key) {
            let length = kind.length() as usize;
            tuple.resize(tuple.len().next_multiple_of(length), 0);
            tuple.extend_from_slice(&value.to_le_bytes()[..length]);
        }
        close(tuple, 0);
    }
}

impl Truncate for Columns {
    /// The high key between two leaves, with no more columns than tell the tuples apart.
    fn high_key(&self, last: &[u8], next: &[u8]) -> Vec<u8> {
        let mut end = TUPLE_HEADER as usize;
        let mut attributes = 0_u16;
        for kind in &self.0 {
            let length = kind.length() as usize;
            let begin = end.next_multiple_of(length);
            end = begin + length;
            attributes += 1;
            if last[begin..end] != next[begin..end] {
                break;
            }
        }
        let mut tuple = next[..end].to_vec();
        tuple[4..6].copy_from_slice(&attributes.to_le_bytes());
        close(&mut tuple, ALTERNATIVE_TID);
        tuple
    }
}

/// Pads a tuple and sets its `t_info`.
fn close(tuple: &mut Vec<u8>, flags: u16) {
    tuple.resize(tuple.len().next_multiple_of(8), 0);
    let info = u16::try_from(tuple.len()).expect("up to 32 columns of 8 bytes") | flags;
    tuple[6..8].copy_from_slice(&info.to_le_bytes());
}
