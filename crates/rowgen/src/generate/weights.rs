//! Weights of numbers, so that some come more often than others.

use std::sync::Arc;

use super::shuffle;
use crate::Spread;
use crate::random::Stream;

/// The weights of each bucket's numbers. Buckets have equal shares of the rows, so that dense ones need greater weights. All
/// numbers are ordered by their bucket's density and chance, and get the weights in ascending order: as much chance as lets
/// the means of buckets differ as much as their densities do.
pub(super) fn weights(spread: &Spread, buckets: &[(u64, u64)], count: u64, stream: Stream) -> Vec<Weights> {
    if spread.weights.is_empty() {
        return Vec::new();
    }
    let keys: u64 = buckets.iter().map(|(low, high)| high - low).sum();
    let share = |&(low, high): &(u64, u64)| (high - low) as f64 / keys as f64;
    let all: f64 = spread.weights.iter().map(|(_, fraction)| fraction).sum();
    let mean = spread.weights.iter().map(|(weight, fraction)| weight * fraction / all).sum::<f64>();
    let density = |bucket: &(u64, u64)| mean / buckets.len() as f64 / share(bucket);
    let told: f64 = buckets.iter().map(|bucket| (density(bucket) - mean).powi(2) * share(bucket)).sum();
    let assigned = |chance: f64| Assigned::new(spread, buckets, &share, chance, stream);
    let (mut low, mut high) = (0.0, MOST_CHANCE);
    if buckets.len() < 2 || assigned(high).differ(mean) > told {
        let weights = Weights::new(|at| quantile(&spread.weights, at), count, stream);
        return vec![weights; buckets.len()];
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if assigned(middle).differ(mean) > told { low = middle } else { high = middle }
    }
    let assigned = assigned(high);
    let of_bucket = |(of, (low, high)): (&Vec<f64>, &(u64, u64))| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of points"
        )]
        let point = |at: f64| of[((at * of.len() as f64) as usize).min(of.len() - 1)];
        Weights::new(point, high - low, stream)
    };
    assigned.of_buckets.iter().zip(buckets).map(of_bucket).collect()
}

/// The weight at a place, 0 to 1, in the order of all.
fn quantile(weights: &[(f64, f64)], at: f64) -> f64 {
    let all: f64 = weights.iter().map(|(_, fraction)| fraction).sum();
    let mut sum = 0.0;
    let found = weights.iter().find(|(_, fraction)| {
        sum += fraction / all;
        at < sum
    });
    found.or(weights.last()).map_or(1.0, |(weight, _)| *weight)
}

/// Standard deviation of chance, on the scale of a density's logarithm, beside which densities tell nothing.
const MOST_CHANCE: f64 = 16.0;
const HALVINGS: usize = 16;
/// Weights that are given to buckets, about, and to each one at least.
const POINTS: f64 = 8_192.0;
const POINTS_EACH: u64 = 8;

/// Weights of buckets.
struct Assigned {
    /// In ascending order.
    of_buckets: Vec<Vec<f64>>,
    /// Of each bucket, its share of the numbers.
    shares: Vec<f64>,
}

impl Assigned {
    fn new(
        spread: &Spread,
        buckets: &[(u64, u64)],
        share: &impl Fn(&(u64, u64)) -> f64,
        chance: f64,
        stream: Stream,
    ) -> Self {
        let shares: Vec<f64> = buckets.iter().map(share).collect();
        let mut points: Vec<(f64, usize, f64)> = Vec::new();
        for (at, share) in shares.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of points")]
            let count = ((POINTS * share) as u64).max(POINTS_EACH);
            for _ in 0..count {
                // About normal: twelve even numbers.
                let draws =
                    (0..12).map(|draw| stream.draw(points.len() as u64 * 12 + draw).below(1 << 32) as f64);
                let normal = draws.sum::<f64>() / f64::from(1_u32 << 31) / 2.0 - 6.0;
                points.push((chance.mul_add(normal, -libm::log(*share)), at, share / count as f64));
            }
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut of_buckets = vec![Vec::new(); buckets.len()];
        let mut sum = 0.0;
        for (_, bucket, mass) in points {
            of_buckets[bucket].push(quantile(&spread.weights, sum + mass / 2.0));
            sum += mass;
        }
        Self { of_buckets, shares }
    }

    /// The variance of the buckets' means.
    fn differ(&self, mean: f64) -> f64 {
        let of_bucket = |(weights, share): (&Vec<f64>, &f64)| {
            share * (weights.iter().sum::<f64>() / weights.len() as f64 - mean).powi(2)
        };
        self.of_buckets.iter().zip(&self.shares).map(of_bucket).sum()
    }
}

/// Differences of sums, relative to a weight, that rounding makes.
const SAME: f64 = 1e-6;
/// Most numbers after which the weights repeat.
const CYCLE: u64 = 8_192;

/// Weights of numbers. They repeat after a number of them, so that no table of all is needed.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Sums of the weights before each number, and of all.
    before: Arc<[f64]>,
}

impl Weights {
    /// For so many numbers, in an order that chance decides; `weight` has the weight at a place, 0 to 1, among all.
    fn new(weight: impl Fn(f64) -> f64, count: u64, stream: Stream) -> Self {
        let cycle = count.clamp(1, CYCLE);
        let quantiles: Vec<f64> = (0..cycle).map(|at| weight((at as f64 + 0.5) / cycle as f64)).collect();
        let place = |at| if cycle > 1 { shuffle::place(at, cycle, stream) } else { 0 };
        let shuffled = (0..cycle).map(|at| quantiles[usize::try_from(place(at)).expect("below the cycle")]);
        let mut before = vec![0.0];
        before.extend(shuffled.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }));
        // Where a few numbers are drawn, all may have got weight 0.
        if before.last() == Some(&0.0) {
            before = (0..=cycle).map(|at| at as f64).collect();
        }
        Self { before: before.into() }
    }

    /// The sum of the weights of all numbers below this one.
    fn below(&self, number: u64) -> f64 {
        let cycle = self.before.len() as u64 - 1;
        let rest = usize::try_from(number % cycle).expect("below the cycle");
        (number / cycle) as f64 * self.before[self.before.len() - 1] + self.before[rest]
    }

    /// The weight of a number.
    pub(super) fn of(&self, number: u64) -> f64 {
        let at = usize::try_from(number % (self.before.len() as u64 - 1)).expect("below the cycle");
        self.before[at + 1] - self.before[at]
    }

    /// The weights in ascending order, each with the number of numbers that have it before the weights repeat.
    pub(super) fn levels(&self) -> Vec<(f64, u64)> {
        let mut weights: Vec<f64> = (0..self.before.len() as u64 - 1).map(|number| self.of(number)).collect();
        weights.sort_by(f64::total_cmp);
        let levels = weights.chunk_by(|one, other| other - one <= SAME * other);
        levels.map(|same| (same[same.len() / 2], same.len() as u64)).collect()
    }

    /// The number, of `length` numbers from `first` on, up to which the weights add up to that
    /// share.
    pub(super) fn number(&self, first: u64, length: u64, share: f64) -> u64 {
        let (low, high) = (self.below(first), self.below(first + length));
        if high <= low {
            return first;
        }
        let at = low + (high - low) * share;
        let whole = self.before[self.before.len() - 1];
        let rounds = (at / whole).floor();
        let rest = at - rounds * whole;
        let place = self.before.partition_point(|before| *before <= rest).clamp(1, self.before.len() - 1) - 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rounds")]
        let number = rounds as u64 * (self.before.len() as u64 - 1) + place as u64;
        number.clamp(first, first + length - 1)
    }
}
