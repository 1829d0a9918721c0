//! Divides the values of [`Statistics`](crate::Statistics) into stretches with numbers of rows and of different values.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::super::level::{Recipient, level, whole as whole_numbers};
use super::super::order::READ_WHOLE;
use super::super::spread::DISTURBED;
use super::Number;
use crate::spread::Buckets;

/// Share of the values that there is room for, above which they are not drawn.
pub(super) const FULL: f64 = 0.95;
/// The statistics may have more different values by this factor than rows draw from all that there is room for: ANALYZE estimates them.
const ERROR: f64 = 1.02;
/// Rows of each value, on average, up to which nearly each row has its own.
const NEARLY_EACH: f64 = 1.5;
/// Share of the rows that may move to another bucket, twice, so that each has its own value.
const MOVED: f64 = 0.2;
/// Share of the rows from which on each row has a value of its own.
const UNIQUE: f64 = 0.999;
/// Buckets from which on the step of their bounds is that of all values.
const MANY: usize = 20;

/// Arithmetic of values of one kind.
pub(super) struct Bounds<T, W, A> {
    pub(super) number: fn(T) -> Number,
    width: W,
    /// The next value that there can be.
    after: A,
    step: f64,
}

pub(super) fn whole(step: i64) -> Bounds<i64, impl Fn(i64, i64) -> f64, impl Fn(i64) -> i64> {
    Bounds {
        number: Number::Units,
        width: |low: i64, high: i64| high.abs_diff(low) as f64,
        after: move |value: i64| value.saturating_add(step),
        step: step as f64,
    }
}

pub(super) fn real() -> Bounds<f64, impl Fn(f64, f64) -> f64, impl Fn(f64) -> f64> {
    Bounds {
        number: Number::Real,
        width: |low: f64, high: f64| high - low,
        after: |value: f64| value,
        step: 0.0,
    }
}

/// Values between two, with their share of the rows.
pub(super) struct Stretch<T> {
    /// Whether it is a frequent value.
    pub(super) is_common: bool,
    pub(super) low: T,
    pub(super) width: f64,
    pub(super) share: f64,
    pub(super) values: u64,
    pub(super) step: f64,
}

impl<T> Stretch<T> {
    /// The number of different values for which it has room.
    pub(super) fn room(&self) -> f64 {
        if self.step > 0.0 { (self.width / self.step).max(1.0) } else { 1e18 }
    }
}

/// The number of different values among so many rows that draw from so many values.
pub(super) fn seen(values: f64, rows: f64) -> f64 {
    -values * libm::expm1(-rows / values)
}

/// Whether a stretch has enough rows to draw its values.
pub(super) fn is_enough(rows: f64) -> bool {
    rows > 4.0 * DISTURBED as f64
}

/// Frequent values, and buckets between them, in ascending order, for a number of rows with so many different values.
pub(super) fn stretches<T: Copy + PartialOrd>(
    buckets: &Buckets<T>,
    count: u64,
    rows: u64,
    bounds: &Bounds<T, impl Fn(T, T) -> f64, impl Fn(T) -> T>,
) -> Vec<Stretch<T>> {
    let number = buckets.bounds.len().saturating_sub(1);
    let each = (1.0 - buckets.common_share()).max(0.0) / number.max(1) as f64;
    let others = count.saturating_sub(buckets.common.len() as u64) as f64;
    let atom =
        |(low, share): (T, f64)| Stretch { is_common: true, low, width: 0.0, share, values: 1, step: 0.0 };
    let mut common = buckets.common.iter().copied().peekable();
    let (mut stretches, mut atoms) = (Vec::new(), Vec::new());
    for (at, pair) in buckets.bounds.windows(2).enumerate() {
        let (mut low, high) = (pair[0], pair[1]);
        let is_last = at + 1 == number;
        // The last bucket includes its upper bound.
        let end = (bounds.width)(low, high) + if is_last { bounds.step } else { 0.0 };
        let mut left = end;
        let mut parts = Vec::new();
        // Frequent values above the last bucket are no part of it: all other values lie within the buckets.
        let is_within = |value: T| value < high || (is_last && value <= high);
        while let Some((value, share)) = common.next_if(|(value, _)| is_within(*value)) {
            let before = if value > low { (bounds.width)(low, value) } else { 0.0 };
            parts.push((low, before));
            atoms.push(atom((value, share)));
            if value >= low {
                low = (bounds.after)(value);
                left -= before + bounds.step;
            }
        }
        parts.push((low, left.max(0.0)));
        let whole: f64 = parts.iter().map(|(_, width)| width).sum();
        for (low, width) in parts {
            // Of two equal bounds the whole bucket is one value.
            let part = if end <= 0.0 { 1.0 } else { width / whole.max(f64::MIN_POSITIVE) };
            // Where a bucket is a little too narrow for its values, all units count, unless many bounds tell the step.
            let wanted = others * part / number.max(1) as f64;
            let is_narrow = number < MANY && (1.0..2.0).contains(&(wanted * bounds.step / width));
            let step = if is_narrow { bounds.step.min(1.0) } else { bounds.step };
            stretches.push(Stretch { is_common: false, low, width, share: each * part, values: 1, step });
        }
    }
    stretches.retain(|stretch| stretch.share > 0.0);
    let places = places(&stretches, others, rows as f64);
    let numbers = whole_numbers(&level(&places, others), places.iter().map(|place| place.room.max(1.0)));
    for (stretch, values) in stretches.iter_mut().zip(numbers) {
        stretch.values = values;
    }
    give_away(&mut stretches);
    let there: f64 = stretches.iter().map(|stretch| stretch.share).sum();
    if rows <= READ_WHOLE && others * NEARLY_EACH >= there * rows as f64 {
        // Nearly each row has a value of its own: so they all do where a bucket has a little less room than others.
        let all = stretches.iter().map(|stretch| stretch.values).sum::<u64>() as f64;
        let share = |stretch: &Stretch<T>| there * stretch.values as f64 / all;
        if stretches.iter().map(|stretch| (stretch.share - share(stretch)).abs()).sum::<f64>() < MOVED {
            for stretch in &mut stretches {
                stretch.share = share(stretch);
            }
        }
    }
    stretches.extend(atoms);
    stretches.extend(common.map(atom));
    stretches.retain(|stretch| stretch.share > 0.0);
    stretches.sort_by(|one, other| one.low.partial_cmp(&other.low).unwrap_or(Ordering::Equal));
    stretches
}

/// Drops stretches without values: the next ones get their shares, and the last ones get those of the others.
fn give_away<T>(stretches: &mut Vec<Stretch<T>>) {
    // Rows need at least one value.
    if let Some(most) = stretches.iter_mut().max_by(|one, other| one.share.total_cmp(&other.share)) {
        most.values = most.values.max(1);
    }
    let mut share = 0.0;
    for mut stretch in std::mem::take(stretches) {
        share += stretch.share;
        if stretch.values > 0 {
            stretch.share = std::mem::take(&mut share);
            stretches.push(stretch);
        }
    }
    if let Some(last) = stretches.last_mut() {
        last.share += share;
    }
}

/// Stretches as recipients of so many values. Rows that draw from all values for which a stretch has room miss some of these. If there
/// are more different values than rows draw, these come evenly, and a stretch receives as many as it has room for.
fn places<T>(stretches: &[Stretch<T>], values: f64, rows: f64) -> Vec<Recipient> {
    let is_drawn = rows > READ_WHOLE as f64;
    let of_draws = |stretch: &Stretch<T>| {
        let (room, rows) = (stretch.room(), stretch.share * rows);
        if is_drawn && is_enough(rows) && seen(room, rows) <= FULL * room { seen(room, rows) } else { room }
    };
    let all: f64 = stretches.iter().map(of_draws).sum();
    let there: f64 = stretches.iter().map(|stretch| stretch.share * rows).sum();
    let are_drawn = values < UNIQUE * there && values <= ERROR * all;
    let place = |stretch: &Stretch<T>| {
        let room = if are_drawn { of_draws(stretch) } else { stretch.room() };
        Recipient { room, weight: stretch.share }
    };
    stretches.iter().map(place).collect()
}

/// The unit of so many different values. The distance between two of them tells none of the others.
pub(super) fn unit(buckets: &Buckets<i64>, count: u64) -> i64 {
    let common = buckets.common.iter().map(|(value, _)| *value);
    let known: BTreeSet<i64> = buckets.bounds.iter().copied().chain(common).collect();
    if known.len() == 2 && count > 2 { 1 } else { step(buckets) }
}

/// Greatest common divisor of all differences: the unit that values are rounded to.
fn step(buckets: &Buckets<i64>) -> i64 {
    // The extremes stand for infinity, which is no multiple of anything.
    let extremes = [i64::MIN, i64::MAX, i64::from(i32::MIN), i64::from(i32::MAX)];
    let common = buckets.common.iter().map(|(value, _)| *value).filter(|value| !extremes.contains(value));
    let mut values = buckets.bounds.iter().copied().chain(common);
    let Some(first) = values.next() else { return 1 };
    let divisor = values.fold(0, |divisor, value| gcd(divisor, value.abs_diff(first)));
    i64::try_from(divisor).unwrap_or(1).max(1)
}

pub(in super::super) fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
