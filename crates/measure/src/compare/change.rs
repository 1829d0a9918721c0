//! Ratio of a candidate to the baseline, and its verdict.

use serde::Serialize;

use crate::figure::Better;
use crate::median::{IntervalKind, Median};
use crate::paired::Estimate;
use crate::verdict::Verdict;

/// Ratio of the candidate to the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Estimate of the ratio: above 1 the candidate's value is greater.
    pub ratio: f64,
    /// Contains the true ratio in 95 of 100 cases; none if there are too few values.
    pub interval: Option<Estimate>,
    /// Judgement of the ratio by the interval and the threshold.
    pub verdict: Verdict,
}

impl Change {
    /// The change from rounds, each with a value of the baseline and one of the candidate, measured
    /// shortly after each other: a slowdown of the machine for minutes affects both, and cancels
    /// out of their ratio. None if a value is not above 0.
    ///
    /// The interval is that of the ratios' median ([`Median::of_ratio`]); with fewer than six rounds there is none, and
    /// the verdict is inconclusive.
    pub fn of_rounds(rounds: &[(f64, f64)], better: Better, threshold: f64) -> Option<Self> {
        let Median { median, interval, .. } = Median::of_ratio(rounds)?;
        let sure = matches!(interval.kind, IntervalKind::Confidence { .. });
        let interval = sure.then_some(Estimate { value: median, low: interval.low, high: interval.high });
        let differs = interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0);
        Some(Self { ratio: median, interval, verdict: verdict(differs, median, interval, better, threshold) })
    }
}

/// Improved or regressed: the sides differ by `threshold` or more. No change: the whole interval is
/// within `threshold` of 1.
pub(super) fn verdict(
    differs: bool,
    ratio: f64,
    interval: Option<Estimate>,
    better: Better,
    threshold: f64,
) -> Verdict {
    let is_within = |Estimate { low, high, .. }| low >= 1.0 - threshold && high <= 1.0 + threshold;
    if interval.is_some_and(is_within) {
        Verdict::NoChange
    } else if !differs || (ratio - 1.0).abs() < threshold {
        Verdict::Inconclusive
    } else if (ratio < 1.0) == (better == Better::Less) {
        Verdict::Improved
    } else {
        Verdict::Regressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_difference_has_a_direction_and_a_least_size() {
        let of = |differs, ratio, low, high, better| {
            verdict(differs, ratio, Some(Estimate { value: ratio, low, high }), better, 0.05)
        };
        assert_eq!(of(true, 1.2, 1.1, 1.3, Better::Less), Verdict::Regressed);
        assert_eq!(of(true, 1.2, 1.1, 1.3, Better::More), Verdict::Improved);
        assert_eq!(of(true, 0.8, 0.7, 0.9, Better::Less), Verdict::Improved);
        assert_eq!(of(false, 0.8, 0.7, 0.9, Better::Less), Verdict::Inconclusive);
        assert_eq!(of(true, 1.04, 1.01, 1.07, Better::Less), Verdict::Inconclusive);
        assert_eq!(of(true, 1.02, 1.01, 1.03, Better::Less), Verdict::NoChange);
        assert_eq!(verdict(true, 9.0, None, Better::Less, 0.05), Verdict::Regressed);
    }
}
