//! `pgrig backup`: exit status, the document, and what is left after Ctrl-C and kill -9.

use std::fs;

use nix::sys::signal::Signal;
use testkit::{Need, assert_says, require, until};

use crate::support::Rig;

/// Processes that name this directory.
pub(crate) fn processes_of(directory: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(directory) && !line.starts_with(env!("CARGO_BIN_EXE_pgrig"))).collect()
}

#[test]
fn a_rehearsal_is_recorded_and_interrupted_or_killed_it_leaves_nothing() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    server
        .execute("CREATE TABLE t AS SELECT i, repeat(md5(i::text), 4) AS v FROM generate_series(1, 20000) i");
    server.execute("ALTER TABLE t ADD PRIMARY KEY (i)");
    let own = rig.home.path().join("backup");
    let told = rig.home.path().join("told");
    let many = format!("backup rehearse --trials 1000 --way custom --way base -d {}", server.url);
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let running = rig.spawn_telling(&many, &told);
        until("the second round begins", || {
            fs::read_to_string(&told).is_ok_and(|told| told.contains("round 2"))
        });
        running.signal(signal);
        let ran = running.end();
        // The kernel ends programs and servers of a killed one.
        until("its processes end", || processes_of(own.to_str().unwrap()).is_empty());
        let is_killed = signal == Signal::SIGKILL;
        assert_eq!(ran.code, (!is_killed).then_some(130), "{ran:#?}");
        assert_eq!(own.exists(), is_killed);
    }

    let ways = "--way custom:gzip=1,jobs=2 --way base-tar:client-gzip=1";
    let line = format!("backup rehearse {ways} --trials 2 -q -d {}", server.url);
    let document = rig.document(&line);
    assert!(!own.exists());
    assert_eq!((&document["verb"], &document["status"]), (&"backup".into(), &"done".into()));
    let configs: Vec<&str> = document["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["config"].as_str().unwrap())
        .collect();
    let [one, other] = ["custom:gzip=1,jobs=2", "base-tar:client-gzip=1"];
    assert_eq!(configs, [one, other, other, one]);
    for way in [one, other] {
        for figure in ["size", "backup", "restore"] {
            assert!(document["figures"][way][figure]["value"].as_f64().unwrap() > 0.0, "{way}: {figure}");
        }
    }
    let read = rig.done("runs list --verb backup");
    assert_says(&read.stdout, &["custom:gzip=1,jobs=2, base-tar"]);
    let report = rig.home.path().join("report.html");
    rig.done(&format!("report latest -o {}", report.display()));

    let explained = rig.done(&format!("backup rehearse --explain -d {}", server.url));
    assert_says(&explained.stdout, &["pgrig only reads it", "ACCESS SHARE", "time       about"]);
    let wrong = rig.run("backup rehearse --way custom:gzip=99");
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert_says(&wrong.stderr, &["gzip has no level 99: give 1 to 9"]);
    let none = rig.run(&format!("backup rehearse --bin /etc -d {}", server.url));
    assert_eq!(none.code, Some(2), "{none:#?}");
    assert_says(&none.stderr, &["--bin /etc: it has no pg_dump"]);

    server.execute(
        "CREATE FUNCTION f() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT current_database()::text'",
    );
    server.execute("ALTER TABLE t ADD lie text GENERATED ALWAYS AS (f()) STORED");
    let failed = rig.run(&format!("backup rehearse --trials 1 --way custom --way base -d {}", server.url));
    assert_eq!(failed.code, Some(1), "{failed:#?}");
    assert_says(&failed.stderr, &["custom:gzip has no result: the restored database differs"]);
    assert!(failed.stdout.contains("base") && !failed.stdout.contains("custom"), "{}", failed.stdout);
}
