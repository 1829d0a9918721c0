//! Fills that are interrupted again and again: the same command completes exactly what is missing.

mod common;

use std::time::{Duration, Instant};

use common::{Rig, connect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A repeatable sequence, so that a failure can be repeated: Knuth's MMIX generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Pgrig,
    Postmaster,
    Backend,
}

/// Chunks that the ledger has, however the fill goes on meanwhile; none before there is one.
fn chunks_done(rig: &Rig, url: &str) -> Option<i64> {
    rig.block_on(async {
        let client = connect(url).await.ok()?;
        let row = client.query_one("SELECT count(*) FROM pgrig_chunks_pgbench_accounts", &[]).await.ok()?;
        Some(row.get(0))
    })
}

/// Starts the command and kills the victim once `chunks` more chunks are recorded. Returns whether the
/// fill was over before that.
fn killed(rig: &Rig, url: &str, command: &str, victim: Victim, chunks: i64) -> bool {
    let before = chunks_done(rig, url).unwrap_or(0);
    let mut pgrig = rig.spawn(command);
    let started = Instant::now();
    while chunks_done(rig, url).is_none_or(|done| done < before + chunks) {
        assert!(started.elapsed() < common::DEADLINE, "no chunks come in");
        if pgrig.has_ended() {
            return pgrig.end().code == Some(0);
        }
    }
    match victim {
        Victim::Pgrig => pgrig.signal(Signal::SIGKILL),
        Victim::Postmaster => {
            let pid = rig.status()["pid"].as_i64().unwrap();
            kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        }
        Victim::Backend => rig.block_on(async {
            let client = connect(url).await.unwrap();
            let loading = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%' LIMIT 1";
            if let Some(row) = client.query_opt(loading, &[]).await.unwrap() {
                // It may have ended meanwhile.
                let _ = kill(Pid::from_raw(row.get(0)), Signal::SIGKILL);
            }
        }),
    }
    let ran = pgrig.end();
    ran.code == Some(0)
}

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
        let victim = match chance.below(3) {
            0 => Victim::Pgrig,
            1 => Victim::Postmaster,
            _ => Victim::Backend,
        };
        let chunks = 1 + i64::try_from(chance.below(25)).unwrap();
        if killed(&rig, &url, &command, victim, chunks) {
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
fn what_is_complete_but_for_the_keys_gets_them() {
    let rig = Rig::new();
    let server = rig.server("");
    // Somebody keeps the last step from being done.
    server.execute(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%ADD PRIMARY KEY%' THEN RAISE 'not now'; END IF; END $$; \
         CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()",
    );
    let ran = rig.run("fill --rows 300000");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("all 300000 new rows committed"), "{ran:#?}");
    let other = rig.run("fill --rows 300001");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("unfinished fill"), "{other:#?}");
    server.execute("DROP EVENT TRIGGER refuse");
    let document = rig.document("fill --rows 300000");
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
    common::until("the first is at it", || chunks_done(&rig, &server.url).filter(|done| *done > 2));
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
