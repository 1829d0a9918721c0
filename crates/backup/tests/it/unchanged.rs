//! Transactions in the original that commit nothing while it is backed up.

use backup::Witness;
use testkit::{Need, block_on, require, until_async};

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

/// There is no such standby, so a commit waits: its rows are in a copy of the server's files, and no snapshot of the original sees them.
#[test]
fn a_commit_that_waits_for_a_standby_is_no_difference() {
    if !require(Need::Clients) {
        return;
    }
    let mut server = server(13);
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) i");
    server.restart_with(&[("synchronous_standby_names", "nobody")]);
    block_on(async {
        let (writer, watching) = (server.connect("postgres").await, server.connect("postgres").await);
        // The first ones may come before the checkpointer makes commits wait.
        let writing = async {
            loop {
                writer.client.batch_execute("INSERT INTO t VALUES (0)").await.unwrap();
            }
        };
        let rehearsing = async {
            until_async("a commit waits", async || {
                let query = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')";
                watching.client.query_one(query, &[]).await.unwrap().get(0)
            })
            .await;
            rehearsed(&server, &server.target("postgres"), &["base", "custom:none"]).await.unwrap()
        };
        let outcome = tokio::select! {
            () = writing => unreachable!(),
            outcome = rehearsing => outcome,
        };
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        let found: Vec<Witness> = outcome.trials.iter().map(|trial| trial.verified.witness).collect();
        assert_eq!(found, [Witness::Changed, Witness::SameSnapshot]);
    });
}
