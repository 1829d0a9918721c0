//! CHECKs that only some partitions of a table have.

use crate::support::on_each_release;
use testkit::assert_says;

#[test]
fn checks_of_single_partitions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE sales (day date NOT NULL, n int NOT NULL, note text) PARTITION BY RANGE (day);
                 CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 CREATE TABLE sales_2 PARTITION OF sales (CHECK (n >= 2000000)) FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')
                     PARTITION BY RANGE (day);
                 CREATE TABLE sales_2_1 PARTITION OF sales_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
                 -- No row satisfies both.
                 CREATE TABLE kinds (region text NOT NULL, kind text NOT NULL) PARTITION BY LIST (region);
                 CREATE TABLE kinds_1 PARTITION OF kinds (CONSTRAINT its_kind CHECK (kind = 'a')) FOR VALUES IN ('eu');
                 CREATE TABLE kinds_2 PARTITION OF kinds (CONSTRAINT its_kind CHECK (kind = 'b')) FOR VALUES IN ('us');
                 -- Few of the ascending ids are in the partition with the CHECK.
                 CREATE TABLE kept (id int PRIMARY KEY, note text NOT NULL) PARTITION BY RANGE (id);
                 CREATE TABLE kept_1 PARTITION OF kept FOR VALUES FROM (1) TO (6000);
                 CREATE TABLE kept_2 PARTITION OF kept (CHECK (note ~ '^x[0-9]{5}$' OR id < 0)) FOR VALUES FROM (6000) TO (6400);
                 CREATE TABLE kept_3 PARTITION OF kept FOR VALUES FROM (6400) TO (1000000);",
            )
            .await;
        for (table, rows) in [("sales", 2_000), ("kinds", 500), ("kept", 30_000)] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        for (table, leaves) in [("sales", "2"), ("kinds", "2"), ("kept", "3")] {
            let count = format!("SELECT count(DISTINCT tableoid) FROM {table}");
            assert_eq!(database.value(&count).await, leaves, "{table}");
        }
    });
}

#[test]
fn checks_of_the_bounds() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE monthly (day date NOT NULL, n int) PARTITION BY RANGE (day);
                 CREATE TABLE monthly_1 (day date NOT NULL, n int, CHECK (day >= '2024-01-01' AND day < '2024-02-01'));
                 CREATE TABLE monthly_2 (day date NOT NULL, n int, CHECK (day >= '2024-02-01' AND day < '2024-03-01'));
                 ALTER TABLE monthly ATTACH PARTITION monthly_1 FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 ALTER TABLE monthly ATTACH PARTITION monthly_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
                 CREATE TABLE late (day date NOT NULL) PARTITION BY RANGE (day);
                 CREATE TABLE late_1 PARTITION OF late (CONSTRAINT short CHECK (day < '2024-01-05'))
                     FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 CREATE TABLE late_2 PARTITION OF late FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');",
            )
            .await;
        let described = database.fill("monthly", 2_000).await.unwrap();
        assert_eq!(described.warnings, Vec::<String>::new());
        assert_eq!(database.value("SELECT count(DISTINCT tableoid) FROM monthly").await, "2");
        let error = database.refused("late", &[]).await;
        assert_says(&error, &["would violate short of public.late_1", "--column 'day=SPEC'"]);
    });
}
