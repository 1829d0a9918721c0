//! `pgrig backup rehearse --load` with dumps: the row versions that the snapshot of a dump keeps.

use std::fs;

use serde_json::Value;
use testkit::{Need, assert_says, require};

use crate::backup::assert_ends_by_signals;
use crate::support::Rig;

const SMALL: &str =
    "backup rehearse --size 60MB --up-to 10MB --pg-version 13 --trials 1 --load simple-update -R 100 -c 2";

#[test]
fn row_versions_that_the_snapshot_of_a_dump_keeps_are_recorded() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let file = rig.home.path().join("run.json");
    let ran = rig.done(&format!("{SMALL} -T 2 --way plain --way base --json {}", file.display()));
    assert_says(&ran.stderr, &["measuring the row versions that a dump's snapshot keeps, 1 of 1"]);
    assert_says(
        &ran.stdout,
        &["snapshot of a dump under the load, open for ", ": VACUUM cannot remove ", " an hour; "],
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let trials = document["trials"].as_array().unwrap();
    let trial = trials.iter().find(|trial| trial["config"] == "snapshot").unwrap();
    let observed = |name: &str| {
        let all = trial["observations"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].as_f64().unwrap()
    };
    let [transactions, dead, versions] = ["transactions", "dead", "dead-rows"].map(observed);
    assert!(transactions > 0.0, "{trial}");
    // Each transaction updates a row of pgbench_accounts, and only that; such a row has 121 bytes.
    assert!((0.5 * transactions..=1.1 * transactions).contains(&versions), "{trial}");
    assert!((100.0..=140.0).contains(&(dead / versions)), "{trial}");
    assert!(observed("dead-per-hour") > 100.0 * dead && observed("growth") > 0.0, "{trial}");
    // Counters of sessions of the load that end after VACUUM are added to those of VACUUM.
    let reported = trial["events"][0]["what"]["snapshot"]["reported"].as_f64().unwrap();
    assert!((0.5 * versions..=3.0 * versions).contains(&reported), "{trial}");

    assert_says(&ran.stderr, &["snapshot   runs the load again beside a snapshot"]);
    let without = rig.done(&format!("{SMALL} -T 1 --way base"));
    assert!(!without.stderr.contains("snapshot   runs"), "{without:#?}");
    assert_says(&without.stdout, &["WAL of the load"]);
    assert!(!without.stdout.contains("snapshot of a dump"), "{without:#?}");
}

#[test]
fn a_snapshot_that_is_killed_or_interrupted_leaves_no_processes() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let line = format!("{SMALL} -T 5 --way plain");
    assert_ends_by_signals(&rig, &line, "measuring the row versions that a dump's snapshot keeps");
}
