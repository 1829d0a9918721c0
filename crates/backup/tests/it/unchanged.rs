//! Transactions in the original that commit nothing while it is backed up.

use backup::Witness;
use testkit::{Need, block_on, require};

use crate::support::{rehearsed, server};

/// A prepared transaction and an open one, both with rows.
#[test]
fn rows_are_compared_beside_transactions_that_stay_open() {
    if !require(Need::Clients) {
        return;
    }
    let mut server = server(13);
    server.restart_with(&[("max_prepared_transactions", "5")]);
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) i");
    block_on(async {
        let (prepared, open) = (server.connect("postgres").await, server.connect("postgres").await);
        for sql in ["BEGIN", "INSERT INTO t VALUES (0)", "PREPARE TRANSACTION 'idle'"] {
            prepared.client.batch_execute(sql).await.unwrap();
        }
        for sql in ["BEGIN", "INSERT INTO t VALUES (-1)"] {
            open.client.batch_execute(sql).await.unwrap();
        }
        let outcome = rehearsed(&server, &server.target("postgres"), &["base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        let found = &outcome.trials[0].verified;
        assert_eq!((found.witness, found.rows), (Witness::Unchanged, 1000));
        for connection in [prepared, open] {
            connection.close().await;
        }
    });
}
