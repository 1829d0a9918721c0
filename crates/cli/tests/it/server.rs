//! `pgrig server` as its users see it.

use std::fs::{self, File};
use std::path::Path;

use crate::support::{Ran, Rig};
use testkit::{assert_says, until_some as until};

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
    rig.done("server destroy --instance default");
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
    assert!(started.stderr.contains("DANGEROUS: fsync is off."), "{started:#?}");
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
    assert!(ran.stderr.contains("work_mem is 32MB, but pgrig started this instance with 8MB"), "{ran:#?}");
    assert!(
        ran.stderr.contains(": run ALTER SYSTEM RESET work_mem, or give --set work_mem=32MB"),
        "{ran:#?}"
    );
    // The remedy names the place where it is set, and works.
    for (place, remedy) in [
        ("ALTER DATABASE postgres SET work_mem = '64MB'", "ALTER DATABASE postgres RESET work_mem"),
        ("ALTER ROLE postgres SET work_mem = '64MB'", "ALTER ROLE postgres RESET work_mem"),
        (
            "ALTER ROLE postgres IN DATABASE postgres SET work_mem = '64MB'",
            "ALTER ROLE postgres IN DATABASE postgres RESET work_mem",
        ),
    ] {
        server.execute(place);
        let ran = rig.run("fill 5MB --explain");
        assert!(ran.stderr.contains(&format!(": run {remedy}, or give")), "{ran:#?}");
        server.execute(remedy);
        let ran = rig.run("fill 5MB --explain");
        assert!(ran.stderr.contains(": run ALTER SYSTEM RESET work_mem, or give"), "{ran:#?}");
    }
    server.execute("ALTER SYSTEM RESET work_mem");
    server.execute("SELECT pg_reload_conf()");
    testkit::until("the value of pgrig is in force", || rig.run("fill 5MB --explain").code == Some(0));
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

/// pgrig names the holder of a lock that it waits for.
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

#[test]
fn another_database_psql_and_a_restart() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let query = ["server", "psql", "--", "-Atc", "CREATE TABLE t (a int); SHOW work_mem"];
    let psql = |words: &[&str]| {
        let mut command = rig.command("");
        Ran::from(command.args(words).output().unwrap())
    };
    // It runs for psql alone, and the data stay.
    rig.done("server start --set work_mem=7MB");
    rig.done("server stop");
    let ran = psql(&query);
    assert_eq!((ran.code, ran.stdout.trim_end().ends_with("7MB")), (Some(0), true), "{ran:#?}");
    assert_eq!(rig.status()["state"], "stopped");
    let failed = psql(&["server", "psql", "--", "-c", "SELECT 1/0"]);
    assert_eq!(failed.code, Some(1), "{failed:#?}");

    let server = rig.server("--set work_mem=7MB");
    server.execute("CREATE DATABASE shop");
    let before = rig.status()["pid"].clone();
    let url = rig.done("server restart").stdout;
    assert_eq!(url.trim(), server.url);
    assert_ne!(rig.status()["pid"], before);
    let other = rig.done("server url shop").stdout;
    assert_eq!(other.trim(), server.url.replace("/postgres?", "/shop?"));
    let ran = psql(&[
        "server",
        "psql",
        "shop",
        "--",
        "-Atc",
        "SELECT current_database(), current_setting('work_mem')",
    ]);
    assert_eq!(ran.stdout.trim(), "shop|7MB", "{ran:#?}");
    // Beside --instance, -d names a database there.
    rig.done("fill 5MB --instance default -d shop");
    let ran = psql(&["server", "psql", "shop", "--", "-Atc", "SELECT count(*) > 0 FROM pgbench_accounts"]);
    assert_eq!(ran.stdout.trim(), "t", "{ran:#?}");
}

/// The environment and psql's own options name another server, database or role.
#[test]
fn psql_reaches_the_instance_and_takes_its_own_options() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE ROLE alice LOGIN");
    let psql = |words: &[&str]| {
        let mut command = rig.command("server psql");
        command.args(words);
        for (name, value) in [
            ("PGHOST", "127.0.0.1"),
            ("PGPORT", "1"),
            ("PGHOSTADDR", "127.0.0.1"),
            ("PGSERVICE", "elsewhere"),
            ("PGUSER", "nobody"),
            ("PGDATABASE", "nowhere"),
            ("PGREQUIREPEER", "nobody"),
        ] {
            command.env(name, value);
        }
        Ran::from(command.output().unwrap())
    };
    let query = "SELECT current_database(), current_user";
    for (words, expected) in [
        (vec!["--", "-Atc", query], "postgres|postgres"),
        (vec!["--", "-d", "shop", "-Atc", query], "shop|postgres"),
        (vec!["--", "-Atc", query, "shop"], "shop|postgres"),
        (vec!["shop", "--", "-U", "alice", "-Atc", query], "shop|alice"),
    ] {
        let ran = psql(&words);
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), expected), "{words:?}: {ran:#?}");
    }
    let ran = psql(&["--", "-U", "nosuchrole", "-Atc", query]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(&ran.stderr, &["\"nosuchrole\" does not exist"]);
    let ran = psql(&["nosuch", "--", "-Atc", query]);
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stderr, &["run pgrig server psql -- -c 'CREATE DATABASE nosuch'"]);
    for words in [["--", "-h", "127.0.0.1"], ["--", "-d", "postgresql://127.0.0.1/shop"]] {
        let ran = psql(&words);
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:#?}");
        assert_says(&ran.stderr, &["connects to instance default", "run psql without pgrig"]);
    }
}

#[test]
fn an_instance_that_does_not_exist_is_named_with_those_that_do() {
    let rig = Rig::new();
    assert_eq!(rig.done("testdb list").stdout, "this role has no databases of pgrig testdb\n");
    assert_says(&rig.done("testdb drop --all").stderr, &["there was nothing to drop"]);
    rig.done("testdb list --instance default");
    let ran = rig.run("testdb keep pgrig_1");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
    assert!(!rig.home.path().join("instances").exists());
    rig.done("fill 5MB");
    for action in ["stop", "url", "restart", "logs", "destroy"] {
        let ran = rig.run(&format!("server {action} --instance typo"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{action}: {ran:#?}");
        assert!(ran.stderr.contains("there is no instance typo (instances: default)"), "{action}: {ran:#?}");
        // Nobody creates an instance to stop or to delete it.
        let creates = ran.stderr.contains("pgrig server start --instance typo creates it");
        assert_eq!(creates, ["url", "restart"].contains(&action), "{action}: {ran:#?}");
    }
    for action in ["list", "keep pgrig_1", "drop --all"] {
        let ran = rig.run(&format!("testdb {action} --instance typo"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{action}: {ran:#?}");
        assert!(ran.stderr.contains("there is no instance typo (instances: default)"), "{action}: {ran:#?}");
    }
    assert!(!rig.home.path().join("instances/typo").exists());
}

#[test]
fn versions_that_no_instance_uses_are_pruned() {
    // A home with downloaded versions of its own: directories stand for them, since nothing runs from these.
    let home = tempfile::tempdir().unwrap();
    let versions = home.path().join("postgresql");
    for version in ["13.1.0", "18.0.0"] {
        fs::create_dir_all(versions.join(version)).unwrap();
        fs::write(versions.join(version).join("postgres"), "0123456789").unwrap();
    }
    let instance = home.path().join("instances/default");
    fs::create_dir_all(instance.join("data")).unwrap();
    let record = "{\"format_version\":1,\"config\":{\"version\":\"18.0.0\",\"binaries\":{\"installed\":\"/nowhere\"},\
                  \"profile\":\"bulk\",\"set\":[],\"tcp\":false,\"port\":0}}";
    fs::write(instance.join("instance.json"), record).unwrap();
    let rig = Rig::new();
    let prune = || {
        let mut command = rig.command("server prune");
        Ran::from(
            command.env("PGRIG_HOME", home.path()).env_remove("PGRIG_POSTGRESQL_CACHE").output().unwrap(),
        )
    };
    let ran = prune();
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "deleted PostgreSQL 13.1.0: 10 B"), "{ran:#?}");
    assert!(versions.join("18.0.0/postgres").exists() && !versions.join("13.1.0").exists());
    assert!(prune().stderr.contains("nothing to delete"));
    // A cache that homes share is left alone.
    let shared = rig.run("server prune");
    assert_eq!(shared.code, Some(2), "{shared:#?}");
    assert_says(&shared.stderr, &["other PGRIG_HOME directories may use", "delete versions there by hand"]);
}

/// A database of an instance that does not exist cannot be meant: nothing is created.
#[test]
fn a_misspelt_instance_is_not_created_for_a_database() {
    let rig = Rig::new();
    let _server = rig.server("");
    let ran = rig.run("fill 3MB --instance defualt -d shop");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(
        &ran.stderr,
        &[
            "there is no instance defualt (instances: default); did you mean --instance default?",
            "leave out -d shop",
        ],
    );
    assert!(!rig.home.path().join("instances/defualt").exists());
    let ran = rig.run("fill 3MB --instance quite_another -d shop");
    assert_says(&ran.stderr, &["(instances: default); to create it, leave out -d shop"]);
}

/// A plan needs a server. It creates the instance for that, and leaves nothing.
#[test]
fn a_plan_leaves_no_instance() {
    let rig = Rig::new();
    let never = rig.home.path().join("instances/never");
    for (command, code) in [
        ("fill 5MB", Some(0)),
        ("fill 30TB", Some(1)),
        ("fill 5MB --set work_mem=8MB --json -", Some(0)),
        ("blockio 10MB", Some(0)),
        ("micro 1+i", Some(0)),
        ("tps --matrix durability", None),
        ("testdb unlog", None),
        ("model capture --aggregates", None),
    ] {
        let ran = rig.run(&format!("{command} --instance never --explain"));
        assert!(code.is_none() || ran.code == code, "{command}: {ran:#?}");
        let told = "instance never did not exist: pgrig created it for this plan, and deletes it at the end";
        assert!(ran.stderr.contains(told), "{command}: {ran:#?}");
        assert!(!never.exists(), "{command}: {ran:#?}");
    }
    let status = rig.done("server status");
    assert!(status.stderr.contains("no instance yet"), "{status:#?}");

    rig.done("fill 5MB --instance never");
    let planned = rig.done("fill 5MB --instance never --drop --explain");
    assert!(!planned.stderr.contains("did not exist"), "{planned:#?}");
    assert!(rig.done("server status").stdout.contains("never"), "an instance that existed stays");
}

/// The settings that an earlier instance of this name had cannot be restored in a new one.
#[test]
fn a_plan_that_fails_before_it_is_made_leaves_no_instance() {
    let rig = Rig::new();
    let journals = rig.home.path().join("journal");
    fs::create_dir(&journals).unwrap();
    let record = r#"{ "format_version": 1, "id": "1-1", "pid": 1, "place": { "own": "never" }, "system_identifier": null,
        "settings": [{ "name": "no_such_setting", "altered": null, "shown": "on" }], "tables": [] }"#;
    fs::write(journals.join("1-1.json"), record).unwrap();
    let ran = rig.run("fill 5MB --instance never --explain");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(&ran.stderr, &["deletes it at the end", "Restoring it now failed", "no_such_setting"]);
    assert!(!rig.home.path().join("instances/never").exists(), "{ran:#?}");
}

/// Its volume may not be mounted.
#[test]
fn an_instance_without_its_data_is_not_made_anew() {
    let rig = Rig::new();
    rig.done("fill 5MB");
    let data = rig.data();
    let kept = data.with_file_name("kept");
    fs::rename(&data, &kept).unwrap();
    for command in ["tps -S -T 1", "server start"] {
        let ran = rig.run(command);
        assert_eq!(ran.code, Some(1), "{command}: {ran:#?}");
        assert_says(
            &ran.stderr,
            &["instance default has no data directory any more", "Put the directory back"],
        );
        assert!(!data.exists(), "{command}");
    }
    fs::rename(&kept, &data).unwrap();
    rig.done("tps -S -t 1");
    fs::rename(&data, &kept).unwrap();
    rig.done("server destroy --instance default");
    rig.done("fill 5MB");
}

/// Programs that clean up temporary files delete it.
#[test]
fn a_deleted_socket_is_made_by_a_restart() {
    let rig = Rig::new();
    let _server = rig.server("");
    let directory = rig.status()["socket_dir"].as_str().unwrap().to_owned();
    fs::remove_dir_all(&directory).unwrap();
    let ran = rig.run("fill 5MB");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let told =
        format!("is running, and its socket no longer exists in {directory}: run pgrig server restart");
    assert_says(&ran.stderr, &[&told]);
    rig.done("server restart");
    rig.done("fill 5MB");
}
