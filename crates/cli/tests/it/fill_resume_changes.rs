//! Fills that are interrupted while other sessions change their tables: the same command completes them, or refuses.

use crate::fill_resume::{LEDGER, assert_complete, assert_ids, assert_refused};
use crate::support::victims::{Ledger, kill_server};
use crate::support::{Rig, Server};
use nix::sys::signal::Signal;

/// Kills pgrig while it is held after some chunks; the server goes on.
fn stopped(rig: &Rig, server: &Server, command: &str, ledger: &str) {
    stopped_once(rig, server, command, ledger, || true);
}

fn stopped_once(rig: &Rig, server: &Server, command: &str, ledger: &str, is_ready: impl Fn() -> bool) {
    let mut pgrig = rig.spawn(command);
    let mut ledger = Ledger::of(rig, &server.url, ledger);
    testkit::until_some("some chunks are recorded", || {
        assert!(!pgrig.has_ended(), "it ended before: {:#?}", rig.run(command));
        ledger.hold(4).filter(|()| is_ready())
    });
    pgrig.signal(Signal::SIGKILL);
    drop(pgrig);
    ledger.release();
    // The statements of its sessions end before the tables can be locked.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND \
                    pid <> pg_backend_pid() AND application_name LIKE 'pgrig%'";
    testkit::until_some("its sessions are gone", || (server.number(sessions) == 0).then_some(()));
}

#[test]
fn tables_that_somebody_rewrites_are_completed() {
    let rig = Rig::new();
    let server = rig.server("");
    let command = "fill --rows 134567 --streams 2 --chunk 200kB --partitions 2";
    stopped(&rig, &server, command, LEDGER);
    server.execute("VACUUM FULL pgbench_accounts");
    stopped(&rig, &server, command, LEDGER);
    // A crash empties one partition from now on, and its records once they have moved.
    server.execute("ALTER TABLE pgbench_accounts_2 SET UNLOGGED; ALTER TABLE pgbench_tellers SET UNLOGGED");
    stopped(&rig, &server, command, "pgrig_unlogged_chunks_pgbench_accounts");
    kill_server(&rig);
    rig.done("server start");
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts_2"), 0);
    stopped(&rig, &server, command, "pgrig_unlogged_chunks_pgbench_accounts");
    server.execute("ALTER TABLE pgbench_accounts_2 SET LOGGED; ALTER TABLE pgbench_accounts_1 SET UNLOGGED");
    rig.done(command);
    assert_complete(&rig, 134_567);
}

#[test]
fn what_was_made_unlogged_or_logged_around_a_crash_is_noticed() {
    let rig = Rig::new();
    let server = rig.server("");
    let command = "fill --rows 134567 --streams 2 --chunk 200kB";
    stopped(&rig, &server, command, LEDGER);
    server.execute("ALTER TABLE pgbench_accounts SET UNLOGGED");
    kill_server(&rig);
    rig.done("server start");
    assert_refused(&rig, command, &["pgbench_accounts has 0 of ", "give --no-resume --drop"]);
    let unlogged = format!("{command} --unlogged --schema other");
    stopped(&rig, &server, &unlogged, &format!("other.{LEDGER}"));
    server.execute("ALTER TABLE other.pgbench_accounts SET LOGGED");
    kill_server(&rig);
    rig.done("server start");
    assert_refused(&rig, &unlogged, &["but pgrig recorded 0 as loaded", "give --no-resume --drop"]);
    server.execute("DROP SCHEMA other CASCADE");
    rig.done(&format!("{command} --no-resume --drop"));
    assert_complete(&rig, 134_567);
}

#[test]
fn tables_that_somebody_empties_or_replaces_are_noticed() {
    let rig = Rig::new();
    let server = rig.server("");
    let command = "fill --rows 134567 --streams 2 --chunk 200kB";
    let pgbench = "DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history";
    // A row that is there is one that is recorded.
    let least = "WHERE aid = (SELECT min(aid) FROM pgbench_accounts)";
    let delete = format!("DELETE FROM pgbench_accounts {least}");
    let update = format!("UPDATE pgbench_accounts SET aid = 134568 {least}");
    for (done, said) in [
        ("TRUNCATE pgbench_accounts", "public.pgbench_accounts has 0 of "),
        ("TRUNCATE pgbench_tellers", "public.pgbench_tellers has 0 rows"),
        (delete.as_str(), "rows that pgrig recorded as loaded"),
        ("INSERT INTO pgbench_accounts VALUES (1)", "another session inserted rows"),
        (update.as_str(), "has ids"),
        (
            "CREATE TABLE n (LIKE pgbench_accounts); DROP TABLE pgbench_accounts; ALTER TABLE n RENAME TO pgbench_accounts",
            "was dropped or replaced",
        ),
        (pgbench, "was dropped"),
    ] {
        // Tellers come with the first chunk, which need not be among those that are recorded first.
        let has_tellers = || server.number("SELECT count(*) FROM pgbench_tellers") > 0;
        stopped_once(&rig, &server, command, LEDGER, has_tellers);
        server.execute(done);
        assert_refused(&rig, command, &[said, "give --no-resume --drop"]);
        if done == pgbench {
            assert_refused(&rig, &format!("{command} --explain"), &[said]);
            rig.done(&format!("{command} --no-resume --drop"));
        } else {
            stopped(&rig, &server, &format!("{command} --drop"), LEDGER);
            rig.done(&format!("{command} --no-resume --drop"));
        }
        assert_ids(&server, "pgbench_accounts", "aid", 134_567);
        server.execute(pgbench);
    }
    // As pgbench -i does; nobody counts rows of a table that is not there.
    let brim = "fill --for 1min --data-only --chunk 1MB";
    stopped(&rig, &server, brim, LEDGER);
    server.execute(pgbench);
    assert_refused(&rig, brim, &["was dropped", "give --no-resume --drop"]);
    rig.done("fill -s 1 --no-resume --drop");
    assert_ids(&server, "pgbench_accounts", "aid", 100_000);
}

#[test]
fn a_table_of_ones_own_that_somebody_empties_or_replaces_is_noticed() {
    let rig = Rig::new();
    let server = rig.server("");
    let table = "CREATE TABLE own (id bigint PRIMARY KEY, note text)";
    let ddl = rig.home.path().join("ddl.sql");
    std::fs::write(&ddl, table).unwrap();
    let command = "fill --table own --rows 200000 --chunk 100kB --streams 2";
    let by_ddl = format!("fill --ddl {} --rows 200000 --chunk 100kB --streams 2", ddl.display());
    for (command, done, said, anew) in [
        (command, "TRUNCATE own".to_owned(), "has 0 of ", "TRUNCATE public.own and give --no-resume"),
        (command, format!("DROP TABLE own; {table}"), "was dropped", "give --no-resume"),
        (&by_ddl, format!("DROP TABLE own; {table}"), "was dropped", "drop public.own and give --no-resume"),
        (&by_ddl, "DROP TABLE own".to_owned(), "was dropped", "drop public.own and give --no-resume"),
    ] {
        if command != by_ddl {
            server.execute(table);
        }
        stopped(&rig, &server, command, "pgrig_chunks_own");
        server.execute(&done);
        assert_refused(&rig, command, &[said, anew]);
        if command == by_ddl {
            server.execute("DROP TABLE IF EXISTS own");
        }
        rig.done(&format!("{command} --no-resume"));
        assert_ids(&server, "own", "id", 200_000);
        server.execute("DROP TABLE own");
    }
}

#[test]
fn rows_under_a_partial_index_are_completed() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE users (id int PRIMARY KEY); INSERT INTO users SELECT generate_series(1, 50); \
         CREATE TABLE own (id bigint PRIMARY KEY, user_id int NOT NULL REFERENCES users, is_home bool NOT NULL DEFAULT false); \
         CREATE UNIQUE INDEX one_home ON own (user_id) WHERE is_home",
    );
    let command = "fill --table own --rows 200000 --chunk 100kB --streams 2 --method copy";
    stopped(&rig, &server, command, "pgrig_chunks_own");
    rig.done(command);
    assert_ids(&server, "own", "id", 200_000);
    let homes = server.number("SELECT count(*) FROM own WHERE is_home");
    assert!((5..=50).contains(&homes), "{homes}");
}
