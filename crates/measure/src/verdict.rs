//! Whether a candidate differs from a baseline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sample::Sample;

/// Differences of less than this, as a share of the baseline, do not matter.
const THRESHOLD: f64 = 0.05;
/// How often samples that do not differ may be told as different.
const FALSE_ALARMS: f64 = 0.05;

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate takes less.
    Improved,
    /// The candidate takes more.
    Regressed,
    /// Both are the same but for what does not matter.
    NoChange,
    /// The observations do not tell.
    Inconclusive,
}

impl Verdict {
    /// Compares what costs: seconds, say, where less is better.
    ///
    /// Different are samples whose ranges have nothing in common and whose medians differ by 5 % or more;
    /// the same are those that all lie within 5 % of the baseline's median. Ranges of n and m values that
    /// do not differ are apart by chance in 2 of (n+m)!/(n!m!) cases, so with too few values (fewer than
    /// four each) nothing is told.
    pub fn of(baseline: &Sample, candidate: &Sample) -> Self {
        if !can_tell(baseline.count(), candidate.count()) {
            return Self::Inconclusive;
        }
        let middle = baseline.median();
        let is_near = |value: f64| (value - middle).abs() <= THRESHOLD * middle;
        let ends = [baseline.lowest(), baseline.highest(), candidate.lowest(), candidate.highest()];
        let change = candidate.median() - middle;
        if ends.into_iter().all(is_near) {
            Self::NoChange
        } else if change.abs() < THRESHOLD * middle {
            Self::Inconclusive
        } else if candidate.highest() < baseline.lowest() {
            Self::Improved
        } else if candidate.lowest() > baseline.highest() {
            Self::Regressed
        } else {
            Self::Inconclusive
        }
    }
}

/// Whether so many values may tell a difference at all.
fn can_tell(baseline: usize, candidate: usize) -> bool {
    // (n+m)! / (n! m!), factor by factor.
    let orders = (1..=candidate).fold(1.0, |orders, k| orders * (baseline + k) as f64 / k as f64);
    2.0 / orders <= FALSE_ALARMS
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::NoChange => "no change",
            Self::Inconclusive => "inconclusive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(baseline: &[f64], candidate: &[f64]) -> Verdict {
        let sample = |values: &[f64]| Sample::new(values.to_vec()).unwrap();
        Verdict::of(&sample(baseline), &sample(candidate))
    }

    #[test]
    fn ranges_that_are_apart_differ() {
        let baseline = [1.0, 1.1, 1.05, 1.02];
        assert_eq!(verdict(&baseline, &[0.8, 0.9, 0.85, 0.95]), Verdict::Improved);
        assert_eq!(verdict(&baseline, &[1.3, 1.2, 1.25, 1.4]), Verdict::Regressed);
        assert_eq!(verdict(&baseline, &[1.08, 1.2, 1.25, 1.4]), Verdict::Inconclusive);
    }

    #[test]
    fn what_is_within_the_threshold_is_the_same() {
        let baseline = [1.0, 1.01, 1.0, 0.99];
        assert_eq!(verdict(&baseline, &[1.02, 1.03, 1.02, 1.04]), Verdict::NoChange);
        assert_eq!(verdict(&baseline, &[1.02, 1.03, 1.02, 1.06]), Verdict::Inconclusive);
    }

    #[test]
    fn few_values_tell_nothing() {
        assert_eq!(verdict(&[1.0], &[9.0]), Verdict::Inconclusive);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[9.0, 9.0, 9.0, 9.0]), Verdict::Inconclusive);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[9.0, 9.0, 9.0, 9.0, 9.0]), Verdict::Regressed);
    }
}
