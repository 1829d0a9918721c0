//! Fills that are interrupted, killed, or lose their server in the middle.

use std::path::Path;

use crate::support::{Ran, Rig, Running, connect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{fill_up, until_async, until_some as until, until_some_async};

const FROZEN: &str = "fill 3GB --method copy --streams 1 --data-only --set shared_buffers=128MB";
const PARALLEL: &str = "fill 3GB --method copy --streams 2 --unlogged --data-only --set shared_buffers=128MB";

/// A fill in the middle of its COPY, and where its server is.
struct Filling {
    pgrig: Running,
    postmaster: Pid,
    url: String,
}

/// Starts the fill and waits until the server itself says that rows have come in.
fn filling(rig: &Rig, arguments: &str) -> Filling {
    let pgrig = rig.spawn(arguments);
    let (postmaster, url) = until("the server is up", || {
        let status = rig.status();
        (status["state"] == "running" && status["ready"] == true).then(|| {
            let socket = status["socket_dir"].as_str().unwrap();
            let url = format!("host={socket} port={} user=postgres dbname=postgres", status["port"]);
            (Pid::from_raw(i32::try_from(status["pid"].as_i64().unwrap()).unwrap()), url)
        })
    });
    rig.block_on(async {
        let client =
            until_some_async("the server accepts a session", async || connect(&url).await.ok()).await;
        // In a chunk of parallel streams some rows are committed when a later COPY begins.
        let copied = "SELECT coalesce(sum(tuples_processed), 0)::bigint FROM pg_stat_progress_copy";
        until_async("rows come in", async || {
            client.query_one(copied, &[]).await.unwrap().get::<_, i64>(0) >= 100_000
        })
        .await;
    });
    Filling { pgrig, postmaster, url }
}

/// The server process at work on the COPY.
fn loading_backend(rig: &Rig, filling: &Filling) -> Pid {
    let client = rig.connect(&filling.url);
    let query =
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%pgbench_accounts%' AND state = 'active'";
    Pid::from_raw(rig.block_on(client.query_one(query, &[])).unwrap().get(0))
}

fn assert_gone(process: Pid) {
    until("the process is gone", || kill(process, None).is_err().then_some(()));
}

/// The last run document's status.
fn saved_status(rig: &Rig) -> Value {
    let files = std::fs::read_dir(rig.home.path().join("runs")).unwrap();
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension() == Some(Path::new("json").as_os_str()));
    paths.sort();
    let text = std::fs::read_to_string(paths.last().unwrap()).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["status"].clone()
}

fn tables(rig: &Rig) -> i64 {
    let server = rig.server("");
    server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%'")
}

fn interrupted(rig: &Rig, arguments: &str, signal: Signal) -> Ran {
    let filling = filling(rig, arguments);
    filling.pgrig.signal(signal);
    let ran = filling.pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stderr.contains("interrupted in step generate"), "{ran:#?}");
    assert_eq!(saved_status(rig), "interrupted");
    assert_gone(filling.postmaster);
    ran
}

#[test]
fn an_interrupted_frozen_copy_leaves_nothing() {
    let rig = Rig::new();
    let ran = interrupted(&rig, FROZEN, Signal::SIGINT);
    assert!(ran.stderr.contains("Nothing was committed"), "{ran:#?}");
    assert_eq!(tables(&rig), 0);
}

#[test]
fn an_interrupted_parallel_copy_names_what_is_there() {
    let rig = Rig::new();
    let ran = interrupted(&rig, PARALLEL, Signal::SIGTERM);
    assert!(ran.stderr.contains("State: public.pgbench_accounts"), "{ran:#?}");
    assert!(ran.stderr.contains("To complete the fill, repeat the command"), "{ran:#?}");
    assert_eq!(tables(&rig), 4);
    let server = rig.server("");
    let rows = server.number("SELECT count(*) FROM pgbench_accounts");
    assert!(ran.stderr.contains(&format!("{rows} new rows, which are committed")), "{rows} rows: {ran:#?}");
    rig.done("fill 10MB --drop");
}

#[test]
fn an_interrupted_replacement_says_what_became_of_the_old_tables() {
    let rig = Rig::new();
    rig.done("fill 5MB --set shared_buffers=128MB");
    let ran = interrupted(&rig, &format!("{FROZEN} --drop"), Signal::SIGINT);
    assert!(ran.stderr.contains("pgrig has dropped the old tables"), "{ran:#?}");
    assert_eq!(tables(&rig), 0);

    // Somebody else's lock keeps the old tables from being dropped.
    rig.done("fill 5MB");
    let url = rig.done("server url").stdout;
    let (holder, watcher) = (rig.connect(url.trim()), rig.connect(url.trim()));
    rig.block_on(holder.batch_execute("BEGIN; LOCK TABLE pgbench_tellers")).unwrap();
    let told = rig.home.path().join("told");
    let pgrig = rig.spawn_telling("fill 5MB --drop", &told);
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DROP%'";
    until("the drop waits", || {
        let count: i64 = rig.block_on(watcher.query_one(waiting, &[])).unwrap().get(0);
        (count == 1).then_some(())
    });
    let said = || std::fs::read_to_string(&told).unwrap();
    until("it says who is in the way", || said().contains("waiting for a lock that process").then_some(()));
    pgrig.signal(Signal::SIGINT);
    assert_eq!(pgrig.end().code, Some(130), "{}", said());
    assert!(said().contains("The old tables are unchanged"), "{}", said());
    rig.block_on(holder.batch_execute("ROLLBACK")).unwrap();
    assert_eq!(tables(&rig), 7, "four tables and three primary keys");
}

#[test]
fn a_killed_pgrig_takes_its_server_along_and_the_next_one_recovers() {
    let rig = Rig::new();
    let filling = filling(&rig, FROZEN);
    filling.pgrig.signal(Signal::SIGKILL);
    drop(filling.pgrig);
    assert_gone(filling.postmaster);
    assert_eq!(saved_status(&rig), "unfinished");
    assert_eq!(tables(&rig), 0);
    rig.done("fill 10MB");
}

#[test]
fn a_killed_server_is_reported_with_what_is_there() {
    for (arguments, there) in [(FROZEN, "Nothing was committed"), (PARALLEL, "its recovery empties these")] {
        let rig = Rig::new();
        let filling = filling(&rig, arguments);
        kill(filling.postmaster, Signal::SIGKILL).unwrap();
        let ran = filling.pgrig.end();
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.stderr.contains("generate failed"), "{ran:#?}");
        assert!(ran.stderr.contains(there), "{ran:#?}");
        assert_eq!(saved_status(&rig), "failed");
        rig.done("fill 10MB --drop --set shared_buffers=128MB");
    }
}

#[test]
fn a_disk_that_fills_up_ends_the_fill_at_once_and_keeps_the_server() {
    let Some(rig) = Rig::on_small_disk(1500) else { return };
    let filling = filling(
        &rig,
        "fill 1GB --method copy --streams 1 --data-only --set shared_buffers=128MB --set max_wal_size=64MB",
    );
    // Somebody else takes all that is left, while the server holds still.
    let backend = loading_backend(&rig, &filling);
    kill(backend, Signal::SIGSTOP).unwrap();
    let hog = rig.home.path().join("hog");
    fill_up(&hog);
    kill(backend, Signal::SIGCONT).unwrap();
    let ran = filling.pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("53100"), "{ran:#?}");
    assert!(ran.stderr.contains("Nothing was committed"), "{ran:#?}");
    std::fs::remove_file(hog).unwrap();
    assert_eq!(tables(&rig), 0);
    let again = rig.run("fill 5GB");
    assert_eq!(again.code, Some(1), "{again:#?}");
    assert!(again.stderr.contains("of disk space (tables"), "{again:#?}");
}

#[test]
fn a_crashed_backend_ends_the_server_and_the_next_start_recovers() {
    let rig = Rig::new();
    let filling = filling(&rig, FROZEN);
    kill(loading_backend(&rig, &filling), Signal::SIGKILL).unwrap();
    let ran = filling.pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("Nothing was committed"), "{ran:#?}");
    assert_gone(filling.postmaster);
    assert_eq!(tables(&rig), 0);
}

#[test]
fn a_lost_session_is_reported_with_the_server_s_word() {
    let rig = Rig::new();
    let filling = filling(&rig, FROZEN);
    rig.block_on(async {
        let client = connect(&filling.url).await.unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'";
        client.batch_execute(end).await.unwrap();
    });
    let ran = filling.pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("57P01"), "{ran:#?}");
    assert_eq!(tables(&rig), 0);
}
