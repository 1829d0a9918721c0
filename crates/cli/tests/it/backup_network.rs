//! `pgrig backup rehearse --network`: bytes through a Unix socket and by TCP, beside the sizes of the files that they become; those of a
//! recovery and of other tools.

use std::fs;
use std::process::Command;

use serde_json::Value;
use testkit::{CLIENTS_RELEASE, Need, assert_says, clients, require, templates_of};

use crate::support::{Ran, Rig};

/// 40 MB of rows that compress well.
const ROWS: &str =
    "CREATE TABLE t AS SELECT i, repeat(md5((i % 100)::text), 8) AS v FROM generate_series(1, 150000) i";

/// The observations of this name in the trials of a way; none where a trial has no such observation.
fn observed(document: &Value, way: &str, name: &str) -> Vec<Option<f64>> {
    let trials = document["trials"].as_array().unwrap().iter().filter(|trial| trial["config"] == way);
    let value = |trial: &Value| {
        let observations = trial["observations"].as_array().unwrap();
        observations.iter().find(|one| one["name"] == name)?["value"].as_f64()
    };
    trials.map(value).collect()
}

/// The observation of this name in the last trial of a way.
fn last(document: &Value, way: &str, name: &str) -> f64 {
    observed(document, way, name).pop().flatten().unwrap_or_else(|| panic!("{way}, {name}: {document:#}"))
}

#[test]
fn bytes_are_those_of_the_data_and_only_the_server_can_make_them_fewer() {
    if !require(Need::Clients17) {
        return;
    }
    let _ = templates_of(CLIENTS_RELEASE);
    let rig = Rig::new();
    let server =
        rig.server(&format!("--pg-version {CLIENTS_RELEASE} --profile stock --tcp --set autovacuum=off"));
    server.execute(ROWS);
    let socket: String = server.row("SHOW unix_socket_directories").get(0);
    let port: String = server.row("SHOW port").get(0);
    let unix = format!("postgresql://postgres@/postgres?host={}&port={port}", socket.replace('/', "%2F"));
    let line = format!("backup rehearse --network --no-probe --bin {}", clients().display());

    let ways =
        ["plain:none", "plain:gzip=1", "directory:none,jobs=2", "base-tar:none", "base-tar:server-gzip=1"];
    let options = ways.map(|way| format!("--way {way}")).join(" ");
    let document = rig.document(&format!("{line} -q --trials 1 {options} -d {unix}"));
    assert_eq!((&document["request"]["network"], &document["plan"]["network"]), (&true.into(), &true.into()));
    assert!(!rig.home.path().join("backup").exists());
    for way in ways {
        let [received, sent] = ["network-received", "network-sent"].map(|name| last(&document, way, name));
        assert!(sent > 0.0 && sent < received / 10.0, "{way}: {received} and {sent}");
    }

    // The file of pg_dump, without pgrig.
    let file = rig.home.path().join("t.sql");
    let status = Command::new(clients().join("pg_dump")).arg("--file").arg(&file).arg(&unix).status();
    assert!(status.unwrap().success());
    let written = fs::metadata(&file).unwrap().len() as f64;
    let received = |way: &str| last(&document, way, "network-received");
    let plain = received("plain:none");
    assert!(plain > written && plain < written * 1.1, "{plain} of {written}");
    // pg_dump compresses after it has received the rows.
    for way in ["plain:gzip=1", "directory:none,jobs=2"] {
        let ratio = received(way) / plain;
        assert!((ratio - 1.0).abs() < 0.02, "{way}: {ratio}");
    }
    let [whole, compressed] = ["base-tar:none", "base-tar:server-gzip=1"].map(received);
    // A segment of WAL, which the server does not compress, more or less.
    let files = last(&document, "base-tar:none", "size");
    assert!(whole > files * 0.7 && whole < files * 1.3, "{whole} of {files}");
    assert!(compressed < whole * 0.6, "{compressed} of {whole}");

    assert!(server.url.contains("@127.0.0.1:"), "{}", server.url);
    let json = rig.home.path().join("run.json");
    let ran =
        rig.done(&format!("{line} --trials 2 --way plain:none -d {} --json {}", server.url, json.display()));
    let is_header = |line: &str| line.starts_with("way ") && line.ends_with(" network");
    assert!(ran.stdout.lines().any(is_header), "{}", ran.stdout);
    assert_says(&ran.stdout, &["network: bytes from the server and to the server"]);
    assert_says(
        &ran.stderr,
        &["counts network bytes: one more backup in each way", "counting network bytes: plain:none"],
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let over_tcp = observed(&document, "plain:none", "network-received");
    let [None, Some(over_tcp)] = over_tcp[..] else { panic!("{over_tcp:?}") };
    assert!((over_tcp / plain - 1.0).abs() < 0.01, "{over_tcp} by TCP, {plain} through a Unix socket");
}

#[test]
fn the_plan_of_a_recovery_tells_of_one_more_load() {
    let rig = Rig::new();
    if !require(Need::Clients17) {
        return;
    }
    let bin = clients().display().to_string();
    let line =
        format!("backup rehearse --network --explain --size 1TB --load simple-update -R 500 --bin {bin}");
    let ran = rig.done(&format!("{line} --way custom --way pitr"));
    assert_says(
        &ran.stdout,
        &["counts network bytes: one more backup in each way, and for recoveries one more load"],
    );
    let ran = rig.done(&format!("{line} --way custom"));
    assert!(!ran.stdout.contains("one more load"), "{ran:#?}");
}

#[test]
fn bytes_of_a_recovery_are_those_of_the_base_backup_and_of_the_wal() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let document = rig.document(
        "backup rehearse -q --network --size 60MB --up-to 10MB --pg-version 13 --trials 1 --way pitr --load simple-update -R 200 -T 2 -c 2",
    );
    let [base, wal] = ["base-size", "wal-size"].map(|name| last(&document, "pitr", name));
    let [received, sent] = ["network-received", "network-sent"].map(|name| last(&document, "pitr", name));
    // The base backup alone is less; its segment of WAL and that of the load are received whole, or twice.
    assert!(
        received > base * 0.5 + wal * 0.5 && received < (base + wal) * 2.0,
        "{received} of {base} and {wal}"
    );
    assert!(sent > 0.0 && sent < received / 10.0, "{sent}");
    assert!(!rig.home.path().join("backup").exists());
}

/// One of them uses the URL, one libpq's variables, and one a configuration of its own.
#[test]
fn bytes_of_another_tool_are_those_of_its_connections() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    server.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) i");
    let socket: String = server.row("SHOW unix_socket_directories").get(0);
    let port: String = server.row("SHOW port").get(0);
    let backup = "pg_basebackup --checkpoint=fast --pgdata={backup}/base";
    let json = rig.home.path().join("run.json");
    let mut command = rig.command("backup rehearse --network --no-probe --trials 1");
    command.args(["-d", &server.url, "--json", json.to_str().unwrap()]);
    for (name, backup) in [
        ("by-url", format!("unset PGHOST PGPORT; {backup} --dbname={{url}}")),
        ("by-variables", backup.to_owned()),
        ("by-itself", format!("PGHOST='{socket}' PGPORT={port} {backup}")),
    ] {
        let restore = "cp -a {backup}/base/. {restore}";
        command.args(["--tool-name", name, "--tool-backup", &backup, "--tool-restore", restore]);
    }
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stdout, &["other path (0 B)", "other path: most of the backup came by another path"]);
    assert_eq!(ran.stdout.matches("other path (").count(), 1, "{ran:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    for name in ["by-url", "by-variables"] {
        let [received, size] = ["network-received", "size"].map(|value| last(&document, name, value));
        // The segment of WAL has 16 MiB in the backup, however little of it came.
        assert!(received > size * 0.5 && received < size * 1.3, "{name}: {received} of {size}");
    }
    assert_eq!(last(&document, "by-itself", "network-received").to_string(), "0");
}
