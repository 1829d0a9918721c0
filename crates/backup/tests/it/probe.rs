//! Lookups beside backups.

use backup::{Observer, Outcome, Request, Site, Witness};
use pgserver::Home;
use testkit::{Need, Server, assert_says, block_on, require, templates};

use crate::support::{Unwatched, assert_nothing_is_left, server, ways};

async fn probed(server: &Server, names: &[&str], observer: &mut impl Observer) -> Outcome {
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(server.major()) * 10_000;
    let target = server.target("postgres");
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request { ways: ways(names), trials: 1, bin: None, probe: true, network: false };
    let outcome =
        Box::pin(backup::rehearse(&site, &request, observer, std::future::pending())).await.unwrap();
    assert_nothing_is_left(home.root());
    outcome
}

#[test]
fn lookups_run_beside_each_backup_and_write_nothing() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    block_on(async {
        let connection = server.connect("postgres").await;
        let make = "CREATE TABLE \"Two\" (\"A\" int, b text, v text, PRIMARY KEY (b, \"A\") INCLUDE (v)); \
                    INSERT INTO \"Two\" SELECT i, 'it''s ' || i, 'x' FROM generate_series(1, 500) i; \
                    CREATE TABLE no_key AS SELECT 1 AS i; CREATE TABLE no_rows (i int PRIMARY KEY)";
        connection.client.batch_execute(make).await.unwrap();
        let state = "SELECT pg_current_snapshot()::text || pg_database_size('postgres')";
        let before: String = connection.client.query_one(state, &[]).await.unwrap().get(0);
        let outcome = probed(&server, &["custom", "base"], &mut Unwatched).await;
        let after: String = connection.client.query_one(state, &[]).await.unwrap().get(0);
        assert_eq!((before, &outcome.failed), (after, &Vec::new()));
        assert_eq!(outcome.notes, Vec::<String>::new());
        for trial in &outcome.trials {
            let beside = trial.beside.as_ref().unwrap();
            // One second of 50.
            assert!(beside.baseline.latencies.count() >= 49, "{beside:#?}");
            assert_eq!((beside.baseline.failed, beside.during.failed, beside.transactions), (0, 0, 0));
            // A short dump may hold its locks between two looks.
            assert!(beside.locks.keys().all(|mode| mode == "AccessShareLock"), "{beside:#?}");
            assert_ne!(trial.verified.witness, Witness::Changed);
            let document = trial.document();
            assert!(document.events.iter().any(|event| event.what["event"] == "beside"));
        }
        connection.client.batch_execute("DROP TABLE \"Two\"").await.unwrap();
        let outcome = probed(&server, &["plain"], &mut Unwatched).await;
        assert_says(&outcome.notes.join(" "), &["no lookups", "has both rows and a primary key"]);
        assert_eq!(outcome.trials[0].beside, None);
        connection.close().await;
    });
}
