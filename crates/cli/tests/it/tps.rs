//! `pgrig tps` on real servers: its numbers add up, and it says how it ended.

use std::fs;
use std::path::PathBuf;

use crate::support::{NEWEST, OLDEST, Ran, Rig, Server, observed};
use measure::Latencies;
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

fn assert_valid(document: &Value) {
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// A number of transactions that was observed.
#[track_caller]
pub(super) fn number(document: &Value, name: &str) -> u64 {
    let value = observed(document, name);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let number = value.round() as u64;
    assert!((value - number as f64).abs() < 1e-9, "{name} is {value}");
    number
}

/// The sum of a series.
fn sum(document: &Value, name: &str) -> f64 {
    let series = document["trials"][0]["series"].as_array().unwrap();
    let found = series.iter().find(|series| series["name"] == name).unwrap();
    found["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).sum()
}

fn histogram(document: &Value, name: &str) -> Latencies {
    let histograms = document["trials"][0]["histograms"].as_array().unwrap();
    let found = histograms.iter().find(|histogram| histogram["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no histogram {name}"));
    Latencies::from_base64(found["latencies"].as_str().unwrap()).unwrap()
}

/// Asserts the invariants of every run's document.
#[track_caller]
pub(super) fn assert_sound(document: &Value) {
    assert_valid(document);
    let succeeded = number(document, "succeeded");
    assert!((sum(document, "succeeded") - succeeded as f64).abs() < 0.5);
    if succeeded == 0 {
        return;
    }
    // The processors' time of all seconds is that of the run, where the system tells it.
    if cfg!(target_os = "linux") && observed(document, "elapsed") > 2.0 {
        for name in ["machine-busy", "client-cpu"] {
            assert!((sum(document, name) - observed(document, name)).abs() < 1e-6, "{name}");
        }
    }
    let latency = histogram(document, "latency");
    assert_eq!(latency.count(), succeeded);
    let p99 = latency.quantile(0.99).unwrap().as_secs_f64();
    assert!((p99 - observed(document, "latency-p99")).abs() < 1e-9);
    let percentiles = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
    let found = percentiles.map(|name| observed(document, &format!("latency-{name}")));
    assert!(found.is_sorted(), "{found:?}");
    assert!(observed(document, "elapsed") > 0.0);
}

/// A script in a file of its own.
pub(super) fn script(rig: &Rig, name: &str, text: &str) -> PathBuf {
    let path = rig.home.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

pub(super) fn filled<'r>(rig: &'r Rig, arguments: &str) -> Server<'r> {
    let server = rig.server(arguments);
    rig.done("fill --scale 1 -q");
    server
}

fn assert_adds_up(version: &str) {
    let rig = Rig::new();
    let server = filled(&rig, version);
    for options in ["", "-M extended", "-M prepared", "-C"] {
        let document = rig.document(&format!("tps -c 3 -j 2 -t 40 -r --random-seed 7 {options}"));
        assert_sound(&document);
        assert_eq!(document["status"], "done");
        assert_eq!(document["request"]["seed"], 7);
        assert_eq!(document["plan"]["scale"], 1);
        assert_eq!(number(&document, "succeeded"), 120, "{options}");
        for none in
            ["failed-serialization", "failed-deadlock", "failed-other", "skipped", "retries", "lost-clients"]
        {
            assert_eq!(number(&document, none), 0, "{none} {options}");
        }
        // The history is emptied first.
        assert_eq!(server.number("SELECT count(*) FROM pgbench_history"), 120, "{options}");
        let connections = if options == "-C" { 120 } else { 3 };
        assert_eq!(number(&document, "connections"), connections, "{options}");
        // Each of the script's commands, each time.
        let commands = document["plan"]["scripts"][0]["commands"].as_array().unwrap();
        for (index, command) in (1..).zip(commands) {
            let of_command = histogram(&document, &format!("script-1-command-{index}-latency"));
            assert_eq!(of_command.count(), 120, "{command} {options}");
        }
    }
}

#[test]
fn the_longest_sleep_is_no_fault() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    let script = rig.home.path().join("sleep.sql");
    // A byte order mark is no statement.
    fs::write(&script, "\u{feff}SELECT 1;\n\\sleep 9223372036854775807 s\nSELECT 2;\n").unwrap();
    let mut pgrig = rig.spawn(&format!("tps -n -t 1 -f {}", script.display()));
    until("it sleeps", || {
        assert!(!pgrig.has_ended(), "{:#?}", "it does not sleep");
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query = 'SELECT 1;'";
        (server.number(asleep) > 0).then_some(())
    });
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
}

#[test]
fn numbers_add_up_on_the_newest() {
    assert_adds_up(NEWEST);
}

#[test]
fn numbers_add_up_on_the_oldest() {
    assert_adds_up(OLDEST);
}

#[test]
fn scripts_are_mixed_by_weight_and_told_apart() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE seen (script int)");
    let one = script(&rig, "one.sql", "INSERT INTO seen VALUES (1);\n");
    let two = script(&rig, "two.sql", "INSERT INTO seen VALUES (:number);\n");
    let command =
        format!("tps -c 2 -t 200 -D number=2 -f {}@3 -f {}@1 --random-seed 5", one.display(), two.display());
    let document = rig.document(&command);
    assert_sound(&document);
    let counts = [1, 2].map(|number| {
        server.number(&format!("SELECT count(*) FROM seen WHERE script = {number}")).cast_unsigned()
    });
    assert_eq!(counts[0] + counts[1], 400);
    assert!(counts[0] > counts[1] && counts[1] > 0, "{counts:?}");
    for (index, count) in (1..).zip(counts) {
        assert_eq!(number(&document, &format!("script-{index}-succeeded")), count);
        assert_eq!(histogram(&document, &format!("script-{index}-latency")).count(), count);
    }
    let request = &document["request"];
    assert_eq!(request["scripts"][0]["text"], "INSERT INTO seen VALUES (1);\n");
    assert_eq!(request["scripts"][0]["weight"], 3);
    assert_eq!(request["definitions"][0]["value"], "2");
    let text = rig.done(&format!("{command} -r")).stdout;
    for told in ["one.sql", "two.sql", "INSERT INTO seen VALUES (:number);", "400 transactions"] {
        assert!(text.contains(told), "no {told} in {text}");
    }
}

#[test]
fn the_same_seed_gives_the_same_transactions() {
    let rig = Rig::new();
    let server = filled(&rig, "");
    let history = || -> Vec<(i32, i32)> {
        let rows = server.rows("SELECT aid, delta FROM pgbench_history ORDER BY ctid");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let drawn = rig.document("tps -t 20");
    let (first, seed) = (history(), &drawn["request"]["seed"]);
    let again = rig.document(&format!("tps -t 20 --random-seed {seed}"));
    assert_eq!(&again["request"]["seed"], seed);
    assert_eq!(history(), first);
    rig.done("tps -t 20 --random-seed 1");
    assert_ne!(history(), first);
}

#[test]
fn what_is_skipped_and_late_adds_up() {
    let rig = Rig::new();
    let _server = rig.server("");
    // Each takes longer than the time between two. All are due within some seconds: one of them is met in time.
    let slow = script(&rig, "slow.sql", "SELECT pg_sleep(0.05);\n");
    let document = rig.document(&format!("tps -R 30 -L 10 -t 60 -f {}", slow.display()));
    assert_sound(&document);
    let (succeeded, skipped) = (number(&document, "succeeded"), number(&document, "skipped"));
    assert!(skipped > 0);
    assert_eq!(succeeded + skipped, 60);
    // Sleeping takes longer than the limit.
    assert_eq!(number(&document, "late"), succeeded);
    assert!(observed(&document, "lag-max") > 0.0);
    assert!(observed(&document, "latency-p50") >= 0.05);
    let text = rig.done(&format!("tps -R 30 -L 10 -t 60 -f {}", slow.display())).stdout;
    for told in ["skipped", "schedule lag", "due", "late"] {
        assert!(text.contains(told), "no {told} in {text}");
    }
    let text = rig.done(&format!("tps -t 2 -f {}", slow.display())).stdout;
    assert!(text.contains("succeeded") && !text.contains("due"), "without -R nothing is due: {text}");
}

#[test]
fn what_cannot_be_serialized_is_tried_again_or_counted() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE counter AS SELECT 0::bigint AS n");
    let count =
        "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE counter SET n = n + 1;\nSELECT pg_sleep(0.001);\nEND;\n";
    let count = script(&rig, "count.sql", count);
    let document = rig.document(&format!("tps -c 4 -t 25 --max-tries 1000 -f {}", count.display()));
    assert_sound(&document);
    assert_eq!(number(&document, "succeeded"), 100);
    assert!(number(&document, "retries") >= number(&document, "retried"));
    assert!(number(&document, "retried") > 0);
    assert_eq!(server.number("SELECT n FROM counter"), 100);
    let document = rig.document(&format!("tps -c 4 -t 25 -f {}", count.display()));
    assert_sound(&document);
    let (succeeded, failed) = (number(&document, "succeeded"), number(&document, "failed-serialization"));
    assert!(failed > 0);
    assert_eq!(succeeded + failed, 100);
    assert_eq!(server.number("SELECT n FROM counter").cast_unsigned(), 100 + succeeded);
    let text = rig.done(&format!("tps -c 4 -t 25 --failures-detailed -f {}", count.display())).stdout;
    assert!(text.contains("  serialization") && text.contains("  deadlock"), "{text}");
}

#[test]
fn a_server_that_only_reads_is_measured() {
    let rig = Rig::new();
    let server = filled(&rig, "");
    server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on");
    let document = rig.document("tps -S -n -t 20");
    assert_sound(&document);
    assert_eq!(number(&document, "succeeded"), 20);
}

#[test]
fn a_script_from_standard_input() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE seen (n int)");
    let text = script(&rig, "piped.sql", "\\set n 40 + 2\nINSERT INTO seen VALUES (:n);\n");
    let mut command = rig.command("tps -t 3 -q -f -");
    let output = command.stdin(fs::File::open(text).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.number("SELECT sum(n) FROM seen"), 126);
}

#[test]
fn a_missed_threshold_is_exit_status_3() {
    let rig = Rig::new();
    let _server = filled(&rig, "");
    let json = rig.home.path().join("run.json");
    let ran =
        rig.run(&format!("tps -S -t 20 --fail-if p99<0.001us --fail-if tps>0 --json {}", json.display()));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stderr.contains("error: --fail-if 'tps>0': tps is"), "{ran:#?}");
    assert!(!ran.stderr.contains("'p99<0.001us': p99"), "{ran:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_sound(&document);
    // The results are valid.
    assert_eq!(document["status"], "done");
    assert_eq!(document["request"]["fail_if"], serde_json::json!(["p99<0.001us", "tps>0"]));
    let events = document["trials"][0]["events"].as_array().unwrap();
    let missed: Vec<_> = events
        .iter()
        .filter(|event| event["what"]["event"] == "threshold")
        .map(|event| event["what"]["missed"].as_bool().unwrap())
        .collect();
    assert_eq!(missed, [false, true]);
    let ran = rig.done("tps -S -t 20 --fail-if failed>0");
    assert!(ran.stdout.contains("failed is 0, not over 0"), "{ran:#?}");
}

#[test]
fn skipped_transactions_miss_a_latency_threshold() {
    let rig = Rig::new();
    let _server = rig.server("");
    // Most transactions are skipped; those that succeed take little more than 50 ms.
    let slow = script(&rig, "slow.sql", "SELECT pg_sleep(0.05);\n");
    let run = format!("tps -R 30 -L 10 -t 60 -f {} --fail-if", slow.display());
    let ran = rig.run(&format!("{run} p90>1000s"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    for told in [
        "missed: pgrig cannot tell if p90 is over 1000s",
        "took more than 10.0 ms: give a higher --latency-limit",
    ] {
        assert!(ran.stdout.contains(told), "no {told} in {ran:#?}");
    }
    // The table agrees.
    let row = ran.stdout.lines().find(|line| line.starts_with("with skipped")).unwrap();
    assert!(row.ends_with(">10.0"), "{row}");
    let ran = rig.run(&format!("{run} lag-max>10ms"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let ran = rig.done(&format!("{run} p90<10ms"));
    assert!(
        ran.stdout.contains("kept: p90, with ")
            && ran.stdout.contains(" skipped transactions, is more than 10.0 ms"),
        "{ran:#?}"
    );
}

pub(super) fn saved(rig: &Rig) -> Value {
    let mut files: Vec<PathBuf> =
        fs::read_dir(rig.home.path().join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().contains("-tps-"));
    files.sort();
    serde_json::from_str(&fs::read_to_string(files.last().unwrap()).unwrap()).unwrap()
}

#[test]
fn trials_follow_each_other_in_one_document() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE worked (n int)");
    let work = script(&rig, "work.sql", "INSERT INTO worked VALUES (1);\n");
    let json = rig.home.path().join("run.json");
    let ran = rig.run(&format!(
        "tps -c 2 -t 30 -r --trials 3 --fail-if p50<0.001us --fail-if tps>0 --json {} -f {}",
        json.display(),
        work.display()
    ));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM worked"), 180);
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_sound(&document);
    assert_eq!((&document["status"], &document["request"]["trials"]), (&"done".into(), &3.into()));
    let trials = document["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3);
    for trial in trials {
        assert_eq!(trial["config"], "tps");
        let succeeded =
            trial["observations"].as_array().unwrap().iter().find(|each| each["name"] == "succeeded");
        assert_eq!(succeeded.unwrap()["value"], 60.0);
    }
    // Each trial, their median, and all of them together.
    for told in ["\n1  ", "\n3  ", "\nmedian  ", "\nhighest ", " tps: 180 transactions in "] {
        assert!(ran.stdout.contains(told), "no {told:?} in {ran:#?}");
    }
    assert!(ran.stdout.contains("over 0 (3 trials together)"), "{ran:#?}");
    let events = |trial: &Value| {
        let events = trial["events"].as_array().unwrap();
        events.iter().filter(|event| event["what"]["event"] == "threshold").count()
    };
    assert_eq!(trials.iter().map(events).collect::<Vec<_>>(), [0, 0, 2]);
}

#[test]
fn the_hint_how_to_compare_runs_as_it_is_printed() {
    let rig = Rig::new();
    let _server = rig.server("");
    let one = script(&rig, "it's one.sql", "SELECT 1;\n");
    let mut command = rig.command("tps -q -n -t 100 --trials 2 --label once --fail-if tps<0 -f");
    let ran = Ran::from(command.arg(&one).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(!ran.stderr.contains("pgrig ab"), "-q leaves hints out: {ran:#?}");
    let mut command = rig.command("tps -n -t 100 --trials 2 --label once --fail-if tps<0 -f");
    let ran = Ran::from(command.arg(&one).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let hint = ran.stderr.lines().find(|line| line.contains("pgrig ab")).unwrap();
    let hint = &hint[hint.find("pgrig ab").unwrap()..];
    assert!(hint.contains("--rounds 10"), "{hint}");
    let directory = PathBuf::from(env!("CARGO_BIN_EXE_pgrig")).parent().unwrap().to_owned();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &hint.replace("--rounds 10", "--rounds 2")]);
    for (name, value) in rig.command("").get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ran = Ran::from(shell.env("PATH", path).output().unwrap());
    assert_eq!(ran.code, Some(0), "{hint}: {ran:#?}");
}

#[test]
fn an_sql_error_ends_its_client_and_says_where() {
    let rig = Rig::new();
    let _server = rig.server("");
    let wrong = script(&rig, "wrong.sql", "SELECT 1;\nSELECT nobody FROM nowhere;\n");
    let ran = rig.run(&format!("tps -c 3 -t 5 -f {}", wrong.display()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("wrong.sql:2") && ran.stderr.contains("nowhere"), "{ran:#?}");
    assert!(ran.stderr.contains("and 2 more were lost"), "{ran:#?}");
}

#[test]
fn progress_is_a_line_every_so_many_seconds() {
    let rig = Rig::new();
    let _server = filled(&rig, "");
    let ran = rig.done("tps -S -T 3 -P 1");
    let lines: Vec<&str> =
        ran.stderr.lines().filter(|line| line.contains(" s: ") && line.contains(" tps, p50 ")).collect();
    // A busy machine may be late for one of them.
    assert!((1..=4).contains(&lines.len()), "{lines:?} {ran:#?}");
    assert!(ran.stdout.contains(" tps: "), "{ran:#?}");
    let ran = rig.done("tps -S -t 10 -q -P 1");
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.contains("10 transactions"), "{ran:#?}");
}

#[test]
fn warm_up_and_ramp_are_not_counted() {
    let rig = Rig::new();
    let server = filled(&rig, "");
    let document = rig.document("tps -c 2 -T 2 --ramp 1 --warmup 1s");
    assert_valid(&document);
    let events = document["trials"][0]["events"].as_array().unwrap();
    let phases: Vec<&str> = events.iter().filter_map(|event| event["what"]["phase"].as_str()).collect();
    assert_eq!(phases, ["ramp", "warm-up", "measured"]);
    let all = server.number("SELECT count(*) FROM pgbench_history") as f64;
    assert!((sum(&document, "succeeded") - all).abs() < 0.5);
    assert!((number(&document, "succeeded") as f64) < all);
}
