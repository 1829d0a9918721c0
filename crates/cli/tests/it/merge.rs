//! `pgrig tps --part` and `pgrig merge` on a real server.

use std::fs;

use serde_json::Value;

use crate::support::{Rig, Server, observed};
use measure::Latencies;

fn document(path: &std::path::Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn assert_valid(document: &Value) {
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn parts_that_run_together_become_one_run() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1");
    let file = |name: &str| rig.home.path().join(name);
    let [one, two, merged] = ["1.json", "2.json", "merged.json"].map(file);
    let start = |part: u32, file: &std::path::Path| {
        rig.spawn(&format!("tps -n -N -r -c 2 -T 6 --part {part}/2 --label both --json {}", file.display()))
    };
    let running = [start(1, &one), start(2, &two)];
    for ran in running.map(crate::support::Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let ran = rig.done(&format!("merge both -o {} --label merged", merged.display()));
    assert!(ran.stdout.contains("by 4 clients in 2 parts") && ran.stdout.contains("cut before"), "{ran:#?}");
    let parts = [document(&one), document(&two)];
    let whole = document(&merged);
    parts.iter().chain([&whole]).for_each(assert_valid);

    // The history has each transaction's time on the server's clock: the witness.
    let began = whole["started_at"].as_str().unwrap();
    let elapsed = observed(&whole, "elapsed");
    assert!((2.5..6.5).contains(&elapsed), "{elapsed}");
    let query = format!(
        "SELECT count(*) FROM pgbench_history WHERE mtime >= '{began}'::timestamptz \
         AND mtime < '{began}'::timestamptz + {:.0} * interval '1 second'",
        elapsed.round()
    );
    let (counted, seen) = (observed(&whole, "succeeded"), server.number(&query) as f64);
    // A second's counts are taken some milliseconds after it.
    assert!((counted - seen).abs() <= 0.1 * seen + 20.0, "{counted} counted, {seen} in the history");
    assert!(counted <= parts.iter().map(|part| observed(part, "succeeded")).sum());
    let histograms = whole["trials"][0]["histograms"].as_array().unwrap();
    let count = |name: &str| {
        let found = histograms.iter().find(|histogram| histogram["name"] == name).unwrap();
        Latencies::from_base64(found["latencies"].as_str().unwrap()).unwrap().count() as f64
    };
    assert!((count("latency") - counted).abs() < 0.5);
    assert!(count("script-1-command-5-latency") > 0.0);

    // It is a run like others.
    assert!(rig.done("runs list").stdout.contains("merged"));
    let page = file("merged.html");
    rig.done(&format!("report merged -o {}", page.display()));
    let compared = rig.run(&format!("compare merged {} --anyway", one.display()));
    assert!(compared.code == Some(0) && compared.stdout.contains("tps"), "{compared:#?}");
    // So are redacted parts.
    rig.done(&format!("report both --redact -o {}", page.display()));
    rig.done(&format!("merge {} -o {}", page.display(), file("again.json").display()));
    assert_eq!(
        document(&file("again.json"))["trials"][0]["histograms"].as_array().map(Vec::len),
        Some(histograms.len())
    );

    let partial = rig.run(&format!("merge {}", one.display()));
    assert_eq!(partial.code, Some(1), "{partial:#?}");
    assert!(partial.stderr.contains("part 2 is missing"), "{partial:#?}");
    assert!(partial.stdout.contains(" in 1 part\n"), "{partial:#?}");
    let twice = rig.run(&format!("merge both {}", two.display()));
    assert!(twice.code == Some(2) && twice.stderr.contains("given twice"), "{twice:#?}");
    let plain = rig.document("tps -n -S -t 5");
    let refused = rig.run(&format!("merge both {}", plain["id"].as_str().unwrap()));
    assert!(refused.code == Some(2) && refused.stderr.contains("measured without --part"), "{refused:#?}");
    let prepared = rig.run("tps -S -t 5 --part 1/2");
    assert!(prepared.code == Some(2) && prepared.stderr.contains("-n"), "{prepared:#?}");
}

/// The history without the times and the order of transactions.
fn history(server: &Server<'_>) -> String {
    let row = "concat_ws(',', tid, bid, aid, delta)";
    let query = format!("SELECT count(*) || md5(string_agg({row}, ';' ORDER BY {row})) FROM pgbench_history");
    server.rows(&query)[0].get(0)
}

#[test]
fn clients_of_parts_make_the_transactions_of_one_process() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1");
    rig.done("tps -N -c 8 -t 10 --random-seed 7");
    let whole = history(&server);
    server.execute("TRUNCATE pgbench_history");
    let start = |part| rig.spawn(&format!("tps -n -N -c 2 -t 10 --random-seed 7 --part {part}/4"));
    for ran in [1, 2, 3, 4].map(start).map(crate::support::Running::end) {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    assert!(whole.starts_with("80"), "{whole}");
    assert_eq!(history(&server), whole);
}
