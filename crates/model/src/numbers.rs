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

/// A value as a number on its type's scale.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl Number {
    pub(crate) fn read(kind: &Kind, text: &str) -> Option<Self> {
        let at = if is_real(kind) {
            text.parse().ok().filter(|number: &f64| number.is_finite())?
        } else {
            kind.read_units(text)? as f64
        };
        Some(Self { at, text: text.to_owned() })
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
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a distance of units")]
        let distance = (number.at - first).abs() as u64;
        gcd(divisor, distance)
    });
    divisor.max(1) as f64
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
            (None, None) => (own - 16.0 * step, own + 16.0 * step),
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
