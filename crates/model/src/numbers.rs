//! Values as numbers on their type's scale, and how rare values are moved on it.

use fastrand::Rng;
use rowgen::Kind;

/// Most by which the first or last bound moves inwards, as a share of its bucket.
const TRIM: f64 = 0.5;
/// Least and most by which other bounds move, as a share of the distance to the next one.
const JITTER: (f64, f64) = (0.1, 0.25);
/// Steps by which a bound moves at most, unless that is less than the least share.
const STEPS: f64 = 2.0;
/// Most by which a rare value moves towards one neighbour, in distances to the other one: not into the void between all values and one that
/// means something else, such as 9999-12-31.
const REACH: f64 = 16.0;
/// Numbers that are drawn for a rare value at most, until one is another number.
const DRAWS: u32 = 8;
/// Share of the numbers between the bounds that occur, from which on bounds stay.
pub(crate) const DENSE: f64 = 0.9;
/// Different numbers from which on their distances tell the unit of all.
pub(crate) const ENOUGH: usize = 20;
/// Room between the least and the greatest of fewer numbers, in units for each.
const ROOM: f64 = 16.0;
/// A microsecond, a millisecond, a second, a minute, an hour and a day, in microseconds.
const CLOCK: [u64; 6] = [1, 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000];
/// Days of a week.
const WEEK: u64 = 7;
/// Numbers that are units with each power of ten, and the greatest of these powers.
const DIGITS: [u64; 5] = [1, 2, 5, 25, 125];
const POWERS: u32 = 15;

/// A value as a number on its type's scale.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl Number {
    pub(crate) fn read(kind: &Kind, text: &str) -> Option<Self> {
        if is_real(kind) {
            let at = text.parse().ok().filter(|number: &f64| number.is_finite())?;
            return Some(Self { at, text: text.to_owned() });
        }
        // Units have no time zone.
        if *kind == Kind::TimeTz && text.contains(['+', '-']) && !text.ends_with("+00") {
            return None;
        }
        let units = kind.read_units(text)?;
        let decimals = usize::try_from(kind.decimals()).unwrap_or_default();
        let is_rounded =
            |(_, fraction): (&str, &str)| matches!(kind, Kind::Numeric(_)) && fraction.len() > decimals;
        let text = if text.split_once('.').is_some_and(is_rounded) {
            kind.write_units(units)
        } else {
            text.to_owned()
        };
        Some(Self { at: units as f64, text })
    }

    /// Whether it is `infinity` or `-infinity`, at no distance from others.
    pub(crate) fn is_infinite(&self, kind: &Kind) -> bool {
        kind.infinities().is_some() && self.text.ends_with("infinity")
    }

    /// The value nearest to `to` that is a whole number of steps away from `from`.
    pub(crate) fn near(kind: &Kind, from: f64, to: f64, step: f64) -> Option<Self> {
        if is_real(kind) {
            return Self::read(kind, &format!("{to:?}"));
        }
        let at = from + ((to - from) / step).round() * step;
        let units = kind.extent()?;
        #[expect(clippy::cast_possible_truncation, reason = "clamped to the type's range")]
        let at = (at as i64).clamp(units.low, units.high);
        Some(Self { at: at as f64, text: kind.write_units(at) })
    }
}

/// The largest unit of which all distances are multiples.
pub(crate) fn step<'a>(kind: &Kind, numbers: impl Iterator<Item = &'a Number>) -> f64 {
    if is_real(kind) {
        return 0.0;
    }
    let mut first = None;
    let divisor = numbers.fold(0_u64, |divisor, number| {
        let first = *first.get_or_insert(number.at);
        gcd(divisor, whole(number.at - first))
    });
    divisor.max(1) as f64
}

/// The amount of a number of units.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of units")]
fn whole(units: f64) -> u64 {
    units.abs() as u64
}

/// The unit in which people measure, such as an hour or ten cents, at whose distances these numbers lie, of `count` different ones. Of a
/// few numbers it is one of which they are multiples, and that leaves room for many others between them.
pub(crate) fn grain(kind: &Kind, numbers: &[f64], count: f64) -> f64 {
    if is_real(kind) {
        return 0.0;
    }
    let sorted = different(numbers);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return 1.0 };
    let are_many = sorted.len() >= ENOUGH;
    let origin = if are_many { *first } else { 0.0 };
    let divisor = sorted.iter().fold(0, |divisor, number| gcd(divisor, whole(number - origin)));
    let units: Vec<u64> = match kind {
        Kind::Timestamp | Kind::TimestampTz | Kind::Time | Kind::TimeTz | Kind::Interval => CLOCK.to_vec(),
        Kind::Date => vec![1, WEEK],
        _ => (0..=POWERS).flat_map(|power| DIGITS.map(|digits| digits * 10_u64.pow(power))).collect(),
    };
    let wanted = if are_many { DENSE * count } else { f64::max(count, ROOM * sorted.len() as f64) };
    let fits = |unit: &&u64| divisor.is_multiple_of(**unit) && (last - first) / **unit as f64 + 1.0 >= wanted;
    units.iter().filter(fits).max().copied().unwrap_or(1) as f64
}

/// A unit that is so many times too great shows in the copy.
const TOO_GREAT: f64 = 16.0;

/// Divides buckets if the distances between so few bounds would tell a greater unit: the copy has only multiples of it, and of two bounds it
/// is their distance.
pub(crate) fn divide(
    rng: &mut Rng,
    kind: &Kind,
    common: &[(Number, f64)],
    bounds: &mut Vec<Number>,
    unit: f64,
) {
    let all = common.iter().map(|(number, _)| number).chain(bounds.iter());
    if unit <= 0.0 || bounds.len() < 2 || step(kind, all) < TOO_GREAT * unit {
        return;
    }
    let at: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
    let narrowest = at.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    // Four units at least, so that a bound can move by one.
    let wanted = ENOUGH.div_ceil(bounds.len() - 1);
    let parts = (1..=wanted).rev().find(|parts| narrowest >= 4.0 * unit * *parts as f64).unwrap_or(1);
    let mut divided = Vec::with_capacity(bounds.len() * parts);
    for (bound, pair) in bounds.iter().zip(at.windows(2)) {
        divided.push(bound.clone());
        let width = (pair[1] - pair[0]) / parts as f64;
        for part in 1..parts {
            let place = width.mul_add(part as f64, pair[0]) + unit * f64::from(rng.u8(0..2));
            divided.extend(Number::near(kind, pair[0], place, unit));
        }
    }
    divided.extend(bounds.last().cloned());
    *bounds = divided;
}

/// The different numbers in ascending order.
pub(crate) fn different(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|one, other| one.total_cmp(other).is_eq());
    sorted
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Moves frequent values with less than that share of the rows to another number between their
/// neighbours, if there is one.
pub(crate) fn replace_rare(
    rng: &mut Rng,
    least: f64,
    kind: &Kind,
    common: &mut [(Number, f64)],
    bounds: &[Number],
    step: f64,
) {
    for at in 0..common.len() {
        if common[at].1 >= least {
            continue;
        }
        let own = common[at].0.at;
        let low = at.checked_sub(1).map(|before| common[before].0.at);
        let high = common.get(at + 1).map(|(after, _)| after.at);
        let below = bounds.iter().rev().map(|bound| bound.at).find(|bound| *bound < own);
        let above = bounds.iter().map(|bound| bound.at).find(|bound| *bound > own);
        let nearest = |one: Option<f64>, other: Option<f64>, which: fn(f64, f64) -> f64| match (one, other) {
            (Some(one), Some(other)) => Some(which(one, other)),
            (one, other) => one.or(other),
        };
        // The least and the greatest value move inwards: a CHECK may end there.
        let (low, high) = match (nearest(low, below, f64::max), nearest(high, above, f64::min)) {
            // Not near it: a quarter of its amount.
            (None, None) => {
                let wide = (own.abs() / 4.0).max(16.0 * step).max(1.0);
                (own - wide, own + wide)
            }
            (Some(low), Some(high)) => {
                let reach = REACH * (own - low).min(high - own);
                (low.max(own - reach), high.min(own + reach))
            }
            (low, high) => (low.unwrap_or(own), high.unwrap_or(own)),
        };
        let draws = (0..DRAWS).map(|_| low + (high - low) * rng.f64().mul_add(0.9, 0.05));
        let mut moved =
            draws.chain([own + step, own - step]).filter_map(|to| Number::near(kind, own, to, step));
        let is_other =
            |number: &Number| low < number.at && number.at < high && number.at.total_cmp(&own).is_ne();
        if let Some(number) = moved.find(is_other) {
            common[at].0 = number;
        }
    }
}

/// Number of bounds on each side that are averaged with a bound.
const BESIDE: usize = 2;

/// Removes the variation that sampling adds to the widths of buckets: each bound becomes the mean
/// of itself and its neighbours, where the buckets between them are about equally wide.
pub(crate) fn smooth(kind: &Kind, bounds: &mut [Number], step: f64) {
    let at: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
    for (middle, bound) in bounds.iter_mut().enumerate().skip(BESIDE) {
        let Some(near) = at.get(middle - BESIDE..=middle + BESIDE) else { break };
        let widths = near.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) =
            widths.fold((f64::INFINITY, 0.0), |(least, most), width| (width.min(least), width.max(most)));
        if least > 0.0 && most < 2.0 * least {
            let mean = near.iter().sum::<f64>() / near.len() as f64;
            if let Some(number) = Number::near(kind, bound.at, mean, step) {
                *bound = number;
            }
        }
    }
}

/// Most steps by which the first bound moves further to keep the unit of all values.
const SHIFTS: u32 = 8;

/// Moves the first and the last bound inwards. `share` is k's share of a bucket's rows: beyond a bound
/// that moves by its square root lie about k rows, even if the rows thin out towards the end. If
/// values are rare, the other bounds move randomly, too: none of them to its original, if there is room for another number.
pub(crate) fn move_bounds(
    rng: &mut Rng,
    kind: &Kind,
    (bounds, originals): (&mut [Number], &[f64]),
    step: f64,
    share: f64,
    are_rare: bool,
) {
    let trim = |width: f64, chance: f64| {
        let most = (TRIM * width).min((share.sqrt() * width).max(step));
        most * chance.mul_add(0.5, 0.5)
    };
    let at: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
    for (index, bound) in bounds.iter_mut().enumerate() {
        let before = index.checked_sub(1).map(|before| at[index] - at[before]);
        let after = at.get(index + 1).map(|after| after - at[index]);
        let moved = match (before, after) {
            (Some(before), Some(after)) if are_rare => {
                let width = before.min(after);
                let jitter = (STEPS * step / width).clamp(JITTER.0, JITTER.1);
                width * jitter * (2.0 * rng.f64() - 1.0)
            }
            (None, Some(after)) => trim(after, rng.f64()),
            (Some(before), None) => -trim(before, rng.f64()),
            (Some(_), Some(_)) | (None, None) => 0.0,
        };
        let near = |moved: f64| Number::near(kind, bound.at, bound.at + moved, step);
        let is_original = |number: &Number| number.at.total_cmp(&originals[index]).is_eq();
        let has_room = before.zip(after).is_some_and(|(before, after)| step <= JITTER.1 * before.min(after));
        let number = match near(moved) {
            Some(number) if are_rare && has_room && is_original(&number) => {
                near(moved - step.copysign(moved))
            }
            number => number,
        };
        if let Some(number) = number {
            *bound = number;
        }
    }
    // The bounds tell of which unit all values are multiples: it must not become greater by chance.
    if step > 0.0 && bounds.len() > 1 {
        let first = bounds[0].at;
        for further in 1..=SHIFTS {
            if self::step(kind, bounds.iter()) <= step {
                break;
            }
            if let Some(number) = Number::near(kind, first, first + f64::from(further) * step, step) {
                bounds[0] = number;
            }
        }
    }
}

fn is_real(kind: &Kind) -> bool {
    matches!(kind, Kind::Float4 | Kind::Float8)
}

#[cfg(test)]
mod tests {
    use rowgen::Precision;

    use super::*;

    #[test]
    fn a_rare_value_stays_near_its_nearer_neighbour() {
        let number = |at: i64| Number::read(&Kind::Int4, &at.to_string()).unwrap();
        for seed in 0..200 {
            let mut common = [(number(-1_000_000), 0.2), (number(10), 0.001), (number(14), 0.2)];
            replace_rare(&mut Rng::with_seed(seed), 0.01, &Kind::Int4, &mut common, &[], 1.0);
            assert!((-54.0..14.0).contains(&common[1].0.at), "{}", common[1].0.text);
        }
    }

    #[test]
    fn a_rare_value_is_never_its_own_replacement() {
        let number = |at: i64| Number::read(&Kind::Int4, &at.to_string()).unwrap();
        let replaced = |seed, before: i64, own: i64, after: i64| {
            let mut common = [(number(before), 0.2), (number(own), 0.001), (number(after), 0.2)];
            replace_rare(&mut Rng::with_seed(seed), 0.01, &Kind::Int4, &mut common, &[], 1.0);
            let [(low, _), (replaced, _), (high, _)] = common;
            assert!(low.at < replaced.at && replaced.at < high.at);
            replaced.text
        };
        for seed in 0..200 {
            assert_ne!(replaced(seed, 10, 15, 20), "15");
            assert_eq!(replaced(seed, 10, 11, 13), "12");
            assert_eq!(replaced(seed, 10, 12, 13), "11");
            assert_eq!(replaced(seed, 10, 11, 12), "11", "there is no other number");
        }
    }

    #[test]
    fn a_rare_value_alone_is_another_one_and_not_beside_it() {
        for (kind, text, least) in [
            (Kind::Int4, "1234567", 1_000.0),
            (Kind::Float8, "3.14159265", 0.01),
            (Kind::Date, "1961-08-13", 30.0),
        ] {
            let far = (0..200).filter(|seed| {
                let own = Number::read(&kind, text).unwrap();
                let mut common = [(own.clone(), 0.001)];
                let step = grain(&kind, &[own.at], 1.0);
                replace_rare(&mut Rng::with_seed(*seed), 0.01, &kind, &mut common, &[], step);
                assert_ne!(common[0].0.text, text);
                (common[0].0.at - own.at).abs() > least
            });
            assert!(far.count() > 180, "{text}");
        }
    }

    #[test]
    fn few_numbers_have_a_unit_that_leaves_room() {
        let of = |kind: &Kind, texts: &[&str]| {
            let at: Vec<f64> = texts.iter().map(|text| Number::read(kind, text).unwrap().at).collect();
            grain(kind, &at, at.len() as f64)
        };
        let is = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        // The distance of two numbers is no unit.
        is(of(&Kind::Date, &["1961-08-13", "1975-02-02"]), 1.0);
        is(of(&Kind::Int4, &["50700", "51400"]), 20.0);
        is(of(&Kind::Int4, &["7", "9"]), 1.0);
        is(of(&Kind::Timestamp, &["2024-01-01 10:00:00", "2024-01-01 11:00:00"]), 60e6);
        is(of(&Kind::Timestamp, &["2024-01-01 10:00:00", "2024-03-01 11:00:00"]), 3600e6);
        is(of(&Kind::Float8, &["1", "2"]), 0.0);
        let many: Vec<f64> = (0..50).map(|number| f64::from(50_707 + 700 * number)).collect();
        is(grain(&Kind::Int4, &many, 50.0), 100.0);
        let quarters: Vec<f64> = (0..=100).map(|number| f64::from(125 * number)).collect();
        is(grain(&Kind::Money, &quarters, 100.0), 125.0);
        // More different numbers than multiples of 500 between the least and the greatest.
        let hundreds: Vec<f64> = (0..=100).map(|number| f64::from(500 * number)).collect();
        is(grain(&Kind::Int4, &hundreds, 500.0), 100.0);
        let half_past: Vec<f64> = (0..50).map(|hour| 1_800e6 + 3_600e6 * f64::from(hour)).collect();
        is(grain(&Kind::Timestamp, &half_past, 50.0), 3_600e6);
    }

    #[test]
    fn two_bounds_tell_the_unit() {
        let kind = Kind::Date;
        let dates = |texts: &[&str]| -> Vec<Number> {
            texts.iter().map(|text| Number::read(&kind, text).unwrap()).collect()
        };
        for seed in 0..100 {
            let mut bounds = dates(&["1931-01-01", "1996-01-01"]);
            divide(&mut Rng::with_seed(seed), &kind, &[], &mut bounds, 1.0);
            assert_eq!(bounds.len(), 21);
            assert!((step(&kind, bounds.iter()) - 1.0).abs() < 1e-9, "{bounds:?}");
            assert!(bounds.windows(2).all(|pair| pair[0].at < pair[1].at));
            assert_eq!((bounds[0].text.as_str(), bounds[20].text.as_str()), ("1931-01-01", "1996-01-01"));
        }
        let mut many = dates(&["1931-01-01", "1931-01-02", "1996-01-01"]);
        divide(&mut Rng::with_seed(1), &kind, &[], &mut many, 1.0);
        assert_eq!(many.len(), 3);
    }

    #[test]
    fn decimals_below_the_unit_are_cut_off_and_offsets_are_not_read() {
        let rates = Kind::Numeric(Some(Precision { precision: 20, scale: 10 }));
        for (kind, text, read) in [
            (&rates, "0.1428571429", Some("0.14285714")),
            (&rates, "0.1428571400", Some("0.14285714")),
            (&Kind::Numeric(None), "-0.14285714285714285714", Some("-0.142857")),
            (&Kind::Numeric(None), "1.5", Some("1.5")),
            (&Kind::TimeTz, "08:00:00+00", Some("08:00:00+00")),
            (&Kind::TimeTz, "08:00:00+02", None),
            (&Kind::TimeTz, "08:00:00-08", None),
            (&Kind::TimeTz, "08:00:00", Some("08:00:00")),
        ] {
            let found = Number::read(kind, text).map(|number| number.text);
            assert_eq!(found.as_deref(), read, "{text}");
        }
    }

    #[test]
    fn a_rare_bound_is_never_its_own_replacement() {
        for (width, seed) in (4..40).flat_map(|width| (0..50).map(move |seed| (width, seed))) {
            let number = |at: i64| Number::read(&Kind::Int4, &(at * width).to_string()).unwrap();
            let mut bounds: Vec<Number> = (0..20).map(number).collect();
            let originals: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
            let both = (bounds.as_mut_slice(), originals.as_slice());
            move_bounds(&mut Rng::with_seed(seed), &Kind::Int4, both, 1.0, 0.5, true);
            for (bound, original) in bounds.iter().zip(&originals) {
                assert!(bound.at.total_cmp(original).is_ne(), "{width} {seed}: {}", bound.text);
            }
            assert!(bounds.windows(2).all(|pair| pair[0].at < pair[1].at), "{width} {seed}");
        }
    }

    #[test]
    fn moved_bounds_have_the_unit_of_the_original() {
        for seed in 0..200 {
            let number = |at: &i64| Number::read(&Kind::Int4, &at.to_string()).unwrap();
            let at: Vec<i64> = std::iter::once(1).chain((1..=100).map(|bound| bound * 40)).collect();
            let mut bounds: Vec<Number> = at.iter().map(number).collect();
            assert!((step(&Kind::Int4, bounds.iter()) - 1.0).abs() < 1e-9);
            let originals: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
            let both = (bounds.as_mut_slice(), originals.as_slice());
            move_bounds(&mut Rng::with_seed(seed), &Kind::Int4, both, 1.0, 0.5, false);
            assert!((step(&Kind::Int4, bounds.iter()) - 1.0).abs() < 1e-9, "{seed}: {}", bounds[0].text);
            assert!(bounds.windows(2).all(|pair| pair[0].at < pair[1].at) && bounds[0].at >= 1.0);
        }
    }
}
