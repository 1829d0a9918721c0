//! Maps rows to numbers that repeat as often as a [`Spread`] says.

use super::few::Few;
use super::level::{Recipient, level, whole};
use super::order::{Order, READ_WHOLE};
use super::weights::{Weights, weights};
use crate::Spread;
use crate::levels::Level;
use crate::random::Stream;

/// A [`Spread`] for a number of rows.
#[derive(Clone, Debug)]
pub(super) struct Spreading {
    order: Order,
    stream: Stream,
    pieces: Vec<Piece>,
    /// Weights of each bucket's numbers; empty if all numbers but the frequent ones are equally
    /// frequent.
    weights: Vec<Weights>,
    /// Instead of the pieces: of few rows.
    few: Option<Few>,
}

/// Ranks that share some of a stretch of numbers evenly.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// First rank after it.
    until: u64,
    /// Number of ranks.
    ranks: u64,
    first: u64,
    /// Length of the stretch.
    length: u64,
    /// How many of its numbers are used.
    numbers: u64,
    bucket: usize,
    /// Whether numbers are drawn: some come more often than others, some not at all.
    is_drawn: bool,
}

/// A rank is moved at random by at most this many ranks, up or down, where values are drawn.
pub(super) const DISTURBED: u64 = 16;

/// The number of values to draw from, so that about `distinct` different ones occur among the rows.
/// None if there are so many rows that drawing makes no difference, or if each row has a value of
/// its own.
pub(super) fn drawn(distinct: u64, rows: u64) -> Option<u64> {
    let share = distinct as f64 / rows.max(1) as f64;
    if !(0.1..0.999).contains(&share) {
        return None;
    }
    // Of as many draws from d values, d (1 - exp(-rows / d)) differ.
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if -libm::expm1(-middle) / middle > share { low = middle } else { high = middle }
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
    let values = (rows as f64 / high).round() as u64;
    Some(values.max(distinct))
}

/// Binary digits of the fraction of a place: many values lie between two ranks where nearly every
/// row has its own value.
pub(super) const PARTS: u32 = 16;

/// A place, moved at random by a few places within `count`; in units of 2^-[`PARTS`] places.
pub(super) fn disturbed(place: u64, count: u64, stream: Stream, rank: u64) -> u128 {
    let moved = stream.further().draw(rank).below((2 * DISTURBED + 1) << PARTS);
    let moved = (u128::from(place) << PARTS) + u128::from(moved);
    // Back from both ends.
    let moved = moved.abs_diff(u128::from(DISTURBED) << PARTS);
    let most = u128::from(count) << PARTS;
    if moved < most { moved } else { (2 * most - 1).saturating_sub(moved) }
}

/// Different values among so many rows; `distinct` as in [`Spread`].
pub(super) fn count_of(distinct: f64, rows: u64) -> u64 {
    let count = if distinct < 0.0 { -distinct * rows as f64 } else { distinct };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let count = count.round().clamp(1.0, 1e18) as u64;
    count.min(rows.max(1))
}

impl Spreading {
    /// The numbers of so many rows (`u64::MAX`: not known), with `distinct` of `count` numbers.
    pub(super) fn new(spread: &Spread, stream: Stream, rows: u64, count: u64, distinct: u64) -> Self {
        let count = count.max(1);
        if (1..=READ_WHOLE).contains(&rows) {
            return Self::few(spread, stream, rows, (count, distinct));
        }
        let Stretched { stretches, buckets, rest } = Stretched::new(spread, count, distinct);
        let level = |stretch: &Stretch| Level { share: stretch.share, values: stretch.numbers as f64 };
        let levels: Vec<Level> = stretches.iter().map(level).collect();
        let order = Order::new(stream, rows, spread.correlation, &levels);
        let total = (spread.common_share() + rest).max(f64::MIN_POSITIVE);
        let mut pieces = Pieces { ranks: order.count(), total, share: 0.0, all: Vec::new() };
        for stretch in &stretches {
            pieces.push(stretch);
        }
        let weights = weights(spread, &buckets, count, stream.further());
        Self { order, stream: stream.further(), pieces: pieces.all, weights, few: None }
    }

    fn few(spread: &Spread, stream: Stream, rows: u64, (count, distinct): (u64, u64)) -> Self {
        let few = few(spread, rows, (count, distinct), stream.further());
        let level = |rows: u64| Level { share: rows as f64, values: 1.0 };
        let levels: Vec<Level> = few.rows().map(level).collect();
        let order = Order::new(stream, rows, spread.correlation, &levels);
        Self { order, stream: stream.further(), pieces: Vec::new(), weights: Vec::new(), few: Some(few) }
    }

    /// The numbers that come, with their rows; none if there are too many rows to know that.
    pub(super) fn numbers(&self) -> Option<impl Iterator<Item = (u64, u64)>> {
        self.few.as_ref().map(Few::numbers)
    }

    /// The numbers of so many rows, drawn so that as many are different as the spread says. The
    /// second value is the number of numbers to draw from.
    pub(super) fn drawn(spread: &Spread, stream: Stream, rows: u64) -> (Self, u64) {
        let count = count_of(spread.distinct, rows);
        let common = spread.common.len() as u64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the rows")]
        let rest = ((1.0 - spread.common_share()).max(0.0) * rows as f64) as u64;
        let others = drawn(count.saturating_sub(common), rest).filter(|_| rows > READ_WHOLE);
        let all = others.map_or(count, |others| common + others);
        let mut spreading = Self::new(spread, stream, rows, all, all);
        if all > count {
            for piece in &mut spreading.pieces {
                piece.is_drawn = piece.length > 1 && piece.ranks > 4 * DISTURBED;
            }
        }
        (spreading, all)
    }

    /// The rank of a row in the order of the numbers.
    pub(super) fn rank(&self, row: u64) -> u64 {
        self.order.rank(row)
    }

    /// The number of a row.
    #[inline]
    pub(super) fn number(&self, row: u64) -> u64 {
        let rank = self.order.rank(row);
        if let Some(few) = &self.few {
            return few.number(rank);
        }
        let at = self.pieces.partition_point(|piece| piece.until <= rank).min(self.pieces.len() - 1);
        let Piece { until, ranks, first, length, numbers, bucket, is_drawn } = self.pieces[at];
        let within = rank - (until - ranks).min(rank);
        if let Some(weights) = self.weights.get(bucket).filter(|_| length > 1) {
            return weights.number(first, length, (within as f64 + 0.5) / ranks.max(1) as f64);
        }
        let within =
            if is_drawn { disturbed(within, ranks, self.stream, rank) } else { u128::from(within) << PARTS };
        let number =
            (within * u128::from(numbers) / (u128::from(ranks.max(1)) << PARTS)).min(u128::from(numbers - 1));
        first + u64::try_from(number * u128::from(length) / u128::from(numbers)).unwrap_or(0)
    }
}

/// Consecutive numbers that have a share of the rows together.
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) length: u64,
    /// How many of them are used.
    pub(super) numbers: u64,
    pub(super) share: f64,
    pub(super) bucket: usize,
}

/// All numbers of a [`Spread`], divided.
pub(super) struct Stretched {
    /// In ascending order.
    pub(super) stretches: Vec<Stretch>,
    /// From which number on, and up to which one.
    pub(super) buckets: Vec<(u64, u64)>,
    /// Share of the rows that the numbers beside the frequent ones have together.
    pub(super) rest: f64,
}

impl Stretched {
    /// With `distinct` of `count` numbers.
    pub(super) fn new(spread: &Spread, count: u64, distinct: u64) -> Self {
        let distinct = distinct.clamp(1, count);
        let common = common(spread, count);
        let others = distinct.saturating_sub(common.len() as u64);
        let rest = if others == 0 { 0.0 } else { (1.0 - spread.common_share()).max(0.0) };
        let buckets = buckets(spread, count, &common);
        let stretches = stretches(&common, &buckets, others as f64, rest);
        Self { stretches, buckets, rest }
    }
}

/// `distinct` of `count` numbers, for few rows.
pub(super) fn few(spread: &Spread, rows: u64, (count, distinct): (u64, u64), stream: Stream) -> Few {
    let common = common(spread, count);
    let others = distinct.clamp(1, count).saturating_sub(common.len() as u64);
    Few::new(spread, (&common, &buckets(spread, count, &common)), (rows, count, others), stream)
}

/// The frequent numbers of so many, in ascending order, each with its share of the rows.
fn common(spread: &Spread, count: u64) -> Vec<(u64, f64)> {
    let mut common: Vec<(u64, f64)> =
        spread.common.iter().map(|common| (place(common.place, count), common.share)).collect();
    common.sort_by_key(|(number, _)| *number);
    apart(&mut common, count);
    common
}

/// The buckets of all numbers, as stretches of them, in ascending order. Where frequent numbers were moved apart, buckets make room for
/// them, each in proportion to the numbers that no frequent one was to have.
fn buckets(spread: &Spread, count: u64, common: &[(u64, f64)]) -> Vec<(u64, u64)> {
    if spread.bounds.len() < 2 {
        return vec![(0, count)];
    }
    let last = spread.bounds.len() - 2;
    let room = Room::new(spread, count, common);
    let bucket = |(at, pair): (usize, &[f64])| {
        let low = room.number(place(pair[0], count)).min(count - 1);
        // The last bucket includes its upper bound.
        let high = room.number(place(pair[1], count) + u64::from(at == last));
        (low, high.max(low + 1))
    };
    spread.bounds.windows(2).enumerate().map(bucket).collect()
}

/// The numbers that frequent ones are to have, in ascending order.
fn wanted(spread: &Spread, count: u64) -> Vec<u64> {
    let mut wanted: Vec<u64> = spread.common.iter().map(|common| place(common.place, count)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Whether several frequent numbers are to have the same number.
pub(super) fn are_moved(spread: &Spread, count: u64) -> bool {
    wanted(spread, count).len() < spread.common.len()
}

/// Where numbers lie once frequent ones of the same number are apart.
struct Room {
    /// Numbers that frequent ones were to have, in ascending order.
    wanted: Vec<u64>,
    /// How many numbers that are not frequent lie below each frequent one.
    below: Vec<u64>,
    count: u64,
}

impl Room {
    fn new(spread: &Spread, count: u64, common: &[(u64, f64)]) -> Self {
        let wanted = wanted(spread, count);
        let below = common.iter().zip(0..).map(|(&(number, _), before)| number - before).collect();
        Self { wanted, below, count }
    }

    fn number(&self, number: u64) -> u64 {
        let (wanted, taken) = (self.wanted.len() as u64, self.below.len() as u64);
        if wanted == taken || wanted >= self.count {
            return number;
        }
        let before = number - self.wanted.partition_point(|wanted| *wanted < number) as u64;
        let (free, all) = (self.count - taken, self.count - wanted);
        let before = u128::from(before) * u128::from(free) / u128::from(all);
        let before = u64::try_from(before).unwrap_or(free);
        before + self.below.partition_point(|below| *below <= before) as u64
    }
}

/// Frequent numbers, and the other ones between them, in ascending order.
fn stretches(common: &[(u64, f64)], buckets: &[(u64, u64)], others: f64, rest: f64) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = common
        .iter()
        .map(|&(first, share)| Stretch { first, length: 1, numbers: 1, share, bucket: 0 })
        .collect();
    let of_bucket = rest / buckets.len() as f64;
    let begun = stretches.len();
    for (bucket, &(low, high)) in buckets.iter().enumerate() {
        let inside = &common[common.partition_point(|(number, _)| *number < low)..];
        let inside = &inside[..inside.partition_point(|(number, _)| *number < high)];
        let free = high - low - inside.len() as u64;
        let mut first = low;
        for end in inside.iter().map(|(number, _)| *number).chain([high]) {
            let length = end - first;
            if length > 0 && rest > 0.0 {
                let share = of_bucket * length as f64 / free as f64;
                stretches.push(Stretch { first, length, numbers: 1, share, bucket });
            }
            first = end + 1;
        }
    }
    let place = |stretch: &Stretch| Recipient { room: stretch.length as f64, weight: stretch.share };
    let places: Vec<Recipient> = stretches[begun..].iter().map(place).collect();
    let numbers = whole(&level(&places, others), places.iter().map(|place| place.room));
    for (stretch, numbers) in stretches[begun..].iter_mut().zip(numbers) {
        stretch.numbers = numbers;
    }
    give_away(&mut stretches, begun);
    stretches.sort_by_key(|stretch| stretch.first);
    stretches
}

/// Drops stretches from `begun` on none of whose numbers is used: the next ones get their shares, and the last ones get those of the others.
fn give_away(stretches: &mut Vec<Stretch>, begun: usize) {
    let mut others = stretches.split_off(begun);
    // Rows need at least one number.
    if let Some(widest) = others.iter_mut().max_by_key(|stretch| stretch.length) {
        widest.numbers = widest.numbers.max(1);
    }
    let mut share = 0.0;
    for mut stretch in others {
        share += stretch.share;
        if stretch.numbers > 0 {
            stretch.share = std::mem::take(&mut share);
            stretches.push(stretch);
        }
    }
    if let Some(last) = stretches.get_mut(begun..).and_then(<[Stretch]>::last_mut) {
        last.share += share;
    }
}

struct Pieces {
    ranks: u64,
    total: f64,
    share: f64,
    all: Vec<Piece>,
}

impl Pieces {
    fn push(&mut self, stretch: &Stretch) {
        self.share += stretch.share;
        let begin = self.all.last().map_or(0, |piece| piece.until);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the ranks")]
        let until = ((self.share / self.total * self.ranks as f64).round() as u64).clamp(begin, self.ranks);
        let &Stretch { first, length, numbers, bucket, .. } = stretch;
        self.all.push(Piece { until, ranks: until - begin, first, length, numbers, bucket, is_drawn: false });
    }
}

fn place(place: f64, count: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let number = (place * count as f64) as u64;
    number.min(count - 1)
}

/// Moves equal numbers apart, within the count; drops those that find no room.
fn apart(common: &mut Vec<(u64, f64)>, count: u64) {
    common.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    let mut least = 0;
    for (number, _) in common.iter_mut() {
        *number = (*number).max(least);
        least = *number + 1;
    }
    let mut most = count;
    for (number, _) in common.iter_mut().rev() {
        *number = (*number).min(most - 1);
        most = *number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Common;

    fn numbers(spread: &Spread, rows: u64) -> Vec<u64> {
        let count = count_of(spread.distinct, rows);
        let spreading = Spreading::new(spread, Stream::new(7, &["t", "c"]), rows, count, count);
        (0..rows).map(|row| spreading.number(row)).collect()
    }

    #[test]
    fn common_numbers_have_their_shares_and_others_come_evenly() {
        let common = vec![Common { place: 0.5, share: 0.3 }, Common { place: 0.5, share: 0.1 }];
        let made = numbers(
            &Spread { distinct: 100.0, correlation: 0.0, common, bounds: Vec::new(), weights: Vec::new() },
            10_000,
        );
        let mut counts = [0_u32; 100];
        for &number in &made {
            counts[usize::try_from(number).unwrap()] += 1;
        }
        assert_eq!((counts[50], counts[51]), (3_000, 1_000));
        let others = counts.iter().enumerate().filter(|(at, _)| !(50..52).contains(at));
        assert!(others.map(|(_, count)| *count).all(|count| (60..=62).contains(&count)), "{counts:?}");
    }

    #[test]
    fn as_many_numbers_as_rows_come_once_each() {
        for correlation in [0.0, 0.6, 1.0] {
            let spread = Spread {
                distinct: -1.0,
                correlation,
                common: Vec::new(),
                bounds: Vec::new(),
                weights: Vec::new(),
            };
            let mut made = numbers(&spread, 5_000);
            assert_eq!(made.is_sorted(), correlation > 0.99);
            made.sort_unstable();
            assert!(made.into_iter().eq(0..5_000));
        }
    }

    #[test]
    fn as_many_numbers_differ_as_the_spread_says_where_they_are_drawn() {
        for share in [0.15, 0.4, 0.7, 0.9, 0.998] {
            let spread = Spread {
                distinct: -share,
                correlation: 0.0,
                common: Vec::new(),
                bounds: Vec::new(),
                weights: Vec::new(),
            };
            let (spreading, _) = Spreading::drawn(&spread, Stream::new(7, &["t", "c"]), 50_000);
            let mut made: Vec<u64> = (0..50_000).map(|row| spreading.number(row)).collect();
            made.sort_unstable();
            made.dedup();
            let found = made.len() as f64 / 50_000.0;
            assert!((found - share).abs() < 0.02, "{share}: {found}");
        }
    }

    #[test]
    fn few_numbers_have_room_for_what_is_common() {
        let common = vec![Common { place: 1.0, share: 0.5 }, Common { place: 1.0, share: 0.5 }];
        let made = numbers(
            &Spread { distinct: 2.0, correlation: 0.0, common, bounds: Vec::new(), weights: Vec::new() },
            10,
        );
        assert_eq!(made.iter().filter(|&&number| number == 0).count(), 5);
    }

    #[test]
    fn weights_say_how_often_numbers_come() {
        let weights = vec![(0.0, 0.5), (1.0, 0.25), (10.0, 0.25)];
        let common = vec![Common { place: 0.5, share: 0.1 }];
        let spread = Spread { distinct: -1.0, correlation: 1.0, common, bounds: Vec::new(), weights };
        // Of 20,000 numbers half come never, a quarter once and a quarter ten times, besides one that has a tenth of all.
        let rows = 61_111;
        let spreading = Spreading::new(&spread, Stream::new(7, &["t", "c"]), rows, 20_000, 20_000);
        let mut counts = vec![0_u32; 20_000];
        let made: Vec<u64> = (0..rows).map(|row| spreading.number(row)).collect();
        assert!(made.is_sorted());
        for number in made {
            counts[usize::try_from(number).unwrap()] += 1;
        }
        let of = |range: std::ops::RangeInclusive<u32>| {
            counts.iter().filter(|count| range.contains(count)).count()
        };
        assert!((9_900..10_100).contains(&of(0..=0)), "{}", of(0..=0));
        assert!((4_900..5_100).contains(&of(1..=2)), "{}", of(1..=2));
        assert!((4_900..5_100).contains(&of(9..=11)), "{}", of(9..=11));
        assert!((6_090..6_130).contains(&counts[10_000]), "{}", counts[10_000]);
    }

    /// Of 20,000 numbers, the part x of the lowest ones has the share x^(1/3) of the rows; the first 100 count as frequent.
    #[test]
    fn numbers_beside_frequent_ones_keep_their_rows_where_fewer_numbers_are_left() {
        let below = |number: f64| libm::cbrt(number / 20_000.0);
        let common = (0..100).map(f64::from).map(|number| Common {
            place: (number + 0.5) / 20_000.0,
            share: below(number + 1.0) - below(number),
        });
        let bound = |at: f64| (below(100.0) + (1.0 - below(100.0)) * at / 100.0).powi(3);
        let spread = Spread {
            distinct: 2_000.0,
            correlation: 0.0,
            common: common.collect(),
            bounds: (0..=100).map(f64::from).map(bound).collect(),
            weights: Vec::new(),
        };
        // Few rows, and many.
        for rows in [6_000, 60_000] {
            let mut counts = vec![0_u64; 2_000];
            for number in numbers(&spread, rows) {
                counts[usize::try_from(number).unwrap()] += 1;
            }
            let most = counts[100..].iter().max().unwrap();
            assert!(*most * 40 < rows, "{most} of {rows} rows");
            // As many as in a tenth of the original.
            let low = counts[..300].iter().sum::<u64>() as f64 / rows as f64;
            assert!((0.44..0.6).contains(&low), "{low} of {rows} rows");
        }
    }

    #[test]
    fn bounds_say_where_numbers_are_dense() {
        let bounds = vec![0.0, 0.1, 0.2, 1.0];
        let spread =
            Spread { distinct: 30.0, correlation: 0.0, common: Vec::new(), bounds, weights: Vec::new() };
        let spreading = Spreading::new(&spread, Stream::new(7, &["t", "c"]), 3_000, 1_000, 30);
        let made: Vec<u64> = (0..3_000).map(|row| spreading.number(row)).collect();
        let below = |most: u64| made.iter().filter(|&&number| number < most).count();
        assert_eq!((below(100), below(200), below(1_000)), (1_000, 2_000, 3_000));
        assert_eq!(made.iter().collect::<std::collections::BTreeSet<_>>().len(), 30);
    }
}
