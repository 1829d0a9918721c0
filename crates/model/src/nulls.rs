//! Finds out which columns' NULLs depend on which others: on the values of one, on ranges of these, or on its NULLs.
//!
//! The values of a column follow one other column, and its NULLs may follow another one. Of all columns, each chooses the one
//! that tells most of its NULLs, as in [`crate::depend`].

use crate::depend::{LEAST, MOST_LINKS, MOST_PAIRS, Node, common, round, widths};
use crate::estimate::RowCounts;
use crate::facts::{Joint, Pair, TableFacts};
use crate::file::{Column, Follows, How, Values};

/// Least and greatest share of NULLs of a column whose NULLs may follow another column.
const SHARES: std::ops::RangeInclusive<f64> = 0.001..=0.999;

/// A column whose values or NULLs predict the NULLs of another.
struct Predictor {
    of: usize,
    by: usize,
    /// Where ranges of the other column end, as fractions of the rows that are not NULL, if it predicts by ranges.
    cuts: Option<Vec<f64>>,
    /// Places of the other column's values among its frequent ones, or numbers of ranges (-1 for NULL), and the share of the rows that
    /// have this value, and NULL in this column.
    shares: Vec<(i32, f64)>,
}

/// Makes the NULLs of columns depend on others. `depths` has the links from the row number to each column. The result is the information
/// of all these dependences, nats.
pub(crate) fn tie(
    columns: &mut [Column],
    nodes: &[Node],
    facts: &TableFacts,
    k: u32,
    depths: &[usize],
) -> f64 {
    let rows = facts.counts();
    let predictors = all_predictors(columns, nodes, facts, k);
    // A column whose pairs of values include NULL stays as it is.
    let is_open = |column: &Column| {
        let is_by_pairs = column.follows.as_ref().is_some_and(|follows| follows.how.is_by_pairs());
        SHARES.contains(&column.nulls) && !is_by_pairs && !is_led_by_pairs(column, columns)
    };
    let mut open: Vec<usize> =
        (0..columns.len()).filter(|&at| nodes[at].is_ranked && is_open(&columns[at])).collect();
    let mut depths = depths.to_vec();
    let mut all = 0.0;
    while !open.is_empty() {
        let best = predictors
            .iter()
            .filter(|predictor| {
                open.contains(&predictor.of)
                    && !open.contains(&predictor.by)
                    && depths[predictor.by] < MOST_LINKS
            })
            .map(|predictor| (predictor, predictor.information(columns, rows)))
            .max_by(|one, other| one.1.total_cmp(&other.1));
        let next = match best {
            Some((predictor, information)) if information > LEAST => {
                let leader = &columns[predictor.by];
                let follows = Follows { column: leader.name.clone(), how: predictor.how(leader) };
                depths[predictor.of] = depths[predictor.by] + 1;
                columns[predictor.of].nulls_follow = Some(follows);
                all += information;
                predictor.of
            }
            // Nothing tells of the others: the one that tells most of them leads.
            _ => {
                let tells = |at: usize| -> f64 {
                    let of = predictors
                        .iter()
                        .filter(|predictor| predictor.by == at && open.contains(&predictor.of));
                    of.map(|predictor| predictor.information(columns, rows)).sum()
                };
                let by_what_it_tells = |one: &usize, other: &usize| tells(*one).total_cmp(&tells(*other));
                open.iter().copied().max_by(by_what_it_tells).unwrap_or(open[0])
            }
        };
        open.retain(|at| *at != next);
    }
    all
}

/// Whether values of another column follow this one by pairs, which include NULL.
pub(crate) fn is_led_by_pairs(column: &Column, columns: &[Column]) -> bool {
    let mut all = columns.iter().filter_map(|other| other.follows.as_ref());
    all.any(|follows| follows.column == column.name && follows.how.is_by_pairs())
}

/// The columns whose NULLs depend on ranges of another column, before any column follows another one.
pub(crate) fn by_ranges(columns: &[Column], nodes: &[Node], facts: &TableFacts, k: u32) -> Vec<usize> {
    let rows = facts.counts();
    let mut found: Vec<usize> = all_predictors(columns, nodes, facts, k)
        .iter()
        .filter(|predictor| predictor.cuts.is_some() && SHARES.contains(&columns[predictor.of].nulls))
        .filter(|predictor| predictor.information(columns, rows) > LEAST)
        .map(|predictor| predictor.of)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn all_predictors(columns: &[Column], nodes: &[Node], facts: &TableFacts, k: u32) -> Vec<Predictor> {
    let (rows, k) = (facts.counts(), f64::from(k));
    facts.pairs.iter().flat_map(|pair| predictors(pair, columns, nodes, rows, k)).collect()
}

/// How well each column of a pair predicts the NULLs of the other.
fn predictors(pair: &Pair, columns: &[Column], nodes: &[Node], rows: RowCounts, k: f64) -> Vec<Predictor> {
    let place =
        |name: &str| columns.iter().position(|column| column.name == name).filter(|&at| nodes[at].is_ranked);
    let (Some(one), Some(other)) = (place(&pair.columns.0), place(&pair.columns.1)) else {
        return Vec::new();
    };
    let is_enough = |share: f64| share == 0.0 || share * rows.all as f64 >= k;
    let predictor = |of, by, cuts| Predictor { of, by, cuts, shares: Vec::new() };
    let mut found = match &pair.joint {
        Joint::Common(combinations) => {
            let mut found = vec![predictor(one, other, None), predictor(other, one, None)];
            for (value, with, share) in combinations.iter().filter(|(.., share)| is_enough(*share)) {
                for (predictor, own, other) in [(0, value, with), (1, with, value)] {
                    let predictor = &mut found[predictor];
                    if own.is_none()
                        && let Some(place) = nodes[predictor.by].place(other.as_deref())
                    {
                        predictor.add(place, *share, columns, rows);
                    }
                }
            }
            found
        }
        // Of a foreign key, ranges tell of values only.
        Joint::Strata { .. } if matches!(columns[other].values, Values::Keys { .. }) => Vec::new(),
        Joint::Strata { cuts, shares } => {
            let cuts = cuts.iter().map(|cut| round(*cut)).collect();
            let mut found = predictor(one, other, Some(cuts));
            for (value, stratum, share) in shares.iter().filter(|(.., share)| is_enough(*share)) {
                let stratum = stratum.map_or(Some(-1), |stratum| i32::try_from(stratum).ok());
                if let (None, Some(stratum)) = (value, stratum) {
                    found.add(stratum, *share, columns, rows);
                }
            }
            vec![found]
        }
        Joint::Parts { .. } | Joint::Rank(_) | Joint::Dependency(_) | Joint::Distinct(_) => Vec::new(),
    };
    for predictor in &mut found {
        predictor.shares.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        predictor.shares.truncate(MOST_PAIRS);
    }
    found.retain(|predictor| predictor.of != predictor.by && !predictor.shares.is_empty());
    found
}

/// Share of the rows with the column's frequent value at this place, or with NULL.
fn share_of(column: &Column, place: i32) -> f64 {
    match usize::try_from(place) {
        Ok(at) => common(column).get(at).copied().unwrap_or_default() * (1.0 - column.nulls),
        Err(_) => column.nulls,
    }
}

impl Predictor {
    /// Adds the share of the rows with the other column's value or range, and NULL in this column.
    fn add(&mut self, place: i32, share: f64, columns: &[Column], rows: RowCounts) {
        let (nulls, other) = (columns[self.of].nulls, self.share_of(&columns[self.by], place));
        self.shares.push((place, snapped(share, nulls, other, rows)));
    }

    /// Share of the rows with the leader's value or range at this place, or with NULL.
    fn share_of(&self, leader: &Column, place: i32) -> f64 {
        match (&self.cuts, usize::try_from(place)) {
            (Some(cuts), Ok(at)) => widths(cuts).get(at).copied().unwrap_or_default() * (1.0 - leader.nulls),
            _ => share_of(leader, place),
        }
    }

    /// The dependence of the NULLs on the leader.
    fn how(&self, leader: &Column) -> How {
        let pairs = self.usable(leader).map(|(place, share)| (place, -1, round(share))).collect();
        match &self.cuts {
            Some(cuts) if leader.nulls_follow.is_none() => {
                How::Strata { cuts: cuts.clone(), own: false, pairs }
            }
            _ => How::Pairs { pairs },
        }
    }

    /// The shares of values that the leader's order has: if its NULLs have an order of their own, only that of NULL.
    fn usable(&self, leader: &Column) -> impl Iterator<Item = (i32, f64)> {
        let has_values = leader.nulls_follow.is_none();
        self.shares.iter().copied().filter(move |(place, _)| has_values || *place == -1)
    }

    /// Mutual information of the column's NULLs with the other column, nats: values whose share is not known have the
    /// same share of NULLs.
    fn information(&self, columns: &[Column], rows: RowCounts) -> f64 {
        let (nulls, leader) = (columns[self.of].nulls, &columns[self.by]);
        let (mut information, mut all, mut with_nulls) = (0.0, 0.0, 0.0);
        let part = |of: f64, with_null: f64| {
            let term = |share: f64, apart: f64| {
                if share > 0.0 && apart > 0.0 { share * (share / apart).ln() } else { 0.0 }
            };
            term(with_null, of * nulls) + term((of - with_null).max(0.0), of * (1.0 - nulls))
        };
        let mut cells = 1.0;
        for (place, share) in self.usable(leader) {
            let of = self.share_of(leader, place);
            let share = share.min(of);
            information += part(of, share);
            (all, with_nulls) = (all + of, with_nulls + share);
            cells += 1.0;
        }
        information += part((1.0 - all).max(0.0), (nulls - with_nulls).max(0.0));
        // The dependence that a sample shows by chance.
        information - cells / rows.read()
    }
}

/// The share of the rows that have both, set to the greatest possible share, or to the least one above 0, if it differs from that by no
/// more than the error of a sample.
fn snapped(both: f64, ours: f64, theirs: f64, rows: RowCounts) -> f64 {
    let (least, most) = ((ours + theirs - 1.0).max(0.0), ours.min(theirs));
    let noise = 4.0 * (most * (1.0 - most) / rows.read()).sqrt();
    let is_of_most = most - both < noise && (both - least > most - both || least <= 0.0 && both > 0.0);
    if is_of_most {
        most
    } else if least > 0.0 && both - least < noise {
        least
    } else {
        both
    }
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::facts::{ColumnRole, Statistics};
    use crate::file::Model;
    use crate::make::Privacy;
    use crate::testing::{column, facts, strings};

    /// Parcels: sent if their state is not `opened`, back if it is `returned`. Times ascend together.
    fn model() -> Model {
        let state = Statistics {
            n_distinct: 3.0,
            common: [("opened", 0.5), ("returned", 0.2), ("sent out", 0.3)]
                .map(|(value, share)| (value.to_owned(), share))
                .to_vec(),
            ..Statistics::default()
        };
        let time = |nulls| Statistics {
            null_frac: nulls,
            n_distinct: -1.0 + nulls,
            bounds: strings(&["1", "100", "1000", "5000", "9999"]),
            ..Statistics::default()
        };
        let columns = vec![
            column("state", Kind::Text, ColumnRole::Free, state),
            column("placed", Kind::Int4, ColumnRole::Free, time(0.0)),
            column("sent", Kind::Int4, ColumnRole::Free, time(0.5)),
            column("back", Kind::Int4, ColumnRole::Free, time(0.8)),
        ];
        let mut facts = facts(100_000, columns);
        let some = |value: &str| Some(value.to_owned());
        let pair =
            |one: &str, other: &str, joint| Pair { columns: (one.to_owned(), other.to_owned()), joint };
        facts.tables[0].pairs = vec![
            pair("placed", "sent", Joint::Rank(0.99)),
            pair("sent", "back", Joint::Rank(0.99)),
            pair("state", "sent", Joint::Common(vec![(some("opened"), None, 0.501)])),
            pair(
                "state",
                "back",
                Joint::Common(vec![(some("opened"), None, 0.5), (some("sent out"), None, 0.299)]),
            ),
            pair("sent", "back", Joint::Common(vec![(None, None, 0.5)])),
        ];
        Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 })
    }

    #[test]
    fn nulls_follow_another_column_than_the_values() {
        let model = model();
        let columns = &model.tables[0].columns;
        let of = |name: &str| columns.iter().find(|column| column.name == name).unwrap();
        for name in ["sent", "back"] {
            let nulls = of(name).nulls_follow.as_ref().unwrap();
            assert_eq!(nulls.column, "state", "{name}");
        }
        let follows =
            |one: &str, other: &str| of(one).follows.as_ref().is_some_and(|follows| follows.column == other);
        assert!(follows("sent", "placed") || follows("placed", "sent"));
        let How::Pairs { pairs } = &of("back").nulls_follow.as_ref().unwrap().how else { panic!() };
        assert_eq!(pairs, &[(0, -1, 0.5), (2, -1, 0.3)]);
        assert_eq!(Model::read(&model.write()).unwrap(), model);
    }

    /// Orders in the order of their states: `opened`, `sent out`, `returned`. Those that are not `opened` are sent. With `ranges`, the NULLs of
    /// `sent` in ranges of `placed` are known.
    fn in_order(ranges: &[f64]) -> Model {
        let state = Statistics {
            n_distinct: 3.0,
            common: [("opened", 0.5), ("returned", 0.2), ("sent out", 0.3)]
                .map(|(value, share)| (value.to_owned(), share))
                .to_vec(),
            ..Statistics::default()
        };
        let time = |nulls| Statistics {
            null_frac: nulls,
            n_distinct: -1.0 + nulls,
            correlation: Some(1.0),
            bounds: strings(&["1", "100", "1000", "5000", "9999"]),
            ..Statistics::default()
        };
        let columns = vec![
            column("state", Kind::Text, ColumnRole::Free, state),
            column("placed", Kind::Int4, ColumnRole::Free, time(0.0)),
            column("sent", Kind::Int4, ColumnRole::Free, time(0.5)),
        ];
        let mut facts = facts(100_000, columns);
        let one = |value: &str, stratum, share| (Some(value.to_owned()), stratum, share);
        let pair =
            |one: &str, other: &str, joint| Pair { columns: (one.to_owned(), other.to_owned()), joint };
        let of_placed = vec![
            one("opened", Some(0), 0.25),
            one("opened", Some(1), 0.25),
            one("sent out", Some(2), 0.25),
            one("sent out", Some(3), 0.05),
            one("returned", Some(3), 0.2),
        ];
        let of_sent =
            vec![one("opened", None, 0.5), one("sent out", Some(0), 0.3), one("returned", Some(1), 0.2)];
        let cuts = vec![0.25, 0.5, 0.75];
        let unsent = ranges.iter().enumerate().map(|(at, share)| (None, Some(at), *share)).collect();
        facts.tables[0].pairs = vec![
            pair("state", "placed", Joint::Strata { cuts: cuts.clone(), shares: of_placed }),
            pair("state", "sent", Joint::Strata { cuts: vec![0.6], shares: of_sent }),
            pair("state", "sent", Joint::Common(vec![(Some("opened".to_owned()), None, 0.5)])),
            pair("sent", "placed", Joint::Strata { cuts, shares: unsent }),
        ];
        Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 })
    }

    #[test]
    fn nulls_that_depend_on_ranges_are_in_no_pairs() {
        let leaders = |model: &Model, name: &str| {
            let column = model.tables[0].columns.iter().find(|column| column.name == name).unwrap();
            [&column.follows, &column.nulls_follow].map(|of| of.as_ref().map(|of| of.column.clone()))
        };
        let some = |name: &str| Some(name.to_owned());
        let apart = in_order(&[0.25, 0.25]);
        assert_eq!(leaders(&apart, "state"), [some("placed"), None]);
        assert_eq!(leaders(&apart, "sent"), [None, some("state")]);
        let together = in_order(&[]);
        assert_eq!(leaders(&together, "state"), [some("sent"), None]);
        assert_eq!(leaders(&together, "sent"), [None, None]);
    }

    #[test]
    fn nulls_follow_ranges() {
        let bounds = strings(&["1", "100", "1000", "5000", "9999"]);
        let time = |nulls| Statistics {
            null_frac: nulls,
            n_distinct: -1.0 + nulls,
            bounds: bounds.clone(),
            ..Statistics::default()
        };
        let columns = vec![
            column("placed", Kind::Int4, ColumnRole::Free, time(0.0)),
            column("sent", Kind::Int4, ColumnRole::Free, time(0.5)),
        ];
        let mut facts = facts(100_000, columns);
        // 10 rows are fewer than k.
        let shares =
            [(0, 0.25), (1, 0.25), (3, 0.0001)].map(|(stratum, share)| (None, Some(stratum), share)).to_vec();
        let joint = Joint::Strata { cuts: vec![0.25, 0.5, 0.75], shares };
        facts.tables[0].pairs = vec![Pair { columns: ("sent".to_owned(), "placed".to_owned()), joint }];
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        assert_eq!(Model::read(&model.write()).unwrap(), model);
        let table = &model.tables[0];
        let sent = table.columns.iter().find(|column| column.name == "sent").unwrap();
        let Follows { column, how } = sent.nulls_follow.as_ref().unwrap();
        let pairs = vec![(0, -1, 0.25), (1, -1, 0.25)];
        assert_eq!(column, "placed");
        assert_eq!(*how, How::Strata { cuts: vec![0.25, 0.5, 0.75], own: false, pairs });
        let specs = table.specs();
        assert!(specs.iter().any(|spec| {
            spec.starts_with("sent=nulls(0.5,")
                && spec.contains("line(0,0.25,0.5,0.75),line(0.5),pairs(0:1*0.25,1:1*0.25)")
        }));
        for spec in specs {
            let parsed: rowgen::ColumnSpec = spec.parse().unwrap();
            parsed.spec.values(&Kind::Int4, None).unwrap();
        }
    }

    /// A pair of 10 of 100,000 rows is not in the model; with `k` of 10, it is.
    #[test]
    fn pairs_of_fewer_than_k_rows_are_left_out() {
        let state = Statistics {
            n_distinct: 3.0,
            common: [("opened", 0.5), ("returned", 0.0001), ("sent out", 0.4999)]
                .map(|(value, share)| (value.to_owned(), share))
                .to_vec(),
            ..Statistics::default()
        };
        let sent = Statistics {
            null_frac: 0.5,
            n_distinct: -0.5,
            bounds: strings(&["1", "100", "1000", "5000", "9999"]),
            ..Statistics::default()
        };
        let columns = vec![
            column("state", Kind::Text, ColumnRole::Free, state),
            column("sent", Kind::Int4, ColumnRole::Free, sent),
        ];
        let mut facts = facts(100_000, columns);
        let null = |value: &str, share| (Some(value.to_owned()), None, share);
        facts.tables[0].pairs = vec![Pair {
            columns: ("state".to_owned(), "sent".to_owned()),
            joint: Joint::Common(vec![null("opened", 0.4999), null("returned", 0.0001)]),
        }];
        let pairs = |k| {
            let keep = vec!["t.state".to_owned()];
            let model = Model::of(&facts, &Privacy { k, keep, seed: 1 });
            let sent = model.tables[0].columns.iter().find(|column| column.name == "sent").unwrap().clone();
            let Some(Follows { how: How::Pairs { pairs }, .. }) = sent.nulls_follow else { panic!() };
            pairs.len()
        };
        assert_eq!((pairs(20), pairs(10)), (1, 2));
    }

    /// Each edit contradicts the rest of the model; the error names the column and the remedy.
    #[test]
    fn contradictions_are_refused() {
        let refused = |edit: &dyn Fn(&mut Column), remedy: &str| {
            let mut model = model();
            let table = &mut model.tables[0];
            edit(table.columns.iter_mut().find(|column| column.name == "back").unwrap());
            let error = Model::read(&model.write()).unwrap_err().to_string();
            assert!(error.contains("back") && error.contains(remedy), "{error}");
        };
        let follow = |name: &str, pairs: &[(i32, i32, f64)]| {
            let how = How::Pairs { pairs: pairs.to_vec() };
            Some(Follows { column: name.to_owned(), how })
        };
        let with =
            |follows: Option<Follows>| move |column: &mut Column| column.nulls_follow = follows.clone();
        refused(&with(follow("stat", &[(0, -1, 0.5)])), "correct the name");
        refused(&with(follow("back", &[(-1, -1, 0.5)])), "remove one \"nulls_follow\"");
        refused(&with(follow("state", &[(0, 0, 0.5)])), "second place is -1");
        refused(&with(follow("sent", &[(0, -1, 0.5)])), "and the first, too");
        refused(&with(follow("state", &[(0, -1, 0.7), (2, -1, 0.6)])), "add up to at most 1");
        refused(&with(follow("state", &[(0, -1, -0.1)])), "at least 0");
        let normal = Some(Follows { column: "state".to_owned(), how: How::Normal { correlation: 0.5 } });
        refused(&with(normal), "second place is -1");
    }

    #[test]
    fn shares_of_a_sample_are_set_to_what_is_possible() {
        let rows = RowCounts { all: 30_000, sampled: 30_000 };
        let is = |both, ours, theirs, wanted: f64| (snapped(both, ours, theirs, rows) - wanted).abs() < 1e-9;
        assert!(is(0.498, 0.5, 0.8, 0.5) && is(0.302, 0.5, 0.8, 0.3) && is(0.4, 0.5, 0.8, 0.4));
        assert!(is(0.005, 0.5, 0.3, 0.005) && is(0.0, 0.5, 0.3, 0.0));
    }
}
