//! Ends in the middle of crash recovery, and crashes of a server's child processes.

use crate::support::{Other, Rig, exists, kill, named, sql, stock, versioned};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use pgserver::{Error, Instance, InstanceState, Lifetime, Spec};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::until;

/// A recovery that is held in the middle of its redo, as a slow disk would.
struct Held {
    starter: Other,
    server: u32,
    startup: u32,
}

impl Held {
    fn release(&self) {
        signal(self.startup, Signal::SIGCONT);
    }
}

const ROWS: &str = "400000";

/// Leaves about 100 MB of WAL to recover from.
fn crashed(rig: &Rig, spec: &Spec) {
    let running = rig.start(Spec { profile: stock().profile, ..spec.clone() });
    let connection = running.connection();
    sql(connection, "CREATE TABLE t (a int, b text)");
    sql(connection, "CREATE INDEX ON t (b)");
    sql(connection, &format!("INSERT INTO t SELECT a, md5(a::text) FROM generate_series(1, {ROWS}) a"));
    kill(running.server_pid());
    assert!(matches!(running.stop(), Err(Error::Died { .. })));
}

/// Another process starts the server; its recovery is held.
fn held(rig: &Rig, spec: &Spec, does: &str) -> Held {
    let starter = rig.process(does, spec);
    let instance = rig.instance(spec.clone());
    let data = data(rig, spec);
    let mut found = None;
    until("redo is under way", || {
        let InstanceState::Running(server) = instance.status().unwrap().state else {
            return false;
        };
        found = child(server.pid, "startup recovering").map(|startup| (server.pid, startup));
        let Some((_, startup)) = found.filter(|_| in_crash_recovery(&data)) else {
            return false;
        };
        signal(startup, Signal::SIGSTOP);
        true
    });
    let (server, startup) = found.unwrap();
    Held { starter, server, startup }
}

/// Whether pg_control says that the server is in crash recovery. The process title says so a little too early.
fn in_crash_recovery(data: &Path) -> bool {
    fs::read(data.join("global/pg_control")).is_ok_and(|bytes| bytes[16..20] == 4_i32.to_ne_bytes())
}

fn data(rig: &Rig, spec: &Spec) -> std::path::PathBuf {
    rig.home.server_root().join("instances").join(&spec.name).join("data")
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn of_proc(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// The server's child with these words in its title.
fn child(server: u32, title: &str) -> Option<u32> {
    // proc(5): name in parentheses, state, parent.
    let parent = |pid| Some(of_proc(pid, "stat").rsplit_once(") ")?.1.split(' ').nth(1)?.parse());
    processes().find(|pid| of_proc(*pid, "cmdline").contains(title) && parent(*pid) == Some(Ok(server)))
}

/// As far as they can be seen: the postmaster always.
fn processes_on(data: &Path) -> usize {
    let works_in = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data);
    let names = |pid: &u32| of_proc(*pid, "cmdline").split('\0').any(|word| Path::new(word) == data);
    processes().filter(|pid| works_in(pid) || names(pid)).count()
}

fn signal(pid: u32, signal: Signal) {
    send(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// Kills the background writer: to PostgreSQL a crash like any other.
fn crash(server: u32) {
    let mut found = None;
    until("it has a background writer", || {
        found = child(server, "background writer");
        found.is_some()
    });
    kill(found.unwrap());
}

fn recovers(rig: &Rig, spec: &Spec) {
    let running = rig.start(spec.clone());
    assert_eq!(sql(running.connection(), "SELECT count(*) FROM t"), ROWS);
    running.stop().unwrap();
}

fn an_owner_killed_during_recovery_leaves_no_server(major: u16) {
    let rig = Rig::new();
    let spec = versioned(major);
    crashed(&rig, &spec);
    let mut held = held(&rig, &spec, "owned");
    held.starter.kill();
    held.release();
    until("no process is left", || processes_on(&data(&rig, &spec)) == 0);
    recovers(&rig, &spec);
}

#[test]
fn an_owner_killed_during_recovery_leaves_no_server_13() {
    an_owner_killed_during_recovery_leaves_no_server(13);
}

#[test]
fn an_owner_killed_during_recovery_leaves_no_server_18() {
    an_owner_killed_during_recovery_leaves_no_server(18);
}

fn a_stop_during_recovery_is_prompt(major: u16) {
    let rig = Rig::new();
    let spec = versioned(major);
    crashed(&rig, &spec);
    let mut held = held(&rig, &spec, "detached");
    // It would be waited for.
    held.starter.kill();
    assert!(exists(held.server));
    let begin = Instant::now();
    // Its recovery does not go on: the postmaster must end it, after 5 s with SIGKILL.
    assert!(rig.instance(spec.clone()).stop(&|_| ()).unwrap());
    assert!(begin.elapsed() < Duration::from_secs(45), "{:?}", begin.elapsed());
    assert_eq!(processes_on(&data(&rig, &spec)), 0);
    recovers(&rig, &spec);
}

#[test]
fn a_stop_during_recovery_is_prompt_13() {
    a_stop_during_recovery_is_prompt(13);
}

#[test]
fn a_stop_during_recovery_is_prompt_18() {
    a_stop_during_recovery_is_prompt(18);
}

#[test]
fn a_recovering_server_whose_starter_was_killed_is_waited_for() {
    let rig = Rig::new();
    let spec = versioned(18);
    crashed(&rig, &spec);
    let mut held = held(&rig, &spec, "detached");
    held.starter.kill();
    let mut other = rig.process("detached", &spec);
    other.until_event("waiting for crash recovery");
    held.release();
    assert_eq!(other.ready(), held.server);
    let running = rig.start(spec.clone());
    assert!(running.leaves_running());
    assert_eq!(sql(running.connection(), "SELECT count(*) FROM t"), ROWS);
    assert!(rig.instance(spec).stop(&|_| ()).unwrap());
}

/// Those of 15 to 18 would restart, and a SIGINT meanwhile would leave them there for ever.
#[test]
fn an_owned_server_ends_with_a_crash() {
    for major in [13, 18] {
        let rig = Rig::new();
        let spec = versioned(major);
        let mut running = rig.start(spec.clone());
        sql(running.connection(), "CREATE TABLE t AS SELECT 42 AS answer");
        crash(running.server_pid());
        until("it has ended", || !running.is_alive());
        let message = running.stop().unwrap_err().to_string();
        assert!(message.contains("was terminated by signal 9"), "{message}");
        let mut owner = rig.process("owned", &spec);
        let server = owner.ready();
        crash(server);
        owner.kill();
        until("no process is left", || processes_on(&data(&rig, &spec)) == 0);
        let running = rig.start(spec);
        assert_eq!(sql(running.connection(), "SELECT answer FROM t"), "42");
    }
}

#[test]
fn a_detached_server_restarts_after_a_crash() {
    let rig = Rig::new();
    let spec = Spec { set: crate::support::small(), ..named("shared") };
    let running = rig.start_detached(spec.clone());
    let url = running.connection().url();
    let started =
        || crate::support::try_sql(&url, "SELECT pg_postmaster_start_time() FROM pg_stat_activity LIMIT 1");
    started().unwrap();
    crash(running.server_pid());
    until("it is back", || started().is_ok());
    assert_eq!(lifetime(&rig.instance(spec.clone())), Lifetime::Detached);
    assert!(rig.instance(spec).stop(&|_| ()).unwrap());
}

fn lifetime(instance: &Instance) -> Lifetime {
    match instance.status().unwrap().state {
        InstanceState::Running(server) => server.lifetime,
        other => panic!("{other:?}"),
    }
}

/// As a crash leaves it that comes while CREATE UNLOGGED TABLE is rolled back: the init fork is gone, and WAL
/// makes it again.
#[test]
fn an_empty_file_that_recovery_does_not_expect_is_removed() {
    for major in [13, 18] {
        let rig = Rig::new();
        let spec = versioned(major);
        let running = rig.start(Spec { profile: stock().profile, ..spec.clone() });
        let file =
            sql(running.connection(), "CREATE UNLOGGED TABLE u (a int); SELECT pg_relation_filepath('u')");
        kill(running.server_pid());
        assert!(matches!(running.stop(), Err(Error::Died { .. })));
        let path = data(&rig, &spec).join(file);
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        fs::remove_file(format!("{}_init", path.display())).unwrap();
        let running = rig.start(spec.clone());
        assert_eq!(sql(running.connection(), "SELECT count(*) FROM u"), "0");
        let log = fs::read_to_string(data(&rig, &spec).join("../log")).unwrap();
        assert!(log.contains(": File exists"), "the server did not run into it: {log}");
        running.stop().unwrap();
    }
}
