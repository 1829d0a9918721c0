//! The median of few trials, and its interval.

use serde::Serialize;

use crate::sample::Sample;

/// Least probability that an interval holds the true median.
const CONFIDENCE: f64 = 0.95;

/// A median, with an interval for the true one: `interval.low ≤ median ≤ interval.high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// Median of the observations.
    pub median: f64,
    /// Interval around it.
    pub interval: Interval,
    /// Number of observations.
    pub trials: usize,
}

/// An interval between two of the observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower bound, in the observations' unit.
    pub low: f64,
    /// Upper bound, in the observations' unit.
    pub high: f64,
    /// Confidence interval or range.
    pub kind: IntervalKind,
}

/// The meaning of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum IntervalKind {
    /// It contains the true median with at least this probability (0.95 or more), whatever the
    /// distribution of the trials.
    Confidence {
        /// The probability, 0.95 to 1.
        level: f64,
    },
    /// It reaches from the least to the greatest observation, because fewer than six observations
    /// allow no confidence interval.
    Range,
}

impl Median {
    /// The median of independent trials of the same thing, with its interval.
    ///
    /// A trial is as likely below the true median as above it. So the median lies between the k-th
    /// lowest and the k-th highest of n trials, unless fewer than k trials are on one side. The
    /// probability of that is the one of fewer than k heads, or tails, in n throws of a coin; so
    /// the interval has the confidence 1 - 2 P(B(n, ½) < k) (Conover, Practical Nonparametric
    /// Statistics, "confidence interval for a quantile"). The narrowest interval with at least 95 %
    /// is used.
    pub fn of(sample: &Sample) -> Self {
        let values = sample.values();
        let interval = narrowest(values.len()).map_or(
            Interval { low: sample.lowest(), high: sample.highest(), kind: IntervalKind::Range },
            |(outside, level)| Interval {
                low: values[outside],
                high: values[values.len() - 1 - outside],
                kind: IntervalKind::Confidence { level },
            },
        );
        Self { median: sample.median(), interval, trials: values.len() }
    }

    /// The ratio of the second value of each pair to the first: its median, with its interval.
    ///
    /// A pair is a round: both values were measured shortly after each other, so that a slowdown of
    /// the machine for minutes affects both and cancels out. None without a pair, or if a value is
    /// not above 0.
    pub fn of_ratio(pairs: &[(f64, f64)]) -> Option<Self> {
        let sound = pairs.iter().all(|&(one, other)| one > 0.0 && other > 0.0);
        let ratios = Sample::new(pairs.iter().map(|(one, other)| other / one).collect())?;
        sound.then(|| Self::of(&ratios))
    }
}

/// How many of n observations to leave out on each side, and the probability that the rest encloses
/// the median.
fn narrowest(n: usize) -> Option<(usize, f64)> {
    // That a coin thrown n times shows heads never, once, twice, …: as logarithms, as 2^-n is soon too small.
    let mut heads = -(n as f64) * std::f64::consts::LN_2;
    let mut fewer = 0.0;
    let levels = (0..n / 2).map(|outside| {
        fewer += heads.exp();
        heads += ((n - outside) as f64 / (outside + 1) as f64).ln();
        (outside, 1.0 - 2.0 * fewer)
    });
    levels.take_while(|(_, level)| *level >= CONFIDENCE).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(values: impl IntoIterator<Item = i32>) -> Median {
        Median::of(&Sample::new(values.into_iter().map(f64::from).collect()).unwrap())
    }

    #[test]
    fn enough_trials_have_an_interval() {
        // Levels as in tables of the sign test.
        for (n, low, high, expected) in
            [(6, 1.0, 6.0, 0.9688), (8, 1.0, 8.0, 0.9922), (9, 2.0, 8.0, 0.9609), (10, 2.0, 9.0, 0.9785)]
        {
            let found = estimate((1..=n).rev());
            let IntervalKind::Confidence { level } = found.interval.kind else { panic!("{found:?}") };
            assert!((level - expected).abs() < 1e-4, "{level}");
            let ends = [found.interval.low - low, found.interval.high - high];
            assert!(ends.iter().all(|difference| difference.abs() < 1e-12), "{found:?}");
            assert!((found.median - f64::from(n + 1) / 2.0).abs() < 1e-12);
        }
        let many = estimate(1..=5000).interval;
        let IntervalKind::Confidence { level } = many.kind else { panic!("{many:?}") };
        assert!((CONFIDENCE..0.96).contains(&level), "{level}");
        assert!(2425.0 < many.low && many.high < 2576.0, "{many:?}");
    }

    #[test]
    fn few_trials_have_a_range() {
        for n in 1..6 {
            let range = Interval { low: 1.0, high: f64::from(n), kind: IntervalKind::Range };
            assert_eq!(estimate(1..=n).interval, range);
        }
    }

    /// With whatever distribution: this one is skewed, and its median is known.
    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(6);
        let median = -0.5f64.ln();
        for n in [6, 7, 9, 10, 20] {
            let mut held = 0;
            let mut level_told = 0.0;
            for _ in 0..4000 {
                let values = (0..n).map(|_| -(1.0 - random.f64()).ln()).collect();
                let Interval { low, high, kind } = Median::of(&Sample::new(values).unwrap()).interval;
                let IntervalKind::Confidence { level } = kind else { panic!("{n} trials are enough") };
                held += u32::from((low..=high).contains(&median));
                level_told = level;
            }
            let share = f64::from(held) / 4000.0;
            // Four standard errors.
            assert!((share - level_told).abs() < 0.014, "{n}: {share}, told {level_told}");
        }
    }

    #[test]
    fn what_slows_both_of_a_round_falls_out() {
        let rounds: Vec<(f64, f64)> =
            [1.0, 7.0, 2.0, 3.0, 1.5, 9.0].iter().map(|slow| (100.0 / slow, 250.0 / slow)).collect();
        let ratio = Median::of_ratio(&rounds).unwrap();
        let near = |value: f64| (value - 2.5).abs() < 1e-9;
        assert!(near(ratio.median) && near(ratio.interval.low) && near(ratio.interval.high));
        assert_eq!(ratio.trials, 6);
        assert_eq!(Median::of_ratio(&[]), None);
        assert_eq!(Median::of_ratio(&[(1.0, 2.0), (0.0, 1.0)]), None);
        assert_eq!(Median::of_ratio(&[(1.0, -2.0)]), None);
    }
}
