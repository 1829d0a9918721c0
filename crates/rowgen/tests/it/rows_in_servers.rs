//! Rows of rowgen in real servers: the oldest and the newest supported release.

use crate::support::{Server, on, table};
use rowgen::{Encoder, Format, Kind, RowHash, Storage, Stored, Turn, Values, hash_partition};
use testkit::quoted as identifier;

#[test]
fn postgresql_13() {
    on(13, takes_everything);
}

#[test]
fn postgresql_18() {
    on(18, takes_everything);
}

async fn takes_everything(server: Server) {
    every_kind(&server).await;
    stored_lengths(&server).await;
    unique_values(&server).await;
    hash_partitions(&server).await;
}

/// Both formats are accepted and store equal rows.
async fn every_kind(server: &Server) {
    let kinds = server.kinds().await;
    let any = |_: &Kind| Values::Any;
    server.load(&table("every kind", 3_000, &kinds, any), Format::Text, "").await;

    let binary = |kind: &&Kind| Encoder::supports(&table("t", 0, &[(*kind).clone()], any), Format::Binary);
    let kinds: Vec<Kind> = kinds.iter().filter(binary).cloned().collect();
    assert!(kinds.len() > 30, "{kinds:?}");
    let mut stored = table("binary", 3_000, &kinds, any);
    server.load(&stored, Format::Binary, "").await;
    server.sql("ALTER TABLE \"binary\" RENAME TO \"by binary\"").await;
    server.load(&stored, Format::Text, "").await;
    // As text: not every type has an equality, and scales count.
    let difference = "SELECT count(*) FROM (SELECT t::text FROM \"binary\" t EXCEPT ALL \
                      SELECT t::text FROM \"by binary\" t) AS differing";
    assert_eq!(server.value::<i64>(difference).await, 0);
    stored.seed += 1;
    server.sql("DROP TABLE \"by binary\"; ALTER TABLE \"binary\" RENAME TO \"by binary\"").await;
    server.load(&stored, Format::Text, "").await;
    assert_eq!(server.value::<i64>(difference).await, 3_000, "another seed, other rows");
}

/// The predicted lengths of values are those that the server stores: exact, except for types with much structure.
async fn stored_lengths(server: &Server) {
    for (number, kind) in server.kinds().await.iter().enumerate() {
        let table = table(&format!("any {number}"), 1_000, std::slice::from_ref(kind), |_| Values::Any);
        server.load(&table, Format::Text, "").await;
        let storage = Storage::new(&table);
        let foretold: u32 = (0..table.rows).flat_map(|row| storage.row(row)).map(length).sum();
        let query = format!(
            "SELECT sum(pg_column_size({})) FROM \"any {number}\"",
            identifier(&table.columns[0].name)
        );
        let seen: i64 = server.value(&query).await;
        let tolerated = if is_structured(kind) { seen / 33 } else { 0 };
        assert!((i64::from(foretold) - seen).abs() <= tolerated, "{}: {foretold}, but {seen}", kind.sql());
    }
}

fn length(stored: Stored) -> u32 {
    match stored {
        Stored::Null => 0,
        Stored::Fixed { length, .. } | Stored::Varying { length, .. } => length,
    }
}

fn is_structured(kind: &Kind) -> bool {
    match kind {
        Kind::Array(element) => is_structured(element),
        Kind::TsVector | Kind::TsQuery | Kind::Multirange { .. } => true,
        _ => false,
    }
}

/// The server itself says that they are unique.
async fn unique_values(server: &Server) {
    let unique = |_: &Kind| Values::Unique(Turn::EACH);
    for (number, kind) in server.kinds().await.iter().enumerate() {
        if let Some(distinct) = kind.distinct() {
            let table =
                table(&format!("unique {number}"), distinct.min(1_000), std::slice::from_ref(kind), unique);
            assert_eq!(table.columns[0].unique_rows(), Some(distinct));
            server.load(&table, Format::Text, " UNIQUE").await;
        }
    }
}

/// PostgreSQL puts each key into the partition that rowgen says.
async fn hash_partitions(server: &Server) {
    for (kind, keys) in [
        (Kind::Int2, vec![-32_768, -1, 0, 1, 32_767]),
        (Kind::Int4, vec![i64::from(i32::MIN), -1, 0, 1, 42, 1_000_000, i64::from(i32::MAX)]),
        (Kind::Int8, vec![i64::MIN, -5_000_000_000, -1, 0, 1, 5_000_000_000, i64::MAX]),
    ] {
        let kind = kind.sql();
        server.sql(&format!("CREATE TABLE hashed (k {kind}) PARTITION BY HASH (k)")).await;
        for key in keys {
            for modulus in [1, 2, 3, 7, 64, 1_000] {
                let remainder = hash_partition(key, modulus);
                let query = format!(
                    "SELECT satisfies_hash_partition('hashed'::regclass, {modulus}, {remainder}, '{key}'::{kind})"
                );
                assert!(server.value::<bool>(&query).await, "{kind} {key} modulo {modulus}");
            }
        }
        server.sql("DROP TABLE hashed").await;
    }
    server
        .sql("CREATE TABLE hashed (a text, b uuid, c bool, d date, e timestamptz) PARTITION BY HASH (a, b, c, d, e)")
        .await;
    for length in (0..40).chain([1000]) {
        let text = "abcdefghijklmnopqrstuvwxyz0123456789äöü".chars().cycle().take(length).collect::<String>();
        let mut hash = RowHash::default();
        hash.bytes(text.as_bytes());
        hash.bytes(&[length.to_le_bytes()[0]; 16]);
        // A NULL comes between.
        hash.integer(-i64::try_from(length).unwrap());
        hash.integer(i64::try_from(length).unwrap() * 1_000_000);
        let uuid = format!("{:02x}", length.to_le_bytes()[0]).repeat(16);
        for modulus in [2, 7, 1_000] {
            let remainder = hash.remainder(modulus);
            let query = format!(
                "SELECT satisfies_hash_partition('hashed'::regclass, {modulus}, {remainder}, '{text}'::text, '{uuid}'::uuid, \
                        NULL::bool, date '2000-01-01' - {length}, timestamptz '2000-01-01 00:00:00Z' + {length} * interval '1 s')"
            );
            assert!(server.value::<bool>(&query).await, "{text} modulo {modulus}");
        }
    }
    server.sql("DROP TABLE hashed").await;
}
