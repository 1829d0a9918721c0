//! `page::BtreeBuilder` and `page::SortedBuilder` against the indexes that PostgreSQL builds, byte for byte.

use std::convert::Infallible;
use std::fmt::Write;

use page::{Attribute, BtreeBuilder, BtreeKey, Geometry, KeyLength, SortedBuilder, TupleId, tuple_length};
use testkit::{Server, block_on, spec};

const BLOCK: usize = 8192;
/// LSN and checksum, at a page's begin: they are the server's and the writer's own matter.
const LSN_AND_CHECKSUM: usize = 10;

/// A column's type, and how the rows' keys are written in it.
#[derive(Clone, Copy, Debug)]
enum Column {
    Smallint,
    Integer,
    Bigint,
    Date,
    Timestamp,
}

impl Column {
    fn key(self) -> BtreeKey {
        match self {
            Self::Smallint => BtreeKey::Int2,
            Self::Integer | Self::Date => BtreeKey::Int4,
            Self::Bigint | Self::Timestamp => BtreeKey::Int8,
        }
    }

    /// The value that is stored as the integer `key`.
    fn value(self) -> &'static str {
        match self {
            Self::Smallint | Self::Integer | Self::Bigint => "key",
            Self::Date => "date '2000-01-01' + key::int",
            Self::Timestamp => "timestamp '2000-01-01' + key * interval '1 microsecond'",
        }
    }
}

/// An index that both PostgreSQL and pgrig build.
#[derive(Clone, Copy, Debug)]
struct Case {
    column: Column,
    unique: bool,
    fillfactor: u8,
    rows: u32,
    first_key: i64,
    step: u32,
}

const PRIMARY_KEY: Case =
    Case { column: Column::Integer, unique: true, fillfactor: 90, rows: 0, first_key: 1, step: 1 };

/// Around every size at which a level gets another page.
fn cases() -> Vec<Case> {
    // A leaf keeps 366 rows at fillfactor 90, 406 at 100, 38 at 10, an inner page 284 children; the last
    // page of a level may have one more.
    const SIZES: &[(u8, &[u32])] = &[
        (90, &[0, 1, 2, 366, 367, 368, 733, 734, 5000, 104_311, 104_312, 120_000]),
        (100, &[406, 407, 408, 813, 814, 5000]),
        (10, &[38, 39, 40, 77, 78, 10_831, 10_832, 21_623, 21_624, 25_000]),
    ];
    let sizes = SIZES.iter().flat_map(|&(fillfactor, rows)| rows.iter().map(move |&rows| (fillfactor, rows)));
    let mut cases: Vec<Case> =
        sizes.map(|(fillfactor, rows)| Case { fillfactor, rows, ..PRIMARY_KEY }).collect();
    let some = Case { rows: 1000, first_key: -500, ..PRIMARY_KEY };
    cases.extend([
        Case { column: Column::Smallint, ..some },
        Case { column: Column::Date, ..some },
        Case { column: Column::Timestamp, ..some },
        Case { column: Column::Bigint, first_key: i64::MIN, step: u32::MAX, ..some },
        Case { column: Column::Bigint, rows: 12_000, fillfactor: 10, first_key: 1 << 40, ..PRIMARY_KEY },
        Case { step: 7, ..some },
        Case { unique: false, ..some },
    ]);
    cases
}

impl Case {
    /// The table `name` with its rows in the order of the keys, and the index `name_index`.
    fn sql(self, name: &str) -> String {
        let Self { column, unique, fillfactor, rows, first_key, step } = self;
        let unique = if unique { "UNIQUE" } else { "" };
        format!(
            "CREATE TABLE {name} (id {column:?} NOT NULL);
             INSERT INTO {name} SELECT {} FROM generate_series(0, {rows}::bigint - 1) AS row, \
                 LATERAL (SELECT ({first_key} + row * {step})::bigint AS key) AS keys ORDER BY row;
             CREATE {unique} INDEX {name}_index ON {name} (id) WITH (fillfactor = {fillfactor});",
            column.value()
        )
    }

    /// The index as pgrig builds it, from the same rows in the same heap blocks.
    fn build(self) -> Vec<u8> {
        let geometry = Geometry::new(8192);
        let length = self.column.key().length();
        let tuple = tuple_length(&[Attribute::Fixed { length, align: length }]);
        let in_block = geometry.rows_per_page(tuple, 100);

        let mut file = Vec::new();
        let mut sink = |block: u32, page: &[u8]| {
            put(&mut file, block, page);
            Ok::<_, Infallible>(())
        };
        let mut builder = BtreeBuilder::new(geometry, self.column.key(), self.fillfactor);
        let key_of = |row: u32| self.first_key + i64::from(row) * i64::from(self.step);
        for (block, row) in (0..).zip((0..self.rows).step_by(in_block as usize)) {
            let rows = row..self.rows.min(row + in_block);
            let first = TupleId { block, offset: 1 };
            let Ok(()) = if self.step == 1 {
                let rows = u16::try_from(rows.len()).unwrap();
                builder.push_run(key_of(row), first, rows, &mut sink)
            } else {
                builder.push_keys(&rows.map(key_of).collect::<Vec<_>>(), first, &mut sink)
            };
        }
        let Ok(_) = builder.finish(&mut sink);
        file
    }
}

/// Keys in no order, some of them null: `step * row % distinct`, or null in each row whose number ends in `null`.
#[derive(Clone, Copy, Debug)]
struct Mixed {
    column: MixedColumn,
    unique: bool,
    fillfactor: u8,
    rows: u32,
    step: u32,
    distinct: u32,
    null: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
enum MixedColumn {
    Smallint,
    Integer,
    Bigint,
    Uuid,
    /// The key with eight more characters every 10,000 rows: shorter ones later might find room on an earlier page.
    Text,
}

const ORDERS: Mixed = Mixed {
    column: MixedColumn::Bigint,
    unique: false,
    fillfactor: 90,
    rows: 30_000,
    step: 7919,
    distinct: 10_000,
    null: None,
};

/// From keys that are all different to one that all rows have.
fn mixed() -> Vec<Mixed> {
    let mut cases = Vec::new();
    for distinct in [1, 2, 20, 300, 3000, 29_989] {
        for fillfactor in [90, 100, 10] {
            cases.push(Mixed { fillfactor, distinct, ..ORDERS });
        }
        cases.push(Mixed { distinct, null: Some(3), ..ORDERS });
        cases.push(Mixed { distinct, column: MixedColumn::Smallint, ..ORDERS });
        cases.push(Mixed { distinct, column: MixedColumn::Uuid, null: Some(7), ..ORDERS });
        cases.push(Mixed { distinct, column: MixedColumn::Integer, rows: 130, null: Some(0), ..ORDERS });
        cases.push(Mixed { distinct, column: MixedColumn::Text, ..ORDERS });
    }
    let unique = Mixed { distinct: 65_537, unique: true, ..ORDERS };
    cases.extend([
        unique,
        Mixed { null: Some(5), column: MixedColumn::Integer, ..unique },
        Mixed { column: MixedColumn::Uuid, rows: 60_000, ..unique },
        Mixed { column: MixedColumn::Text, rows: 60_000, ..unique },
        Mixed { rows: 0, ..ORDERS },
        Mixed { rows: 1, null: Some(0), ..ORDERS },
        // The tree gets another level.
        Mixed { rows: 120_000, distinct: 100_003, ..ORDERS },
        Mixed { rows: 120_000, distinct: 5, fillfactor: 10, ..ORDERS },
    ]);
    cases
}

impl Mixed {
    /// The table `name` and the index `name_index`.
    fn sql(self, name: &str) -> String {
        let Self { column, unique, fillfactor, rows, step, distinct, null } = self;
        let unique = if unique { "UNIQUE" } else { "" };
        let value = match column {
            MixedColumn::Uuid => "lpad(to_hex(key), 32, '0')::uuid",
            MixedColumn::Text => "repeat('abcdefgh', (row / 10000)::int) || key",
            MixedColumn::Smallint | MixedColumn::Integer | MixedColumn::Bigint => "key",
        };
        let null = null.map_or("-1".to_owned(), |last| last.to_string());
        format!(
            "CREATE TABLE {name} (id {column:?});
             INSERT INTO {name} SELECT CASE WHEN row % 10 <> {null} THEN {value} END \
                 FROM generate_series(0, {rows}::bigint - 1) AS row, \
                 LATERAL (SELECT row * {step} % {distinct} AS key) AS keys ORDER BY row;
             CREATE {unique} INDEX {name}_index ON {name} (id) WITH (fillfactor = {fillfactor});"
        )
    }

    /// As it is stored.
    fn key(self, row: u32) -> Option<Vec<u8>> {
        let key = u64::from(row) * u64::from(self.step) % u64::from(self.distinct);
        let stored = match self.column {
            MixedColumn::Smallint => key.to_le_bytes()[..2].to_vec(),
            MixedColumn::Integer => key.to_le_bytes()[..4].to_vec(),
            MixedColumn::Bigint => key.to_le_bytes().to_vec(),
            MixedColumn::Uuid => u128::from(key).to_be_bytes().to_vec(),
            MixedColumn::Text => {
                let text = "abcdefgh".repeat(usize::try_from(row / 10_000).unwrap()) + &key.to_string();
                // A header of one byte: the length with it, and the lowest bit.
                let header = u8::try_from((text.len() + 1) << 1 | 1).unwrap();
                [&[header], text.as_bytes()].concat()
            }
        };
        (Some(row % 10) != self.null).then_some(stored)
    }

    fn build(self) -> Vec<u8> {
        let geometry = Geometry::new(8192);
        // Behind the fixed header: the null bitmap, or padding, and the value.
        let length = |row| 1 + self.key(row).map_or(0, |key| u32::try_from(key.len()).unwrap());
        let mut rows: Vec<(Option<Vec<u8>>, TupleId)> = Vec::new();
        let mut row = 0;
        for (block, count) in (0..).zip(geometry.rows_of_pages((0..self.rows).map(length), 100)) {
            for offset in 1..=u16::try_from(count).unwrap() {
                rows.push((self.key(row), TupleId { block, offset }));
                row += 1;
            }
        }
        rows.sort_by_key(|(key, place)| {
            let number = key.clone().map(|mut key| match self.column {
                MixedColumn::Uuid => key,
                MixedColumn::Text => key.split_off(1),
                MixedColumn::Smallint | MixedColumn::Integer | MixedColumn::Bigint => {
                    key.reverse();
                    key
                }
            });
            (number.is_none(), number, *place)
        });
        let mut file = Vec::new();
        let mut sink = |block: u32, page: &[u8]| {
            put(&mut file, block, page);
            Ok::<_, Infallible>(())
        };
        let length = match self.column {
            MixedColumn::Text => KeyLength::Varying,
            _ => KeyLength::Fixed,
        };
        let mut builder = SortedBuilder::new(geometry, length, self.fillfactor, self.unique);
        for (key, place) in rows {
            let Ok(()) = builder.push(key.as_deref(), place, &mut sink);
        }
        let Ok(_) = builder.finish(&mut sink);
        file
    }
}

/// Writes a block into a file.
fn put(file: &mut Vec<u8>, block: u32, page: &[u8]) {
    let at = block as usize * BLOCK;
    file.resize(file.len().max(at + BLOCK), 0);
    file[at..at + BLOCK].copy_from_slice(page);
}

/// Without what a page's tuples left between them and the line pointers.
fn without_hole(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for page in file.chunks_exact_mut(BLOCK) {
        let [lower, upper] = [12, 14].map(|at| usize::from(u16::from_le_bytes([page[at], page[at + 1]])));
        page[lower..upper].fill(0);
    }
    file
}

/// The first difference, in words.
fn difference(built: &[u8], real: &[u8]) -> Option<String> {
    if built.len() != real.len() {
        return Some(format!("{} blocks instead of {}", built.len() / BLOCK, real.len() / BLOCK));
    }
    let blocks = built.chunks_exact(BLOCK).zip(real.chunks_exact(BLOCK)).enumerate();
    blocks.into_iter().find_map(|(block, (built, real))| {
        let at = (LSN_AND_CHECKSUM..BLOCK).find(|&at| built[at] != real[at])?;
        let near = at..BLOCK.min(at + 16);
        Some(format!("block {block}, byte {at}: {:x?} instead of {:x?}", &built[near.clone()], &real[near]))
    })
}

/// Has the server build all indexes; returns their files' paths.
fn build_in(server: &Server, cases: &[Case], mixed: &[Mixed]) -> Vec<String> {
    let mut script = String::new();
    let mixed = mixed.iter().map(|case| Box::new(|name: &str| case.sql(name)) as Box<dyn Fn(&str) -> String>);
    let cases = cases.iter().map(|case| Box::new(|name: &str| case.sql(name)) as Box<dyn Fn(&str) -> String>);
    let cases: Vec<_> = cases.chain(mixed).collect();
    for (at, sql) in cases.iter().enumerate() {
        writeln!(script, "{}", sql(&format!("case_{at}"))).unwrap();
    }
    block_on(async {
        let connection = server.connect("postgres").await;
        connection.client.batch_execute(&script).await.unwrap();
        connection.client.batch_execute("CHECKPOINT").await.unwrap();
        let mut paths = Vec::new();
        for at in 0..cases.len() {
            let query = format!("SELECT pg_relation_filepath('case_{at}_index')");
            paths.push(connection.client.query_one_scalar(&query, &[]).await.unwrap());
        }
        paths
    })
}

fn builds_what_the_server_builds(major: u16) {
    // A vacuum would write into the metapage.
    let server = Server::start(spec(major, &[("shared_buffers", "32MB"), ("autovacuum", "off")]));
    let (cases, mixed) = (cases(), mixed());
    let paths = build_in(&server, &cases, &mixed);
    let mut files = paths.into_iter().map(|path| std::fs::read(server.data_dir().join(path)).unwrap());
    for (case, real) in cases.iter().zip(files.by_ref()) {
        if let Some(difference) = difference(&case.build(), &real) {
            panic!("PostgreSQL {major}, {case:?}: {difference}");
        }
    }
    for (case, real) in mixed.iter().zip(files) {
        if let Some(difference) = difference(&without_hole(&case.build()), &without_hole(&real)) {
            panic!("PostgreSQL {major}, {case:?}: {difference}");
        }
    }
}

#[test]
fn as_postgresql_13() {
    builds_what_the_server_builds(13);
}

#[test]
fn as_postgresql_14() {
    builds_what_the_server_builds(14);
}

#[test]
fn as_postgresql_15() {
    builds_what_the_server_builds(15);
}

#[test]
fn as_postgresql_16() {
    builds_what_the_server_builds(16);
}

#[test]
fn as_postgresql_17() {
    builds_what_the_server_builds(17);
}

#[test]
fn as_postgresql_18() {
    builds_what_the_server_builds(18);
}
