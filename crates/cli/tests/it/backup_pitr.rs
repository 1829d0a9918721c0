//! `pgrig backup rehearse --load` and `--way pitr`: results, the document, refusals, and what is left after Ctrl-C and kill -9.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{Need, assert_says, require};

use crate::backup::assert_ends_by_signals_when;
use crate::support::Rig;

const SMALL: &str = "--size 60MB --up-to 10MB --pg-version 13 --load simple-update -R 100 -c 2";

#[test]
fn recoveries_and_the_wal_of_a_load_are_recorded() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let line = format!("backup rehearse {SMALL} -T 1 --trials 1 --way pitr --way base");
    let ran = rig.run(&line);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(!rig.home.path().join("backup").exists());
    assert_says(
        &ran.stdout,
        &[
            "recovery to a point in time",
            "rows of the table of commit times were committed before the target times, and all are present",
            "WAL of the load (<builtin: simple update>, 100 transactions a second, 2 clients, for 1.00 s)",
            "  compressed  gzip to ",
            "pitr: with the WAL of a day of the load",
        ],
    );
    assert_says(
        &ran.stderr,
        &["load       <builtin: simple update>", "measuring the WAL of the load, 1 of 1"],
    );
    let document = rig.document(&format!("backup rehearse -q {SMALL} -T 1 --trials 1 --way pitr"));
    assert_eq!(document["request"]["load"]["rate"], 100.0);
    assert_eq!(document["plan"]["load"]["clients"], 2);
    let trials = document["trials"].as_array().unwrap();
    let configs: Vec<&str> = trials.iter().map(|trial| trial["config"].as_str().unwrap()).collect();
    assert_eq!(configs, ["pitr at 1.11 MB", "pitr at 3.33 MB", "pitr", "wal"]);
    let observed = |trial: usize| -> Vec<&str> {
        let observations = trials[trial]["observations"].as_array().unwrap();
        let seen = observations.iter().filter(|one| one["value"].as_f64().unwrap() > 0.0);
        seen.map(|one| one["name"].as_str().unwrap()).collect()
    };
    for name in ["base-size", "wal-size", "files", "replay", "replayed"] {
        assert!(observed(2).contains(&name), "{name}: {:?}", observed(2));
    }
    for name in ["transactions", "wal", "wal-per-day", "wal-per-day-gzip"] {
        assert!(observed(3).contains(&name), "{name}: {:?}", observed(3));
    }
    let page = rig.done("report latest --format md");
    assert_says(&page.stdout, &["pitr", "Forecast", "Space for WAL", "target time"]);
}

/// Whether a rehearsal has begun to receive WAL. Its directory is below another one if the servers run as another account.
fn receives(own: &Path) -> bool {
    let below = fs::read_dir(own).into_iter().flatten().flatten().map(|entry| entry.path());
    let has_files = |home: PathBuf| {
        fs::read_dir(home.join("work/backup/wal")).is_ok_and(|mut files| files.next().is_some())
    };
    below.chain([own.to_owned()]).any(has_files)
}

#[test]
fn loads_that_are_killed_or_interrupted_leave_no_processes() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let many = format!("backup rehearse {SMALL} -T 20 --trials 1000 --way pitr");
    // It has begun to receive WAL, and the load runs. A killed one has left files, which the next one removes before its first round.
    assert_ends_by_signals_when(
        &rig,
        |told| rig.spawn_telling(&many, told),
        |told| told.contains("round 1") && receives(&own),
    );
}

#[test]
fn a_script_that_fails_is_refused_before_the_trials() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let script = rig.home.path().join("bad.sql");
    fs::write(&script, "SELECT * FROM nothing;\n").unwrap();
    // At this rate, no transaction would begin in a second.
    let line = format!(
        "backup rehearse --size 60MB --up-to 10MB --pg-version 13 --trials 1 --way custom -R 0.01 --load {}",
        script.display()
    );
    let ran = rig.run(&line);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(&ran.stderr, &["trying each script of the load", "bad.sql failed: ", "nothing"]);
    assert!(!ran.stderr.contains("round 1"), "{ran:#?}");
    assert!(!rig.home.path().join("backup").exists());
}

#[test]
fn loads_that_are_not_possible_are_refused_with_the_remedy() {
    let rig = Rig::new();
    fs::write(rig.home.path().join("wrong.sql"), "\\set a (\n").unwrap();
    let wrong = format!("--size 1TB -R 5 --load {}", rig.home.path().join("wrong.sql").display());
    for (line, says) in [
        ("--way pitr", "--size 5TB --load simple-update -R 500"),
        ("--way pitr --size 1TB", "give one, for example --load simple-update -R 500"),
        ("--load simple-update -R 5", "give the size, too"),
        ("--load simple-update --size 1TB", "--load needs a rate"),
        ("-R 5 --size 1TB", "give its script, too"),
        ("-T 5 --size 1TB", "give its script, too"),
        ("--load simple-update -R 0 --size 1TB", "transactions per second"),
        ("--load nothing.sql -R 5 --size 1TB", "tpcb-like, simple-update, select-only"),
        (wrong.as_str(), "wrong.sql"),
        ("--way pitr:gzip", "or pitr without one"),
    ] {
        let ran = rig.run(&format!("backup rehearse {line}"));
        assert_eq!(ran.code, Some(2), "{line}: {ran:#?}");
        assert_says(&ran.stderr, &[says]);
    }
}
