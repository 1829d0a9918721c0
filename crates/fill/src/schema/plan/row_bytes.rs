//! Bytes that rows of a table take with their index entries.

use crate::plan::sizes::Sizes;
use crate::plan::{IndexGrowth, Plan, Splits, entry_size};

/// How much larger an index with ascending keys becomes where another stream adds greater keys meanwhile: its leaves split in
/// halves then, and are not left 90 % full.
const SPLIT_IN_HALVES: f64 = 1.8;
/// An index whose keys ascend grows as CREATE INDEX builds it, up to this factor.
const ASCENDING: f64 = 1.15;

/// Bytes that rows of a table take, as measured with a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct RowBytes {
    /// Of each row, with entries of indexes that grow evenly.
    per_row: f64,
    /// Of each row, in indexes over one ascending column.
    ascending: f64,
    /// Indexes whose new entries come between those present.
    splits: Vec<Splits>,
    /// The same of indexes that may hold a key many times: a full leaf has equal keys merged, and may not split then.
    doubtful: Vec<Splits>,
    /// Streams at most, and rows of a chunk.
    streams: f64,
    chunk_rows: f64,
}

impl RowBytes {
    /// Of a table that was measured with so many rows.
    pub(super) fn even(sizes: Sizes, rows: u64) -> Self {
        Self { per_row: sizes.total() as f64 / rows.max(1) as f64, ..Self::default() }
    }

    /// Of a table whose rows come to others.
    pub(super) fn of_growth(sizes: Sizes, rows: u64, indexes: &[IndexGrowth]) -> Self {
        let mut row_bytes = Self::even(sizes, rows);
        let rows = rows.max(1) as f64;
        for index in indexes.iter().filter(|index| index.is_btree && index.packed > 0) {
            let (grown, packed) = (index.grown as f64 / rows, index.packed as f64 / rows);
            if !index.comes_after {
                let entry = index.entry.filter(|_| index.is_unique).unwrap_or_else(|| entry_size(packed));
                let splits = if index.is_unique { &mut row_bytes.splits } else { &mut row_bytes.doubtful };
                splits.push(Splits::of(index.bytes as f64, index.entries, entry, &index.leaves));
                row_bytes.per_row -= grown;
            } else if index.keys == 1 && grown < packed * ASCENDING {
                row_bytes.ascending += grown;
                row_bytes.per_row -= grown;
            }
        }
        row_bytes
    }

    /// Tells how the plan loads chunks.
    pub(super) fn loaded_by(&mut self, plan: &Plan) {
        self.streams = f64::from(plan.streams.get());
        self.chunk_rows = plan.chunking.chunk_rows as f64;
    }

    /// Bytes of so many rows.
    pub(super) fn times(&self, rows: u64) -> f64 {
        let rows = rows as f64;
        let chunks = if self.chunk_rows > 0.0 { (rows / self.chunk_rows).ceil() } else { 1.0 };
        let streams = self.streams.min(chunks).max(1.0);
        let ascending = self.ascending * (1.0 + (streams - 1.0) * SPLIT_IN_HALVES) / streams;
        let splits: f64 = self.splits.iter().map(|splits| splits.added(rows)).sum();
        (self.per_row + ascending) * rows + splits + self.doubt(rows)
    }

    /// Of these, bytes that the rows may not take.
    pub(super) fn doubt(&self, rows: f64) -> f64 {
        self.doubtful.iter().map(|splits| splits.added(rows)).sum()
    }
}
