//! Waits of readers and writers, compared with those of a session that is not pgrig's.

use std::time::{Duration, Instant};

use ddl::{Amount, DdlError, Outcome, ProbeKind, ProbeScript, Probes, Probing, Request};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, n int, gone int);
    CREATE TABLE keyless (n int);
    CREATE VIEW seen AS SELECT n FROM keyless;
    CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
    CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, twice int GENERATED ALWAYS AS (2) STORED, n int);
    CREATE TABLE only_made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
";

/// A lock that stays longer than the interval of any probe: a statement alone may end before one is due.
const HELD: &str = "BEGIN; ALTER TABLE keyless ADD b int; SELECT pg_sleep(1); COMMIT";

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
        let (mut far, mut near) = (Vec::new(), 0);
        // The median of five is near if three are.
        while near < 3 {
            let (outcome, other) = independently(&server, &probing(migration, Probes::default()));
            let stall = outcome.statements[1].stall.as_ref().unwrap();
            let most = f64::max(0.020, other * 0.05);
            let waits = [&stall.read, &stall.write].map(|wait| wait.as_ref().unwrap());
            // A machine without time for its probes makes them late before there is a lock; what was due while the lock
            // was there is then answered long after it.
            let baseline = &outcome.probed.as_ref().unwrap().baseline;
            let is_busy = [baseline.read, baseline.write].into_iter().flatten().any(|late| late > most / 2.0);
            let is_near = |seconds: f64| (seconds - other).abs() <= most;
            let are_near = |wait: &&ddl::Wait| is_near(wait.lock) && (is_busy || is_near(wait.seconds));
            // Before the next transaction, all had caught up.
            let later = outcome.statements[4].stall.as_ref().unwrap().longest();
            let later = later.map_or(0.0, |wait| if is_busy { wait.lock } else { wait.seconds });
            if waits.iter().all(are_near) && later < other / 2.0 {
                near += 1;
            } else {
                far.push(format!("{waits:?}, later {later}, another session {other}, {baseline:?}"));
            }
            assert!(far.len() < 3, "{release}: {far:#?}");
            for wait in waits {
                // Most of it was for a lock.
                assert!(
                    wait.lock > other / 2.0 && wait.lock <= wait.seconds && wait.name == "public.t",
                    "{release}: {wait:?}"
                );
            }
        }
    }
}

#[test]
fn a_transaction_that_is_open_before_makes_a_queue() {
    let server = server(18);
    let probes = Probes { blocker: Some(Duration::from_secs(2)), ..Probes::default() };
    let outcome = measured(&server, &probing("ALTER TABLE t ADD a int", probes)).unwrap();
    // A statement may end before one is due.
    let of = |one: &Option<ddl::Stall>| one.as_ref().unwrap().longest().map_or(0.0, |wait| wait.seconds);
    let (free, blocked) = (of(&outcome.statements[0].stall), of(&outcome.statements[0].blocked));
    // The migration begins a little after that transaction.
    assert!(blocked > 0.5 && free < blocked, "{free} {blocked}");

    // Its own time-out ends the wait, and it is told.
    let probes = Probes { blocker: Some(Duration::from_mins(1)), ..Probes::default() };
    let migration = "SET lock_timeout = '2s'; ALTER TABLE t ADD a int; ALTER TABLE t ADD b int";
    let outcome = measured(&server, &probing(migration, probes)).unwrap();
    let blocked = outcome.statements[1].blocked.as_ref().unwrap();
    assert!(blocked.failed.as_ref().unwrap().contains("lock timeout"), "{blocked:?}");
    assert!(outcome.statements[1].stall.as_ref().unwrap().failed.is_none());
}

/// COMMIT AND CHAIN begins another transaction at once, which keeps its own locks.
#[test]
fn a_chained_transaction_keeps_its_own_locks() {
    for release in RELEASES {
        let server = server(release);
        let migration = "
            BEGIN; ALTER TABLE t ADD a int; COMMIT AND CHAIN;
            ALTER TABLE t ADD b int; SELECT 1; SELECT 2; COMMIT;";
        let outcome = measured(&server, &probing(migration, Probes::default())).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        // To wait for sessions that wait for the migration takes 10 s.
        let longest = outcome.statements.iter().filter_map(|one| one.stall.as_ref()?.longest());
        let longest = longest.map(|wait| wait.seconds).fold(0.0, f64::max);
        assert!(longest < 5.0, "{release}: {longest}");
        let cost = |place: usize| outcome.statements[place].largest().unwrap().runs[0];
        let held = |from: usize, to: usize| (from..=to).map(|place| cost(place).seconds).sum::<f64>();
        assert!((cost(1).held - held(1, 2)).abs() < 1e-6, "{release}: {:?}", cost(1));
        assert!((cost(3).held - held(3, 6)).abs() < 1e-6, "{release}: {:?}", cost(3));
    }
}

/// Rows that are probed are of the whole table, not only those at its beginning.
#[test]
fn a_writer_meets_rows_that_only_a_part_of_a_table_has_locked() {
    let server = server(18);
    let migration = "BEGIN; UPDATE t SET n = n WHERE id > 2500; SELECT pg_sleep(2); COMMIT";
    let request = Request { amount: Amount::Rows(5000), ..probing(migration, Probes::default()) };
    let outcome = measured(&server, &request).unwrap();
    let stall = outcome.statements[1].stall.as_ref().unwrap();
    let (read, write) = (stall.read.as_ref().unwrap(), stall.write.as_ref().unwrap());
    assert!(write.lock > 1.0 && read.lock == 0.0, "{stall:?}");
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
        read: Some(Probing::Statement("SELECT count(gone) FROM t".to_owned())),
        write: Some(Probing::Statement("INSERT INTO keyless VALUES (1)".to_owned())),
        blocker: None,
    };
    let migration = format!("ALTER TABLE t DROP gone; {HELD}");
    let outcome = measured(&server, &probing(&migration, own)).unwrap();
    let probed = outcome.probed.unwrap();
    assert_eq!(probed.names, ["reader your statement", "writer your statement"]);
    assert!(probed.stopped[0].message.contains("gone"), "{probed:?}");
    assert!(outcome.statements[2].stall.as_ref().unwrap().write.is_some(), "{:?}", outcome.statements);
}

/// No wait is no proof where nobody could wait.
#[test]
fn blocked_tables_that_no_session_uses_are_named() {
    for release in RELEASES {
        let server = server(release);
        let migration = "
            ALTER TABLE keyless ADD a int;
            CREATE INDEX CONCURRENTLY ON keyless (n);
            ALTER VIEW seen RENAME TO noticed;
            ALTER TABLE parted ADD a int;
            ALTER TABLE only_made ADD a int;
            CREATE INDEX ON only_made (id);
            ALTER TABLE t RENAME TO t2;
            SELECT pg_sleep(1);
            ALTER TABLE t2 ADD b int;";
        let outcome = measured(&server, &probing(migration, Probes::default())).unwrap();
        let unprobed = |one: &ddl::StatementOutcome| one.stall.as_ref().unwrap().unprobed.join(" ");
        let found: Vec<String> = outcome.statements.iter().map(unprobed).collect();
        // Only writers wait for CREATE INDEX, and those of t have stopped.
        let wanted = ["public.keyless", "", "public.seen", "", "", "public.only_made", "", "", "public.t"];
        assert_eq!(found, wanted, "{release}: {:?}", outcome.probed);
    }
    let own = Probes {
        read: Some(Probing::Statement("SELECT count(*) FROM keyless".to_owned())),
        ..Probes::default()
    };
    let outcome = measured(&server(18), &probing("ALTER TABLE keyless ADD a int", own)).unwrap();
    assert_eq!(outcome.statements[0].stall.as_ref().unwrap().unprobed, Vec::<String>::new());
}

/// The rows of a partitioned table are those of its partitions.
#[test]
fn a_large_partitioned_table_is_probed_before_small_ones() {
    let server = server(18);
    let small: String =
        ["a", "b", "c", "d"].map(|name| format!("CREATE TABLE {name} (id int PRIMARY KEY);")).concat();
    let schema = format!(
        "{small} CREATE TABLE events (id int PRIMARY KEY, note text, more text) PARTITION BY RANGE (id);
         CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id);
         CREATE TABLE events_1_all PARTITION OF events_1 DEFAULT;
         CREATE TABLE events_2 PARTITION OF events DEFAULT;"
    );
    let migration = ["events", "a", "b", "c", "d"].map(|name| format!("ALTER TABLE {name} ADD n int;"));
    let request = Request {
        probes: Some(Probes::default()),
        ..request(&schema, &migration.concat(), Amount::Rows(2000))
    };
    let probed = measured(&server, &request).unwrap().probed.unwrap();
    assert_eq!(probed.names[..2], ["reader public.events", "writer public.events"], "{probed:?}");
    assert_eq!(probed.unprobed.len(), 1, "{probed:?}");
    assert!(probed.unprobed[0].contains("only the 4 largest"), "{probed:?}");
}

/// The largest table has no key, so the four others have all readers and writers.
#[test]
fn a_table_without_a_key_takes_no_place_among_the_largest() {
    let server = server(18);
    let names = ["a", "b", "c", "d"];
    let keyed = names.map(|name| format!("CREATE TABLE {name} (id int PRIMARY KEY);")).concat();
    let schema = format!("{keyed} CREATE TABLE wide (n int, note text, more text);");
    let migration = ["wide", "a", "b", "c", "d"].map(|name| format!("ALTER TABLE {name} ADD x int;"));
    let request = Request {
        probes: Some(Probes::default()),
        ..request(&schema, &migration.concat(), Amount::Rows(2000))
    };
    let probed = measured(&server, &request).unwrap().probed.unwrap();
    for name in names {
        for role in ["reader", "writer"] {
            assert!(probed.names.contains(&format!("{role} public.{name}")), "{probed:?}");
        }
    }
    assert_eq!(probed.unprobed.len(), 1, "{probed:?}");
    assert!(probed.unprobed[0].starts_with("public.wide: it has no key"), "{probed:?}");
}

/// A reader that catches up slowly has a backlog of seconds, which is not the stall of the next statement.
#[test]
fn a_long_lock_does_not_stall_the_next_statement() {
    let server = server(18);
    let schema = format!("{SCHEMA} CREATE SEQUENCE runs;");
    // It is due every 200 ms, twice the time of its first runs.
    let read = "SELECT pg_sleep(CASE WHEN nextval('runs') > 10 THEN 0.17 ELSE 0.1 END) FROM t WHERE id = 7";
    let probes = Probes { read: Some(Probing::Statement(read.to_owned())), ..Probes::default() };
    let migration = "
        DO $$ BEGIN
            LOCK TABLE t;
            PERFORM pg_sleep(CASE WHEN current_database() LIKE '%\\_stall' THEN 3 ELSE 0 END);
        END $$;
        BEGIN; ALTER TABLE t ADD a int; SELECT pg_sleep(0.8); COMMIT;";
    let request = Request { probes: Some(probes), ..request(&schema, migration, Amount::Rows(500)) };
    let outcome = measured(&server, &request).unwrap();
    let stall = |place: usize| outcome.statements[place].stall.as_ref().unwrap();
    let first = stall(0).read.as_ref().unwrap();
    assert!(first.lock > 1.5 && first.seconds >= first.lock, "{first:?}");
    let later: Vec<f64> =
        (1..5).filter_map(|place| stall(place).read.as_ref()).map(|wait| wait.seconds).collect();
    assert!(!later.is_empty() && later.iter().all(|wait| *wait < first.seconds / 2.0), "{first:?} {later:?}");
}

fn script(text: &str) -> Probing {
    Probing::Script(ProbeScript::read("probe.sql", text).unwrap())
}

/// Variables, conditions, results and transactions of a script are carried out: without them, its own divisions by zero stop it.
#[test]
fn scripts_of_pgbench_read_and_write() {
    for release in RELEASES {
        let server = server(release);
        let probes = Probes {
            read: Some(script(
                "SELECT min(id) AS least, max(id) AS most FROM t \\gset\n\\set id random(:least, :most)\n\
                 SELECT 1 / count(*) FROM t WHERE id = :id;",
            )),
            write: Some(script(
                "\\set n random(1, 1000000000)\nBEGIN;\nINSERT INTO keyless VALUES (:n);\n\\if :n > 500000000\n\
                 UPDATE t SET n = 1 / (:n / :n) WHERE id = 7;\n\\endif\nEND;",
            )),
            blocker: None,
        };
        let migration = format!("ALTER TABLE t ADD a int; {HELD}");
        let outcome = measured(&server, &probing(&migration, probes)).unwrap();
        let found = outcome.probed.unwrap();
        assert!(found.stopped.is_empty(), "{release}: {found:?}");
        assert_eq!(found.names, ["reader probe.sql", "writer probe.sql"], "{release}");
        assert!(found.baseline.read.is_some() && found.baseline.write.is_some(), "{release}: {found:?}");
        // The writer meets the lock of the second; the reader, which uses another table, the sleep.
        let stalls: Vec<_> = outcome.statements[1..].iter().filter_map(|one| one.stall.as_ref()).collect();
        assert!(stalls[1].write.is_some(), "{release}: {stalls:?}");
        assert!(stalls.iter().any(|stall| stall.read.is_some()), "{release}: {stalls:?}");
    }
}

/// A script that takes longer than the usual interval is due less often, and keeps up.
#[test]
fn a_slow_script_does_not_queue_behind_itself() {
    let server = server(18);
    let probes = Probes { read: Some(script("SELECT pg_sleep(0.05);\n\\sleep 50 ms")), ..Probes::default() };
    let found = measured(&server, &probing("ALTER TABLE t ADD a int", probes)).unwrap().probed.unwrap();
    let rate = |name: &str| found.per_second[found.names.iter().position(|one| one == name).unwrap()];
    assert!(rate("reader probe.sql") <= 5.0, "{found:?}");
    assert!((rate("writer public.t") - 500.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_reader_that_can_never_succeed_is_refused_before_tables_are_filled() {
    let server = server(18);
    let refused =
        |probes: Probes| measured(&server, &probing("ALTER TABLE t ADD a int", probes)).unwrap_err();
    let statement = |sql: &str| Probing::Statement(sql.to_owned());
    let error =
        refused(Probes { read: Some(script("SELECT 1;\nSELECT nothing FROM t;")), ..Probes::default() });
    assert!(matches!(error, DdlError::Probing { option: "--probe-read", .. }), "{error}");
    assert!(error.to_string().contains("\"nothing\" does not exist"), "{error}");
    let error =
        refused(Probes { write: Some(statement("UPDATE t SET n = :n WHERE id = 1")), ..Probes::default() });
    assert!(matches!(error, DdlError::Probing { option: "--probe-write", .. }), "{error}");
    for open in [script("BEGIN;\nUPDATE t SET n = 1;"), statement("BEGIN; UPDATE t SET n = 1")] {
        let error = refused(Probes { write: Some(open), ..Probes::default() });
        assert!(matches!(error, DdlError::ProbeOpen { option: "--probe-write" }), "{error}");
    }
}

#[test]
fn a_script_whose_result_has_no_row_stops() {
    let server = server(18);
    let probes = Probes { read: Some(script("SELECT n FROM t WHERE id = -1 \\gset")), ..Probes::default() };
    let found = measured(&server, &probing("ALTER TABLE t ADD a int", probes)).unwrap().probed.unwrap();
    assert!(found.stopped[0].message.contains("expected one row, got 0"), "{found:?}");
    assert!(found.stopped[0].number.is_none(), "{found:?}");
}

/// The writer has its lock on the table and waits for a row; the migration has the row and waits for the table.
#[test]
fn a_deadlock_that_a_writer_loses_is_an_error_of_the_statement_that_waits() {
    let migration =
        "BEGIN; UPDATE t SET n = 1; SELECT pg_sleep(0.3); ALTER TABLE t ALTER n SET NOT NULL; COMMIT";
    for release in RELEASES {
        let outcome = measured(&server(release), &probing(migration, Probes::default())).unwrap();
        let stalls: Vec<_> = outcome.statements.iter().map(|one| one.stall.as_ref().unwrap()).collect();
        let lost: Vec<usize> = stalls.iter().map(|stall| stall.deadlocks.len()).collect();
        assert_eq!(lost, [0, 0, 0, 1, 0], "{release}: {stalls:#?}");
        let lost = &stalls[3].deadlocks[0];
        assert_eq!((lost.name.as_str(), lost.kind), ("public.t", ProbeKind::Write), "{release}");
        // deadlock_timeout is 1 s.
        assert!(lost.seconds > 0.9, "{release}: {lost:?}");
        // Its wait for the row counts for the UPDATE.
        assert!(stalls[1].write.as_ref().is_some_and(|wait| wait.lock > 0.9), "{release}: {:?}", stalls[1]);
        assert!(outcome.probed.as_ref().unwrap().stopped.is_empty(), "{release}");
    }
    let apart = "UPDATE t SET n = 1; ALTER TABLE t ALTER n SET NOT NULL";
    let outcome = measured(&server(18), &probing(apart, Probes::default())).unwrap();
    assert!(outcome.statements.iter().all(|one| one.stall.as_ref().unwrap().deadlocks.is_empty()));
}

/// A session has waited also if its statement then fails, for example because its table is gone.
#[test]
fn a_wait_that_ends_with_an_error_counts() {
    for release in RELEASES {
        let server = server(release);
        for change in ["ALTER TABLE t RENAME TO t2", "DROP TABLE t"] {
            let migration = format!("BEGIN; {change}; SELECT pg_sleep(1); COMMIT");
            let outcome = measured(&server, &probing(&migration, Probes::default())).unwrap();
            let stall = outcome.statements[1].stall.as_ref().unwrap();
            for wait in [&stall.read, &stall.write] {
                let is_counted = wait.as_ref().is_some_and(|wait| wait.is_failed && wait.lock > 0.5);
                assert!(is_counted, "{release}: {change}: {stall:?}");
            }
            assert_eq!(stall.unprobed, Vec::<String>::new(), "{release}: {change}: {stall:?}");
        }
    }
    let probes = Probes { blocker: Some(Duration::from_secs(2)), ..Probes::default() };
    let outcome = measured(&server(18), &probing("ALTER TABLE t RENAME TO t2", probes)).unwrap();
    let queue = outcome.statements[0].blocked.as_ref().unwrap();
    assert!(queue.longest().is_some_and(|wait| wait.is_failed && wait.lock > 0.5), "{queue:?}");
}

/// A time-out of the role ends no wait of readers and writers. One of their own script does: then nobody waits for the rest.
#[test]
fn readers_and_writers_wait_without_a_limit() {
    let server = server(18);
    server.sql("ALTER ROLE CURRENT_USER SET lock_timeout = '200ms'");
    let probes = Probes { blocker: Some(Duration::from_secs(2)), ..Probes::default() };
    let migration = "SET lock_timeout = 0; ALTER TABLE t ADD a int";
    let outcome = measured(&server, &probing(migration, probes)).unwrap();
    let queue = outcome.statements[1].blocked.as_ref().unwrap();
    assert!(queue.longest().is_some_and(|wait| !wait.is_failed && wait.lock > 0.5), "{queue:?}");
    let stopped = &outcome.probed_blocked.as_ref().unwrap().stopped;
    assert!(stopped.is_empty(), "{stopped:?}");

    let write = script("SET lock_timeout = '100ms';\nUPDATE t SET n = n WHERE id = 7;");
    let probes = Probes { write: Some(write), ..Probes::default() };
    let migration = "BEGIN; LOCK TABLE t IN SHARE MODE; SELECT pg_sleep(1); COMMIT";
    let outcome = measured(&server, &probing(migration, probes)).unwrap();
    let stall = outcome.statements[1].stall.as_ref().unwrap();
    assert_eq!(stall.unprobed, ["public.t"], "{stall:?}");
    assert!(stall.write.as_ref().is_some_and(|wait| wait.is_failed && wait.lock < 0.5), "{stall:?}");
}
