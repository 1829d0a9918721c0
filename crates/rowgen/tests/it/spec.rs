//! Column specifications: what they mean, and what is said about wrong ones.

use rowgen::{
    Column, ColumnSpec, Constants, Distribution, Encoder, Format, Keys, Kind, Payload, Pick, Precision,
    Reference, Table, Turn, Values, Weighted,
};

const PRICE: Kind = Kind::Numeric(Some(Precision { precision: 8, scale: 2 }));

fn values(kind: &Kind, spec: &str) -> Values {
    match format!("c={spec}").parse().map(|spec: ColumnSpec| spec.spec.values(kind, None)) {
        Ok(Ok(values)) => values,
        wrong => panic!("{spec}: {wrong:?}"),
    }
}

fn error(kind: &Kind, spec: &str) -> String {
    let parsed: Result<ColumnSpec, _> = format!("c={spec}").parse();
    match parsed.and_then(|spec| spec.spec.values(kind, None)) {
        Ok(values) => panic!("{spec} is {values:?}"),
        Err(error) => error.to_string(),
    }
}

/// The first rows as COPY's text.
fn rows(kind: &Kind, spec: &str) -> Vec<String> {
    let column = Column::new("c", kind.clone(), values(kind, spec));
    let table = Table { name: "t".into(), columns: vec![column], rows: u64::MAX, seed: 0 };
    let mut out = Vec::new();
    Encoder::new(&table, Format::Text, Constants::Sent).encode(0..1_000, &mut out);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn numbers_are_in_the_type_s_units() {
    assert_eq!(values(&Kind::Int4, "serial"), Values::SERIAL);
    assert_eq!(values(&Kind::Int8, "serial(100, -2)"), Values::Serial { start: 100, step: -2 });
    assert_eq!(values(&PRICE, "uniform(1,999.99)"), Values::Between { low: 100, high: 99_999 });
    assert_eq!(
        values(&PRICE, "normal(10,2.5)"),
        Values::Drawn(Distribution::Normal { mean: 1e3, sd: 250.0 })
    );
    let uniform = Distribution::Uniform { low: -0.5, high: 1e3 };
    assert_eq!(values(&Kind::Float8, "uniform(-0.5,1e3)"), Values::Drawn(uniform));
    assert_eq!(values(&Kind::Int4, "zipf(10)"), Values::Drawn(Distribution::Zipf { n: 10, s: 1.0 }));
    assert_eq!(values(&Kind::Bool, "uniform(false,true)"), Values::Between { low: 0, high: 1 });
    assert_eq!(values(&Kind::PgLsn, "shuffle(0/0,1/0)"), Values::Shuffle { low: 0, high: 1 << 32 });
}

#[test]
fn times_have_steps_and_spans() {
    assert_eq!(
        rows(&Kind::TimestampTz, "timeseries(2024-02-29, 1s)")[..2],
        ["2024-02-29 00:00:00+00", "2024-02-29 00:00:01+00"]
    );
    assert_eq!(
        rows(&Kind::Timestamp, "timeseries(2024-01-01 12:30:00, 90m)")[1..3],
        ["2024-01-01 14:00:00", "2024-01-01 15:30:00"]
    );
    assert_eq!(rows(&Kind::Timestamp, "timeseries(1999-12-31, 250ms)")[1], "1999-12-31 00:00:00.250000");
    assert_eq!(rows(&Kind::Date, "timeseries(2024-12-31, 1w)")[..2], ["2024-12-31", "2025-01-07"]);
    let times = rows(&Kind::Time, "timeseries(23:59:58, 1s)");
    assert_eq!(times[..3], ["23:59:58", "23:59:59", "23:59:58"], "begins again");
    assert_eq!(rows(&Kind::Interval, "timeseries(1d 2h, 1us)")[1], "26:00:00.000001");
    for day in rows(&Kind::Date, "uniform(2024-02-28, 2024-03-01)") {
        assert!(["2024-02-28", "2024-02-29", "2024-03-01"].contains(&&*day), "{day}");
    }
}

/// As the server counts: `SELECT date '20010-02-28' - date '2000-01-01'`.
#[test]
fn dates_and_intervals_are_those_of_the_server() {
    for date in ["0001-01-01", "9999-12-30", "9999-12-31", "10000-01-01", "20010-02-28", "294276-12-31"] {
        assert_eq!(rows(&Kind::Date, &format!("timeseries({date}, 1d)"))[0], date);
        let time = format!("{date} 23:59:59.000001");
        assert_eq!(rows(&Kind::Timestamp, &format!("timeseries({time}, 1d)"))[0], time);
        let common = format!("statistics(1,0,common('{time}+00'*1),histogram())");
        assert_eq!(rows(&Kind::TimestampTz, &common)[0], format!("{time}+00"));
    }
    for (text, written) in [
        ("1 mon", "720:00:00"),
        ("-1 years -2 mons +3 days 04:05:06.7", "-10003:54:53.300000"),
        ("-7 days", "-168:00:00"),
        ("-00:00:01.5", "-00:00:01.500000"),
        ("100:00:00", "100:00:00"),
    ] {
        let common = format!("statistics(1,0,common('{text}'*1),histogram())");
        assert_eq!(rows(&Kind::Interval, &common)[0], written, "{text}");
    }
    let endless = "statistics(2,1,common('-infinity'*0.5,infinity*0.5),histogram())";
    for kind in [Kind::Date, Kind::Timestamp, Kind::TimestampTz] {
        let mut rows = rows(&kind, endless);
        rows.sort();
        rows.dedup();
        assert_eq!(rows, ["-infinity", "infinity"]);
    }
}

#[test]
fn lists() {
    let weighted = |value: &str, weight| Weighted { value: value.into(), weight };
    assert_eq!(
        values(&Kind::Text, "list(red*3, 'green, *2', it''s , (1,2)*0.5)"),
        Values::List(vec![
            weighted("red", 3.0),
            weighted("green, *2", 1.0),
            weighted("it''s", 1.0),
            weighted("(1,2)", 0.5)
        ])
    );
    let drawn = rows(&Kind::Text, "list(a*8,b,c)");
    let share = drawn.iter().filter(|value| *value == "a").count();
    assert!((750..850).contains(&share), "{share}");
    assert_eq!(rows(&Kind::Text, "cycle('it''s', b)")[..3], ["it's", "b", "it's"]);
    let nulls = rows(&Kind::Int4, "nulls(0.25, constant(7))");
    let share = nulls.iter().filter(|value| *value == "\\N").count();
    assert!((200..300).contains(&share), "{share}");
    assert!(nulls.iter().all(|value| ["\\N", "7"].contains(&&**value)));
}

#[test]
fn the_rest() {
    assert_eq!(values(&Kind::Text, "Any"), Values::Any);
    assert_eq!(values(&Kind::Uuid, " unique() "), Values::Unique(Turn::EACH));
    assert_eq!(values(&Kind::Json, r#"constant('{"a": [1, 2]}')"#), Values::Text(r#"{"a": [1, 2]}"#.into()));
    assert_eq!(values(&Kind::Point, "null"), Values::Null);
    assert_eq!(values(&Kind::Point, "default"), Values::Server);
    let payload = Values::Payload { payload: Payload::Random, low: 10, high: 20 };
    assert_eq!(values(&Kind::Bytea, "random(10,20)"), payload);
}

#[test]
fn columns_in_a_chain_ascend() {
    let of = |low: u32| format!("statistics(-1,0,common(),histogram({low},{}))", low + 1_000);
    let paid = format!("greater('placed',{},{})", of(0), of(100));
    let numbers = |name: &str, spec: &str| -> Vec<i64> {
        let column = Column::new(name, Kind::Int4, values(&Kind::Int4, spec));
        let table = Table { name: "t".into(), columns: vec![column], rows: 1_000, seed: 0 };
        let mut out = Vec::new();
        Encoder::new(&table, Format::Text, Constants::Sent).encode(0..1_000, &mut out);
        String::from_utf8(out).unwrap().lines().map(|line| line.parse().unwrap()).collect()
    };
    // Two columns are above the same one.
    let seen = numbers("seen", &format!("above('placed',lesser('paid',{},{}),{})", of(100), of(0), of(0)));
    let placed = numbers("placed", &format!("lesser('paid',{},{})", of(100), of(0)));
    let sent = numbers("sent", &format!("above('paid',{paid},{})", of(200)));
    let paid = numbers("paid", &paid);
    assert!(placed.iter().zip(&paid).all(|(placed, paid)| placed <= paid));
    assert!(paid.iter().zip(&sent).all(|(paid, sent)| paid < sent));
    assert!(placed.iter().zip(&seen).all(|(placed, seen)| placed < seen));
}

#[test]
fn few_bits_have_as_many_values_as_are_wanted() {
    let different = |kind: &Kind, spec: &str| {
        let mut rows = rows(kind, spec);
        rows.sort_unstable();
        rows.dedup();
        rows.len()
    };
    for wanted in [1, 5, 8] {
        assert_eq!(different(&Kind::Bit(3), &format!("repeated({wanted},0,common(),any)")), wanted);
    }
    assert!(different(&Kind::Bit(10), "repeated(200,0,common(),any)") > 190);
    // No more than there are.
    assert!(different(&Kind::Bit(3), "repeated(9,0,common(),any)") <= 8);
}

#[test]
fn columns_may_be_quoted() {
    let column = |text: &str| text.parse::<ColumnSpec>().unwrap().column;
    assert_eq!(column("price = any"), "price");
    assert_eq!(column(r#""a=""b" =any"#), "a=\"b");
    assert!("price".parse::<ColumnSpec>().unwrap_err().to_string().contains("column=specification"));
    assert!("=any".parse::<ColumnSpec>().is_err());
}

#[test]
fn references_are_resolved_elsewhere() {
    let spec: ColumnSpec = "c=nulls(0.5, reference(orders.id))".parse().unwrap();
    assert_eq!(spec.spec.reference(), Some("orders.id"));
    let keys = Keys::Interval { low: 1, high: 9 }.into();
    let reference =
        Reference { keys, column: 0, pick: Pick::Random { name: "fk".into() }, is_allowed: false };
    let expected =
        Values::Nulls { fraction: 0.5, by: None, values: Box::new(Values::Reference(reference.clone())) };
    assert_eq!(spec.spec.values(&Kind::Int4, Some(&reference)), Ok(expected));
    assert!(spec.spec.values(&Kind::Int4, None).unwrap_err().to_string().contains("orders.id"));
}

#[test]
fn errors_name_what_is_wrong_and_what_is_allowed() {
    let mood =
        Kind::Enum { name: "mood".into(), labels: vec!["sad".into(), "ok".into()], oids: Vec::new(), oid: 0 };
    for (kind, spec, parts) in [
        (&Kind::Int4, "unifrom(1,2)", ["\"unifrom\"", "uniform, normal"]),
        (&Kind::Int4, "uniform(1)", ["uniform takes", "(low,high)"]),
        (&Kind::Int4, "uniform(1,2", ["uniform(1,2", "last character should be )"]),
        (&Kind::Int4, "list('a)", ["list('a)", "quote is not closed"]),
        (&Kind::Int4, "uniform(1,x)", ["\"x\"", "whole number that int can hold"]),
        (&Kind::Int2, "uniform(1,40000)", ["uniform of smallint", "range"]),
        (&Kind::Int4, "uniform(2,1)", ["uniform of int", "low end is above"]),
        (&PRICE, "uniform(1,9.999)", ["\"9.999\"", "at most 2 decimals"]),
        (&Kind::Int4, "timeseries(1,1s)", ["timeseries does not suit int", "dates and times"]),
        (&Kind::Date, "timeseries(2024-01-01,1s)", ["\"1s\"", "a number of days"]),
        (&Kind::Timestamp, "timeseries(2024-13-01,1s)", ["\"2024-13-01\"", "a date or a time"]),
        (&Kind::Timestamp, "timeseries(2024-12-01,1)", ["\"1\"", "a time span"]),
        (&Kind::Int4, "text(10)", ["text does not suit int", "varchar"]),
        (&Kind::Varchar(Some(5)), "random(6)", ["random of varchar(5)", "length 6"]),
        (&Kind::Point, "unique", ["unique does not suit point", "unique index"]),
        (&Kind::Json, "serial", ["serial does not suit json", "numbers"]),
        (&mood, "uniform(sad,happy)", ["\"happy\"", "sad, ok"]),
        (&Kind::Int4, "nulls(2,any)", ["nulls of int", "0 to 1"]),
        (&Kind::Int4, "nulls(2)", ["\"2\" is not", "0 to 1"]),
        (&Kind::Int4, "nulls(0.1)", ["nulls takes", "specification"]),
        (&Kind::Int4, "nulls(0.1,default)", ["nulls of int", "default"]),
        (&Kind::Int4, "list(1*-2)", ["list of int", "weight"]),
        (&Kind::Int4, "zipf(0)", ["zipf of int", "at least 1"]),
    ] {
        let message = error(kind, spec);
        for part in parts {
            assert!(message.contains(part), "{spec}: {message}");
        }
    }
}

/// The correlation of row number and value.
fn with_rows(spec: &str) -> f64 {
    const ROWS: u32 = 400;
    let columns = vec![Column::new("b", Kind::Int8, values(&Kind::Int8, spec))];
    let table = Table { name: "t".into(), columns, rows: ROWS.into(), seed: 3 };
    let mut out = Vec::new();
    Encoder::new(&table, Format::Text, Constants::Sent).encode(0..ROWS.into(), &mut out);
    let text = String::from_utf8(out).unwrap();
    let mut made: Vec<(i64, u32)> = text.lines().map(|line| line.parse().unwrap()).zip(0..).collect();
    made.sort_unstable();
    let mean = f64::from(ROWS - 1) / 2.0;
    let sum: f64 = made
        .iter()
        .zip(0_u32..)
        .map(|((_, row), at)| (f64::from(*row) - mean) * (f64::from(at) - mean))
        .sum();
    sum * 12.0 / f64::from(ROWS * (ROWS * ROWS - 1))
}

#[test]
fn few_rows_of_a_column_that_follows_another_one_have_its_own_correlation() {
    let statistics = "statistics(-1,1,common(),histogram(0,499999999,1000000000))";
    let of = |links: &str| with_rows(&format!("ranked('a',rows(0.6,1*400),0,links({links}),{statistics})"));
    for (links, wanted) in [
        ("", 0.6),
        ("normal('b',0.7,0,0,rows(-0.1,1*400))", -0.1),
        ("cells('b',line(0,0.5),line(0,0.5),pairs(0:0*0.3,0:1*0.2,1:0*0.2,1:1*0.3),rows(0.35,1*400))", 0.35),
    ] {
        let found = of(links);
        assert!((found - wanted).abs() < 0.01, "{links}: {found}");
    }
}

/// Half of the rows have NULL, nearly all of them in the first half of the table, which has the lower values: the other rows have all
/// values nevertheless.
#[test]
fn rows_without_null_have_all_values() {
    const ROWS: u64 = 40_000;
    let by = "by('a',1,0,links(cells('c IS NULL',line(0,0.5),line(0.5),pairs(0:1*0.48))))";
    let statistics =
        |correlation: f64| format!("statistics(-1,{correlation},common(),histogram(0,499999999,1000000000))");
    for (order, is_sorted) in [
        (statistics(1.0), true),
        (statistics(0.9), false),
        (format!("ranked('a',1,0,links(),{})", statistics(1.0)), true),
    ] {
        let values = values(&Kind::Int8, &format!("nulls(0.5,{order},{by})"));
        let columns = vec![Column::new("c", Kind::Int8, values)];
        let table = Table { name: "t".into(), columns, rows: ROWS, seed: 0 };
        let mut out = Vec::new();
        Encoder::new(&table, Format::Text, Constants::Sent).encode(0..ROWS, &mut out);
        let text = String::from_utf8(out).unwrap();
        let mut made: Vec<i64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        assert!((19_990..=20_010).contains(&made.len()), "{order}: {}", made.len());
        assert_eq!(made.is_sorted(), is_sorted, "{order}");
        let tenth = |value: i64| usize::try_from(value / 100_000_000).unwrap().min(9);
        let mut tenths = [0; 10];
        for value in &made {
            tenths[tenth(*value)] += 1;
        }
        assert!(tenths.iter().all(|count| (1_850..2_150).contains(count)), "{order}: {tenths:?}");
        made.sort_unstable();
        made.dedup();
        assert!(made.len() > 19_900, "{order}: {}", made.len());
    }
}
