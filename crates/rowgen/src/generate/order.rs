//! Rows in the order of their values: a permutation with a given correlation, without a table.

use super::shuffle;
use crate::levels::{self, Level};
use crate::random::Stream;

/// Number of ranks if the number of rows is not known.
const OPEN: u64 = 1 << 62;
/// Up to this number of rows ANALYZE reads all rows, so chance must not change their correlation.
pub(super) const READ_WHOLE: u64 = 30_000;
/// Number of orders that are tried for so few rows. The one with the nearest correlation is used.
const TRIED: u64 = 16;
const NEAR: f64 = 0.002;

/// Gives each row its rank in the order of the values.
///
/// Rows are shuffled within windows of the same width. If windows take the shares s of all rows, the correlation of row
/// number and rank is 1 - Σ s³.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    stream: Stream,
    rows: u64,
    /// Rows of a window; all but the last one have as many.
    width: u64,
    is_descending: bool,
}

impl Order {
    /// The order of so many rows, `u64::MAX` if their number is not known. Rows with the same value ascend, which adds to the
    /// correlation; `levels` are the values in their order, none if each row has a value of its own.
    pub(super) fn new(stream: Stream, rows: u64, correlation: f64, levels: &[Level]) -> Self {
        let untied = levels::untied(correlation, rows, levels);
        let order = Self::windows(stream, rows, untied);
        if !(3..=READ_WHOLE).contains(&rows) || order.width <= 1 {
            return order;
        }
        let off = |order: &Self| (order.correlation(levels) - correlation).abs();
        let (mut best, mut best_off) = (order, off(&order));
        let mut other = stream;
        for _ in 1..TRIED * (1 + 1_000 / rows) {
            if best_off < NEAR {
                break;
            }
            other = other.further();
            let order = Self::windows(other, rows, untied);
            let off = off(&order);
            if off < best_off {
                (best, best_off) = (order, off);
            }
        }
        best
    }

    fn windows(stream: Stream, rows: u64, untied: f64) -> Self {
        let is_descending = untied < 0.0;
        let share = levels::window(untied.abs().min(1.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the rows")]
        let width = ((rows as f64 * share).round() as u64).clamp(1, rows.max(1));
        Self { stream, rows, width, is_descending }
    }

    /// Correlation of row number and place in the order of the values, as ANALYZE computes it.
    fn correlation(&self, levels: &[Level]) -> f64 {
        let value = levels::values(levels, self.rows);
        correlation((0..self.rows).map(|row| value(self.rank(row))))
    }

    /// Number of ranks.
    pub(super) fn count(self) -> u64 {
        if self.rows == u64::MAX { OPEN } else { self.rows.max(1) }
    }

    /// The rank of a row, below [`Self::count`].
    #[inline]
    pub(super) fn rank(self, row: u64) -> u64 {
        if self.rows == u64::MAX {
            return self.stream.draw(row).below(OPEN);
        }
        let row = row % self.rows.max(1);
        let start = row - row % self.width;
        let count = self.width.min(self.rows - start);
        let rank = if count <= 1 { row } else { start + shuffle::place(row - start, count, self.stream) };
        if self.is_descending { self.rows - 1 - rank } else { rank }
    }
}

/// Correlation of row number and place in the order of the values, as ANALYZE computes it from the values of all rows.
pub(super) fn correlation(values: impl Iterator<Item = u64>) -> f64 {
    let mut places: Vec<(u64, u64)> = values.zip(0..).collect();
    places.sort_unstable();
    let count = places.len() as f64;
    let mean = (count - 1.0) / 2.0;
    let products = places.iter().enumerate().map(|(at, (_, row))| (at as f64 - mean) * (*row as f64 - mean));
    products.sum::<f64>() * 12.0 / (count * (count * count - 1.0)).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's, of row number and rank.
    fn correlation(order: Order) -> f64 {
        let n = order.rows as f64;
        let mean = (n - 1.0) / 2.0;
        let sum = |of: &dyn Fn(u64) -> f64| (0..order.rows).map(of).sum::<f64>();
        let together = sum(&|row| (row as f64 - mean) * (order.rank(row) as f64 - mean));
        together / sum(&|row| (row as f64 - mean).powi(2))
    }

    #[test]
    fn ranks_are_a_permutation_with_the_correlation() {
        for wanted in [-1.0, -0.8, -0.3, 0.0, 0.1, 0.5, 0.75, 0.9, 0.99, 1.0] {
            let order = Order::new(Stream::new(1, &["t", "c"]), 20_000, wanted, &[]);
            assert!((correlation(order) - wanted).abs() < 0.03, "{wanted}: {}", correlation(order));
            let mut ranks: Vec<u64> = (0..20_000).map(|row| order.rank(row)).collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..20_000), "{wanted}");
        }
    }

    #[test]
    fn few_rows_have_the_correlation_too() {
        for wanted in [-0.3, 0.047, 0.35] {
            let order = Order::new(Stream::new(7, &["t", "c"]), 25, wanted, &[]);
            assert!((correlation(order) - wanted).abs() < 0.01, "{wanted}: {}", correlation(order));
        }
    }

    #[test]
    fn open_ends_have_ranks_too() {
        let order = Order::new(Stream::new(1, &["t", "c"]), u64::MAX, 0.5, &[]);
        assert!((0..1_000).all(|row| order.rank(row) < order.count()));
    }
    #[test]
    fn few_values_have_the_correlation_that_analyze_finds() {
        let few = [0.479, 0.239, 0.282].map(|share| Level { share, values: 1.0 });
        let mixed =
            [(0.3, 200.0), (0.2, 1.0), (0.4, 3.0), (0.1, 1.0)].map(|(share, values)| Level { share, values });
        for levels in [&few[..], &mixed] {
            for (rows, near) in [(40_000, 0.01), (5_000, 0.01), (200, 0.03)] {
                for wanted in [0.4, 0.6, 0.79, 0.9, 0.97, 1.0] {
                    let order = Order::new(Stream::new(3, &["t", "c"]), rows, wanted, levels);
                    let found = order.correlation(levels);
                    assert!((found - wanted).abs() < near, "{rows}, {wanted}: {found}");
                }
            }
        }
    }
}
