//! One encoder checked through the other, and chunks against the whole.

use proptest::prelude::*;
use rowgen::{Constants, Encoder, Format, Kind, Payload, Table, Values, pgbench};

/// Fields of a row; `None` is NULL.
type Row = Vec<Option<String>>;

fn encoded(table: &Table, format: Format, constants: Constants) -> Vec<u8> {
    let encoder = Encoder::new(table, format, constants);
    let mut bytes = encoder.header().to_vec();
    encoder.encode(0..table.rows, &mut bytes);
    bytes.extend(encoder.trailer());
    bytes
}

fn parse_text(bytes: &[u8]) -> Vec<Row> {
    let unescape = |field: &str| {
        (field != "\\N").then(|| {
            field.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\")
        })
    };
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| line.split('\t').map(unescape).collect()).collect()
}

/// Reads the binary format as its documentation describes it.
fn parse_binary(mut bytes: &[u8], kinds: &[Kind]) -> Vec<Row> {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (head, rest) = bytes.split_at(count);
        *bytes = rest;
        head
    }
    assert_eq!(take(&mut bytes, 11), b"PGCOPY\n\xff\r\n\0");
    assert_eq!(take(&mut bytes, 8), [0; 8]);
    let mut rows = Vec::new();
    loop {
        let count = i16::from_be_bytes(take(&mut bytes, 2).try_into().unwrap());
        if count == -1 {
            assert!(bytes.is_empty(), "nothing may follow the trailer");
            return rows;
        }
        assert_eq!(usize::try_from(count).unwrap(), kinds.len());
        let mut row = Vec::new();
        for kind in kinds {
            let length = i32::from_be_bytes(take(&mut bytes, 4).try_into().unwrap());
            row.push(usize::try_from(length).ok().map(|length| {
                let field = take(&mut bytes, length);
                match kind {
                    Kind::Int4 => i32::from_be_bytes(field.try_into().unwrap()).to_string(),
                    Kind::Int8 | Kind::Timestamp => i64::from_be_bytes(field.try_into().unwrap()).to_string(),
                    Kind::Char(_) => String::from_utf8(field.to_vec()).unwrap(),
                    kind => unreachable!("no pgbench table has {}", kind.sql()),
                }
            }));
        }
        rows.push(row);
    }
}

fn tables(rows: u64) -> Vec<Table> {
    let scale = pgbench::scale_for(rows);
    let mut odd = pgbench::accounts(rows, scale, Payload::Blank);
    odd.columns[3].values = Values::Text("tab\tback\\slash é".into());
    vec![
        pgbench::accounts(rows, scale, Payload::Blank),
        pgbench::tellers(scale),
        pgbench::branches(scale),
        pgbench::history(scale),
        odd,
    ]
}

#[test]
fn text_and_binary_agree() {
    for table in tables(250_017) {
        for constants in [Constants::Sent, Constants::Defaulted] {
            let encoder = Encoder::new(&table, Format::Binary, constants);
            let kinds: Vec<Kind> = encoder
                .columns()
                .map(|name| table.columns.iter().find(|column| column.name == name).unwrap().kind.clone())
                .collect();
            let binary = parse_binary(&encoded(&table, Format::Binary, constants), &kinds);
            let text = parse_text(&encoded(&table, Format::Text, constants));
            assert_eq!(text.len() as u64, table.rows, "{}", table.name);
            assert!(text == binary, "{} differs", table.name);
        }
    }
}

#[test]
fn the_values_are_pgbench_s() {
    let accounts =
        parse_text(&encoded(&pgbench::accounts(250_017, 2, Payload::Blank), Format::Text, Constants::Sent));
    for (row, fields) in accounts.iter().enumerate() {
        let bid = (row / 100_000 + 1).min(2);
        let expected = [(row + 1).to_string(), bid.to_string(), "0".into(), String::new()];
        assert!(fields.iter().flatten().eq(&expected), "row {row}: {fields:?}");
    }
    let tellers = parse_text(&encoded(&pgbench::tellers(3), Format::Text, Constants::Sent));
    assert_eq!(tellers.len(), 30);
    assert_eq!(tellers[29], [Some("30".into()), Some("3".into()), Some("0".into()), None]);
}

#[test]
fn fillers_are_as_long_as_the_column() {
    for payload in [Payload::Text, Payload::Random] {
        let accounts = pgbench::accounts(1_000, 1, payload);
        let rows = parse_text(&encoded(&accounts, Format::Text, Constants::Sent));
        let fillers: Vec<&str> = rows.iter().map(|row| row[3].as_deref().unwrap()).collect();
        assert!(fillers.iter().all(|filler| filler.len() == 84));
        assert!(fillers.iter().collect::<std::collections::BTreeSet<_>>().len() == 1_000);
        let ids =
            parse_text(&encoded(&pgbench::accounts(1_000, 1, Payload::Blank), Format::Text, Constants::Sent));
        assert!(rows.iter().zip(&ids).all(|(row, id)| row[..3] == id[..3]));
    }
}

#[test]
fn account_ids_are_bigint_from_scale_20000() {
    let kind = |scale| pgbench::accounts(1, scale, Payload::Blank).columns[0].kind.clone();
    assert_eq!(kind(19_999), Kind::Int4);
    assert_eq!(kind(20_000), Kind::Int8);
    assert_eq!(pgbench::history(20_000).columns[2].kind, Kind::Int8);
}

#[test]
fn ids_past_the_range_of_int_are_whole() {
    let accounts = pgbench::accounts(6_000_000_000, 60_000, Payload::Blank);
    let encoder = Encoder::new(&accounts, Format::Binary, Constants::Defaulted);
    let mut bytes = encoder.header().to_vec();
    encoder.encode(5_000_000_000..5_000_000_001, &mut bytes);
    bytes.extend(encoder.trailer());
    let rows = parse_binary(&bytes, &[Kind::Int8, Kind::Int4]);
    assert_eq!(rows, [[Some("5000000001".to_owned()), Some("50001".to_owned())]]);
}

proptest! {
    #[test]
    fn chunks_concatenate_to_the_whole(
        rows in 1_u64..300_000,
        cuts in proptest::collection::vec(0.0_f64..1.0, 0..6),
        binary: bool,
        defaulted: bool,
    ) {
        let format = if binary { Format::Binary } else { Format::Text };
        let constants = if defaulted { Constants::Defaulted } else { Constants::Sent };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut ends: Vec<u64> = cuts.iter().map(|cut| (cut * rows as f64) as u64).collect();
        ends.push(rows);
        ends.sort_unstable();
        let table = pgbench::accounts(rows, pgbench::scale_for(rows), Payload::Blank);
        let encoder = Encoder::new(&table, format, constants);
        let mut whole = Vec::new();
        encoder.encode(0..rows, &mut whole);
        let mut chunks = Vec::new();
        let mut start = 0;
        for end in ends {
            encoder.encode(start..end, &mut chunks);
            start = end;
        }
        prop_assert!(whole == chunks);
    }
}
