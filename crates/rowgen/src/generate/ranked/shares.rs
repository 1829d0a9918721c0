//! Shares of the rows in pairs of strata.

/// Number of strata into which a normal copula is cut.
pub(super) const STRATA: usize = 64;
/// Rounds in which the shares of pairs of strata are fitted to the shares of the strata.
const ROUNDS: usize = 30;

/// Shares of pairs of strata that add up to the widths of the strata. Pairs without a known share
/// divide the rest.
pub(super) fn fitted(known: &[Vec<Option<f64>>], other: &[u64], own: &[u64]) -> Vec<Vec<f64>> {
    let mut shares: Vec<Vec<f64>> =
        known.iter().map(|row| row.iter().map(|share| share.unwrap_or(0.0)).collect()).collect();
    let all = (other.iter().sum::<u64>()).max(1) as f64;
    let wanted = |widths: &[u64]| -> Vec<f64> { widths.iter().map(|width| *width as f64 / all).collect() };
    let (others, owns) = (wanted(other), wanted(own));
    let column = |shares: &[Vec<f64>], at: usize| shares.iter().map(|row| row[at]).sum::<f64>();
    // A remainder of up to 2 % comes from sampling and rounding, and counts as none.
    let left = |wanted: f64, there: f64| if wanted - there > 0.02 * wanted { wanted - there } else { 0.0 };
    let of_row: Vec<f64> =
        shares.iter().zip(&others).map(|(row, wanted)| left(*wanted, row.iter().sum())).collect();
    let of_column: Vec<f64> = (0..owns.len()).map(|at| left(owns[at], column(&shares, at))).collect();
    let rest: f64 = of_column.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    for ((row, known), of_row) in shares.iter_mut().zip(known).zip(&of_row) {
        for ((share, known), of_column) in row.iter_mut().zip(known).zip(&of_column) {
            *share += if known.is_none() { of_row * of_column / rest } else { 0.0 };
        }
    }
    for _ in 0..ROUNDS {
        for (at, wanted) in owns.iter().enumerate() {
            let there = column(&shares, at);
            if there > 0.0 {
                for row in &mut shares {
                    row[at] *= wanted / there;
                }
            }
        }
        for (row, wanted) in shares.iter_mut().zip(&others) {
            let there: f64 = row.iter().sum();
            if there > 0.0 {
                for share in row {
                    *share *= wanted / there;
                }
            }
        }
    }
    for (row, wanted) in shares.iter_mut().zip(&others) {
        if *wanted > 0.0 && row.iter().sum::<f64>() <= 0.0 {
            for (share, own) in row.iter_mut().zip(&owns) {
                *share = wanted * own;
            }
        }
    }
    shares
}

/// Adds the strata of NULLs to shares of pairs of strata: they are independent.
pub(super) fn beside_nulls(shares: &[Vec<f64>], own: &[u64]) -> Vec<Vec<f64>> {
    let nulls = *own.last().unwrap_or(&0) as f64 / own.iter().sum::<u64>().max(1) as f64;
    let mut all: Vec<Vec<f64>> = shares
        .iter()
        .map(|row| {
            let sum: f64 = row.iter().sum();
            row.iter().map(|share| share / sum * (1.0 - nulls)).chain([nulls]).collect()
        })
        .collect();
    let strata = shares.len() as f64;
    all.push((0..shares.len()).map(|_| (1.0 - nulls) / strata).chain([nulls]).collect());
    all
}

/// Probabilities of pairs of strata in a normal copula.
pub(super) fn normal(correlation: f64) -> Vec<Vec<f64>> {
    const POINTS: usize = 16;
    let correlation = correlation.clamp(-0.999_9, 0.999_9);
    let deviation = (1.0 - correlation * correlation).sqrt();
    let ends: Vec<f64> = (1..STRATA).map(|at| quantile(at as f64 / STRATA as f64)).collect();
    let row = |stratum: usize| {
        let mut row = vec![0.0; STRATA];
        for point in 0..POINTS {
            let at = quantile((stratum as f64 + (point as f64 + 0.5) / POINTS as f64) / STRATA as f64);
            let mut before = 0.0;
            for (share, end) in row.iter_mut().zip(ends.iter().copied().chain([f64::INFINITY])) {
                let until = probability((end - correlation * at) / deviation);
                *share += (until - before) / POINTS as f64;
                before = until;
            }
        }
        row
    };
    (0..STRATA).map(row).collect()
}

/// Distribution function of the standard normal distribution.
fn probability(at: f64) -> f64 {
    0.5 * libm::erfc(-at * std::f64::consts::FRAC_1_SQRT_2)
}

/// The inverse of [`probability`], by bisection.
fn quantile(wanted: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if probability(middle) < wanted { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
