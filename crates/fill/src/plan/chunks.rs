//! Rows cut into chunks: the unit that is generated, loaded, committed, recorded and retried.
//!
//! The number of a chunk alone determines its rows, so an interrupted fill can be completed from the recorded numbers.

use std::ops::Range;

use serde::Serialize;

/// Chunks of the rows of the bulk table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Chunking {
    /// Number of the first row, from 0; above 0 if rows are added to a table.
    pub first_row: u64,
    /// Rows in all; none if only a limit ends the fill.
    pub rows: Option<u64>,
    /// Rows of a chunk; the last one of a leaf may have fewer.
    pub chunk_rows: u64,
    /// The relations that COPY names: the table itself, or its partitions.
    pub spread: Spread,
}

/// The relations of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All to the table itself (which may have partitions and route them).
    Table,
    /// Straight to the leaves: each has a range of so many rows.
    Range {
        /// Number of leaves.
        leaves: u32,
        /// Rows of each but the last.
        leaf_rows: u64,
    },
    /// Straight to the leaves, by the hash of the id.
    Hash {
        /// Number of leaves.
        leaves: u32,
    },
}

impl Spread {
    /// Number of relations that rows are loaded into.
    pub fn leaves(self) -> u32 {
        match self {
            Self::Table => 1,
            Self::Range { leaves, .. } | Self::Hash { leaves } => leaves,
        }
    }
}

/// Some rows of one relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number, from 0.
    pub number: u64,
    /// The leaf, from 0.
    pub leaf: u32,
    /// Row numbers. In a leaf by hash, only the rows that belong to the leaf.
    pub rows: Range<u64>,
}

impl Chunking {
    /// Number of chunks; none if only a limit ends the fill.
    pub fn count(&self) -> Option<u64> {
        let rows = self.rows?;
        let leaves = u64::from(self.spread.leaves());
        Some(match self.spread {
            Spread::Table => rows.div_ceil(self.chunk_rows),
            Spread::Range { leaf_rows, .. } => leaves * leaf_rows.min(rows).div_ceil(self.chunk_rows),
            Spread::Hash { .. } => leaves * rows.div_ceil(self.chunk_rows * leaves),
        })
    }

    /// The chunk of this number, below [`Self::count`]. Neighbours go to different leaves, so that
    /// streams do not meet in one. The last leaf may have less than others, and its last chunks no rows.
    pub fn chunk(&self, number: u64) -> Chunk {
        let leaves = u64::from(self.spread.leaves());
        let (leaf, index) = (number % leaves, number / leaves);
        let (begin, end, length) = match self.spread {
            Spread::Table => (0, u64::MAX, self.chunk_rows),
            Spread::Range { leaf_rows, .. } => (leaf * leaf_rows, (leaf + 1) * leaf_rows, self.chunk_rows),
            Spread::Hash { .. } => (0, u64::MAX, self.chunk_rows * leaves),
        };
        let end = end.min(self.rows.unwrap_or(u64::MAX));
        let start = (begin + index * length).min(end);
        let past = (start + length).min(end);
        Chunk {
            number,
            leaf: u32::try_from(leaf).unwrap_or(u32::MAX),
            rows: self.first_row + start..self.first_row + past,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunks(chunking: Chunking) -> Vec<Chunk> {
        (0..chunking.count().unwrap()).map(|number| chunking.chunk(number)).collect()
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_chunk(
            first_row in 0_u64..1000, rows in 1_u64..5000, chunk_rows in 1_u64..700, leaves in 1_u32..9,
            kind in 0..3,
        ) {
            let leaf_rows = rows.div_ceil(u64::from(leaves));
            let spread = match kind {
                0 => Spread::Table,
                1 => Spread::Range { leaves, leaf_rows },
                _ => Spread::Hash { leaves },
            };
            let chunking = Chunking { first_row, rows: Some(rows), chunk_rows, spread };
            // Of a leaf by hash every range is there once for each leaf.
            let copies = if kind == 2 { leaves } else { 1 };
            let mut seen = vec![0; usize::try_from(rows).unwrap()];
            for chunk in chunks(chunking) {
                for row in chunk.rows {
                    seen[usize::try_from(row - first_row).unwrap()] += 1;
                }
            }
            prop_assert!(seen.iter().all(|times| *times == copies));
        }

        #[test]
        fn a_leaf_s_rows_are_within_its_range(rows in 1_u64..5000, chunk_rows in 1_u64..700, leaves in 1_u32..9) {
            let leaf_rows = rows.div_ceil(u64::from(leaves));
            let spread = Spread::Range { leaves, leaf_rows };
            for chunk in chunks(Chunking { first_row: 0, rows: Some(rows), chunk_rows, spread }) {
                for row in chunk.rows {
                    prop_assert_eq!(u64::from(chunk.leaf), row / leaf_rows);
                }
            }
        }
    }

    #[test]
    fn without_an_end_there_is_always_a_next_chunk() {
        let spread = Spread::Hash { leaves: 4 };
        let chunking = Chunking { first_row: 0, rows: None, chunk_rows: 10, spread };
        assert_eq!(chunking.count(), None);
        assert_eq!(
            chunking.chunk(4_000_001),
            Chunk { number: 4_000_001, leaf: 1, rows: 40_000_000..40_000_040 }
        );
    }
}
