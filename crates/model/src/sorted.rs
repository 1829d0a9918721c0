//! Tests of a table whose rows lie in the order of their states: times, prices and NULLs depend on the place of a row, so that the state
//! has nearly as much information of each.

use rowgen::Kind;

use crate::facts::{ColumnRole, Joint, Pair, Statistics};
use crate::file::{How, Model};
use crate::make::Privacy;
use crate::testing::{column, facts, strings};

/// A value, a stratum or NULL, with the places where its rows begin and end, 0 to 1.
type Part<T> = (Option<T>, f64, f64);

/// Where the rows begin that are sent, and those that are back.
const SENT: f64 = 0.48;
const BACK: f64 = 0.762;
const STATES: [Part<&str>; 3] =
    [(Some("opened"), 0.0, SENT), (Some("sent out"), SENT, BACK), (Some("returned"), BACK, 1.0)];
/// Ends of strata of columns without NULLs.
const OF_PLACED: [f64; 15] = [
    0.0578, 0.1183, 0.1778, 0.2504, 0.3112, 0.3722, 0.4323, 0.5008, 0.5601, 0.6214, 0.68, 0.7519, 0.8128,
    0.8722, 0.9305,
];
const OF_PRICE: [f64; 15] = [
    0.0678, 0.1789, 0.2369, 0.3035, 0.3606, 0.4161, 0.4719, 0.5353, 0.5902, 0.6468, 0.7028, 0.7695, 0.8264,
    0.8804, 0.9356,
];

/// The strata of a column that ascends with the rows, and is NULL before a place.
fn strata(cuts: &[f64], begin: f64) -> Vec<Part<usize>> {
    let mut strata = vec![(None, 0.0, begin)];
    let mut from = begin;
    for (stratum, cut) in cuts.iter().chain(&[1.0]).enumerate() {
        let until = begin + (1.0 - begin) * cut;
        strata.push((Some(stratum), from, until));
        from = until;
    }
    strata
}

/// The dependence of values on the strata of a column.
fn together(values: &[Part<&str>], cuts: &[f64], begin: f64) -> Joint {
    let mut shares = Vec::new();
    for &(value, from, until) in values {
        for (stratum, first, last) in strata(cuts, begin) {
            let share = until.min(last) - from.max(first);
            if share > 1e-4 {
                shares.push((value.map(str::to_owned), stratum, share));
            }
        }
    }
    Joint::Strata { cuts: cuts.to_vec(), shares }
}

fn pairs() -> Vec<Pair> {
    let pair = |one: &str, other: &str, joint| Pair { columns: (one.to_owned(), other.to_owned()), joint };
    let some = |value: &str| Some(value.to_owned());
    let kinds = [
        ("opened", "Kind-opened", 0.446),
        ("sent out", "Kind-sent out", 0.262),
        ("returned", "Kind-returned", 0.222),
        ("opened", "other kind", 0.034),
        ("sent out", "other kind", 0.02),
        ("returned", "other kind", 0.016),
    ];
    let kinds = kinds.map(|(state, kind, share)| (some(state), some(kind), share)).to_vec();
    let unsent = vec![(some("opened"), None, SENT)];
    let not_back = vec![(some("opened"), None, SENT), (some("sent out"), None, BACK - SENT)];
    let even: Vec<f64> = (1..16).map(|at| f64::from(at) / 16.0).collect();
    let mut pairs = vec![
        pair("state", "kind", Joint::Common(kinds)),
        pair("state", "sent", Joint::Common(unsent)),
        pair("state", "back", Joint::Common(not_back)),
        pair("sent", "back", Joint::Common(vec![(None, None, SENT)])),
    ];
    let lines: [(&str, &[f64], f64); 4] = [
        ("placed", &OF_PLACED[..], 0.0),
        ("sent", &even[..], SENT),
        ("back", &even[..], BACK),
        ("price", &OF_PRICE[..], 0.0),
    ];
    for (name, cuts, begin) in lines {
        pairs.push(pair("state", name, together(&STATES, cuts, begin)));
        let others = [("sent", SENT), ("back", BACK)].into_iter().filter(|(other, _)| *other != name);
        for (other, until) in others {
            pairs.push(pair(other, name, together(&[(None, 0.0, until)], cuts, begin)));
        }
    }
    let ranks = [
        ("placed", "sent", 0.999_99),
        ("placed", "back", 0.998_45),
        ("placed", "price", 0.997),
        ("sent", "back", 0.998_41),
        ("sent", "price", 0.999_94),
        ("back", "price", 0.998_44),
    ];
    pairs.extend(ranks.map(|(one, other, correlation)| pair(one, other, Joint::Rank(correlation))));
    pairs
}

fn model() -> Model {
    let list = |common: &[(&str, f64)], correlation| Statistics {
        n_distinct: common.len() as f64,
        common: common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect(),
        correlation: Some(correlation),
        ..Statistics::default()
    };
    let number = |nulls, n_distinct, correlation| Statistics {
        null_frac: nulls,
        n_distinct,
        correlation: Some(correlation),
        bounds: strings(&["1", "100", "1000", "5000", "9999"]),
        ..Statistics::default()
    };
    let states = [("opened", SENT), ("sent out", BACK - SENT), ("returned", 1.0 - BACK)];
    let kinds =
        [("Kind-opened", 0.446), ("Kind-sent out", 0.262), ("Kind-returned", 0.222), ("other kind", 0.07)];
    let columns = vec![
        column("state", Kind::Text, ColumnRole::Free, list(&states, 0.788)),
        column("kind", Kind::Text, ColumnRole::Free, list(&kinds, 0.684)),
        column("placed", Kind::Int4, ColumnRole::Free, number(0.0, -1.0, 0.999_999)),
        column("sent", Kind::Int4, ColumnRole::Free, number(SENT, SENT - 1.0, 0.999_985)),
        column("back", Kind::Int4, ColumnRole::Free, number(BACK, BACK - 1.0, 0.998_4)),
        column("price", Kind::Int4, ColumnRole::Free, number(0.0, 5_000.0, 0.996_9)),
    ];
    let mut facts = facts(506_498, columns);
    facts.tables[0].pairs = pairs();
    Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 })
}

/// Values of the state that follow `sent` tell most of the two, but then nothing ties its NULLs to the place of a row.
#[test]
fn a_state_follows_the_order_of_the_rows_and_nulls_follow_the_state() {
    let model = model();
    assert_eq!(Model::read(&model.write()).unwrap(), model);
    let columns = &model.tables[0].columns;
    let of = |name: &str| columns.iter().find(|column| column.name == name).unwrap();
    let state = of("state").follows.as_ref().unwrap();
    assert!(["placed", "price"].contains(&state.column.as_str()), "{state:?}");
    assert!(matches!(state.how, How::Strata { own: false, .. }), "{state:?}");
    assert!(of("kind").follows.as_ref().is_some_and(|kind| kind.column == "state"));
    for name in ["sent", "back"] {
        assert_eq!(of(name).follows, None, "{name}");
        let nulls = of(name).nulls_follow.as_ref().unwrap();
        assert_eq!(nulls.column, "state", "{name}");
        assert!(matches!(nulls.how, How::Pairs { .. }), "{nulls:?}");
    }
}
