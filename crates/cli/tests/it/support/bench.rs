//! Code that the tests of `pgrig testdb bench` share.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pgserver::Home;
use serde_json::Value;

use super::{Ran, Rig, Server, configs_in_order};

/// Options for a short bench, in tests that do not check its measurements.
pub const SHORT: &str = "--trials 1 --no-warm-up";

pub const SCHEMA: &str = "CREATE TABLE parent (id int PRIMARY KEY); \
                      CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent); \
                      INSERT INTO parent SELECT generate_series(1, 50);";

pub fn schema(rig: &Rig) -> PathBuf {
    let path = rig.home.path().join("schema.sql");
    fs::write(&path, SCHEMA).unwrap();
    path
}

/// A test suite: a script of the shell, which finds its directory in $HERE.
pub fn suite(rig: &Rig, text: &str) -> String {
    let path = rig.home.path().join("suite");
    fs::write(&path, format!("#!/bin/sh\nHERE={}\n{text}\n", rig.home.path().display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A suite that notes what it sees of its database, and writes to it.
pub fn seeing(rig: &Rig) -> String {
    suite(
        rig,
        "set -e\n\
         psql -XqAt -F ' ' >> $HERE/seen -c \"SELECT current_setting('fsync'), current_setting('full_page_writes'), \
         current_setting('synchronous_commit'), \
         (SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relpersistence = 'u'), \
         current_setting('data_directory') LIKE '/dev/shm/%', (SELECT count(*) FROM parent), \
         current_database() LIKE 'pgrig_testdb_bench_%'\"\n\
         psql -XqAt \"$DATABASE_URL\" -c 'INSERT INTO parent VALUES (1000)' \
         -c \"SELECT current_database() = '$PGDATABASE'\" >> $HERE/same",
    )
}

/// The distinct lines that the suites noted.
pub fn seen(rig: &Rig) -> BTreeSet<String> {
    let text = fs::read_to_string(rig.home.path().join("seen")).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

pub fn configs(document: &Value) -> BTreeSet<String> {
    configs_in_order(document).into_iter().collect()
}

pub fn journals(rig: &Rig) -> usize {
    fs::read_dir(rig.home.path().join("journal")).map_or(0, Iterator::count)
}

/// Where a server in memory would be.
pub fn in_memory(rig: &Rig) -> PathBuf {
    Home::at(rig.home.path()).unwrap().twin(Path::new("/dev/shm")).unwrap().root().to_owned()
}

pub fn databases(server: &Server<'_>) -> Vec<String> {
    server.rows("SELECT datname::text FROM pg_database ORDER BY 1").iter().map(|row| row.get(0)).collect()
}

/// No database, no setting, no journal, no server in memory.
#[track_caller]
pub fn assert_nothing_left(rig: &Rig, server: &Server<'_>) {
    let left: Vec<String> =
        databases(server).into_iter().filter(|name| name.starts_with("pgrig_testdb")).collect();
    assert_eq!(left, Vec::<String>::new());
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(server.row(&format!("SHOW {name}")).get::<_, String>(0), "on", "{name}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"), 0);
    assert_eq!(journals(rig), 0);
    assert!(!in_memory(rig).exists());
}

#[track_caller]
pub fn assert_says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is not in {ran:#?}");
    }
}

/// A run document, which fits the schema.
pub fn read(path: &Path) -> Value {
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    document
}

/// Runs a bench to its good end. What it printed, and its document.
pub fn bench(rig: &Rig, arguments: &str, command: &str) -> (Ran, Value) {
    let file = rig.home.path().join("out.json");
    let ran = rig.done(&format!("testdb bench {arguments} --json {} -- {command}", file.display()));
    (ran, read(&file))
}

/// A server of somebody else's with a template, and what names it.
pub fn named<'a>(rig: &'a Rig, version: &str) -> (Server<'a>, String) {
    let server = rig.server(version);
    server.execute("CREATE DATABASE \"my shop\"");
    let url = server.url.replace("/postgres?", "/my%20shop?");
    let client = rig.connect(&url);
    rig.block_on(client.batch_execute(SCHEMA)).unwrap();
    (server, url)
}

/// While fsync is off nothing is dropped, and once it is on again all is forced to disk before anything else.
#[track_caller]
pub fn assert_forced_out(rig: &Rig, times: usize) {
    let log = fs::read_to_string(rig.data().parent().unwrap().join("log")).unwrap();
    let (mut is_off, mut is_owed, mut offs) = (false, false, 0);
    for line in log.lines() {
        if line.contains("parameter \"fsync\" changed to \"off\"") {
            (is_off, offs) = (true, offs + 1);
        } else if line.contains("parameter \"fsync\" removed from configuration file") {
            (is_off, is_owed) = (false, true);
        } else if line.contains("statement: CHECKPOINT") {
            is_owed = is_off;
        } else if line.contains("statement: DROP DATABASE") {
            assert!(!is_off && !is_owed, "{line} in\n{log}");
        }
    }
    assert_eq!((is_off, is_owed, offs), (false, false, times), "{log}");
}
