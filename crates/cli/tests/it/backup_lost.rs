//! `pgrig backup rehearse` of a server that ends meanwhile, also one that pgrig fills itself.

use std::fs;

use testkit::{Need, assert_says, require};

use crate::support::{Ran, Rig};

/// A backup that ends the server, and waits until it has ended.
const END: &str = "kill -INT $(head -n 1 {data}/postmaster.pid); while test -e {data}/postmaster.pid; do :; done; false {backup}";

#[test]
fn results_from_before_the_end_of_the_server_are_printed_and_recorded() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    server.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) i");
    let json = rig.home.path().join("run.json");
    let mut command = rig.command("backup rehearse --no-probe --trials 2 --way custom:none -d");
    command.args([server.url.as_str(), "--tool-backup", END, "--tool-restore", "cp -a {backup}/. {restore}"]);
    let ran = Ran::from(command.arg("--json").arg(&json).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(&ran.stdout, &["*  custom:none", "custom:none: only 1 of 2 trials", "restored and verified"]);
    let gone = "pgrig cannot connect to the database any more";
    assert_says(
        &ran.stderr,
        &[
            &format!("tool has no result: it was not measured, because {gone}"),
            &format!("custom:none has fewer trials than planned: {gone}"),
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["status"], "failed", "{document}");
    let configs: Vec<&str> =
        document["trials"].as_array().unwrap().iter().filter_map(|trial| trial["config"].as_str()).collect();
    assert_eq!(configs, ["custom:none"], "{document}");
    let notes = document["notes"].to_string();
    assert_says(
        &notes,
        &[
            &format!("custom:none is not tried again, after 1 trial: {gone}"),
            &format!("tool was not measured: {gone}"),
        ],
    );
}

#[test]
fn results_from_before_the_end_of_a_filled_server_are_printed_and_recorded() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let json = rig.home.path().join("run.json");
    let line = "backup rehearse --size 60MB --up-to 10MB --pg-version 13 --trials 2 --way custom:none";
    let mut command = rig.command(line);
    command.args(["--tool-backup", END, "--tool-restore", "cp -a {backup}/. {restore}"]);
    let ran = Ran::from(command.arg("--json").arg(&json).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(&ran.stdout, &["measured", "custom:none", "1.11 MB", "restored and verified"]);
    assert!(!ran.stdout.contains("forecast for"), "{ran:#?}");
    let gone = "pgrig cannot connect to the database of 1.11 MB that it has filled any more";
    assert_says(
        &ran.stderr,
        &[
            &format!("tool has no result: it was not measured, because {gone}"),
            &format!("custom:none has fewer trials than planned: {gone}"),
            "there is no forecast for custom:none, because pgrig did not measure all sizes",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["status"], "failed", "{document}");
    let configs: Vec<&str> =
        document["trials"].as_array().unwrap().iter().filter_map(|trial| trial["config"].as_str()).collect();
    assert_eq!(configs, ["custom:none at 1.11 MB"], "{document}");
    let notes = document["notes"].to_string();
    assert_says(
        &notes,
        &[
            &format!("custom:none is not tried again, after 1 trial: {gone}"),
            "there is no forecast for custom:none",
        ],
    );
}
