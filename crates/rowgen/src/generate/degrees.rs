//! Rows of numbers that weights tell, where ANALYZE reads all rows: as many numbers have so many rows as in the original, and histograms stay.

use crate::random::{Draw, Stream};

/// Rows that chance proposes for a number, of which those are taken that its bucket needs.
const TRIED: u64 = 16;
/// Share of all rows by which the buckets up to one may have too many or too few.
const OFF: f64 = 0.015;

/// Rows of each of so many numbers, in the order of the weights: together `rows`, one each at least and `most` at most. None if there are too few
/// rows or too many. `weights` have fractions of the numbers.
pub(super) fn degrees(weights: &[(f64, f64)], (rows, numbers): (u64, u64), most: u64) -> Option<Vec<u64>> {
    if weights.is_empty() || rows < numbers || rows > numbers.saturating_mul(most) {
        return None;
    }
    let wanted = wanted(weights, rows, numbers);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
    let mut degrees: Vec<u64> = wanted.iter().map(|wanted| (*wanted as u64).clamp(1, most)).collect();
    let mut given: u64 = degrees.iter().sum();
    // Each round moves each number by one row at most: those first that are farthest from what they want.
    while given != rows {
        let is_short = given < rows;
        let is_open = |of: u64| if is_short { of < most } else { of > 1 };
        let mut open: Vec<(f64, usize)> = wanted
            .iter()
            .zip(&degrees)
            .enumerate()
            .filter(|(_, (_, of))| is_open(**of))
            .map(|(at, (wanted, of))| (wanted - *of as f64, at))
            .collect();
        open.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        if !is_short {
            open.reverse();
        }
        for (_, at) in open.into_iter().take(usize::try_from(given.abs_diff(rows)).unwrap_or(usize::MAX)) {
            if is_short {
                degrees[at] += 1;
                given += 1;
            } else {
                degrees[at] -= 1;
                given -= 1;
            }
        }
    }
    Some(degrees)
}

/// Weights of so many numbers, in a proportion in which they add up to the rows.
fn wanted(weights: &[(f64, f64)], rows: u64, numbers: u64) -> Vec<f64> {
    let all: f64 = weights.iter().map(|(_, fraction)| fraction).sum();
    let (mut at, mut until) = (0, weights[0].1);
    let weight = |number: u64| {
        let place = (number as f64 + 0.5) / numbers as f64 * all;
        while place >= until && at + 1 < weights.len() {
            at += 1;
            until += weights[at].1;
        }
        weights[at].0
    };
    let wanted: Vec<f64> = (0..numbers).map(weight).collect();
    let sum = wanted.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    wanted.into_iter().map(|wanted| wanted / sum * rows as f64).collect()
}

/// The same rows in another order: all buckets get about equally many, `buckets` has how many numbers each of them has. None if some get too
/// many or too few.
pub(super) fn arranged(mut degrees: Vec<u64>, buckets: &[u64], stream: Stream) -> Option<Vec<u64>> {
    let rows: u64 = degrees.iter().sum();
    let greatest = degrees.iter().copied().max().unwrap_or_default();
    let (each, off) = (rows as f64 / buckets.len().max(1) as f64, (OFF * rows as f64).max(greatest as f64));
    let mut arranged = Vec::with_capacity(degrees.len());
    // Rows of buckets without numbers go to the next one.
    let (mut here, mut wanted, mut given) = (0.0, 0.0, 0.0);
    for numbers in buckets {
        here += each;
        if *numbers == 0 {
            continue;
        }
        for _ in 0..*numbers {
            wanted += here / *numbers as f64;
            let at = nearest(&degrees, wanted - given, stream.draw(arranged.len() as u64))?;
            let degree = degrees.swap_remove(at);
            given += degree as f64;
            arranged.push(degree);
        }
        here = 0.0;
        if (wanted - given).abs() > off {
            return None;
        }
    }
    degrees.is_empty().then_some(arranged)
}

/// The place of the rows nearest to those that are wanted, of some that chance proposes.
fn nearest(degrees: &[u64], wanted: f64, mut draw: Draw) -> Option<usize> {
    let count = degrees.len() as u64;
    let proposed = (0..TRIED.min(count)).filter_map(|_| usize::try_from(draw.below(count)).ok());
    let off = |at: usize| (degrees[at] as f64 - wanted).abs();
    proposed.min_by(|one, other| off(*one).total_cmp(&off(*other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(degrees: &[u64]) -> Vec<(u64, usize)> {
        let mut degrees = degrees.to_vec();
        degrees.sort_unstable();
        degrees.chunk_by(|one, other| one == other).map(|same| (same[0], same.len())).collect()
    }

    #[test]
    fn as_many_numbers_have_so_many_rows_as_the_weights_tell() {
        // Invoices with one to nine lines: the last class is of 59 with six, and of 18 with nine.
        let weights = [(1.0, 59.0), (2.0, 117.0), (4.0, 59.0), (6.701, 77.0)];
        let made = degrees(&weights, (1_045, 312), 13).unwrap();
        assert_eq!(counted(&made), [(1, 59), (2, 117), (4, 59), (6, 23), (7, 54)]);
        assert_eq!(made.iter().sum::<u64>(), 1_045);
    }

    #[test]
    fn rows_that_do_not_suit_the_weights_are_shared() {
        let weights = [(1.0, 0.5), (9.0, 0.5)];
        for (rows, numbers, most) in
            [(60, 60, 9), (61, 60, 9), (540, 60, 9), (539, 60, 9), (300, 61, 8), (1, 1, 1)]
        {
            let made = degrees(&weights, (rows, numbers), most).unwrap();
            assert_eq!((made.len() as u64, made.iter().sum::<u64>()), (numbers, rows), "{made:?}");
            assert!(made.iter().all(|rows| (1..=most).contains(rows)), "{made:?}");
        }
        assert_eq!(degrees(&weights, (59, 60), 9), None);
        assert_eq!(degrees(&weights, (541, 60), 9), None);
        assert_eq!(degrees(&[], (60, 60), 9), None);
    }

    #[test]
    fn buckets_have_equally_many_rows() {
        let weights = [(1.0, 59.0), (2.0, 117.0), (4.0, 59.0), (6.701, 77.0)];
        let made = degrees(&weights, (1_028, 307), 13).unwrap();
        // Some buckets have more numbers than others, and one has none.
        let buckets: Vec<u64> = (0..104).map(|at| if at == 50 { 0 } else { 2 + at % 3 }).collect();
        let ordered = arranged(made.clone(), &buckets, Stream::new(7, &["t", "c"])).unwrap();
        assert_eq!(counted(&ordered), counted(&made));
        assert_ne!(ordered, made);
        let each = 1_028.0 / 104.0;
        let mut at = 0;
        let mut before = 0;
        for (place, numbers) in (1_u32..).zip(&buckets) {
            let end = at + usize::try_from(*numbers).unwrap();
            before += ordered[at..end].iter().sum::<u64>();
            at = end;
            let off = before as f64 - each * f64::from(place);
            assert!(*numbers == 0 || off.abs() < 16.0, "{place}: {off}");
        }
    }

    #[test]
    fn buckets_that_the_rows_do_not_suit_are_left_to_others() {
        // All rows of a bucket with one number.
        let made = degrees(&[(2.0, 1.0)], (200, 100), 2).unwrap();
        assert_eq!(arranged(made, &[99, 1], Stream::new(7, &["t", "c"])), None);
    }
}
