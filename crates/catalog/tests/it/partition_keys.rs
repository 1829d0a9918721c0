//! Partition keys that are expressions, and those of several levels: rows for all partitions with bounds.

use crate::support::on_each_release;
use testkit::assert_says;

/// Partitioned tables, each with the partitions that get rows.
const TABLES: [(&str, &str); 9] = [
    ("months", "months_1 months_2 months_3"),
    ("days", "days_1 days_2"),
    ("words", "words_1 words_2"),
    ("years", "years_1 years_2 years_3 years_4"),
    ("year_months", "year_months_1 year_months_2"),
    ("thousands", "thousands_1 thousands_2"),
    ("with_default", "with_default_1 with_default_2"),
    ("remainders", "remainders_0 remainders_1 remainders_2"),
    ("levels", "levels_1 levels_2a levels_2b levels_3a"),
];

#[test]
fn expressions_of_partition_keys() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE months (at timestamp NOT NULL, n int) PARTITION BY RANGE (date_trunc('month', at));
                 CREATE TABLE months_1 PARTITION OF months FOR VALUES FROM ('2025-11-01') TO ('2025-12-01');
                 CREATE TABLE months_2 PARTITION OF months FOR VALUES FROM ('2025-12-01') TO ('2026-01-01');
                 CREATE TABLE months_3 PARTITION OF months FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
                 CREATE TABLE days (at timestamptz NOT NULL) PARTITION BY LIST (((at AT TIME ZONE 'UTC')::date));
                 CREATE TABLE days_1 PARTITION OF days FOR VALUES IN ('2026-03-01');
                 CREATE TABLE days_2 PARTITION OF days FOR VALUES IN ('2026-03-08');
                 CREATE TABLE words (word text NOT NULL, n int) PARTITION BY LIST (lower(word));
                 CREATE TABLE words_1 PARTITION OF words FOR VALUES IN ('eu', 'uk');
                 CREATE TABLE words_2 PARTITION OF words FOR VALUES IN ('us');
                 -- Dates without a constraint lie before 2025.
                 CREATE TABLE years (day date NOT NULL, n int) PARTITION BY RANGE (extract(year FROM day));
                 CREATE TABLE years_1 PARTITION OF years FOR VALUES FROM (2023) TO (2024);
                 CREATE TABLE years_2 PARTITION OF years FOR VALUES FROM (2024) TO (2025);
                 CREATE TABLE years_3 PARTITION OF years FOR VALUES FROM (2025) TO (2026);
                 CREATE TABLE years_4 PARTITION OF years FOR VALUES FROM (2026) TO (2027);
                 CREATE TABLE year_months (at timestamp NOT NULL)
                     PARTITION BY LIST ((extract(year FROM at) * 100 + extract(month FROM at)));
                 CREATE TABLE year_months_1 PARTITION OF year_months FOR VALUES IN (202611);
                 CREATE TABLE year_months_2 PARTITION OF year_months FOR VALUES IN (202612);
                 CREATE TABLE thousands (n int NOT NULL, note text) PARTITION BY RANGE ((n / 1000));
                 CREATE TABLE thousands_1 PARTITION OF thousands FOR VALUES FROM (0) TO (100);
                 CREATE TABLE thousands_2 PARTITION OF thousands FOR VALUES FROM (100) TO (2000);
                 CREATE TABLE with_default (at timestamp NOT NULL) PARTITION BY RANGE (date_trunc('month', at));
                 CREATE TABLE with_default_1 PARTITION OF with_default FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
                 CREATE TABLE with_default_2 PARTITION OF with_default FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
                 CREATE TABLE with_default_rest PARTITION OF with_default DEFAULT;
                 CREATE TABLE remainders (n int NOT NULL) PARTITION BY LIST ((n % 3));
                 CREATE TABLE remainders_0 PARTITION OF remainders FOR VALUES IN (0);
                 CREATE TABLE remainders_1 PARTITION OF remainders FOR VALUES IN (1);
                 CREATE TABLE remainders_2 PARTITION OF remainders FOR VALUES IN (2);
                 -- Some partitions of a list have levels of their own, by different columns.
                 CREATE TABLE levels (id int NOT NULL, region int NOT NULL, day date NOT NULL) PARTITION BY LIST (region);
                 CREATE TABLE levels_1 PARTITION OF levels FOR VALUES IN (1, 2);
                 CREATE TABLE levels_2 PARTITION OF levels FOR VALUES IN (3) PARTITION BY RANGE (id);
                 CREATE TABLE levels_2a PARTITION OF levels_2 FOR VALUES FROM (0) TO (5000);
                 CREATE TABLE levels_2b PARTITION OF levels_2 FOR VALUES FROM (5000) TO (10000);
                 CREATE TABLE levels_3 PARTITION OF levels FOR VALUES IN (4) PARTITION BY RANGE (day);
                 CREATE TABLE levels_3a PARTITION OF levels_3 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');",
            )
            .await;
        for (table, partitions) in TABLES {
            let described =
                database.fill(table, 6_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert!(!described.warnings.join("").contains("stay"), "{table}: {:?}", described.warnings);
            // A tenth of an equal share at least.
            let filled = format!(
                "SELECT string_agg(leaf, ' ' ORDER BY leaf)
                   FROM (SELECT tableoid::regclass::text AS leaf FROM {table} GROUP BY tableoid HAVING count(*) > 300) AS filled"
            );
            assert_eq!(database.value(&filled).await, partitions, "{table}");
        }
        // Not only the bounds themselves.
        for (column, table) in
            [("at", "months"), ("at", "with_default"), ("at", "year_months"), ("day", "years")]
        {
            let various = format!("SELECT count(DISTINCT {column}) > 200 FROM {table}");
            assert_eq!(database.value(&various).await, "true", "{table}");
        }
        // Where all partitions get rows anyway, values are as without partitions.
        let various = "SELECT count(DISTINCT n) > 4000 FROM remainders";
        assert_eq!(database.value(various).await, "true");
    });
}

#[test]
fn partitions_for_which_no_values_are_found_are_named() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE lengths (word text NOT NULL) PARTITION BY LIST ((length(word) % 10));
                 CREATE TABLE lengths_1 PARTITION OF lengths FOR VALUES IN (5);
                 -- No remainder of 10.
                 CREATE TABLE lengths_2 PARTITION OF lengths FOR VALUES IN (17);
                 CREATE TABLE unknown (word text NOT NULL) PARTITION BY LIST (md5(word));
                 CREATE TABLE unknown_1 PARTITION OF unknown FOR VALUES IN ('00000000000000000000000000000000');
                 CREATE TABLE unknown_2 PARTITION OF unknown FOR VALUES IN ('ffffffffffffffffffffffffffffffff');",
            )
            .await;
        let described = database.fill("lengths", 100).await.unwrap();
        let warnings = described.warnings.join("");
        assert_says(&warnings, &["partition public.lengths_2 stays empty", "--column"]);
        let error = database.refused("unknown", &[]).await;
        assert_says(
            &error,
            &["only 0 satisfied the bounds of its partitions: describe", "--column 'word=SPEC'"],
        );
    });
}
