//! Ranks of few rows. ANALYZE reads all of these, so chance must not change the correlation of a column with the order of the rows.
//!
//! Strata of another column say how many rows lie in each stratum of this column. Within them, rows are sorted by a key: a part of their
//! number, and a part of chance. How much the row number counts decides on the correlation.

use super::super::order;
use super::scaled;
use crate::levels;
use crate::random::Stream;
use crate::ranking::Correlated;

/// Parts of the row number that are tried for one stream of random numbers.
const TRIED: usize = 10;
/// Rows below which more than one stream is tried.
const FEW: usize = 1_000;
/// Most streams that are tried besides the first one.
const MOST: usize = 64;
const NEAR: f64 = 0.002;

/// Rows in a stratum of another column, and numbers of those that lie in strata of this column, in ascending order.
pub(super) struct Stratum {
    pub(super) rows: Vec<usize>,
    pub(super) cells: Vec<(usize, usize)>,
}

/// The rank of each row with nearly the correlation that is wanted. `own` has the first ranks of this column's strata, and the number of ranks;
/// the last stratum is the one of NULLs.
pub(super) fn arranged(strata: &[Stratum], own: &[u64], wanted: &Correlated, stream: Stream) -> Vec<u64> {
    let rows = strata.iter().map(|stratum| stratum.rows.len()).sum::<usize>();
    let mut stream = stream.further();
    let mut best: Option<(f64, Vec<u64>)> = None;
    for _ in 0..=others(rows, own[own.len() - 2]) {
        let arranging = Arranging::new(strata, own, rows, stream);
        let found = arranging.nearest(wanted);
        if best.as_ref().is_none_or(|(off, _)| found.0 < *off) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|(off, _)| *off < NEAR) {
            break;
        }
        stream = stream.further();
    }
    best.map(|(_, ranks)| ranks).unwrap_or_default()
}

/// Streams of random numbers that are tried if the first one is not near enough. Up to two values have one correlation in each direction.
fn others(rows: usize, not_null: u64) -> usize {
    if not_null < 3 { 0 } else { (FEW / rows.max(1)).min(MOST) }
}

struct Arranging<'a> {
    /// Those of the other column, without rows that have NULL in this one.
    strata: Vec<Stratum>,
    nulls: Vec<usize>,
    own: &'a [u64],
    /// Two random numbers from 0 to 1 for each row.
    chance: Vec<(f64, f64)>,
}

impl<'a> Arranging<'a> {
    fn new(strata: &[Stratum], own: &'a [u64], rows: usize, stream: Stream) -> Self {
        let of_nulls = own.len().saturating_sub(2);
        let mut nulls = Vec::new();
        let without = |stratum: &Stratum| {
            let (theirs, cells): (Vec<_>, Vec<_>) =
                stratum.cells.iter().copied().partition(|(at, _)| *at == of_nulls);
            let mut rows = stratum.rows.clone();
            let count = theirs.iter().map(|(_, count)| *count).sum::<usize>();
            // Rounding can leave a row more than the pairs have.
            let count = if count > 0 && cells.is_empty() { rows.len() } else { count };
            if count > 0 {
                rows.sort_by_cached_key(|row| stream.further().draw(*row as u64).next());
                nulls.extend(rows.drain(..count.min(rows.len())));
            }
            Stratum { rows, cells }
        };
        let strata = strata.iter().map(without).collect();
        let chance = |row: usize| {
            let mut draw = stream.draw(row as u64);
            (draw.fraction(), draw.fraction())
        };
        Self { strata, nulls, own, chance: (0..rows).map(chance).collect() }
    }

    /// The ranks with the nearest correlation, and how far that is off. The part of the row number is found by false position (Illinois).
    fn nearest(&self, wanted: &Correlated) -> (f64, Vec<u64>) {
        let values = levels::values(&wanted.levels, self.not_null());
        let made = |part: f64| {
            let ranks = self.ranks(part);
            (self.correlation(&ranks, &values) - wanted.correlation, ranks)
        };
        let (mut near_off, mut best) = made(0.0);
        let mut best_off = near_off.abs();
        let (mut near, mut far) = (0.0, if near_off > 0.0 { -1.0 } else { 1.0 });
        let (mut far_off, ranks) = made(far);
        if far_off.abs() < best_off {
            (best_off, best) = (far_off.abs(), ranks);
        }
        for _ in 0..TRIED {
            if best_off < NEAR || near_off * far_off >= 0.0 {
                break;
            }
            let part = (near * far_off - far * near_off) / (far_off - near_off);
            let (off, ranks) = made(part);
            if off.abs() < best_off {
                (best_off, best) = (off.abs(), ranks);
            }
            if off * far_off < 0.0 {
                (near, near_off) = (far, far_off);
            } else {
                near_off /= 2.0;
            }
            (far, far_off) = (part, off);
        }
        (best_off, best)
    }

    /// The first rank of NULLs.
    fn not_null(&self) -> u64 {
        self.own[self.own.len() - 2]
    }

    /// The rank of each row, with a part of the row number from -1 to 1.
    fn ranks(&self, part: f64) -> Vec<u64> {
        let rows = self.chance.len();
        let keyed = |row: usize, chance: f64| {
            let place = (row as f64 + 0.5) / rows as f64;
            (part * place + (1.0 - part.abs()) * chance, row)
        };
        let sort = |keyed: &mut Vec<(f64, usize)>| {
            keyed.sort_unstable_by(|one, two| one.0.total_cmp(&two.0).then(one.1.cmp(&two.1)));
        };
        let mut of_own: Vec<Vec<(f64, usize)>> = vec![Vec::new(); self.own.len() - 1];
        for Stratum { rows, cells } in &self.strata {
            let mut sorted: Vec<(f64, usize)> =
                rows.iter().map(|row| keyed(*row, self.chance[*row].0)).collect();
            sort(&mut sorted);
            let mut left = sorted.into_iter().map(|(_, row)| keyed(row, self.chance[row].1));
            for (at, count) in cells {
                of_own[*at].extend(left.by_ref().take(*count));
            }
            // Rows are left only by rounding.
            of_own[cells.last().map_or(0, |(at, _)| *at)].extend(left);
        }
        let mut ranks = vec![0; rows];
        let nulls = self.nulls.iter().map(|row| (0.0, *row)).collect();
        if let Some(last) = of_own.last_mut() {
            *last = nulls;
        }
        for (at, mut rows) in of_own.into_iter().enumerate() {
            if at + 2 < self.own.len() {
                sort(&mut rows);
            }
            let (first, width, count) = (self.own[at], self.own[at + 1] - self.own[at], rows.len() as u64);
            for (place, (_, row)) in (0..).zip(rows) {
                ranks[row] = first + scaled(place, width, count);
            }
        }
        ranks
    }

    /// Correlation of row number and place in the order of the values, as ANALYZE computes it of rows that are not NULL.
    fn correlation(&self, ranks: &[u64], value: impl Fn(u64) -> u64) -> f64 {
        let not_null = self.not_null();
        order::correlation(ranks.iter().filter(|rank| **rank < not_null).map(|rank| value(*rank)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::Level;

    const STREAM: [&str; 2] = ["t", "c"];

    /// All rows in one stratum, with so many NULLs, and two strata of this column.
    fn alone(rows: usize, nulls: usize, correlation: f64, levels: &[Level]) -> Vec<u64> {
        let half = (rows - nulls) / 2;
        let cells = vec![(0, half), (1, rows - nulls - half), (2, nulls)];
        let strata = [Stratum { rows: (0..rows).collect(), cells }];
        let own = [0, half as u64, (rows - nulls) as u64, rows as u64];
        let wanted = Correlated { correlation, levels: levels.to_vec() };
        arranged(&strata, &own, &wanted, Stream::new(3, &STREAM))
    }

    /// As ANALYZE computes it, from the ranks of rows that are not NULL, each with a value of its own.
    fn correlation(ranks: &[u64]) -> f64 {
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|row| ranks[*row]);
        let count = ranks.len() as f64;
        let mean = (count - 1.0) / 2.0;
        let sum: f64 =
            order.iter().zip(0_u32..).map(|(row, at)| (*row as f64 - mean) * (f64::from(at) - mean)).sum();
        sum * 12.0 / (count * (count * count - 1.0))
    }

    #[test]
    fn few_rows_have_the_correlation_beside_nulls() {
        for (rows, nulls, near) in [(3_000, 0, 0.004), (412, 200, 0.005), (59, 47, 0.02)] {
            for wanted in [-0.78, -0.1, 0.05, 0.6, 0.97] {
                let ranks = alone(rows, nulls, wanted, &[]);
                let mut sorted = ranks.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..rows as u64), "{rows}");
                let not_null = (rows - nulls) as u64;
                let there: Vec<u64> = ranks.into_iter().filter(|rank| *rank < not_null).collect();
                let found = correlation(&there);
                assert!((found - wanted).abs() < near, "{rows}, {wanted}: {found}");
            }
        }
        assert!(alone(500, 0, 1.0, &[]).is_sorted());
    }

    #[test]
    fn rows_with_equal_values_ascend() {
        let levels = [0.5, 0.3, 0.2].map(|share| Level { share, values: 1.0 });
        let ranks = alone(2_000, 0, 0.7, &levels);
        let value = |rank: u64| u64::from(rank >= 1_000) + u64::from(rank >= 1_600);
        let mut order: Vec<(u64, usize)> =
            ranks.iter().zip(0..).map(|(rank, row)| (value(*rank), row)).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        for (place, (_, row)) in (0..).zip(order) {
            places[row] = place;
        }
        let found = correlation(&places);
        assert!((found - 0.7).abs() < 0.004, "{found}");
    }

    #[test]
    fn few_values_that_have_no_correlation_are_arranged_once() {
        assert_eq!([others(1, 1), others(2, 2), others(700, 2), others(2_000, 1_500)], [0; 4]);
        assert_eq!([others(3, 3), others(20, 20), others(500, 500)], [64, 50, 2]);
        assert_eq!(alone(1, 0, 1.0, &[]), [0]);
        assert_eq!((alone(2, 0, 1.0, &[]), alone(2, 0, -1.0, &[])), (vec![0, 1], vec![1, 0]));
    }

    /// A row more lies in each stratum than its pairs have.
    #[test]
    fn rows_left_by_rounding_stay_in_their_pairs() {
        let strata = [
            Stratum { rows: (0..51).collect(), cells: vec![(0, 50)] },
            Stratum { rows: (51..102).collect(), cells: vec![(1, 50)] },
            Stratum { rows: (102..153).collect(), cells: vec![(2, 50)] },
        ];
        let wanted = Correlated { correlation: 0.9, levels: Vec::new() };
        let ranks = arranged(&strata, &[0, 50, 100, 150], &wanted, Stream::new(3, &STREAM));
        for (row, rank) in (0..).zip(ranks) {
            assert_eq!(rank / 50, row / 51, "{row}");
        }
    }

    #[test]
    fn strata_of_another_column_keep_their_numbers_of_rows() {
        // Even rows lie in the first stratum, of which 90 % lie in the first one of this column.
        let rows = |odd: usize| -> Vec<usize> { (0..1_000).map(|row| 2 * row + odd).collect() };
        let strata = [
            Stratum { rows: rows(0), cells: vec![(0, 900), (1, 100)] },
            Stratum { rows: rows(1), cells: vec![(0, 300), (1, 700)] },
        ];
        for wanted in [-0.5, 0.0, 0.6] {
            let wanted = Correlated { correlation: wanted, levels: Vec::new() };
            let ranks = arranged(&strata, &[0, 1_200, 2_000, 2_000], &wanted, Stream::new(3, &STREAM));
            let low = |odd: usize| ranks.iter().skip(odd).step_by(2).filter(|rank| **rank < 1_200).count();
            assert_eq!((low(0), low(1)), (900, 300));
            let found = correlation(&ranks);
            assert!((found - wanted.correlation).abs() < 0.004, "{wanted:?}: {found}");
        }
    }
}
