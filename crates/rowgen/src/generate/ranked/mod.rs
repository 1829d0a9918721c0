//! Computes the rank of a row in the order of a column's values by way of other columns.

mod arranged;
mod counts;
mod mapping;
mod shares;

use std::sync::Arc;

use self::arranged::{Stratum, arranged};
use self::mapping::Mapping;
use super::order::{Order, READ_WHOLE};
use super::shuffle;
use crate::random::Stream;
use crate::ranking::{Correlated, Ranking};

/// Rows among which NULLs are spread evenly.
const BLOCK: u64 = 1_024;

/// A [`Ranking`] for a number of rows. The last ranks are those of NULLs.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    count: u64,
    ranks: Ranks,
}

#[derive(Clone, Debug)]
enum Ranks {
    Computed {
        first: First,
        links: Vec<Mapping>,
    },
    /// Those of each row: of few rows.
    Listed(Arc<[u64]>),
}

impl Ranked {
    /// The ranking of so many rows; `u64::MAX` if their number is not known.
    pub(super) fn new(ranking: &Ranking, seed: u64, table: &str, rows: u64) -> Self {
        let stream = |name: &str| Stream::new(seed, &[table, name]);
        let has_correlations =
            !ranking.levels.is_empty() || ranking.links.iter().any(|link| link.correlated.is_some());
        if has_correlations && (1..=READ_WHOLE).contains(&rows) {
            return Self { count: rows, ranks: Ranks::Listed(listed(ranking, rows, stream).into()) };
        }
        let first = First::new(ranking, stream(&ranking.first), rows);
        let count = first.order.count();
        let links = ranking.links.iter().map(|link| Mapping::new(link, stream(&link.name), count)).collect();
        Self { count, ranks: Ranks::Computed { first, links } }
    }

    /// Number of ranks that are not NULL in a column with this fraction of NULLs.
    pub(super) fn not_null(&self, nulls: f64) -> u64 {
        part(self.count, 1.0 - nulls)
    }

    /// The rank of a row.
    #[inline]
    pub(super) fn rank(&self, row: u64) -> u64 {
        match &self.ranks {
            Ranks::Computed { first, links } => {
                links.iter().fold(first.rank(row), |rank, link| link.rank(rank))
            }
            Ranks::Listed(ranks) => ranks[usize::try_from(row % self.count).unwrap_or_default()],
        }
    }
}

/// The rank of each of few rows. Each column on the way to the last one has its correlation with the order of the rows.
fn listed(ranking: &Ranking, rows: u64, stream: impl Fn(&str) -> Stream) -> Vec<u64> {
    let first = stream(&ranking.first);
    let mut ranks = if ranking.levels.is_empty() {
        let first = First::new(ranking, first, rows);
        (0..rows).map(|row| first.rank(row)).collect()
    } else {
        let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let not_null = part(rows, 1.0 - ranking.nulls);
        let all = Stratum {
            rows: (0..count(rows)).collect(),
            cells: vec![(0, count(not_null)), (1, count(rows - not_null))],
        };
        let wanted = Correlated { correlation: ranking.correlation, levels: ranking.levels.clone() };
        arranged(&[all], &[0, not_null, rows], &wanted, first)
    };
    for link in &ranking.links {
        let mapping = Mapping::new(link, stream(&link.name), rows);
        let arranged = link.correlated.as_ref().and_then(|wanted| mapping.arranged(&ranks, wanted));
        ranks = arranged.unwrap_or_else(|| ranks.iter().map(|rank| mapping.rank(*rank)).collect());
    }
    ranks
}

/// Ranks of the column at the beginning.
#[derive(Clone, Debug)]
struct First {
    order: Order,
    nulls: Spaced,
}

impl First {
    fn new(ranking: &Ranking, stream: Stream, rows: u64) -> Self {
        let order = Order::new(stream, rows, ranking.correlation, &ranking.levels);
        Self { order, nulls: Spaced::new(stream.further(), order.count(), ranking.nulls) }
    }

    fn rank(&self, row: u64) -> u64 {
        self.nulls.place(self.order.rank(row))
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
    use crate::levels::Level;
    use crate::ranking::{Joint, Line, Link};

    const ROWS: u64 = 20_000;

    fn line(nulls: f64, cuts: &[f64]) -> Line {
        Line { nulls, cuts: cuts.to_vec() }
    }

    fn ranking(correlation: f64, nulls: f64, links: Vec<Link>) -> Ranked {
        let ranking = Ranking { first: "a".to_owned(), correlation, levels: Vec::new(), nulls, links };
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
        Link { name: name.to_owned(), joint, other, own, correlated: None }
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
            assert!(are_all(made.into_iter().map(|(_, rank)| rank)), "{joint:?}");
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

    /// Orders in the second of three states have a time, the others have none. With 1,234 rows, rounding makes 741 orders in this state and 740 times.
    #[test]
    fn rounding_makes_no_pairs_that_never_come() {
        const FEW: u64 = 1_234;
        let made = |links: Vec<Link>| -> Vec<u64> {
            let ranking =
                Ranking { first: "a".to_owned(), correlation: 0.2, levels: Vec::new(), nulls: 0.0, links };
            let ranked = Ranked::new(&ranking, 7, "t", FEW);
            (0..FEW).map(|row| ranked.rank(row)).collect()
        };
        let states = made(Vec::new());
        for correlated in [None, Some(Correlated { correlation: 0.3, levels: Vec::new() })] {
            let cells = Joint::Cells(vec![(0, 1, 0.1), (1, 1, 0.0), (2, 1, 0.3)]);
            let link = link("time", cells, line(0.0, &[0.1, 0.7]), line(0.4, &[]));
            let times = made(vec![Link { correlated, ..link }]);
            assert!(times.iter().all(|rank| *rank < FEW));
            for (state, time) in states.iter().zip(times) {
                assert_eq!((123..864).contains(state), time < 740, "{state} {time}");
            }
        }
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

    /// Correlation of row numbers and ranks.
    fn with_rows(ranks: &[u64]) -> f64 {
        let (n, mean) = (ranks.len() as f64, (ranks.len() as f64 - 1.0) / 2.0);
        let sum: f64 =
            (0_u32..).zip(ranks).map(|(row, rank)| (f64::from(row) - mean) * (*rank as f64 - mean)).sum();
        sum * 12.0 / (n * (n * n - 1.0))
    }

    #[test]
    fn few_rows_of_columns_that_follow_others_have_their_correlations() {
        let own = |share: f64| vec![Level { share, values: 20_000.0 }];
        let correlated = |correlation| Some(Correlated { correlation, levels: own(1.0) });
        let normal = || link("b", Joint::Normal { correlation: 0.8 }, line(0.0, &[]), line(0.0, &[]));
        let cells = || vec![(0, 0, 0.45), (0, 1, 0.05), (1, 0, 0.05), (1, 1, 0.45)];
        let halves = || link("c", Joint::Cells(cells()), line(0.0, &[0.5]), line(0.0, &[0.5]));
        let made = |links: Vec<Link>| -> Vec<u64> {
            let ranking =
                Ranking { first: "a".to_owned(), correlation: -0.3, levels: own(1.0), nulls: 0.0, links };
            assert_eq!(ranking.problem(), None);
            let ranked = Ranked::new(&ranking, 7, "t", ROWS);
            let ranks: Vec<u64> = (0..ROWS).map(|row| ranked.rank(row)).collect();
            assert!(are_all(ranks.iter().copied()));
            ranks
        };
        let b = || Link { correlated: correlated(0.1), ..normal() };
        let c = Link { correlated: correlated(-0.4), ..halves() };
        let (first, second, third) = (made(Vec::new()), made(vec![b()]), made(vec![b(), c]));
        for (ranks, wanted) in [(&first, -0.3), (&second, 0.1), (&third, -0.4)] {
            assert!((with_rows(ranks) - wanted).abs() < 0.005, "{wanted}: {}", with_rows(ranks));
        }
        // The dependences remain.
        let both = second.iter().zip(&third).filter(|(one, other)| **one < 10_000 && **other < 10_000);
        assert_eq!(both.count(), 9_000);
        let mut by_first: Vec<(u64, u64)> = first.into_iter().zip(second).collect();
        by_first.sort_unstable();
        let ranks: Vec<u64> = by_first.into_iter().map(|(_, rank)| rank).collect();
        let expected = 6.0 / std::f64::consts::PI * 0.4_f64.asin();
        assert!((with_rows(&ranks) - expected).abs() < 0.02, "{} {expected}", with_rows(&ranks));
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
