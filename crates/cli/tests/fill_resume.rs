//! Fills that are interrupted again and again: the same command completes exactly what is missing.

mod common;

use std::time::{Duration, Instant};

use common::Rig;
use common::victims::{Chance, Victim, chunks_done, killed};
use nix::sys::signal::Signal;

/// Where pgbench's chunks are recorded.
const LEDGER: &str = "pgrig_chunks_pgbench_accounts";

/// Every id from 1 to the last once, every branch and teller once, and no ledger.
fn assert_complete(rig: &Rig, rows: i64) {
    let server = rig.server("");
    let ids = server.row(
        "SELECT count(*), count(DISTINCT aid), min(aid)::bigint, max(aid)::bigint FROM pgbench_accounts",
    );
    let ids: [i64; 4] = [ids.get(0), ids.get(1), ids.get(2), ids.get(3)];
    assert_eq!(ids, [rows, rows, 1, rows]);
    let scale = rows / 100_000;
    for (table, key, expected) in [("branches", "bid", scale), ("tellers", "tid", scale * 10)] {
        let ids = server
            .row(&format!("SELECT count(*), count(DISTINCT {key}), max({key})::bigint FROM pgbench_{table}"));
        let ids: [i64; 3] = [ids.get(0), ids.get(1), ids.get(2)];
        assert_eq!(ids, [expected; 3], "{table}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts WHERE bid <> least((aid - 1) / 100000 + 1, (SELECT count(*) FROM pgbench_branches))"), 0);
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts WHERE abalance <> 0 OR filler <> ''"), 0);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    rig.done("server stop");
}

/// Kills until it has been killed often enough, or is complete before; then lets it end.
fn assert_survives(seed: u64, options: &str, rows: i64, kills: u32) {
    let rig = Rig::new();
    let url = rig.url();
    let command = format!(
        "fill --rows {rows} --streams 2 --chunk 1MB --set shared_buffers=64MB --set max_wal_size=1GB {options}"
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
    assert_survives(1, "--pg-version 18", 1_234_567, 12);
}

#[test]
fn unlogged_tables_are_completed_whoever_is_killed() {
    assert_survives(2, "--pg-version 18 --unlogged", 1_234_567, 12);
}

#[test]
fn the_oldest_version_is_completed_too() {
    assert_survives(3, "--pg-version 13", 1_034_567, 8);
}

#[test]
fn partitions_by_hash_are_completed() {
    assert_survives(4, "--pg-version 18 --partitions 3 --partition-method hash", 1_034_567, 8);
}

#[test]
fn rows_made_by_the_server_are_completed() {
    assert_survives(5, "--pg-version 18 --server-side --data-only", 1_034_567, 8);
}

#[test]
fn what_is_loaded_but_not_spread_out_is_spread_out() {
    let rig = Rig::new();
    let url = rig.url();
    let command = "fill --rows 400000 --method explode --fillfactor 10 --partitions 2 --streams 1 \
                   --set shared_buffers=64MB";
    // The first leaf is loaded, whether it is spread out or not.
    assert!(!killed(rig.spawn(command), &rig, &url, LEDGER, Victim::Postmaster, 1));
    rig.done(command);
    assert_complete(&rig, 400_000);
    let server = rig.server("");
    let pages = "SELECT sum(pg_relation_size(oid) / 8192)::bigint FROM pg_class WHERE relname LIKE 'pgbench_accounts__'";
    // Six rows a page.
    assert_eq!(server.number(pages), 2 * 33_334);
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
    let ran = rig.run("fill --method copy --rows 300000");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("all 300000 new rows committed"), "{ran:#?}");
    let other = rig.run("fill --method copy --rows 300001");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("unfinished fill"), "{other:#?}");
    server.execute("DROP EVENT TRIGGER refuse");
    let document = rig.document("fill --method copy --rows 300000");
    let steps: Vec<&str> = document["trials"][0]["observations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|observation| observation["name"].as_str().unwrap())
        .collect();
    assert!(!steps.contains(&"create") && steps.contains(&"primary-keys"), "{steps:?}");
    assert_complete(&rig, 300_000);
}

#[test]
fn a_second_pgrig_waits_for_the_first_or_is_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    let first = rig.spawn("fill --rows 3000000 --chunk 1MB --streams 1");
    common::until("the first is at it", || chunks_done(&rig, &server.url, LEDGER).filter(|done| *done > 2));
    first.signal(Signal::SIGSTOP);
    let started = Instant::now();
    let second = rig.run("fill --rows 3000000 --chunk 1MB --streams 1");
    assert_eq!(second.code, Some(1), "{second:#?}");
    assert!(second.stderr.contains("is at this fill"), "{second:#?}");
    assert!(started.elapsed() > Duration::from_secs(1), "it was waited for");
    first.signal(Signal::SIGCONT);
    assert_eq!(first.end().code, Some(0));
    assert_complete(&rig, 3_000_000);
}
