//! Runs in which something goes wrong, on real servers, the oldest release and the newest.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use script::Definition;
use testkit::{until, until_async};
use tps::{Connecting, End, Length, Outcome, Protocol, Request, TpsError};

use crate::support::{Database, MAJORS, Notes, PROTOCOLS, Server, on_newest, on_servers, request, runtime};

/// Far longer than any test.
const FOR_EVER: Length = Length::Time(Duration::from_hours(1));

/// Clients that take the same snapshot, and then all change the same row.
const CONFLICT: &str = "\\set number random(1, 1000000000)\n\
                        \\set count :count + 1\n\
                        BEGIN ISOLATION LEVEL REPEATABLE READ;\n\
                        SELECT total FROM counter;\n\
                        \\sleep 5 ms\n\
                        UPDATE counter SET total = total + 1;\n\
                        INSERT INTO numbers VALUES (:client_id, :count, :number);\n\
                        END;";
const COUNTER: &str = "CREATE TABLE counter AS SELECT 0 AS total; \
                       CREATE TABLE numbers (client int, count int, number int)";
const NUMBERS: &str = "SELECT concat_ws(',', client, count, number) FROM numbers ORDER BY client, count";

fn conflict(protocol: Protocol, clients: usize) -> Request {
    let mut request = request(CONFLICT);
    request.definitions = vec![Definition::parse("count=0").unwrap()];
    (request.protocol, request.clients) = (protocol, clients);
    request
}

#[test]
fn transactions_that_conflict_are_tried_again_as_they_were() {
    on_servers(|database| {
        database.execute(COUNTER);
        // Each client alone: nothing is in its way.
        let mut expected = Vec::new();
        for protocol in PROTOCOLS {
            let mut request = conflict(protocol, 4);
            (request.max_tries, request.statements) = (1000, true);
            let outcome = database.run(request);
            let counts = outcome.all.counts;
            assert_eq!((outcome.end, counts.succeeded, counts.all_failed()), (End::Complete, 40, 0));
            assert!(counts.retried > 0 && counts.retries >= counts.retried, "{counts:?}");
            let commands = &outcome.scripts[0].commands;
            assert_eq!(commands[5].retries, counts.retries);
            assert_eq!(commands[5].latency.count(), 40);
            assert_eq!(database.value("SELECT total FROM counter"), "40");
            // Variables and random numbers went back: whatever conflicted, the same was done.
            let numbers = database.column(NUMBERS);
            assert_eq!(numbers.len(), 40);
            assert!((1..=10).all(|count| numbers[count - 1].starts_with(&format!("0,{count},"))));
            if expected.is_empty() {
                expected.clone_from(&numbers);
            }
            assert_eq!(numbers, expected);
            database.execute("UPDATE counter SET total = 0; TRUNCATE numbers");
        }
    });
}

#[test]
fn transactions_that_conflict_fail_if_they_are_not_tried_again() {
    on_servers(|database| {
        database.execute(COUNTER);
        let outcome = database.run(conflict(Protocol::Simple, 4));
        let counts = outcome.all.counts;
        assert_eq!((outcome.end, counts.due()), (End::Complete, 40));
        assert!(counts.failed.serialization > 0, "{counts:?}");
        assert_eq!((counts.retried, counts.failed.deadlock, counts.failed.other), (0, 0, 0));
        assert_eq!(database.value("SELECT total FROM counter"), counts.succeeded.to_string());
        // Two tries are more than one, and less than enough.
        let mut request = conflict(Protocol::Prepared, 8);
        request.max_tries = 2;
        let counts = database.run(request).all.counts;
        assert_eq!(counts.due(), 80);
        assert_eq!(counts.retries, counts.retried);
        assert!(counts.retried >= counts.failed.serialization && counts.failed.serialization > 0);
    });
}

#[test]
fn tries_end_with_the_latency_limit() {
    on_newest(|database| {
        database.execute(COUNTER);
        let mut request = conflict(Protocol::Simple, 4);
        // Any try takes longer.
        (request.max_tries, request.latency_limit) = (0, Some(Duration::from_millis(1)));
        let counts = database.run(request).all.counts;
        assert_eq!((counts.due(), counts.retries, counts.late), (40, 0, counts.succeeded));
        assert!(counts.failed.serialization > 0);
    });
}

#[test]
fn deadlocks_are_tried_again() {
    on_servers(|database| {
        database.execute("CREATE TABLE pair AS SELECT i AS id, 0 AS total FROM generate_series(0, 1) i");
        let script = "\\set first :client_id % 2\n\\set second 1 - :first\n\
                      BEGIN;\nUPDATE pair SET total = total + 1 WHERE id = :first;\n\\sleep 200 ms\n\
                      UPDATE pair SET total = total + 1 WHERE id = :second;\nEND;";
        let mut request = request(script);
        (request.clients, request.length) = (2, Length::Transactions(3));
        let failing = database.run(request.clone()).all.counts;
        assert_eq!((failing.due(), failing.failed.serialization), (6, 0));
        assert!(failing.failed.deadlock > 0, "{failing:?}");
        request.max_tries = 1000;
        let outcome = database.run(request);
        assert_eq!((outcome.end, outcome.all.counts.succeeded), (End::Complete, 6));
        assert!(outcome.all.counts.retried > 0);
        let total = (failing.succeeded + 6).to_string();
        assert_eq!(database.column("SELECT total FROM pair"), [total.clone(), total]);
    });
}

#[test]
fn pipelines_that_conflict_are_tried_again() {
    on_servers(|database| {
        database.execute(COUNTER);
        let script = "\\startpipeline\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT total FROM counter;\n\
                      SELECT pg_sleep(0.005);\nUPDATE counter SET total = total + 1;\nEND;\n\\endpipeline";
        for protocol in [Protocol::Extended, Protocol::Prepared] {
            let mut request = request(script);
            (request.protocol, request.clients, request.max_tries) = (protocol, 4, 1000);
            let outcome = database.run(request);
            assert_eq!(
                (outcome.end, outcome.all.counts.succeeded),
                (End::Complete, 40),
                "{:?}",
                outcome.lost
            );
            assert!(outcome.all.counts.retried > 0);
            assert_eq!(database.value("SELECT total FROM counter"), "40");
            database.execute("UPDATE counter SET total = 0");
        }
    });
}

#[test]
fn other_errors_end_one_client_and_not_the_others() {
    on_servers(|database| {
        for protocol in PROTOCOLS {
            let mut request = request("SELECT 1;\n\\if :client_id = 1\nSELECT 1 / 0;\n\\endif\nSELECT 2;");
            (request.protocol, request.clients, request.jobs, request.statements) = (protocol, 4, 2, true);
            let outcome = database.run(request);
            assert_eq!(outcome.end, End::Lost);
            assert_eq!((outcome.all.counts.succeeded, outcome.all.counts.failed.other), (30, 1));
            let [lost] = outcome.lost.as_slice() else { panic!("{:?}", outcome.lost) };
            assert_eq!((lost.client, lost.at), (1, Some((0, 2))));
            assert!(lost.why.contains("division by zero"), "{}", lost.why);
            assert_eq!(outcome.scripts[0].commands[2].failures, 1);
        }
    });
}

#[test]
fn a_session_that_is_ended_ends_one_client() {
    on_servers(|database| {
        // Client 1 ends client 0, which sleeps and has asked for nothing.
        let script = "\\if :client_id = 0\n\\sleep 1 h\n\\else\n\
                      SELECT pg_terminate_backend(pid) FROM pg_stat_activity\n\
                      WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = 'pgrig run';\n\
                      \\endif"
            .replace("1 h", "3600 s");
        let mut request = request(&script);
        request.clients = 2;
        let outcome = database.run_as("pgrig run", request);
        assert_eq!((outcome.end, outcome.all.counts.succeeded), (End::Lost, 10), "{:?}", outcome.lost);
        let [lost] = outcome.lost.as_slice() else { panic!("{:?}", outcome.lost) };
        assert_eq!((lost.client, lost.at), (0, Some((0, 1))));
        assert!(lost.why.contains("57P01"), "{}", lost.why);
        assert!(lost.why.ends_with("; read the server's log, then repeat the command"), "{}", lost.why);
    });
}

/// The script of the clients, until the server is killed.
const PASS: &str = "SELECT nextval('passed');\nSELECT pg_sleep(0.005);";

/// Kills the server when some transactions have been carried out.
async fn kill_while_busy(database: &Database) {
    let connection = database.connect().await;
    let passed = "SELECT last_value FROM passed";
    until_async("transactions have passed", async || {
        connection.client.query_one_scalar::<i64, _>(passed, &[]).await.unwrap() >= 20
    })
    .await;
    kill(Pid::from_raw(database.server.pid().cast_signed()), Signal::SIGQUIT).unwrap();
}

/// The outcome of a run whose server is killed when some transactions have been carried out.
fn outcome_of_killed_server(database: &Database, request: Request) -> Outcome {
    runtime().block_on(async {
        let connection = database.connect().await;
        let plan = tps::Plan::new(&connection, request).await.unwrap();
        let notes = Notes::default();
        let run =
            tps::run(std::slice::from_ref(&database.target), &plan, &notes, Box::pin(std::future::pending()));
        tokio::join!(run, kill_while_busy(database)).0.unwrap()
    })
}

async fn until_busy(database: &Database) {
    let connection = database.connect().await;
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND query LIKE '%7531%'";
    until_async("clients are at work", async || {
        connection.client.query_one_scalar::<i64, _>(busy, &[]).await.unwrap() >= 2
    })
    .await;
}

#[test]
fn a_lost_server_ends_the_run() {
    for (major, rate) in MAJORS.into_iter().zip([None, Some(50.0)]) {
        let database = Server::own(major).database();
        let mut request = request(PASS);
        database.execute("CREATE SEQUENCE passed");
        (request.clients, request.jobs, request.length, request.rate) = (5, 2, FOR_EVER, rate);
        let outcome = outcome_of_killed_server(&database, request);
        assert_eq!(outcome.end, End::Lost);
        assert_eq!(outcome.lost.len(), 5);
        assert!(outcome.all.counts.succeeded > 0);
    }
}

#[test]
fn a_server_that_does_not_come_back_ends_clients_that_connect_each_time() {
    let database = Server::own(MAJORS[1]).database();
    let mut request = request(PASS);
    database.execute("CREATE SEQUENCE passed");
    (request.clients, request.jobs, request.length) = (4, 4, FOR_EVER);
    request.connecting = Connecting::EachTransaction;
    let outcome = outcome_of_killed_server(&database, request);
    assert_eq!((outcome.end, outcome.lost.len()), (End::Lost, 4));
}

/// Sessions and locks of the database, but for the one that asks. A session that was told to end may take its
/// time.
fn wait_until_nothing_is_left(database: &Database) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    until("no other session is left", || database.value(others) == "0");
}

#[test]
fn an_interruption_ends_what_runs() {
    on_servers(|database| {
        for (script, connecting) in [
            ("SELECT pg_sleep(3600) /* 7531 */;", Connecting::Once),
            ("SELECT 1 /* 7531 */;", Connecting::Once),
            ("SELECT pg_sleep(0.001) /* 7531 */;", Connecting::EachTransaction),
            (
                "BEGIN;\nLOCK TABLE pgbench_history /* 7531 */;\nSELECT pg_sleep(3600) /* 7531 */;\nEND;",
                Connecting::Once,
            ),
            ("SELECT 1 /* 7531 */;\n\\sleep 3600 s", Connecting::Once),
        ] {
            let mut request = request(script);
            (request.clients, request.jobs, request.length) = (3, 2, FOR_EVER);
            request.connecting = connecting;
            let outcome = database.run_until(request, until_busy(database)).unwrap();
            assert_eq!((outcome.end, outcome.lost.len()), (End::Interrupted, 0), "{script}");
            assert_eq!(outcome.all.counts.all_failed(), 0);
            wait_until_nothing_is_left(database);
        }
    });
}

#[test]
fn an_interruption_before_it_begins() {
    on_newest(|database| {
        let result = database.run_until(request("select-only"), std::future::ready(()));
        assert!(matches!(result, Err(TpsError::Interrupted)));
        wait_until_nothing_is_left(database);
    });
}

#[test]
fn a_run_that_is_given_up_leaves_nothing_behind() {
    on_newest(|database| {
        let mut request = request("SELECT pg_sleep(3600) /* 7531 */;");
        (request.clients, request.length) = (2, FOR_EVER);
        runtime().block_on(async {
            let connection = database.connect().await;
            let plan = tps::Plan::new(&connection, request).await.unwrap();
            let notes = Notes::default();
            let run = tps::run(
                std::slice::from_ref(&database.target),
                &plan,
                &notes,
                Box::pin(std::future::pending()),
            );
            tokio::select! {
                _ = run => panic!("it would take for ever"),
                () = until_busy(database) => {}
            }
        });
        // Its statements end when the server notices that nobody listens, or here.
        database.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%7531%'",
        );
        wait_until_nothing_is_left(database);
    });
}
