//! The heap's main fork: threads take pieces of rows, make their tuples, place them and write the pages; large values go
//! to the TOAST table ([`Toast`]).

use std::sync::mpsc::Sender;

use page::{Geometry, MovedValues, TupleFlags};
use rowgen::{Body, TupleEncoder, Tuples};
use tokio::sync::mpsc::UnboundedSender;

use super::Failure;
use super::data_directory::DataDirectory;
use super::fork::Fork;
use super::pieces::{InTurn, Piece, Pieces, Stop};
use super::placing::{Placed, Placing};
use super::toast::{Chunk, FILLFACTOR, Toast, Toasting};
use super::write_behind::{WriteBehind, with_write_behind};
use crate::run::rows::Batch;

/// Approximate size of a piece of rows, bytes; it is written at once. Its tuples and pages stay in
/// the processor's cache, and the disk takes pieces of 2 MiB 6 % faster than those of 1 MiB.
pub(super) const PIECE: u64 = 2 << 20;

/// A heap that is being written.
pub(super) struct Heap {
    pub(super) data_directory: DataDirectory,
    pub(super) fork: Fork,
    pub(super) encoder: TupleEncoder,
    /// Fillfactor, percent.
    pub(super) fillfactor: u8,
    /// The handling of rows that are too long; none if no row is.
    pub(super) toast: Option<Toast>,
    pub(super) pieces: Pieces,
    pub(super) places: InTurn<Places>,
}

/// Place of the next piece's rows.
#[derive(Default)]
pub(super) struct Places {
    pub(super) heap: Placing,
    /// Each receiver gets the number of rows of each block, in order.
    tell: Vec<Sender<Vec<u32>>>,
    pub(super) chunks: Placing,
    /// Number of values that were moved out.
    values: u32,
    /// The receiver gets the chunks, in order.
    tell_chunks: Option<Sender<Vec<Chunk>>>,
}

impl Places {
    /// Places a piece's rows.
    fn rows<'b, I: Iterator<Item = (&'b [u8], TupleFlags)>>(
        &mut self,
        bodies: impl Fn() -> I,
        count: usize,
        piece: &Piece,
        heap: &Heap,
    ) -> Result<Placed, Failure> {
        let layout = (heap.data_directory.geometry, heap.fillfactor);
        let placed = self.heap.place(bodies, count, piece.is_last, layout)?;
        for tell in &self.tell {
            // If an index has failed, its thread reports the error.
            let _ = tell.send(placed.tuples_of_pages.clone());
        }
        if piece.is_last {
            self.tell.clear();
        }
        Ok(placed)
    }

    /// Numbers a piece's values that were moved out, and places their chunks.
    fn chunks(
        &mut self,
        toasting: &mut Toasting<'_>,
        is_last: bool,
        geometry: Geometry,
    ) -> Result<Placed, Failure> {
        let first = toasting.number(self.values);
        self.values += toasting.moved.len();
        let bodies = || toasting.moved.bodies().map(|body| (body, MovedValues::FLAGS));
        let placed = self.chunks.place(bodies, bodies().count(), is_last, (geometry, FILLFACTOR))?;
        if let Some(tell) = &self.tell_chunks {
            let ids = placed.places(self.chunks.open());
            let chunks = toasting.moved.keys(first).zip(ids);
            // If the index has failed, its thread reports the error.
            let _ = tell.send(chunks.map(|(key, place)| Chunk { key, place }).collect());
        }
        if is_last {
            self.tell_chunks = None;
        }
        Ok(placed)
    }

    /// An empty heap. The receivers of `tell` get the number of rows of each block, that of
    /// `tell_chunks` of the chunks of the TOAST table.
    pub(super) fn new(tell: Vec<Sender<Vec<u32>>>, tell_chunks: Option<Sender<Vec<Chunk>>>) -> Self {
        Self { tell, tell_chunks, ..Self::default() }
    }
}

impl Heap {
    /// Takes pieces and writes them as long as there are any; sends the number of rows of each piece to `tell` once it is
    /// written.
    pub(super) fn work(&self, stop: &Stop, tell: &UnboundedSender<u64>) -> Result<(), Failure> {
        // Nobody listens once the fill has been given up.
        let written = |rows| {
            let _ = tell.send(rows);
        };
        with_write_behind(written, |writer| self.make(stop, writer))
    }

    /// Takes pieces and builds their pages as long as there are any.
    fn make<'h>(&'h self, stop: &Stop, writer: &WriteBehind<'h>) -> Result<(), Failure> {
        let mut tuples = Tuples::new();
        let mut toasting = self.toast.as_ref().map(Toasting::of);
        while !stop.is_set()
            && let Some(piece) = self.pieces.next()
        {
            tuples.clear();
            match &piece.rows {
                Batch::Range(rows) => self.encoder.encode(rows.clone(), &mut tuples),
                Batch::Listed(rows) => self.encoder.encode_rows(rows, &mut tuples),
            }
            let goes_on = match &mut toasting {
                Some(toasting) => {
                    let is_toasted = toasting.toast(&tuples, self.encoder.attributes())?;
                    let rows = if is_toasted { StoredRows::Toasted } else { StoredRows::AsMade(&tuples) };
                    self.write_toasted(rows, toasting, &piece, stop, writer)?
                }
                None => self.write(&tuples, &piece, stop, writer)?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Writes the pages of a piece; returns false if the threads are to stop.
    fn write<'h>(
        &'h self,
        tuples: &Tuples,
        piece: &Piece,
        stop: &Stop,
        writer: &WriteBehind<'h>,
    ) -> Result<bool, Failure> {
        let place = |places: &mut Places| places.rows(|| self.as_made(tuples), tuples.len(), piece, self);
        let Some(placed) = self.places.come(piece.number, stop, place) else { return Ok(false) };
        Ok(self.pages(&placed?, self.as_made(tuples), piece, writer))
    }

    /// As [`Self::write`], for rows whose values may have been moved out.
    fn write_toasted<'h>(
        &'h self,
        rows: StoredRows<'_>,
        toasting: &mut Toasting<'h>,
        piece: &Piece,
        stop: &Stop,
        writer: &WriteBehind<'h>,
    ) -> Result<bool, Failure> {
        let place = |places: &mut Places| -> Result<_, Failure> {
            let chunks = places.chunks(toasting, piece.is_last, self.data_directory.geometry)?;
            let stored = &toasting.rows;
            let placed = match rows {
                StoredRows::AsMade(tuples) => places.rows(|| self.as_made(tuples), tuples.len(), piece, self),
                StoredRows::Toasted => places.rows(|| stored.iter(), stored.len(), piece, self),
            };
            Ok((placed?, chunks))
        };
        let Some(placed) = self.places.come(piece.number, stop, place) else { return Ok(false) };
        let (placed, chunks) = placed?;
        let goes_on = toasting.write_chunks(&chunks, &self.data_directory, writer);
        Ok(goes_on
            && match rows {
                StoredRows::AsMade(tuples) => self.pages(&placed, self.as_made(tuples), piece, writer),
                StoredRows::Toasted => self.pages(&placed, toasting.rows.iter(), piece, writer),
            })
    }

    fn as_made<'t>(&self, tuples: &'t Tuples) -> impl Iterator<Item = (&'t [u8], TupleFlags)> + use<'t> {
        let attributes = self.encoder.attributes();
        tuples.bodies().map(move |body| (body.bytes, flags(attributes, &body)))
    }

    fn pages<'h, 'b>(
        &'h self,
        placed: &Placed,
        bodies: impl Iterator<Item = (&'b [u8], TupleFlags)>,
        piece: &Piece,
        writer: &WriteBehind<'h>,
    ) -> bool {
        let DataDirectory { geometry, checksums, .. } = self.data_directory;
        let amount = (placed.bytes(geometry), piece.rows.len());
        writer.write(&self.fork, placed.first_block, amount, |pages| {
            placed.build(bodies, pages, (geometry, self.fillfactor, checksums));
        })
    }
}

/// Rows of a piece as they are stored.
#[derive(Clone, Copy)]
enum StoredRows<'t> {
    AsMade(&'t Tuples),
    Toasted,
}

/// Flags of a row as it was made.
pub(super) fn flags(attributes: u16, body: &Body<'_>) -> TupleFlags {
    let &Body { has_nulls, has_varwidth, .. } = body;
    TupleFlags { attributes, has_nulls, has_varwidth, has_external: false }
}
