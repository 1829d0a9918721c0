//! Two samples beside each other.

use serde::{Deserialize, Serialize};

use crate::median::{IntervalKind, Median};
use crate::paired::Estimate;
use crate::sample::Sample;
use crate::verdict::Verdict;

/// How often samples that do not differ may be told as different.
const FALSE_ALARMS: f64 = 0.05;
/// Of larger samples so many values are looked at, evenly from the lowest to the highest.
const MOST: usize = 1000;
/// Larger samples' ranks are taken as normally distributed.
const EXACT: usize = 30;

/// Which way is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// What costs: seconds, bytes.
    Less,
    /// What is got: transactions per second.
    More,
}

/// How many times the baseline the candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The middle of the ratios of all pairs of a value here and one there.
    pub ratio: f64,
    /// Where the true ratio is in 95 of 100 cases; none with too few values (fewer than four each).
    pub interval: Option<Estimate>,
    /// What that says.
    pub verdict: Verdict,
}

impl Change {
    /// Compares samples whose values are all above 0; else there are no ratios. Costs the product of their
    /// sizes, at most a million ratios.
    ///
    /// The interval is Hodges and Lehmann's ("Estimates of Location Based on Rank Tests", 1963): from the k-th
    /// lowest to the k-th highest ratio of a pair, by the distribution of Mann and Whitney's U. It supposes
    /// nothing of the noise but that it is that of both. With four values each it excludes 1 if the ranges
    /// have nothing in common, and with more if they have little.
    ///
    /// Improved or regressed: it excludes 1, and the ratio is `threshold` or more away from it. No change: all
    /// of it is within `threshold` of 1.
    pub fn of(baseline: &Sample, candidate: &Sample, better: Better, threshold: f64) -> Option<Self> {
        if baseline.lowest() <= 0.0 || candidate.lowest() <= 0.0 {
            return None;
        }
        let [old, new] = [baseline, candidate].map(thinned);
        let pairs = new.iter().flat_map(|new| old.iter().map(move |old| new / old));
        let ratios = Sample::new(pairs.collect())?;
        let ratio = ratios.median();
        let interval = outside(baseline.count(), candidate.count()).map(|cut| {
            let cut = cut * ratios.count() / (baseline.count() * candidate.count());
            Estimate {
                value: ratio,
                low: ratios.values()[cut],
                high: ratios.values()[ratios.count() - 1 - cut],
            }
        });
        Some(Self { ratio, interval, verdict: verdict(interval, better, threshold) })
    }

    /// Of rounds that each have a value of the baseline and one of the candidate, measured soon after each other: what
    /// slows the machine for minutes slows both, and falls out of their ratio. None if a value is not above 0.
    ///
    /// The interval is that of the ratios' median ([`Median::of_ratio`]); with fewer than six rounds there is none, and
    /// nothing is told.
    pub fn of_rounds(rounds: &[(f64, f64)], better: Better, threshold: f64) -> Option<Self> {
        let Median { median, interval, .. } = Median::of_ratio(rounds)?;
        let sure = matches!(interval.kind, IntervalKind::Confidence { .. });
        let interval = sure.then_some(Estimate { value: median, low: interval.low, high: interval.high });
        Some(Self { ratio: median, interval, verdict: verdict(interval, better, threshold) })
    }
}

/// At most [`MOST`] of the values.
fn thinned(sample: &Sample) -> Vec<f64> {
    let (values, count) = (sample.values(), sample.count().min(MOST));
    (0..count).map(|place| values[(2 * place + 1) * values.len() / (2 * count)]).collect()
}

fn verdict(interval: Option<Estimate>, better: Better, threshold: f64) -> Verdict {
    let Some(Estimate { value, low, high }) = interval else { return Verdict::Inconclusive };
    if low >= 1.0 - threshold && high <= 1.0 + threshold {
        Verdict::NoChange
    } else if (value - 1.0).abs() < threshold || low <= 1.0 && 1.0 <= high {
        Verdict::Inconclusive
    } else if (value < 1.0) == (better == Better::Less) {
        Verdict::Improved
    } else {
        Verdict::Regressed
    }
}

/// How many of all pairs' ratios are outside the interval, on each side; none if even the least and the greatest
/// are not far enough apart.
fn outside(n: usize, m: usize) -> Option<usize> {
    if n.max(m) > EXACT {
        let (n, m) = (n as f64, m as f64);
        let spread = (n * m * (n + m + 1.0) / 12.0).sqrt();
        let cut = (n * m / 2.0 - 1.96 * spread).floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the pairs"
        )]
        return (cut >= 0.0).then_some(cut as usize);
    }
    let orders = orders(n, m);
    let all: f64 = (1..=m).fold(1.0, |all, k| all * (n + k) as f64 / k as f64);
    let mut so_far = 0.0;
    let rare = orders.iter().take_while(|orders| {
        so_far += *orders / all;
        so_far <= FALSE_ALARMS / 2.0
    });
    rare.count().checked_sub(1)
}

/// In how many orders of n and m values U is 0, 1, … up to its middle: the coefficients of
/// (1 - q^(m+1)) … (1 - q^(m+n)) / ((1 - q) … (1 - q^n)).
fn orders(n: usize, m: usize) -> Vec<f64> {
    let mut orders = vec![0.0; n * m / 2 + 1];
    orders[0] = 1.0;
    for k in 1..=n {
        for u in (m + k..orders.len()).rev() {
            orders[u] -= orders[u - m - k];
        }
        for u in k..orders.len() {
            orders[u] += orders[u - k];
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(baseline: &[f64], candidate: &[f64], better: Better) -> Change {
        let sample = |values: &[f64]| Sample::new(values.to_vec()).unwrap();
        Change::of(&sample(baseline), &sample(candidate), better, 0.05).unwrap()
    }

    fn verdict(baseline: &[f64], candidate: &[f64]) -> Verdict {
        change(baseline, candidate, Better::Less).verdict
    }

    #[test]
    fn ranges_that_are_apart_differ() {
        let baseline = [1.0, 1.1, 1.05, 1.02];
        assert_eq!(verdict(&baseline, &[0.8, 0.9, 0.85, 0.95]), Verdict::Improved);
        assert_eq!(verdict(&baseline, &[1.3, 1.2, 1.25, 1.4]), Verdict::Regressed);
        assert_eq!(verdict(&baseline, &[1.08, 1.2, 1.25, 1.4]), Verdict::Inconclusive);
        let more = change(&baseline, &[1.3, 1.2, 1.25, 1.4], Better::More);
        assert_eq!(more.verdict, Verdict::Improved);
        let interval = more.interval.unwrap();
        assert!(
            (interval.low - 1.2 / 1.1).abs() < 1e-12 && (interval.high - 1.4).abs() < 1e-12,
            "{interval:?}"
        );
    }

    #[test]
    fn what_is_within_the_threshold_is_the_same() {
        let baseline = [1.0, 1.01, 1.0, 0.99];
        assert_eq!(verdict(&baseline, &[1.02, 1.03, 1.02, 1.03]), Verdict::NoChange);
        assert_eq!(verdict(&baseline, &[1.02, 1.03, 1.02, 1.06]), Verdict::Inconclusive);
    }

    #[test]
    fn few_values_tell_nothing() {
        assert_eq!(verdict(&[1.0], &[9.0]), Verdict::Inconclusive);
        assert_eq!(change(&[1.0], &[9.0], Better::Less).interval, None);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[9.0, 9.0, 9.0, 9.0]), Verdict::Inconclusive);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[9.0, 9.0, 9.0, 9.0, 9.0]), Verdict::Regressed);
    }

    #[test]
    fn what_slows_both_of_a_round_does_not_hide_a_difference() {
        let slow = [1.0, 7.0, 2.0, 3.0, 1.5, 9.0];
        let rounds = |times: f64| slow.map(|slow| (slow, slow * times));
        let verdict = |rounds: &[(f64, f64)]| {
            let found = Change::of_rounds(rounds, Better::Less, 0.05).unwrap();
            (found.interval.is_some(), found.verdict)
        };
        assert_eq!(verdict(&rounds(0.8)), (true, Verdict::Improved));
        assert_eq!(verdict(&rounds(1.2)), (true, Verdict::Regressed));
        assert_eq!(verdict(&rounds(1.01)), (true, Verdict::NoChange));
        assert_eq!(verdict(&rounds(0.8)[..5]), (false, Verdict::Inconclusive));
        let mut mixed = rounds(0.8);
        mixed[3].1 = 30.0;
        assert_eq!(verdict(&mixed), (true, Verdict::Inconclusive));
        assert_eq!(Change::of_rounds(&[(0.0, 1.0)], Better::Less, 0.05), None);
    }

    #[test]
    fn nothing_is_no_multiple_of_nothing() {
        let sample = |value| Sample::new(vec![value; 4]).unwrap();
        assert_eq!(Change::of(&sample(0.0), &sample(1.0), Better::Less, 0.05), None);
    }

    /// Critical values of U at 0.05, two-sided: Mann and Whitney's tables.
    #[test]
    fn what_is_left_out_is_as_in_tables() {
        for (n, m, critical) in
            [(3, 4, None), (4, 4, Some(0)), (5, 8, Some(6)), (10, 10, Some(23)), (20, 20, Some(127))]
        {
            assert_eq!(outside(n, m), critical, "{n}, {m}");
        }
        // Where counting gives way to the normal distribution, both agree.
        assert_eq!(outside(30, 30).unwrap().abs_diff(317), 0);
        assert!(outside(31, 31).unwrap().abs_diff(341) <= 2, "{:?}", outside(31, 31));
    }

    #[test]
    fn of_many_values_some_stand_for_all() {
        assert_eq!(thinned(&Sample::new(vec![1.0, 2.0, 3.0]).unwrap()), [1.0, 2.0, 3.0]);
        let values: Vec<f64> = (0..20_000).map(|value| 1.0 + f64::from(value) / 20_000.0).collect();
        let doubled: Vec<f64> = values.iter().map(|value| value * 2.0).collect();
        let found = change(&values, &doubled, Better::Less);
        let interval = found.interval.unwrap();
        assert!((found.ratio - 2.0).abs() < 0.001, "{found:?}");
        assert!(interval.low > 1.98 && interval.high < 2.02 && interval.high > 2.001, "{found:?}");
    }

    /// Of samples that do not differ, and of samples that do.
    #[test]
    fn intervals_hold_the_ratio_as_often_as_they_say() {
        for (n, m) in [(4, 5), (8, 8), (40, 20)] {
            let mut random = fastrand::Rng::with_seed(11);
            let mut draw = |count: usize, times: f64| {
                let values = (0..count).map(|_| times * (1.0 - (1.0 - random.f64()).ln()));
                Sample::new(values.collect()).unwrap()
            };
            let held = (0..2000)
                .filter(|_| {
                    let found = Change::of(&draw(n, 1.0), &draw(m, 2.0), Better::Less, 0.05).unwrap();
                    found.interval.is_some_and(|interval| interval.low <= 2.0 && 2.0 <= interval.high)
                })
                .count();
            assert!((1880..1990).contains(&held), "{held} of 2000 with {n} and {m}");
        }
    }
}
