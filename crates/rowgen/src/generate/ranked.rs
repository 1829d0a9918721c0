//! Computes the rank of a row in the order of a column's values by way of other columns.

use super::order::Order;
use super::shuffle;
use crate::random::Stream;
use crate::ranking::{Joint, Line, Link, Ranking};

/// Number of strata into which a normal copula is cut.
const STRATA: usize = 64;
/// Rounds in which the shares of pairs of strata are fitted to the shares of the strata.
const ROUNDS: usize = 30;
/// Rows among which NULLs are spread evenly.
const BLOCK: u64 = 1_024;

/// A [`Ranking`] for a number of rows. The last ranks are those of NULLs.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    order: Order,
    nulls: Spaced,
    links: Vec<Mapping>,
}

impl Ranked {
    /// The ranking of so many rows; `u64::MAX` if their number is not known.
    pub(super) fn new(ranking: &Ranking, seed: u64, table: &str, rows: u64) -> Self {
        let stream = |name: &str| Stream::new(seed, &[table, name]);
        let order = Order::new(stream(&ranking.first), rows, ranking.correlation, &[]);
        let count = order.count();
        let nulls = Spaced::new(stream(&ranking.first).further(), count, ranking.nulls);
        let links = ranking.links.iter().map(|link| Mapping::new(link, stream(&link.name), count));
        Self { order, nulls, links: links.collect() }
    }

    /// Number of ranks that are not NULL in a column with this fraction of NULLs.
    pub(super) fn not_null(&self, nulls: f64) -> u64 {
        part(self.order.count(), 1.0 - nulls)
    }

    /// The rank of a row.
    #[inline]
    pub(super) fn rank(&self, row: u64) -> u64 {
        let first = self.nulls.place(self.order.rank(row));
        self.links.iter().fold(first, |rank, link| link.rank(rank))
    }
}

/// Puts the ranks of NULLs after the others: a wanted number of NULLs, spread evenly over the rows.
#[derive(Clone, Copy, Debug)]
struct Spaced {
    stream: Stream,
    count: u64,
    not_null: u64,
    block: u64,
}

impl Spaced {
    fn new(stream: Stream, count: u64, nulls: f64) -> Self {
        Self { stream, count, not_null: part(count, 1.0 - nulls), block: (count / 256).clamp(1, BLOCK) }
    }

    fn place(self, rank: u64) -> u64 {
        if self.not_null == self.count {
            return rank;
        }
        let first = rank - rank % self.block;
        let length = self.block.min(self.count - first);
        let before = scaled(first, self.not_null, self.count);
        let there = scaled(first + length, self.not_null, self.count) - before;
        let place = if length > 1 { shuffle::place(rank - first, length, self.stream) } else { 0 };
        if place < there { before + place } else { self.not_null + (first - before) + (place - there) }
    }
}

/// Maps ranks of one column to ranks of another one, each to a different one, as nearly as the
/// strata of both columns allow.
#[derive(Clone, Debug)]
struct Mapping {
    stream: Stream,
    /// First ranks of the other column's strata, and the number of ranks.
    other: Vec<u64>,
    /// First ranks of this column's strata, and the number of ranks.
    own: Vec<u64>,
    /// Rows that lie in each stratum of this column.
    rows: Vec<u64>,
    /// Pairs of strata, those of each stratum of the other column one after another.
    cells: Vec<Cell>,
    /// The first cell of each stratum of the other column, and the number of all.
    first: Vec<usize>,
    /// The width of the windows within which ranks are shuffled; none if they are shuffled within
    /// strata.
    window: Option<u64>,
}

/// Rows in a stratum of the other column, and in one of this column.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Place after its last row within the other column's stratum.
    until: u64,
    own: usize,
    /// Place of its first row within this column's stratum.
    place: u64,
    rows: u64,
}

impl Mapping {
    fn new(link: &Link, stream: Stream, count: u64) -> Self {
        let (other, own, shares, window) = match &link.joint {
            Joint::Cells(cells) => {
                let (other, own) = (firsts(&link.other, count), firsts(&link.own, count));
                let mut shares = vec![vec![None; own.len() - 1]; other.len() - 1];
                for &(one, two, share) in cells {
                    *shares[usize::from(one)][usize::from(two)].get_or_insert(0.0) += share;
                }
                let shares = fitted(&shares, &widths(&other), &widths(&own));
                (other, own, shares, None)
            }
            Joint::Normal { correlation } => {
                let (other, own) = (even(&link.other, STRATA, count), even(&link.own, STRATA, count));
                let shares = beside_nulls(&normal(*correlation), &widths(&own));
                (other, own, shares, None)
            }
            Joint::Stretches { count: stretches, window, share } => {
                let stretches = usize::from(*stretches);
                let (other, own) = (even(&link.other, stretches, count), even(&link.own, stretches, count));
                let each = (1.0 - share) / stretches as f64;
                let mut shares = vec![vec![each; stretches]; stretches];
                for (at, row) in shares.iter_mut().enumerate() {
                    let to = match stretches {
                        1 => 0,
                        _ => shuffle::place(at as u64, stretches as u64, stream.further()),
                    };
                    row[usize::try_from(to).unwrap_or(0)] += share;
                }
                let shares = beside_nulls(&shares, &widths(&own));
                (other, own, shares, Some(part(count, *window)))
            }
        };
        Self::of(stream, other, own, &shares, window)
    }

    fn of(stream: Stream, other: Vec<u64>, own: Vec<u64>, shares: &[Vec<f64>], window: Option<u64>) -> Self {
        let mut rows = vec![0; own.len() - 1];
        let (mut cells, mut first) = (Vec::new(), vec![0]);
        for (shares, width) in shares.iter().zip(widths(&other)) {
            let total: f64 = shares.iter().sum();
            let (mut sum, mut until) = (0.0, 0);
            for (at, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                sum += share;
                let end = part(width, sum / total).max(until);
                if end > until {
                    cells.push(Cell { until: end, own: at, place: rows[at], rows: end - until });
                    rows[at] += end - until;
                    until = end;
                }
            }
            first.push(cells.len());
        }
        Self { stream, other, own, rows, cells, first, window }
    }

    fn rank(&self, rank: u64) -> u64 {
        let stratum = self.other.partition_point(|first| *first <= rank).clamp(1, self.other.len() - 1) - 1;
        let cells = &self.cells[self.first[stratum]..self.first[stratum + 1]];
        let Some(last) = cells.last() else { return rank };
        let mut place = rank - self.other[stratum];
        if cells.len() > 1 && self.window.is_none() {
            place = shuffle::place(place.min(last.until - 1), last.until, self.stream);
        }
        let cell = cells[cells.partition_point(|cell| cell.until <= place).min(cells.len() - 1)];
        let within = place.saturating_sub(cell.until - cell.rows).min(cell.rows - 1);
        let rows = self.rows[cell.own];
        let place = cell.place + within;
        let place = match self.window {
            None => shuffle::place(place, rows, self.stream),
            Some(window) if window > 1 => {
                let start = place - place % window;
                start + shuffle::place(place - start, window.min(rows - start), self.stream)
            }
            Some(_) => place,
        };
        let (start, end) = (self.own[cell.own], self.own[cell.own + 1]);
        start + scaled(place, end - start, rows)
    }
}

/// First ranks of a line's strata, and the number of ranks.
fn firsts(line: &Line, count: u64) -> Vec<u64> {
    let not_null = part(count, 1.0 - line.nulls);
    let cuts = line.cuts.iter().map(|cut| part(not_null, *cut));
    [0].into_iter().chain(cuts).chain([not_null, count]).collect()
}

/// First ranks of strata of equal width, and the number of ranks.
fn even(line: &Line, strata: usize, count: u64) -> Vec<u64> {
    let cuts = (1..strata).map(|at| at as f64 / strata as f64).collect();
    firsts(&Line { nulls: line.nulls, cuts }, count)
}

fn widths(firsts: &[u64]) -> Vec<u64> {
    firsts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Shares of pairs of strata that add up to the widths of the strata. Pairs without a known share
/// divide the rest.
fn fitted(known: &[Vec<Option<f64>>], other: &[u64], own: &[u64]) -> Vec<Vec<f64>> {
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
fn beside_nulls(shares: &[Vec<f64>], own: &[u64]) -> Vec<Vec<f64>> {
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
fn normal(correlation: f64) -> Vec<Vec<f64>> {
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

/// A share of a number, rounded.
fn part(count: u64, share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the count")]
    let part = (count as f64 * share).round() as u64;
    part.min(count)
}

/// `number × to / of`.
fn scaled(number: u64, to: u64, of: u64) -> u64 {
    if to == of {
        return number;
    }
    u64::try_from(u128::from(number) * u128::from(to) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 20_000;

    fn line(nulls: f64, cuts: &[f64]) -> Line {
        Line { nulls, cuts: cuts.to_vec() }
    }

    fn ranking(correlation: f64, nulls: f64, links: Vec<Link>) -> Ranked {
        let ranking = Ranking { first: "a".to_owned(), correlation, nulls, links };
        assert_eq!(ranking.problem(), None);
        Ranked::new(&ranking, 7, "t", ROWS)
    }

    /// Ranks of the first column and of the last one.
    fn ranks(links: Vec<Link>, nulls: f64) -> Vec<(u64, u64)> {
        let (first, last) = (ranking(0.2, nulls, Vec::new()), ranking(0.2, nulls, links));
        (0..ROWS).map(|row| (first.rank(row), last.rank(row))).collect()
    }

    fn are_all(ranks: impl Iterator<Item = u64>) -> bool {
        let mut ranks: Vec<u64> = ranks.collect();
        ranks.sort_unstable();
        ranks.into_iter().eq(0..ROWS)
    }

    fn link(name: &str, joint: Joint, other: Line, own: Line) -> Link {
        Link { name: name.to_owned(), joint, other, own }
    }

    #[test]
    fn each_rank_comes_once_with_nulls_last() {
        let plain = || line(0.0, &[]);
        for joint in [
            Joint::Normal { correlation: 0.7 },
            Joint::Stretches { count: 16, window: 0.001, share: 1.0 },
            Joint::Cells(vec![(0, 0, 0.9)]),
        ] {
            let made = ranks(vec![link("b", joint.clone(), plain(), plain())], 0.0);
            // Rounding numbers of rows in strata lets a few ranks come twice.
            let ranks: std::collections::BTreeSet<u64> = made.iter().map(|(_, rank)| *rank).collect();
            assert!(ranks.len() as u64 > ROWS - ROWS / 100, "{joint:?}: {}", ranks.len());
        }
        let first = ranking(1.0, 0.3, Vec::new());
        assert!(are_all((0..ROWS).map(|row| first.rank(row))));
        let nulls = |rows: std::ops::Range<u64>| rows.filter(|row| first.rank(*row) >= 14_000).count();
        assert!((2_900..3_100).contains(&nulls(0..10_000)), "{}", nulls(0..10_000));
    }

    #[test]
    fn pairs_of_strata_have_their_shares_and_others_none() {
        // Two cities of the first country, one of the second, and no country without a city.
        let (country, city) = (line(0.1, &[0.6]), line(0.1, &[0.2, 0.6]));
        let cells = vec![(0, 0, 0.18), (0, 1, 0.36), (1, 2, 0.36), (2, 3, 0.1)];
        let made = ranks(vec![link("city", Joint::Cells(cells), country, city)], 0.1);
        let count = |country: std::ops::Range<u64>, city: std::ops::Range<u64>| {
            made.iter().filter(|(one, other)| country.contains(one) && city.contains(other)).count()
        };
        assert_eq!(count(0..10_800, 0..3_600), 3_600);
        assert_eq!(count(0..10_800, 3_600..10_800), 7_200);
        assert_eq!(count(10_800..18_000, 10_800..18_000), 7_200);
        assert_eq!(count(18_000..ROWS, 18_000..ROWS), 2_000);
    }

    #[test]
    fn what_cells_do_not_say_is_independent() {
        let half = || line(0.0, &[0.5]);
        let made = ranks(vec![link("b", Joint::Cells(Vec::new()), half(), half())], 0.0);
        let both = made.iter().filter(|(one, other)| *one < 10_000 && *other < 10_000).count();
        assert!((4_990..5_010).contains(&both), "{both}");
    }

    #[test]
    fn a_normal_copula_has_its_rank_correlation() {
        for wanted in [-0.9_f64, 0.3, 0.8] {
            let made = ranks(
                vec![link("b", Joint::Normal { correlation: wanted }, line(0.0, &[]), line(0.0, &[]))],
                0.0,
            );
            let (n, mean) = (ROWS as f64, (ROWS - 1) as f64 / 2.0);
            let together: f64 =
                made.iter().map(|(one, other)| (*one as f64 - mean) * (*other as f64 - mean)).sum();
            let spearman = together * 12.0 / (n * (n * n - 1.0));
            // Of the normal distribution: Pearson, "Mathematical contributions to the theory of evolution", 1907.
            let expected = 6.0 / std::f64::consts::PI * (wanted / 2.0).asin();
            assert!((spearman - expected).abs() < 0.02, "{wanted}: {spearman} {expected}");
        }
    }

    #[test]
    fn stretches_keep_groups_together() {
        let joint = Joint::Stretches { count: 20, window: 0.0, share: 1.0 };
        let made = ranks(vec![link("b", joint, line(0.0, &[]), line(0.0, &[]))], 0.0);
        let pairs: std::collections::BTreeSet<(u64, u64)> =
            made.iter().map(|(one, other)| (one / 20, other / 200)).collect();
        // A thousand groups of the first column, each within one of the hundred groups of the other one.
        assert_eq!(pairs.len(), 1_000);
        assert!(made.iter().any(|(one, other)| one != other));
    }
}
