//! `pgrig merge` of the parts of real fills. The server counts the rows as the witness.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::victims::Ledger;
use crate::support::{Ran, Rig, Running, Server, observed};
use testkit::until_some as until;

const LEDGER: &str = "pgrig_chunks_pgbench_accounts";
const SMALL: &str = "--rows 434567 --chunk 400kB --streams 1";

fn assert_refused(ran: &Ran, code: i32, texts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for text in texts {
        assert!(ran.stderr.contains(text), "no {text} in {ran:#?}");
    }
}

/// Runs these parts at once, each with the label and a document `NAME-I.json`.
fn fill(rig: &Rig, options: &str, name: &str, numbers: &[u32], of: u32) -> Vec<Ran> {
    let start = |number: &u32| start(rig, options, name, *number, of);
    let running: Vec<Running> = numbers.iter().map(start).collect();
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:#?}");
    ran
}

fn start(rig: &Rig, options: &str, name: &str, number: u32, of: u32) -> Running {
    let file = path(rig, name, number);
    rig.spawn(&format!("fill {options} --part {number}/{of} --label {name} --json {file}"))
}

fn path(rig: &Rig, name: &str, number: u32) -> String {
    rig.home.path().join(format!("{name}-{number}.json")).display().to_string()
}

/// The file of a run that was killed.
fn unfinished(rig: &Rig) -> String {
    let files = fs::read_dir(rig.home.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let is_unfinished = |file: &std::path::PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("\"unfinished\""))
    };
    files.filter(|file| file.is_file()).find(is_unfinished).unwrap().display().to_string()
}

/// Merges, and returns the document.
fn merged(rig: &Rig, words: &str, code: i32) -> (Ran, Value) {
    let file = rig.home.path().join("merged.json");
    let ran = rig.run(&format!("merge {words} -o {}", file.display()));
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    (ran, document)
}

fn has_note(document: &Value, text: &str) -> bool {
    let notes = document["notes"].as_array().unwrap();
    notes.iter().any(|note| note["text"].as_str().unwrap().contains(text))
}

/// Counts that are the same.
#[track_caller]
fn assert_same(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.5, "{found} instead of {expected}");
}

/// Rows of the table, and the bytes of all of pgbench's tables, as the server counts them.
fn counted(server: &Server<'_>, schema: &str) -> (f64, f64) {
    let rows = server.number(&format!("SELECT count(*) FROM {schema}.pgbench_accounts"));
    let bytes = server.number(&format!(
        "SELECT sum(pg_table_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace"
    ));
    (rows as f64, bytes as f64)
}

/// The series has as many rows as the server counted, and each point a second.
fn assert_series(trial: &Value, rows: f64) {
    let series =
        trial["series"].as_array().unwrap().iter().find(|series| series["name"] == "rows-sent").unwrap();
    let points = series["points"].as_array().unwrap();
    let sum: f64 = points.iter().map(|point| point[1].as_f64().unwrap()).sum();
    assert!((sum - rows).abs() < 0.01, "{sum} instead of {rows}");
    for (second, point) in points.iter().enumerate() {
        let at = point[0].as_f64().unwrap();
        assert!(at > second as f64 && at <= second as f64 + 1.0, "{points:?}");
    }
}

fn merges_as_one_process(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    fill(&rig, SMALL, "parts", &[1, 2, 3, 4], 4);
    let (ran, document) = merged(&rig, "parts --label whole", 0);
    assert!(ran.stdout.contains("434,567 rows in ") && ran.stdout.contains("by 4 parts"), "{ran:#?}");
    let (rows, heap) = counted(&server, "public");
    assert_same(observed(&document, "rows"), rows);
    assert_same(observed(&document, "heap"), heap);
    let trial = &document["trials"][0];
    assert_series(trial, rows);
    // Each step once.
    let names: Vec<&str> =
        trial["observations"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for step in ["create", "generate", "vacuum", "primary-keys", "total", "wal", "client-cpu"] {
        assert_eq!(names.iter().filter(|name| **name == step).count(), 1, "{step} in {names:?}");
    }
    // One process writes the same rows.
    let one = rig.document(&format!("fill --schema single {SMALL} --method copy"));
    assert_same(observed(&document, "rows"), observed(&one, "rows"));
    assert_same(observed(&document, "index"), observed(&one, "index"));
    let compared = rig.run(&format!("compare {} whole --anyway", one["id"].as_str().unwrap()));
    assert!(compared.code == Some(0) && compared.stdout.contains("total"), "{compared:#?}");
    let page = rig.home.path().join("whole.html");
    rig.done(&format!("report whole -o {}", page.display()));
    rig.done(&format!("report parts --redact -o {}", page.display()));
    let again = rig.run(&format!("merge {} -o -", page.display()));
    let again: Value =
        serde_json::from_str(&again.stdout).unwrap_or_else(|error| panic!("{error}: {again:#?}"));
    assert_eq!(again["trials"], document["trials"]);
    rig.done("server stop");
}

#[test]
fn parts_of_a_fill_become_one_run() {
    merges_as_one_process("--pg-version 18");
}

#[test]
fn so_they_do_on_the_oldest_version() {
    merges_as_one_process("--pg-version 13");
}

#[test]
fn killed_parts_are_missed_and_what_is_no_part_is_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    let running: Vec<Running> = [1, 2].map(|number| start(&rig, SMALL, "first", number, 3)).into();
    let mut ledger = Ledger::of(&rig, &server.url, LEDGER);
    until("chunks are loaded", || ledger.hold(8));
    // Both parts.
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";
    until("both want to load more", || (server.number(waits) >= 2).then_some(()));
    running[1].signal(Signal::SIGKILL);
    ledger.release();
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert_eq!((ran[0].code, ran[1].code), (Some(0), None), "{ran:#?}");
    let killed = unfinished(&rig);
    assert_refused(
        &rig.run(&format!("merge first {killed}")),
        2,
        &["is unfinished", "run part 2 again with the same options (--part 2/3)"],
    );
    // Alone.
    let (ran, document) = merged(&rig, "first", 1);
    assert!(ran.stderr.contains("parts 2, 3 are missing") && document["status"] == "failed", "{ran:#?}");

    fill(&rig, SMALL, "again", &[2], 3);
    fill(&rig, SMALL, "later", &[3], 3);
    let (_, document) = merged(&rig, "first again later", 0);
    let (rows, _) = counted(&server, "public");
    let lost = rows - observed(&document, "rows");
    assert!((0.0..rows / 3.0).contains(&lost), "{lost} of {rows}");
    if lost > 0.0 {
        assert!(has_note(&document, "of 434,567 rows: other runs loaded the rest"), "{document:#}");
    }
    assert!(has_note(&document, "there is no rate"), "{document:#}");

    // A part that finds nothing to do.
    server.execute("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history");
    let three = "--rows 60000";
    fill(&rig, three, "empty", &[3], 5);
    fill(&rig, three, "empty", &[1, 2, 4, 5], 5);
    let (_, document) = merged(&rig, "empty", 0);
    assert_same(observed(&document, "rows"), counted(&server, "public").0);
    assert!(has_note(&document, "loaded no rows"), "{document:#}");

    let [one, two] = [1, 2].map(|number| path(&rig, "empty", number));
    assert_refused(&rig.run(&format!("merge {one} {two} {one}")), 2, &["given twice"]);
    // The same tables, filled again.
    server.execute("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history");
    fill(&rig, three, "second", &[1, 2, 3, 4, 5], 5);
    let second = path(&rig, "second", 2);
    assert_refused(&rig.run(&format!("merge {one} {second}")), 2, &["are parts of different fills"]);
    let first = path(&rig, "first", 1);
    assert_refused(
        &rig.run(&format!("merge {second} {first}")),
        2,
        &["request.amount.rows", "request.part.of: 3 → 5", "different fills"],
    );
    let whole = rig.document("fill --schema whole --rows 1000");
    let id = whole["id"].as_str().unwrap();
    assert_refused(&rig.run(&format!("merge {one} {id}")), 2, &["was filled without --part"]);
    let measured = rig.document("tps -n -S -t 5");
    let id = measured["id"].as_str().unwrap();
    assert_refused(&rig.run(&format!("merge {one} {id}")), 2, &["is a run of fill, and"]);
    // Of an older pgrig.
    let mut older: Value = serde_json::from_str(&fs::read_to_string(&one).unwrap()).unwrap();
    older["trials"][0]["events"] = Value::Array(Vec::new());
    let file = rig.home.path().join("older.json");
    fs::write(&file, older.to_string()).unwrap();
    assert_refused(
        &rig.run(&format!("merge {} {two}", file.display())),
        2,
        &["has no reading of the server's clock: an older pgrig wrote it", "repeat the whole fill"],
    );
}

#[test]
fn parts_of_a_schema_become_one_run() {
    let rig = Rig::new();
    let server = rig.server("");
    let file = rig.home.path().join("shop.sql");
    let shop = "CREATE TABLE customers (id int PRIMARY KEY, email text UNIQUE NOT NULL);
        CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customers, at timestamptz NOT NULL);
        CREATE TABLE flags (code char(2));";
    fs::write(&file, shop).unwrap();
    let options = format!(
        "--ddl {} --rows customers=20000,orders=5*customers,flags=3 --chunk 300kB --streams 1",
        file.display()
    );
    fill(&rig, &options, "shop", &[1, 2, 3], 3);
    let (ran, document) = merged(&rig, "shop", 0);
    assert!(ran.stdout.contains("120,003 rows in ") && ran.stdout.contains("by 3 parts"), "{ran:#?}");
    let trials = document["trials"].as_array().unwrap();
    let mut all = [0.0, 0.0, 0.0];
    for trial in &trials[..trials.len() - 1] {
        let name = trial["config"].as_str().unwrap();
        let of = |name: &str| {
            let found = trial["observations"].as_array().unwrap().iter().find(|one| one["name"] == name);
            found.unwrap()["value"].as_f64().unwrap()
        };
        let query =
            format!("SELECT count(*), pg_table_size('{name}'), pg_indexes_size('{name}') FROM {name}");
        let row = server.row(&query);
        for (at, observation) in ["rows", "heap", "index"].into_iter().enumerate() {
            let seen = row.get::<_, i64>(at) as f64;
            assert!(
                (of(observation) - seen).abs() < 0.5,
                "{observation} of {name}: {} instead of {seen}",
                of(observation)
            );
            all[at] += seen;
        }
        assert_series(trial, of("rows"));
    }
    assert_eq!((trials.len(), &trials[3]["config"]), (4, &Value::from("all tables")));
    let sums = &trials[3]["observations"].as_array().unwrap();
    for (at, name) in ["rows", "heap", "index"].into_iter().enumerate() {
        let found = sums.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(found["value"].as_f64(), Some(all[at]), "{name}");
    }
    assert_series(&trials[3], all[0]);
    let page = rig.home.path().join("shop.html");
    rig.done(&format!("report latest:fill -o {}", page.display()));
    // Parts of another kind.
    fill(&rig, "--rows 50000", "bench", &[1, 2, 3], 3);
    let [one, other] = [path(&rig, "shop", 1), path(&rig, "bench", 2)];
    assert_refused(
        &rig.run(&format!("merge {one} {other}")),
        2,
        &[
            "differ in kind: a fill of a schema → a fill of pgbench's tables or of one table",
            "different fills",
        ],
    );
}
