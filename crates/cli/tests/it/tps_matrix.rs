//! `pgrig tps --matrix` on real servers: what it changes is in force while it measures, and put back however it ends.

use std::fs;

use crate::support::{NEWEST, OLDEST, Ran, Rig, Server, configs_in_order};
use serde_json::Value;

/// In what order does not matter here.
pub(super) const SHORT: &str = "-T 0.3 --trials 1 --random-seed 1";

pub(super) fn show(server: &Server<'_>, name: &str) -> String {
    server.row(&format!("SHOW {name}")).get(0)
}

/// Everything is as it was, and nothing is left of a journal.
#[track_caller]
pub(super) fn assert_put_back(rig: &Rig, server: &Server<'_>) {
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(show(server, name), "on", "{name}");
    }
    assert_eq!(altered(server), Vec::<String>::new());
    assert_eq!(unlogged(server), Vec::<String>::new());
    assert_eq!(journals(rig), 0);
}

/// Names of settings in postgresql.auto.conf.
fn altered(server: &Server<'_>) -> Vec<String> {
    let query = "SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'";
    server.rows(query).iter().map(|row| row.get(0)).collect()
}

fn unlogged(server: &Server<'_>) -> Vec<String> {
    let query = "SELECT relname::text FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' ORDER BY 1";
    server.rows(query).iter().map(|row| row.get(0)).collect()
}

pub(super) fn journals(rig: &Rig) -> usize {
    fs::read_dir(rig.home.path().join("journal")).map_or(0, Iterator::count)
}

/// A server that runs on its own, with pgbench's tables.
pub(super) fn filled<'a>(rig: &'a Rig, version: &str) -> Server<'a> {
    let server = rig.server(version);
    rig.done(&format!("fill --scale 1 --foreign-keys -d {}", server.url));
    server
}

/// The option that names the server.
pub(super) fn named(server: &Server<'_>) -> String {
    format!("-d {}", server.url)
}

#[track_caller]
pub(super) fn assert_says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is not in {ran:#?}");
    }
}

fn durability_by_clients(version: &str) {
    let rig = Rig::new();
    rig.done(&format!("fill --scale 1 --foreign-keys {version}"));
    let file = rig.home.path().join("out.json");
    let json = format!("--json {}", file.display());
    let ran = rig.done(&format!("tps --matrix durability --matrix clients=1,2 {SHORT} {json}"));
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(document["status"], "done");
    let mut configs = configs_in_order(&document);
    configs.sort();
    let mut expected = Vec::new();
    for durability in ["async", "dangerous", "normal", "unlogged"] {
        expected.extend([1, 2].map(|clients| format!("durability={durability} clients={clients}")));
    }
    assert_eq!(configs, expected);
    for part in ["1 client", "2 clients", "durability=unlogged", "×", "p99", "ratio: to normal"] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    let server = rig.server("");
    assert_put_back(&rig, &server);
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 100_000);
}

#[test]
fn after_a_panic_all_is_put_back() {
    let rig = Rig::new();
    let server = filled(&rig, NEWEST);
    let matrix =
        ["tps", "-c", "4", "-j", "2", "-T", "600", "--trials", "1", "--matrix", "durability=dangerous"];
    rig.panics("tps", &matrix);
    assert_put_back(&rig, &server);
}

#[test]
fn durability_is_crossed_with_clients_18() {
    durability_by_clients(NEWEST);
}

#[test]
fn durability_is_crossed_with_clients_13() {
    durability_by_clients(OLDEST);
}

#[test]
fn danger_is_refused_on_a_server_that_is_not_pgrigs_own() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let named = named(&server);
    let ran = rig.run(&format!("tps --matrix durability {SHORT} {named}"));
    assert_says(&ran, 2, &["EVERY database of that cluster", "--allow-dangerous-settings"]);
    let ran = rig.run(&format!("tps --matrix durability=normal,unlogged {SHORT} {named}"));
    assert_says(&ran, 2, &["empties these tables", "--allow-dangerous-settings"]);
    // Settings of the clients' own sessions affect nobody else.
    rig.done(&format!("tps --matrix durability=normal,async --set work_mem=1MB,2MB {SHORT} {named}"));
    rig.done(&format!("tps --matrix durability {SHORT} --allow-dangerous-settings {named}"));
    assert_put_back(&rig, &server);
}

#[test]
fn a_server_that_is_dangerous_already_is_refused() {
    let rig = Rig::new();
    rig.done("fill --scale 1 --unlogged");
    let ran = rig.run(&format!("tps --matrix durability=normal,async {SHORT}"));
    assert_says(&ran, 2, &["pgbench_", "is unlogged", "SET LOGGED"]);
    rig.done("fill --scale 1 --drop");
    let ran = rig.run(&format!("tps --matrix durability {SHORT} --profile dangerous"));
    assert_says(&ran, 2, &["the server runs with fsync = off", "--profile dangerous"]);
}

#[test]
fn after_an_error_everything_is_put_back() {
    let rig = Rig::new();
    let server = filled(&rig, NEWEST);
    // Found before anything is measured.
    let ran = rig.run(&format!("tps --matrix clients=1 --set fsync=off --set checkpoint_timeout=1s {SHORT}"));
    assert_says(
        &ran,
        2,
        &["checkpoint_timeout = 1s", "outside the valid range", "give a value that SET accepts"],
    );
    assert_put_back(&rig, &server);
    let ran = rig.run(&format!("tps --matrix work_mem=many {SHORT}"));
    assert_says(&ran, 2, &["work_mem = many", "give a value that SET accepts"]);
    assert!(!ran.stderr.contains("PGOPTIONS"), "--matrix has set it: {ran:#?}");
    // Found in the middle.
    let script = rig.home.path().join("wrong.sql");
    fs::write(&script, "SELECT * FROM nowhere;").unwrap();
    let ran = rig.run(&format!("tps --matrix clients=1 --set fsync=off -f {} {SHORT}", script.display()));
    assert_says(&ran, 2, &["nowhere", "restoring settings and tables"]);
    assert_put_back(&rig, &server);
}

#[test]
fn a_role_that_may_not_is_refused_before_anything_is_touched() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    server.execute("CREATE ROLE plain LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain");
    let url = server.url.replace("postgres@", "plain@");
    let ran = rig.run(&format!("tps --matrix durability {SHORT} --allow-dangerous-settings -d {url}"));
    assert_says(&ran, 2, &["role plain may not change", "GRANT ALTER SYSTEM ON PARAMETER"]);
    assert_put_back(&rig, &server);
}

#[test]
fn settings_that_need_a_restart_are_varied_on_pgrigs_own_server() {
    let rig = Rig::new();
    rig.done("fill --scale 1 --set shared_buffers=128MB");
    let script = rig.home.path().join("seen.sql");
    // Fails unless the server was started so.
    fs::write(&script, "SELECT 1 / (current_setting('shared_buffers') = '48MB')::int;").unwrap();
    let shared = format!("tps -f {} {SHORT}", script.display());
    rig.done(&format!("{shared} --matrix shared_buffers=48MB"));
    let ran = rig.run(&format!("{shared} --matrix shared_buffers=96MB"));
    assert_says(&ran, 2, &["division by zero"]);
    let document =
        rig.document(&format!("tps --matrix shared_buffers=48MB,96MB --matrix durability {SHORT}"));
    assert_eq!(configs_in_order(&document).len(), 8);
    let ran = rig.run(&format!("{shared} --matrix shared_buffers=1kB"));
    assert_says(&ran, 1, &["cannot be restarted with shared_buffers=1kB"]);
    let server = rig.server("");
    assert_put_back(&rig, &server);
    assert_eq!(show(&server, "shared_buffers"), "128MB");
    let ran = rig.run(&format!("tps --matrix shared_buffers=48MB {SHORT}"));
    assert_says(&ran, 2, &["shared_buffers", "pgrig server stop"]);
    let ran = rig.run(&format!("tps --matrix shared_buffers=48MB {SHORT} {}", named(&server)));
    assert_says(&ran, 2, &["shared_buffers", "pgrig server stop"]);
}

#[test]
fn own_scripts_name_the_tables_that_become_unlogged() {
    let rig = Rig::new();
    let server = filled(&rig, NEWEST);
    server.execute(
        "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (id int REFERENCES parent); \
         INSERT INTO parent VALUES (1)",
    );
    let script = rig.home.path().join("own.sql");
    // Fails in a trial with a logged child.
    fs::write(
        &script,
        "INSERT INTO child SELECT 1 / (relpersistence = 'u')::int FROM pg_class WHERE relname = 'child';",
    )
    .unwrap();
    let unlogged = format!("tps --matrix durability=unlogged -f {} {SHORT}", script.display());
    assert_says(&rig.run(&unlogged), 2, &["--tables orders,customers"]);
    let ran = rig.run(&format!("{unlogged} --tables parent"));
    assert_says(&ran, 2, &["child references it", "add child to --tables"]);
    rig.done(&format!("{unlogged} --tables parent,child"));
    assert!(server.number("SELECT count(*) FROM child") > 0);
    assert_put_back(&rig, &server);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let rig = Rig::new();
    for (arguments, told) in [
        (
            "--matrix durability=normal,async --matrix durability=unlogged",
            "axis durability is given twice: give all its values at once: --matrix durability=normal,async,unlogged",
        ),
        ("--matrix durability --set fsync=on,off", "durability sets fsync too"),
        ("--matrix clients", "clients=1,2,4"),
        ("--matrix clients=1 --fail-if p99>1ms", "--fail-if"),
        ("--matrix clients=1 --tables a", "--tables"),
        ("--trials 0", "--trials"),
    ] {
        let ran = rig.run(&format!("tps {arguments}"));
        assert_says(&ran, 2, &[told]);
    }
}

#[test]
fn the_plan_alone_touches_nothing() {
    let rig = Rig::new();
    let server = filled(&rig, NEWEST);
    let ran = rig.done("tps --matrix durability --matrix clients=1,2 --explain");
    for part in [
        "8 cells",
        "fsync, full_page_writes of the whole server",
        "synchronous_commit in pgrig's own sessions",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    assert_put_back(&rig, &server);
}
