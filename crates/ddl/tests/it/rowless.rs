//! Partitions without generated rows.

use ddl::{Amount, Outcome, Request, Rowless, Schema};
use testkit::{RELEASES, block_on};

use crate::support::{measured, request, server};

/// pgrig chooses no values outside of bounds for a column with a CHECK.
const SCHEMA: &str = "
    CREATE TABLE events (id int NOT NULL, at date NOT NULL, CONSTRAINT late CHECK (at > '2000-01-01')) PARTITION BY RANGE (at);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE events_default PARTITION OF events DEFAULT;
    CREATE TABLE other (id int NOT NULL, at date NOT NULL, CONSTRAINT late CHECK (at > '2000-01-01'));
";
const ADD: &str =
    "CREATE TABLE events_2027 PARTITION OF events FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')";

fn default_partition() -> Rowless {
    Rowless {
        partition: "events_default".to_owned(),
        is_default: true,
        columns: vec!["events.at".to_owned()],
    }
}

/// Those of the statement with this number.
fn rowless(outcome: &Outcome, number: usize) -> &[Rowless] {
    &outcome.statements[number - 1].rowless
}

#[test]
fn a_default_partition_without_rows_is_told_where_a_statement_works_on_it() {
    let migration = format!(
        "BEGIN;
         ALTER TABLE events ADD a int;
         {ADD};
         COMMIT;
         ALTER TABLE events ADD b float8 DEFAULT random();
         ALTER TABLE other ADD a int, ADD b float8;
         ALTER TABLE events ATTACH PARTITION other FOR VALUES FROM ('2028-01-01') TO ('2029-01-01');
         TRUNCATE events_default;"
    );
    for release in RELEASES {
        let server = server(release);
        let outcome = measured(&server, &request(SCHEMA, &migration, Amount::Rows(1000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        for number in [3, 7] {
            assert_eq!(rowless(&outcome, number), [default_partition()], "{release}: {number}");
            assert_eq!(outcome.statements[number - 1].forecast, None, "{release}: {number}");
        }
        // The rewrite works on all rows of the table.
        for number in [2, 5, 6, 8] {
            assert_eq!(rowless(&outcome, number), [], "{release}: {number}");
        }
        // The first ALTER TABLE keeps its lock during the scan.
        let is_unknown = |number: usize| outcome.untimed(&outcome.statements[number - 1]).is_some();
        assert_eq!([2, 3, 5, 7].map(is_unknown), [true, true, false, true], "{release}");
    }
}

#[test]
fn values_outside_the_bounds_fill_the_default_partition() {
    let server = server(18);
    let columns = vec!["events.at=uniform(2025-06-01,2026-12-31)".to_owned()];
    let with_values = Request { columns, ..request(SCHEMA, ADD, Amount::Rows(1000)) };
    let outcome = measured(&server, &with_values).unwrap();
    assert_eq!(rowless(&outcome, 1), [], "{outcome:#?}");
}

#[test]
fn a_default_partition_that_is_empty_in_the_original_is_measured() {
    let server = server(18);
    let outcome = |rows: &str| {
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(SCHEMA).await.unwrap();
            let insert = format!("INSERT INTO events SELECT n, {rows} FROM generate_series(1, 500) n");
            connection.client.batch_execute(&insert).await.unwrap();
            connection.client.batch_execute("ANALYZE").await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        measured(&server, &Request { schema, ..request("", ADD, Amount::Rows(500)) }).unwrap()
    };
    let empty = outcome("date '2024-01-01' + n");
    assert_eq!(rowless(&empty, 1), [], "{empty:#?}");
    // Up to 2026.
    let full = outcome("date '2024-06-01' + n * 3 / 2");
    assert_eq!(rowless(&full, 1), [default_partition()], "{full:#?}");
}
