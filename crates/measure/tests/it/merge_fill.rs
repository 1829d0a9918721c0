//! Merging the parts of a fill: rows are added whenever they came, and runs that are no parts of one fill are refused.

use measure::merge::{Merged, merge};
use measure::{Event, FORMAT_VERSION, Note, Run, Series, Status, Trial, Unit, figures};
use serde_json::{Value, json};

use crate::support::environment;

/// The server's time at which the first part began.
const BEGAN: f64 = 1_790_000_000.25;
const ROWS: u64 = 1000;

fn clock(at: f64, time: f64) -> Event {
    let what = json!({ "event": "clock", "time": time, "error": 0.0005, "started": 7.5, "database": 5 });
    Event { at, text: "the server's clock is read".to_owned(), what }
}

fn end(at: f64, how: Option<&str>, record: Option<u64>, wal: [u64; 2]) -> Event {
    let fill = record.map(|record| json!({ "server": "7000", "database": 5, "record": record }));
    let what = json!({ "event": "part", "end": how, "fill": fill, "wal": [wal] });
    Event { at, text: "this part has loaded its chunks".to_owned(), what }
}

/// Rows of each second, of a part that began so many seconds after the first.
fn trial(config: &str, after: f64, rows: &[f64], how: Option<&str>, record: Option<u64>) -> Trial {
    let mut trial = Trial { config: config.to_owned(), ..Trial::default() };
    let seconds = rows.len() as f64;
    let is_last = how == Some("last");
    if after == 0.0 {
        trial.observe("create", 0.5, Unit::Seconds);
    }
    trial.observe("generate", seconds, Unit::Seconds);
    if is_last {
        trial.observe("vacuum", 2.0, Unit::Seconds);
        trial.observe("primary-keys", 3.0, Unit::Seconds);
    }
    let later = if is_last { 5.0 } else { 0.0 };
    trial.observe("total", seconds + later + if after == 0.0 { 0.5 } else { 0.0 }, Unit::Seconds);
    trial.observe("client-cpu", 0.25, Unit::Seconds);
    trial.observe("rows", rows.iter().sum(), Unit::Rows);
    trial.observe("heap", 8192.0 * (after + seconds), Unit::Bytes);
    trial.observe("index", if is_last { 4096.0 } else { 0.0 }, Unit::Bytes);
    trial.observe("wal", 500.0, Unit::Bytes);
    if is_last {
        trial.observe("predicted-heap", 9000.0, Unit::Bytes);
    }
    let mut series = Series::new("rows-sent", Unit::Seconds, Unit::Rows);
    series.points = (1..).map(f64::from).zip(rows.iter().copied()).collect();
    trial.series.push(series);
    let from = if after == 0.0 { 1000 } else { 1100 };
    trial.events = vec![
        clock(0.0, BEGAN + after),
        clock(seconds, BEGAN + after + seconds),
        end(seconds, how, record, [from, from + 500]),
    ];
    trial
}

/// A part that began so many seconds after the first.
fn part(number: u64, of: u64, after: f64, rows: &[f64], how: &str) -> Run {
    Run {
        format_version: FORMAT_VERSION,
        id: format!("20261121T120000Z-fill-1a{number}"),
        verb: "fill".to_owned(),
        label: None,
        started_at: "2026-11-21T12:00:00Z".to_owned(),
        command: Vec::new(),
        status: Status::Done,
        request: json!({
            "subject": "pgbench", "amount": { "rows": ROWS }, "schema": null, "part": { "number": number, "of": of }
        }),
        plan: json!({
            "schema": "public", "subject": "pgbench", "scale": 1, "chunking": { "rows": ROWS, "chunk_rows": 10 },
            "streams": number, "reasons": ["one"]
        }),
        environment: environment(),
        trials: vec![trial("fill", after, rows, Some(how), Some(16400))],
        notes: vec![Note { text: "a note".to_owned() }],
    }
}

/// 400 rows from 0 s to 4 s, and 600 from 1 s to 4 s.
fn both() -> Vec<Run> {
    vec![
        part(1, 2, 0.0, &[100.0, 100.0, 100.0, 100.0], "others"),
        part(2, 2, 1.0, &[200.0, 200.0, 200.0, 0.0, 0.0], "last"),
    ]
}

fn changed(change: impl Fn(&mut Run)) -> String {
    let mut runs = both();
    change(&mut runs[1]);
    merge(runs).unwrap_err().to_string()
}

fn value(trial: &Trial, name: &str) -> f64 {
    trial.value(name).unwrap_or(f64::NAN)
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-5
}

fn has_note(merged: &Merged, text: &str) -> bool {
    merged.run.notes.iter().any(|note| note.text.contains(text))
}

#[test]
fn rows_are_added_and_steps_kept() {
    for order in [[0, 1], [1, 0]] {
        let merged = merge(order.map(|at| both()[at].clone()).to_vec()).unwrap();
        let trial = &merged.run.trials[0];
        for (name, expected) in [
            ("rows", 1000.0),
            ("create", 0.5),
            ("generate", 4.0),
            ("vacuum", 2.0),
            ("primary-keys", 3.0),
            ("total", 9.5),
            ("client-cpu", 0.5),
            ("heap", 8192.0 * 6.0),
            ("index", 4096.0),
            // 1000 to 1500, and 1100 to 1600.
            ("wal", 600.0),
            ("predicted-heap", 9000.0),
            // The rate is that of 1 s to 4 s.
            ("shared", 3.0),
            ("shared-rows", 900.0),
        ] {
            assert!(
                near(value(trial, name), expected),
                "{name}: {} in {:#?}",
                value(trial, name),
                trial.observations
            );
        }
        let points = &trial.series[0].points;
        let expected = [(1.0, 100.0), (2.0, 300.0), (3.0, 300.0), (4.0, 300.0)];
        assert!(
            points.len() == 4
                && points
                    .iter()
                    .zip(expected)
                    .all(|(one, other)| near(one.0, other.0) && near(one.1, other.1)),
            "{points:?}"
        );
        assert!(near(merged.began, BEGAN), "{}", merged.began);
        let cut: Vec<(f64, f64)> = merged.parts.iter().map(|part| part.cut).collect();
        assert!(
            near(cut[0].0, 1.0) && near(cut[0].1, 0.0) && near(cut[1].0, 0.0) && near(cut[1].1, 0.0),
            "{cut:?}"
        );
        let rows: Vec<Option<f64>> = merged.parts.iter().map(|part| part.rows).collect();
        assert_eq!(rows, [Some(400.0), Some(600.0)]);
        assert_eq!((merged.run.status, &merged.run.request["part"]), (Status::Done, &Value::Null));
        let notes: Vec<&str> = merged.run.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            notes,
            [
                "the server's clock was read with an error of at most 0.500 ms",
                "part 1: a note",
                "part 2: a note"
            ]
        );
        // The time that the parts share is no result.
        let names: Vec<String> = figures(&merged.run).into_iter().map(|(figure, _)| figure.name).collect();
        assert!(
            names.iter().any(|name| name == "total") && !names.iter().any(|name| name == "shared"),
            "{names:?}"
        );
    }
}

#[test]
fn clocks_of_machines_do_not_matter() {
    // The second part's machine counts 30 s more a trial; both readings tell.
    let mut runs = both();
    runs[1].started_at = "2026-11-21T12:30:00Z".to_owned();
    for event in &mut runs[1].trials[0].events {
        event.at += 30.0;
    }
    for point in &mut runs[1].trials[0].series[0].points {
        point.0 += 30.0;
    }
    runs[1].trials[0].series[0].points.insert(0, (30.0, 0.0));
    let trial = &merge(runs).unwrap().run.trials[0];
    assert!(
        near(value(trial, "shared"), 3.0) && near(value(trial, "shared-rows"), 900.0),
        "{:?}",
        trial.observations
    );

    // A clock that somebody sets meanwhile is noticed.
    let mut runs = both();
    runs[0].trials[0].events[1].what["time"] = json!(BEGAN + 34.0);
    assert!(has_note(&merge(runs).unwrap(), "the server's clock was set while part 1 ran"));
}

#[test]
fn parts_that_did_not_run_together_have_no_rate() {
    let merged =
        merge(vec![part(1, 2, 0.0, &[400.0], "others"), part(2, 2, 600.0, &[600.0], "last")]).unwrap();
    let trial = &merged.run.trials[0];
    assert!(near(value(trial, "rows"), 1000.0) && near(value(trial, "generate"), 601.0), "{trial:?}");
    assert_eq!(trial.value("shared"), None);
    assert!(
        has_note(&merged, "there is no rate") && has_note(&merged, "part 2 600.0 to 601.0 s"),
        "{:?}",
        merged.run.notes
    );
    assert_eq!(merged.run.status, Status::Done);
}

#[test]
fn a_part_without_rows_counts() {
    let empty = part(3, 3, 9.0, &[0.0], "done");
    let mut runs = both();
    for run in &mut runs {
        run.request["part"]["of"] = json!(3);
    }
    runs.push(empty);
    let merged = merge(runs).unwrap();
    let trial = &merged.run.trials[0];
    assert!(near(value(trial, "rows"), 1000.0) && near(value(trial, "shared"), 3.0), "{trial:?}");
    assert!(near(value(trial, "generate"), 4.0) && has_note(&merged, "part 3 loaded no rows"), "{merged:?}");
    assert!(merged.missing.is_empty() && merged.parts[2].rows == Some(0.0));
    // Nobody loaded any.
    let nobody = merge(vec![part(1, 1, 2.0, &[0.0], "last")]).unwrap();
    assert!(near(nobody.began, BEGAN + 2.0) && has_note(&nobody, "loaded 0 of 1,000 rows"), "{nobody:?}");
}

#[test]
fn rows_of_runs_that_are_not_here_are_missed() {
    let mut runs = both();
    runs[1] = part(2, 2, 1.0, &[200.0, 100.0], "others");
    let merged = merge(runs).unwrap();
    assert!(has_note(&merged, "the parts loaded 700 of 1,000 rows"), "{:?}", merged.run.notes);
    assert!(
        has_note(&merged, "none of these runs carried out the steps after the rows"),
        "{:?}",
        merged.run.notes
    );
    let merged = merge(vec![part(1, 1, 0.0, &[700.0, 700.0], "last")]).unwrap();
    assert!(has_note(&merged, "loaded 1,400 rows, more than the fill has (1,000)"), "{:?}", merged.run.notes);
}

#[test]
fn a_missing_part_makes_a_partial_result() {
    let merged = merge(vec![part(2, 4, 1.0, &[200.0, 200.0], "last")]).unwrap();
    assert_eq!((&merged.missing, merged.run.status), (&vec![1, 3, 4], Status::Failed));
    assert!(
        has_note(&merged, "the result is partial: parts 1, 3, 4 of 4 are missing; rows and times"),
        "{:?}",
        merged.run.notes
    );
}

#[test]
fn runs_that_are_no_parts_of_one_fill_are_refused_and_each_difference_is_named() {
    let text = changed(|run| {
        run.request["amount"]["rows"] = json!(2000);
        run.request["seed"] = json!(3);
        run.request["part"]["of"] = json!(3);
        run.plan["scale"] = json!(2);
        run.environment.pgrig = "0.1.0 (commit ffffffffffff)".to_owned();
        run.environment.server.version_num = 170_000;
        "PostgreSQL 17.0 on x86_64".clone_into(&mut run.environment.server.version);
        "other".clone_into(&mut run.environment.database);
        run.trials[0].events[2].what["fill"]["server"] = json!("8000");
    });
    for named in [
        "request.amount.rows: 1000 → 2000",
        "request.seed: absent → 3",
        "request.part.of: 2 → 3",
        "plan.scale: 1 → 2",
        "commit ffffffffffff",
        "server version",
        "database: d → other",
        "different servers or databases",
    ] {
        assert!(text.contains(named), "no {named} in {text}");
    }
    assert!(
        changed(|run| run.trials[0].events[2].what["fill"]["record"] = json!(16500))
            .contains("different fills")
    );
    assert!(changed(|run| run.request["part"]["number"] = json!(1)).contains("both part 1"));
    assert!(changed(|run| *run = both()[0].clone()).contains("given twice"));
    assert!(changed(|run| run.request["part"] = Value::Null).contains("filled without --part"));
    assert!(
        changed(|run| run.status = Status::Interrupted).contains("again with the same options (--part 2/2)")
    );
    assert!(changed(|run| run.status = Status::Unfinished).contains("is unfinished"));
    assert!(changed(|run| run.trials[0].events.clear()).contains("no reading of the server's clock"));
    assert!(changed(|run| "tps".clone_into(&mut run.verb)).contains("is a run of fill, and"));
    let text = changed(|run| "blockio".clone_into(&mut run.verb));
    assert!(text.contains("a run of blockio") && text.contains("--clients N"), "{text}");
    let text = changed(|run| run.request = json!({ "ddl": "shop.sql", "part": { "number": 2, "of": 2 } }));
    assert!(text.contains("differ in kind") && !text.contains("request."), "{text}");
    let merged = merge(both()).unwrap().run;
    assert!(merge(vec![merged]).unwrap_err().to_string().contains("is a merged run"));

    // Machines, streams and settings may differ; settings are named.
    let mut runs = both();
    runs[1].environment.client.cpu = "another CPU".to_owned();
    let setting =
        measure::Setting { name: "wal_level".into(), value: "minimal".into(), source: "file".into() };
    runs[1].environment.server.settings.push(setting);
    let merged = merge(runs).unwrap();
    assert!(
        has_note(&merged, "settings were changed between the parts: setting wal_level"),
        "{:?}",
        merged.run.notes
    );
}

#[test]
fn a_role_that_may_not_ask_for_the_server_has_its_start() {
    let unknown = |run: &mut Run| {
        run.trials[0].events[2].what["fill"]["server"] = Value::Null;
    };
    let mut runs = both();
    runs.iter_mut().for_each(unknown);
    assert!(merge(runs.clone()).is_ok());
    runs[1].trials[0].events[0].what["started"] = json!(99.0);
    assert!(merge(runs).unwrap_err().to_string().contains("pg_control_system()"));
}

/// A schema of two tables, of which the second part loads only one.
fn schemas() -> Vec<Run> {
    let mut runs = both();
    let tables = |rows: u64| {
        json!([{ "schema": "public", "name": "a", "rows": rows, "state": "filled" },
               { "schema": "public", "name": "b", "rows": 300 }])
    };
    for (run, (after, how)) in runs.iter_mut().zip([(0.0, "others"), (1.0, "last")]) {
        run.request = json!({ "ddl": "x", "part": run.request["part"] });
        run.plan = json!({ "is_resumed": after > 0.0, "tables": tables(1000) });
        "public.a".clone_into(&mut run.trials[0].config);
        run.trials[0].events[2] = end(4.0, None, None, [0, 100]);
        let mut all = Trial { config: "all tables".to_owned(), ..Trial::default() };
        all.observe("total", 10.0, Unit::Seconds);
        all.observe("rows", 1.0, Unit::Rows);
        all.observe("heap", 1.0, Unit::Bytes);
        all.observe("index", 1.0, Unit::Bytes);
        all.events = vec![clock(0.5, BEGAN + after), end(10.0, Some(how), Some(16400), [0, 0])];
        run.trials.push(all);
    }
    let b = trial("public.b", 4.0, &[100.0, 100.0, 100.0], None, None);
    runs[0].trials.insert(1, b);
    runs
}

#[test]
fn tables_of_a_schema_are_merged_each_and_all() {
    let merged = merge(schemas()).unwrap();
    let names: Vec<&str> = merged.run.trials.iter().map(|trial| trial.config.as_str()).collect();
    assert_eq!(names, ["public.a", "public.b", "all tables"]);
    let [a, b, all] = merged.run.trials.as_slice() else { panic!() };
    assert!(near(value(a, "rows"), 1000.0) && near(value(a, "shared"), 3.0), "{a:?}");
    assert!(near(value(b, "rows"), 300.0) && near(value(b, "shared"), 3.0), "{b:?}");
    // From the first part's beginning, half a second before its reading, to the second's end.
    assert!(near(value(all, "total"), 11.0) && near(value(all, "rows"), 1300.0), "{all:?}");
    assert!(near(value(all, "heap"), 8192.0 * 13.0), "{all:?}");
    // Both loaded from 1 s to 4 s.
    assert!(near(value(all, "shared"), 3.0) && near(value(all, "shared-rows"), 900.0), "{all:?}");
    assert!(merged.run.notes.iter().all(|note| !note.text.contains("loaded")), "{:?}", merged.run.notes);
    assert_eq!(merged.parts[0].rows, Some(700.0));

    let mut runs = schemas();
    runs[1].plan["tables"][1]["name"] = json!("c");
    let text = merge(runs).unwrap_err().to_string();
    assert!(text.contains("plan.tables.public.b.rows: 300 → absent"), "{text}");
}
