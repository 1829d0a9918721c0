//! The heap's main fork: threads take pieces of rows, make their tuples, place them and write the pages.

use std::sync::mpsc::Sender;

use page::{HeapPage, TupleFlags};
use rowgen::{Body, TupleEncoder, Tuples};
use tokio::sync::mpsc::UnboundedSender;

use super::Failure;
use super::data_directory::DataDirectory;
use super::fork::{Buffer, Fork};
use super::pieces::{InTurn, Pieces, Stop};
use crate::run::rows::Batch;

/// Size of a piece of rows, bytes, about: one write. Its tuples and pages stay in the processor's cache, and the disk takes
/// pieces of 2 MiB 6 % faster than those of 1 MiB.
pub(super) const PIECE: u64 = 2 << 20;

/// A heap that is being written.
pub(super) struct Heap {
    pub(super) data_directory: DataDirectory,
    pub(super) fork: Fork,
    pub(super) encoder: TupleEncoder,
    /// Percent.
    pub(super) fillfactor: u8,
    pub(super) pieces: Pieces,
    pub(super) placing: InTurn<Placing>,
}

/// Place of the next piece's rows.
#[derive(Default)]
pub(super) struct Placing {
    /// Blocks that are full.
    blocks: u32,
    /// The rows of the block after those: further ones may go in.
    open: Held,
    /// Each is told how many rows each block got, in order.
    tell: Vec<Sender<Vec<u32>>>,
    /// Rows placed, those of the open block included.
    rows: u64,
}

/// A piece's blocks.
struct Placed {
    first_block: u32,
    /// Rows that come before the piece's own.
    held: Held,
    /// Number of rows of each block.
    rows_of_pages: Vec<u32>,
}

/// Rows that wait for their page to be full.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    bodies: Vec<(usize, bool, bool)>,
}

impl Held {
    fn of<'b>(bodies: impl Iterator<Item = Body<'b>>) -> Self {
        let mut held = Self::default();
        for body in bodies {
            held.bytes.extend_from_slice(body.bytes);
            held.bodies.push((body.bytes.len(), body.has_nulls, body.has_varwidth));
        }
        held
    }

    fn bodies(&self) -> impl Iterator<Item = Body<'_>> {
        let mut rest = &*self.bytes;
        self.bodies.iter().map(move |&(length, has_nulls, has_varwidth)| {
            let (bytes, after) = rest.split_at(length);
            rest = after;
            Body { bytes, has_nulls, has_varwidth }
        })
    }
}

impl Placing {
    /// An empty heap; `tell` is told how many rows each block gets.
    pub(super) fn new(tell: Vec<Sender<Vec<u32>>>) -> Self {
        Self { tell, ..Self::default() }
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Gives a piece its blocks. Its last block stays open for the next piece's first rows, unless there is
    /// none.
    fn place(&mut self, tuples: &Tuples, is_last: bool, heap: &Heap) -> Result<Placed, Failure> {
        let held = std::mem::take(&mut self.open);
        let bodies = || held.bodies().chain(tuples.bodies());
        let lengths = bodies().map(|body| u32::try_from(body.bytes.len()).unwrap_or(u32::MAX));
        let mut rows_of_pages: Vec<u32> =
            heap.data_directory.geometry.rows_of_pages(lengths, heap.fillfactor).collect();
        self.rows += tuples.len() as u64;
        if !is_last && let Some(open) = rows_of_pages.pop() {
            let full: usize = rows_of_pages.iter().map(|rows| *rows as usize).sum();
            debug_assert_eq!(full + open as usize, held.bodies.len() + tuples.len());
            self.open = Held::of(bodies().skip(full));
        }
        let first_block = self.blocks;
        let more = u32::try_from(rows_of_pages.len()).ok();
        // The greatest number is no block's (InvalidBlockNumber).
        let blocks = more.and_then(|more| first_block.checked_add(more)).filter(|blocks| *blocks < u32::MAX);
        self.blocks = blocks.ok_or(Failure::TooLarge)?;
        for tell in &self.tell {
            // If an index has failed, that is told by it.
            let _ = tell.send(rows_of_pages.clone());
        }
        if is_last {
            self.tell.clear();
        }
        Ok(Placed { first_block, held, rows_of_pages })
    }
}

impl Heap {
    /// Takes pieces and writes them as long as there are any; tells how many rows were written.
    pub(super) fn work(&self, stop: &Stop, tell: &UnboundedSender<u64>) -> Result<(), Failure> {
        let mut tuples = Tuples::new();
        let mut buffer = Buffer::default();
        while !stop.is_set()
            && let Some(piece) = self.pieces.next()
        {
            tuples.clear();
            match &piece.rows {
                Batch::Range(rows) => self.encoder.encode(rows.clone(), &mut tuples),
                Batch::Listed(rows) => self.encoder.encode_rows(rows, &mut tuples),
            }
            let place = |placing: &mut Placing| placing.place(&tuples, piece.is_last, self);
            let Some(placed) = self.placing.come(piece.number, stop, place) else { break };
            let placed = placed?;
            let pages =
                buffer.of(placed.rows_of_pages.len() * self.data_directory.geometry.block_size() as usize);
            self.build(&placed, &tuples, pages);
            self.fork.write(placed.first_block, pages).map_err(|error| self.fork.failure(error))?;
            // Nobody listens once the fill has been given up.
            let _ = tell.send(piece.rows.len());
        }
        Ok(())
    }

    fn build(&self, placed: &Placed, tuples: &Tuples, pages: &mut [u8]) {
        let attributes = self.encoder.attributes();
        let mut bodies = placed.held.bodies().chain(tuples.bodies());
        let blocks = pages.chunks_exact_mut(self.data_directory.geometry.block_size() as usize);
        for ((block, page), rows) in (placed.first_block..).zip(blocks).zip(&placed.rows_of_pages) {
            let mut page = HeapPage::begin(page, block, self.fillfactor);
            for Body { bytes, has_nulls, has_varwidth } in bodies.by_ref().take(*rows as usize) {
                page.push(bytes, TupleFlags { attributes, has_nulls, has_varwidth });
            }
            page.finish(self.data_directory.checksums);
        }
    }
}
