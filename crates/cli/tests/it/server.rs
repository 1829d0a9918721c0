//! `pgrig server` as its users see it.

use std::fs::{self, File};
use std::path::Path;

use crate::support::Rig;
use testkit::until_some as until;

#[test]
fn a_server_is_started_used_stopped_and_destroyed() {
    let rig = Rig::new();
    let none = rig.done("server status");
    assert!(none.stderr.contains("no instance yet"), "{none:#?}");

    rig.done("fill 5MB --set shared_buffers=64MB");
    assert_eq!(rig.status()["state"], "stopped", "a verb leaves the server as it found it");

    let server = rig.server("");
    assert_eq!(rig.status()["state"], "running");
    assert!(server.number("SELECT count(*) FROM pgbench_accounts") > 0, "data persists between commands");
    rig.done("fill 5MB --drop");
    rig.done(&format!("fill 5MB --drop -d {}", server.url));
    assert_eq!(rig.status()["state"], "running", "a verb leaves the server as it found it");
    assert!(rig.done("server logs").stdout.contains("database system is ready"));

    rig.done("server stop");
    assert_eq!(rig.status()["state"], "stopped");
    // `psql "$(pgrig server url)"` must fail there, not reach whatever an empty string means.
    let url = rig.run("server url");
    assert_eq!(url.code, Some(2), "{url:#?}");
    assert!(url.stderr.contains("server start"), "{url:#?}");
    assert_eq!(url.stdout.trim(), server.url);
    rig.done("server destroy");
    assert_eq!(rig.status()["state"], "not-created");
}

#[test]
fn dangerous_settings_are_announced_and_in_force() {
    let rig = Rig::new();
    let started = rig.done("server start --profile dangerous --set shared_buffers=64MB");
    assert!(started.stderr.contains("DANGEROUS"), "{started:#?}");
    let url = started.stdout.trim();
    let client = rig.connect(url);
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let row = rig.block_on(client.query_one(&format!("SHOW {name}"), &[])).unwrap();
        assert_eq!(row.get::<_, String>(0), "off", "{name}");
    }
}

#[test]
fn durability_taken_away_by_a_setting_is_announced_and_shown() {
    let rig = Rig::new();
    let started = rig.done("server start --set fsync=off --set shared_buffers=64MB");
    assert!(started.stderr.contains("DANGEROUS: off are fsync."), "{started:#?}");
    let status = rig.done("server status");
    assert!(status.stdout.contains("bulk fsync=off"), "{status:#?}");
}

#[test]
fn a_broken_instance_does_not_hide_the_others() {
    let rig = Rig::new();
    rig.done("fill 5MB --set shared_buffers=64MB");
    rig.done("fill 5MB --instance other --set shared_buffers=64MB");
    std::fs::write(rig.home.path().join("instances/other/instance.json"), "{").unwrap();
    let status = rig.done("server status");
    assert!(status.stdout.contains("default"), "{status:#?}");
    assert!(status.stderr.contains("other"), "{status:#?}");
}

#[test]
fn a_setting_that_is_not_in_force_is_an_error() {
    let rig = Rig::new();
    let server = rig.server("--set work_mem=8MB");
    server.execute("ALTER SYSTEM SET work_mem = '32MB'");
    server.execute("SELECT pg_reload_conf()");
    let ran = testkit::until_some("the reload is seen", || {
        let ran = rig.run("fill 5MB --explain");
        (ran.code != Some(0)).then_some(ran)
    });
    assert!(ran.stderr.contains("work_mem is 32MB, not 8MB"), "{ran:#?}");
    assert!(ran.stderr.contains("ALTER SYSTEM RESET work_mem"), "{ran:#?}");
}

#[test]
fn two_instances_run_beside_each_other() {
    let rig = Rig::new();
    rig.done("server start --instance one --set shared_buffers=64MB --tcp");
    rig.done("server start --instance two --pg-version 13 --set shared_buffers=64MB --profile stock");
    let (one, two) =
        (rig.done("server url --instance one").stdout, rig.done("server url --instance two").stdout);
    assert!(one.contains("@127.0.0.1:"), "--tcp was asked for: {one}");
    for (url, version) in [(one, "18"), (two, "13")] {
        let client = rig.connect(url.trim());
        let row = rig.block_on(client.query_one("SHOW server_version", &[])).unwrap();
        assert!(row.get::<_, String>(0).starts_with(version), "{url}");
    }
    rig.done("server destroy --instance one");
    rig.done("server destroy --instance two");
}

/// Whoever holds a lock is named, and not waited for without a word.
#[test]
fn a_lock_that_is_waited_for_names_its_holder() {
    let rig = Rig::new();
    rig.server("");
    rig.done("server stop");
    rig.done("testdb list");
    rig.done("testdb drop --all");
    let own = format!("process {} (", std::process::id());
    let keeper = fs::read_dir(rig.home.path().join("testdb")).unwrap().next().unwrap().unwrap().path();
    let instance = rig.status()["directory"].as_str().unwrap().to_owned();
    for (lock, arguments) in [
        (Path::new(&instance).join("in-use.lock"), "server start"),
        (keeper.join("lock"), "testdb list"),
        (keeper.join("lock"), "testdb new --for 1h --format url"),
    ] {
        let held = File::open(&lock).unwrap();
        held.lock().unwrap();
        let log = rig.home.path().join("log");
        let pgrig = rig.spawn_telling(arguments, &log);
        until("the holder is named", || fs::read_to_string(&log).unwrap().contains(&own).then_some(()));
        drop(held);
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(0), "{arguments}: {ran:#?}");
    }
    rig.done("testdb drop --all");
}
