//! Properties of values, checked without a server: repeatable, distributed as requested, unique, consistent within a
//! row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use rowgen::{
    Column, Constants, Distribution, Encoder, Format, Keys, Kind, Member, Payload, Pick, Reference, Shared,
    Table, Turn, Values,
};

fn table(columns: Vec<Column>) -> Table {
    Table { name: "t".into(), columns, rows: u64::MAX, seed: 3 }
}

fn lines(table: &Table, rows: std::ops::Range<u64>) -> Vec<String> {
    let mut out = Vec::new();
    Encoder::new(table, Format::Text, Constants::Sent).encode(rows, &mut out);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn column(kind: Kind, values: Values) -> Table {
    table(vec![Column::new("c", kind, values)])
}

fn numbers(distribution: Distribution) -> Vec<f64> {
    let table = column(Kind::Float8, Values::Drawn(distribution));
    lines(&table, 0..20_000).iter().map(|line| line.parse().unwrap()).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Columns that have nothing to do with each other.
fn mixed() -> Table {
    let labels = ["new", "paid"].map(str::to_owned).to_vec();
    table(vec![
        Column::new("serial", Kind::Int8, Values::SERIAL),
        Column::new("group", Kind::Int4, Values::Group { size: 7, groups: 1_000 }),
        Column::new("shuffle", Kind::Int4, Values::Shuffle { low: 1, high: 100_000 }),
        Column::new("enum", Kind::Enum { name: "e".into(), labels, oids: Vec::new(), oid: 0 }, Values::Any),
        Column::new("uuid", Kind::Uuid, Values::Unique(Turn::EACH)),
        Column::new("numeric", Kind::Numeric(None), Values::Any),
        Column::new("date", Kind::Timestamp, Values::Any),
        Column::new("text", Kind::Text, Values::Any),
        Column::new("filler", Kind::Text, Values::Payload { payload: Payload::Random, low: 0, high: 70 }),
        Column::new(
            "nulls",
            Kind::Bytea,
            Values::Nulls { fraction: 0.5, by: None, values: Box::new(Values::Any) },
        ),
        Column::new("bits", Kind::Bit(13), Values::Any),
        Column::new("normal", Kind::Float8, Values::Drawn(Distribution::Normal { mean: 0.0, sd: 1.0 })),
    ])
}

/// With what no binary form is made of.
fn textual() -> Table {
    let mut table = mixed();
    table.columns.extend([
        Column::new("array", Kind::Array(Box::new(Kind::Text)), Values::Any),
        Column::new(
            "range",
            Kind::Range { name: "r".into(), oid: 0, element: Box::new(Kind::Int4) },
            Values::Any,
        ),
        Column::new("polygon", Kind::Polygon, Values::Any),
        Column::new("cycle", Kind::Int4, Values::Cycle(vec!["1".into(), "2".into()])),
    ]);
    table
}

#[test]
fn the_same_rows_on_every_machine_and_in_every_version() {
    // A change here is a change of everyone's data.
    assert_eq!(
        lines(&textual(), 41..43),
        [
            "42\t6\t82271\tpaid\t7625c60c-c857-445f-a117-d72646acc670\t2337.135551\t\
             2014-06-14 18:41:44.092362\tfirst until business from\tlbbiUA5xjsK10\t\\N\t0110000111110\t\
             -0.9681588038975919\t{\"may are small result because war man\",\"computer including.\"}\t\
             [5003,5240)\t((4615.25,2941.5),(231,9697.75),(9329.5,9820.5),(3835,4917.5))\t2",
            "43\t7\t6479\tnew\t21a4031b-93e4-455f-ad57-f006fdd787d5\t5343.11403\t\
             2021-02-08 17:10:29.650650\twere show for film be for when day.\t\
             BxqZIOlauwBCsMmFFfFMYESRsYY9FC5z8m.i\t\\N\t0000000011000\t0.16907862007684094\t\
             {\"was any been quality she with\",\"increase by city by called i\",\"under war long without during i\"}\t\
             [42288,43213)\t((4922.25,1394.25),(8603.75,9758.25),(7234.25,4366.75),(6370,4703))\t1",
        ]
    );
}

#[test]
fn distributions_have_their_moments() {
    let normal = numbers(Distribution::Normal { mean: 100.0, sd: 5.0 });
    let variance = mean(&normal.iter().map(|x| (x - 100.0).powi(2)).collect::<Vec<_>>());
    assert!((mean(&normal) - 100.0).abs() < 0.2 && (variance.sqrt() - 5.0).abs() < 0.2);

    let exponential = numbers(Distribution::Exponential { mean: 8.0 });
    assert!((mean(&exponential) - 8.0).abs() < 0.3 && exponential.iter().all(|x| *x >= 0.0));

    let uniform = numbers(Distribution::Uniform { low: -1.0, high: 3.0 });
    assert!((mean(&uniform) - 1.0).abs() < 0.05 && uniform.iter().all(|x| (-1.0..=3.0).contains(x)));
}

#[test]
fn zipf_s_frequencies_fall_as_they_should() {
    for s in [0.5, 1.0, 2.0] {
        let n = 20;
        let table = column(Kind::Int4, Values::Drawn(Distribution::Zipf { n, s }));
        let drawn = lines(&table, 0..20_000);
        let total: f64 = (1..=n).map(|k| (k as f64).powf(-s)).sum();
        for k in 1..=n {
            let expected = (k as f64).powf(-s) / total;
            let seen = drawn.iter().filter(|x| **x == k.to_string()).count() as f64 / drawn.len() as f64;
            assert!((seen - expected).abs() < 0.012, "s {s}, {k}: {seen}, not {expected}");
        }
    }
}

#[test]
fn rounded_numbers_stay_in_the_type_s_range() {
    let table = column(Kind::Int2, Values::Drawn(Distribution::Normal { mean: 32_000.0, sd: 2_000.0 }));
    let drawn: Vec<i16> = lines(&table, 0..1_000).iter().map(|line| line.parse().unwrap()).collect();
    assert!(drawn.contains(&i16::MAX) && drawn.iter().any(|x| *x < 32_000));
}

#[test]
fn unique_values_differ_to_the_last() {
    for kind in [
        Kind::Bool,
        Kind::Int2,
        Kind::Varchar(Some(2)),
        Kind::Char(3),
        Kind::Bit(9),
        Kind::Uuid,
        Kind::Bytea,
        Kind::Numeric(None),
        Kind::Date,
        Kind::Composite { name: "c".into(), oid: 0, fields: vec![Kind::Bool, Kind::Bit(5)] },
    ] {
        let table = column(kind.clone(), Values::Unique(Turn::EACH));
        let rows = table.columns[0].unique_rows().unwrap().min(70_000);
        let seen: BTreeSet<String> = lines(&table, 0..rows).into_iter().collect();
        assert_eq!(seen.len() as u64, rows, "{}", kind.sql());
    }
    assert_eq!(Kind::Bool.distinct(), Some(2));
    assert_eq!(Kind::Int2.distinct(), Some(32_767));
    assert_eq!(Kind::Varchar(Some(2)).distinct(), Some(36 * 36));
    assert_eq!(Kind::Json.distinct(), None);
}

#[test]
fn unique_values_have_the_length_that_is_asked_for() {
    for (kind, shortest, length) in [
        (Kind::Text, 5, 13),
        (Kind::Text, 26, 26),
        (Kind::Varchar(Some(10)), 10, 10),
        (Kind::Char(40), 40, 40),
        (Kind::Name, 63, 63),
        // Two digits for each byte, and the backslashes and x before them.
        (Kind::Bytea, 4, 3 + 2 * 8),
        (Kind::Bytea, 20, 3 + 2 * 20),
    ] {
        let table = column(kind.clone(), Values::unique(&kind, Turn::EACH, shortest));
        assert_eq!(table.columns[0].check(), Ok(()), "{}", kind.sql());
        assert!(table.columns[0].unique_rows().unwrap() > 1 << 50, "{}", kind.sql());
        let seen = lines(&table, 0..10_000);
        assert!(seen.iter().all(|value| value.len() == length), "{}: {}", kind.sql(), seen[0]);
        assert!(seen.is_sorted_by(|one, other| one < other), "{}", kind.sql());
    }
    let unsuited = |kind: Kind, length| {
        Column::new("c", kind, Values::Long { turn: Turn::EACH, length }).check().is_err()
    };
    assert!(unsuited(Kind::Varchar(Some(20)), 21) && unsuited(Kind::Text, 13) && unsuited(Kind::Uuid, 36));
    let turns = Values::Long { turn: Turn { every: 2, of: 3 }, length: 14 };
    let turning = lines(&column(Kind::Text, turns), 0..12);
    assert_eq!((&turning[0], &turning[2..6]), (&turning[1], &turning[8..12]));
}

/// Three of four orders have no lines.
#[test]
fn groups_with_sizes_may_have_no_rows() {
    let of = |name: &str, member: Option<Member>, sizes: &[u32]| {
        let shared = Shared { rows: 200, groups: 400, member, sizes: sizes.into() };
        let keys = Arc::new(Keys::Interval { low: 0, high: 399 });
        let pick = Pick::Shared(shared);
        let values = Values::Reference(Reference { keys, column: 0, pick, is_allowed: false });
        Column::new(name, Kind::Int4, values)
    };
    assert!(of("of", None, &[]).check().is_err());
    assert!(of("of", None, &[0, 0]).check().is_err());
    let sizes = [2, 0, 0, 0];
    let seen = lines(&table(vec![of("of", None, &sizes), of("line", Some(Member::Counted), &sizes)]), 0..200);
    let wanted: Vec<String> = (0..200).map(|row| format!("{}\t{}", row / 2 * 4, row % 2)).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn turns_go_through_all_pairs() {
    let turns = |every, of| Values::Unique(Turn { every, of });
    let table = table(vec![
        Column::new("a", Kind::Int4, turns(1, 30)),
        Column::new("b", Kind::Bool, turns(30, 2)),
        Column::new("c", Kind::Char(1), turns(60, u64::MAX)),
    ]);
    let seen: BTreeSet<String> = lines(&table, 0..30 * 2 * 36).into_iter().collect();
    assert_eq!(seen.len(), 30 * 2 * 36);
    assert!(Column::new("b", Kind::Bool, turns(1, 3)).check().is_err());
}

#[test]
fn columns_of_a_foreign_key_take_the_same_row() {
    let keys =
        Arc::new(Keys::Listed((0..50).map(|n| vec![Some(n.to_string()), Some(format!("k{n}"))]).collect()));
    let refer = |column, pick: &Pick| {
        Values::Reference(Reference {
            keys: Arc::clone(&keys),
            column,
            pick: pick.clone(),
            is_allowed: false,
        })
    };
    let random = Pick::Random { name: "fk".into() };
    let nulls = |values| Values::Nulls { fraction: 0.3, by: None, values: Box::new(values) };
    for pick in [random.clone(), Pick::InTurn(Turn { every: 2, of: 50 })] {
        let table = table(vec![
            Column::new("a", Kind::Int4, refer(0, &pick)),
            Column::new("b", Kind::Text, refer(1, &pick)),
        ]);
        let lines = lines(&table, 0..1_000);
        let keys: BTreeSet<&str> = lines.iter().map(|line| line.split_once("\tk").unwrap().0).collect();
        assert_eq!(keys.len(), 50);
        assert!(lines.iter().all(|line| line.split_once("\tk").is_some_and(|(a, b)| a == b)));
    }
    let table = table(vec![
        Column::new("a", Kind::Int4, nulls(refer(0, &random))),
        Column::new("b", Kind::Text, nulls(refer(1, &random))),
    ]);
    let count = lines(&table, 0..1_000).iter().fold(0, |count, line| {
        assert_eq!(line.starts_with("\\N\t"), line.ends_with("\t\\N"), "{line}");
        count + usize::from(line == "\\N\t\\N")
    });
    assert!((250..350).contains(&count), "{count}");
}

#[test]
fn values_spread_over_an_interval() {
    let keys = Arc::new(Keys::Interval { low: -2, high: 2 });
    let pick = Pick::Random { name: "fk".into() };
    for values in [
        Values::Between { low: -2, high: 2 },
        Values::Reference(Reference { keys, column: 0, pick, is_allowed: false }),
    ] {
        let mut counts = BTreeMap::new();
        for line in lines(&column(Kind::Int4, values), 0..5_000) {
            *counts.entry(line.parse::<i32>().unwrap()).or_insert(0) += 1;
        }
        assert!(counts.keys().eq(&[-2, -1, 0, 1, 2]), "{counts:?}");
        assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }
}

#[test]
fn the_widest_interval_has_no_edge() {
    let table = column(Kind::Int8, Values::Between { low: i64::MIN, high: i64::MAX });
    let drawn: Vec<i64> = lines(&table, 0..100).iter().map(|line| line.parse().unwrap()).collect();
    assert!(drawn.iter().any(|x| *x < 0) && drawn.iter().any(|x| *x > 0));
}

#[test]
fn columns_left_to_the_server_are_not_sent() {
    let mut table = mixed();
    table.columns[0].values = Values::Server;
    let encoder = Encoder::new(&table, Format::Text, Constants::Sent);
    assert_eq!(encoder.columns().next(), Some("group"));
    assert!(lines(&table, 0..1)[0].starts_with("1\t"));
}

#[test]
fn what_has_no_binary_form_is_told() {
    assert!(Encoder::supports(&mixed(), Format::Binary));
    assert!(!Encoder::supports(&textual(), Format::Binary));
    assert!(Encoder::supports(&textual(), Format::Text));
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_bytes(
        start in prop_oneof![0_u64..1_000, 0..u64::MAX - 1_000],
        cuts in proptest::collection::vec(0_u64..200, 0..6),
        binary: bool,
    ) {
        let (table, format) = if binary { (mixed(), Format::Binary) } else { (textual(), Format::Text) };
        let encoder = Encoder::new(&table, format, Constants::Sent);
        let (mut whole, mut chunks, mut picked) = (Vec::new(), Vec::new(), Vec::new());
        encoder.encode(start..start + 200, &mut whole);
        let mut ends = cuts;
        ends.push(200);
        ends.sort_unstable();
        let mut from = start;
        for end in ends {
            encoder.encode(from..start + end, &mut chunks);
            from = start + end;
        }
        prop_assert!(whole == chunks);
        let rows: Vec<u64> = (start..start + 200).collect();
        encoder.encode_rows(&rows, &mut picked);
        prop_assert!(whole == picked);
    }

    #[test]
    fn rows_can_be_picked_in_any_order(rows in proptest::collection::vec(0_u64..100_000, 0..50)) {
        let table = textual();
        let encoder = Encoder::new(&table, Format::Text, Constants::Sent);
        let mut picked = Vec::new();
        encoder.encode_rows(&rows, &mut picked);
        let one_by_one: Vec<u8> = rows.iter().fold(Vec::new(), |mut out, row| {
            encoder.encode(*row..*row + 1, &mut out);
            out
        });
        prop_assert!(picked == one_by_one);
    }
}
