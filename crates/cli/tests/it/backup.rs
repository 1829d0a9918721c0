//! `pgrig backup`: exit status, the document, and what is left after Ctrl-C and kill -9.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use testkit::{Need, assert_says, require, until};

use crate::support::{Ran, Rig, Running};

/// Processes that name this directory.
pub(crate) fn processes_of(directory: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(directory) && !line.starts_with(env!("CARGO_BIN_EXE_pgrig"))).collect()
}

/// As [`assert_ends_by_signals_when`], when the run has said this.
pub(crate) fn assert_ends_by_signals(rig: &Rig, line: &str, says: &str) {
    assert_ends_by_signals_when(rig, |told| rig.spawn_telling(line, told), |told| told.contains(says));
}

/// Interrupts a run by SIGINT, kills the next one by SIGKILL, and interrupts another one, each when its condition on the text that it has
/// said holds. No process is left, and no file after an interruption. The last run removes the files of the one that was killed.
pub(crate) fn assert_ends_by_signals_when(
    rig: &Rig,
    start: impl Fn(&Path) -> Running,
    is_ready: impl Fn(&str) -> bool,
) {
    let (own, told) = (rig.home.path().join("backup"), rig.home.path().join("told"));
    for signal in [Signal::SIGINT, Signal::SIGKILL, Signal::SIGINT] {
        let running = start(&told);
        until("it has come so far", || fs::read_to_string(&told).is_ok_and(|told| is_ready(&told)));
        running.signal(signal);
        let ran = running.end();
        // The kernel ends programs and servers of a killed one.
        until("its processes end", || processes_of(own.to_str().unwrap()).is_empty());
        let is_killed = signal == Signal::SIGKILL;
        assert_eq!(ran.code, (!is_killed).then_some(130), "{ran:#?}");
        assert_eq!(own.exists(), is_killed, "{ran:#?}");
    }
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
    let many = format!("backup rehearse --trials 1000 --way custom --way base -d {}", server.url);
    assert_ends_by_signals(&rig, &many, "round 2");

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
    for trial in document["trials"].as_array().unwrap() {
        let events = trial["events"].as_array().unwrap();
        let beside =
            &events.iter().find(|event| event["what"]["event"] == "beside").unwrap()["what"]["beside"];
        assert!(beside["baseline"]["lookups"].as_u64() >= Some(49), "{beside}");
    }
    // Only the first trial of the base backup reads the other databases.
    let trials = document["trials"].as_array().unwrap().iter().filter(|trial| trial["config"] == other);
    let read = trials.map(|trial| {
        let events = trial["events"].as_array().unwrap();
        let verified = events.iter().find(|event| event["what"]["event"] == "verified").unwrap();
        let names = verified["what"]["verified"]["other_databases"].as_array().unwrap();
        names.iter().any(|name| name == "template1")
    });
    assert_eq!(read.collect::<Vec<_>>(), [true, false]);
    let read = rig.done("runs list --verb backup");
    assert_says(&read.stdout, &["custom:gzip=1,jobs=2, base-tar"]);
    let report = rig.home.path().join("report.html");
    rig.done(&format!("report latest -o {}", report.display()));

    let of_rto = |rto: &str| {
        rig.run(&format!("backup rehearse --trials 1 --no-probe --way plain --rto {rto} -d {}", server.url))
    };
    let kept = of_rto("2h");
    assert_eq!(kept.code, Some(0), "{kept:#?}");
    assert_says(&kept.stdout, &["  meets: plain:none ("]);
    assert!(!kept.stdout.contains("lookups"), "{kept:#?}");
    let missed = of_rto("1ms");
    assert_eq!(missed.code, Some(3), "{missed:#?}");
    assert_says(&missed.stdout, &["  misses: plain:none ("]);
    assert_says(&missed.stderr, &["no way restores this database within"]);

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
    assert_says(&failed.stdout, &["lookups by primary key during each backup"]);
    assert_says(&failed.stdout, &[" read in the restored server, and not compared with the original"]);
    assert!(failed.stdout.contains("base") && !failed.stdout.contains("custom"), "{}", failed.stdout);
}

#[test]
fn a_check_says_whether_a_backup_is_whole() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    server.execute("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 3000) i");
    let path = |name: &str| rig.home.path().join(name).display().to_string();
    let made = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).env("PGAPPNAME", "test").status().unwrap();
        assert!(status.success(), "{program} {arguments:?}");
    };
    let (dump, base) = (path("shop.dump"), path("base"));
    made("pg_dump", &["--format=custom", "--file", &dump, &server.url]);
    made("pg_basebackup", &["--checkpoint=fast", "--pgdata", &base, "--dbname", &server.url]);
    let check = |path: &str, more: &[&str]| rig.run(&format!("backup check {path} {}", more.join(" ")));

    let found = check(&dump, &[]);
    assert_eq!(found.code, Some(0), "{found:#?}");
    assert_says(
        &found.stdout,
        &["no damage found: dump in custom format", "3,000 rows in 1 table;", "the table of contents"],
    );
    let whole = check(&base, &["--json", "-"]);
    assert_eq!(whole.code, Some(0), "{whole:#?}");
    let document: serde_json::Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!((&document["verdict"], &document["damages"]), (&"whole".into(), &serde_json::json!([])));
    assert_says(&whole.stderr, &["whole: base backup as plain files, of PostgreSQL 13"]);

    let bytes = fs::read(&dump).unwrap();
    fs::write(&dump, &bytes[..bytes.len() * 6 / 10]).unwrap();
    // pg_restore lists the contents of what is left.
    made("pg_restore", &["--list", "--file=/dev/null", &dump]);
    let json = path("found.json");
    let damaged = check(&dump, &["--json", &json]);
    assert_eq!(damaged.code, Some(3), "{damaged:#?}");
    assert_says(&damaged.stdout, &["damaged: dump in custom format", "shop.dump, byte", "it is cut off"]);
    assert_says(&damaged.stderr, &["shop.dump is damaged"]);
    assert_says(&fs::read_to_string(json).unwrap(), &["\"verdict\": \"damaged\""]);

    let empty = path("empty.dump");
    fs::write(&empty, "").unwrap();
    let found = check(&empty, &[]);
    assert_eq!(found.code, Some(3), "{found:#?}");
    assert_says(&found.stdout, &["damaged: a backup of unknown kind\n", "it is empty"]);

    let other = check(rig.home.path().to_str().unwrap(), &[]);
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert_says(&other.stderr, &["is not a directory of a backup"]);
    // No home and no server is needed, and nothing is left behind.
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgrig"))
        .args(["backup", "check", "-"])
        .env("PGRIG_HOME", "/nonexistent")
        .env("PGHOST", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_says(&String::from_utf8_lossy(&output.stdout), &["no damage found"]);

    // Standard input that never ends.
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_pgrig"));
    waiting.args(["backup", "check", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = waiting.spawn().unwrap();
    // Open until the check has ended.
    let mut input = waiting.stdin.take().unwrap();
    input.write_all(&bytes[..100]).unwrap();
    until("it handles signals", || handles(waiting.id(), Signal::SIGTERM));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(waiting.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    drop(input);
}

/// Whether a process has a handler for a signal.
fn handles(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal as i32 - 1) & 1 == 1
}

/// The manifest comes last in a tar file.
#[test]
fn a_base_backup_from_standard_input_is_to_be_stored_first() {
    let rig = Rig::new();
    let mut header = b"backup_label".to_vec();
    header.resize(1024, 0);
    let file = rig.home.path().join("base.tar");
    fs::write(&file, header).unwrap();
    let mut command = rig.command("backup check -");
    command.stdin(fs::File::open(&file).unwrap());
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(
        &ran.stderr,
        &["standard input is a base backup as a tar file", "store it in a file", "give the path of that"],
    );
}
