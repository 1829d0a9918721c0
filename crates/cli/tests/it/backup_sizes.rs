//! `pgrig backup rehearse --size`: forecasts, exit status, and the databases that are left after Ctrl-C and kill -9.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Need, assert_says, require, until};

use crate::support::Rig;

const SMALL: &str = "--size 60MB --up-to 10MB --pg-version 13 --set maintenance_work_mem=1MB";

#[test]
fn a_forecast_is_recorded_and_the_time_of_a_restore_decides_the_exit_status() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let line = |more: &str| format!("backup rehearse {SMALL} --trials 1 --way base {more}");
    let document = rig.document(&line("-q --price-per-gb-month 0.023"));
    assert!(!own.exists());
    assert_eq!(document["plan"]["sizes"]["measured"].as_array().unwrap().len(), 3);
    let trials = document["trials"].as_array().unwrap();
    let configs: Vec<&str> = trials.iter().map(|trial| trial["config"].as_str().unwrap()).collect();
    assert_eq!(configs, ["base at 1.11 MB", "base at 3.33 MB", "base"]);
    let events = trials[2]["events"].as_array().unwrap();
    let forecast = events.iter().find(|event| event["what"]["event"] == "forecast").unwrap();
    let forecast = &forecast["what"]["forecast"];
    assert_eq!(forecast["bytes"], 60_000_000);
    let value = |name: &str| forecast[name]["value"]["value"].as_f64().unwrap();
    assert!(value("size") > 60e6 && value("disk") > value("size"), "{forecast}");
    let page = rig.done("report latest --format md");
    let says = ["Forecast", "peak of disk space", "of tables and indexes, from three smaller sizes"];
    assert_says(&page.stdout, &says);

    let missed = rig.run(&line("--rto 1ms"));
    assert_eq!(missed.code, Some(3), "{missed:#?}");
    assert_says(
        &missed.stdout,
        &["measured", "forecast for 60.0 MB", "RTO 1.00 ms", "disk: the peak of disk space"],
    );
    assert!(!missed.stdout.contains("by the forecast values"), "one way alone: {}", missed.stdout);
    assert_says(&missed.stderr, &["no --way is certain to restore within", "artificial", "time       about"]);
}

/// At a size that is measured, each figure is known.
#[test]
fn ways_on_the_front_of_the_forecast_are_marked() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let line =
        "backup rehearse --size 10MB --up-to 10MB --pg-version 13 --trials 2 --way plain:gzip=1 --way base";
    let ran = rig.done(line);
    let (_, forecast) = ran.stdout.split_once("forecast for 10.0 MB").unwrap_or_else(|| panic!("{ran:#?}"));
    assert_says(forecast, &["* by the forecast values, no other way is better in size, backup or restore"]);
    assert!(!forecast.contains("not compared"), "{forecast}");
    // Nothing is smaller than a compressed dump.
    let mut marked = forecast.lines().filter(|line| line.starts_with("*  "));
    assert!(marked.any(|line| line.contains("plain:gzip=1")), "{forecast}");
}

#[test]
fn sizes_that_are_killed_or_interrupted_leave_no_processes() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let told = rig.home.path().join("told");
    let many = format!("backup rehearse {SMALL} --trials 1000 --way custom");
    for (signal, at) in
        [(Signal::SIGINT, "filling 3.33 MB"), (Signal::SIGKILL, "filling 10"), (Signal::SIGINT, "round 2")]
    {
        let running = rig.spawn_telling(&many, &told);
        until("it has come so far", || fs::read_to_string(&told).is_ok_and(|told| told.contains(at)));
        running.signal(signal);
        let ran = running.end();
        until("its processes end", || crate::backup::processes_of(own.to_str().unwrap()).is_empty());
        let is_killed = signal == Signal::SIGKILL;
        assert_eq!(ran.code, (!is_killed).then_some(130), "{ran:#?}");
        assert_eq!(own.exists(), is_killed, "{at}");
    }
}

/// A stopped process stands for a disk on which shutdowns and deletions take long.
#[test]
fn a_scratch_server_that_ends_slowly_is_deleted_after_an_interruption() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let told = rig.home.path().join("told");
    let running = rig.spawn_telling(&format!("backup rehearse {SMALL} --trials 1000 --way custom"), &told);
    until("the first round begins", || fs::read_to_string(&told).is_ok_and(|told| told.contains("round 1")));
    let runs = fs::read_dir(&own).unwrap().flatten();
    let files = runs.map(|run| run.path().join("instances/dumps/data/postmaster.pid"));
    let file = files.flat_map(fs::read_to_string).next().unwrap();
    let server = Pid::from_raw(file.lines().next().unwrap().parse().unwrap());
    kill(server, Signal::SIGSTOP).unwrap();
    running.signal(Signal::SIGINT);
    // Longer than a server may be silent after Ctrl-C.
    std::thread::sleep(Duration::from_secs(4));
    kill(server, Signal::SIGCONT).unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(!own.exists(), "{ran:#?}");
}

/// A plan that ends without restore times says so before the work. 100 TB leave the cache of any machine, 60 MB of none.
#[test]
fn a_plan_tells_that_restore_times_will_be_unknown() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let plan = |size: &str| {
        rig.done(&format!("backup rehearse --explain --size {size} --up-to 10MB --pg-version 13 --way plain"))
    };
    let told = "restore times, and perhaps not the disk space of dumps";
    let all = "with this --up-to, pgrig cannot forecast backup and restore times, and perhaps not the disk space of dumps";
    assert_says(&plan("100TB").stdout, &[told, all, "at assumed speeds (backup 120 MB/s, restore 60 MB/s)"]);
    assert!(!plan("60MB").stdout.contains(told));
}

#[test]
fn the_catalogs_of_a_database_give_shape_and_size() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    server
        .execute("CREATE TABLE t AS SELECT i, repeat(md5(i::text), 9) AS v FROM generate_series(1, 40000) i");
    server.execute("ALTER TABLE t ADD PRIMARY KEY (i)");
    server.execute("ANALYZE t");
    let explained =
        rig.done(&format!("backup rehearse --explain --up-to 10MB --way plain -d {}", server.url));
    assert_says(&explained.stdout, &["a model of database", "1.11 MB, 3.33 MB, 10.0 MB", "PostgreSQL 13"]);
    let line = format!("backup rehearse -q --up-to 10MB --trials 1 --way plain -d {}", server.url);
    let document = rig.document(&line);
    let size = document["request"]["size"].as_u64().unwrap();
    assert!((10_000_000..30_000_000).contains(&size), "{size}");
    assert_eq!(document["request"]["shape"]["is_like_original"], true);
}

#[test]
fn a_forecast_that_cannot_be_made_is_refused_with_the_remedy() {
    let rig = Rig::new();
    for (line, says) in [
        (
            "--price-per-gb-month 0.02",
            "--price-per-gb-month is for a forecast: give the size, too, for example --size 5TB",
        ),
        ("--price-per-gb-month -1 --size 1TB", "not a price"),
        ("--up-to 20MB", "give --size SIZE"),
        ("--size 1TB --profile bulk", "leave out --profile"),
        ("--size 1TB --model m.toml -d shop", "cannot be used with"),
        ("--size 1TB --model m.toml", "cannot read --model m.toml"),
        ("--size 1TB --schema-file m.sql", "cannot read --schema-file m.sql"),
    ] {
        let ran = rig.run(&format!("backup rehearse {line}"));
        assert_eq!(ran.code, Some(2), "{line}: {ran:#?}");
        assert_says(&ran.stderr, &[says]);
    }
    let schema = rig.home.path().join("s.sql");
    std::fs::write(&schema, "CREATE TABLE t (id int);\n\\gexec\n").unwrap();
    let ran = rig.run(&format!("backup rehearse --size 1TB --schema-file {}", schema.display()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(&ran.stderr, &["s.sql: line 2 is the psql command"]);
    assert!(!ran.stderr.contains("--ddl"), "{ran:#?}");
    if require(Need::Clients) {
        let ran = rig.run("backup rehearse --size 1TB --up-to 9MB --pg-version 13");
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert_says(&ran.stderr, &["give --up-to 10MB or more"]);
    }
}
