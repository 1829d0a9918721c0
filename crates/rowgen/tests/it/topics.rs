//! Values that look like what a column is about.

use std::collections::BTreeSet;

use rowgen::{Column, Constants, Encoder, Format, Kind, Precision, Table, TupleEncoder, Tuples};

/// One column for each topic, by its specification.
fn columns() -> Vec<Column> {
    let numeric = Kind::Numeric(Some(Precision { precision: 8, scale: 2 }));
    let texts = [
        "email",
        "user-name",
        "first-name",
        "last-name",
        "full-name",
        "company",
        "city",
        "country",
        "country-code",
        "street",
        "postcode",
        "phone",
        "url",
        "domain",
        "ip",
        "currency",
        "sku",
        "title",
        "sentence",
    ];
    let numbers = [
        ("latitude", Kind::Float8),
        ("longitude", Kind::Numeric(None)),
        ("price", numeric),
        ("percent", Kind::Int2),
        ("age", Kind::Int4),
        ("year", Kind::Int2),
    ];
    let texts = texts.into_iter().map(|word| (word, Kind::Text));
    texts.chain(numbers).map(|(word, kind)| column(word, kind)).collect()
}

fn column(spec: &str, kind: Kind) -> Column {
    let values = spec.parse::<rowgen::Spec>().unwrap().values(&kind, None).unwrap();
    Column::new(spec, kind, values)
}

fn table(columns: Vec<Column>) -> Table {
    Table { name: "t".into(), columns, rows: u64::MAX, seed: 3 }
}

fn lines(table: &Table, rows: std::ops::Range<u64>) -> Vec<String> {
    let mut out = Vec::new();
    Encoder::new(table, Format::Text, Constants::Sent).encode(rows, &mut out);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

/// If this changes, so must the number in the recorded name of `Values::Topic`.
#[test]
fn values_of_a_seed_stay_the_same() {
    let row = &lines(&table(columns()), 41..42)[0];
    assert_eq!(row.split('\t').collect::<Vec<_>>(), EXPECTED);
}

const EXPECTED: [&str; 25] = [
    "samir.kozey@example.org",
    "britneywelch26",
    "Noemi",
    "Nolan",
    "Casimir Kshlerin",
    "Wolf Inc",
    "Welchmouth",
    "Norfolk Island",
    "SY",
    "814 Ruecker Lodge",
    "68288",
    "+1-927-555-5952",
    "https://www.example.net/archive/1100",
    "batz.example.com",
    "10.226.189.74",
    "RUB",
    "BCU-175202",
    "Function-based structure",
    "Still used part the in that later as with to been before.",
    "-47.733706",
    "-122.943233",
    "914.00",
    "0",
    "75",
    "1990",
];

#[test]
fn texts_never_exceed_the_column() {
    for column in columns().into_iter().filter(|column| column.kind == Kind::Text) {
        let mut fitting = 0;
        for length in 1..80 {
            for unique in ["", "(unique)"] {
                let kind = Kind::Varchar(Some(length));
                let Ok(spec) = format!("{}{unique}", column.name).parse::<rowgen::Spec>() else { continue };
                let Ok(values) = spec.values(&kind, None) else { continue };
                let table = table(vec![Column::new("c", kind, values)]);
                for line in lines(&table, 0..300)
                    .into_iter()
                    .chain(lines(&table, 9_999_999_999_000..9_999_999_999_100))
                {
                    assert!(
                        line.len() <= length as usize && !line.is_empty(),
                        "{} {length}: {line}",
                        column.name
                    );
                }
                fitting += 1;
            }
        }
        assert!(fitting > 50, "{} suits {fitting} lengths only", column.name);
    }
}

#[test]
fn unique_values_differ() {
    for word in ["email", "user-name", "url", "domain", "sku"] {
        let table = table(vec![column(&format!("{word}(unique)"), Kind::Varchar(Some(45)))]);
        let values = lines(&table, 0..50_000);
        let folded: BTreeSet<String> = values.iter().map(|value| value.to_lowercase()).collect();
        assert_eq!(folded.len(), values.len(), "{word}");
    }
}

#[test]
fn numbers_stay_in_their_range() {
    let kinds = [
        Kind::Int2,
        Kind::Int4,
        Kind::Int8,
        Kind::Float4,
        Kind::Float8,
        Kind::Money,
        Kind::Numeric(None),
        Kind::Numeric(Some(Precision { precision: 10, scale: 7 })),
        Kind::Numeric(Some(Precision { precision: 5, scale: 0 })),
    ];
    for (word, low, high) in [
        ("latitude", -90.0, 90.0),
        ("longitude", -180.0, 180.0),
        ("price", 1.0, 1_000.0),
        ("percent", 0.0, 100.0),
    ] {
        for kind in &kinds {
            let table = table(vec![column(word, kind.clone())]);
            for line in lines(&table, 0..2_000) {
                let number: f64 = line.parse().unwrap();
                assert!((low..=high).contains(&number), "{word} as {}: {line}", kind.sql());
            }
        }
    }
}

/// Bodies of tuples hold the text that COPY sends.
#[test]
fn encoders_agree() {
    let columns: Vec<Column> = columns().into_iter().filter(|column| column.kind == Kind::Text).collect();
    for column in columns {
        let name = column.name.clone();
        let table = table(vec![column]);
        let encoder = Encoder::new(&table, Format::Binary, Constants::Sent);
        let mut binary = Vec::new();
        encoder.encode(0..500, &mut binary);
        let mut rest = &binary[..];
        for line in lines(&table, 0..500) {
            let length = u32::from_be_bytes(rest[2..6].try_into().unwrap()) as usize;
            assert_eq!(&rest[6..6 + length], line.as_bytes(), "{name}");
            rest = &rest[6 + length..];
        }
        assert_eq!(rest.len(), 0, "{name}");
        let mut tuples = Tuples::new();
        let encoder = TupleEncoder::new(&table).unwrap();
        encoder.encode(0..500, &mut tuples);
        for (body, line) in tuples.bodies().zip(lines(&table, 0..500)) {
            assert!(body.bytes.ends_with(line.as_bytes()), "{name}");
            assert!(body.bytes.len() <= encoder.longest() as usize, "{name}");
        }
    }
}

#[test]
fn what_does_not_suit_is_refused() {
    for (spec, kind) in [
        ("email", Kind::Int4),
        ("email", Kind::Varchar(Some(10))),
        ("price", Kind::Text),
        ("latitude", Kind::Date),
    ] {
        let values = spec.parse::<rowgen::Spec>().unwrap().values(&kind, None);
        assert!(values.is_err(), "{spec} for {}", kind.sql());
    }
    for spec in ["city(unique)", "email(3)"] {
        let values = spec.parse::<rowgen::Spec>().and_then(|spec| spec.values(&Kind::Text, None));
        assert!(values.is_err(), "{spec}");
    }
}
