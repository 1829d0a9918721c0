//! Numbers of few rows. ANALYZE reads all of these, so that it finds the number of different ones, and how often each comes: chance must not
//! change that.

use super::degrees::{arranged, degrees};
use super::level::{self, Recipient, level};
use super::shuffle;
use super::weights::{Weights, weights};
use crate::Spread;
use crate::random::Stream;

/// Rows of each number, on average, up to which nearly each row has its own.
const NEARLY_EACH: f64 = 1.5;
/// Rows for which there must be room, relative to those there are, so that frequent numbers alone have the most.
const ROOM: f64 = 1.25;
/// Share of the numbers that may have a row less than the weights tell, so that frequent numbers alone have the most.
const TIED: f64 = 0.02;
/// Weight of a number that the weights leave without rows, and that comes nevertheless.
const LEAST: f64 = 1e-3;

/// The number of each rank.
#[derive(Clone, Debug)]
pub(super) struct Few {
    /// The first rank after those of each number.
    until: Vec<u64>,
    numbers: Vec<u64>,
}

/// Numbers that are frequent, in ascending order, each with its share of the rows.
type Common = [(u64, f64)];

impl Few {
    /// For so many rows, `others` numbers below `count` beside the frequent ones. `buckets` are stretches of numbers that have equal shares of
    /// the other rows.
    pub(super) fn new(
        spread: &Spread,
        (common, buckets): (&Common, &[(u64, u64)]),
        (rows, count, others): (u64, u64, u64),
        stream: Stream,
    ) -> Self {
        let frequent = whole(common.iter().map(|(_, share)| share * rows as f64), rows);
        let left = rows - frequent.iter().sum::<u64>();
        let free = count - common.len() as u64;
        // All rows need a number.
        let others = others.min(left).min(free).max(u64::from(left > 0 && free > 0));
        let free = Free { common, buckets, count: free };
        let others = if others as f64 * NEARLY_EACH >= left as f64 {
            let counts = counts(spread, left, others, stream);
            places(&counts, left, &free).into_iter().zip(counts).collect()
        } else {
            let least = frequent.iter().min().copied().filter(|rows| *rows > 0).unwrap_or(left);
            // Each of the others has rows.
            let weighted = spread.weights.iter().copied().filter(|(weight, _)| *weight > 0.0).collect();
            let spread = Spread { weights: weighted, ..spread.clone() };
            let exact = free.by_weights(&spread.weights, (left, others), least, stream);
            exact.unwrap_or_else(|| {
                // ANALYZE lists the lowest ones of numbers with equally many rows as frequent. So no other number has as many as a frequent one, if there is room.
                let fewer = least.saturating_sub(1);
                let has_room = fewer as f64 * others as f64 >= ROOM * left as f64;
                let most = if frequent.is_empty() || !has_room { least } else { fewer };
                free.by_density(&weights(&spread, buckets, count, stream), (left, others), most)
            })
        };
        let frequent = common.iter().map(|(number, _)| *number).zip(frequent);
        let mut all: Vec<(u64, u64)> = frequent.chain(others).collect();
        all.retain(|(_, rows)| *rows > 0);
        all.sort_unstable();
        let until = all.iter().scan(0, |sum, (_, rows)| {
            *sum += rows;
            Some(*sum)
        });
        Self { until: until.collect(), numbers: all.iter().map(|(number, _)| *number).collect() }
    }

    /// The number of a rank.
    #[inline]
    pub(super) fn number(&self, rank: u64) -> u64 {
        let at = self.until.partition_point(|until| *until <= rank).min(self.numbers.len().saturating_sub(1));
        self.numbers.get(at).copied().unwrap_or_default()
    }

    /// The rows of each number that comes, in the order of the numbers.
    pub(super) fn rows(&self) -> impl Iterator<Item = u64> {
        let begins = std::iter::once(&0).chain(&self.until);
        self.until.iter().zip(begins).map(|(until, begin)| until - begin)
    }

    /// The numbers that come, with their rows.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.numbers.iter().copied().zip(self.rows())
    }
}

/// Whole numbers that follow these, their sum at most `most`.
fn whole(wanted: impl Iterator<Item = f64>, most: u64) -> Vec<u64> {
    let (mut sum, mut given) = (0.0, 0);
    let next = |wanted: f64| {
        sum += wanted;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
        let until = (sum.round() as u64).clamp(given, most);
        let count = until - given;
        given = until;
        count
    };
    wanted.map(next).collect()
}

/// Rows of each of the others, at least one: by the weights, in an order that chance decides, or equally many.
fn counts(spread: &Spread, rows: u64, others: u64, stream: Stream) -> Vec<u64> {
    let weights: Vec<(f64, f64)> =
        spread.weights.iter().copied().filter(|(weight, _)| *weight > 0.0).collect();
    let all: f64 = weights.iter().map(|(_, fraction)| fraction).sum();
    let mean = weights.iter().map(|(weight, fraction)| weight * fraction / all).sum::<f64>();
    let more = rows.saturating_sub(others);
    let wanted = |number: u64| {
        let at = if others > 1 { shuffle::place(number, others, stream) } else { 0 };
        let mut left = (at as f64 + 0.5) / others as f64 * all;
        let weight = weights.iter().find(|(_, fraction)| {
            left -= fraction;
            left < 0.0
        });
        weight.map_or(0.0, |(weight, _)| (weight - 1.0).max(0.0))
    };
    // Beside one row of each.
    let beyond = if mean > 1.0 {
        (0..others).map(wanted).collect()
    } else {
        vec![1.0; usize::try_from(others).unwrap_or_default()]
    };
    let sum = beyond.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    whole(beyond.iter().map(|beyond| beyond / sum * more as f64), more)
        .into_iter()
        .map(|more| more + 1)
        .collect()
}

/// The numbers of a bucket that come.
struct Part {
    /// The place of the bucket's first number.
    begin: u64,
    /// How many numbers it has.
    room: u64,
    /// How many of these come, at equal distances.
    numbers: u64,
}

impl Part {
    /// The place of one of those that come.
    fn place(&self, one: u64) -> u64 {
        self.begin + one * self.room / self.numbers.max(1)
    }
}

/// Numbers that are not frequent.
struct Free<'a> {
    common: &'a Common,
    buckets: &'a [(u64, u64)],
    /// How many there are.
    count: u64,
}

impl Free<'_> {
    /// The place, among all that are not frequent, of the number below which a share of the other rows lies.
    fn place(&self, share: f64) -> u64 {
        let at = share * self.buckets.len() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let bucket = (at as usize).min(self.buckets.len() - 1);
        let (low, high) = self.buckets[bucket];
        let (low, high) = (self.before(low), self.before(high));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a bucket")]
        let within = ((at - bucket as f64) * (high - low) as f64) as u64;
        (low + within).min(self.count - 1)
    }

    /// The numbers that come, about so many: equally dense in all buckets, as far as there is room.
    fn parts(&self, others: u64) -> Vec<Part> {
        let begin = |at: usize| self.buckets.get(at).map_or(self.count, |(low, _)| self.before(*low));
        let last = self.buckets.len() - 1;
        let end = |at: usize| if at == last { self.before(self.buckets[at].1) } else { begin(at + 1) };
        let rooms: Vec<u64> = (0..=last).map(|at| end(at).saturating_sub(begin(at))).collect();
        let recipients: Vec<Recipient> =
            rooms.iter().map(|room| Recipient { room: *room as f64, weight: 1.0 }).collect();
        let numbers = level::whole(&level(&recipients, others as f64), recipients.iter().map(|one| one.room));
        let part = |(at, (numbers, room))| Part { begin: begin(at), room, numbers };
        numbers.into_iter().zip(rooms).enumerate().map(part).collect()
    }

    /// Divides the rows among so many numbers, as the weights tell: as many numbers have so many rows. The buckets have about equally many. None if that
    /// is impossible, or if no weights are known. No number gets more than `least` rows, those of the least frequent one.
    fn by_weights(
        &self,
        weights: &[(f64, f64)],
        (rows, others): (u64, u64),
        least: u64,
        stream: Stream,
    ) -> Option<Vec<(u64, u64)>> {
        let parts = self.parts(others);
        let counts: Vec<u64> = parts.iter().map(|part| part.numbers).collect();
        let numbers: u64 = counts.iter().sum();
        let mut made = degrees(weights, (rows, numbers), least)?;
        // ANALYZE lists the lowest ones of numbers with equally many rows as frequent: a few others have a row less.
        let tied = made.iter().filter(|rows| **rows == least).count() as f64;
        if !self.common.is_empty() && tied > 0.0 && tied <= TIED * numbers as f64 {
            made = degrees(weights, (rows, numbers), least.saturating_sub(1)).unwrap_or(made);
        }
        let made = arranged(made, &counts, stream.further())?;
        let places =
            parts.iter().flat_map(|part| (0..part.numbers).map(move |one| self.number(part.place(one))));
        Some(places.zip(made).collect())
    }

    /// Divides the rows among so many numbers: equally among the buckets, and within a bucket by the weights, if there are any. No number gets more
    /// than `most` rows, unless there are too few numbers.
    fn by_density(&self, weights: &[Weights], (rows, others): (u64, u64), most: u64) -> Vec<(u64, u64)> {
        let each = rows as f64 / self.buckets.len() as f64;
        let mut wanted = Vec::new();
        // Rows of buckets without numbers go to the next one.
        let mut here = 0.0;
        for (at, part) in self.parts(others).into_iter().enumerate() {
            here += each;
            if part.numbers == 0 {
                continue;
            }
            let weight = |one: u64| {
                let number = self.number(part.place(one));
                weights.get(at).map_or(1.0, |weights| weights.of(number).max(LEAST))
            };
            let all: f64 = (0..part.numbers).map(weight).sum();
            let share = |one: u64| (self.number(part.place(one)), here * weight(one) / all);
            wanted.extend((0..part.numbers).map(share));
            here = 0.0;
        }
        given(&wanted, rows, most)
    }

    /// Numbers below this one that are not frequent.
    fn before(&self, number: u64) -> u64 {
        number - self.common.partition_point(|(common, _)| *common < number) as u64
    }

    /// The number at a place.
    fn number(&self, place: u64) -> u64 {
        // As many frequent numbers come before it as lie at or below it.
        let (mut low, mut high) = (0, self.common.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.common[middle].0 - middle as u64 <= place { low = middle + 1 } else { high = middle }
        }
        place + low as u64
    }
}

/// Rows of numbers that want these, at least one each, and `most` at most if that is possible.
fn given(wanted: &[(u64, f64)], rows: u64, most: u64) -> Vec<(u64, u64)> {
    let (mut sum, mut before) = (0.0, 0);
    let mut all = Vec::with_capacity(wanted.len());
    for (at, (number, share)) in wanted.iter().enumerate() {
        sum += share;
        let (after, left) = ((wanted.len() - at - 1) as u64, rows - before);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
        let until = sum.round() as u64;
        // Those that follow need one row each, and have no room for more than the most.
        let least = left.saturating_sub(after * most).max(1);
        let count = until.saturating_sub(before).min(most).max(least).min(left.saturating_sub(after));
        before += count;
        all.push((*number, count));
    }
    all
}

/// Different numbers, in ascending order, each near the middle of its rows.
fn places(counts: &[u64], rows: u64, free: &Free<'_>) -> Vec<u64> {
    let others = counts.len() as u64;
    let mut before = 0;
    let mut next = 0;
    let place = |(at, count): (u64, &u64)| {
        let middle = (before as f64 + *count as f64 / 2.0) / rows.max(1) as f64;
        before += count;
        // Room is left for those that follow.
        let place = free.place(middle).max(next).min(free.count - (others - at));
        next = place + 1;
        free.number(place)
    };
    (0..).zip(counts).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(weights: &[(f64, f64)], common: &Common, buckets: &[(u64, u64)], of: (u64, u64, u64)) -> Few {
        let weights = weights.to_vec();
        let spread =
            Spread { distinct: -1.0, correlation: 0.0, common: Vec::new(), bounds: Vec::new(), weights };
        let few = Few::new(&spread, (common, buckets), of, Stream::new(7, &["t", "c"]));
        assert_eq!(few.rows().sum::<u64>(), of.0);
        assert!(
            few.numbers.windows(2).all(|pair| pair[0] < pair[1]) && few.numbers.iter().all(|one| *one < of.1)
        );
        few
    }

    #[test]
    fn each_of_the_others_comes_and_frequent_ones_have_their_rows() {
        let common = [(3, 0.1), (4, 0.05), (9, 0.02)];
        // Narrow buckets beside wide ones.
        let buckets = [(0, 2), (2, 3), (2, 4), (4, 40), (40, 250)];
        let found = few(&[], &common, &buckets, (100, 250, 83));
        assert_eq!(found.numbers.len(), 86);
        let rows: Vec<u64> =
            found.numbers().filter(|(number, _)| [3, 4, 9].contains(number)).map(|one| one.1).collect();
        assert_eq!(rows, [10, 5, 2]);
        assert!(found.numbers().all(|(number, rows)| rows == 1 || [3, 4, 9].contains(&number)));
        let ranks: Vec<u64> = (0..100).map(|rank| found.number(rank)).collect();
        assert!(ranks.is_sorted());
        assert!(few(&[], &[(0, 1.0)], &[(0, 1)], (10, 1, 0)).numbers == [0]);
        assert_eq!(few(&[], &[], &[(0, 7)], (20, 7, 99)).numbers.len(), 7);
    }

    #[test]
    fn rows_of_buckets_are_equal_where_there_is_room() {
        let buckets = [(0, 100), (100, 110), (110, 1_000)];
        let found = few(&[], &[(5, 0.1)], &buckets, (5_000, 1_000, 999));
        assert_eq!(found.numbers.len(), 1_000);
        let found = few(&[(0.0, 0.5), (1.0, 0.25), (9.0, 0.25)], &[], &buckets, (300, 1_000, 60));
        assert_eq!(found.numbers.len(), 60);
        let within = |low: u64, high: u64| -> u64 {
            found.numbers().filter(|(number, _)| (low..high).contains(number)).map(|(_, rows)| rows).sum()
        };
        for (low, high) in [(0, 100), (100, 110), (110, 1_000)] {
            assert!((80..=120).contains(&within(low, high)), "{low}: {}", within(low, high));
        }
        assert!(
            found.rows().filter(|rows| *rows <= 2).count() > 10,
            "{:?}",
            found.rows().collect::<Vec<_>>()
        );
        // Narrow buckets have many rows for each number, and none has more than a frequent number.
        let buckets = [(0, 10), (10, 12), (12, 300)];
        let found = few(&[], &[(1, 0.1), (20, 0.07)], &buckets, (1_000, 300, 100));
        assert!(found.numbers().all(|(number, rows)| rows < 70 || number == 1 || number == 20));
        assert_eq!(found.numbers.len(), 102);
    }

    /// Of 312 invoices, 59 have one line, 117 have two, 59 four and the others about seven.
    #[test]
    fn as_many_numbers_have_so_many_rows_as_weights_tell() {
        let weights = [(1.0, 0.189_103), (2.0, 0.375), (4.0, 0.189_103), (6.701, 0.246_794)];
        let buckets: Vec<(u64, u64)> = (0..24).map(|at| (at * 13, (at + 1) * 13)).collect();
        let found = few(&weights, &[], &buckets, (1_045, 312, 312));
        let count = |least: u64, most: u64| found.rows().filter(|rows| (least..=most).contains(rows)).count();
        assert_eq!([count(1, 1), count(2, 2), count(4, 4), count(6, 7)], [59, 117, 59, 77]);
        for end in (1..24).map(|at| at * 13) {
            let below: u64 = found.numbers().filter(|(number, _)| *number < end).map(|(_, rows)| rows).sum();
            let wanted = 1_045.0 * end as f64 / 312.0;
            assert!((below as f64 - wanted).abs() < 16.0, "{end}: {below}, not {wanted}");
        }
    }
}
