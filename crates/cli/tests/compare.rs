//! `pgrig compare` on documents of real runs.

mod common;

use std::fs;
use std::path::Path;

use common::Rig;
use serde_json::Value;

/// A document of a real run, with one of its values changed in all its trials.
fn changed(document: &Value, name: &str, times: f64, file: &Path) -> String {
    let mut document = document.clone();
    for trial in document["trials"].as_array_mut().unwrap() {
        for observation in trial["observations"].as_array_mut().unwrap() {
            if observation["name"] == name {
                observation["value"] = (observation["value"].as_f64().unwrap() * times).into();
            }
        }
    }
    write(&document, file)
}

fn write(document: &Value, file: &Path) -> String {
    fs::write(file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The verdict in the line of a figure.
fn verdict<'t>(text: &'t str, figure: &str) -> &'t str {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(figure));
    line.unwrap_or_else(|| panic!("no {figure} in {text}")).rsplit("  ").next().unwrap().trim()
}

#[test]
fn what_is_no_document_is_refused_however_long_it_is() {
    let rig = Rig::new();
    let _server = rig.server("");
    let document = rig.document("blockio 10MB --trials 1");
    let marked = rig.home.path().join("marked.json");
    fs::write(&marked, format!("\u{feff}{document}")).unwrap();
    let marked = marked.to_str().unwrap();
    rig.done(&format!("compare {marked} {marked}"));
    rig.done(&format!("blockio 10MB --trials 1 --baseline {marked}"));
    for (file, said) in [("/dev/zero", "byte 1 is NUL"), ("/", "directory"), ("/dev/null", "no run document")]
    {
        for command in [format!("compare {marked} {file}"), format!("blockio 10MB --baseline {file}")] {
            let ran = rig.run(&command);
            assert_eq!(ran.code, Some(2), "{command}: {ran:#?}");
            assert!(ran.stderr.contains(said), "{command}: {ran:#?}");
        }
    }
}

#[test]
fn runs_of_block_io_get_verdicts_and_a_status() {
    let rig = Rig::new();
    let _server = rig.server("");
    let file = |name: &str| rig.home.path().join(name);
    let mut document = rig.document("blockio 10MB --trials 4");
    let same = write(&document, &file("same.json"));
    let slower = changed(&document, "cluster", 100.0, &file("slower.json"));

    let ran = rig.done(&format!("compare {same} {slower}"));
    assert_eq!(verdict(&ran.stdout, "cluster"), "regressed", "{}", ran.stdout);
    assert!(ran.stdout.contains("1 regressed"), "{}", ran.stdout);
    assert_eq!(verdict(&rig.done(&format!("compare {slower} {same}")).stdout, "cluster"), "improved");

    let ran = rig.run(&format!("compare {same} {slower} --fail-on regressed"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stderr.contains("total: cluster regressed"), "{ran:#?}");
    assert_eq!(verdict(&ran.stdout, "cluster"), "regressed");
    // The same file twice: nothing is worse than itself.
    rig.done(&format!("compare {same} {same} --fail-on regressed"));

    let told = rig.document(&format!("compare {same} {slower}"));
    assert_eq!(told["baseline"], document["id"]);
    let compared = told["compared"].as_array().unwrap();
    let cluster = compared.iter().find(|one| one["name"] == "cluster").unwrap();
    assert_eq!(cluster["change"]["verdict"], "regressed");
    assert_eq!((cluster["config"].as_str(), cluster["unit"].as_str()), (Some("total"), Some("seconds")));
    assert_eq!(cluster["baseline"].as_array().unwrap().len(), 4);
    assert!(cluster["change"]["interval"]["low"].as_f64().unwrap() > 1.0, "{cluster:#}");

    document["environment"]["server"]["version_num"] = 170_002.into();
    document["environment"]["server"]["version"] = "PostgreSQL 17.2 on x86_64".into();
    document["request"]["size"] = 11_000_000.into();
    let other = write(&document, &file("other.json"));
    let ran = rig.run(&format!("compare {same} {other}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    for said in ["now it is PostgreSQL 17.2", "request.size was 10000000", "--anyway"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    assert_eq!(ran.stdout, "");
    let ran = rig.done(&format!("compare {same} {other} --anyway"));
    assert!(ran.stderr.contains("the runs do not compare: server version was"), "{ran:#?}");
    verdict(&ran.stdout, "cluster");
}

#[test]
fn fills_compare_and_one_of_each_tells_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    let file = |name: &str| rig.home.path().join(name).to_str().unwrap().to_owned();
    let (logged, again, unlogged) = (file("logged.json"), file("again.json"), file("unlogged.json"));
    rig.done(&format!("fill --scale 1 --json {logged}"));
    rig.done(&format!("fill --scale 1 --drop --json {again}"));
    rig.done(&format!("fill --scale 1 --drop --unlogged --json {unlogged}"));
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 100_000);

    // The second one drops what the first has made, which is other work.
    let ran = rig.run(&format!("compare {logged} {again}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("request.steps"), "{ran:#?}");
    let ran = rig.done(&format!("compare {again} {again} --threshold 1%"));
    assert_eq!(verdict(&ran.stdout, "total"), "inconclusive", "{}", ran.stdout);
    assert!(ran.stdout.contains("fewer than four trials"), "{}", ran.stdout);
    let ran = rig.run(&format!("compare {again} {again} --fail-on inconclusive"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let ran = rig.run(&format!("compare {again} {unlogged}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("request.persistence was logged, now it is unlogged"), "{ran:#?}");
}

#[test]
fn what_is_no_run_is_refused() {
    let rig = Rig::new();
    let file = rig.home.path().join("none.json");
    fs::write(&file, "{}").unwrap();
    let file = file.display();
    for (arguments, said) in [
        (format!("compare /nowhere.json {file}"), "cannot read /nowhere.json"),
        (format!("compare {file} {file}"), "no run document"),
        (format!("compare {file}"), "CANDIDATE"),
        (format!("compare {file} {file} --threshold 0%"), "above 0"),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code, Some(2), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig {arguments}: {ran:#?}");
    }
}
