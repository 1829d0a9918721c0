//! Fills by direct pages that are interrupted, killed, run out of space, or lose their server: nothing is left that
//! should not be, and what is committed is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::proof::Proof;
use crate::support::victims::{Ledger, chunks_done, kill_server};
use crate::support::{Ran, Rig, Running, Server, connect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Need, fill_up, require, until_ok, until_some as until};

/// Two gigabytes: two segments.
const LARGE: &str = "fill --method direct --rows 1530000 --fillfactor 10 --data-only";
/// Where pgbench's leaves are recorded.
const LEDGER: &str = "pgrig_chunks_pgbench_accounts";

/// Starts the fill and waits until it is at its second segment.
fn at_second_segment(rig: &Rig, data: &Path, arguments: &str) -> Running {
    let mut pgrig = rig.spawn(arguments);
    until("the second segment is there", || {
        assert!(!pgrig.has_ended(), "it ended before");
        second_segment(data).map(drop)
    });
    pgrig
}

/// Any `.1` in any database.
fn second_segment(data: &Path) -> Option<PathBuf> {
    files(data).into_iter().find(|path| path.extension().is_some_and(|end| end == "1"))
}

/// All files in all databases.
fn files(data: &Path) -> Vec<PathBuf> {
    let below = |directory: &Path| std::fs::read_dir(directory).into_iter().flatten().flatten();
    below(&data.join("base")).flat_map(|database| below(&database.path())).map(|file| file.path()).collect()
}

fn tables(server: &Server) -> i64 {
    server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%' OR relname LIKE 'pgrig%'")
}

/// Nothing is there, in the catalogs or on disk, and the next fill is sound.
fn assert_no_trace(server: &Server, rig: &Rig) {
    assert_eq!(tables(server), 0);
    let data = rig.data();
    let proof = Proof::of(server, &data, "public");
    proof.until_no_orphans();
    rig.done("fill --method direct --rows 5000");
    proof.assert_sound();
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 5000);
}

#[test]
fn a_killed_pgrig_leaves_nothing() {
    for options in ["", "--unlogged"] {
        let rig = Rig::new();
        let server = rig.server("");
        let pgrig = at_second_segment(&rig, &rig.data(), &format!("{LARGE} {options}"));
        pgrig.signal(Signal::SIGKILL);
        drop(pgrig);
        assert_no_trace(&server, &rig);
    }
}

#[test]
fn an_interrupted_one_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("--pg-version 13");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let pgrig = at_second_segment(&rig, &rig.data(), &format!("{LARGE} --drop"));
        pgrig.signal(signal);
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        assert!(ran.stderr.contains("interrupted in step generate"), "{ran:#?}");
        assert!(ran.stderr.contains("Nothing was committed"), "{ran:#?}");
        assert_no_trace(&server, &rig);
    }
}

/// It fails, and says that nothing is there.
fn assert_failed(ran: &Ran, said: &str) {
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in ["generate failed", "Nothing was committed", said] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
}

#[test]
fn a_terminated_session_ends_it() {
    let rig = Rig::new();
    let server = rig.server("");
    let pgrig = at_second_segment(&rig, &rig.data(), LARGE);
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'",
    );
    assert_failed(&pgrig.end(), "57P01");
    assert_no_trace(&server, &rig);
}

/// Asserts that a crash left no table, and only small orphaned files of the transaction that it aborted. PostgreSQL
/// does not remove such files.
fn assert_little_is_left(server: &Server, rig: &Rig) {
    assert_eq!(tables(server), 0);
    let data = rig.data();
    let proof = Proof::of(server, &data, "public");
    assert!(small(&proof.orphans()));
    rig.done("fill --method direct --rows 5000");
    proof.assert_sound();
}

fn small(orphans: &[PathBuf]) -> bool {
    let bytes = |path: &PathBuf| path.metadata().unwrap().len();
    orphans.iter().all(|path| path.extension().is_none() && bytes(path) <= 1 << 20)
}

#[test]
fn a_crash_of_another_backend_ends_it() {
    let rig = Rig::new();
    let server = rig.server("");
    for options in ["", "--unlogged"] {
        let pgrig = at_second_segment(&rig, &rig.data(), &format!("{LARGE} --drop {options}"));
        rig.block_on(async {
            let client = connect(&server.url).await.unwrap();
            let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        });
        assert_failed(&pgrig.end(), "server");
        let log = rig.data().with_file_name("log");
        until_ok("the server has restarted itself", || {
            let why = |error| format!("{error}\n{}", std::fs::read_to_string(&log).unwrap_or_default());
            rig.block_on(connect(&server.url)).map(drop).map_err(why)
        });
        assert_little_is_left(&server, &rig);
        server.execute("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history");
    }
}

#[test]
fn a_killed_server_forgets_what_was_not_committed() {
    for (version, options) in [(18, ""), (13, "--unlogged")] {
        let rig = Rig::new();
        let version = format!("--pg-version {version}");
        let server = rig.server(&version);
        let pgrig = at_second_segment(&rig, &rig.data(), &format!("{LARGE} {options}"));
        kill_server(&rig);
        assert_failed(&pgrig.end(), "server");
        drop(server);
        let server = rig.server(&version);
        assert_little_is_left(&server, &rig);
    }
}

/// Records of files that are being written, or may be left.
fn records(rig: &Rig) -> usize {
    std::fs::read_dir(rig.home.path().join("direct")).map_or(0, Iterator::count)
}

fn sizes(files: &[PathBuf]) -> u64 {
    files.iter().map(|path| path.metadata().unwrap().len()).sum()
}

#[test]
fn what_pgrig_and_its_server_left_when_both_were_killed_is_removed_by_the_next_fill() {
    for (version, options) in [(18, ""), (13, "--unlogged")] {
        let rig = Rig::new();
        let version = format!("--pg-version {version}");
        let server = rig.server(&version);
        let pgrig = at_second_segment(&rig, &rig.data(), &format!("{LARGE} {options}"));
        // It cannot tidy up.
        pgrig.signal(Signal::SIGSTOP);
        kill_server(&rig);
        pgrig.signal(Signal::SIGKILL);
        drop(pgrig);
        drop(server);

        let server = rig.server(&version);
        assert_eq!(tables(&server), 0);
        let data = rig.data();
        let proof = Proof::of(&server, &data, "public");
        let left = proof.orphans();
        assert!(!left.is_empty() && records(&rig) == 1, "{left:?}");
        rig.done("fill --rows 1000 --explain");
        assert!(left.iter().all(|file| file.exists()), "a question removes nothing");
        server.execute("CREATE DATABASE other");
        let other = server.url.replace("/postgres?", "/other?");
        assert_ne!(other, server.url);
        let ran = rig.done(&format!("fill --rows 1000 -d {other} --data-directory {}", data.display()));
        assert!(ran.stderr.contains("files (") && ran.stderr.contains("removed"), "{ran:#?}");
        assert!(!left.iter().any(|file| file.exists()));
        proof.until_no_orphans();
        assert_eq!(records(&rig), 0);
        rig.done("fill --method direct --rows 5000");
        proof.assert_sound();
        assert_eq!(records(&rig), 0);
    }
}

#[test]
fn files_of_a_running_transaction_are_left_alone() {
    let rig = Rig::new();
    let server = rig.server("");
    let data = rig.data();
    let proof = Proof::of(&server, &data, "public");
    let pgrig = at_second_segment(&rig, &data, LARGE);
    let backend =
        server.number("SELECT pid::bigint FROM pg_stat_activity WHERE state = 'idle in transaction'");
    let backend = Pid::from_raw(i32::try_from(backend).unwrap());
    // The server does not notice yet that nobody is there any more.
    kill(backend, Signal::SIGSTOP).unwrap();
    pgrig.signal(Signal::SIGKILL);
    drop(pgrig);
    let there = sizes(&proof.orphans());
    assert!(there > 1 << 30, "{there}");
    let ran = rig.done("fill --rows 1000 --method copy --schema other");
    assert!(!ran.stderr.contains("removed"), "{ran:#?}");
    assert_eq!((sizes(&proof.orphans()), records(&rig)), (there, 1));
    kill(backend, Signal::SIGCONT).unwrap();
    proof.until_no_orphans();
    rig.done("fill --rows 1000 --method copy --schema other --drop");
    assert_eq!(records(&rig), 0);
}

#[test]
fn a_record_goes_with_its_server() {
    let rig = Rig::new();
    let server = rig.server("");
    let pgrig = at_second_segment(&rig, &rig.data(), LARGE);
    pgrig.signal(Signal::SIGSTOP);
    kill_server(&rig);
    pgrig.signal(Signal::SIGKILL);
    drop(pgrig);
    drop(server);
    assert_eq!(records(&rig), 1);
    rig.done("server destroy --instance default");
    let ran = rig.done("fill --rows 1000 --set shared_buffers=128MB");
    assert!(!ran.stderr.contains("when the server crashed"), "{ran:#?}");
    assert_eq!(records(&rig), 0);
}

#[test]
fn what_is_committed_outlives_the_server() {
    for version in [13, 18] {
        let rig = Rig::new();
        let version = format!("--pg-version {version} --set autovacuum=off");
        for options in [
            // The server writes such small tables to its WAL at the commit.
            "--rows 1000",
            "--rows 1000 --partitions 3 --partition-method hash",
            "--rows 50000 --data-only",
            "--rows 50000 --partitions 2",
        ] {
            let server = rig.server(&version);
            let data = rig.data();
            rig.done(&format!("fill --method copy --drop --streams 1 --schema copied {options}"));
            rig.done(&format!("fill --method direct --drop {options}"));
            kill_server(&rig);
            drop(server);
            let server = rig.server(&version);
            let proof = Proof::of(&server, &data, "public");
            proof.assert_sound();
            proof.assert_same(&Proof::of(&server, &data, "copied"));
        }
        let server = rig.server(&version);
        assert_long_rows_are_there_once(&rig, server, &version);
    }
}

/// Values that are compressed or moved out of line: killed while their pages are written, and right after the commit.
fn assert_long_rows_are_there_once(rig: &Rig, server: Server, version: &str) {
    let long = "(id int PRIMARY KEY, body text, data bytea)";
    server.execute(&format!("CREATE SCHEMA long; CREATE TABLE long.notes {long}; CREATE SCHEMA other; CREATE TABLE other.notes {long}"));
    let fill = |schema: &str, method: &str| {
        format!(
            "fill --table {schema}.notes --rows 30000 --method {method} -q --column body=text(10,9000) --column data=random(1,5000)"
        )
    };
    let data = rig.data();
    let at_toast = |server: &Server| {
        let mut pgrig = rig.spawn(&fill("long", "direct"));
        let proof = Proof::of(server, &data, "long");
        until("values are written out of line", || {
            assert!(!pgrig.has_ended(), "it ended before");
            proof
                .orphans()
                .iter()
                .any(|file| file.metadata().is_ok_and(|file| file.len() > 4 << 20))
                .then_some(())
        });
        pgrig
    };
    at_toast(&server).signal(Signal::SIGKILL);
    Proof::of(&server, &data, "long").until_no_orphans();
    let pgrig = at_toast(&server);
    kill_server(rig);
    assert_eq!(pgrig.end().code, Some(1));
    drop(server);
    let server = rig.server(version);
    assert_eq!(
        server.number("SELECT pg_table_size('long.notes')"),
        8192,
        "a B-tree's metapage, and nothing else"
    );
    rig.done(&fill("long", "direct"));
    kill_server(rig);
    drop(server);
    let server = rig.server(version);
    rig.done(&fill("other", "copy"));
    let proof = Proof::of(&server, &data, "long");
    proof.assert_sound();
    proof.assert_same_unordered(&Proof::of(&server, &data, "other"));
    // Distributions still have a pg_dump for this release; newer releases refuse older programs.
    if proof.major == 13 && require(Need::Clients) {
        server.execute("CREATE DATABASE restored");
        let restored = server.url.replace("/postgres?", "/restored?");
        let script = rig.home.path().join("dump.sql");
        let run = |program: &str, arguments: &str, url: &str| {
            let ran = Command::new(program)
                .args(arguments.split(' '))
                .arg(&script)
                .args(["-d", url])
                .output()
                .unwrap();
            assert!(ran.status.success(), "{program}: {ran:?}");
        };
        run("pg_dump", "--schema=long -f", &server.url);
        run("psql", "-Xqv ON_ERROR_STOP=1 -f", &restored);
        let sum = "SELECT sum(hashtextextended(n::text, 0))::text FROM long.notes n";
        let again: String = rig.block_on(rig.connect(&restored).query_one(sum, &[])).unwrap().get(0);
        assert_eq!(again, server.row(sum).get::<_, String>(0));
    }
}

#[test]
fn unlogged_tables_are_empty_after_a_crash_and_the_plan_said_so() {
    for version in [13, 18] {
        let rig = Rig::new();
        let version = format!("--pg-version {version}");
        let server = rig.server(&version);
        let ran = rig.done("fill --method direct --unlogged --rows 100000");
        assert!(ran.stderr.contains("a crash of the server empties unlogged tables"), "{ran:#?}");
        kill_server(&rig);
        drop(server);
        let server = rig.server(&version);
        let data = rig.data();
        assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 0);
        let proof = Proof::of(&server, &data, "public");
        proof.assert_sound();
        // The key is one that rows can be added to.
        server.execute("INSERT INTO pgbench_accounts (aid) SELECT generate_series(1, 10000)");
        proof.assert_sound();
    }
}

#[test]
fn a_full_disk_ends_it_and_everything_goes() {
    for options in ["--unlogged", "--partitions 2"] {
        let Some(rig) = Rig::on_disk(|home| testkit::Mount::ext4(home, 600)) else { return };
        let server = rig.server("--set max_wal_size=64MB --set min_wal_size=32MB");
        let data = rig.data();
        let mut pgrig =
            rig.spawn(&format!("fill --method direct --rows 200000 --fillfactor 10 --data-only {options}"));
        let is_large = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 30 << 20);
        until("something is written", || {
            assert!(!pgrig.has_ended(), "it ended before");
            files(&data).iter().any(is_large).then_some(())
        });
        // Somebody else takes all that is left, while pgrig holds still.
        pgrig.signal(Signal::SIGSTOP);
        let hog = rig.home.path().join("hog");
        fill_up(&hog);
        pgrig.signal(Signal::SIGCONT);
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        for said in ["generate failed", "No space left on device", "Free some space"] {
            assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
        }
        std::fs::remove_file(hog).unwrap();
        if options == "--unlogged" {
            assert!(ran.stderr.contains("Nothing was committed"), "{ran:#?}");
            assert_no_trace(&server, &rig);
        } else {
            assert!(ran.stderr.contains("To complete the fill, repeat the command"), "{ran:#?}");
            Proof::of(&server, &data, "public").until_no_orphans();
        }
    }
}

/// Leaves that are committed stay, and the same command makes the others.
fn assert_completed(version: u16, options: &str, kill: impl Fn(&Rig, &Running)) {
    let rig = Rig::new();
    let version = format!("--pg-version {version} --set autovacuum=off");
    let server = rig.server(&version);
    let fill = format!("fill --rows 300000 --fillfactor 20 --partitions 5 {options}");
    rig.done(&format!("{fill} --method copy --schema copied"));
    let fill = format!("{fill} --method direct --streams 1");
    let mut pgrig = rig.spawn(&fill);
    let mut ledger = Ledger::of(&rig, &server.url, LEDGER);
    until("a leaf is there", || {
        assert!(!pgrig.has_ended(), "it ended before");
        ledger.hold(1)
    });
    kill(&rig, &pgrig);
    drop(pgrig);
    ledger.release();
    drop(server);
    let server = rig.server(&version);
    let leaves = chunks_done(&rig, &server.url, LEDGER).unwrap();
    assert!(leaves < 5, "it was not over");
    let other = rig.run("fill --rows 300001 --method direct");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("unfinished fill"), "{other:#?}");

    let ran = rig.done(&fill);
    assert!(ran.stderr.contains(&format!("loaded chunks: {leaves} of 5")), "{ran:#?}");
    let data = rig.data();
    let proof = Proof::of(&server, &data, "public");
    proof.assert_sound();
    proof.assert_settled();
    assert!(small(&proof.orphans()));
    proof.assert_same(&Proof::of(&server, &data, "copied"));
}

fn kill_pgrig(_: &Rig, pgrig: &Running) {
    pgrig.signal(Signal::SIGKILL);
}

#[test]
fn leaves_by_range_are_completed_after_pgrig_was_killed() {
    assert_completed(18, "--partition-method range", kill_pgrig);
}

#[test]
fn leaves_by_hash_are_completed_after_pgrig_was_killed() {
    assert_completed(13, "--partition-method hash --unlogged", kill_pgrig);
}

#[test]
fn leaves_are_completed_after_the_server_was_killed() {
    assert_completed(18, "--partition-method hash", |rig, _| kill_server(rig));
}
