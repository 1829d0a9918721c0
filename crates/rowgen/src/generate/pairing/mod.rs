//! Pairs of two keys, no pair twice, in which the keys of both sides come as often as statistics say.
//!
//! The rows of a key of the first side follow each other in the order of the ranks. Of the second side they get keys at equal distances
//! on a line on which each key has a length by its frequency. No length is greater than the distance, so that the keys differ. Of few rows, each key
//! comes in exactly as many as it is to.

mod listed;
mod seconds;

use self::listed::listed;
use self::seconds::Seconds;
use super::order::{self, Order, READ_WHOLE};
use super::shuffle;
use super::spread::{Stretched, count_of, few};
use super::weights::{Weights, weights};
use crate::levels::Level;
use crate::random::Stream;
use crate::{Paired, PairedKeys};

/// The keys of [`Paired`] rows.
#[derive(Clone, Debug)]
pub(super) struct Pairing {
    order: Order,
    firsts: Firsts,
    /// None on the first side.
    seconds: Option<Seconds>,
    within: Option<Within>,
}

/// An order of the rows of each key of the first side, which otherwise get keys of the second side in ascending order.
#[derive(Clone, Copy, Debug)]
struct Within {
    /// Rows are shuffled within windows of this share of the key's rows.
    share: f64,
    stream: Stream,
}

impl Within {
    /// The place of a row among so many.
    fn place(self, row: u64, rows: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the rows")]
        let width = ((rows as f64 * self.share).round() as u64).clamp(1, rows.max(1));
        let start = row - row % width;
        let count = width.min(rows.saturating_sub(start));
        if count > 1 && row < rows { start + shuffle::place(row - start, count, self.stream) } else { row }
    }
}

/// The ascending order stays if its correlation is off by at most this.
const ASCENDING: f64 = 0.02;
/// The correlation of the second side is otherwise off by at most this, if it can be reached.
const NEAR: f64 = 0.002;
/// Widths of windows that are tried.
const TRIED: u32 = 12;

impl Pairing {
    pub(super) fn new(paired: &Paired, stream: Stream) -> Self {
        let Paired { rows, ref first, ref second, is_second, .. } = *paired;
        let further = stream.further();
        let is_few = (1..=READ_WHOLE).contains(&rows);
        let of_side = |side: &PairedKeys, stream: Stream| {
            if is_few { few_blocks(side, rows, stream) } else { blocks(side, stream) }
        };
        let (mut ones, mut others) = (of_side(first, stream), of_side(second, further));
        if u128::from(used(&ones)) * u128::from(used(&others)) < u128::from(rows) {
            (ones, others) = (vec![Block::all(first.keys)], vec![Block::all(second.keys)]);
        }
        let firsts = Firsts::new(ones, rows, used(&others));
        let order = Order::new(stream, rows, first.spread.correlation, &firsts.levels());
        let last = further.further();
        let seconds = is_second.then(|| {
            let exact = if is_few { exact(&firsts, &others, rows, last.further()) } else { None };
            exact.unwrap_or_else(|| Seconds::new(others, firsts.most(), last))
        });
        let pairing = Self { order, firsts, seconds, within: None };
        let within =
            (is_few && is_second).then(|| pairing.within(rows, second.spread.correlation, last.further()));
        Self { within: within.flatten(), ..pairing }
    }

    /// The number of the row's key.
    #[inline]
    pub(super) fn number(&self, row: u64) -> u64 {
        self.ordered(row, self.within)
    }

    fn ordered(&self, row: u64, within: Option<Within>) -> u64 {
        let rank = self.order.rank(row);
        let group = self.firsts.group(rank);
        let Some(seconds) = &self.seconds else { return group.number };
        let place = rank - group.first;
        seconds.number(&group, within.map_or(place, |within| within.place(place, group.rows)))
    }

    /// The order of the rows of each key by which few rows have nearly this correlation of row number and key of the second side. None if the ascending
    /// order is near enough.
    fn within(&self, rows: u64, wanted: f64, stream: Stream) -> Option<Within> {
        let off = |within: Option<Within>| {
            order::correlation((0..rows).map(|row| self.ordered(row, within))) - wanted
        };
        let ascending = off(None);
        if ascending <= ASCENDING {
            return None;
        }
        let (mut best, mut best_off) = (None, ascending);
        // The wider, the less correlated.
        let (mut low, mut high) = (0.0, 1.0);
        let mut share = 1.0;
        for _ in 0..TRIED {
            let within = Some(Within { share, stream });
            let found = off(within);
            if found.abs() < best_off {
                (best, best_off) = (within, found.abs());
            }
            if best_off < NEAR {
                break;
            }
            if found > 0.0 {
                low = share;
            } else {
                high = share;
            }
            share = f64::midpoint(low, high);
        }
        best
    }
}

/// Keys near each other that come equally often.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Number of the first key.
    first: u64,
    length: u64,
    /// How many of the `length` keys come at all, at equal distances.
    numbers: u64,
    /// Share of the rows that each of these has.
    share: f64,
}

impl Block {
    fn all(keys: u64) -> Self {
        Self { first: 0, length: keys, numbers: keys, share: 1.0 / keys.max(1) as f64 }
    }

    /// The number of one of the keys that come.
    fn number(&self, at: u64) -> u64 {
        self.first + scaled(at, self.length, self.numbers)
    }
}

/// Most keys that each have a block of their own where their frequencies differ.
const OWN: u64 = 1 << 14;
/// Parts of all keys, beyond these, that each have keys of all frequencies.
const STRIPS: u64 = 128;

/// A block for each key that comes, with the rows that ANALYZE counts where it reads all of them.
fn few_blocks(side: &PairedKeys, rows: u64, stream: Stream) -> Vec<Block> {
    let keys = side.keys.max(1);
    let few = few(&side.spread, rows, (keys, count_of(side.spread.distinct, keys)), stream);
    let block =
        |(key, of_key)| Block { first: key, length: 1, numbers: 1, share: of_key as f64 / rows as f64 };
    few.numbers().map(block).collect()
}

/// The keys of the second side of few rows, each in exactly as many rows as its block tells; none if that is impossible, or if all are equal.
fn exact(firsts: &Firsts, others: &[Block], rows: u64, stream: Stream) -> Option<Seconds> {
    let key = |block: &Block| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the rows")]
        let of_key = (block.share * rows as f64).round() as u64;
        (block.numbers == 1).then_some((block.first, of_key))
    };
    let keys = others.iter().map(key).collect::<Option<Vec<(u64, u64)>>>()?;
    let is_even = keys.iter().all(|(_, rows)| *rows == keys[0].1);
    if is_even { None } else { listed(&firsts.rows(), &keys, stream).map(Seconds::of) }
}

/// The keys of a side that come at all, in ascending order. Their shares add up to 1.
fn blocks(side: &PairedKeys, stream: Stream) -> Vec<Block> {
    let keys = side.keys.max(1);
    let spread = &side.spread;
    let Stretched { stretches, buckets, rest } =
        Stretched::new(spread, keys, count_of(spread.distinct, keys));
    let weights = weights(spread, &buckets, keys, stream);
    let mut blocks = Vec::new();
    let mut weighted = Vec::new();
    for stretch in stretches {
        match weights.get(stretch.bucket).filter(|_| stretch.length > 1) {
            Some(weights) if keys <= OWN => {
                weighted.extend(own_blocks(weights, stretch.first, stretch.length));
            }
            Some(weights) => {
                let strip = keys / STRIPS;
                for (at, first) in (stretch.first..stretch.first + stretch.length)
                    .enumerate()
                    .step_by(usize::try_from(strip).unwrap_or(usize::MAX))
                {
                    let length = strip.min(stretch.length - at as u64);
                    weighted.extend(strip_blocks(&weights.levels(), first, length));
                }
            }
            None => blocks.push(Block {
                first: stretch.first,
                length: stretch.length,
                numbers: stretch.numbers,
                share: stretch.share / stretch.numbers as f64,
            }),
        }
    }
    let all: f64 = weighted.iter().map(|block: &Block| block.share * block.numbers as f64).sum();
    blocks.extend(weighted.into_iter().map(|block| Block { share: block.share / all * rest, ..block }));
    blocks.retain(|block| block.share > 0.0);
    if blocks.is_empty() {
        blocks.push(Block::all(keys));
    }
    blocks.sort_by_key(|block| block.first);
    let sum: f64 = blocks.iter().map(|block| block.share * block.numbers as f64).sum();
    for block in &mut blocks {
        block.share /= sum;
    }
    blocks
}

/// A block for each of some keys, with its weight as its share.
fn own_blocks(weights: &Weights, first: u64, length: u64) -> impl Iterator<Item = Block> {
    (first..first + length).map(|key| Block { first: key, length: 1, numbers: 1, share: weights.of(key) })
}

/// Blocks of the weights of some keys, with these as their shares.
fn strip_blocks(levels: &[(f64, u64)], first: u64, length: u64) -> Vec<Block> {
    let all: u64 = levels.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    let block = |&(share, count): &(f64, u64)| {
        let begin = scaled(before, length, all);
        before += count;
        let numbers = scaled(before, length, all) - begin;
        Block { first: first + begin, length: numbers, numbers, share }
    };
    levels.iter().map(block).filter(|block| block.numbers > 0).collect()
}

/// Number of keys that come.
fn used(blocks: &[Block]) -> u64 {
    blocks.iter().map(|block| block.numbers).sum()
}

/// The share of each key of the blocks, none greater than `most`. The others get the rest, in proportion to their shares.
fn capped(blocks: &[Block], most: f64) -> Vec<f64> {
    let mut shares: Vec<f64> = blocks.iter().map(|block| block.share).collect();
    let mut is_capped = vec![false; blocks.len()];
    loop {
        let sum = |capped: bool| -> f64 {
            let of = (0..blocks.len()).filter(|at| is_capped[*at] == capped);
            of.map(|at| blocks[at].numbers as f64 * if capped { most } else { blocks[at].share }).sum()
        };
        let (taken, free) = (sum(true), sum(false));
        let scale = if free > 0.0 { (1.0 - taken).max(0.0) / free } else { 0.0 };
        let mut is_done = true;
        for at in 0..blocks.len() {
            shares[at] = if is_capped[at] { most } else { blocks[at].share * scale };
            if shares[at] > most {
                (is_capped[at], is_done) = (true, false);
            }
        }
        if is_done {
            return shares;
        }
    }
}

/// The keys of the first side, by ranks.
#[derive(Clone, Debug)]
struct Firsts {
    blocks: Vec<Block>,
    /// The first rank after each block.
    until: Vec<u64>,
}

/// The rows of a key of the first side.
struct Group {
    /// Of the key.
    number: u64,
    /// The first rank.
    first: u64,
    rows: u64,
}

impl Firsts {
    /// `most` is the number of rows that a key can have.
    fn new(blocks: Vec<Block>, rows: u64, most: u64) -> Self {
        let shares = capped(&blocks, most as f64 / rows.max(1) as f64);
        let room = |block: &Block| block.numbers.saturating_mul(most);
        let (mut share, mut given) = (0.0, 0);
        let mut counts: Vec<u64> = Vec::with_capacity(blocks.len());
        for (block, of_key) in blocks.iter().zip(shares) {
            share += of_key * block.numbers as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the rows"
            )]
            let until = ((share * rows as f64).round() as u64).clamp(given, rows);
            let count = (until - given).min(room(block));
            given += count;
            counts.push(count);
        }
        let mut left = rows - given;
        for (count, block) in counts.iter_mut().zip(&blocks) {
            let more = left.min(room(block) - *count);
            *count += more;
            left -= more;
        }
        let until = counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Self { until: until.collect(), blocks }
    }

    fn begin(&self, at: usize) -> u64 {
        at.checked_sub(1).map_or(0, |before| self.until[before])
    }

    fn group(&self, rank: u64) -> Group {
        let at = self.until.partition_point(|until| *until <= rank).min(self.until.len() - 1);
        let (begin, block) = (self.begin(at), &self.blocks[at]);
        let rows = (self.until[at] - begin).max(1);
        let key = scaled(rank.saturating_sub(begin), block.numbers, rows);
        let first = |key: u64| begin + scaled_up(key, rows, block.numbers);
        Group { number: block.number(key), first: first(key), rows: first(key + 1) - first(key) }
    }

    /// Rows of the key with the most of them.
    fn most(&self) -> u64 {
        let of_block =
            |(at, block): (usize, &Block)| (self.until[at] - self.begin(at)).div_ceil(block.numbers);
        self.blocks.iter().enumerate().map(of_block).max().unwrap_or(1).max(1)
    }

    /// The numbers of rows of all keys, in the order of ranks.
    fn rows(&self) -> Vec<u64> {
        let mut rows = Vec::new();
        let mut rank = 0;
        while self.until.last().is_some_and(|until| rank < *until) {
            let group = self.group(rank);
            rows.push(group.rows);
            rank += group.rows.max(1);
        }
        rows
    }

    fn levels(&self) -> Vec<Level> {
        let level = |(at, block): (usize, &Block)| Level {
            share: (self.until[at] - self.begin(at)) as f64,
            values: block.numbers as f64,
        };
        self.blocks.iter().enumerate().map(level).filter(|level| level.share > 0.0).collect()
    }
}

/// A number times one number by another.
fn scaled(number: u64, times: u64, by: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(times) / u128::from(by.max(1))).unwrap_or(u64::MAX)
}

/// The same, rounded up.
fn scaled_up(number: u64, times: u64, by: u64) -> u64 {
    let product = u128::from(number) * u128::from(times);
    u64::try_from(product.div_ceil(u128::from(by.max(1)))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Spread;
    use crate::spread::Common;

    fn spread(distinct: f64, correlation: f64, common: &[(f64, f64)], weights: &[(f64, f64)]) -> Spread {
        let common = common.iter().map(|&(place, share)| Common { place, share }).collect();
        Spread { distinct, correlation, common, bounds: Vec::new(), weights: weights.to_vec() }
    }

    fn made(rows: u64, first: (u64, Spread), second: (u64, Spread)) -> Vec<(u64, u64)> {
        let side = |(keys, spread)| PairedKeys { keys, spread };
        let mut paired = Paired {
            name: "t_pkey".to_owned(),
            rows,
            first: side(first),
            second: side(second),
            is_second: false,
        };
        let stream = Stream::new(7, &["t", "", "t_pkey"]);
        let ones = Pairing::new(&paired, stream);
        paired.is_second = true;
        let others = Pairing::new(&paired, stream);
        let pairs: Vec<(u64, u64)> = (0..rows).map(|row| (ones.number(row), others.number(row))).collect();
        let different: BTreeSet<&(u64, u64)> = pairs.iter().collect();
        assert_eq!(different.len(), pairs.len(), "{paired:?}");
        assert!(pairs.iter().all(|(one, other)| *one < paired.first.keys && *other < paired.second.keys));
        pairs
    }

    fn counts(keys: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
        let mut counts = BTreeMap::new();
        for key in keys {
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    #[test]
    fn keys_of_both_sides_come_as_often_as_their_spreads_say() {
        // Playlists: two have nearly all tracks, the others few.
        let common = [(0.0, 0.378), (0.45, 0.378), (0.3, 0.17), (0.7, 0.05), (0.9, 0.024)];
        let lists = [0, 8, 5, 12, 16];
        let second = spread(-1.0, 0.2, &[(0.25, 0.0006)], &[]);
        let pairs = made(8_700, (18, spread(-5.0 / 18.0, 1.0, &common, &[])), (3_500, second));
        assert!(pairs.iter().map(|pair| pair.0).is_sorted());
        let firsts = counts(pairs.iter().map(|pair| pair.0));
        assert_eq!(firsts.len(), 5);
        for (list, (place, share)) in lists.into_iter().zip(common) {
            let found = firsts[&list] as f64 / 8_700.0;
            assert!((found - share).abs() < 0.001, "{place}: {found}, {share}");
        }
        let seconds = counts(pairs.iter().map(|pair| pair.1));
        assert!(seconds.len() > 3_480, "{}", seconds.len());
        // In ascending order of the tracks of each playlist, the correlation would be higher.
        let found = order::correlation(pairs.iter().map(|pair| pair.1));
        assert!((found - 0.2).abs() < 0.02, "{found}");
    }

    #[test]
    fn keys_that_come_equally_often_do_so_exactly() {
        let pairs = made(
            40_000,
            (10_000, spread(-1.0, 1.0, &[], &[(4.0, 1.0)])),
            (500, spread(-1.0, 0.0, &[], &[(80.0, 1.0)])),
        );
        assert!(counts(pairs.iter().map(|pair| pair.0)).values().all(|count| *count == 4));
        assert!(counts(pairs.iter().map(|pair| pair.1)).values().all(|count| *count == 80));
        let together: BTreeSet<Vec<u64>> =
            pairs.chunks(4).map(|group| group.iter().map(|pair| pair.1).collect()).collect();
        assert!(together.len() > 400, "{}", together.len());
    }

    #[test]
    fn some_keys_come_often_and_no_pair_twice() {
        let common = [(0.1, 0.2), (0.5, 0.1)];
        let weights = [(0.0, 0.3), (1.0, 0.4), (7.0, 0.3)];
        for (rows, first, second) in [
            (50_000, 9_000, 700),
            (120_000, 40_000, 20_000),
            (5_000, 70, 80),
            (700, 30, 30),
            (900, 30, 30),
            (1, 1, 1),
        ] {
            for correlation in [1.0, 0.3, -0.8] {
                for (common, weights) in [(&common[..], &[][..]), (&[], &weights), (&common, &weights)] {
                    let side = |distinct: f64| spread(distinct, correlation, common, weights);
                    let pairs = made(rows, (first, side(-0.6)), (second, side(-0.9)));
                    let shares = counts(pairs.iter().map(|pair| pair.1));
                    if rows == 50_000 && !common.is_empty() {
                        // A key of the second side at most once for each of the first one.
                        let found = shares[&350] as f64 / rows as f64;
                        assert!((0.05..=0.12).contains(&found), "{found}");
                    }
                }
            }
        }
    }

    #[test]
    fn weights_say_how_many_rows_keys_have() {
        let weights = [(1.0, 0.5), (2.0, 0.25), (10.0, 0.25)];
        for keys in [10_000, 60_000] {
            let rows = keys * 7 / 2;
            let pairs = made(
                rows,
                (keys, spread(-1.0, 1.0, &[], &weights)),
                (keys / 10, spread(-1.0, 0.0, &[], &[])),
            );
            let firsts = counts(pairs.iter().map(|pair| pair.0));
            let of =
                |wanted: u64| firsts.values().filter(|count| **count == wanted).count() as f64 / keys as f64;
            assert!(
                (of(1) - 0.5).abs() < 0.02 && (of(10) - 0.25).abs() < 0.02,
                "{} {} {}",
                of(1),
                of(2),
                of(10)
            );
        }
    }
}
