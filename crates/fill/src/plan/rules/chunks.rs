//! Division of rows into chunks and COPY commands, and the place of their blocks.

use std::num::NonZeroU16;

use super::Rules;
use crate::plan::Method;
use crate::plan::bulk::RowSize;
use crate::plan::chunks::{Chunking, Spread};
use crate::plan::row_range::RowRange;
use crate::plan::sizes::tuple;
use crate::plan::tables::leaf_rows;
use crate::request::{Amount, IndexKind, PartitionMethod};

/// Shared buffers that one COPY keeps to, bytes.
const COPY_RING: u64 = 16 << 20;
/// Blocks of that ring that are left unused, because a heap is extended by so many at once.
const EXTENSION: u64 = 64;
/// Most heap that a chunk fills by other methods, bytes. A transaction that is rolled back leaves
/// no more than this in the table for each stream.
const LARGE_CHUNK: u64 = 64 << 20;
/// The same for the parts of a fill, so that each has several.
const PART_CHUNK_ROWS: u64 = 25_000;
/// Rows of a chunk by hash at least, where several together are a chunk of the table.
const FEW_ROWS: u64 = 10_000;
/// Rows of a chunk at least, as long as that is no more than [`LARGE_CHUNK`].
const CHUNK_ROWS: u64 = 100_000;
/// Bytes of table and indexes that a chunk of a table of the user's fills at most.
const LARGE_OWN_CHUNK: u64 = 16 << 20;
/// The size of such a table is reached in at least so many chunks. The last one is cut to the
/// missing bytes, by the size of the rows before it.
const OWN_CHUNKS: u64 = 40;

impl Rules<'_> {
    /// The chunks of all rows.
    pub(super) fn chunking(&self, method: Method, streams: NonZeroU16) -> Chunking {
        let RowRange { first_row, rows, .. } = self.bulk.range;
        let spread = self.spread();
        let chunk_rows = match (self.begun, method) {
            (_, Method::Direct) if spread == Spread::Table => self.rows(),
            (Some(begun), _) => begun.header.chunk_rows,
            (None, Method::CreateTableAs | Method::FrozenCopy | Method::Explode | Method::Direct) => {
                match spread {
                    Spread::Table => self.rows(),
                    Spread::Range { leaf_rows, .. } => leaf_rows,
                    Spread::Hash { leaves } => self.rows().div_ceil(u64::from(leaves)),
                }
            }
            (None, _) if self.request.is_in_cycle() => self.rows().max(1),
            (None, Method::ChunkedCopy | Method::Server | Method::Reinsert) => match self.request.chunk {
                Some(bytes) => self.rows_in(bytes),
                None => match self.bulk.row_size {
                    RowSize::Exact(_) => self.chunk_rows(method, spread, streams),
                    RowSize::Estimated { total, .. } => self.chunk_rows_of_own_table(total),
                },
            },
        };
        Chunking { first_row, rows, chunk_rows, spread }
    }

    fn chunk_rows(&self, method: Method, spread: Spread, streams: NonZeroU16) -> u64 {
        let rows = self.bulk.range.rows;
        // A chunk of this size stays in shared_buffers, and a fill that reaches the limit of space loses no more than
        // one chunk.
        if rows.is_none() || self.request.in_chunks {
            return match (rows, spread) {
                // The fill ends only where all leaves have the same ids.
                (None, Spread::Hash { leaves }) => (self.ring_rows() / u64::from(leaves)).max(FEW_ROWS),
                _ => self.ring_rows(),
            };
        }
        if method.copies() && self.fills_cache() && self.request.part.is_none() {
            return self.ring_rows();
        }
        let (parts, least) =
            self.request.part.map_or((1, CHUNK_ROWS), |part| (u64::from(part.of), PART_CHUNK_ROWS));
        let share = self.rows().div_ceil(u64::from(streams.get()) * parts * 4).max(least);
        share.min(self.rows_in(LARGE_CHUNK))
    }

    /// `total` is the size of a row with its indexes, bytes.
    fn chunk_rows_of_own_table(&self, total: u64) -> u64 {
        let bytes = match self.request.amount {
            Amount::Size(size) => (size / OWN_CHUNKS).min(LARGE_OWN_CHUNK),
            _ => LARGE_OWN_CHUNK,
        };
        let parts = self.request.part.map_or(1, |part| u64::from(part.of));
        let share = if parts > 1 { self.rows().div_ceil(parts * 4) } else { u64::MAX };
        (bytes / total).min(share).max(1)
    }

    /// Rows that so many bytes of heap hold.
    fn rows_in(&self, bytes: u64) -> u64 {
        (bytes / self.bytes_per_row()).max(1)
    }

    fn spread(&self) -> Spread {
        let Some(partitions) = self.request.partitions else { return Spread::Table };
        let leaves = partitions.count.get();
        match (partitions.method, self.bulk.range.rows) {
            (PartitionMethod::Hash, _) => Spread::Hash { leaves },
            (PartitionMethod::Range, Some(rows)) => {
                Spread::Range { leaves, leaf_rows: leaf_rows(rows, partitions) }
            }
            (PartitionMethod::Range, None) => unreachable!("refused: ranges need an end"),
        }
    }

    /// Rows that one COPY loads, and whether the checkpointer writes the blocks that COPY leaves in
    /// shared_buffers. Logged rows have to reach the disk before the commit: without the
    /// checkpointer, COPY should write them itself.
    pub(super) fn copies(&self, method: Method, chunking: Chunking) -> (u64, bool) {
        if method != Method::FrozenCopy || !self.fills_cache() {
            return (chunking.chunk_rows, false);
        }
        if self.is_logged() && !self.may_write_behind() {
            return (chunking.chunk_rows, false);
        }
        let rows = self.ring_rows().min(chunking.chunk_rows);
        (rows, self.is_logged() && rows < chunking.chunk_rows)
    }

    /// Heap bytes that a row takes, with its share of the page.
    fn bytes_per_row(&self) -> u64 {
        match self.bulk.row_size {
            RowSize::Exact(_) => {
                let rows =
                    self.geometry().rows_per_page(tuple(&self.bulk.tables.bulk), self.request.fillfactor);
                u64::from(self.geometry().block_size() / rows).max(1)
            }
            RowSize::Estimated { heap, .. } => heap,
        }
    }

    /// Heap of all rows, bytes.
    pub(super) fn heap(&self) -> u64 {
        self.rows().saturating_mul(self.bytes_per_row())
    }

    /// Whether the table fits shared_buffers with room for its index, so that it pays to leave it there.
    pub(super) fn stays_cached(&self) -> bool {
        self.heap() <= self.server.shared_buffers / 2
    }

    /// Whether COPY commands are to leave their blocks in shared_buffers, even if some are evicted
    /// later. On pgrig's own server that evicts no other user's blocks: with 6 GB of
    /// shared_buffers, 8 GB of unlogged rows take 8.4 s of the server's time this way, 9 to 21 s
    /// through the ring. At 14 GB there is no difference.
    fn fills_cache(&self) -> bool {
        let alone = self.site.own && !self.is_logged() && self.bulk.index == IndexKind::None;
        self.stays_cached() || alone && self.heap() <= self.server.shared_buffers.saturating_mul(2)
    }

    /// Rows that fill a bit less than the ring of 16 MB in shared_buffers that a COPY keeps to
    /// (`GetAccessStrategy`, BAS_BULKWRITE): only when the ring comes round does a COPY write out
    /// blocks itself, so a COPY that ends before leaves its blocks cached.
    fn ring_rows(&self) -> u64 {
        let (tuple, fillfactor) = (tuple(&self.bulk.tables.bulk), self.request.fillfactor);
        let limit = COPY_RING / u64::from(self.geometry().block_size()) - EXTENSION;
        let blocks = self.geometry().blocks_without_waste(tuple, fillfactor, limit);
        blocks * u64::from(self.geometry().rows_per_page(tuple, fillfactor))
    }

    /// Whether checkpoints may be forced to write the blocks that COPY leaves in shared_buffers: only on pgrig's
    /// own server, where they disturb nobody, and only for a table that is logged but needs no WAL.
    fn may_write_behind(&self) -> bool {
        let two_cores = self.site.cores.is_some_and(|cores| cores >= 2);
        self.site.own
            && self.request.part.is_none()
            && two_cores
            && self.is_logged()
            && self.server.skips_wal()
            && self.stays_cached()
    }
}
