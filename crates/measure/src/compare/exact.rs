//! Exact tests of two sides: paired rounds, or runs that were not measured in turn.
//!
//! Both are rank tests with matching estimates and intervals, so that estimate, interval and test
//! never contradict each other. They assume only that the noise affects both sides in the same way.

use crate::paired::Estimate;
use crate::sample::Sample;

/// Probability that the interval misses the true ratio, and that any of the judged figures has a false verdict.
pub(crate) const FALSE_ALARMS: f64 = 0.05;
/// For more pairs of values, or more values on a side, the statistic is taken to be normally
/// distributed.
const MOST_COUNTED: usize = 60;
/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// Ratio of the candidate to the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The estimate of Hodges and Lehmann ("Estimates of Location Based on Rank Tests", 1963).
    pub ratio: f64,
    /// Contains the true ratio in 95 of 100 cases; none if there are too few values.
    pub interval: Option<Estimate>,
    /// p-value, two-sided: the probability of a difference at least this large between sides that
    /// do not differ.
    pub p: f64,
}

/// The test for rounds, each with a value of the baseline and one of the candidate: Wilcoxon's
/// signed-rank test on the logarithms of their ratios. None without a round, or if a value is not
/// above 0.
pub fn of_rounds(rounds: &[(f64, f64)]) -> Option<Tested> {
    let logarithms: Option<Vec<f64>> = rounds.iter().map(|(one, other)| log_ratio(*one, *other)).collect();
    let logarithms = logarithms?;
    let n = logarithms.len();
    // Walsh's averages: as many are above 0 as the ranks of the differences above 0 add up to.
    let averages = (0..n).flat_map(|one| {
        let logarithms = &logarithms;
        (one..n).map(move |other| f64::midpoint(logarithms[one], logarithms[other]))
    });
    let averages = Sample::new(averages.collect())?;
    let rank_sums = Distribution::of_signed_ranks(n);
    Some(tested(&averages, &rank_sums))
}

/// The test for two sides of runs: Mann and Whitney's. None without a run on each side, or if a
/// value is not above 0.
pub(crate) fn of_sides(baseline: &[f64], candidate: &[f64]) -> Option<Tested> {
    let pairs = candidate.iter().flat_map(|new| baseline.iter().map(move |old| log_ratio(*old, *new)));
    let logarithms: Option<Vec<f64>> = pairs.collect();
    let logarithms = Sample::new(logarithms?)?;
    Some(tested(&logarithms, &Distribution::of_two_sides(baseline.len(), candidate.len())))
}

/// The least two-sided p that so many rounds can reach: 2 / 2ⁿ.
pub(crate) fn least_p_of_rounds(rounds: usize) -> f64 {
    Distribution::of_signed_ranks(rounds).two_sided(0)
}

/// The least two-sided p that so many runs can reach: 2 by the binomial coefficient of n + m and n.
pub(crate) fn least_p_of_sides(baseline: usize, candidate: usize) -> f64 {
    Distribution::of_two_sides(baseline, candidate).two_sided(0)
}

/// Returns for each figure whether it differs. The probability that it reports at least one figure that does not
/// differ is at most `alpha`, for any number of figures: Holm, "A Simple Sequentially Rejective Multiple Test
/// Procedure" (1979).
pub(crate) fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut differs = vec![false; p_values.len()];
    for (place, index) in order.into_iter().enumerate() {
        if p_values[index] > alpha / (p_values.len() - place) as f64 {
            break;
        }
        differs[index] = true;
    }
    differs
}

fn log_ratio(baseline: f64, candidate: f64) -> Option<f64> {
    let ratio = candidate / baseline;
    (baseline > 0.0 && candidate > 0.0 && ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
}

/// The statistic is the number of logarithms above 0. The estimate is their median, and the
/// interval lies between two of them.
fn tested(logarithms: &Sample, distribution: &Distribution) -> Tested {
    let values = logarithms.values();
    let below = values.iter().filter(|value| **value < 0.0).count();
    let above = values.iter().filter(|value| **value > 0.0).count();
    // Ties count as half on either side, rounded to the side of no difference.
    let fewer = below.min(above) + (values.len() - below - above).div_ceil(2);
    let ratio = logarithms.median().exp();
    let interval = distribution.outside().map(|outside| Estimate {
        value: ratio,
        low: values[outside].exp(),
        high: values[values.len() - 1 - outside].exp(),
    });
    Tested { ratio, interval, p: distribution.two_sided(fewer) }
}

/// Distribution of a rank test's statistic if both sides are alike. It is symmetric.
enum Distribution {
    /// The probability of each value from 0 to the middle.
    Counted(Vec<f64>),
    /// A normal distribution, for many values.
    Normal { mean: f64, deviation: f64 },
}

impl Distribution {
    /// Distribution of the sum of the positive ranks of n signed differences.
    fn of_signed_ranks(n: usize) -> Self {
        if n > MOST_COUNTED {
            let n = n as f64;
            let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
            return Self::Normal { mean: n * (n + 1.0) / 4.0, deviation };
        }
        let mut shares = vec![0.0; n * (n + 1) / 2 + 1];
        shares[0] = 1.0;
        for rank in 1..=n {
            for sum in (0..shares.len()).rev() {
                let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
                shares[sum] = f64::midpoint(shares[sum], with);
            }
        }
        Self::Counted(shares)
    }

    /// Distribution of the number of pairs, one value from each side, whose first value is the
    /// greater.
    fn of_two_sides(n: usize, m: usize) -> Self {
        if n.max(m) > MOST_COUNTED {
            let (n, m) = (n as f64, m as f64);
            return Self::Normal { mean: n * m / 2.0, deviation: (n * m * (n + m + 1.0) / 12.0).sqrt() };
        }
        // The largest of i and j values is one of the i, and above all j, or one of the j.
        let mut fewer = vec![vec![1.0]; m + 1];
        for i in 1..=n {
            let mut found: Vec<Vec<f64>> = vec![vec![1.0]];
            for j in 1..=m {
                let [mine, theirs] = [i, j].map(|count| count as f64 / (i + j) as f64);
                let mut shares = vec![0.0; i * j + 1];
                for (u, share) in fewer[j].iter().enumerate() {
                    shares[u + j] += mine * share;
                }
                for (u, share) in found[j - 1].iter().enumerate() {
                    shares[u] += theirs * share;
                }
                found.push(shares);
            }
            fewer = found;
        }
        let shares = fewer.pop().unwrap_or_default();
        Self::Counted(shares)
    }

    /// Probability that the statistic is at least so far from its middle, on either side.
    fn two_sided(&self, fewer: usize) -> f64 {
        let tail = match self {
            Self::Counted(shares) => shares.iter().take(fewer + 1).sum(),
            // Up to half a step further, since it is a whole number.
            Self::Normal { mean, deviation } => {
                libm::erfc((mean - fewer as f64 - 0.5) / deviation / std::f64::consts::SQRT_2) / 2.0
            }
        };
        (2.0_f64 * tail).min(1.0)
    }

    /// Number of logarithms outside the interval on each side; none if there are too few for an
    /// interval.
    fn outside(&self) -> Option<usize> {
        match self {
            Self::Counted(shares) => {
                let mut so_far = 0.0;
                let rare = shares.iter().take_while(|share| {
                    so_far += *share;
                    2.0 * so_far <= FALSE_ALARMS
                });
                rare.count().checked_sub(1)
            }
            Self::Normal { mean, deviation } => {
                let cut = (mean - Z * deviation).floor();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked, and a rank"
                )]
                let cut = (cut >= 0.0).then_some(cut as usize);
                cut
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9 * other.abs().max(1.0)
    }

    /// Critical values of U at 0.05, two-sided: Mann and Whitney's tables; of signed ranks: Wilcoxon's.
    #[test]
    fn intervals_leave_out_as_many_as_tables_say() {
        for (n, m, critical) in [
            (3, 4, None),
            (4, 4, Some(0)),
            (5, 5, Some(2)),
            (5, 8, Some(6)),
            (10, 10, Some(23)),
            (20, 20, Some(127)),
        ] {
            assert_eq!(Distribution::of_two_sides(n, m).outside(), critical, "{n}, {m}");
        }
        for (n, critical) in
            [(5, None), (6, Some(0)), (7, Some(2)), (8, Some(3)), (10, Some(8)), (25, Some(89))]
        {
            assert_eq!(Distribution::of_signed_ranks(n).outside(), critical, "{n}");
        }
    }

    /// Values of scipy.stats 1.17.1: wilcoxon(mode="exact") of the logarithms, mannwhitneyu(method="exact").
    #[test]
    fn p_values_are_those_of_another_program() {
        let rounds: Vec<(f64, f64)> =
            [1.1, 1.2, 0.95, 1.3, 1.4, 1.01, 1.5, 1.25].map(|ratio| (2.0, 2.0 * ratio)).into();
        let found = of_rounds(&rounds).unwrap();
        assert!(near(found.p, 0.023_437_5), "{found:?}");
        let found = of_sides(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.5, 6.0, 7.0, 8.0, 9.0]).unwrap();
        assert!(near(found.p, 8.0 / 252.0), "{found:?}");
    }

    #[test]
    fn least_p_is_that_of_all_on_one_side() {
        assert!(near(least_p_of_rounds(8), 2.0 / 256.0) && near(least_p_of_rounds(1), 1.0));
        assert!(near(least_p_of_sides(5, 5), 2.0 / 252.0) && near(least_p_of_sides(1, 1), 1.0));
        assert!(least_p_of_rounds(MOST_COUNTED + 1) < 1e-9);
    }

    #[test]
    fn counting_and_the_normal_distribution_agree_where_one_gives_way_to_the_other() {
        let [counted, normal] = [MOST_COUNTED, MOST_COUNTED + 1].map(Distribution::of_signed_ranks);
        assert!(matches!(counted, Distribution::Counted(_)) && matches!(normal, Distribution::Normal { .. }));
        // As a share of all averages.
        let share = |found: &Distribution, n: usize| found.outside().unwrap() as f64 / (n * (n + 1)) as f64;
        assert!((share(&counted, MOST_COUNTED) - share(&normal, MOST_COUNTED + 1)).abs() < 0.003);
        let Distribution::Counted(shares) = Distribution::of_two_sides(40, 60) else { panic!("counted") };
        assert!(near(shares.iter().sum(), 1.0) && shares.iter().all(|share| *share >= 0.0));
    }

    #[test]
    fn the_same_value_everywhere_is_no_difference() {
        let found = of_rounds(&[(3.0, 3.0); 8]).unwrap();
        assert!(near(found.ratio, 1.0) && near(found.p, 1.0), "{found:?}");
        let found = of_sides(&[2.0; 5], &[2.0; 5]).unwrap();
        let interval = found.interval.unwrap();
        assert!(near(interval.low, 1.0) && near(interval.high, 1.0) && near(found.p, 1.0), "{found:?}");
    }

    #[test]
    fn values_without_a_ratio_are_not_tested() {
        assert_eq!(of_rounds(&[]), None);
        assert_eq!(of_rounds(&[(0.0, 1.0)]), None);
        assert_eq!(of_sides(&[1.0], &[]), None);
        assert_eq!(of_sides(&[1.0, -1.0], &[1.0]), None);
        assert_eq!(of_sides(&[1e-300], &[1e300]), None);
    }

    #[test]
    fn the_smallest_p_value_must_withstand_all_figures() {
        assert_eq!(holm(&[0.01, 0.04, 0.03], 0.05), [true, false, false]);
        assert_eq!(holm(&[0.01, 0.04, 0.02], 0.05), [true, true, true]);
        assert_eq!(holm(&[0.03, 0.04], 0.05), [false, false]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
    }

    /// With skewed noise that strikes both sides of a round, and with a true ratio of 1 or 2.
    #[test]
    fn intervals_and_p_values_err_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(16);
        let mut noise = move || 1.0 - (1.0 - random.f64()).ln();
        for n in [6, 8, 10] {
            for times in [1.0, 2.0] {
                let (mut held, mut alarms) = (0, 0);
                for _ in 0..2000 {
                    let rounds: Vec<(f64, f64)> = (0..n)
                        .map(|_| {
                            let slow = noise();
                            (slow * noise(), times * slow * noise())
                        })
                        .collect();
                    let (old, new): (Vec<f64>, Vec<f64>) = (0..n).map(|_| (noise(), times * noise())).unzip();
                    for found in [of_rounds(&rounds).unwrap(), of_sides(&old, &new).unwrap()] {
                        let interval = found.interval.unwrap();
                        held += u32::from(interval.low <= times && times <= interval.high);
                        alarms += u32::from(found.p <= FALSE_ALARMS);
                    }
                }
                // Of 4000, with four standard errors.
                assert!(held >= 3745, "{held} with {n} rounds");
                assert!(times > 1.0 || alarms <= 255, "{alarms} with {n} rounds");
            }
        }
    }
}
