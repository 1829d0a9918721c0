//! Start, use, stop, find again: real servers of the newest and the oldest version.

use crate::support::{Rig, named, small, sql, stock, try_sql, versioned};
use failure::Classified;
use pgserver::{Binaries, Error, Instance, InstanceState, Lifetime, Profile, Spec};
use testkit::{Need, require};
use tokio_postgres::error::SqlState;

fn data_persists(major: u16) {
    let rig = Rig::new();
    let running = rig.start(versioned(major));
    assert_eq!(running.version().major(), major);
    assert!(!running.leaves_running());
    let connection = running.connection();
    sql(connection, "CREATE TABLE t AS SELECT 42 AS answer");
    // initdb's choices.
    assert_eq!(sql(connection, "SHOW server_encoding"), "UTF8");
    let collate = "SELECT DISTINCT datcollate FROM pg_database";
    assert_eq!(sql(connection, collate), "C");
    let pid = running.server_pid();
    running.stop().unwrap();
    assert!(!crate::support::exists(pid));
    // Nobody says which version now.
    let running = rig.start(Spec::default());
    assert_eq!(running.version().major(), major);
    assert_eq!(sql(running.connection(), "SELECT answer FROM t"), "42");
    drop(running);
    assert!(matches!(rig.instance(Spec::default()).status().unwrap().state, InstanceState::Stopped { .. }));
}

#[test]
fn data_persists_18() {
    data_persists(18);
}

#[test]
fn data_persists_13() {
    data_persists(13);
}

fn settings_hold(major: u16) {
    let rig = Rig::new();
    for profile in [Profile::Stock, Profile::Bulk, Profile::Dangerous] {
        let mut spec = versioned(major);
        spec.profile = Some(profile);
        spec.set.push(("work_mem".to_owned(), "12345kB".to_owned()));
        // Any text must arrive as it is.
        spec.set.push(("cluster_name".to_owned(), r"it's a \".to_owned()));
        let running = rig.start(spec);
        for (name, value) in running.settings() {
            assert_eq!(&sql(running.connection(), &format!("SHOW {name}")), value);
        }
        let durable = if profile == Profile::Dangerous { "off" } else { "on" };
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(sql(running.connection(), &format!("SHOW {name}")), durable);
        }
        let wal_level = if profile == Profile::Stock { "replica" } else { "minimal" };
        assert_eq!(sql(running.connection(), "SHOW wal_level"), wal_level);
        let command = format!("/proc/{}/cmdline", running.server_pid());
        if let Ok(command) = std::fs::read_to_string(command) {
            let words: Vec<&str> = command.split('\0').filter(|w| !w.is_empty()).collect();
            let data = running.data_dir();
            assert_eq!(words[1..], ["-D", data.to_str().unwrap()], "no -F, no -c");
        }
        running.stop().unwrap();
    }
}

#[test]
fn settings_hold_18() {
    settings_hold(18);
}

#[test]
fn settings_hold_13() {
    settings_hold(13);
}

#[test]
fn alter_system_overrides_ours() {
    let rig = Rig::new();
    let running = rig.start(versioned(18));
    sql(running.connection(), "ALTER SYSTEM SET shared_buffers = '24MB'");
    running.stop().unwrap();
    let running = rig.start(versioned(18));
    assert_eq!(sql(running.connection(), "SHOW shared_buffers"), "24MB");
}

#[test]
fn only_a_detached_start_is_remembered() {
    let rig = Rig::new();
    let work_mem = |value: &str| Spec { set: vec![("work_mem".to_owned(), value.to_owned())], ..stock() };
    let shows = |running: &pgserver::Running| sql(running.connection(), "SHOW work_mem");
    let mut dangerous = versioned(18);
    dangerous.profile = Some(Profile::Dangerous);
    rig.start(dangerous).stop().unwrap();
    let running = rig.start(Spec::default());
    assert_eq!((running.profile(), shows(&running).as_str()), (Profile::Bulk, "4MB"));
    running.stop().unwrap();
    for value in ["5MB", "6MB"] {
        rig.start_detached(work_mem(value));
        assert!(rig.instance(stock()).stop(&|_| ()).unwrap());
        let running = rig.start(Spec::default());
        assert_eq!((running.profile(), shows(&running).as_str()), (Profile::Stock, value));
    }
}

#[test]
fn only_an_option_that_was_given_can_be_left_out() {
    let rig = Rig::new();
    rig.start_detached(stock());
    let refused = |defaults: &[&'static str]| {
        let asked =
            Spec { profile: Some(Profile::Dangerous), defaults: defaults.to_vec(), ..Spec::default() };
        rig.instance(asked).check_running().unwrap_err().to_string()
    };
    let told = "instance default runs with profile stock, not with profile dangerous; stop it first (pgrig server stop \
                --instance default), or";
    let again =
        ". So that several commands can use it, start it again with pgrig server start --profile dangerous";
    assert_eq!(refused(&[]), format!("{told} leave out the option{again}"));
    assert_eq!(refused(&["wal_level"]), format!("{told} leave out the option{again}"));
    assert_eq!(refused(&["profile"]), format!("{told} use another instance (--instance OTHER){again}"));
    // A name that the server does not know is noticed before anybody stops the server for it.
    let set = |name: &str| {
        let spec = Spec { set: vec![(name.to_owned(), "5MB".to_owned())], ..stock() };
        rig.instance(spec).check_running().unwrap_err()
    };
    for name in ["Work_Mem", "zero_damaged_pages", "data_checksums", "auto_explain.log_min_duration"] {
        assert!(set(name).to_string().contains("stop it first"), "{name}: {}", set(name));
    }
    let misspelt = set("wurk_mem");
    assert!(misspelt.is_usage(), "{misspelt}");
    assert_eq!(
        misspelt.to_string(),
        "setting \"wurk_mem\": the server has no setting of this name; give --set name=value, with a name as in pg_settings"
    );
    assert!(rig.instance(stock()).stop(&|_| ()).unwrap());
}

#[test]
fn tcp_on_demand_with_a_password() {
    let rig = Rig::new();
    let running = rig.start(stock());
    assert_eq!(sql(running.connection(), "SHOW listen_addresses"), "");
    assert_eq!(running.connection().tcp_url(), None);
    running.stop().unwrap();
    for major in [13, 18] {
        let spec = Spec { name: format!("tcp{major}"), tcp: Some(true), ..versioned(major) };
        let running = rig.start(spec);
        let url = running.connection().tcp_url().unwrap();
        let query = "SELECT host(inet_server_addr())";
        assert_eq!(try_sql(&url, query).unwrap(), "127.0.0.1");
        let password = &running.connection().tcp.as_ref().unwrap().password;
        assert_eq!(password.len(), 48);
        let wrong = try_sql(&url.replace(password.as_str(), "guess"), query);
        assert_eq!(wrong.unwrap_err().code(), Some(&SqlState::INVALID_PASSWORD));
        sql(running.connection(), "SELECT 1");
    }
}

#[test]
fn a_detached_server_survives_its_starter_and_is_shared() {
    let rig = Rig::new();
    let mut starter = rig.process("detached", &Spec::default());
    let pid = starter.ready();
    starter.finish();
    let instance = rig.instance(Spec::default());
    let first = instance.attach_or_start(&|_| ()).unwrap();
    let second = instance.start_detached(&|_| ()).unwrap();
    assert!(first.leaves_running() && second.leaves_running());
    assert_eq!((first.server_pid(), second.server_pid()), (pid, pid));
    assert!(first.settings().iter().any(|(name, _)| name == "wal_level"));
    first.stop().unwrap();
    drop(second);
    assert!(crate::support::exists(pid));
    let InstanceState::Running(server) = instance.status().unwrap().state else {
        panic!("it is not running");
    };
    assert_eq!((server.pid, server.lifetime), (pid, Lifetime::Detached));
    assert_eq!((server.owner_pid, server.ready), (None, true));
    assert!(server.since_unix_seconds.unwrap() > 1_700_000_000 && server.data_bytes > 1 << 24);
    let url = instance.connection().unwrap().url();
    assert_eq!(try_sql(&url, "SELECT 1").unwrap(), "1");
    assert!(instance.stop(&|_| ()).unwrap());
    assert!(!crate::support::exists(pid));
    assert!(!instance.stop(&|_| ()).unwrap());
    assert!(matches!(instance.connection(), Err(Error::NotRunning { .. })));
}

#[test]
fn a_running_server_is_as_asked_for_or_refused() {
    let rig = Rig::new();
    let set =
        |name: &str, value: &str| Spec { set: vec![(name.to_owned(), value.to_owned())], ..Spec::default() };
    rig.start_detached(set("work_mem", "5MB"));
    rig.start(set("WORK_MEM", "5MB")).stop().unwrap();
    let tcp = Spec { tcp: Some(true), ..Spec::default() };
    let cases = [
        (stock(), "profile bulk, not with profile stock"),
        (set("work_mem", "6MB"), "work_mem = 5MB, not with work_mem = 6MB"),
        (set("jit", "off"), "was started without --set jit=off"),
        (tcp, "the socket only, not with TCP"),
    ];
    for (spec, words) in cases {
        let error = rig.instance(spec).attach_or_start(&|_| ()).unwrap_err();
        assert!(error.is_usage());
        let message = error.to_string();
        assert!(message.contains(words) && message.contains("server stop"), "{message}");
    }
}

/// A server has the default values, and those that are written in another unit.
#[test]
fn a_setting_with_the_same_value_does_not_differ_and_all_others_are_named_at_once() {
    let rig = Rig::new();
    let set = |set: &[(&str, &str)]| {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Spec { set, ..stock() }
    };
    rig.start_detached(set(&[("work_mem", "5MB")]));
    let check = |asked: &[(&str, &str)]| rig.instance(set(asked)).check_running();
    check(&[("wal_level", "replica"), ("Work_Mem", "5120kB"), ("autovacuum", "true")]).unwrap();
    let asked = [("wal_level", "replica"), ("autovacuum", "off"), ("jit", "off")];
    let refused = check(&asked).unwrap_err().to_string();
    for words in [
        "was started without --set autovacuum=off and --set jit=off;",
        "start it again with pgrig server start --profile stock --set work_mem=5MB --set wal_level=replica --set autovacuum=off \
         --set jit=off",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    assert!(rig.instance(stock()).stop(&|_| ()).unwrap());
}

#[test]
fn another_major_version_is_refused_with_both_named() {
    let rig = Rig::new();
    rig.start(versioned(13)).stop().unwrap();
    let error = Instance::open(&rig.home, versioned(18)).unwrap_err();
    assert!(error.is_usage());
    let message = error.to_string();
    for words in ["13", "18", "--instance OTHER", "server destroy", "--pg-version 13"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn an_installed_postgresql() {
    if !require(Need::Installation) {
        return;
    }
    let binaries = Binaries::system().remove(0);
    let rig = Rig::new();
    let spec = Spec { pg_bin: Some(binaries.dir().to_owned()), set: small(), ..Spec::default() };
    let running = rig.start(spec.clone());
    assert_eq!(running.version(), binaries.version());
    running.stop().unwrap();
    // Remembered by the instance, without fetching anything.
    let home = rig.home.clone().without_fetching();
    let instance = Instance::open(&home, Spec::default()).unwrap();
    let running = instance.attach_or_start(&|_| ()).unwrap();
    assert_eq!(running.version(), binaries.version());
    let other = if binaries.version().major() == 13 { 14 } else { 13 };
    let conflict = Spec { version: pgserver::Major::from_number(other), ..spec };
    let error = Instance::open(&rig.home, conflict).unwrap_err();
    assert!(matches!(error, Error::VersionConflict { .. }), "{error}");
}

#[test]
fn a_directory_without_postgresql_is_refused() {
    let rig = Rig::new();
    let spec = Spec { pg_bin: Some(rig.dir.path().to_owned()), ..Spec::default() };
    let error = Instance::open(&rig.home, spec).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("has no postgres"), "{error}");
}

#[test]
fn instances_are_listed_and_destroyed() {
    let rig = Rig::new();
    let one = Spec { name: "one".to_owned(), ..stock() };
    rig.start(one.clone()).stop().unwrap();
    rig.start_detached(Spec { name: "two".to_owned(), ..stock() });
    let names = || -> Vec<String> {
        let list = Instance::list(&rig.home).unwrap();
        list.iter().map(|instance| instance.name().to_owned()).collect()
    };
    assert_eq!(names(), ["one", "two"]);
    for name in ["one", "two"] {
        rig.instance(named(name)).destroy(&|_| ()).unwrap();
    }
    assert!(names().is_empty());
    let instance = rig.instance(one);
    assert_eq!(instance.status().unwrap().state, InstanceState::NotCreated);
    assert!(matches!(instance.destroy(&|_| ()), Err(Error::NotCreated { .. })));
    for name in ["", "A", "a/b", "..", &"x".repeat(33)] {
        assert!(matches!(Instance::open(&rig.home, named(name)), Err(Error::InvalidName(_))));
    }
}

#[test]
fn a_long_path_gets_a_short_socket() {
    let rig = Rig::at(&"long/".repeat(30));
    let running = rig.start(stock());
    let socket_dir = running.connection().socket_dir.clone();
    assert!(socket_dir.starts_with("/tmp"), "{socket_dir:?}");
    sql(running.connection(), "SELECT 1");
    running.stop().unwrap();
    rig.instance(stock()).destroy(&|_| ()).unwrap();
    assert!(!socket_dir.exists());
}

#[test]
fn an_odd_path_works() {
    let rig = Rig::at("a b, \"c\" 'd' ü%");
    let running = rig.start(stock());
    assert_eq!(sql(running.connection(), "SELECT 1"), "1");
}

#[test]
fn the_status_as_json() {
    let rig = Rig::new();
    let status = || serde_json::to_value(rig.instance(stock()).status().unwrap()).unwrap();
    assert_eq!(status()["state"], "not-created");
    let running = rig.start(stock());
    let shown = status();
    assert_eq!((&shown["state"], &shown["lifetime"]), (&"running".into(), &"owned".into()));
    assert_eq!(shown["owner_pid"], std::process::id());
    assert_eq!(shown["profile"], "stock");
    running.stop().unwrap();
    assert_eq!(status()["state"], "stopped");
}

#[test]
fn an_instance_that_is_not_kept_goes_with_its_server() {
    let rig = Rig::new();
    for is_dropped in [true, false] {
        let instance = rig.instance(Spec::default());
        let mut running = rig.start(Spec::default());
        assert!(running.is_new());
        running.delete_at_end(&instance);
        let (pid, data) = (running.server_pid(), running.data_dir());
        if is_dropped {
            drop(running);
        } else {
            running.discard().unwrap();
        }
        assert!(!crate::support::exists(pid) && !data.exists() && !instance.is_recorded());
    }
    let running = rig.start(Spec::default());
    let data = running.data_dir();
    drop(running);
    assert!(data.is_dir());
}
