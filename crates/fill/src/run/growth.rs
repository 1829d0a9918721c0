//! Grows a table chunk by chunk to the requested size.
//!
//! The size of rows with their indexes and TOAST is measured while they are loaded. Asking for the
//! size of a table takes some 20 ms if it has hundreds of partitions, so pgrig asks more rarely the
//! farther away the goal is. Only the last chunk is cut to the missing bytes, when no other chunk
//! is loading.
//!
//! Since PostgreSQL 16 a COPY extends a table by up to 64 pages at once (`RelationAddBlocks` in `hio.c`). The size
//! counts those that are still empty, at the end of a small table up to 1 % of it, and later rows fill them. So one
//! stream loads the last chunks alone. The last one is cut to the bytes that are missing, plus the empty pages before
//! it, less half of an extension, which stays empty after it on average.

use crate::plan::Plan;

/// The table's growth is extrapolated at most to this multiple of the growth that has been
/// measured.
const FORESIGHT: u64 = 4;
/// The size counts as reached when less than 1/1000 of it is missing.
const TOLERANCE: u64 = 1000;
/// Number of chunks at the end that one stream loads alone.
const ALONE: u64 = 4;
/// Size from which on the empty pages of a table are far below 1 % of it, bytes.
const SMALL: u64 = 1 << 30;
/// Bytes by which a COPY extends a table at once (`MAX_BUFFERS_TO_EXTEND_BY`).
pub(crate) const EXTENSION: u64 = 64 << 13;

/// Whether empty pages matter: a COPY extends the table by many pages at once, and the requested
/// size is small.
pub(crate) fn extends_by_many_pages(plan: &Plan) -> bool {
    plan.major >= 16 && plan.until_size.is_some_and(|goal| goal < SMALL)
}

/// A table on its way to a size.
#[derive(Debug)]
pub(crate) struct Growth {
    /// Bytes that the table shall take.
    goal: u64,
    /// Rows of a chunk.
    chunk_rows: u64,
    /// Bytes of a row, as far as is known.
    row: f64,
    /// Bytes by which a COPY extends the table at once; 0 if it does so page by page.
    extension: u64,
    /// Bytes before the first chunk, without empty pages.
    before: Option<u64>,
    /// Rows of chunks that are being loaded.
    running: u64,
    /// Rows of chunks that were loaded.
    loaded: u64,
    /// Rows that may be loaded before the size has to be asked for again.
    sure: u64,
    /// Whether the chunk that is cut to the missing bytes has begun.
    is_cut: bool,
}

/// Size of a table, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// With its indexes.
    pub(crate) bytes: u64,
    /// Of them, the heap; 0 if it is in partitions.
    pub(crate) heap: u64,
    /// Of that, pages at its end that hold no row.
    pub(crate) empty: u64,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for the size, and call [`Growth::measured`].
    Measure,
    /// Load a chunk with so many rows at most, and call [`Growth::ended`].
    Load(u64),
    /// Nothing: the size is reached, or the chunks that are loading decide.
    End,
}

impl Growth {
    /// `row` is the predicted size of a row with its indexes, bytes.
    pub(crate) fn new(goal: u64, chunk_rows: u64, row: f64, extension: u64) -> Self {
        Self { goal, chunk_rows, row, extension, before: None, running: 0, loaded: 0, sure: 0, is_cut: false }
    }

    /// Whether no chunk is being loaded, so that empty pages will stay empty.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.running == 0
    }

    /// The next action of an idle stream.
    pub(crate) fn next(&mut self) -> Next {
        if self.is_cut {
            return Next::End;
        }
        if self.sure < self.chunk_rows {
            return Next::Measure;
        }
        self.sure -= self.chunk_rows;
        self.load(self.chunk_rows)
    }

    /// The next action of a stream that has measured the size.
    pub(crate) fn measured(&mut self, Size { bytes, heap, empty }: Size) -> Next {
        let size = bytes.saturating_sub(empty);
        let grown = size.saturating_sub(*self.before.get_or_insert(size));
        // Of the rows that are under way about half are in the size.
        let counted = self.loaded + self.running / 2;
        if self.loaded > 0 && grown > 0 {
            self.row = grown as f64 / counted as f64;
        }
        let missing = self.goal.saturating_sub(size);
        // Half of what the last COPY extends the heap by at once stays empty; that is no more than it has added.
        let added = u128::from(missing) * u128::from(heap) / u128::from(bytes.max(1));
        let added = u64::try_from(added).unwrap_or(missing);
        let missing = missing.saturating_sub(self.extension.min(added) / 2);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
        let left = ((missing as f64 / self.row) as u64).saturating_sub(self.running);
        if left >= self.chunk_rows {
            let alone = if self.extension > 0 { ALONE * self.chunk_rows } else { 0 };
            if self.running > 0 && left < alone {
                return Next::End;
            }
            let shared = left.saturating_sub(alone);
            self.sure = (shared / 2).min(self.loaded * FORESIGHT).saturating_sub(self.chunk_rows);
            return self.load(self.chunk_rows);
        }
        if self.running > 0 || left == 0 || missing < self.goal / TOLERANCE {
            return Next::End;
        }
        self.is_cut = true;
        self.load(left)
    }

    /// Takes note that a chunk of at most `rows` rows has ended.
    pub(crate) fn ended(&mut self, rows: u64) {
        self.running -= rows;
        self.loaded += rows;
    }

    /// How much of the way is done, 0 to 1, about.
    pub(crate) fn fraction(&self) -> f64 {
        let way = self.goal.saturating_sub(self.before.unwrap_or(0)).max(1);
        (self.loaded as f64 * self.row / way as f64).min(1.0)
    }

    fn load(&mut self, rows: u64) -> Next {
        self.running += rows;
        Next::Load(rows)
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes made up for tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Grows a table whose rows take `row` bytes where `predicted` were expected, by so many streams; how
    /// large it becomes, and how often its size was asked for.
    fn grown(
        goal: u64,
        before: u64,
        chunk_rows: u64,
        row: f64,
        predicted: f64,
        streams: usize,
    ) -> (u64, u64) {
        let mut growth = Growth::new(goal, chunk_rows, predicted, 0);
        let (mut rows, mut measured) = (0, 0);
        let mut loading: Vec<u64> = Vec::new();
        let mut idle = streams;
        while idle > 0 || !loading.is_empty() {
            if idle == 0 {
                let done = loading.remove(0);
                growth.ended(done);
                rows += done;
                idle += 1;
            }
            let next = match growth.next() {
                Next::Measure => {
                    measured += 1;
                    let under_way = loading.iter().sum::<u64>() / 2;
                    let bytes = before + ((rows + under_way) as f64 * row) as u64;
                    growth.measured(Size { bytes, heap: bytes, empty: 0 })
                }
                next => next,
            };
            idle -= 1;
            if let Next::Load(rows) = next {
                loading.push(rows);
            }
        }
        (before + (rows as f64 * row) as u64, measured)
    }

    proptest! {
        #[test]
        fn the_size_is_met_and_seldom_asked_for(
            goal in 50_000_000_u64..100_000_000_000, before in 0_u64..30_000_000, row in 30.0..20_000.0,
            off in 0.3..30.0, chunks in 40_u64..2000, streams in 1_usize..9,
        ) {
            let predicted = row * off;
            let chunk_rows = ((goal / chunks) as f64 / predicted) as u64;
            prop_assume!(chunk_rows > 0);
            let (size, measured) = grown(goal, before, chunk_rows, row, predicted, streams);
            prop_assert!((size as f64 / goal as f64 - 1.0).abs() < 0.003, "{size} of {goal}");
            prop_assert!(measured < 60 + 2 * streams as u64, "asked {measured} times");
        }
    }

    /// Chunks whose COPY leaves `left_empty` bytes at the end of the table, until the next one fills them.
    #[test]
    fn pages_that_are_empty_are_filled_first() {
        let (goal, row) = (50_000_000, 120.0);
        for left_empty in [0, EXTENSION / 2, EXTENSION - 8192] {
            let mut growth = Growth::new(goal, 5_630, 150.0, EXTENSION);
            let (mut rows, mut bytes) = (0, 0);
            loop {
                let used = (rows as f64 * row) as u64;
                let next = match growth.next() {
                    Next::Measure => growth.measured(Size { bytes, heap: bytes, empty: bytes - used }),
                    next => next,
                };
                let Next::Load(more) = next else { break };
                growth.ended(more);
                rows += more;
                bytes = (rows as f64 * row) as u64 + left_empty;
            }
            assert!((bytes as f64 / goal as f64 - 1.0).abs() < 0.006, "{left_empty}: {bytes}");
        }
    }

    #[test]
    fn what_is_large_enough_gets_no_rows() {
        assert_eq!(grown(50_000_000, 50_000_000, 1000, 100.0, 100.0, 2), (50_000_000, 2));
        assert_eq!(grown(50_000_000, 60_000_000, 1000, 100.0, 100.0, 1), (60_000_000, 1));
    }
}
