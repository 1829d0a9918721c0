//! `pgrig testdb bench` that does not come to its end, and what it leaves: nothing.

use std::fs;

use crate::support::bench::{
    SHORT, assert_forced_out, assert_nothing_left, assert_says, databases, in_memory, named, read, schema,
    suite,
};
use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use testkit::until_some as until;

/// A bench in the middle of a command that does not end; the command's process.
fn in_the_middle(rig: &Rig, arguments: &str) -> (Running, Pid) {
    let suite = suite(
        rig,
        "test \"$(psql -XqAt -c 'SHOW fsync')\" = off || exit 0; echo $$ > $HERE/pid.new; mv $HERE/pid.new $HERE/pid; \
         sleep 600; exit 1",
    );
    let pgrig = rig.spawn(&format!("testdb bench {arguments} -- {suite}"));
    let file = rig.home.path().join("pid");
    let pid = until("the command runs", || fs::read_to_string(&file).ok());
    (pgrig, Pid::from_raw(pid.trim().parse().unwrap()))
}

fn is_gone(pid: Pid) -> Option<()> {
    // A zombie has ended too: its parent has not waited for it yet.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    state.is_none_or(|state| state.contains(") Z ")).then_some(())
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_its_trial() {
    let rig = Rig::not_in_memory();
    // The second one ignores what the shell, and who is polite, would send.
    let suite = suite(
        &rig,
        "sleep 600 & echo $! >> $HERE/pids; sh -c 'trap \"\" TERM; sleep 600' & echo $! >> $HERE/pids; \
         test \"$(psql -XqAt -c 'SHOW fsync')\" = on",
    );
    // It fails in the second way.
    let ran = rig.done(&format!("testdb bench --instance default {SHORT} --variants dangerous -- {suite}"));
    assert_says(&ran, 0, &["dangerous failed, and pgrig does not try it any more: exit status: 1"]);
    let pids = fs::read_to_string(rig.home.path().join("pids")).unwrap();
    let pids: Vec<Pid> = pids.lines().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect();
    assert_eq!(pids.len(), 4);
    // SIGKILL may reach a process a little after pgrig has ended.
    for pid in pids {
        until("it has ended", || is_gone(pid));
    }
}

#[test]
fn an_interrupted_bench_ends_the_command_and_leaves_nothing() {
    for (version, signal) in [(NEWEST, Signal::SIGINT), (OLDEST, Signal::SIGTERM)] {
        let rig = Rig::not_in_memory().of_others();
        let (server, url) = named(&rig, version);
        let before = databases(&server);
        let file = rig.home.path().join("out.json");
        let (pgrig, command) = in_the_middle(
            &rig,
            &format!(
                "{SHORT} --variants dangerous --allow-dangerous-settings --seed 1 --json {} -d {url}",
                file.display()
            ),
        );
        pgrig.signal(signal);
        let ran = pgrig.end();
        assert_says(&ran, 130, &["interrupted: ", "restoring settings, dropping databases"]);
        let has_table = !ran.stdout.is_empty();
        assert_eq!(ran.stderr.contains("are above"), has_table, "{ran:#?}");
        assert_eq!(ran.stderr.contains("before the first trial that counts"), !has_table, "{ran:#?}");
        until("the command is gone", || is_gone(command));
        let document = read(&file);
        assert_eq!(document["status"], "interrupted");
        assert_eq!(databases(&server), before);
        assert_nothing_left(&rig, &server);
    }
}

#[test]
fn an_interrupted_bench_leaves_nothing_in_memory() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let ways = "--variants dangerous+tmpfs --instance default";
    let (pgrig, command) = in_the_middle(&rig, &format!("{SHORT} {ways} --from {}", schema.display()));
    assert!(in_memory(&rig).exists());
    pgrig.signal(Signal::SIGINT);
    assert_says(&pgrig.end(), 130, &["interrupted"]);
    until("the command is gone", || is_gone(command));
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_second_bench_is_told_of_the_first() {
    let rig = Rig::not_in_memory();
    let (pgrig, command) = in_the_middle(&rig, &format!("{SHORT} --variants dangerous+tmpfs"));
    let pid = pgrig.pid();
    let ran = rig.run(&format!("testdb bench {SHORT} -- true"));
    assert_eq!(
        (ran.code, ran.stderr),
        (
            Some(2),
            format!(
                "error: another bench (pgrig process {pid}) is running: wait until it ends, or give --instance OTHER\n"
            )
        )
    );
    // There is one server in memory.
    let ran = rig.run(&format!("testdb bench {SHORT} --instance default --variants tmpfs -- true"));
    assert_says(&ran, 2, &[&format!("another bench (pgrig process {pid}) has its server in memory")]);
    assert!(!ran.stderr.contains("left"), "{ran:#?}");
    pgrig.signal(Signal::SIGINT);
    assert_says(&pgrig.end(), 130, &["interrupted"]);
    until("the command is gone", || is_gone(command));
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
    rig.done("server destroy --instance testdb-bench");
}

#[test]
fn after_a_kill_the_next_bench_tidies_up_a_named_server() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::not_in_memory().of_others();
        let (server, url) = named(&rig, &format!("{version} --set log_statement=all"));
        // Somebody else's, whatever they are called.
        server.execute("CREATE ROLE other");
        server.execute("CREATE DATABASE pgrig_testdb_bench_0123456789abcdef OWNER other");
        server.execute("CREATE DATABASE pgrig_testdb_bench_fedcba9876543210");
        server.execute("COMMENT ON DATABASE pgrig_testdb_bench_fedcba9876543210 IS 'mine'");
        server.execute("CREATE DATABASE pgrig_testdb_bench_0000000000000000");
        let before = databases(&server);
        let danger = format!("{SHORT} --variants dangerous --allow-dangerous-settings -d {url}");
        let (pgrig, command) = in_the_middle(&rig, &danger);
        pgrig.signal(Signal::SIGKILL);
        pgrig.end();
        assert_eq!(server.row("SHOW fsync").get::<_, String>(0), "off");
        assert!(databases(&server).len() >= before.len() + 2);
        let ran = rig.done(&format!("testdb bench {SHORT} --variants normal -d {url} -- true"));
        assert_says(&ran, 0, &["and did not restore it", "fsync = on"]);
        assert_eq!(databases(&server), before);
        assert_forced_out(&rig, 1);
        killpg(command, Signal::SIGKILL).unwrap();
        server.execute("DROP DATABASE pgrig_testdb_bench_0123456789abcdef");
        server.execute("DROP DATABASE pgrig_testdb_bench_fedcba9876543210");
        server.execute("DROP DATABASE pgrig_testdb_bench_0000000000000000");
        assert_nothing_left(&rig, &server);
    }
}

/// A bench that gets this signal while the server makes its first database, which it does to the end.
fn ended_at_the_beginning(rig: &Rig, server: &Server<'_>, url: &str, signal: Signal) -> Ran {
    let client = rig.connect(&server.url);
    rig.block_on(client.batch_execute("BEGIN; LOCK TABLE pg_database IN SHARE MODE")).unwrap();
    let pgrig = rig.spawn(&format!("testdb bench {SHORT} --variants normal -d {url} -- true"));
    let makers =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE DATABASE \"pgrig_testdb_bench%'";
    until("the server is at it", || {
        (server.number(&format!("{makers} AND wait_event_type = 'Lock'")) == 1).then_some(())
    });
    pgrig.signal(signal);
    if signal == Signal::SIGKILL {
        let ran = pgrig.end();
        rig.block_on(client.batch_execute("COMMIT")).unwrap();
        until("the server is done", || (server.number(makers) == 0).then_some(()));
        return ran;
    }
    rig.block_on(client.batch_execute("COMMIT")).unwrap();
    pgrig.end()
}

#[test]
fn a_bench_that_is_interrupted_at_its_beginning_leaves_nothing() {
    for (version, signal) in [(NEWEST, Signal::SIGINT), (OLDEST, Signal::SIGTERM)] {
        let rig = Rig::not_in_memory().of_others();
        let (server, url) = named(&rig, version);
        let before = databases(&server);
        let ran = ended_at_the_beginning(&rig, &server, &url, signal);
        assert_says(&ran, 130, &["interrupted before the first trial that counts"]);
        assert_eq!(databases(&server), before);
        assert_nothing_left(&rig, &server);
    }
}

#[test]
fn sessions_that_the_role_may_not_end_do_not_keep_it_from_tidying_up() {
    let rig = Rig::not_in_memory().of_others();
    let server = rig.server("");
    server.execute("CREATE ROLE plain LOGIN CREATEDB");
    let schema = schema(&rig);
    // A superuser in the bench's first database, who outlives the trial.
    let suite = suite(
        &rig,
        "first=${PGDATABASE%_1}; setsid psql -Xq -U postgres -d $first -c 'SELECT pg_sleep(600)' > $HERE/log 2>&1 & \
         until psql -XqAt -d postgres -c \"SELECT usename FROM pg_stat_activity WHERE datname = '${PGDATABASE%_1}'\" | \
         grep -q postgres; do sleep 0.1; done",
    );
    let url = server.url.replace("postgres@", "plain@");
    let arguments = format!("{SHORT} --variants normal --from {} -d {url}", schema.display());
    let ran = rig.run(&format!("testdb bench {arguments} -- {suite}"));
    assert_says(&ran, 1, &["could not restore everything"]);
    let left: Vec<String> =
        databases(&server).into_iter().filter(|name| name.starts_with("pgrig_testdb")).collect();
    assert!(left.len() == 1 && left[0].matches('_').count() == 3, "{left:?}");
    server.execute(&format!("DROP DATABASE {} WITH (FORCE)", left[0]));
    assert_nothing_left(&rig, &server);
}

#[test]
fn what_a_bench_left_that_was_killed_at_its_beginning_is_dropped_by_the_next() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::not_in_memory().of_others();
        let (server, url) = named(&rig, version);
        let before = databases(&server);
        ended_at_the_beginning(&rig, &server, &url, Signal::SIGKILL);
        // It has no comment yet.
        assert_eq!(databases(&server).len(), before.len() + 1);
        rig.done(&format!("testdb bench {SHORT} --variants normal -d {url} -- true"));
        assert_eq!(databases(&server), before);
        assert_nothing_left(&rig, &server);
    }
}

#[test]
fn after_a_kill_the_next_bench_tidies_up_in_memory() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let arguments = format!("{SHORT} --instance default --from {}", schema.display());
    let (pgrig, command) = in_the_middle(&rig, &format!("{arguments} --variants dangerous+tmpfs"));
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    assert!(in_memory(&rig).exists());
    rig.done(&format!("testdb bench {arguments} --variants normal -- true"));
    killpg(command, Signal::SIGKILL).unwrap();
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
}
