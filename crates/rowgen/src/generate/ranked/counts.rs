//! Numbers of rows in pairs of strata: those of each stratum add up to its width.

use std::collections::VecDeque;

/// Numbers of rows in proportion to shares of pairs of strata. They add up to the widths of both columns' strata: exactly, if the shares allow it
/// at least roughly. Pairs without a share get rows only if this column's widths would be missed by more than rounding.
pub(super) fn counts(shares: &[Vec<f64>], other: &[u64], own: &[u64]) -> Vec<Vec<u64>> {
    let mut missing = vec![0.0; own.len()];
    let mut counts: Vec<Vec<u64>> =
        shares.iter().zip(other).map(|(shares, width)| rounded(shares, *width, &mut missing)).collect();
    balance(&mut counts, shares, own);
    counts
}

/// Whole numbers in proportion to shares; they add up to the width. `missing` is the number of rows by which the strata that came before have left each
/// stratum short: the rows that rounding leaves go where most are missing, so that equal rows of shares do not all round alike.
fn rounded(shares: &[f64], width: u64, missing: &mut [f64]) -> Vec<u64> {
    let total: f64 = shares.iter().sum();
    if total <= 0.0 {
        return vec![0; shares.len()];
    }
    let mut left = width;
    let mut counts = Vec::with_capacity(shares.len());
    for (share, missing) in shares.iter().zip(missing.iter_mut()) {
        let wanted = width as f64 * (share / total);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the width")]
        let count = (wanted as u64).min(left);
        left -= count;
        *missing += wanted - count as f64;
        counts.push(count);
    }
    let mut next: Vec<usize> = (0..shares.len()).filter(|at| shares[*at] > 0.0).collect();
    next.sort_by(|one, two| missing[*two].total_cmp(&missing[*one]));
    for at in next {
        if left == 0 {
            break;
        }
        counts[at] += 1;
        missing[at] -= 1.0;
        left -= 1;
    }
    // More are left only of so many rows that a share of them is not exact.
    if let Some(most) = (0..shares.len()).max_by(|one, two| shares[*one].total_cmp(&shares[*two])) {
        counts[most] += left;
    }
    counts
}

/// Moves rows of a stratum of the other column from one stratum of this column to another one.
#[derive(Clone, Copy)]
struct Step {
    other: usize,
    from: usize,
    to: usize,
}

/// Moves rows until the strata of this column have their widths. The strata of the other column keep their sums.
fn balance(counts: &mut [Vec<u64>], shares: &[Vec<f64>], own: &[u64]) {
    let mut given: Vec<u64> = (0..own.len()).map(|at| counts.iter().map(|row| row[at]).sum()).collect();
    // Each time, a stratum gets its width, or a pair loses its last row: with few pairs, that ends soon.
    for _ in 0..4 * (counts.len() + own.len()) {
        let Some(steps) = steps(counts, shares, &given, own) else { return };
        let (Some(last), Some(first)) = (steps.first(), steps.last()) else { return };
        let (from, to) = (first.from, last.to);
        let there = steps.iter().map(|step| counts[step.other][step.from]);
        let moved = there.fold((given[from] - own[from]).min(own[to] - given[to]), u64::min);
        for step in &steps {
            counts[step.other][step.from] -= moved;
            counts[step.other][step.to] += moved;
        }
        given[from] -= moved;
        given[to] += moved;
    }
}

/// The fewest steps, last one first, that lead from a stratum with too many rows to one with too few. None if there are no such strata, or if
/// only rounding leaves them.
fn steps(counts: &[Vec<u64>], shares: &[Vec<f64>], given: &[u64], own: &[u64]) -> Option<Vec<Step>> {
    let full: Vec<usize> = (0..own.len()).filter(|at| given[*at] > own[*at]).collect();
    let mut reached: Vec<Option<Step>> = vec![None; own.len()];
    let mut next: VecDeque<usize> = full.iter().copied().collect();
    while let Some(from) = next.pop_front() {
        for (other, shares) in shares.iter().enumerate().filter(|(other, _)| counts[*other][from] > 0) {
            for to in 0..own.len() {
                if shares[to] <= 0.0 || given[to] > own[to] || reached[to].is_some() {
                    continue;
                }
                reached[to] = Some(Step { other, from, to });
                if given[to] < own[to] {
                    let back = |step: &Step| reached[step.from];
                    return Some(std::iter::successors(reached[to], back).collect());
                }
                next.push_back(to);
            }
        }
    }
    // The shares allow none. Rounding alone leaves a few rows too many: they share ranks, rather than form pairs that never come.
    let rounding = (counts.len() + own.len()) as u64;
    let from = full.into_iter().find(|at| own[*at] == 0 || given[*at] - own[*at] > rounding)?;
    let short = (0..own.len()).filter(|at| given[*at] < own[*at]);
    let to = short.max_by_key(|at| own[*at] - given[*at])?;
    let other = (0..counts.len()).max_by_key(|other| counts[*other][from])?;
    Some(vec![Step { other, from, to }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(counts: &[Vec<u64>]) -> (Vec<u64>, Vec<u64>) {
        let of_own = |at: usize| counts.iter().map(|row| row[at]).sum();
        (counts.iter().map(|row| row.iter().sum()).collect(), (0..counts[0].len()).map(of_own).collect())
    }

    #[test]
    fn strata_of_few_rows_have_their_widths_on_both_sides() {
        // Twenty states with seven rows each, and as many countries: each pair has a third of a row.
        let (other, own) = ([7; 20], [35_u32, 21, 7, 7, 14, 14, 3, 4, 7, 7, 7, 14]);
        let shares = vec![own.map(f64::from).to_vec(); 20];
        let own = own.map(u64::from);
        let counts = counts(&shares, &other, &own);
        assert_eq!(sums(&counts), (other.to_vec(), own.to_vec()));
        for (row, shares) in counts.iter().zip(&shares) {
            let off = row.iter().zip(shares).map(|(count, share)| (*count as f64 - share / 20.0).abs());
            assert!(off.fold(0.0, f64::max) < 2.0, "{row:?}");
        }
    }

    #[test]
    fn pairs_without_a_share_get_no_rows_if_the_widths_allow_it() {
        let shares = [vec![0.5, 0.5, 0.0], vec![0.0, 0.5, 0.5], vec![0.2, 0.0, 0.8]];
        let counts = counts(&shares, &[3, 3, 5], &[2, 3, 6]);
        assert_eq!(sums(&counts), (vec![3, 3, 5], vec![2, 3, 6]));
        assert_eq!((counts[0][2], counts[1][0], counts[2][1]), (0, 0, 0));
    }

    #[test]
    fn rounding_gives_no_rows_to_pairs_without_a_share() {
        let shares = [vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 0.0]];
        assert_eq!(counts(&shares, &[123, 741, 370], &[494, 740]), [[123, 0], [0, 741], [370, 0]]);
    }

    #[test]
    fn widths_count_more_than_shares() {
        // Only pairs without a share lead to the widths.
        let shares = [vec![1.0, 0.0], vec![0.0, 1.0]];
        assert_eq!(counts(&shares, &[50, 50], &[30, 70]), [[30, 20], [0, 50]]);
        assert_eq!(counts(&shares, &[5, 5], &[0, 10]), [[0, 5], [0, 5]]);
        let shares = [vec![0.3, 0.7], vec![0.3, 0.7]];
        let many = counts(&shares, &[1 << 61, 1 << 61], &[1 << 60, 3 << 60]);
        assert_eq!(sums(&many), (vec![1 << 61, 1 << 61], vec![1 << 60, 3 << 60]));
    }
}
