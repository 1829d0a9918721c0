//! Finds lasting changes of a rate, e.g. when burst credits run out or the page cache is full.
//!
//! A rate per second is noisy, stalls now and then (checkpoints), and its noise has no known
//! distribution. Therefore everything here uses ranks, which do not depend on outliers or on the
//! shape of the noise:
//!
//! 1. *Where* could it have changed? Pettitt's statistic ("A Non-Parametric Approach to the
//!    Change-Point Problem", Applied Statistics 28, 1979) gives the split at which the seconds
//!    before and after differ most in rank. The split is then moved so that most seconds are on the
//!    side of their rate, and the parts are split again (binary segmentation).
//! 2. *Did* it change? Pettitt's significance assumes independent seconds, which a disk's are not.
//!    So each candidate must also be large: see [`rate_changes`]. Candidates that are not are
//!    discarded, the weakest first.

use std::ops::Range;

use crate::human;
use crate::run::Unit;

/// Least length of a segment with a rate of its own, seconds.
const SHORTEST: usize = 15;
/// Least length of such a segment as a share of the whole series.
const SHORTEST_SHARE: f64 = 0.15;
/// Pettitt's significance at which a split becomes a candidate.
const SIGNIFICANCE: f64 = 0.01;
/// Least probability that a second from before beats one from after, or the other way round (Vargha and Delaney's A,
/// 2000: 0.5 is no difference, 1 is no overlap).
const SUPERIORITY: f64 = 0.9;
/// Least difference of the mean rates, as a share of the higher one.
const DIFFERENCE: f64 = 0.25;
/// Least share of the difference that must occur between neighbouring seconds: a slow decline has
/// no time of change.
const AT_ONCE: f64 = 0.5;
/// A last interval shorter than this is ignored, seconds.
const SHORTEST_INTERVAL: f64 = 0.5;

/// A sustained change of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateChange {
    /// Time of the change, seconds since the series began.
    pub at: f64,
    /// The mean rate since the change before this one, or since the beginning; per second.
    pub before: f64,
    /// The mean rate until the next change, or the end; per second.
    pub after: f64,
    /// End of the rate `after`, seconds since the series began.
    pub until: f64,
}

/// Finds sustained changes of a rate, in order.
///
/// `points` are about a second apart: the time in seconds since the beginning, and the amount since
/// the point before. A change is reported if all of this holds:
///
/// - both rates lasted 15 seconds and 15 % of the whole, at least;
/// - nine of ten pairs of a second before and a second after differ the same way;
/// - the mean rates differ by a quarter of the higher one;
/// - at least half of the difference came at once.
///
/// So noise around a level, stalls of any depth in less than a tenth of the seconds, and slow
/// declines are no changes. Fewer than 30 points have no changes. This crate's tests count missed
/// and false changes with noise of known size and memory.
pub fn rate_changes(points: &[(f64, f64)]) -> Vec<RateChange> {
    let seconds = Seconds::of(points);
    let mut cuts = Vec::new();
    seconds.split(0..seconds.rates.len(), &mut cuts);
    seconds.give_up_weak(&mut cuts);
    let segments = seconds.segments(&cuts);
    let change = |pair: &[Range<usize>]| RateChange {
        at: seconds.ends[pair[0].end - 1],
        before: seconds.mean(&pair[0]),
        after: seconds.mean(&pair[1]),
        until: seconds.ends[pair[1].end - 1],
    };
    segments.windows(2).map(change).collect()
}

/// The changes as sentences for people; `what` is e.g. `the write rate`, `unit` what was counted.
pub fn rate_sentences(what: &str, changes: &[RateChange], unit: Unit) -> Vec<String> {
    let sentence = |(index, change): (usize, &RateChange)| {
        let verb = if change.after < change.before { "fell" } else { "rose" };
        let (before, after) = (rate(change.before, unit), rate(change.after, unit));
        let lasted = if index + 1 == changes.len() {
            "and stayed there".to_owned()
        } else {
            format!("and stayed there for {:.0} s", change.until - change.at)
        };
        format!("{what} {verb} from {before} to {after} at {:.0} s {lasted}", change.at)
    };
    changes.iter().enumerate().map(sentence).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are no fractions of a byte"
)]
fn rate(per_second: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{}/s", human::bytes(per_second as u64)),
        Unit::Rows => format!("{} rows/s", human::count(per_second)),
        Unit::Blocks => format!("{} blocks/s", human::count(per_second)),
        Unit::Seconds | Unit::Count => format!("{}/s", human::count(per_second)),
    }
}

/// The points as intervals.
struct Seconds {
    /// End of each second.
    ends: Vec<f64>,
    /// Length of each second, in seconds.
    lengths: Vec<f64>,
    /// Amount per second in it.
    rates: Vec<f64>,
    /// The shortest segment, intervals.
    shortest: usize,
}

impl Seconds {
    fn of(points: &[(f64, f64)]) -> Self {
        let mut seconds = Self { ends: Vec::new(), lengths: Vec::new(), rates: Vec::new(), shortest: 0 };
        let mut start = 0.0;
        for &(end, amount) in points {
            let length = end - start;
            if length >= SHORTEST_INTERVAL {
                seconds.ends.push(end);
                seconds.lengths.push(length);
                seconds.rates.push(amount / length);
            }
            start = end;
        }
        seconds.shortest = SHORTEST.max(share(seconds.rates.len(), SHORTEST_SHARE));
        seconds
    }

    /// Binary segmentation: appends candidates in order.
    fn split(&self, segment: Range<usize>, cuts: &mut Vec<usize>) {
        if segment.len() < 2 * self.shortest {
            return;
        }
        let Some(length) = pettitt(&self.rates[segment.clone()], self.shortest) else { return };
        let cut = self.sharpen(&segment, segment.start + length);
        self.split(segment.start..cut, cuts);
        cuts.push(cut);
        self.split(cut..segment.end, cuts);
    }

    /// Moves a cut so that most seconds are on the right side of the middle between both rates.
    /// Pettitt's own cut is shifted towards the middle of the series by some seconds.
    fn sharpen(&self, segment: &Range<usize>, cut: usize) -> usize {
        let before = median(&self.rates[segment.start..cut]);
        let after = median(&self.rates[cut..segment.end]);
        let middle = f64::midpoint(before, after);
        let mut right = 0;
        let count = self.rates[segment.clone()].iter().zip(segment.start + 1..).map(|(rate, end)| {
            right += if (*rate < middle) == (before < middle) { 1 } else { -1 };
            (end, right)
        });
        let allowed = segment.start + self.shortest..=segment.end - self.shortest;
        let best = count.filter(|(end, _)| allowed.contains(end)).max_by_key(|&(_, right)| right);
        best.map_or(cut, |(end, _)| end)
    }

    /// Removes candidates that are no changes, the weakest first. (Each removal makes the
    /// neighbouring segments longer.)
    fn give_up_weak(&self, cuts: &mut Vec<usize>) {
        loop {
            let segments = self.segments(cuts);
            let weak = segments.windows(2).enumerate().filter(|(_, pair)| !self.differ(&pair[0], &pair[1]));
            let strength = |pair: &[Range<usize>]| self.superiority(&pair[0], &pair[1]);
            let weakest = weak.min_by(|(_, one), (_, other)| strength(one).total_cmp(&strength(other)));
            let Some((index, _)) = weakest else { return };
            cuts.remove(index);
        }
    }

    fn segments(&self, cuts: &[usize]) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([self.rates.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Whether the rates of two neighbouring segments differ enough to be a change.
    fn differ(&self, before: &Range<usize>, after: &Range<usize>) -> bool {
        let (from, to) = (self.mean(before), self.mean(after));
        self.superiority(before, after) >= SUPERIORITY
            && (from - to).abs() >= DIFFERENCE * from.max(to)
            && self.is_abrupt(before, after)
    }

    /// The mean rate of a segment, stalls included: amount by time.
    fn mean(&self, segment: &Range<usize>) -> f64 {
        let lengths = &self.lengths[segment.clone()];
        let amount: f64 =
            self.rates[segment.clone()].iter().zip(lengths).map(|(rate, length)| rate * length).sum();
        amount / lengths.iter().sum::<f64>()
    }

    /// Probability that a second of the segment with the higher rate exceeds one of the other: 0.5
    /// to 1.
    fn superiority(&self, before: &Range<usize>, after: &Range<usize>) -> f64 {
        let both: Vec<f64> =
            [before, after].iter().flat_map(|&segment| &self.rates[segment.clone()]).copied().collect();
        let (m, n) = (before.len() as f64, after.len() as f64);
        let rank_sum: f64 = ranks(&both)[..before.len()].iter().sum();
        let beats = (rank_sum - m * (m + 1.0) / 2.0) / (m * n);
        beats.max(1.0 - beats)
    }

    /// Whether enough of the difference occurs between the seconds next to the cut.
    fn is_abrupt(&self, before: &Range<usize>, after: &Range<usize>) -> bool {
        let near = self.shortest / 2;
        let typical = |segment: Range<usize>| median(&self.rates[segment]);
        let whole = typical(after.clone()) - typical(before.clone());
        let here = typical(after.start..after.start + near) - typical(before.end - near..before.end);
        here * whole.signum() >= AT_ONCE * whole.abs()
    }
}

/// Most likely place of a change in the series, at least `shortest` from either end, if there is one.
fn pettitt(rates: &[f64], shortest: usize) -> Option<usize> {
    let n = rates.len() as f64;
    let mut sum = 0.0;
    let statistic = ranks(rates).into_iter().enumerate().map(|(index, rank)| {
        sum += rank;
        let length = index + 1;
        (length, (2.0 * sum - length as f64 * (n + 1.0)).abs())
    });
    let inner = statistic.filter(|(length, _)| (shortest..=rates.len() - shortest).contains(length));
    let (length, largest) = inner.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let significance = 2.0 * (-6.0 * largest * largest / (n * n * n + n * n)).exp();
    (significance <= SIGNIFICANCE).then_some(length)
}

/// Ranks from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&one, &other| values[one].total_cmp(&values[other]).is_eq()) {
        let shared = f64::midpoint(first as f64 + 1.0, (first + equal.len()) as f64);
        for &index in equal {
            ranks[index] = shared;
        }
        first += equal.len();
    }
    ranks
}

/// The upper median.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// A share of a number, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
fn share(number: usize, share: f64) -> usize {
    (number as f64 * share).ceil() as usize
}
