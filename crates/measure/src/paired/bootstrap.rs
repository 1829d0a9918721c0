//! Trimmed means of some numbers, and their uncertainty by resampling.

use fastrand::Rng;

use super::estimate::{Estimate, REACH_95};

/// Share of the values that is cut off at each end.
const TRIM: f64 = 0.2;
/// Number of resamples: with so many, the 2.5 % quantile varies by a thirtieth of the interval.
const RESAMPLES: usize = 2000;

/// The mean of at least one number without the lowest and the highest fifth.
pub fn trimmed_mean(values: &[f64]) -> f64 {
    Column::new(values).location()
}

/// Values of one quantity, one for each round, prepared for resampling.
pub(super) struct Column {
    sorted: Vec<f64>,
    /// Index of each round's value in `sorted`.
    ranks: Vec<usize>,
}

impl Column {
    /// At least one number, in the order of rounds.
    pub(super) fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
        let mut ranks = vec![0; values.len()];
        for (rank, round) in order.iter().enumerate() {
            ranks[*round] = rank;
        }
        Self { sorted: order.iter().map(|round| values[*round]).collect(), ranks }
    }

    /// The trimmed mean.
    pub(super) fn location(&self) -> f64 {
        self.location_of(&vec![1; self.sorted.len()])
    }

    /// The trimmed mean if each number, in ascending order, occurred so many times; the counts add
    /// up to the number of rounds.
    fn location_of(&self, counts: &[u32]) -> f64 {
        let cut = trimmed(self.sorted.len());
        let (first, end) = (cut, self.sorted.len() - cut);
        let (mut place, mut sum) = (0, 0.0);
        for (value, count) in self.sorted.iter().zip(counts) {
            let next = place + *count as usize;
            let within = next.min(end).saturating_sub(place.max(first));
            sum += within as f64 * value;
            place = next;
        }
        sum / (end - first) as f64
    }

    /// Each round's place among all, in ascending order.
    pub(super) fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Spearman's correlation of each round with the next one: about 0 if rounds are independent.
    pub(super) fn autocorrelation(&self) -> f64 {
        let middle = (self.ranks.len() as f64 - 1.0) / 2.0;
        let off = |rank: &usize| *rank as f64 - middle;
        let all: f64 = self.ranks.iter().map(|rank| off(rank).powi(2)).sum();
        let neighbours: f64 = self.ranks.windows(2).map(|pair| off(&pair[0]) * off(&pair[1])).sum();
        if all > 0.0 { neighbours / all } else { 0.0 }
    }

    /// Whether the autocorrelation is greater than that of independent rounds in 95 of 100 cases.
    pub(super) fn is_autocorrelated(&self) -> bool {
        self.autocorrelation() > 1.645 / (self.ranks.len() as f64).sqrt()
    }

    /// Number of consecutive rounds that are drawn together, so that resamples are as correlated as
    /// the rounds: 1 if rounds are independent. Carlstein's rule ("The use of subseries values for
    /// estimating the variance of a general statistic from a stationary sequence", 1986). It is
    /// applied even if the correlation is not significant: a correlation that few rounds do not
    /// show would make their intervals too narrow.
    pub(super) fn block(&self) -> usize {
        let rounds = self.ranks.len() as f64;
        let found = self.autocorrelation();
        // Of few rounds it comes out too small (Kendall, "Note on bias in the estimation of
        // autocorrelation", 1954).
        let correlation = (found + (1.0 + 3.0 * found) / rounds).min(0.99);
        if correlation < 0.5 / rounds.sqrt() {
            return 1;
        }
        let spread = 2.0 * correlation / (1.0 - correlation * correlation);
        let length = (spread.powf(2.0 / 3.0) * rounds.cbrt()).ceil().min((rounds / 4.0).floor());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to the rounds")]
        let length = length.max(1.0) as usize;
        length
    }
}

/// Number of values to cut off at each end.
fn trimmed(count: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fifth of a count")]
    let cut = (count as f64 * TRIM).floor() as usize;
    cut
}

/// Trimmed means of some columns in resamples of their rounds; each resample draws the same rounds
/// for all columns. The cost is proportional to [`RESAMPLES`] times columns times rounds.
pub(super) fn resample<const N: usize>(columns: [&Column; N], block: usize, seed: u64) -> Vec<[f64; N]> {
    let rounds = columns[0].ranks.len();
    let mut random = Rng::with_seed(seed);
    let mut counts: [Vec<u32>; N] = std::array::from_fn(|_| vec![0; rounds]);
    (0..RESAMPLES)
        .map(|_| {
            for counts in &mut counts {
                counts.fill(0);
            }
            let mut drawn = 0;
            while drawn < rounds {
                let first = random.usize(0..rounds);
                for round in first..first + block.min(rounds - drawn) {
                    // The first round follows the last.
                    let round = if round < rounds { round } else { round - rounds };
                    for (column, counts) in columns.iter().zip(&mut counts) {
                        counts[column.ranks[round]] += 1;
                    }
                }
                drawn += block;
            }
            std::array::from_fn(|number| columns[number].location_of(&counts[number]))
        })
        .collect()
}

/// The 95 % interval around `value`, from its resampled values. `rounds` is the number of rounds,
/// `block` the number drawn together.
///
/// The interval of percentiles is widened: a resample varies less than the rounds by the factor
/// √((n-1)/n), and with few rounds the scatter itself is uncertain, which Student's t accounts for
/// (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).
pub(super) fn interval(value: f64, resampled: &mut [f64], rounds: usize, block: usize) -> Estimate {
    resampled.sort_by(f64::total_cmp);
    let tail = resampled.len() / 40;
    let (low, high) = (resampled[tail], resampled[resampled.len() - 1 - tail]);
    let kept = (rounds / block) as f64;
    let stretch = (kept / (kept - 1.0)).sqrt() * student(kept - 1.0) / REACH_95;
    Estimate {
        value,
        low: value - (value - low).max(0.0) * stretch,
        high: value + (high - value).max(0.0) * stretch,
    }
}

/// The 97.5 % quantile of Student's t with so many degrees of freedom, from 2 on within 0.1
/// (Abramowitz and Stegun, 26.7.5).
fn student(freedom: f64) -> f64 {
    let z = REACH_95;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}
