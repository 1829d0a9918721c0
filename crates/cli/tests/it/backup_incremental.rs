//! `pgrig backup rehearse --way incremental`: results, the document, and what is left after Ctrl-C and kill -9.

use testkit::{CLIENTS_RELEASE, Need, assert_says, clients, require, templates_of};

use crate::backup::assert_ends_by_signals;
use crate::support::Rig;

#[test]
fn incremental_backups_are_recorded_and_interrupted_or_killed_leave_nothing() {
    if !require(Need::Clients17) {
        return;
    }
    let _ = templates_of(CLIENTS_RELEASE);
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let line = |trials: u32| {
        let bin = clients().display().to_string();
        format!(
            "backup rehearse --size 60MB --up-to 10MB --bin {bin} --trials {trials} --way incremental --changes 20"
        )
    };
    assert_ends_by_signals(&rig, &line(1000), "round 2");

    let document = rig.document(&(line(1) + " -q"));
    assert!(!own.exists());
    assert_eq!(document["request"]["changes"], 0.2);
    let trials = document["trials"].as_array().unwrap();
    let observed: Vec<&str> = trials[2]["observations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["value"].as_f64().unwrap() > 0.0)
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    for name in ["full", "full-size", "incremental", "incremental-size", "combine", "wal"] {
        assert!(observed.contains(&name), "{name}: {observed:?}");
    }
    assert_says(&document["notes"].to_string(), &["updated 20 % of the rows of each table"]);
    let page = rig.done("report latest --format md");
    assert_says(&page.stdout, &["incremental", "Forecast"]);

    for (line, says) in [
        ("--way incremental:gzip", "base-tar with a compression, or incremental without one"),
        ("--changes 5", "--changes is for databases that pgrig fills"),
        ("--changes 5 --size 1TB", "add --way incremental"),
        ("--changes 0 --size 1TB", "above 0 and at most 100"),
    ] {
        let ran = rig.run(&format!("backup rehearse {line}"));
        assert_eq!(ran.code, Some(2), "{line}: {ran:#?}");
        assert_says(&ran.stderr, &[says]);
    }
}
