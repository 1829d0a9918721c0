//! The parts of a run meet on the server: they begin together, and notice who is missing or leaves.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

use crate::support::{Ran, Rig, Running, Server};

/// Advisory locks of all sessions.
const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";

struct Parts<'a> {
    rig: &'a Rig,
    server: Server<'a>,
}

impl<'a> Parts<'a> {
    fn new(rig: &'a Rig) -> Self {
        let server = rig.server("");
        rig.done("fill --scale 1");
        Self { rig, server }
    }

    fn document(&self, part: u32) -> PathBuf {
        self.rig.home.path().join(format!("{part}.json"))
    }

    fn start(&self, part: u32, of: u32, options: &str) -> Running {
        let file = self.document(part);
        self.rig.spawn(&format!("tps -n --part {part}/{of} --json {} {options}", file.display()))
    }

    /// Waits until so many parts wait for the others: each holds locks for its place, its readiness, and the options.
    fn await_ready(&self, parts: i64) {
        let ready = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (objid::bigint >> 24) = 2";
        until("parts wait", || (self.server.number(ready) == parts).then_some(()));
    }

    /// Waits until so many clients run their script, and a while longer.
    fn await_work(&self, clients: i64) {
        let at_work = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig tps%' \
                       AND (query LIKE '%pgbench_%' OR query LIKE 'BEGIN%' OR query LIKE 'END%')";
        until("clients work", || (self.server.number(at_work) >= clients).then_some(()));
        let written = "SELECT count(*) FROM pgbench_history";
        let before = self.server.number(written);
        let more = before + 50 * clients;
        until("all have written", || (self.server.number(written) > more).then_some(()));
    }

    /// Nothing is left on the server.
    fn assert_nothing_left(&self) {
        until("locks are gone", || (self.server.number(LOCKS) == 0).then_some(()));
        assert_eq!(self.server.number("SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%pgrig%'"), 0);
    }
}

fn document(path: &PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The second of the server's clock at which the trial began.
fn begun(trial: &Value) -> i64 {
    let events = trial["events"].as_array().unwrap();
    events.iter().find(|event| event["what"]["event"] == "begin").unwrap()["what"]["time"].as_i64().unwrap()
}

fn assert_failed(ran: &Ran, code: i32, text: &str) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    assert!(ran.stderr.contains(text), "{ran:#?}");
}

/// The others would lose the server when that part ends.
#[test]
fn a_part_does_not_start_pgrigs_own_server() {
    let rig = Rig::new();
    rig.done("fill --scale 1");
    let ran = rig.run("tps -n -T 1 --part 1/2");
    assert_failed(&ran, 2, "run pgrig server start before the parts start");
}

#[test]
fn parts_begin_together_in_each_trial() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    // Each transaction writes the server's time: a witness of the start.
    parts.server.execute("CREATE TABLE starts (part int, at timestamptz DEFAULT clock_timestamp())");
    let script = parts.rig.home.path().join("start.sql");
    fs::write(&script, "INSERT INTO starts VALUES (:client_id);\n\\sleep 100 ms\n").unwrap();
    let options = format!("-T 1 --trials 2 -f {}", script.display());
    let first = parts.start(2, 3, &options);
    parts.await_ready(1);
    let third = parts.start(3, 3, &options);
    parts.await_ready(2);
    for ran in [first, third, parts.start(1, 3, &options)].map(Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(!ran.stderr.contains("another session"), "{ran:#?}");
    }
    let documents = [1, 2, 3].map(|part| document(&parts.document(part)));
    for trial in 0..2 {
        let [one, two, three] = documents.each_ref().map(|run| begun(&run["trials"][trial]));
        assert_eq!([two, three], [one, one]);
        let within =
            format!("SELECT count(*) FROM starts WHERE extract(epoch FROM at) BETWEEN {one} AND {one} + 1.5");
        assert!(parts.server.number(&within) >= 6, "trial {trial}");
        let before = format!(
            "SELECT count(*) FROM starts WHERE extract(epoch FROM at) BETWEEN {one} - 0.9 AND {one} - 0.01"
        );
        assert_eq!(parts.server.number(&before), 0, "trial {trial}");
    }
    parts.assert_nothing_left();
}

#[test]
fn a_missing_or_wrong_part_is_named() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    let ran = parts.start(2, 4, "-S -t 5 --parts-timeout 1").end();
    assert_failed(&ran, 1, "parts 1, 3 and 4 of 4 did not connect within 1 s");
    let waiting = parts.start(1, 2, "-S -t 5");
    parts.await_ready(1);
    assert_failed(&parts.start(1, 2, "-S -t 5").end(), 2, "another process is part 1 of 2");
    assert_failed(&parts.start(2, 2, "-S -t 6").end(), 2, "do not have the same scripts and options");
    // Another run at the same time.
    let other = [1, 2].map(|part| parts.start(part, 2, "-S -t 6 --run-id other")).map(Running::end);
    for ran in other {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let second = parts.start(2, 2, "-S -t 5").end();
    assert_eq!((second.code, waiting.end().code), (Some(0), Some(0)), "{second:#?}");
    // A part that waits can be stopped.
    let waiting = parts.start(1, 2, "-S -t 5");
    parts.await_ready(1);
    waiting.signal(Signal::SIGINT);
    assert_eq!(waiting.end().code, Some(130));
    parts.assert_nothing_left();
}

#[test]
fn the_others_notice_a_part_that_leaves() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        parts.server.execute("TRUNCATE pgbench_history");
        let running = [1, 2, 3].map(|part| parts.start(part, 3, "-N -c 2 -T 600"));
        parts.await_work(6);
        running[1].signal(signal);
        let [one, two, three] = running.map(Running::end);
        for ran in [one, three] {
            assert_failed(&ran, 1, "part 2 ended before the end of the run");
            assert!(ran.stdout.contains("tps") && !ran.stderr.contains("part 1"), "{ran:#?}");
        }
        assert_eq!(two.code, (signal == Signal::SIGINT).then_some(130));
        let saved = document(&parts.document(1));
        assert_eq!(saved["status"], "failed");
        parts.assert_nothing_left();
    }
    // The session by which the parts see each other.
    parts.server.execute("TRUNCATE pgbench_history");
    let running = [1, 2].map(|part| parts.start(part, 2, "-N -T 600"));
    parts.await_work(2);
    let one = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'pgrig part' LIMIT 1) s";
    assert_eq!(parts.server.number(one), 1);
    let mut ended = running.map(Running::end);
    ended.sort_by_key(|ran| ran.stderr.contains("ended before the end"));
    assert_failed(&ended[0], 1, "lost the session by which it sees the other parts");
    assert_failed(&ended[1], 1, "ended before the end of the run");
    parts.assert_nothing_left();
}

#[test]
fn parts_of_different_length_end_in_order() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    let script = parts.rig.home.path().join("long.sql");
    // With -t, the parts end at different times.
    fs::write(&script, "\\if :client_id\nSELECT pg_sleep(8);\n\\endif\nSELECT 1;\n").unwrap();
    let options = format!("-c 1 -t 1 -f {}", script.display());
    let running = [1, 2, 3].map(|part| parts.start(part, 3, &options));
    for ran in running.map(Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    parts.assert_nothing_left();
}

#[test]
fn the_environment_numbers_parts_of_a_role_without_rights() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    parts.server.execute("CREATE ROLE guest LOGIN; REVOKE CREATE ON SCHEMA public FROM public");
    let script = parts.rig.home.path().join("one.sql");
    fs::write(&script, "SELECT 1;\n").unwrap();
    let start = |number: u32| {
        let mut command = parts.rig.command(&format!(
            "tps -n -t 5 -d {} -U guest -f {}",
            parts.server.url,
            script.display()
        ));
        command.env("JOB_COMPLETION_INDEX", number.to_string()).env("PGRIG_PARTS", "2");
        Running::start(command)
    };
    for ran in [start(0), start(1)].map(Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.stderr.contains(" of 2; "), "{ran:#?}");
    }
    parts.assert_nothing_left();
}

#[test]
fn part_1_merges_the_documents_of_all() {
    let rig = Rig::new();
    let parts = Parts::new(&rig);
    let merged = rig.home.path().join("merged.json");
    // Documents of two scripts and some seconds are longer than one NOTIFY.
    let options = format!("-b select-only@1 -b simple-update@1 -c 2 -T 3 --merge {}", merged.display());
    let running = [3, 1, 2].map(|part| parts.start(part, 3, &options));
    for ran in running.map(Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let by_part_1 = document(&merged);
    assert_eq!(by_part_1["status"], "done");
    let files = [1, 2, 3].map(|part| parts.document(part).display().to_string()).join(" ");
    let again = rig.home.path().join("again.json");
    rig.done(&format!("merge {files} -o {}", again.display()));
    let by_hand = document(&again);
    for field in ["trials", "request", "plan", "notes", "status"] {
        assert_eq!(by_part_1[field], by_hand[field], "{field}");
    }
    parts.assert_nothing_left();

    // A part that sends no document.
    let one = parts.start(1, 2, &format!("-S -T 3 --merge {}", merged.display()));
    let two = parts.start(2, 2, "-S -T 3").end();
    assert_eq!(two.code, Some(0), "{two:#?}");
    assert_failed(&one.end(), 1, "part 2 is missing");

    let refused = rig.run("tps -n -S -t 5 --merge merged.json");
    assert_failed(&refused, 2, "give --part I/N, too");
    let refused = rig.run("tps -n -S -t 5 --part 1/2 --json - --merge -");
    assert_failed(&refused, 2, "only one document can go to standard output");
}
