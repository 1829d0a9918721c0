//! Keys that reach from the first partition of a table to the last one.

use catalog::DescribeRequest;

use crate::support::{given, on_each_release};

#[test]
fn few_keys_lie_in_all_partitions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE events (id bigint NOT NULL, at timestamptz NOT NULL, UNIQUE (id, at)) PARTITION BY RANGE (at);
                 CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
                 CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2025-02-01') TO ('2025-03-01');
                 CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM ('2025-03-01') TO ('2025-04-01');
                 CREATE TABLE seconds (at timestamp(0) PRIMARY KEY) PARTITION BY RANGE (at);
                 CREATE TABLE seconds_1 PARTITION OF seconds FOR VALUES FROM (MINVALUE) TO ('2025-02-01');
                 CREATE TABLE seconds_2 PARTITION OF seconds FOR VALUES FROM ('2025-02-01') TO ('2035-01-01');
                 CREATE TABLE numbers (id int PRIMARY KEY) PARTITION BY RANGE (id);
                 CREATE TABLE numbers_1 PARTITION OF numbers FOR VALUES FROM (1) TO (10000);
                 CREATE TABLE numbers_2 PARTITION OF numbers FOR VALUES FROM (10000) TO (20000);",
            )
            .await;
        let request = |columns: &[&str], spread| DescribeRequest {
            columns: given(columns),
            rows: Some(1_200),
            seed: 42,
            spread,
            uses_all_keys: true,
            ..DescribeRequest::default()
        };
        let statistics: &[&str] = &["id=statistics(-1,1,common(),histogram(1,500000,1000000))"];
        let nothing: &[&str] = &[];
        // The open end of the seconds is ten years long.
        for (table, leaves, columns, most) in
            [("events", 3, statistics, 440), ("seconds", 2, nothing, 1_199), ("numbers", 2, nothing, 640)]
        {
            let counts = format!("SELECT count(*) FROM {table} GROUP BY tableoid");
            let greatest = format!("SELECT max(count) <= {most} FROM ({counts}) AS of_leaves");
            let number = format!("SELECT count(*) FROM ({counts}) AS of_leaves");
            let described = database.fill_requested(table, &request(columns, Some(1_200))).await.unwrap();
            assert_eq!(described.table.rows, 1_200, "{table}");
            assert_eq!(database.value(&number).await, leaves.to_string(), "{table}");
            assert_eq!(database.value(&greatest).await, "true", "{table}");
            // Rows can be added to those that follow each other closely.
            database.sql(&format!("TRUNCATE {table}")).await;
            database.fill_requested(table, &request(columns, None)).await.unwrap();
            assert_eq!(database.value(&number).await, "1", "{table}");
        }
    });
}
