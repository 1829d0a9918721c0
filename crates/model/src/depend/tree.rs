//! The tree of columns whose values follow each other.

use super::{Edge, MOST_LINKS, Node};
use crate::file::{Column, Follows, How, Values};

/// Makes values follow other columns: each column's number of links from the row number, and the information of the tree, nats. No
/// values follow columns of `apart` by pairs. `by_row` has each column's mutual information with the row number.
pub(super) fn follow(
    columns: &mut [Column],
    nodes: &[Node],
    edges: &[Edge],
    by_row: &[f64],
    apart: &[usize],
) -> (Vec<usize>, f64) {
    let is_of_key = |edge: &&Edge| is_of_key(edge, columns);
    let (of_keys, edges): (Vec<&Edge>, Vec<&Edge>) = edges.iter().partition(is_of_key);
    let mut depths: Vec<Option<usize>> = vec![None; columns.len()];
    let mut all = 0.0;
    loop {
        let ranked = (0..columns.len()).filter(|&at| depths[at].is_none() && nodes[at].is_ranked);
        let most = ranked.map(|at| (at, by_row[at])).max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((next, from_row)) = most else { break };
        let joins = |edge: &Edge, (from, to): (usize, usize)| {
            depths[from].is_some_and(|depth| depth < MOST_LINKS)
                && depths[to].is_none()
                && !(edge.how.is_by_pairs() && apart.contains(&from))
        };
        let ends = |edge: &Edge| {
            [(edge.one, edge.other), (edge.other, edge.one)].into_iter().find(|ends| joins(edge, *ends))
        };
        let best = edges
            .iter()
            .copied()
            .filter_map(|edge| Some((edge, ends(edge)?)))
            .max_by(|one, other| one.0.information.total_cmp(&other.0.information));
        match best {
            Some((edge, (from, to))) if edge.information > from_row => {
                let how = if from == edge.one { edge.how.clone() } else { edge.how.turned() };
                columns[to].follows = Some(Follows { column: columns[from].name.clone(), how });
                depths[to] = depths[from].map(|depth| depth + 1);
                all += edge.information;
            }
            _ => {
                depths[next] = Some(0);
                all += from_row;
            }
        }
    }
    let of_keys: Vec<&Edge> = of_keys.into_iter().filter(|edge| !apart.contains(&edge.other)).collect();
    all += follow_keys(columns, &of_keys, by_row, &mut depths);
    (depths.into_iter().map(Option::unwrap_or_default).collect(), all)
}

/// Whether it tells of ranges of a foreign key. Of two columns, the second one has the ranges.
fn is_of_key(edge: &Edge, columns: &[Column]) -> bool {
    matches!(edge.how, How::Strata { .. }) && matches!(columns[edge.other].values, Values::Keys { .. })
}

/// Makes values follow ranges of a foreign key, if they follow no other column, and no other one follows them: rows that refer to near keys often have
/// the same value, such as the price of what they refer to. Among columns that follow each other, ranges of keys would change their order. The
/// result is the information that this adds, nats.
fn follow_keys(columns: &mut [Column], edges: &[&Edge], by_row: &[f64], depths: &mut [Option<usize>]) -> f64 {
    let mut all = 0.0;
    for (to, from_row) in by_row.iter().copied().enumerate() {
        let column = &columns[to];
        let is_followed =
            |other: &Column| other.follows.as_ref().is_some_and(|follows| follows.column == column.name);
        let is_alone = column.follows.is_none() && !columns.iter().any(is_followed);
        let leads = |edge: &&Edge| {
            edge.one == to
                && edge.information > from_row
                && depths[edge.other].is_some_and(|depth| depth < MOST_LINKS)
        };
        let best = edges
            .iter()
            .copied()
            .filter(leads)
            .max_by(|one, other| one.information.total_cmp(&other.information));
        if let Some(edge) = best.filter(|_| is_alone && column.nulls <= 0.0) {
            let leader = columns[edge.other].name.clone();
            columns[to].follows = Some(Follows { column: leader, how: edge.how.turned() });
            depths[to] = depths[edge.other].map(|depth| depth + 1);
            all += edge.information - from_row;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::facts::{ColumnRole, Joint, Pair, Statistics};
    use crate::file::Model;
    use crate::make::Privacy;
    use crate::testing::{column, facts};

    /// Lines that refer to tracks, of which the last ones have the higher price. `pairs` are those of other columns.
    fn lines(medium: bool) -> Model {
        let few = |name: &str, common: &[(&str, f64)]| {
            let common: Vec<(String, f64)> =
                common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect();
            // Rows with equal values alone make this correlation.
            let statistics = Statistics {
                n_distinct: common.len() as f64,
                correlation: Some(0.82),
                common,
                ..Statistics::default()
            };
            column(name, Kind::Int4, ColumnRole::Free, statistics)
        };
        let role = ColumnRole::Reference { table: "public.tracks".to_owned(), column: "id".to_owned() };
        let track = Statistics { n_distinct: -0.5, correlation: Some(0.2), ..Statistics::default() };
        let columns = vec![
            few("price", &[("1", 0.9), ("2", 0.1)]),
            few("medium", &[("1", 0.9), ("2", 0.1)]),
            column("track", Kind::Int4, role, track),
        ];
        let mut facts = facts(100_000, columns);
        let some = |value: &str| Some(value.to_owned());
        let shares = vec![
            (some("1"), Some(0), 0.5),
            (some("1"), Some(1), 0.4),
            (some("2"), Some(2), 0.099_9),
            // Fewer than k rows.
            (some("2"), Some(1), 0.000_1),
        ];
        let of = |one: &str, other: &str, joint| Pair { columns: (one.to_owned(), other.to_owned()), joint };
        facts.tables[0].pairs = vec![of("price", "track", Joint::Strata { cuts: vec![0.5, 0.9], shares })];
        if medium {
            let both = vec![(some("1"), some("1"), 0.9), (some("2"), some("2"), 0.1)];
            facts.tables[0].pairs.push(of("price", "medium", Joint::Common(both)));
        }
        Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 })
    }

    #[test]
    fn values_that_follow_nothing_else_follow_ranges_of_a_foreign_key() {
        let model = lines(false);
        assert_eq!(Model::read(&model.write()).unwrap(), model);
        let table = &model.tables[0];
        let pairs = vec![(0, 0, 0.5), (1, 0, 0.4), (2, 1, 0.099_9)];
        let how = How::Strata { cuts: vec![0.5, 0.9], own: false, pairs };
        assert_eq!(table.columns[0].follows, Some(Follows { column: "track".to_owned(), how }));
        assert!(table.columns[1..].iter().all(|column| column.follows.is_none()));
        let spec = table.specs().into_iter().find(|spec| spec.starts_with("price=")).unwrap();
        assert!(spec.contains("line(0,0.5,0.9)"), "{spec}");
        let parsed: rowgen::ColumnSpec = spec.parse().unwrap();
        parsed.spec.values(&Kind::Int4, None).unwrap();
    }

    #[test]
    fn columns_that_follow_each_other_follow_no_ranges_of_a_foreign_key() {
        let model = lines(true);
        let leaders: Vec<&str> = model.tables[0]
            .columns
            .iter()
            .filter_map(|column| column.follows.as_ref())
            .map(|follows| follows.column.as_str())
            .collect();
        assert!(leaders == ["price"] || leaders == ["medium"], "{leaders:?}");
    }
}
