//! Runs and their counts, on real servers, the oldest release and the newest. Compared with pgbench.

use std::time::Duration;

use script::Source;
use tps::{Connecting, End, Length, Outcome, Phase, Protocol};

use crate::support::{Notes, PROTOCOLS, on_newest, on_servers, request};

/// pgbench's tables agree with each other.
const BALANCED: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta) \
                        AND (SELECT sum(bbalance) FROM pgbench_branches) = sum(delta) \
                        AND (SELECT sum(tbalance) FROM pgbench_tellers) = sum(delta) FROM pgbench_history";
const HISTORY: &str = "SELECT concat_ws(',', tid, bid, aid, delta) FROM pgbench_history ORDER BY 1";
const HISTORY_SIZE: &str = "SELECT count(*) FROM pgbench_history";

fn is_complete(outcome: &Outcome) -> bool {
    outcome.end == End::Complete && outcome.lost.is_empty() && outcome.all.counts.all_failed() == 0
}

#[test]
fn every_protocol_makes_the_history_that_pgbench_makes() {
    on_servers(|database| {
        if !database.pgbench(&["-c", "5", "-j", "2", "-t", "20", "--random-seed", "42"]) {
            return;
        }
        let expected = database.column(HISTORY);
        assert_eq!(expected.len(), 100);
        for (protocol, connecting, connections) in [
            (Protocol::Simple, Connecting::Once, 5),
            (Protocol::Extended, Connecting::Once, 5),
            (Protocol::Prepared, Connecting::Once, 5),
            (Protocol::Prepared, Connecting::EachTransaction, 100),
        ] {
            let mut request = request("tpcb-like");
            (request.clients, request.jobs) = (5, 2);
            request.length = Length::Transactions(20);
            (request.protocol, request.connecting) = (protocol, connecting);
            let outcome = database.run(request);
            assert!(is_complete(&outcome), "{:?}", outcome.lost);
            assert_eq!(outcome.all.counts.succeeded, 100);
            assert_eq!(outcome.connections, connections);
            // The history was emptied before.
            assert_eq!(database.column(HISTORY), expected, "{protocol:?} {connecting:?}");
        }
    });
}

#[test]
fn clients_by_time_leave_the_tables_balanced() {
    on_servers(|database| {
        let mut request = request("tpcb-like");
        (request.clients, request.jobs) = (12, 3);
        request.length = Length::Time(Duration::from_millis(1500));
        let outcome = database.run(request);
        assert!(is_complete(&outcome), "{:?}", outcome.lost);
        assert_eq!(database.value(BALANCED), "t");
        assert_eq!(database.value(HISTORY_SIZE), outcome.all.counts.succeeded.to_string());
        assert!(outcome.elapsed >= Duration::from_millis(1500));
        assert!(outcome.seconds.len() >= 2);
    });
}

#[test]
fn scripts_are_chosen_as_pgbench_chooses_them() {
    on_newest(|database| {
        database.execute("CREATE TABLE chosen (client int, script text, number int)");
        let file = |name: &str, weight| {
            let text = format!(
                "\\set number random(1, 1000000)\n\
                 INSERT INTO chosen VALUES (:client_id, '{name}', :number);\n"
            );
            (text.clone(), Source::file(format!("{name}.sql"), text, weight))
        };
        let (one, other) = (file("one", 3), file("other", 1));
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, (text, _): &(String, Source), weight| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("{}@{weight}", path.display())
        };
        let (first, second) = (path("one.sql", &one, 3), path("other.sql", &other, 1));
        // One job: in which order clients choose from a job's random numbers is up to the server.
        let arguments = ["-n", "-t", "50", "--random-seed", "7", "-f", &first, "-f", &second];
        if !database.pgbench(&arguments) {
            return;
        }
        let chosen = "SELECT concat_ws(',', client, script, number) FROM chosen ORDER BY ctid";
        let expected = database.column(chosen);
        database.execute("TRUNCATE chosen");
        let mut request = request("select-only");
        request.sources = vec![one.1, other.1];
        (request.length, request.seed) = (Length::Transactions(50), 7);
        let outcome = database.run(request);
        assert_eq!(database.column(chosen), expected);
        let counts = outcome.scripts.iter().map(|script| script.measured.counts.succeeded);
        let others = expected.iter().filter(|row| row.contains("other")).count() as u64;
        assert_eq!(counts.collect::<Vec<_>>(), [50 - others, others]);
    });
}

#[test]
fn warm_up_and_ramp_are_carried_out_and_not_counted() {
    on_newest(|database| {
        let mut request = request("simple-update");
        (request.clients, request.jobs) = (3, 2);
        request.length = Length::Transactions(5);
        request.ramp = Duration::from_secs(1);
        request.warmup = Duration::from_secs(1);
        let outcome = database.run(request);
        assert!(is_complete(&outcome), "{:?}", outcome.lost);
        assert_eq!(outcome.all.counts.succeeded, 15);
        let of = |phase| {
            let seconds = outcome.seconds.iter().filter(move |second| second.phase == phase);
            seconds.map(|second| second.counts.succeeded).sum::<u64>()
        };
        assert_eq!(of(Phase::Measured), 15);
        assert!(of(Phase::Ramp) > 0 && of(Phase::Warmup) > 0);
        let all = of(Phase::Ramp) + of(Phase::Warmup) + 15;
        assert_eq!(database.value(HISTORY_SIZE), all.to_string());
    });
}

#[test]
fn nothing_is_counted_if_time_is_over_before() {
    on_newest(|database| {
        let mut request = request("SELECT pg_sleep(3);");
        request.length = Length::Time(Duration::from_millis(10));
        request.warmup = Duration::from_secs(1);
        let outcome = database.run(request);
        // It ended in the measured part, where it counts.
        assert_eq!(outcome.all.counts.succeeded, 1);
        assert!(outcome.elapsed > Duration::from_secs(1));
    });
}

#[test]
fn what_is_too_late_is_skipped() {
    on_newest(|database| {
        for jobs in [1, 3] {
            // 30 of a client are due within 1.8 s.
            let mut request = request("\\sleep 200 ms\nSELECT 1;");
            (request.clients, request.jobs) = (3, jobs);
            request.length = Length::Transactions(30);
            (request.rate, request.latency_limit) = (Some(50.0), Some(Duration::from_millis(100)));
            let outcome = database.run(request);
            let counts = outcome.all.counts;
            assert_eq!(counts.due(), 90);
            assert!(counts.skipped > 0 && counts.succeeded > 0, "{counts:?}");
            // Even what was begun in time.
            assert_eq!(counts.late, counts.succeeded);
            assert_eq!(outcome.all.lag.count(), counts.succeeded);
            assert!(outcome.all.latency.min().unwrap() >= Duration::from_millis(200));
        }
    });
}

/// A stall that lasts until the end hides nothing.
#[test]
fn transactions_that_were_due_during_the_last_one_are_skipped() {
    on_newest(|database| {
        for limit in [Some(Duration::from_millis(5)), None] {
            let mut request = request("\\sleep 2 s");
            (request.clients, request.jobs) = (2, 1);
            request.length = Length::Time(Duration::from_secs(1));
            (request.rate, request.latency_limit) = (Some(100.0), limit);
            let counts = database.run(request).all.counts;
            assert_eq!(counts.succeeded, 2);
            // 100 are due, with a standard deviation of 10.
            assert!((50..150).contains(&counts.skipped), "{counts:?}");
        }
    });
}

#[test]
fn latency_is_from_the_scheduled_start() {
    on_newest(|database| {
        let mut request = request("\\sleep 10 ms");
        request.length = Length::Transactions(20);
        request.rate = Some(10_000.0);
        let outcome = database.run(request);
        assert_eq!(outcome.all.counts.succeeded, 20);
        // The last one had to wait for nineteen others.
        assert!(outcome.all.latency.max().unwrap() >= Duration::from_millis(190));
        let lag = outcome.all.lag.max().unwrap();
        assert!(lag >= Duration::from_millis(180));
        assert!(outcome.all.latency.max().unwrap() >= lag);
    });
}

#[test]
fn commands_are_timed() {
    on_servers(|database| {
        for protocol in PROTOCOLS {
            let mut request = request("\\set a 1\nBEGIN;\nSELECT pg_sleep(0.01);\n\\sleep 10 ms\nEND;");
            (request.protocol, request.statements) = (protocol, true);
            let outcome = database.run(request);
            let commands = &outcome.scripts[0].commands;
            let counts = commands.iter().map(|command| command.latency.count());
            assert_eq!(counts.collect::<Vec<_>>(), [10; 5]);
            for slow in [2, 3] {
                assert!(commands[slow].latency.min().unwrap() >= Duration::from_millis(10));
            }
        }
    });
}

#[test]
fn scripts_without_statements_end_too() {
    on_newest(|database| {
        let mut request = request("\\set a random(1, 10)");
        (request.clients, request.jobs) = (4, 2);
        request.length = Length::Time(Duration::from_secs(1));
        let outcome = database.run(request);
        assert!(is_complete(&outcome) && outcome.all.counts.succeeded > 0);
    });
}

#[test]
fn seconds_are_told_as_they_pass() {
    on_newest(|database| {
        let mut request = request("\\sleep 100 ms\nSELECT 1;");
        request.length = Length::Time(Duration::from_millis(4300));
        let notes = Notes::default();
        let outcome = database.run_noting(request, &notes, std::future::pending()).unwrap();
        let told = notes.seconds.into_inner().unwrap();
        assert_eq!(told.len(), outcome.seconds.len());
        assert!(told.len() >= 3);
        let latencies: u64 = told.iter().map(|second| second.latency.count()).sum();
        assert_eq!(latencies, outcome.all.counts.succeeded);
    });
}
