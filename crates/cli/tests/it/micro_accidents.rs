//! `pgrig micro` that is interrupted or killed, or fails: it leaves nothing behind, and the next run drops the rest.

use crate::micro::{assert_nothing_left, assert_valid, done, micro};
use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server};
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

/// Starts a `micro` and waits until its rounds go on.
fn in_rounds(rig: &Rig, server: &Server, arguments: &[&str], statement: &str) -> Running {
    let mut command = rig.command("micro");
    command.args(arguments);
    let mut pgrig = Running::start(command);
    let runs = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '{statement}%' \
           AND pid <> pg_backend_pid()"
    );
    until(&format!("{statement} runs"), || {
        assert!(!pgrig.has_ended(), "it was over before {statement}");
        (server.number(&runs) > 0).then_some(())
    });
    pgrig
}

const SLOW_TABLES: [&str; 8] = [
    "--ddl",
    "CREATE TABLE {table} (id uuid DEFAULT gen_random_uuid() PRIMARY KEY)",
    "--rows",
    "20000",
    "--budget",
    "10min",
    "--threshold",
    "0.01%",
];

#[test]
fn an_interrupted_run_keeps_its_rounds_and_leaves_nothing() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        let json = rig.home.path().join("run.json");
        let teardown = ["--teardown", "CREATE TABLE public.torn_down ()", "--json", json.to_str().unwrap()];
        let pgrig = in_rounds(&rig, &server, &[&SLOW_TABLES[..], &teardown].concat(), "INSERT");
        pgrig.signal(Signal::SIGINT);
        let Ran { code, stderr, .. } = pgrig.end();
        assert_eq!(code, Some(130), "{stderr}");
        assert!(stderr.contains("interrupted after"), "{stderr}");
        assert_nothing_left(&server);
        assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'torn_down'"), 1);
        let document: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        assert_eq!(document["status"], "interrupted");
        assert_valid(&document);
    }
}

#[test]
fn the_next_run_drops_what_a_killed_one_left() {
    let rig = Rig::new();
    let server = rig.server("");
    let pgrig = in_rounds(&rig, &server, &SLOW_TABLES, "INSERT");
    let tables = "SELECT count(*) FROM pg_class WHERE relname ~ '^pgrig_micro_[0-9]$'";
    let at_work = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() \
                   AND backend_type = 'client backend'";
    // Held still while there is a table: each round drops its own.
    until("it holds still between two statements of a round", || {
        pgrig.signal(Signal::SIGSTOP);
        until("the server is done", || (server.number(at_work) == 0).then_some(()));
        let has_tables = server.number(tables) > 0;
        pgrig.signal(if has_tables { Signal::SIGKILL } else { Signal::SIGCONT });
        has_tables.then_some(())
    });
    pgrig.end();
    assert!(server.number(tables) > 0);
    // Objects that somebody else created there stay.
    server.execute("CREATE TABLE pgrig_micro.mine (n int)");
    done(&rig, &["--ddl", "CREATE TABLE {table} (n int)", "--rows", "10", "--budget", "500ms"]);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname ~ '^pgrig_micro_[0-9]$'"), 0);
    assert_eq!(server.number("SELECT count(n) FROM pgrig_micro.mine"), 0);
    server.execute("DROP TABLE pgrig_micro.mine");
    done(&rig, &["--ddl", "CREATE TABLE {table} (n int)", "--rows", "10", "--budget", "500ms"]);
    assert_nothing_left(&server);
}

#[test]
fn a_table_without_the_mark_is_refused_and_stays() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute("CREATE TABLE public.pgrig_micro_2 AS SELECT 42::bigint AS mine");
        let create = "CREATE TABLE {table} (n int)";
        for ddl in [create, "CREATE TABLE IF NOT EXISTS {table} (n int)", "DROP TABLE IF EXISTS {table}"] {
            let ran = micro(&rig, &["--ddl", create, "--ddl", ddl, "--schema", "public", "--rows", "9"]);
            assert_eq!(ran.code, Some(2), "{ran:#?}");
            assert!(ran.stderr.contains("public has pgrig_micro_2, which pgrig did not make"), "{ran:#?}");
            assert_eq!(server.number("SELECT mine FROM public.pgrig_micro_2"), 42);
        }
        // The same comment on a table of another role's.
        server.execute(
            "CREATE ROLE guest LOGIN; ALTER TABLE public.pgrig_micro_2 OWNER TO guest; \
             COMMENT ON TABLE public.pgrig_micro_2 IS 'made by pgrig micro, whose next run drops it'",
        );
        let ran = micro(&rig, &["--ddl", create, "--ddl", create, "--schema", "public", "--rows", "9"]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert_eq!(server.number("SELECT mine FROM public.pgrig_micro_2"), 42);
        server.execute("DROP TABLE public.pgrig_micro_2");
        assert_nothing_left(&server);
    }
}

#[test]
fn a_panic_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    let teardown = "CREATE TABLE public.torn_down ()";
    rig.panics("micro", &["micro", "--ddl", "CREATE TABLE {table} (n int)", "--teardown", teardown]);
    assert_nothing_left(&server);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'torn_down'"), 1);
}

#[test]
fn what_fails_while_it_is_measured_is_told_and_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    let ran = micro(&rig, &["1 / (i - 300)", "--rows", "1000"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("1 / (i - 300) failed") && ran.stderr.contains("division by zero"),
        "{ran:#?}"
    );
    let ran =
        micro(&rig, &["--ddl", "CREATE TABLE {table} (n int); CREATE TYPE state AS ENUM ()", "--rows", "9"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("already exists"), "{ran:#?}");
    server.execute("DROP TYPE state");
    // Of a teardown the syntax is checked before anything else is done.
    let setup = "CREATE TABLE public.set_up ()";
    let ran =
        micro(&rig, &["md5(i::text)", "--rows", "9", "--setup", setup, "--teardown", "SELECT 1; SELEC 1"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("--teardown: ") && ran.stderr.contains("\"SELEC\""), "{ran:#?}");
    assert_eq!(server.number("SELECT (to_regclass('public.set_up') IS NULL)::int::bigint"), 1);
    let ran = micro(&rig, &["md5(i::text)", "--rows", "9", "--teardown", "SELECT nothing"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("--teardown failed, so results of --setup may remain"), "{ran:#?}");
    assert!(!ran.stderr.contains("objects"), "expressions make none: {ran:#?}");
    assert_nothing_left(&server);
}

#[test]
fn a_sample_longer_than_the_budget_is_cancelled() {
    let rig = Rig::new();
    let server = rig.server("");
    let calibrating = ["pg_sleep(100)", "--budget", "1s", "--calibrate", "--rows", "9"];
    let measuring = ["pg_sleep(100)", "md5(i::text)", "--budget", "1s"];
    for arguments in [&measuring[..], &calibrating[..]] {
        let ran = micro(&rig, arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("one sample takes more than 3 s, three times --budget"), "{ran:#?}");
        let left = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(100)%' \
                    AND pid <> pg_backend_pid()";
        // A session ends a little after its client.
        until("its session ends", || (server.number(left) == 0).then_some(()));
    }
}
