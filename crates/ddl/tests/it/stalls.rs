//! Waits of readers and writers, compared with those of a session that is not pgrig's.

use std::time::{Duration, Instant};

use ddl::{Amount, Outcome, Probes, Request};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, n int, gone int);
    CREATE TABLE keyless (n int);
    CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
    CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, twice int GENERATED ALWAYS AS (2) STORED, n int);
    CREATE TABLE only_made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
";

fn probing(migration: &str, probes: Probes) -> Request {
    Request { probes: Some(probes), ..request(SCHEMA, migration, Amount::Rows(500)) }
}

/// The longest time for which a lookup of a session of its own had no answer, while pgrig measures.
fn independently(server: &Server, request: &Request) -> (Outcome, f64) {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| measured(server, request).unwrap());
        let longest = block_on(async {
            let postgres = server.connect("postgres").await;
            let mut longest = Duration::ZERO;
            while !running.is_finished() {
                let query = "SELECT datname::text FROM pg_database WHERE datname LIKE 'pgrig_ddl_%_stall'";
                let found = postgres.client.query_opt(query, &[]).await.unwrap();
                let Some(database) = found.map(|row| row.get::<_, String>(0)) else {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                };
                // It is there as long as the database is.
                let Ok(connection) = server.target(&database).connect().await else { continue };
                loop {
                    let asked = Instant::now();
                    if connection.client.simple_query("SELECT n FROM t WHERE id = 7").await.is_err() {
                        break;
                    }
                    longest = longest.max(asked.elapsed());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            longest
        });
        (running.join().unwrap(), longest.as_secs_f64())
    })
}

#[test]
fn the_stall_is_what_an_independent_session_sees() {
    let migration = "BEGIN; ALTER TABLE t ADD a int; SELECT pg_sleep(2); COMMIT; ALTER TABLE t ADD b int;";
    for release in RELEASES {
        let server = server(release);
        let (outcome, other) = independently(&server, &probing(migration, Probes::default()));
        let stall = outcome.statements[1].stall.as_ref().unwrap();
        for wait in [&stall.read, &stall.write] {
            let wait = wait.as_ref().unwrap();
            let most = f64::max(0.020, other * 0.05);
            assert!((wait.seconds - other).abs() <= most, "{release}: {wait:?}, another session {other}");
            // Most of it was for a lock.
            assert!(
                wait.lock > other / 2.0 && wait.lock <= wait.seconds && wait.name == "public.t",
                "{release}: {wait:?}"
            );
        }
        // Before the next transaction, all had caught up.
        let later = outcome.statements[4].stall.as_ref().unwrap().longest().map_or(0.0, |wait| wait.seconds);
        assert!(later < other / 2.0, "{release}: {later}");
    }
}

#[test]
fn a_transaction_that_is_open_before_makes_a_queue() {
    let server = server(18);
    let probes = Probes { blocker: Some(Duration::from_secs(2)), ..Probes::default() };
    let outcome = measured(&server, &probing("ALTER TABLE t ADD a int", probes)).unwrap();
    let of = |one: &Option<ddl::Stall>| one.as_ref().unwrap().longest().unwrap().seconds;
    let (free, blocked) = (of(&outcome.statements[0].stall), of(&outcome.statements[0].blocked));
    // The migration begins a little after that transaction.
    assert!(blocked > 0.5 && free < blocked, "{free} {blocked}");

    // Its own time-out ends the wait, and it is told.
    let probes = Probes { blocker: Some(Duration::from_mins(1)), ..Probes::default() };
    let migration = "SET lock_timeout = '300ms'; ALTER TABLE t ADD a int; ALTER TABLE t ADD b int";
    let outcome = measured(&server, &probing(migration, probes)).unwrap();
    let blocked = outcome.statements[1].blocked.as_ref().unwrap();
    assert!(blocked.failed.as_ref().unwrap().contains("lock timeout"), "{blocked:?}");
    assert!(outcome.statements[1].stall.as_ref().unwrap().failed.is_none());
}

#[test]
fn a_writer_sets_a_column_that_the_server_does_not_make() {
    let server = server(18);
    let migration = "ALTER TABLE made ADD a int; ALTER TABLE only_made ADD a int";
    let probed = measured(&server, &probing(migration, Probes::default())).unwrap().probed.unwrap();
    assert!(probed.stopped.is_empty(), "{probed:?}");
    assert!(probed.names.contains(&"writer public.made".to_owned()), "{probed:?}");
    assert!(probed.unprobed[0].starts_with("writes of public.only_made: "), "{probed:?}");
}

#[test]
fn what_cannot_be_probed_is_told() {
    let server = server(18);
    let migration = "
        ALTER TABLE keyless ADD a int;
        ALTER TABLE parted ADD a int;
        BEGIN; SAVEPOINT s; ALTER TABLE t ADD a int; ROLLBACK TO s; COMMIT;
        CREATE INDEX CONCURRENTLY ON t (n);
        DROP TABLE t;
        SELECT 1;";
    let outcome = measured(&server, &probing(migration, Probes::default())).unwrap();
    let probed = outcome.probed.as_ref().unwrap();
    assert_eq!(probed.names.len(), 4, "{probed:?}");
    assert!(probed.unprobed[0].starts_with("public.keyless: it has no key"), "{probed:?}");
    let stopped: Vec<_> =
        probed.stopped.iter().map(|stopped| (stopped.name.as_str(), stopped.number)).collect();
    assert_eq!(stopped, [("public.t", Some(9)), ("public.t", Some(9))], "{probed:?}");
    assert!(probed.baseline.read.is_some() && probed.baseline.write.is_some());

    // The user's statements need no key; a column that is dropped ends them.
    let own = Probes {
        read: Some("SELECT count(gone) FROM t".to_owned()),
        write: Some("INSERT INTO keyless VALUES (1)".to_owned()),
        blocker: None,
    };
    let outcome =
        measured(&server, &probing("ALTER TABLE t DROP gone; ALTER TABLE keyless ADD a int", own)).unwrap();
    let probed = outcome.probed.unwrap();
    assert_eq!(probed.names, ["reader your statement", "writer your statement"]);
    assert!(probed.stopped[0].message.contains("gone"), "{probed:?}");
    assert!(outcome.statements[1].stall.as_ref().unwrap().write.is_some());
}
