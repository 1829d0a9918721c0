//! Partitions by hash, over which a restore distributes the rows anew.

use testkit::{Need, block_on, require};

use crate::support::{rehearsed, server};

/// The hash of an enum's label is that of its OID, which a restored database has anew. `deep` has such partitions above and below others.
const SCHEMA: &str = "
    CREATE TYPE label AS ENUM ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
    CREATE TABLE flat (v label, x int) PARTITION BY HASH (v);
    CREATE TABLE flat_0 PARTITION OF flat FOR VALUES WITH (MODULUS 3, REMAINDER 0);
    CREATE TABLE flat_1 PARTITION OF flat FOR VALUES WITH (MODULUS 3, REMAINDER 1);
    CREATE TABLE flat_2 PARTITION OF flat FOR VALUES WITH (MODULUS 3, REMAINDER 2);
    INSERT INTO flat SELECT (enum_range(NULL::label))[1 + i % 8], i FROM generate_series(1, 900) i;
    CREATE TABLE deep (v label, x int) PARTITION BY RANGE (x);
    CREATE TABLE deep_low PARTITION OF deep FOR VALUES FROM (0) TO (100) PARTITION BY HASH (v);
    CREATE TABLE deep_low_0 PARTITION OF deep_low FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY LIST (v);
    CREATE TABLE deep_low_0_some PARTITION OF deep_low_0 FOR VALUES IN ('a', 'b');
    CREATE TABLE deep_low_0_others PARTITION OF deep_low_0 DEFAULT;
    CREATE TABLE deep_low_1 PARTITION OF deep_low FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    CREATE TABLE deep_high PARTITION OF deep FOR VALUES FROM (100) TO (MAXVALUE);
    INSERT INTO deep SELECT (enum_range(NULL::label))[1 + i % 7], i FROM generate_series(1, 300) i;
";
const ROWS: u64 = 900 + 300;

#[test]
fn rows_may_come_back_in_other_partitions_by_hash() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    block_on(async {
        let connection = server.connect("postgres").await;
        connection.client.batch_execute(SCHEMA).await.unwrap();
        connection.close().await;
        let names = ["plain:none", "custom:none", "directory:none,jobs=2", "base"];
        let outcome = rehearsed(&server, &server.target("postgres"), &names).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_eq!(outcome.trials.len(), names.len());
        for trial in &outcome.trials {
            assert_eq!(trial.verified.rows, ROWS, "{}", trial.way);
        }
    });
}
