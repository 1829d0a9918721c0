//! Several targets: clients are divided over them, and one that loses its session goes on on the next.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

use crate::support::victims::kill_server;
use crate::support::{Rig, Running, Server, observed};

/// The second instance, of the oldest release; the first is the rig's own.
struct Oldest<'a> {
    rig: &'a Rig,
    url: String,
}

impl<'a> Oldest<'a> {
    fn start(rig: &'a Rig) -> Self {
        rig.done("server start --instance oldest --pg-version 13 --set shared_buffers=64MB");
        Self { rig, url: rig.done("server url --instance oldest").stdout.trim().to_owned() }
    }

    fn number(&self, query: &str) -> i64 {
        let client = self.rig.connect(&self.url);
        self.rig.block_on(client.query_one(query, &[])).unwrap().get(0)
    }

    fn execute(&self, sql: &str) {
        let client = self.rig.connect(&self.url);
        self.rig.block_on(client.batch_execute(sql)).unwrap();
    }
}

impl Drop for Oldest<'_> {
    fn drop(&mut self) {
        let _ = self.rig.command("server destroy --instance oldest").output();
    }
}

const SEEN: &str = "CREATE TABLE seen (client int)";
const COUNT: &str = "SELECT count(*) FROM seen";

/// A script that writes a row, with a short pause.
fn script(rig: &Rig) -> PathBuf {
    let script = rig.home.path().join("seen.sql");
    fs::write(&script, "INSERT INTO seen VALUES (:client_id);\n\\sleep 2 ms\n").unwrap();
    script
}

fn await_rows(server: &Server<'_>) {
    until("clients work", || (server.number(COUNT) > 20).then_some(()));
}

/// Kills the server while pgrig holds still, so that the run does not end before.
fn kill_server_of(rig: &Rig, pgrig: &Running) {
    pgrig.signal(Signal::SIGSTOP);
    kill_server(rig);
    pgrig.signal(Signal::SIGCONT);
}

#[test]
fn clients_of_a_killed_server_go_on_on_the_next() {
    let rig = Rig::new();
    let oldest = Oldest::start(&rig);
    // By number of transactions: however long the kill takes, each client has some left.
    for options in
        ["-c 4 -t 2000", "-c 5 -j 2 -R 400 -t 400", "-c 3 -C -t 800", "-c 4 -j 4 -M prepared -t 2000"]
    {
        let newest = rig.server("");
        oldest.execute(SEEN);
        newest.execute(SEEN);
        let (file, script) = (rig.home.path().join("run.json"), script(&rig));
        let pgrig = rig.spawn(&format!(
            "tps -n -f {} {options} -d {} -d {} --json {}",
            script.display(),
            oldest.url,
            newest.url,
            file.display()
        ));
        await_rows(&newest);
        kill_server_of(&rig, &pgrig);
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(0), "{options}: {ran:#?}");
        assert!(ran.stdout.contains("from target 2 to target 1"), "{ran:#?}");
        let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "a count")]
        let of = |name: &str| observed(&document, name) as i64;
        // Every second client began on the second target.
        let clients: i64 = options.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(of("moved-clients"), clients / 2, "{options}");
        assert_eq!(of("lost-clients"), 0);
        assert_eq!(of("target-1-succeeded") + of("target-2-succeeded"), of("succeeded"));
        // The servers' own counts: what was committed, and not answered, is at most one transaction of each client.
        assert_eq!(of("target-1-succeeded"), oldest.number(COUNT), "{options}");
        let newest = rig.server("");
        let unanswered = newest.number(COUNT) - of("target-2-succeeded");
        assert!((0..=clients).contains(&unanswered), "{options}: {unanswered}");
        assert!(of("failed-other") <= clients / 2, "{options}");
        for client in 0..clients {
            let seen = oldest.number(&format!("SELECT count(*) FROM seen WHERE client = {client}"));
            assert!(seen > 0, "{options}: client {client}");
        }
        newest.execute("DROP TABLE seen");
        oldest.execute("DROP TABLE seen");
    }
}

/// The first target is the one that pgrig observes: without it, the run goes on.
#[test]
fn a_run_survives_the_target_that_it_observes() {
    let rig = Rig::new();
    let oldest = Oldest::start(&rig);
    let newest = rig.server("");
    oldest.execute(SEEN);
    newest.execute(SEEN);
    let (file, script) = (rig.home.path().join("run.json"), script(&rig));
    let run = |options: &str| {
        rig.spawn(&format!(
            "tps -n -c 4 -f {} -d {} -d {} --json {} {options}",
            script.display(),
            newest.url,
            oldest.url,
            file.display()
        ))
    };
    // By number of transactions: a client has as many with a move as without.
    let pgrig = run("-t 1000");
    await_rows(&newest);
    kill_server_of(&rig, &pgrig);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "a count")]
    let of = |name: &str| observed(&document, name) as i64;
    assert_eq!((of("moved-clients"), of("succeeded") + of("failed-other")), (2, 4000));
    assert_eq!(of("target-2-succeeded"), oldest.number(COUNT));

    // A trial needs all targets at its beginning: the next one ends the run, and what was measured is kept.
    let newest = rig.server("");
    let before = newest.number(COUNT);
    let pgrig = run("-t 2000 --trials 2 -P 1");
    until("clients work", || (newest.number(COUNT) > before + 20).then_some(()));
    kill_server_of(&rig, &pgrig);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(document["trials"].as_array().unwrap().len(), 1, "{ran:#?}");

    // Ctrl-C while clients move.
    let newest = rig.server("");
    let before = newest.number(COUNT);
    let pgrig = run("-T 600");
    until("clients work", || (newest.number(COUNT) > before + 20).then_some(()));
    kill_server_of(&rig, &pgrig);
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
}

#[test]
fn a_script_that_ends_its_own_session_ends() {
    let rig = Rig::new();
    let newest = rig.server("");
    newest.execute("CREATE DATABASE shard");
    let shard = rig.done("server url shard").stdout;
    let script = rig.home.path().join("end.sql");
    fs::write(&script, "SELECT pg_terminate_backend(pg_backend_pid());\n").unwrap();
    let targets = format!("-d {} -d {}", newest.url, shard.trim());
    for options in ["-t 5 -c 2", "-t 5 -c 2 -R 100", "-T 2 -c 2 -C"] {
        let document = rig.document(&format!("tps -n {options} -f {} {targets}", script.display()));
        let [failed, succeeded] =
            ["failed-other", "succeeded"].map(|name| observed(&document, name).to_string());
        assert_eq!(succeeded, "0", "{options}");
        assert!(failed == "10" || options.starts_with("-T"), "{options}: {failed}");
    }
}

#[test]
fn clients_end_if_no_target_takes_them() {
    let rig = Rig::new();
    let newest = rig.server("");
    newest.execute("CREATE DATABASE shard");
    newest.execute(SEEN);
    newest.database("shard").execute(SEEN);
    let shard = rig.done("server url shard").stdout;
    let script = script(&rig);
    let targets = format!("-d {} -d {}", newest.url, shard.trim());
    let pgrig = rig.spawn(&format!("tps -n -T 600 -c 4 -f {} {targets}", script.display()));
    await_rows(&newest.database("shard"));
    kill_server_of(&rig, &pgrig);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("no other target takes it"), "{ran:#?}");
}

#[test]
fn targets_that_cannot_have_the_clients_are_refused() {
    let rig = Rig::new();
    let newest = rig.server("");
    newest.execute("CREATE DATABASE shard");
    let shard = rig.done("server url shard").stdout;
    let targets = format!("-d {} -d {}", newest.url, shard.trim());
    rig.done("fill --scale 1");
    let refused = |options: &str, code: i32, said: &str| {
        let ran = rig.run(&format!("tps {targets} {options}"));
        assert_eq!(ran.code, Some(code), "{options}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{options}: {ran:#?}");
    };
    refused("-S", 2, "give -n");
    refused("-n -S --matrix clients=1,2", 2, "give -d once");
    refused("-n -S", 2, "pgrig fill");
    rig.done(&format!("fill --scale 2 -d {}", shard.trim()));
    refused("-n -S", 2, "scale 1 on target 1 and 2 on target 2");
    rig.done(&format!("fill --scale 1 --drop -d {}", shard.trim()));
    refused("-n -S -d host=/nowhere", 1, "/nowhere");
    let ran = rig.done(&format!("tps -n -S -t 10 -c 3 {targets} --explain"));
    assert!(ran.stdout.contains("2: shard on"), "{ran:#?}");
    // With --instance, names are databases there; no password is shown.
    let ran = rig.done("tps -n -S -t 10 -c 3 --instance default -d postgres -d shard");
    assert!(ran.stdout.contains("shard") && ran.stdout.contains("20"), "{ran:#?}");
}
