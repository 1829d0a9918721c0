//! An index's main fork: written while the heap is, from keys that ascend with the rows, or after it, from sorted ones.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use page::{BtreeBuilder, BtreeKey, CompositeBuilder, TupleId, set_checksum};
use rowgen::{Column, Kind, Pick, Reference, Turn, Values};

use super::Failure;
use super::data_directory::DataDirectory;
use super::fork::{Buffer, Fork};
use super::pieces::{LOOK, Stop};
use super::sorted::SortedKey;
use crate::run::rows::{Batch, RowSource};

/// Blocks that are written at once.
const PIECE_BLOCKS: u32 = 256;

/// The file of an index.
pub(super) struct IndexFile {
    /// Qualified and quoted.
    pub(super) name: String,
    pub(super) data_directory: DataDirectory,
    pub(super) fork: Fork,
    /// Fillfactor of its leaves, percent.
    pub(super) fillfactor: u8,
    /// Number of blocks, once it is written.
    blocks: OnceLock<u32>,
}

/// An index that is being written.
pub(super) struct Index {
    pub(super) file: IndexFile,
    pub(super) key: Keys,
    /// A row whose key another row has too, although the index is unique.
    pub(super) repeated: OnceLock<TupleId>,
}

/// The keys of an index.
pub(super) enum Keys {
    /// They ascend with the rows.
    Single(Key),
    /// They ascend with the rows, and have several columns.
    Composite(Vec<KeyPart>),
    /// They come in any order.
    Sorted(SortedKey),
}

/// A column of a composite key as a function of the row's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyPart {
    kind: BtreeKey,
    /// The value in the first turn.
    low: i64,
    turn: Turn,
}

impl KeyPart {
    /// None if the column's values are not integers that follow from the row number by counting.
    pub(super) fn of(column: &Column) -> Option<Self> {
        let kind = match column.kind {
            Kind::Int2 => BtreeKey::Int2,
            Kind::Int4 => BtreeKey::Int4,
            Kind::Int8 => BtreeKey::Int8,
            _ => return None,
        };
        match &column.values {
            Values::Serial { start, step: 1 } => {
                let left = column.kind.units()?.high.checked_sub(*start)?;
                let of = u64::try_from(left).ok()?.checked_add(1)?;
                Some(Self { kind, low: *start, turn: Turn { every: 1, of } })
            }
            Values::Reference(Reference { keys, pick: Pick::InTurn(turn), .. }) => {
                let rowgen::Keys::Interval { low, .. } = **keys else { return None };
                // After the last key the first one comes again.
                let of = if turn.of == u64::MAX { keys.count() } else { turn.of };
                (of <= keys.count()).then_some(Self { kind, low, turn: Turn { of, ..*turn } })
            }
            _ => None,
        }
    }

    /// Whether keys of these parts ascend strictly over so many rows: each part counts through all
    /// its values once while the parts before it stay the same.
    pub(super) fn ascend(parts: &[Self], rows: u64) -> bool {
        let mut stays = None;
        for Self { turn: Turn { every, of }, .. } in parts {
            let round = every.saturating_mul(*of);
            let is_once = match stays {
                None => round >= rows,
                Some(1) => true,
                Some(stays) => round == stays,
            };
            if !is_once {
                return false;
            }
            stays = Some(stays.map_or(*every, |stays: u64| stays.min(*every)));
        }
        stays == Some(1)
    }

    fn of_row(self, row: u64) -> i64 {
        self.low.saturating_add_unsigned(self.turn.of_row(row))
    }
}

/// A row's key as a function of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) kind: BtreeKey,
    /// The key of row 0.
    pub(super) start: i64,
    /// Difference from row to row; above 0.
    pub(super) step: i64,
}

impl Key {
    fn of(self, row: u64) -> i64 {
        self.start + row.cast_signed() * self.step
    }
}

impl IndexFile {
    pub(super) fn new(name: String, data_directory: DataDirectory, fork: Fork, fillfactor: u8) -> Self {
        Self { name, data_directory, fork, fillfactor, blocks: OnceLock::new() }
    }

    /// Number of blocks; 0 before it is written.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks.get().copied().unwrap_or(0)
    }
}

impl Index {
    /// Builds the index from the rows that the heap gets; `pages` tells how many rows are in each
    /// block.
    pub(super) fn work(
        &self,
        rows: RowSource,
        pages: &Receiver<Vec<u32>>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut gathered = Gathered::of(&self.file);
        let sink = |block: u32, page: &[u8]| gathered.take(block, page);
        let blocks = match &self.key {
            Keys::Single(key) => self.single(*key, rows, (pages, stop), sink)?,
            Keys::Composite(parts) => self.composite(parts, rows, (pages, stop), sink)?,
            Keys::Sorted(key) => key.build(self, rows, (pages, stop), sink)?,
        };
        blocks.map_or(Ok(()), |blocks| gathered.end(blocks))
    }

    /// The blocks of an index of one column; none if the threads are to stop.
    fn single(
        &self,
        key: Key,
        mut rows: RowSource,
        (pages, stop): (&Receiver<Vec<u32>>, &Stop),
        mut sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u32>, Failure> {
        let mut builder =
            BtreeBuilder::new(self.file.data_directory.geometry, key.kind, self.file.fillfactor);
        let mut keys = Vec::new();
        let mut block = 0;
        while let Some(rows_of_pages) = next(pages, stop) {
            for count in rows_of_pages {
                let first = TupleId { block, offset: 1 };
                match rows.take(count.into()) {
                    Some(Batch::Range(range)) if key.step == 1 => {
                        let count = u16::try_from(count).expect("a page has at most 32768 bytes");
                        builder.push_run(key.of(range.start), first, count, &mut sink)?;
                    }
                    Some(batch) => {
                        keys.clear();
                        keys.extend(batch.numbers().map(|row| key.of(row)));
                        builder.push_keys(&keys, first, &mut sink)?;
                    }
                    None => {}
                }
                block += 1;
            }
        }
        if stop.is_set() { Ok(None) } else { builder.finish(&mut sink).map(Some) }
    }

    /// The blocks of an index of several columns; none if the threads are to stop.
    fn composite(
        &self,
        parts: &[KeyPart],
        mut rows: RowSource,
        (pages, stop): (&Receiver<Vec<u32>>, &Stop),
        mut sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u32>, Failure> {
        let columns: Vec<BtreeKey> = parts.iter().map(|part| part.kind).collect();
        let mut builder =
            CompositeBuilder::new(self.file.data_directory.geometry, &columns, self.file.fillfactor);
        let mut key = Vec::new();
        let mut block = 0;
        while let Some(rows_of_pages) = next(pages, stop) {
            for count in rows_of_pages {
                let batch = rows.take(count.into());
                let numbers = batch.iter().flat_map(Batch::numbers);
                for (offset, row) in (1..).zip(numbers) {
                    key.clear();
                    key.extend(parts.iter().map(|part| part.of_row(row)));
                    builder.push(&key, TupleId { block, offset }, &mut sink)?;
                }
                block += 1;
            }
        }
        if stop.is_set() { Ok(None) } else { builder.finish(&mut sink).map(Some) }
    }
}

/// The next item; none after the last, or if the threads are to stop.
pub(super) fn next<T>(from: &Receiver<T>, stop: &Stop) -> Option<T> {
    loop {
        match from.recv_timeout(LOOK) {
            Ok(next) => return Some(next),
            Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Collects pages so that many are written at once. Pages of inner levels come later than pages
/// that follow them on disk, so as many collections as the tree has levels may be incomplete at a
/// time.
pub(super) struct Gathered<'a> {
    index: &'a IndexFile,
    open: BTreeMap<u32, (Buffer, u32)>,
    spare: Vec<Buffer>,
}

impl<'a> Gathered<'a> {
    /// A collection without pages.
    pub(super) fn of(index: &'a IndexFile) -> Self {
        Self { index, open: BTreeMap::new(), spare: Vec::new() }
    }

    pub(super) fn take(&mut self, block: u32, page: &[u8]) -> Result<(), Failure> {
        let (number, within) = (block / PIECE_BLOCKS, (block % PIECE_BLOCKS) as usize);
        let spare = &mut self.spare;
        let (buffer, pages) = self.open.entry(number).or_insert_with(|| (spare.pop().unwrap_or_default(), 0));
        let into = &mut buffer.of(PIECE_BLOCKS as usize * page.len())[within * page.len()..][..page.len()];
        into.copy_from_slice(page);
        if self.index.data_directory.checksums {
            set_checksum(into, block);
        }
        *pages += 1;
        if *pages == PIECE_BLOCKS { self.write(number, PIECE_BLOCKS) } else { Ok(()) }
    }

    /// Writes the last pages. `blocks` is the number of blocks of the index.
    pub(super) fn end(mut self, blocks: u32) -> Result<(), Failure> {
        let open: Vec<u32> = self.open.keys().copied().collect();
        open.into_iter().try_for_each(|number| self.write(number, blocks - number * PIECE_BLOCKS))?;
        // Nobody else sets it.
        let _ = self.index.blocks.set(blocks);
        Ok(())
    }

    fn write(&mut self, number: u32, blocks: u32) -> Result<(), Failure> {
        let Some((mut buffer, _)) = self.open.remove(&number) else { return Ok(()) };
        let fork = &self.index.fork;
        let bytes = buffer.of((blocks * self.index.data_directory.geometry.block_size()) as usize);
        fork.write(number * PIECE_BLOCKS, bytes).map_err(|error| fork.failure(error))?;
        self.spare.push(buffer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(every: u64, of: u64) -> KeyPart {
        KeyPart { kind: BtreeKey::Int4, low: 1, turn: Turn { every, of } }
    }

    #[test]
    fn keys_ascend_if_each_part_counts_through_once_while_those_before_it_stay() {
        // Orders of three lines each, in 100 rows.
        assert!(KeyPart::ascend(&[part(3, 34), part(1, 3)], 100));
        assert!(KeyPart::ascend(&[part(12, 9), part(3, 4), part(1, 3)], 100));
        assert!(KeyPart::ascend(&[part(1, 100), part(7, 2)], 100));
        assert!(!KeyPart::ascend(&[part(3, 33), part(1, 3)], 100), "orders begin again");
        assert!(!KeyPart::ascend(&[part(3, 34), part(1, 2)], 100), "lines begin again");
        assert!(!KeyPart::ascend(&[part(3, 34), part(1, 4)], 100), "lines go on");
        assert!(!KeyPart::ascend(&[part(1, 3), part(3, 34)], 100), "lines before orders");
        assert!(!KeyPart::ascend(&[part(3, 34)], 100), "not unique");
    }
}
