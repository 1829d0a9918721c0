//! Tuple bodies that rowgen makes, against those that real servers store for the same rows: the oldest and
//! the newest that are supported.

use std::fs;
use std::path::Path;

use crate::support::{Server, numeric, on};
use rowgen::{
    Column, Distribution, Format, Kind, Payload, Table, TupleEncoder, Tuples, Turn, Values, pgbench,
};
use testkit::{quoted as identifier, quoted_literal};

#[test]
fn postgresql_13() {
    on(13, stores_the_same);
}

#[test]
fn postgresql_18() {
    on(18, stores_the_same);
}

async fn stores_the_same(server: Server) {
    let server = &server;
    let kinds = supported(server).await;
    types_are_the_server_s(server, &kinds).await;

    compare_kinds(server, &kinds, |_| Some(Values::Any)).await;
    compare_kinds(server, &kinds, |_| Some(nulls(Values::Any))).await;
    let all = |kind: &Kind| kind.units().map(|all| Values::Between { low: all.low, high: all.high });
    compare_kinds(server, &kinds, all).await;
    let least = |kind: &Kind| kind.units().map(|all| Values::Serial { start: all.low, step: 1 });
    compare_kinds(server, &kinds, least).await;
    let greatest = |kind: &Kind| kind.units().map(|all| Values::Serial { start: all.high, step: -1 });
    compare_kinds(server, &kinds, greatest).await;
    let around_zero =
        |kind: &Kind| kind.units().map(|_| Values::Drawn(Distribution::Normal { mean: 0.0, sd: 20_000.0 }));
    compare_kinds(server, &kinds, around_zero).await;
    let unique = |kind: &Kind| kind.distinct().map(|of| Values::Unique(Turn { every: 1, of }));
    compare_kinds(server, &kinds, unique).await;

    lengths(server).await;
    literals(server).await;
    for payload in [Payload::Blank, Payload::Text, Payload::Random] {
        compare(server, &pgbench::accounts(1_000, 1, payload)).await;
    }
    compare(server, &pgbench::tellers(20)).await;
    compare(server, &pgbench::branches(20)).await;
}

const LABELS: &str =
    "SELECT array_agg(oid ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = 'mood'::regtype";

/// All kinds that have a form here.
async fn supported(server: &Server) -> Vec<Kind> {
    let mut kinds = server.kinds().await;
    // Long headers, for decimals or weight, and what is just below.
    kinds.extend([numeric(18, 18), numeric(100, 63), numeric(100, 64), numeric(400, 300), numeric(1_000, 0)]);
    kinds.extend([Kind::Bit(9), Kind::Varbit(Some(1_500)), Kind::Char(126), Kind::Char(127)]);
    if server.version >= 15 {
        let negative = [-300, -260, -256, -252, -251].map(|scale| numeric(10, scale));
        kinds.extend(negative);
        kinds.extend([250, 256, 260, 264, 300].map(|scale| numeric(10, scale)));
    }
    kinds.retain(|kind| {
        TupleEncoder::supports(&of(vec![Column::new("c", kind.clone(), Values::Any)])).is_ok()
    });
    for kind in &mut kinds {
        let element = match kind {
            Kind::Array(element) => &mut **element,
            kind => kind,
        };
        with_oids(server, element).await;
        if let Kind::Composite { fields, .. } = element {
            for field in fields {
                with_oids(server, field).await;
            }
        }
    }
    assert!(kinds.len() > 70, "{kinds:?}");
    kinds
}

/// OIDs as the server has them.
async fn with_oids(server: &Server, kind: &mut Kind) {
    let name = kind.sql();
    if let Kind::Enum { oids, .. } = kind {
        *oids = server.value(LABELS).await;
        assert_eq!(oids.len(), 3);
    }
    if let Kind::Enum { oid, .. }
    | Kind::Range { oid, .. }
    | Kind::Multirange { oid, .. }
    | Kind::Composite { oid, .. } = kind
    {
        *oid = server.value(&format!("SELECT {}::regtype::oid", quoted_literal(&name))).await;
    }
}

/// Types are known by the OIDs that the server has for them.
async fn types_are_the_server_s(server: &Server, kinds: &[Kind]) {
    for kind in kinds.iter().filter(|kind| kind.oid().is_some()) {
        let oid: u32 = server.value(&format!("SELECT {}::regtype::oid", quoted_literal(&kind.sql()))).await;
        assert_eq!(kind.oid(), Some(oid), "{}", kind.sql());
    }
}

/// Short and long headers, and what stands at odd offsets after them.
async fn lengths(server: &Server) {
    let odd = |number: usize| Column::new(&format!("odd {number}"), Kind::Bool, Values::Any);
    for (low, high) in [(0, 0), (0, 300), (120, 130), (126, 126), (127, 127)] {
        for payload in [Payload::Text, Payload::Random] {
            let mut columns = Vec::new();
            for kind in [Kind::Text, Kind::Varchar(Some(300)), Kind::Char(300), Kind::Bytea] {
                let values = Values::Payload { payload, low, high };
                columns.push(odd(columns.len()));
                columns.push(Column::new(&format!("c{}", columns.len()), kind, values));
            }
            compare(server, &of(columns)).await;
        }
    }
    // As long as rows get without TOAST.
    for length in [1_990, 1_999, 2_000] {
        let long = Values::Payload { payload: Payload::Random, low: length, high: length };
        let table = of(vec![Column::new("long", Kind::Text, long)]);
        assert_eq!(23 + encoder(&table).longest(), 24 + 4 + 4 + length);
        compare(server, &table).await;
    }
}

/// More than 32 items, where entries of `jsonb` change.
const MANY_ITEMS: &str = "[1,2,3,\"a\",5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,\
                          33,34,\"b\",36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,\
                          61,62,63,64,65,66,67]";
const MANY_KEYS: &str = "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10,\"k\":11,\
                         \"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17,\"r\":18,\"s\":19}";

/// Longer than a short header has room for, of elements that are aligned to less than the array.
const MANY_BOOLS: &str = "{t,f,t,t,f,f,t,t,t,f,f,f,t,t,t,t,f,f,f,f,t,t,t,t,t,f,f,f,f,f,t,t,t,t,t,t,f,f,f,f,f,f,t,t,t,t,\
                          t,t,t,f,f,f,f,f,f,f,t,t,t,t,t,t,t,t,f,f,f,f,f,f,f,f,t,t,t,t,t,t,t,t,t,f,f,f,f,f,f,f,\
                          f,f,t,t,t,t,t,t,t,t,t,t,f,f,f,f,f,f,f,f,f,f,t,t,t,t}";
const MANY_INTEGERS: &str = "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,\
                             32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57}";
const MANY_UUIDS: &str = "{7625c60c-c857-445f-a117-d72646acc670,1625c60c-c857-445f-a117-d72646acc671,\
                          2625c60c-c857-445f-a117-d72646acc672,3625c60c-c857-445f-a117-d72646acc673,\
                          4625c60c-c857-445f-a117-d72646acc674,5625c60c-c857-445f-a117-d72646acc675,\
                          6625c60c-c857-445f-a117-d72646acc676,8625c60c-c857-445f-a117-d72646acc677}";

/// Values of users, in the forms that rowgen reads itself.
async fn literals(server: &Server) {
    let array = |kind: Kind| Kind::Array(Box::new(kind));
    let cases: &[(Kind, &[&str])] = &[
        (Kind::Bool, &["t", "f", "true", "false"]),
        (Kind::Int2, &["-32768", "32767", "007"]),
        (Kind::Int4, &["-2147483648", "0", "2147483647"]),
        (Kind::Int8, &["-9223372036854775808", "9223372036854775807"]),
        (Kind::Oid, &["0", "4294967295"]),
        (Kind::Float4, &["0", "-0", "1.1", "3.4028235e38", "1e-45", "-2.5E+3", ".5", "16777217"]),
        (Kind::Float8, &["0", "-0", "0.1", "1.7976931348623157e308", "4.9e-324", "123456789012345678"]),
        (
            Kind::Numeric(None),
            &["0", "-0.00", "0.0001", "-0.00001", "12345.678900", "10000", "9999999999999999.99"],
        ),
        (numeric(10, 2), &["0", "-1", "12.3", "12.300", "-99999999.99", "0.05"]),
        (Kind::Money, &["0", "-1.5", "92233720368547758.07"]),
        (Kind::Text, &["", "é€😀", "a\tb\\c\nd", " "]),
        (Kind::Varchar(Some(3)), &["", "é€😀", "  "]),
        (Kind::Char(5), &["", "é€😀", " a ", "12345"]),
        (Kind::Name, &["", "é", "x"]),
        (Kind::Bytea, &["", "\\x", "\\x00fFaB", "text", "é"]),
        (
            Kind::Date,
            &["0001-01-01", "1999-12-31", "2000-01-01", "2024-02-29", "9999-12-31", "infinity", "-infinity"],
        ),
        (Kind::Time, &["00:00:00", "23:59:59.999999", "12:34:56.7"]),
        (Kind::TimeTz, &["00:00:00+00", "23:59:59.999999+00"]),
        (Kind::Timestamp, &["1999-12-31 23:59:59.999999", "2024-02-29 01:02:03.000400", "-infinity"]),
        (Kind::TimestampTz, &["0001-01-01 00:00:00+00", "2024-02-29 01:02:03+00", "infinity"]),
        (Kind::Interval, &["00:00:00", "100:00:00.5", "23:59:59"]),
        (Kind::Uuid, &["7625c60c-c857-445f-a117-d72646acc670", "7625C60CC857445FA117D72646ACC670"]),
        (Kind::Inet, &["10.1.2.3", "10.1.2.3/8", "::1", "2001:db8::ff00:42:8329/64", "::ffff:1.2.3.4"]),
        (Kind::Cidr, &["10.1.2.3", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32"]),
        (Kind::Macaddr, &["08:00:2b:01:02:03", "08002B010203"]),
        (Kind::Macaddr8, &["08:00:2b:01:02:03:04:05", "08002b0102030405"]),
        (Kind::Bit(9), &["000000000", "101010101"]),
        (Kind::Varbit(None), &["", "1", "0000000011"]),
        (Kind::Json, &["{}", " [1, {\"a\" : null}]", "\"é\"", "-1.50"]),
        (
            Kind::Jsonb,
            &[
                "{}",
                "[]",
                "null",
                " -1.50 ",
                "\"text\"",
                "[true, false, null, 0, -12345.678, \"é\", [], {}]",
                "{\"longest\": {\"b\": [[1], {\"c\": 2}], \"a\": \"\"}, \"b\": true, \"aa\": 10000, \"a\": 0.0001}",
                MANY_ITEMS,
                MANY_KEYS,
            ],
        ),
        (Kind::PgLsn, &["0/0", "16/B374D848", "7fffffff/FFFFFFFF"]),
        (Kind::Point, &["(1,-2.5)"]),
        (Kind::Line, &["{1,0,-3}"]),
        (Kind::Lseg, &["[(1,2),(3,4)]", "((1,2),(3,4))"]),
        (Kind::Box, &["(1,2),(3,4)", "(3,4),(1,2)", "((1,4),(3,2))"]),
        (Kind::Path, &["[(1,2),(3,4)]", "((1,2),(3,4),(5,6))", "((1,2))"]),
        (Kind::Polygon, &["((1,2),(3,4),(-5,6))", "((1,2))"]),
        (Kind::Circle, &["<(1,2),3>", "<(0,0),0>"]),
        (array(Kind::Int4), &["{}", "{1}", "{1,-2,3}"]),
        (array(Kind::Bool), &["{t}", "{t,f,t}", MANY_BOOLS]),
        (array(Kind::Int2), &["{1}", MANY_INTEGERS]),
        (array(Kind::Uuid), &[MANY_UUIDS, "{7625c60c-c857-445f-a117-d72646acc670}"]),
        (array(Kind::Text), &["{}", "{a,\"\",\"NULL\",\"it's \\\"\\\\ odd, {very}\"}", "{é,foo_bar@x;y}"]),
        (array(Kind::Box), &["{(1,2),(3,4);(5,6),(7,8)}"]),
        (Kind::TsQuery, &["a", "'word' & longer & a", "'a' & 'a'"]),
        (Kind::TsVector, &["", "'b':2 'a':1 'b':7 'a':1", "word longer a", "'bb':1 b 'bbb':3"]),
    ];
    // OIDs as in `pg_type.dat`.
    let range = |name: &str, oid, element| Kind::Range { name: name.into(), oid, element: Box::new(element) };
    let name = "int4multirange".to_owned();
    let multirange = Kind::Multirange { name, oid: 4451, element: Box::new(Kind::Int4) };
    let ranges: &[(Kind, &[&str])] = &[
        (range("int4range", 3904, Kind::Int4), &["[1,5)", "[,5)", "empty", "[-1,)", "(,)", "[\"1\",2)"]),
        (range("numrange", 3906, Kind::Numeric(None)), &["[1.5,2.50]", "(1,2)", "(,3]", "(-0.001,)"]),
        (range("daterange", 3912, Kind::Date), &["[2024-01-31,2024-02-29)", "[-infinity,infinity)"]),
        (multirange, &["{}", "{[1,2)}", "{[7,9),[1,3),[2,5)}", "{[1,2),[3,4),[5,6),[7,8),[9,10),[11,12)}"]),
    ];
    let of_version = if server.version >= 14 { ranges } else { &ranges[..3] };
    let mut columns = Vec::new();
    for (number, (kind, values)) in cases.iter().chain(of_version).enumerate() {
        let cycle = Values::Cycle(values.iter().map(|&text| text.to_owned()).collect());
        columns.push(Column::new(&format!("c{number}"), kind.clone(), nulls(cycle)));
        let constant = Values::Text(values[values.len() - 1].to_owned());
        columns.push(Column::new(&format!("k{number}"), kind.clone(), constant));
    }
    compare_columns(server, columns).await;
}

fn nulls(values: Values) -> Values {
    Values::Nulls { fraction: 0.3, by: None, values: Box::new(values) }
}

/// With a key in front.
fn of(mut columns: Vec<Column>) -> Table {
    columns.insert(0, Column::new("key", Kind::Int4, Values::SERIAL));
    Table { name: "t".into(), columns, rows: 300, seed: 7 }
}

fn encoder(table: &Table) -> TupleEncoder {
    TupleEncoder::new(table).unwrap()
}

/// A column for each kind that has such values.
async fn compare_kinds(server: &Server, kinds: &[Kind], values: impl Fn(&Kind) -> Option<Values>) {
    let columns = kinds
        .iter()
        .enumerate()
        .filter_map(|(number, kind)| Some(Column::new(&format!("c{number}"), kind.clone(), values(kind)?)));
    compare_columns(server, columns.collect()).await;
}

/// As many columns in a table as a row holds without TOAST.
async fn compare_columns(server: &Server, columns: Vec<Column>) {
    /// `TOAST_TUPLE_THRESHOLD` less the header.
    const MOST: u32 = 2_032 - 23;
    let mut together = Vec::new();
    for column in columns {
        together.push(column);
        if encoder(&of(together.clone())).longest() > MOST {
            let next = together.split_off(together.len() - 1);
            compare(server, &of(std::mem::replace(&mut together, next))).await;
        }
    }
    compare(server, &of(together)).await;
}

/// The rows are loaded by COPY, and read from the table's file.
async fn compare(server: &Server, table: &Table) {
    server.load(table, Format::Text, "").await;
    server.sql("CHECKPOINT").await;
    let name = identifier(&table.name);
    let path: String =
        server.value(&format!("SELECT pg_relation_filepath({}::regclass)", quoted_literal(&name))).await;
    let stored = stored(&testkit::shared(server.version).data_dir().join(path));
    server.sql(&format!("DROP TABLE {name}")).await;

    let mut tuples = Tuples::new();
    encoder(table).encode(0..table.rows, &mut tuples);
    assert_eq!(stored.len() as u64, table.rows);
    assert_eq!(tuples.len(), stored.len());
    for (row, (made, stored)) in tuples.bodies().zip(&stored).enumerate() {
        let features = (made.has_nulls, made.has_varwidth, encoder(table).attributes());
        if made.bytes == stored.body && features == stored.features {
            continue;
        }
        let alike = made.bytes.iter().zip(&stored.body).take_while(|(made, stored)| made == stored).count();
        let columns: Vec<String> = table.columns.iter().map(|column| column.kind.sql()).collect();
        panic!(
            "PostgreSQL {}, row {row} of {columns:?}, {:?}:\nmade {features:?}, from byte {alike} {:02x?}\n\
             stored {:?} {:02x?}",
            server.version,
            table.columns[0].values,
            &made.bytes[alike..],
            stored.features,
            &stored.body[alike..],
        );
    }
}

/// A tuple in a page.
struct Stored {
    /// After the first 23 bytes.
    body: Vec<u8>,
    /// Has NULLs, has values of varying-length types, number of attributes.
    features: (bool, bool, u16),
}

/// All tuples of a heap, by the integer key that they begin with: the server does not keep the order of
/// rows of different lengths (`storage/bufpage.h`, `storage/itemid.h`, `access/htup_details.h`).
fn stored(path: &Path) -> Vec<Stored> {
    let mut tuples = Vec::new();
    for page in fs::read(path).unwrap().chunks_exact(8_192) {
        let number = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let lower = number(12);
        for pointer in (24..usize::from(lower)).step_by(4) {
            let (offset, length) =
                (usize::from(number(pointer) & 0x7FFF), usize::from(number(pointer + 2) >> 1));
            let (attributes, mask) = (number(offset + 18) & 0x07FF, number(offset + 20));
            let has = |bit: u16| mask & bit != 0;
            let key = offset + usize::from(page[offset + 22]);
            let key = i32::from_le_bytes(page[key..key + 4].try_into().unwrap());
            let body = page[offset + 23..offset + length].to_vec();
            tuples.push((key, Stored { body, features: (has(1), has(2), attributes) }));
        }
    }
    tuples.sort_unstable_by_key(|(key, _)| *key);
    tuples.into_iter().map(|(_, tuple)| tuple).collect()
}
