//! Killed processes, left-over files, wrong settings.

use crate::support::{Rig, exists, kill, named, sql, stock, versioned};
use nix::unistd::{Pid, getpgid, getsid};
use pgserver::{Error, Event, InstanceState, Spec};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testkit::until;

/// Starts and returns what was recovered.
fn recoveries(rig: &Rig, spec: Spec) -> (pgserver::Running, String) {
    let told = RefCell::new(String::new());
    let events = |event: Event| {
        if let Event::Recovering(what) = event {
            *told.borrow_mut() += &(what + "\n");
        }
    };
    let running = rig.instance(spec).attach_or_start(&events).unwrap();
    (running, told.into_inner())
}

#[test]
fn concurrent_first_starts() {
    let mut rig = Rig::new();
    // An empty cache: this is about fetching.
    rig.cache = rig.home.server_root().join("postgresql");
    let mut others: Vec<_> = ["same", "same", "same", "own1", "own2"]
        .iter()
        .map(|name| rig.process("detached", &named(name)))
        .collect();
    let pids: Vec<u32> = others.iter_mut().map(crate::support::Other::ready).collect();
    assert!(pids[0] == pids[1] && pids[1] == pids[2] && pids[3] != pids[4], "{pids:?}");
    let events: Vec<&String> = others.iter().flat_map(|other| &other.events).collect();
    let count = |word| events.iter().filter(|event| event.starts_with(word)).count();
    let counts = ["fetching", "unpacking", "initialising"].map(count);
    assert_eq!(counts, [1, 1, 3], "{events:?}");
}

#[test]
fn a_killed_owner_leaves_no_server() {
    let rig = Rig::new();
    for major in [13, 18] {
        let name = format!("v{major}");
        let spec = Spec { name, ..versioned(major) };
        let mut owner = rig.process("owned", &spec);
        let pid = owner.ready();
        let url = rig.instance(spec.clone()).connection().unwrap().url();
        crate::support::try_sql(&url, "CREATE TABLE t AS SELECT 42 AS answer").unwrap();
        owner.kill();
        // At once, while the server may still be stopping.
        let running = rig.start(spec.clone());
        assert!(!exists(pid));
        assert_eq!(sql(running.connection(), "SELECT answer FROM t"), "42");
        running.stop().unwrap();
        let mut owner = rig.process("owned", &spec);
        let pid = owner.ready();
        owner.kill();
        until("the server of a killed owner ends", || !exists(pid));
    }
}

#[test]
fn a_pgrig_killed_in_its_first_start() {
    for (does, word) in [
        ("owned", "initialising"),
        ("owned", "starting"),
        ("detached", "initialising"),
        ("detached", "starting"),
    ] {
        let rig = Rig::new();
        let mut owner = rig.process(does, &Spec::default());
        owner.until_event(word);
        owner.kill();
        if does == "owned" {
            let home = rig.home.server_root();
            until("its processes end", || processes_in(home).is_empty());
        }
        let running = rig.start(versioned(18));
        sql(running.connection(), "SELECT 1");
        let names = fs::read_dir(running.data_dir().parent().unwrap()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!names.iter().any(|name| name.to_str().unwrap().starts_with(".initdb")), "{names:?}");
    }
}

/// Command lines that name this directory.
fn processes_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|command| command.contains(dir.to_str().unwrap()))
        .collect()
}

/// Linux ties the parent-death signal to the thread, not to the process.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let rig = Rig::new();
    let running = std::thread::scope(|scope| scope.spawn(|| rig.start(stock())).join().unwrap());
    assert_eq!(sql(running.connection(), "SELECT 1"), "1");
    // A terminal's Ctrl-C goes to its foreground process group, its hang-up to the session.
    let server = Some(Pid::from_raw(i32::try_from(running.server_pid()).unwrap()));
    assert_ne!(getpgid(server).unwrap(), getpgid(None).unwrap());
    assert_ne!(getsid(server).unwrap(), getsid(None).unwrap());
}

#[test]
fn a_killed_server_is_reported_and_recovered() {
    for major in [13, 18] {
        let rig = Rig::new();
        let mut running = rig.start(versioned(major));
        sql(running.connection(), "CREATE TABLE t AS SELECT 42 AS answer");
        assert!(running.is_alive());
        let pid = running.server_pid();
        kill(pid);
        until("it is seen dead", || !running.is_alive());
        let error = running.stop().unwrap_err();
        assert!(matches!(error, Error::Died { .. }), "{error}");
        let (running, _) = recoveries(&rig, versioned(major));
        assert_eq!(sql(running.connection(), "SELECT answer FROM t"), "42");
    }
}

/// A busy backend does not notice that its postmaster is gone.
#[test]
fn a_busy_backend_of_a_killed_server_is_ended() {
    let rig = Rig::new();
    let running = rig.start(versioned(18));
    let url = running.connection().url();
    let count = "SELECT count(*) FROM generate_series(1::int8, 1000000000000)";
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| crate::support::try_sql(&url, count));
        let active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%count(*) FROM gen%'";
        until("it is busy", || sql(running.connection(), active) == "2");
        kill(running.server_pid());
        let error = running.stop().unwrap_err();
        assert!(matches!(error, Error::Died { .. }), "{error}");
        assert!(busy.join().unwrap().is_err());
    });
    rig.start(versioned(18)).stop().unwrap();
}

#[test]
fn a_server_started_by_hand_is_left_alone() {
    let rig = Rig::new();
    let running = rig.start(versioned(18));
    let data = running.data_dir();
    let postgres = fs::read_link(format!("/proc/{}/exe", running.server_pid())).unwrap();
    running.stop().unwrap();
    let mut by_hand = Command::new(postgres);
    by_hand.arg("-D").arg(&data).current_dir("/");
    as_owner_of(&data, &mut by_hand);
    let mut by_hand = by_hand.spawn().unwrap();
    let instance = rig.instance(Spec::default());
    let ready = || matches!(instance.status().unwrap().state, InstanceState::Running(s) if s.ready);
    until("it is up", ready);
    let running = instance.attach_or_start(&|_| ()).unwrap();
    assert!(running.leaves_running());
    assert_eq!(running.server_pid(), by_hand.id());
    sql(running.connection(), "SELECT 1");
    running.stop().unwrap();
    assert_eq!(by_hand.try_wait().unwrap(), None);
    assert!(instance.stop(&|_| ()).unwrap());
    assert!(by_hand.wait().unwrap().success());
}

fn as_owner_of(path: &Path, command: &mut Command) {
    if nix::unistd::Uid::effective().is_root() {
        command.uid(fs::metadata(path).unwrap().uid());
    }
}

#[test]
fn a_port_that_is_taken_meanwhile() {
    let rig = Rig::new();
    let spec = Spec { tcp: Some(true), ..versioned(18) };
    let instance = rig.instance(spec);
    let port = || instance.start_detached(&|_| ()).unwrap().connection().port;
    let first = port();
    instance.stop(&|_| ()).unwrap();
    assert_eq!(port(), first);
    instance.stop(&|_| ()).unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", first)).unwrap();
    assert_ne!(port(), first);
}

#[test]
fn a_stale_pid_file_of_a_dead_process() {
    let rig = Rig::new();
    let pid = {
        let mut starter = rig.process("detached", &Spec::default());
        let pid = starter.ready();
        starter.finish();
        pid
    };
    kill(pid);
    until("it is dead", || !exists(pid));
    let (running, told) = recoveries(&rig, versioned(18));
    assert!(told.contains(&format!("postmaster.pid names process {pid}, which has ended")), "{told}");
    assert!(!running.leaves_running());
}

#[test]
fn a_stale_pid_file_of_a_living_process() {
    let rig = Rig::new();
    rig.start(stock()).stop().unwrap();
    let data = rig.home.server_root().join("instances/default/data");
    // PostgreSQL itself would be afraid of it: it lives, and belongs to the same account.
    let mut sleeper = Command::new("sleep");
    as_owner_of(&data, &mut sleeper);
    let mut sleeper = sleeper.arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let text = format!("{pid}\n{}\n1700000000\n5432\n", data.display());
    fs::write(data.join("postmaster.pid"), text).unwrap();
    let (running, told) = recoveries(&rig, stock());
    assert!(told.contains(&format!("names process {pid}, which is not a server")), "{told}");
    assert_eq!(sql(running.connection(), "SELECT 1"), "1");
    assert!(exists(pid));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn an_owned_instance_is_refused_to_others() {
    let rig = Rig::new();
    let mut owner = rig.process("owned", &Spec::default());
    let server = owner.ready();
    let instance = rig.instance(Spec::default());
    let pid = owner.pid();
    for error in [
        instance.attach_or_start(&|_| ()).unwrap_err(),
        instance.start_detached(&|_| ()).unwrap_err(),
        instance.stop(&|_| ()).unwrap_err(),
        instance.destroy(&|_| ()).unwrap_err(),
    ] {
        let message = error.to_string();
        for words in [&format!("process {pid} uses"), "--instance OTHER", "server start"] {
            assert!(message.contains(words), "{message}");
        }
    }
    assert!(exists(server));
    owner.finish();
    assert!(!exists(server));
    rig.start(versioned(18)).stop().unwrap();
}

#[test]
fn a_bad_setting_is_named() {
    for major in [13, 18] {
        let rig = Rig::new();
        rig.start(versioned(major)).stop().unwrap();
        for (name, value) in [
            ("wurk_mem", "1MB"),
            ("work_mem", "a lot"),
            ("shared_buffers", "1kB"),
            ("max_wal_senders", "3"),
            ("shared_preload_libraries", "no_such_library"),
        ] {
            let spec = Spec { set: vec![(name.to_owned(), value.to_owned())], ..versioned(major) };
            let error = rig.instance(spec).attach_or_start(&|_| ()).unwrap_err();
            let message = error.to_string();
            let named = [name, "no_such_library"].iter().any(|word| message.contains(word));
            assert!(named && message.contains("--set"), "{message}");
        }
        rig.start(versioned(major)).stop().unwrap();
    }
}

#[test]
fn a_damaged_record_is_named() {
    let rig = Rig::new();
    rig.start(stock()).stop().unwrap();
    let path = rig.home.server_root().join("instances/default/instance.json");
    fs::write(&path, "{").unwrap();
    let error = rig.instance(stock()).attach_or_start(&|_| ()).unwrap_err();
    assert!(error.to_string().contains("instance.json"), "{error}");
    fs::remove_file(&path).unwrap();
    rig.start(stock()).stop().unwrap();
}
