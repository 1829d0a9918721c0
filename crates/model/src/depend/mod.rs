//! Finds out which columns of a table depend on which others: the strongest dependences that form a
//! tree.
//!
//! The tree's root is the row number, which columns depend on by their correlation with the
//! physical order. The tree is the one with the greatest mutual information (Chow and Liu,
//! "Approximating discrete probability distributions with dependence trees", 1968). NULLs may have a tree of their own:
//! [`crate::nulls`].

mod tree;

use rowgen::Level;

use self::tree::follow;
use crate::estimate::RowCounts;
use crate::facts::{Joint, Pair, TableFacts};
use crate::file::{Column, How, Values};
use crate::nulls;

/// Greatest length of a chain of columns that depend on each other.
pub(crate) const MOST_LINKS: usize = 4;
/// Most pairs of values of a column that depends on another one.
pub(crate) const MOST_PAIRS: usize = 256;
/// Most pairs of strata: those with the most rows.
const MOST_PARTS: usize = 128;
/// Least mutual information of a dependence, nats; less could be chance.
pub(crate) const LEAST: f64 = 0.002;
/// Stretches of a functional dependency.
const STRETCHES: u16 = 32;

/// The properties of a column that matter for its dependence on others.
pub(crate) struct Node {
    /// Frequent values of the original, in the order of the model's values, without NULL.
    pub(crate) atoms: Vec<String>,
    /// Whether it can depend on another column, or another column on it.
    pub(crate) is_ranked: bool,
}

impl Node {
    /// The node of a column that depends on no other.
    pub(crate) fn none() -> Self {
        Self { atoms: Vec::new(), is_ranked: false }
    }

    /// The place of a value among the frequent ones, -1 for NULL; none for other values.
    pub(crate) fn place(&self, value: Option<&str>) -> Option<i32> {
        let Some(value) = value else { return Some(-1) };
        self.atoms.iter().position(|atom| atom == value).and_then(|at| i32::try_from(at).ok())
    }
}

/// A dependence between two columns, by their indexes.
struct Edge {
    one: usize,
    other: usize,
    information: f64,
    how: How,
}

/// Makes columns depend on others. `nodes` has a node for each column.
///
/// If values follow a column by pairs, these include its NULLs, and its NULLs follow no column. If its NULLs depend on ranges of another
/// column, the trees in which no values follow it by pairs may have more information: the better ones are used.
pub(crate) fn tie(columns: &mut [Column], nodes: &[Node], facts: &TableFacts, k: u32) {
    let rows = facts.counts();
    let edges: Vec<Edge> = facts
        .pairs
        .iter()
        .filter_map(|pair| edge(pair, columns, nodes, rows, f64::from(k)))
        .filter(|edge| edge.information > LEAST)
        .collect();
    let by_row: Vec<f64> = columns.iter().map(|column| of_row(column, facts.rows)).collect();
    let tied = |apart: &[usize]| {
        let mut columns = columns.to_vec();
        let (depths, of_values) = follow(&mut columns, nodes, &edges, &by_row, apart);
        let of_nulls = nulls::tie(&mut columns, nodes, facts, k, &depths);
        (columns, of_values + of_nulls)
    };
    let by_ranges = nulls::by_ranges(columns, nodes, facts, k);
    let mut apart: Vec<usize> = Vec::new();
    let (mut best, mut most) = tied(&apart);
    loop {
        let leads = |at: &usize| nulls::is_led_by_pairs(&best[*at], &best) && !apart.contains(at);
        let better = by_ranges.iter().copied().filter(leads).find_map(|at| {
            let apart: Vec<usize> = apart.iter().copied().chain([at]).collect();
            let (columns, information) = tied(&apart);
            (information > most).then_some((apart, columns, information))
        });
        let Some(better) = better else { break };
        (apart, best, most) = better;
    }
    columns.clone_from_slice(&best);
}

/// Mutual information of row number and value, nats. A column with few values tells less than its correlation.
fn of_row(column: &Column, rows: u64) -> f64 {
    let Some((correlation, levels)) = correlated(column, rows) else { return 0.0 };
    let untied = rowgen::untied(correlation, rows, &levels).clamp(-1.0, 1.0);
    information(untied).min(rowgen::information(untied, &levels))
}

/// Mutual information of two normal variables with this correlation, nats.
fn information(correlation: f64) -> f64 {
    let correlation = correlation.clamp(-0.999_9, 0.999_9);
    -0.5 * (1.0 - correlation * correlation).ln()
}

/// The column's correlation with the physical order, and its values in their order. None if they have no order.
pub(crate) fn correlated(column: &Column, rows: u64) -> Option<(f64, Vec<Level>)> {
    let correlation = match &column.values {
        Values::Fill { .. }
        | Values::Serial { .. }
        | Values::Any { .. }
        | Values::Elements { .. }
        | Values::Ranges { .. } => return None,
        Values::Keys { correlation, .. }
        | Values::Letters { correlation, .. }
        | Values::Statistics { correlation, .. }
        | Values::List { correlation, .. } => *correlation,
    };
    let cuts = cuts(column);
    let rest = 1.0 - cuts.iter().map(|(begin, end)| end - begin).sum::<f64>();
    let others = (different(column, rows) - cuts.len() as f64).max(1.0);
    let between = |share: f64| Level { share, values: (others * share / rest).max(1.0) };
    let mut levels = Vec::with_capacity(2 * cuts.len() + 1);
    let mut before = 0.0;
    for (begin, end) in cuts {
        levels.extend([between(begin - before), Level { share: end - begin, values: 1.0 }]);
        before = end;
    }
    levels.push(between(1.0 - before));
    levels.retain(|level| level.share > 1e-9);
    Some((correlation.clamp(-1.0, 1.0), levels))
}

/// Where each frequent value begins and ends among the column's rows in the order of values, as shares of those that are not NULL.
pub(crate) fn cuts(column: &Column) -> Vec<(f64, f64)> {
    let shares = common(column);
    let places: Vec<f64> = match &column.values {
        Values::Keys { common, .. } | Values::Letters { common, .. } | Values::Any { common, .. } => {
            common.iter().map(|(place, _)| *place).collect()
        }
        _ => column.gaps.clone(),
    };
    // Of numbers that no other column's values depend on, the places are not known.
    let place = |at: usize| places.get(at).copied().unwrap_or((at as f64 + 0.5) / shares.len() as f64);
    let all: f64 = shares.iter().sum();
    let has_others = match &column.values {
        Values::Fill { .. }
        | Values::Serial { .. }
        | Values::List { .. }
        | Values::Elements { .. }
        | Values::Ranges { .. } => false,
        Values::Statistics { bounds, .. } => bounds.len() > 1,
        values => values.distinct().is_none_or(|distinct| distinct < 0.0 || distinct > shares.len() as f64),
    };
    let rest = if has_others { (1.0 - all).max(0.0) } else { 0.0 };
    let total = (all + rest).max(f64::MIN_POSITIVE);
    let (mut before, mut cut) = (0.0, 0.0);
    let mut cuts = Vec::with_capacity(shares.len());
    for (at, share) in shares.iter().enumerate() {
        let begin = f64::max(cut, (before + rest * place(at)) / total).min(1.0);
        before += share;
        cut = if rest > 0.0 { begin + share / total } else { before / total }.min(1.0);
        cuts.push((begin, cut));
    }
    cuts
}

/// The number of different values in so many rows.
fn different(column: &Column, rows: u64) -> f64 {
    let there = rows as f64 * (1.0 - column.nulls);
    match column.values.distinct() {
        None => there,
        Some(distinct) if distinct < 0.0 => (-distinct * there).max(1.0),
        Some(distinct) => distinct,
    }
}

fn edge(pair: &Pair, columns: &[Column], nodes: &[Node], rows: RowCounts, k: f64) -> Option<Edge> {
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    let (one, other) = (place(&pair.columns.0)?, place(&pair.columns.1)?);
    if one == other || !nodes[one].is_ranked || !nodes[other].is_ranked {
        return None;
    }
    let (ours, theirs) = (&columns[one], &columns[other]);
    let (information, how) = match &pair.joint {
        Joint::Common(combinations) => {
            let mut pairs: Vec<(i32, i32, f64)> = combinations
                .iter()
                .filter(|(.., share)| *share == 0.0 || share * rows.all as f64 >= k)
                .filter_map(|(value, with, share)| {
                    let places = (nodes[one].place(value.as_deref())?, nodes[other].place(with.as_deref())?);
                    Some((places.0, places.1, round(*share)))
                })
                .collect();
            // Pairs that tell of NULLs alone are no dependence of values.
            if !pairs.iter().any(|(one, other, _)| *one >= 0 && *other >= 0) {
                return None;
            }
            keep_most(&mut pairs, MOST_PAIRS);
            let chance = pairs.len() as f64 / (2.0 * rows.read());
            (of_pairs(&pairs, ours, theirs)? - 2.0 * chance, How::Pairs { pairs })
        }
        Joint::Strata { cuts, shares } => of_strata(cuts, shares, (ours, &nodes[one]), theirs, rows, k)?,
        Joint::Parts { cuts, shares } => of_parts(cuts, shares, (ours, theirs), rows, k)?,
        Joint::Rank(correlation) => {
            // Of the normal distribution that has this rank correlation.
            let normal = 2.0 * (std::f64::consts::PI * correlation / 6.0).sin();
            let chance = 2.0 / rows.read();
            let correlation = round(normal).clamp(-1.0, 1.0);
            let there = (1.0 - ours.nulls) * (1.0 - theirs.nulls);
            (there * information(normal) - chance, How::Normal { correlation })
        }
        Joint::Dependency(degree) => {
            let group = (rows.read() / different(ours, rows.all)).max(1.0);
            let (shares, rest, others) = shares(theirs, rows.all);
            let by_chance: f64 = shares.iter().map(|share| share.powf(group)).sum::<f64>()
                + others * (rest / others.max(1.0)).powf(group);
            let degree = ((degree - by_chance) / (1.0 - by_chance).max(1e-6)).clamp(0.0, 1.0);
            let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum::<f64>()
                + if rest > 0.0 { -rest * (rest / others.max(1.0)).ln() } else { 0.0 };
            if degree < 0.1 {
                return None;
            }
            (degree * entropy, How::Stretches { count: STRETCHES, window: 0.0, share: round(degree) })
        }
        Joint::Distinct(count) => {
            let both = different(ours, rows.all) * different(theirs, rows.all);
            let by_chance = both * (1.0 - (-(rows.all as f64) / both).exp());
            let window = round((count / both).min(1.0));
            (0.5 * (by_chance / count).ln(), How::Stretches { count: STRETCHES, window, share: 1.0 })
        }
    };
    Some(Edge { one, other, information, how })
}

/// The dependence of values of one column and strata of another one.
fn of_strata(
    cuts: &[f64],
    shares: &[(Option<String>, Option<usize>, f64)],
    (ours, node): (&Column, &Node),
    theirs: &Column,
    rows: RowCounts,
    k: f64,
) -> Option<(f64, How)> {
    let mut pairs: Vec<(i32, i32, f64)> = shares
        .iter()
        .filter(|(.., share)| share * rows.all as f64 >= k)
        .filter_map(|(value, stratum, share)| {
            let stratum = stratum.map_or(Some(-1), |stratum| i32::try_from(stratum).ok())?;
            Some((node.place(value.as_deref())?, stratum, round(*share)))
        })
        .collect();
    // Those that tell of NULLs alone are no dependence of values.
    if !pairs.iter().any(|(value, ..)| *value >= 0) {
        return None;
    }
    keep_most(&mut pairs, MOST_PAIRS);
    let theirs = (widths(cuts), theirs.nulls);
    let chance = pairs.len() as f64 / (2.0 * rows.read());
    let information = of_shares(&pairs, &(common(ours), ours.nulls), &theirs)? - 2.0 * chance;
    let cuts = cuts.iter().map(|cut| round(*cut)).collect();
    Some((information, How::Strata { cuts, own: true, pairs }))
}

/// The dependence of strata of two columns without NULLs.
fn of_parts(
    cuts: &(Vec<f64>, Vec<f64>),
    shares: &[(Option<usize>, Option<usize>, f64)],
    (ours, theirs): (&Column, &Column),
    rows: RowCounts,
    k: f64,
) -> Option<(f64, How)> {
    if ours.nulls > 0.0 || theirs.nulls > 0.0 {
        return None;
    }
    let place = |stratum: Option<usize>| i32::try_from(stratum?).ok();
    let mut pairs: Vec<(i32, i32, f64)> = shares
        .iter()
        .filter(|(.., share)| share * rows.all as f64 >= k)
        .filter_map(|(one, other, share)| Some((place(*one)?, place(*other)?, round(*share))))
        .collect();
    keep_most(&mut pairs, MOST_PARTS);
    let chance = pairs.len() as f64 / (2.0 * rows.read());
    let (one, other) = ((widths(&cuts.0), 0.0), (widths(&cuts.1), 0.0));
    let information = of_shares(&pairs, &one, &other)? - 2.0 * chance;
    let rounded = |cuts: &[f64]| cuts.iter().map(|cut| round(*cut)).collect();
    Some((information, How::Parts { cuts: rounded(&cuts.0), own_cuts: rounded(&cuts.1), pairs }))
}

/// Keeps so many pairs, those with the greatest shares first; of pairs with equal shares the first ones, whatever their order was.
fn keep_most(pairs: &mut Vec<(i32, i32, f64)>, count: usize) {
    pairs.sort_by(|one, other| other.2.total_cmp(&one.2).then((one.0, one.1).cmp(&(other.0, other.1))));
    pairs.truncate(count);
}

/// Widths of the strata that end at cuts and at 1.
pub(crate) fn widths(cuts: &[f64]) -> Vec<f64> {
    let ends = || cuts.iter().copied().chain([1.0]);
    ends().zip([0.0].into_iter().chain(ends())).map(|(end, begin)| end - begin).collect()
}

/// Shares of frequent values, the share of the other values, and the number of those.
fn shares(column: &Column, rows: u64) -> (Vec<f64>, f64, f64) {
    let shares: Vec<f64> = common(column).iter().copied().filter(|share| *share > 0.0).collect();
    let rest = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    let others = different(column, rows) - shares.len() as f64;
    if others < 1.0 { (shares, 0.0, 0.0) } else { (shares, rest, others) }
}

/// Shares of the frequent values in their order, relative to the rows that are not NULL.
pub(crate) fn common(column: &Column) -> Vec<f64> {
    match &column.values {
        Values::Fill { .. } | Values::Serial { .. } | Values::Elements { .. } | Values::Ranges { .. } => {
            Vec::new()
        }
        Values::Keys { common, .. } | Values::Letters { common, .. } | Values::Any { common, .. } => {
            common.iter().map(|(_, share)| *share).collect()
        }
        Values::Statistics { common, .. } | Values::List { values: common, .. } => {
            common.iter().map(|(_, share)| *share).collect()
        }
    }
}

/// Least mutual information by the listed pairs, nats: all other pairs count as one. None if the
/// pairs do not cover a part of the rows.
fn of_pairs(pairs: &[(i32, i32, f64)], ours: &Column, theirs: &Column) -> Option<f64> {
    of_shares(pairs, &(common(ours), ours.nulls), &(common(theirs), theirs.nulls))
}

/// The same of the shares of each column's values among the rows that are not NULL, and of NULL.
fn of_shares(pairs: &[(i32, i32, f64)], ours: &(Vec<f64>, f64), theirs: &(Vec<f64>, f64)) -> Option<f64> {
    let share = |(shares, nulls): &(Vec<f64>, f64), at: i32| match usize::try_from(at) {
        Ok(at) => shares.get(at).map(|share| share * (1.0 - nulls)),
        Err(_) => Some(*nulls),
    };
    let (mut information, mut listed, mut by_chance) = (0.0, 0.0, 0.0);
    for (one, other, together) in pairs {
        let apart = share(ours, *one)? * share(theirs, *other)?;
        if apart > 0.0 {
            information += if *together > 0.0 { together * (together / apart).ln() } else { 0.0 };
            listed += together;
            by_chance += apart;
        }
    }
    let (left, left_by_chance): (f64, f64) = (1.0 - listed, 1.0 - by_chance);
    if left > 1e-6 && left_by_chance > 1e-6 {
        information += left * (left / left_by_chance).ln();
    }
    (listed <= 1.01).then_some(information)
}

/// The number with six digits: no sample is more precise.
pub(crate) fn round(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::facts::{ColumnRole, Statistics};
    use crate::file::{Follows, Model};
    use crate::make::Privacy;
    use crate::testing::{column, facts, strings};

    #[test]
    fn few_values_come_with_parts_of_a_range() {
        let level = Statistics {
            n_distinct: 2.0,
            common: vec![("1".to_owned(), 0.5), ("2".to_owned(), 0.4)],
            null_frac: 0.1,
            ..Statistics::default()
        };
        let weight = Statistics {
            n_distinct: -1.0,
            bounds: strings(&["0", "250", "500", "1000"]),
            ..Statistics::default()
        };
        let columns = vec![
            column("level", Kind::Int4, ColumnRole::Free, level),
            column("weight", Kind::Int4, ColumnRole::Free, weight),
        ];
        let mut facts = facts(100_000, columns);
        let one = |value: &str, stratum, share| (Some(value.to_owned()), Some(stratum), share);
        let joint = Joint::Strata {
            cuts: vec![0.5],
            shares: vec![one("1", 0, 0.5), one("2", 1, 0.4), (None, Some(1), 0.1)],
        };
        facts.tables[0].pairs = vec![Pair { columns: ("level".to_owned(), "weight".to_owned()), joint }];
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        assert_eq!(Model::read(&model.write()).unwrap(), model);
        let table = &model.tables[0];
        let follower = table.columns.iter().find(|column| column.follows.is_some()).unwrap();
        let Some(Follows { how: How::Strata { own, pairs, .. }, .. }) = &follower.follows else { panic!() };
        assert_eq!(*own, follower.name == "weight");
        let turned: Vec<(i32, i32)> =
            pairs.iter().map(|&(one, two, _)| if *own { (one, two) } else { (two, one) }).collect();
        assert_eq!(turned, [(0, 0), (1, 1), (-1, 1)]);
        for (spec, column) in table.specs().iter().zip(&facts.tables[0].columns) {
            let parsed: rowgen::ColumnSpec = spec.parse().unwrap();
            parsed.spec.values(column.kind.as_ref().unwrap(), None).unwrap();
        }
    }

    /// The server returns the rows of the query in any order.
    #[test]
    fn pairs_with_equal_shares_are_the_same_in_any_order() {
        let parts =
            || (0..17).flat_map(|one| (0..17).map(move |other| (Some(one), Some(other), 1.0 / 289.0)));
        let weight = || Statistics {
            n_distinct: -1.0,
            bounds: strings(&["0", "250", "500", "1000"]),
            ..Statistics::default()
        };
        let columns = ["weight", "length"].map(|name| column(name, Kind::Int4, ColumnRole::Free, weight()));
        let privacy = Privacy { k: 20, keep: Vec::new(), seed: 1 };
        let model = Model::of(&facts(100_000, Vec::from(columns)), &privacy);
        let [ours, theirs] = &model.tables[0].columns[..] else { panic!() };
        let cuts: Vec<f64> = (1..17).map(|at| f64::from(at) / 17.0).collect();
        let (cuts, rows) = ((cuts.clone(), cuts), RowCounts { all: 100_000, sampled: 30_000 });
        let made = |shares: Vec<(Option<usize>, Option<usize>, f64)>| {
            of_parts(&cuts, &shares, (ours, theirs), rows, 20.0).unwrap().1
        };
        let how = made(parts().collect());
        assert_eq!(made(parts().rev().collect()), how);
        let How::Parts { pairs, .. } = how else { panic!() };
        assert_eq!((pairs.len(), pairs[0].0, pairs[0].1, pairs[127].0, pairs[127].1), (128, 0, 0, 7, 8));
    }

    #[test]
    fn a_column_of_two_values_follows_another_one_rather_than_the_row_number() {
        let few = |name: &str, common: &[(&str, f64)]| {
            let statistics = Statistics {
                n_distinct: common.len() as f64,
                common: common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect(),
                correlation: Some(0.99),
                ..Statistics::default()
            };
            column(name, Kind::Int4, ColumnRole::Free, statistics)
        };
        let columns = vec![
            few("price", &[("1", 0.94), ("2", 0.06)]),
            few("medium", &[("1", 0.87), ("2", 0.07), ("3", 0.06)]),
        ];
        let mut facts = facts(3_500, columns);
        let pair = |one: &str, other: &str, share| (Some(one.to_owned()), Some(other.to_owned()), share);
        let joint = Joint::Common(vec![pair("1", "1", 0.87), pair("1", "2", 0.07), pair("2", "3", 0.06)]);
        facts.tables[0].pairs = vec![Pair { columns: ("price".to_owned(), "medium".to_owned()), joint }];
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        assert!(model.tables[0].columns.iter().any(|column| column.follows.is_some()));
    }
}
