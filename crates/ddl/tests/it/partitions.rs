//! Partitioned originals: the generated rows lie in all partitions.

use std::collections::BTreeMap;

use ddl::{Amount, Outcome, Request, Schema};
use testkit::{RELEASES, block_on};

use crate::support::{measured, request, server};

const TABLES: &str = "
    CREATE TABLE events (id bigint NOT NULL, at timestamptz NOT NULL, n int) PARTITION BY RANGE (at);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2025-04-01');
    CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2025-04-01') TO ('2025-07-01');
    CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM ('2025-07-01') TO ('2025-10-01');
    CREATE TABLE numbered (id bigint NOT NULL, n int) PARTITION BY RANGE (id);
    CREATE TABLE numbered_1 PARTITION OF numbered FOR VALUES FROM (0) TO (10000);
    CREATE TABLE numbered_2 PARTITION OF numbered FOR VALUES FROM (10000) TO (20000);
    CREATE TABLE numbered_3 PARTITION OF numbered FOR VALUES FROM (20000) TO (30000);
    CREATE TABLE daily (id bigint NOT NULL, at date NOT NULL, n int) PARTITION BY RANGE (at);
    CREATE TABLE daily_1 PARTITION OF daily FOR VALUES FROM ('2025-01-01') TO ('2025-01-06');
    CREATE TABLE daily_2 PARTITION OF daily FOR VALUES FROM ('2025-01-06') TO ('2025-01-11');
    CREATE TABLE daily_3 PARTITION OF daily FOR VALUES FROM ('2025-01-11') TO ('2025-01-16');
    INSERT INTO events SELECT i, '2025-01-01'::timestamptz + i * interval '13 min', i FROM generate_series(1, 29000) i;
    INSERT INTO numbered SELECT i, i FROM generate_series(1, 29000) i;
    INSERT INTO daily SELECT i, '2025-01-01'::date + i / 2000, i FROM generate_series(1, 29000) i;
    ANALYZE;
";

/// The rows that statements have read, by table.
fn read(outcome: &Outcome) -> BTreeMap<&str, i64> {
    let works = outcome.statements.iter().filter_map(|one| one.found.as_ref()).flat_map(|found| &found.works);
    let rows = works.filter_map(|work| Some((work.relation.as_str(), work.proof.read?.returned)));
    rows.collect()
}

#[test]
fn rows_with_a_new_key_lie_in_all_partitions() {
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(TABLES).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        for (table, key) in [("events", "id, at"), ("numbered", "id"), ("daily", "id, at")] {
            let checks =
                (1..=3).map(|part| format!("ALTER TABLE {table}_{part} ADD CHECK (n IS NULL OR n > -9);"));
            let migration =
                format!("ALTER TABLE {table} ADD PRIMARY KEY ({key}); {}", checks.collect::<String>());
            let asked = Request { schema: schema.clone(), ..request("", &migration, Amount::Rows(3000)) };
            let outcome = measured(&server, &asked).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {failed:#?}");
            assert!(outcome.statements.iter().all(|one| one.rowless.is_empty()), "{release}: {outcome:#?}");
            let read = read(&outcome);
            for part in 1..=3 {
                let rows = read.get(format!("{table}_{part}").as_str()).copied();
                assert!(
                    rows.is_some_and(|rows| (700..=1200).contains(&rows)),
                    "{release}: {table}: {read:?}"
                );
            }
        }
    }
}
