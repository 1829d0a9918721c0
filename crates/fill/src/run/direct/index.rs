//! A primary key's main fork: written while the heap is, from keys that ascend with the rows.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use page::{BtreeBuilder, BtreeKey, TupleId, set_checksum};

use super::Failure;
use super::data_directory::DataDirectory;
use super::fork::{Buffer, Fork};
use super::pieces::{LOOK, Stop};
use crate::run::copy::{Batch, RowSource};

/// Blocks that are written at once.
const PIECE_BLOCKS: u32 = 256;

/// An index that is being written.
pub(super) struct Index {
    /// Qualified and quoted.
    pub(super) name: String,
    pub(super) data_directory: DataDirectory,
    pub(super) fork: Fork,
    pub(super) key: Key,
    /// Of its leaves, percent.
    pub(super) fillfactor: u8,
    /// How many it has, once it is written.
    pub(super) blocks: OnceLock<u32>,
}

/// How a row's key follows from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) kind: BtreeKey,
    /// Of row 0.
    pub(super) start: i64,
    /// From row to row; above 0.
    pub(super) step: i64,
}

impl Key {
    fn of(self, row: u64) -> i64 {
        self.start + row.cast_signed() * self.step
    }
}

impl Index {
    /// How many it has; 0 before it is written.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks.get().copied().unwrap_or(0)
    }

    /// Builds it from the same rows that the heap gets, as `pages` tells how many are in each block.
    pub(super) fn work(
        &self,
        mut rows: RowSource,
        pages: &Receiver<Vec<u32>>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut builder = BtreeBuilder::new(self.data_directory.geometry, self.key.kind, self.fillfactor);
        let mut gathered = Gathered { index: self, open: BTreeMap::new(), spare: Vec::new() };
        let mut sink = |block: u32, page: &[u8]| gathered.take(block, page);
        let mut keys = Vec::new();
        let mut block = 0;
        while let Some(rows_of_pages) = next(pages, stop) {
            for count in rows_of_pages {
                let first = TupleId { block, offset: 1 };
                match rows.take(count.into()) {
                    Some(Batch::Range(range)) if self.key.step == 1 => {
                        let count = u16::try_from(count).expect("a page has at most 32768 bytes");
                        builder.push_run(self.key.of(range.start), first, count, &mut sink)?;
                    }
                    Some(batch) => {
                        keys.clear();
                        keys.extend(batch.numbers().map(|row| self.key.of(row)));
                        builder.push_keys(&keys, first, &mut sink)?;
                    }
                    None => {}
                }
                block += 1;
            }
        }
        if stop.is_set() {
            return Ok(());
        }
        let blocks = builder.finish(&mut sink)?;
        gathered.finish(blocks)?;
        // Nobody else sets it.
        let _ = self.blocks.set(blocks);
        Ok(())
    }
}

/// What comes next; none if that was all, or the threads are to stop.
fn next<T>(from: &Receiver<T>, stop: &Stop) -> Option<T> {
    loop {
        match from.recv_timeout(LOOK) {
            Ok(next) => return Some(next),
            Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Pages gathered to what is written at once. Pages of inner levels come after others that follow them on
/// disk, so as many as the tree has levels may be incomplete at a time.
struct Gathered<'a> {
    index: &'a Index,
    open: BTreeMap<u32, (Buffer, u32)>,
    spare: Vec<Buffer>,
}

impl Gathered<'_> {
    fn take(&mut self, block: u32, page: &[u8]) -> Result<(), Failure> {
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

    /// Writes the last piece, which need not be whole; `blocks` is how many the index has.
    fn finish(mut self, blocks: u32) -> Result<(), Failure> {
        let open: Vec<u32> = self.open.keys().copied().collect();
        open.into_iter().try_for_each(|number| self.write(number, blocks - number * PIECE_BLOCKS))
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
