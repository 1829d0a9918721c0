//! Rows for default partitions on which statements work.

use std::time::Duration;

use ddl::{Amount, Observer, Outcome, Plan, PlannedDefault, Request, Schema, Statement};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured_by, request, server};

const EVENTS: &str = "
    CREATE TABLE events (id int NOT NULL, at date NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE events_default PARTITION OF events DEFAULT;
";
const ADD: &str =
    "CREATE TABLE events_2027 PARTITION OF events FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')";

/// Keeps the default partitions of the plan.
#[derive(Default)]
struct Planned(Vec<PlannedDefault>);

impl Observer for Planned {
    fn planned(&mut self, plan: &Plan) {
        self.0.clone_from(&plan.defaults);
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

fn run(server: &Server, request: &Request) -> (Vec<PlannedDefault>, Outcome) {
    let mut planned = Planned::default();
    let outcome = measured_by(server, request, &mut planned).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    (planned.0, outcome)
}

/// The default partition of the plan has rows, also those of the measurement.
fn assert_filled(server: &Server, schema: &str, migration: &str) {
    let (planned, outcome) = run(server, &request(schema, migration, Amount::Rows(1000)));
    let shares: Vec<_> = planned.iter().map(|one| (one.share, one.is_assumed)).collect();
    assert_eq!(shares, [(0.1, true)], "{schema}");
    for one in &outcome.statements {
        assert_eq!(one.rowless, [], "{schema}: {}", one.statement.sql);
    }
}

/// The server refuses a new partition if the default partition has a row within its bounds.
#[test]
fn the_rows_lie_outside_of_all_bounds() {
    let attach = "
        ALTER TABLE events ADD a int;
        CREATE TABLE made (LIKE events);
        ALTER TABLE events ATTACH PARTITION made FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');";
    for release in RELEASES {
        let server = server(release);
        for migration in [ADD.to_owned(), format!("BEGIN; {attach} {ADD}; COMMIT")] {
            assert_filled(&server, EVENTS, &migration);
        }
    }
}

#[test]
fn keys_of_each_type_get_values() {
    let server = server(18);
    let of_range = |key: &str, ends: [&str; 4]| {
        let [first, second, third, fourth] = ends;
        let schema = format!(
            "CREATE TABLE t (id int, k {key} NOT NULL) PARTITION BY RANGE (k);
             CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ({first}) TO ({second});
             CREATE TABLE t_default PARTITION OF t DEFAULT;"
        );
        (schema, format!("CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM ({third}) TO ({fourth})"))
    };
    let dates = ["'2024-01-01'", "'2025-01-01'", "'2026-01-01'", "'2027-01-01'"];
    for (key, ends) in [
        ("smallint", ["0", "100", "200", "300"]),
        ("int", ["-50", "100", "200", "300"]),
        ("bigint", ["0", "100", "200", "MAXVALUE"]),
        ("numeric(10,2)", ["0.5", "100", "200", "300"]),
        ("timestamp", dates),
        ("timestamptz", dates),
    ] {
        let (schema, migration) = of_range(key, ends);
        assert_filled(&server, &schema, &migration);
    }
    for (key, values, new) in
        [("int", "1, 2, 7", "9"), ("text", "'a', 'it''s'", "'other'"), ("date", dates[0], dates[3])]
    {
        let schema = format!(
            "CREATE TABLE t (id int, k {key}) PARTITION BY LIST (k);
             CREATE TABLE t_1 PARTITION OF t FOR VALUES IN ({values});
             CREATE TABLE t_default PARTITION OF t DEFAULT;"
        );
        let migration = format!("CREATE TABLE t_2 PARTITION OF t FOR VALUES IN ({new}, NULL)");
        assert_filled(&server, &schema, &migration);
    }
}

#[test]
fn the_share_is_that_of_the_original() {
    let server = server(18);
    let planned = |rows: &str| {
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(EVENTS).await.unwrap();
            let insert = format!("INSERT INTO events SELECT n, {rows} FROM generate_series(0, 999) n");
            connection.client.batch_execute(&insert).await.unwrap();
            connection.client.batch_execute("ANALYZE").await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let (planned, outcome) = run(&server, &Request { schema, ..request("", ADD, Amount::Rows(1000)) });
        assert_eq!(outcome.statements[0].rowless, [], "{outcome:#?}");
        planned.iter().map(|one| (one.share, one.is_assumed)).collect::<Vec<_>>()
    };
    assert_eq!(planned("date '2024-01-01' + CASE WHEN n < 250 THEN 3650 ELSE n % 700 END"), [(0.25, false)]);
    assert_eq!(planned("date '2024-01-01' + n % 700"), []);
}

#[test]
fn values_of_the_user_and_unused_default_partitions_stay() {
    let server = server(18);
    let columns = vec!["events.at=uniform(2025-06-01,2026-12-31)".to_owned()];
    let given = Request { columns, ..request(EVENTS, ADD, Amount::Rows(1000)) };
    assert_eq!(run(&server, &given).0, []);
    let of_all = request(EVENTS, "ALTER TABLE events ADD b float8 DEFAULT random()", Amount::Rows(1000));
    assert_eq!(run(&server, &of_all).0, []);
}
