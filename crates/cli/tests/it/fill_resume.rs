//! Fills that are interrupted again and again: the same command completes exactly what is missing.

use std::time::{Duration, Instant};

use crate::support::victims::{Chance, Ledger, Victim, kill_server, killed, killed_while_held};
use crate::support::{Rig, Server};
use nix::sys::signal::Signal;

/// Where pgbench's chunks are recorded.
pub(super) const LEDGER: &str = "pgrig_chunks_pgbench_accounts";

/// Every id from 1 to the last once, every branch and teller once, and no ledger.
pub(super) fn assert_complete(rig: &Rig, rows: i64) {
    let server = rig.server("");
    // With how many accounts of wrong branches, and how many that are not empty.
    let ids = server.row(
        "SELECT count(*), count(DISTINCT aid), min(aid)::bigint, max(aid)::bigint, \
                count(*) FILTER (WHERE bid <> least((aid - 1) / 100000 + 1, (SELECT count(*) FROM pgbench_branches))), \
                count(*) FILTER (WHERE abalance <> 0 OR filler <> '') FROM pgbench_accounts",
    );
    let ids: [i64; 6] = [0, 1, 2, 3, 4, 5].map(|column| ids.get(column));
    assert_eq!(ids, [rows, rows, 1, rows, 0, 0]);
    let scale = rows / 100_000;
    for (table, key, expected) in [("branches", "bid", scale), ("tellers", "tid", scale * 10)] {
        let ids = server
            .row(&format!("SELECT count(*), count(DISTINCT {key}), max({key})::bigint FROM pgbench_{table}"));
        let ids: [i64; 3] = [ids.get(0), ids.get(1), ids.get(2)];
        assert_eq!(ids, [expected; 3], "{table}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    rig.done("server stop");
}

/// Kills until it has been killed often enough, or is complete before; then lets it end.
fn assert_survives(seed: u64, options: &str, rows: i64, kills: u32) {
    let rig = Rig::new();
    let url = rig.url();
    let command = format!(
        "fill --rows {rows} --streams 2 --chunk 400kB --set shared_buffers=64MB --set max_wal_size=1GB {options}"
    );
    let mut chance = Chance(seed);
    for _ in 0..kills {
        let chunks = 1 + i64::try_from(chance.below(25)).unwrap();
        if killed(rig.spawn(&command), &rig, &url, LEDGER, Victim::any(&mut chance), chunks) {
            break;
        }
    }
    let ran = rig.run(&command);
    let complete = ran.code == Some(0) || ran.stderr.contains("already has");
    assert!(complete, "seed {seed}: {ran:#?}");
    assert_complete(&rig, rows);
}

#[test]
fn logged_tables_are_completed_whoever_is_killed() {
    assert_survives(1, "--pg-version 18", 434_567, 12);
}

#[test]
fn unlogged_tables_are_completed_whoever_is_killed() {
    assert_survives(2, "--pg-version 18 --unlogged", 434_567, 12);
}

#[test]
fn the_oldest_version_is_completed_too() {
    assert_survives(3, "--pg-version 13", 334_567, 8);
}

#[test]
fn partitions_by_hash_are_completed() {
    assert_survives(4, "--pg-version 18 --partitions 3 --partition-method hash", 334_567, 8);
}

#[test]
fn rows_made_by_the_server_are_completed() {
    assert_survives(5, "--pg-version 18 --server-side --data-only", 334_567, 8);
}

#[test]
fn what_is_loaded_but_not_spread_out_is_spread_out() {
    let rig = Rig::new();
    let url = rig.url();
    let command = "fill --rows 200000 --method explode --fillfactor 10 --partitions 2 --streams 1 \
                   --set shared_buffers=64MB";
    // The first leaf is loaded, whether it is spread out or not.
    killed_while_held(rig.spawn(command), &rig, &url, LEDGER, Victim::Postmaster, 1);
    rig.done(command);
    assert_complete(&rig, 200_000);
    let server = rig.server("");
    let pages = "SELECT sum(pg_relation_size(oid) / 8192)::bigint FROM pg_class WHERE relname LIKE 'pgbench_accounts__'";
    // Six rows a page.
    assert_eq!(server.number(pages), 2 * 16_667);
}

#[test]
fn what_is_complete_but_for_the_keys_gets_them() {
    let rig = Rig::new();
    let server = rig.server("");
    // Somebody keeps the last step from being done.
    server.execute(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%ADD PRIMARY KEY%' THEN RAISE 'not now'; END IF; END $$; \
         CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()",
    );
    let ran = rig.run("fill --method copy --rows 100000");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("all 100000 new rows, which are committed"), "{ran:#?}");
    let other = rig.run("fill --method copy --rows 100001");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("unfinished fill"), "{other:#?}");
    server.execute("DROP EVENT TRIGGER refuse");
    let document = rig.document("fill --method copy --rows 100000");
    let steps: Vec<&str> = document["trials"][0]["observations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|observation| observation["name"].as_str().unwrap())
        .collect();
    assert!(!steps.contains(&"create") && steps.contains(&"primary-keys"), "{steps:?}");
    assert_complete(&rig, 100_000);
}

#[test]
fn a_second_pgrig_waits_for_the_first_or_is_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    let first = rig.spawn("fill --rows 300000 --chunk 200kB --streams 1");
    let mut ledger = Ledger::of(&rig, &server.url, LEDGER);
    testkit::until_some("the first is at it", || ledger.hold(3));
    first.signal(Signal::SIGSTOP);
    ledger.release();
    let started = Instant::now();
    let second = rig.run("fill --rows 300000 --chunk 200kB --streams 1");
    assert_eq!(second.code, Some(1), "{second:#?}");
    assert!(second.stderr.contains("runs this fill"), "{second:#?}");
    assert!(started.elapsed() > Duration::from_secs(1), "it was waited for");
    first.signal(Signal::SIGCONT);
    assert_eq!(first.end().code, Some(0));
    assert_complete(&rig, 300_000);
}

/// Starts the fill on the running server, and kills that as a whole once so many chunks are recorded.
fn crashed(rig: &Rig, server: &Server, command: &str, chunks: i64) {
    crashed_at(rig, server, command, chunks, LEDGER);
}

fn crashed_at(rig: &Rig, server: &Server, command: &str, chunks: i64, ledger: &str) {
    let mut ledger = Ledger::of(rig, &server.url, ledger);
    // An earlier fill may have recorded as many: a server that is killed before pgrig uses it is started again.
    let least = chunks.max(1 + ledger.chunks().unwrap_or(0));
    let mut pgrig = rig.spawn(command);
    testkit::until_some("some chunks are recorded", || {
        assert!(!pgrig.has_ended(), "it ended before: {:#?}", rig.run(command));
        ledger.hold(least)
    });
    kill_server(rig);
    ledger.release();
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    rig.done("server start");
}

/// The same command fails and says this, and its promise for beginning anew.
pub(super) fn assert_refused(rig: &Rig, command: &str, said: &[&str]) {
    let ran = rig.run(command);
    assert_eq!(ran.code, Some(1), "{command}: {ran:#?}");
    for said in said.iter().chain(&["Nothing was changed"]) {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
}

/// Every id from 1 to the last once.
pub(super) fn assert_ids(server: &Server, table: &str, id: &str, rows: i64) {
    let row = server.row(&format!(
        "SELECT count(*), count(DISTINCT {id}), min({id})::bigint, max({id})::bigint FROM {table}"
    ));
    let ids: [i64; 4] = [row.get(0), row.get(1), row.get(2), row.get(3)];
    assert_eq!(ids, [rows, rows, 1, rows], "{table}");
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

const MIXED: &str = "CREATE TABLE own (id bigint NOT NULL, note text) PARTITION BY HASH (id); \
     CREATE TABLE own1 PARTITION OF own FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
     CREATE UNLOGGED TABLE own2 PARTITION OF own FOR VALUES WITH (MODULUS 2, REMAINDER 1)";

fn assert_mixed_partitions(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(MIXED);
    let command = "fill --table own --rows 150000 --column id=serial --method copy --chunk 200kB --streams 2";
    crashed_at(&rig, &server, command, 4, "pgrig_chunks_own");
    assert!(server.number("SELECT count(*) FROM own1") > 0);
    assert_eq!(server.number("SELECT count(*) FROM own2"), 0);
    crashed_at(&rig, &server, command, 10, "pgrig_chunks_own");
    rig.done(command);
    assert_ids(&server, "own", "id", 150_000);
    // A crash would change what a size is measured by, and keys of the server's come out differently.
    for (options, said) in [("20MB --column id=serial", "give --rows"), ("--rows 10", "values with --column")]
    {
        server.execute("DROP TABLE own");
        server.execute(&MIXED.replace("bigint NOT NULL", "bigint GENERATED BY DEFAULT AS IDENTITY"));
        let ran = rig.run(&format!("fill --table own {options}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(said), "{ran:#?}");
    }
}

#[test]
fn partitions_of_mixed_persistence_are_completed_after_a_crash() {
    assert_mixed_partitions("--pg-version 18");
}

#[test]
fn partitions_of_mixed_persistence_are_completed_after_a_crash_on_the_oldest() {
    assert_mixed_partitions("--pg-version 13");
}

/// Fills pgbench's tables, some of which were altered, through a crash.
fn assert_mixed_tables(create: &str, alter: &str, fill: &str) {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done(&format!("fill --rows 134567 --data-only {create}"));
    server.execute(&format!("TRUNCATE pgbench_accounts, pgbench_branches, pgbench_tellers; {alter}"));
    let command = format!("fill -I g --rows 134567 --streams 2 --chunk 200kB {fill}");
    crashed(&rig, &server, &command, 5);
    rig.done(&command);
    assert_complete(&rig, 134_567);
}

#[test]
fn only_the_unlogged_partition_is_filled_again_after_a_crash() {
    assert_mixed_tables("--partitions 3", "ALTER TABLE pgbench_accounts_1 SET UNLOGGED", "");
}

#[test]
fn only_the_unlogged_partition_is_filled_again_by_the_server_after_a_crash() {
    let alter = "ALTER TABLE pgbench_accounts_2 SET UNLOGGED";
    assert_mixed_tables("--partitions 3 --partition-method hash", alter, "--server-side");
}

#[test]
fn unlogged_branches_are_filled_again_after_a_crash() {
    let alter = "ALTER TABLE pgbench_branches SET UNLOGGED; ALTER TABLE pgbench_tellers SET UNLOGGED";
    assert_mixed_tables("", alter, "");
}

/// Base tables, altered, and an --append that a crash ends.
fn appended(rig: &Rig, server: &Server, alter: &str) {
    rig.done("fill --drop --rows 300000");
    server.execute(&format!("INSERT INTO pgbench_history VALUES (1, 1, 1); {alter}"));
    crashed(rig, server, APPEND, 3);
}

const APPEND: &str = "fill --append --rows 300000 --streams 2 --chunk 200kB";
const ANEW: &str = "give --drop and the whole amount instead of --append";

#[test]
fn rows_from_before_that_a_crash_took_are_reported_by_append() {
    let unlogged = |table: &str| format!("ALTER TABLE pgbench_{table} SET UNLOGGED;");
    let all: String = ["accounts", "branches", "tellers", "history"].map(unlogged).concat();
    let rig = Rig::new();
    let server = rig.server("");
    for (alter, said) in [
        (unlogged("branches") + &unlogged("tellers"), "pgbench_branches has lost 3 of 3 rows"),
        (unlogged("tellers"), "pgbench_tellers has lost 30 of 30 rows"),
        (unlogged("accounts"), "pgbench_accounts has lost all rows"),
        (unlogged("history"), "pgbench_history has lost all rows"),
        (all, "pgbench_accounts has lost all rows"),
    ] {
        appended(&rig, &server, &alter);
        assert_refused(&rig, APPEND, &[said, "a crash of the server empties unlogged tables", ANEW]);
        // It stays so, and what it says works.
        assert_refused(&rig, APPEND, &[said]);
        rig.done("fill --drop --rows 600000");
        assert_ids(&server, "pgbench_accounts", "aid", 600_000);
    }
}

#[test]
fn append_completes_what_a_crash_did_not_take() {
    let rig = Rig::new();
    let server = rig.server("");
    appended(&rig, &server, "");
    rig.done(APPEND);
    assert_ids(&server, "pgbench_accounts", "aid", 600_000);
    assert_eq!(server.number("SELECT count(DISTINCT bid) FROM pgbench_branches"), 6);
    assert_eq!(server.number("SELECT count(DISTINCT tid) FROM pgbench_tellers"), 60);
}

#[test]
fn append_adds_nothing_to_tables_that_have_lost_rows() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --rows 300000 --partitions 2");
    for (lose, said) in [
        ("TRUNCATE pgbench_accounts", "pgbench_accounts is empty, and pgbench_branches has 3 rows"),
        ("TRUNCATE pgbench_branches", "pgbench_branches is empty"),
        ("TRUNCATE pgbench_tellers", "pgbench_tellers has 0 rows for 3 branches"),
        ("DELETE FROM pgbench_branches WHERE bid = 2", "their ids are 1 to 3 instead of 1 to 2"),
        ("TRUNCATE pgbench_accounts_1; ALTER TABLE pgbench_accounts_1 SET UNLOGGED", "is empty and unlogged"),
        (
            "TRUNCATE pgbench_accounts, pgbench_branches, pgbench_tellers; ALTER TABLE pgbench_accounts_2 SET UNLOGGED",
            "pgbench_accounts_2 is empty and unlogged",
        ),
    ] {
        server.execute(lose);
        assert_refused(&rig, APPEND, &[said, ANEW]);
        rig.done("fill --drop --rows 300000 --partitions 2");
        assert_ids(&server, "pgbench_accounts", "aid", 300_000);
    }
}

#[test]
fn unlogged_tables_that_a_crash_has_emptied_are_filled_again() {
    let rig = Rig::new();
    for options in ["", "--foreign-keys", "--partitions 3", "--method copy --streams 1"] {
        let server = rig.server("");
        let command = format!("fill --rows 134567 --unlogged {options}");
        rig.done(&format!("{command} --drop"));
        kill_server(&rig);
        rig.done("server start");
        assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 0);
        rig.done(&command);
        assert_ids(&server, "pgbench_accounts", "aid", 134_567);
        let keys = "SELECT count(*) FROM pg_constraint WHERE conname LIKE 'pgbench%key' AND conparentid = 0";
        assert_eq!(server.number(keys), if options.contains("foreign") { 8 } else { 3 }, "{options}");
        // Again, and not what such a command would make.
        kill_server(&rig);
        rig.done("server start");
        assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 0);
        let other = rig.run(&format!("fill --rows 134567 --unlogged --fillfactor 50 {options}"));
        assert_eq!(other.code, Some(2), "{other:#?}");
        assert!(
            other.stderr.contains("unlogged and empty, as a crash of the server leaves them"),
            "{other:#?}"
        );
        rig.done(&command);
        assert_complete(&rig, 134_567);
    }
}

#[test]
fn keys_alone_find_nothing_that_was_rolled_back() {
    let rig = Rig::new();
    let _server = rig.server("");
    rig.done("fill -s 1 --fillfactor 10 -I dtg");
    let ran = rig.done("fill -I p");
    assert!(!ran.stderr.contains("rolled back"), "{ran:#?}");
}
