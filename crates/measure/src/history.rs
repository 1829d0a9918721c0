//! A change of level within a history of runs.
//!
//! The rule: at each place that leaves at least three runs on both sides, the ranks of the values before it are compared
//! with the ranks after it (Wilcoxon's rank sum, standardized); the greatest difference counts (Pettitt, "A non-parametric
//! approach to the change-point problem", Applied Statistics 28, 1979). It is a change if shuffled histories rarely have one
//! as great; it is then placed where two levels fit the values best. Where the order of the values means nothing, this finds a change in at most `alpha` of all histories,
//! whatever the values' distribution is (a permutation test: Phipson and Smyth, 2010). A machine that drifts from run to run is
//! another thing: its values depend on their order.

use fastrand::Rng;

/// Runs before and after a change, at least.
const LEAST: usize = 3;
/// Shuffled histories beside which one is judged.
const SHUFFLES: u32 = 4999;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Index, from 0, of the first value on the new level.
    pub first: usize,
    /// Median after it, by the median before it.
    pub ratio: f64,
    /// Share of shuffled histories that look at least as changed.
    pub p: f64,
}

/// The most distinct change in a history, oldest value first; none if more than `alpha` of shuffled histories look as
/// changed.
pub fn shift(values: &[f64], alpha: f64) -> Option<Shift> {
    among(values, alpha, SHUFFLES)
}

fn among(values: &[f64], alpha: f64, shuffles: u32) -> Option<Shift> {
    if values.len() < 2 * LEAST || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = ranks(values);
    let greatest = statistic(&ranks);
    // The same histories each time: a report of the same runs says the same.
    let mut rng = Rng::with_seed(values.len() as u64);
    let mut as_great = 1;
    for _ in 0..shuffles {
        rng.shuffle(&mut ranks);
        as_great += u32::from(statistic(&ranks) >= greatest - 1e-9);
    }
    let p = f64::from(as_great) / f64::from(shuffles + 1);
    (p <= alpha).then(|| {
        let first = place(values);
        let [before, after] = [&values[..first], &values[first..]].map(median);
        Shift { first, ratio: after / before, p }
    })
}

/// Where two levels fit the values best: the sum of their distances from the median of their side is least. Ranks alone
/// tell less: the last value before a change may be the nearest to those after it.
fn place(values: &[f64]) -> usize {
    let distance = |side: &[f64]| {
        let middle = median(side);
        side.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    let cost = |first: &usize| distance(&values[..*first]) + distance(&values[*first..]);
    let places = LEAST..=values.len() - LEAST;
    places.min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or(LEAST)
}

/// Ranks from 1; those of equal values are their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| other.total_cmp(&value).is_eq()).count() as f64;
    values.iter().map(|value| below(*value) + f64::midpoint(1.0, equal(*value))).collect()
}

/// The greatest standardized rank sum.
fn statistic(ranks: &[f64]) -> f64 {
    let all = ranks.len() as f64;
    let (mut sum, mut greatest) = (0.0, 0.0);
    for (at, rank) in ranks[..ranks.len() - LEAST].iter().enumerate() {
        sum += rank;
        let before = at as f64 + 1.0;
        let spread = (before * (all - before) * (all + 1.0) / 12.0).sqrt();
        let found = (sum - before * f64::midpoint(all, 1.0)).abs() / spread;
        if at + 1 >= LEAST {
            greatest = f64::max(greatest, found);
        }
    }
    greatest
}

fn median(values: &[f64]) -> f64 {
    crate::sample::Sample::new(values.to_vec()).map_or(f64::NAN, |sample| sample.median())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, and a draw.
    type Distribution<'a> = (&'a str, &'a dyn Fn(&mut Rng) -> f64);

    /// 2000 histories in which nothing changes, of 6 to 45 values: in how many a change is found.
    fn false_alarms(draw: impl Fn(&mut Rng) -> f64, alpha: f64) -> usize {
        let mut rng = Rng::with_seed(7);
        let is_alarm = |number: usize| {
            let values: Vec<f64> = (0..6 + number % 40).map(|_| draw(&mut rng)).collect();
            among(&values, alpha, 99).is_some()
        };
        (0..2000).map(is_alarm).filter(|alarm| *alarm).count()
    }

    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let distributions: [Distribution<'_>; 4] = [
            ("noise of 3 %", &|rng| 100.0 * (1.0 + 0.03 * normal(rng))),
            ("heavy tails", &|rng| 1.0 / (rng.f64() + 1e-9)),
            ("few different values", &|rng| (rng.f64() * 4.0).floor()),
            ("two levels at random", &|rng| if rng.bool() { 100.0 } else { 60.0 } + normal(rng)),
        ];
        for (name, draw) in distributions {
            for alpha in [0.05, 0.01] {
                let found = false_alarms(draw, alpha);
                // As many as a binomial distribution has in all but one of 10,000 cases; and the test is not empty.
                let most = 2000.0 * alpha + 3.8 * (2000.0 * alpha * (1.0 - alpha)).sqrt();
                assert!((found as f64) <= most, "{name}, {alpha}: {found} of 2000");
                assert!(found > 0, "{name}, {alpha}: {found} of 2000");
            }
        }
    }

    #[test]
    fn a_change_is_found_where_it_is() {
        let mut rng = Rng::with_seed(1);
        let found = |rng: &mut Rng| {
            let values: Vec<f64> =
                (0..30).map(|at| (if at < 17 { 100.0 } else { 88.0 }) + rng.f64() * 6.0).collect();
            shift(&values, 0.01)
        };
        let found: Vec<Shift> = (0..20).filter_map(|_| found(&mut rng)).collect();
        assert_eq!(found.len(), 20);
        assert!(
            found.iter().all(|shift| shift.first.abs_diff(17) <= 1 && (shift.ratio - 0.883).abs() < 0.03)
        );
    }

    #[test]
    fn too_few_equal_or_missing_values_show_no_change() {
        for values in
            [&[][..], &[1.0, 2.0, 1.0, 5.0, 5.0], &[3.0; 40], &[1.0, f64::NAN, 1.0, 5.0, 5.0, 5.0, 5.0]]
        {
            assert_eq!(shift(values, 0.05), None, "{values:?}");
        }
        // Nine values have 84 splits into three and six, 126 into four and five: none is rare enough.
        let nine = [1.0, 1.1, 1.2, 1.3, 5.0, 5.1, 5.2, 5.3, 5.4];
        assert_eq!(shift(&nine, 0.01), None);
    }
}
