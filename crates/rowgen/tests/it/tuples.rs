//! Tuple bodies against the COPY encoder's rows, the lengths that `Storage` tells, and one another.

use std::sync::Arc;

use proptest::prelude::*;
use rowgen::{
    Body, Column, Distribution, Keys, Kind, Payload, Pick, Precision, Reference, Storage, Stored, Table,
    TupleEncoder, Tuples, Turn, Unstorable, Values, Weighted, pgbench,
};

const HEADER: usize = 23;

fn table(columns: Vec<Column>) -> Table {
    Table { name: "t".into(), columns, rows: u64::MAX, seed: 3 }
}

fn one(kind: Kind, values: Values) -> Table {
    table(vec![Column::new("c", kind, values)])
}

fn nulls(fraction: f64, values: Values) -> Values {
    Values::Nulls { fraction, by: None, values: Box::new(values) }
}

/// The bodies of a batch: bytes, whether there are NULLs, whether there are values of varying length.
fn bodies(tuples: &Tuples) -> Vec<(Vec<u8>, bool, bool)> {
    tuples
        .bodies()
        .map(|Body { bytes, has_nulls, has_varwidth }| (bytes.to_vec(), has_nulls, has_varwidth))
        .collect()
}

fn encoded(table: &Table, rows: std::ops::Range<u64>) -> Tuples {
    let mut tuples = Tuples::new();
    TupleEncoder::new(table).unwrap().encode(rows, &mut tuples);
    tuples
}

/// The length of a row's body, from what `Storage` says of its values.
fn foretold(storage: &Storage, row: u64) -> usize {
    let stored: Vec<Stored> = storage.row(row).collect();
    let bitmap = if stored.contains(&Stored::Null) { stored.len().div_ceil(8) } else { 0 };
    let attributes = stored.iter().fold(0, |end: u32, stored| match stored {
        Stored::Null => end,
        Stored::Fixed { length, align } | Stored::Varying { length, align } => {
            end.next_multiple_of(*align) + length
        }
    });
    (HEADER + bitmap).next_multiple_of(8) - HEADER + attributes as usize
}

fn numeric(precision: u16, scale: i16) -> Kind {
    Kind::Numeric(Some(Precision { precision, scale }))
}

fn scalar() -> impl Strategy<Value = Kind> {
    let plain = prop::sample::select(vec![
        Kind::Bool,
        Kind::Int2,
        Kind::Int4,
        Kind::Int8,
        Kind::Float4,
        Kind::Float8,
        Kind::Numeric(None),
        Kind::Money,
        Kind::Text,
        Kind::Varchar(None),
        Kind::Name,
        Kind::Bytea,
        Kind::Date,
        Kind::Time,
        Kind::TimeTz,
        Kind::Timestamp,
        Kind::TimestampTz,
        Kind::Interval,
        Kind::Uuid,
        Kind::Json,
        Kind::Jsonb,
        Kind::Xml,
        Kind::Inet,
        Kind::Cidr,
        Kind::Macaddr,
        Kind::Macaddr8,
        Kind::Varbit(None),
        Kind::Point,
        Kind::Line,
        Kind::Lseg,
        Kind::Box,
        Kind::Path,
        Kind::Polygon,
        Kind::Circle,
        Kind::Oid,
        Kind::PgLsn,
    ]);
    prop_oneof![
        8 => plain,
        1 => (1_u16..300, 0_u16..300).prop_map(|(precision, scale)| {
            numeric(precision.max(scale), i16::try_from(scale).unwrap())
        }),
        1 => (1_u32..300).prop_map(Kind::Char),
        1 => (1_u32..300).prop_map(|length| Kind::Varchar(Some(length))),
        1 => (1_u32..300).prop_map(Kind::Bit),
        1 => (1_u32..300).prop_map(|length| Kind::Varbit(Some(length))),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => scalar(), 1 => scalar().prop_map(|kind| Kind::Array(Box::new(kind)))]
}

fn values(kind: &Kind) -> BoxedStrategy<Values> {
    let mut fitting = vec![Values::Any, Values::Null];
    if let Some(units) = kind.units() {
        fitting.push(Values::Serial { start: units.low, step: 1 });
        fitting.push(Values::Serial { start: units.high, step: -1 });
        fitting.push(Values::Between { low: units.low, high: units.high });
        fitting.push(Values::Drawn(Distribution::Normal { mean: 0.0, sd: 1_000.0 }));
    }
    if let Some(distinct) = kind.distinct() {
        fitting.push(Values::Unique(Turn { every: 1, of: distinct }));
    }
    let payload = |low, high| Values::Payload { payload: Payload::Random, low, high };
    match kind {
        Kind::Text | Kind::Varchar(None) | Kind::Bytea => {
            fitting.extend([payload(0, 300), payload(120, 130), payload(300, 300), payload(126, 126)]);
            fitting.extend([14, 26, 126, 127, 300].map(|length| Values::unique(kind, Turn::EACH, length)));
        }
        Kind::Char(length) | Kind::Varchar(Some(length)) => {
            fitting.extend([payload(0, *length), payload(*length, *length)]);
            fitting.push(Values::unique(kind, Turn { every: 1, of: 30 }, *length));
        }
        _ => {}
    }
    let values = prop::sample::select(fitting);
    (values, prop::bool::weighted(0.3))
        .prop_map(|(values, nullable)| if nullable { nulls(0.4, values) } else { values })
        .boxed()
}

fn any_table() -> impl Strategy<Value = Table> {
    let column = kind().prop_flat_map(|kind| (Just(kind.clone()), values(&kind)));
    (prop::collection::vec(column, 1..20), any::<u64>()).prop_map(|(columns, seed)| {
        let column = |(number, (kind, values))| Column::new(&format!("c{number}"), kind, values);
        Table { columns: columns.into_iter().enumerate().map(column).collect(), seed, ..table(vec![]) }
    })
}

proptest! {
    #[test]
    fn lengths_are_those_foretold(table in any_table(), start in 0_u64..1_000_000) {
        let encoder = TupleEncoder::new(&table).unwrap();
        let storage = Storage::new(&table);
        let tuples = encoded(&table, start..start + 50);
        prop_assert_eq!(tuples.len(), 50);
        for (body, row) in tuples.bodies().zip(start..) {
            let length = u32::try_from(body.bytes.len()).unwrap();
            prop_assert_eq!(body.bytes.len(), foretold(&storage, row));
            prop_assert!(length <= encoder.longest());
            prop_assert!(encoder.fixed_length().is_none_or(|fixed| fixed == length && fixed == encoder.longest()));
            prop_assert_eq!(body.has_nulls, storage.row(row).any(|stored| stored == Stored::Null));
            let varying = storage.row(row).any(|stored| matches!(stored, Stored::Varying { .. }));
            prop_assert_eq!(body.has_varwidth, varying);
        }
    }

    #[test]
    fn ranges_concatenate_and_rows_can_be_picked(table in any_table(), cut in 0_u64..100) {
        let encoder = TupleEncoder::new(&table).unwrap();
        let whole = bodies(&encoded(&table, 0..100));
        let mut parts = Tuples::new();
        encoder.encode(0..cut, &mut parts);
        encoder.encode(cut..100, &mut parts);
        prop_assert!(bodies(&parts) == whole);
        prop_assert_eq!(parts.bytes(), whole.iter().map(|(bytes, ..)| bytes.len()).sum::<usize>());

        let picked = [cut, 99 - cut, cut, 7];
        parts.clear();
        prop_assert!(parts.is_empty());
        encoder.encode_rows(&picked, &mut parts);
        let expected: Vec<_> =
            picked.iter().map(|row| whole[usize::try_from(*row).unwrap()].clone()).collect();
        prop_assert!(bodies(&parts) == expected);
    }

    #[test]
    fn literals_are_stored_as_what_they_say(number in any::<i32>(), days in 0_i64..9_000) {
        // A list of one text gives the same bytes as the number itself.
        let listed = |text: String| Values::List(vec![Weighted { value: text, weight: 1.0 }]);
        for kind in [Kind::Int4, Kind::Int8, Kind::Numeric(None), numeric(12, 0), Kind::Float8] {
            let units = if kind == Kind::Numeric(None) { i64::from(number) * 1_000_000 } else { i64::from(number) };
            let by_units = one(kind.clone(), Values::Between { low: units, high: units });
            let by_text = one(kind, listed(number.to_string()));
            prop_assert!(bodies(&encoded(&by_units, 0..2)) == bodies(&encoded(&by_text, 0..2)));
        }
        let date = jiff::civil::date(2000, 1, 1).checked_add(jiff::Span::new().days(days)).unwrap();
        let by_text = one(Kind::Date, listed(date.to_string()));
        let by_units = one(Kind::Date, Values::Between { low: days, high: days });
        prop_assert!(bodies(&encoded(&by_units, 0..2)) == bodies(&encoded(&by_text, 0..2)));
    }
}

#[test]
fn pgbench_s_accounts_are_of_one_length() {
    for payload in [Payload::Blank, Payload::Random] {
        let accounts = pgbench::accounts(1_000_000, 10, payload);
        let encoder = TupleEncoder::new(&accounts).unwrap();
        assert_eq!((encoder.fixed_length(), encoder.longest(), encoder.attributes()), (Some(98), 98, 4));
    }
    let accounts = encoded(&pgbench::accounts(1_000_000, 10, Payload::Blank), 99_999..100_001);
    let mut expected = vec![0];
    for number in [100_000_i32, 1, 0] {
        expected.extend(number.to_le_bytes());
    }
    expected.push(85 << 1 | 1);
    expected.resize(98, b' ');
    let seen = bodies(&accounts);
    assert_eq!(seen[0], (expected.clone(), false, true));
    expected[1..5].copy_from_slice(&100_001_i32.to_le_bytes());
    expected[5..9].copy_from_slice(&2_i32.to_le_bytes());
    assert_eq!(seen[1].0, expected);
    // The filler is NULL in every row: a bitmap of 1 byte, 12 bytes of integers.
    let tellers = encoded(&pgbench::tellers(1), 0..10);
    assert!(bodies(&tellers).iter().all(|(bytes, nulls, varwidth)| {
        (bytes.len(), bytes[0], *nulls, *varwidth) == (1 + 12, 0b0111, true, false)
    }));
}

#[test]
fn what_only_the_server_can_write_is_refused_by_name() {
    let refused = |kind: Kind, values: Values| TupleEncoder::new(&one(kind, values)).unwrap_err().to_string();
    let labels = vec!["new".to_owned()];
    let mood = Kind::Enum { name: "mood".into(), labels, oids: Vec::new(), oid: 0 };
    let texts = Kind::Range { name: "texts".into(), oid: 0, element: Box::new(Kind::Text) };
    let holder = Kind::Composite { name: "holder".into(), oid: 0, fields: vec![Kind::Int4, texts.clone()] };
    assert_eq!(refused(holder, Values::Any), "c has type holder, which pgrig writes by COPY only");
    let weekday = Values::Cycle(vec!["new".into(), "old".into()]);
    assert_eq!(
        refused(mood.clone(), weekday),
        "c has the value 'old', which only the server can read as mood, so it needs COPY"
    );
    assert_eq!(
        refused(Kind::Array(Box::new(texts)), nulls(0.5, Values::Any)),
        "c has type texts[], which pgrig writes by COPY only"
    );
    assert_eq!(
        refused(Kind::Int4, Values::Server),
        "the server makes the values of c (default, identity or generated), which needs COPY"
    );
    assert_eq!(
        refused(Kind::Date, Values::Cycle(vec!["2024-02-29".into(), "tomorrow".into()])),
        "c has the value 'tomorrow', which only the server can read as date, so it needs COPY"
    );
    // NULLs need no form.
    assert_eq!(encoded(&one(mood, Values::Null), 0..1).bodies().next().unwrap().bytes, [0]);
}

fn pair() -> Kind {
    Kind::Composite { name: "pair".into(), oid: 0, fields: vec![Kind::Int4, Kind::Text] }
}

#[test]
fn values_that_the_server_would_refuse_or_change_are_left_to_it() {
    let range = |element| Kind::Range { name: "r".into(), oid: 0, element: Box::new(element) };
    for (kind, text) in [
        (Kind::Int2, "32768"),
        (Kind::Int4, " 1"),
        (Kind::Int4, "1_000"),
        (Kind::Oid, "-1"),
        (Kind::Float4, "1e300"),
        (Kind::Float8, "nan"),
        (Kind::Numeric(None), "1e3"),
        (numeric(4, 2), "100"),
        (numeric(4, 2), "0.001"),
        (Kind::Bool, "yes"),
        (Kind::Varchar(Some(3)), "four"),
        (Kind::Char(3), "abc "),
        (Kind::Text, "nul\0"),
        (Kind::Bytea, "\\000"),
        (Kind::Bytea, "\\x0"),
        (Kind::Date, "2023-02-29"),
        (Kind::Date, "1/2/2024"),
        (Kind::Time, "24:00:00"),
        (Kind::TimestampTz, "2024-01-01 00:00:00"),
        (Kind::Uuid, "not one"),
        (Kind::Cidr, "10.0.0.1/8"),
        (Kind::Inet, "10.0.0.1/33"),
        (Kind::Bit(3), "01"),
        (Kind::Varbit(Some(3)), "0101"),
        (Kind::Json, "{"),
        (Kind::Json, "{\"a\": \"\\u0000\"}"),
        (Kind::Jsonb, "[1,]"),
        (Kind::Jsonb, "[01]"),
        (Kind::Jsonb, "[-.5]"),
        (Kind::Jsonb, "[1e3]"),
        (Kind::Jsonb, "[\"a\"] x"),
        (Kind::Jsonb, "{\"a\": 1, \"a\": 2}"),
        (Kind::Xml, "<a/>"),
        (Kind::Line, "{0,0,1}"),
        (Kind::Circle, "<(1,2),-3>"),
        (Kind::Point, "1,2"),
        (Kind::Array(Box::new(Kind::Int4)), "{1,NULL}"),
        (Kind::Array(Box::new(Kind::Int4)), "{{1},{2}}"),
        (Kind::Array(Box::new(Kind::Int4)), "{1,}"),
        (range(Kind::Int4), "Empty"),
        (range(Kind::Int4), "[1,1)"),
        (range(Kind::Int4), "[1,2]"),
        (range(Kind::Date), "(2024-01-01,2024-01-03)"),
        (range(Kind::Float8), "[2,1)"),
        (range(Kind::Int4), "[1,2) "),
        (Kind::TsVector, "'it''s'"),
        (Kind::TsVector, "'a':1A"),
        (Kind::TsVector, "a:0"),
        (Kind::TsQuery, "a & !b"),
        (Kind::TsQuery, "a & "),
        (pair(), "(1)"),
        (pair(), "(x,y)"),
        (pair(), "(1,y) "),
    ] {
        let error = TupleEncoder::supports(&one(kind.clone(), Values::Text(text.into()))).unwrap_err();
        assert!(matches!(error, Unstorable::Literal { .. }), "{} {text}: {error}", kind.sql());
    }
}

#[test]
#[should_panic(expected = "no value for row 108")]
fn there_is_no_unique_value_past_the_last() {
    encoded(&one(Kind::Varchar(Some(1)), Values::Unique(Turn { every: 3, of: u64::MAX })), 100..109);
}

#[test]
fn keys_can_be_referenced() {
    let keys = Arc::new(Keys::Listed(vec![
        vec![Some("7".into()), Some("a".into())],
        vec![Some("-9".into()), Some("bc".into())],
    ]));
    let reference = |column| {
        let pick = Pick::InTurn(Turn::EACH);
        Values::Reference(Reference { keys: Arc::clone(&keys), column, pick, is_allowed: false })
    };
    let table =
        table(vec![Column::new("a", Kind::Int8, reference(0)), Column::new("b", Kind::Text, reference(1))]);
    let seen = encoded(&table, 0..2);
    let seen = bodies(&seen);
    assert_eq!(seen[0].0, [&[0][..], &7_i64.to_le_bytes(), &[2 << 1 | 1, b'a']].concat());
    assert_eq!(seen[1].0, [&[0][..], &(-9_i64).to_le_bytes(), &[3 << 1 | 1, b'b', b'c']].concat());
}
