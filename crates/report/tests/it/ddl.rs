//! Statements of a migration: each number that is drawn is in the document, read here without pgrig's code for reports.

use measure::{Event, Run};
use report::{Document, html, markdown, svgs};
use serde_json::Value;

use crate::coordinates::{Case, Expected, Marks, check, pixel, points};
use crate::page::drawn;
use crate::plots::attribute;
use crate::{changed, document};

/// The part of the events of this name, with the statement.
fn events<'a>(run: &'a Run, event: &str, part: &str) -> Vec<(String, &'a Value)> {
    let of = |trial: &'a measure::Trial| {
        let found = trial.events.iter().find(|one| one.what["event"] == event)?;
        Some((trial.config.clone(), &found.what[part]))
    };
    run.trials.iter().filter_map(of).collect()
}

/// The runs of each statement at the largest size, of those that do work.
fn largest(run: &Run, field: &str) -> Expected {
    let worked: Vec<String> = events(run, "found", "found").into_iter().map(|one| one.0).collect();
    let whole: f64 = run.trials.iter().filter_map(|trial| trial.value("time")).sum();
    let is_drawn = |name: &String| {
        let trial = run.trials.iter().find(|trial| trial.config == *name).unwrap();
        worked.contains(name) || trial.value("time").unwrap() > whole / 100.0
    };
    events(run, "measured", "sizes")
        .into_iter()
        .filter(|(name, _)| is_drawn(name))
        .flat_map(|(name, sizes)| {
            let runs = sizes.as_array().unwrap().last().unwrap()["runs"].as_array().unwrap();
            runs.iter().map(move |run| (name.clone(), run[field].as_f64().unwrap())).collect::<Vec<_>>()
        })
        .collect()
}

/// The name of the drawn forecast of statement 8: 4 GB is 117 times as large as the largest measured size.
const FORECAST: &str = "forecast, 117 times the size (bar: 90 % interval)";
/// Modes of locks that block writes of rows; the first one blocks reads, too.
const BLOCKING: [&str; 4] = ["ACCESS-EXCLUSIVE", "EXCLUSIVE", "SHARE-ROW-EXCLUSIVE", "SHARE"];

/// Seconds for which locks that block others are held: until their statement ends, or the transaction.
fn held(run: &Run, is_end: bool) -> Expected {
    let measured = events(run, "measured", "sizes");
    let mut all = Vec::new();
    for (name, found) in events(run, "found", "found") {
        let runs =
            &measured.iter().find(|one| one.0 == name).unwrap().1.as_array().unwrap().last().unwrap()["runs"];
        let median = |field: &str| {
            let mut values: Vec<f64> =
                runs.as_array().unwrap().iter().map(|run| run[field].as_f64().unwrap()).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let number = name.split(':').next().unwrap();
        for mode in BLOCKING {
            let locks = found["locks"].as_array().unwrap();
            let of_mode = locks.iter().filter(|lock| lock["is_new"] == false && lock["mode"] == mode);
            let relations: Vec<&str> = of_mode.map(|lock| lock["relation"].as_str().unwrap()).collect();
            if relations.is_empty() {
                continue;
            }
            let more = relations.len().saturating_sub(2);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let blocked = if mode == BLOCKING[0] { "reads and writes" } else { "writes" };
            let start = format!("{number}: blocks {blocked}: {} on ", mode.replace('-', " "));
            let relations = relations.into_iter().take(2).collect::<Vec<_>>().join(", ");
            let part = if is_end { "until its transaction ends" } else { "its statement runs" };
            let value = if is_end { median("held") } else { median("seconds") };
            if !is_end || median("held") > median("seconds") {
                all.push((format!("{start}{relations}{more}, {part}"), value));
            }
        }
    }
    all
}

/// Seconds of the longest waits, by statement and session; with the part of the bar in its name.
fn waits(run: &Run, event: &str, of: impl Fn(&Value) -> f64, part: &str) -> Expected {
    let worked: Vec<String> = events(run, "found", "found").into_iter().map(|one| one.0).collect();
    events(run, event, "stall")
        .into_iter()
        .filter(|(name, _)| worked.contains(name))
        .flat_map(|(name, stall)| {
            let (number, sql) = name.split_once(": ").unwrap();
            [("reader", &stall["read"]), ("writer", &stall["write"])].map(|(who, wait)| {
                let table = wait["name"].as_str().unwrap();
                (format!("{number}, {who} of {table}: {sql}, {part}"), of(wait))
            })
        })
        // A part of nothing is not drawn.
        .filter(|(name, value)| *value > 0.0 || !name.ends_with(part))
        .collect()
}

fn locked(run: &Run, event: &str) -> Expected {
    waits(run, event, |wait| wait["lock"].as_f64().unwrap(), "waiting for locks")
}

fn ended(run: &Run, event: &str) -> Expected {
    waits(run, event, |wait| wait["seconds"].as_f64().unwrap(), "late for other reasons")
}

/// The medians of statement 8 by size.
fn by_size(run: &Run) -> Expected {
    let (_, sizes) =
        events(run, "measured", "sizes").into_iter().find(|(name, _)| name.starts_with("8: ")).unwrap();
    points(sizes.as_array().unwrap().iter().map(|size| {
        let mut seconds: Vec<f64> =
            size["runs"].as_array().unwrap().iter().map(|run| run["seconds"].as_f64().unwrap()).collect();
        seconds.sort_by(f64::total_cmp);
        (size["bytes"].as_f64().unwrap(), seconds[seconds.len() / 2])
    }))
}

fn forecast(run: &Run) -> (f64, [f64; 3]) {
    let (_, found) =
        events(run, "forecast", "forecast").into_iter().find(|(name, _)| name.starts_with("8: ")).unwrap();
    let value = &found["seconds"]["value"];
    (found["bytes"].as_f64().unwrap(), ["value", "low", "high"].map(|name| value[name].as_f64().unwrap()))
}

#[test]
fn marks_of_statements_are_where_the_numbers_of_the_document_belong() {
    let case = |plot, marks, expected| Case { runs: vec![document("ddl")], plot, marks, expected };
    let cases = [
        case("ddl-times.svg", Marks::Circles, |run| largest(run, "seconds")),
        case("ddl-wal.svg", Marks::Circles, |run| largest(run, "wal")),
        case("ddl-locks.svg", Marks::Bars(0), |run| held(run, false)),
        case("ddl-locks.svg", Marks::Bars(1), |run| held(run, true)),
        case("ddl-stalls.svg", Marks::Bars(0), |run| locked(run, "stall")),
        case("ddl-stalls.svg", Marks::Bars(1), |run| ended(run, "stall")),
        case("ddl-queue.svg", Marks::Bars(0), |run| locked(run, "stall-blocked")),
        case("ddl-queue.svg", Marks::Bars(1), |run| ended(run, "stall-blocked")),
        case(
            "ddl-forecast-seconds-8.svg",
            Marks::Line("measured (median; bar: lowest to highest run)"),
            by_size,
        ),
        case("ddl-forecast-seconds-8.svg", Marks::Line(FORECAST), |run| {
            let (bytes, [value, ..]) = forecast(run);
            points([(bytes, value)])
        }),
    ];
    cases.iter().for_each(check);
}

fn plot(document: &Document, name: &str) -> String {
    let plots = svgs(std::slice::from_ref(document));
    let names: Vec<&String> = plots.iter().map(|(name, _)| name).collect();
    plots
        .iter()
        .find(|(known, _)| known == name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
        .1
        .clone()
}

#[test]
fn the_interval_of_a_forecast_is_drawn_around_it() {
    let run = document("ddl");
    let svg = plot(&run, "ddl-forecast-seconds-8.svg");
    let (bytes, [_, low, high]) = forecast(&run.run);
    let (points, [x, y]) = drawn(&svg, FORECAST);
    let whisker = svg.split("whisker w1\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
    // M<x - 7> <low>h14m-7 0V<high>m-7 0h14
    let (left, rest) = whisker.split_once(' ').unwrap();
    let lower: f64 = rest.split('h').next().unwrap().parse().unwrap();
    let upper: f64 = rest.split('V').nth(1).unwrap().split('m').next().unwrap().parse().unwrap();
    for (found, expected) in [
        (left.parse::<f64>().unwrap() + 7.0, pixel(x, bytes)),
        (lower, pixel(y, low)),
        (upper, pixel(y, high)),
        (points[0].0, pixel(x, bytes)),
    ] {
        assert!((found - expected).abs() <= 0.2, "{found} instead of {expected}");
    }
    assert_eq!(attribute(&svg, "data-x").split(' ').next(), Some("log"));
    // The dashed line begins at the last measured point.
    let measured = by_size(&run.run);
    let [from_x, from_y] = [measured.len() - 2, measured.len() - 1].map(|at| measured[at].1);
    let start = format!("link w1\" d=\"M{:.1} {:.1}L", pixel(x, from_x), pixel(y, from_y));
    assert!(svg.contains(&start), "{start} in {svg}");
}

#[test]
fn a_pull_request_gets_the_statements_first_and_the_reasons_of_missing_forecasts() {
    let text = markdown(&[document("ddl")]);
    let first = text.split("### ").nth(1).unwrap();
    assert!(first.starts_with("All statements\n\n| statement | class | blocks | time |"), "{first}");
    assert!(first.contains("| 4: ALTER TABLE orders ADD COLUMN token uuid DEFAULT gen\\_random\\_uuid() | rewrite | reads and writes |"), "{first}");
    assert!(first.contains("| not measurable |"), "{first}");
    assert!(text.contains("the work exceeds maintenance\\_work\\_mem"), "{text}");
    assert!(text.contains("violates foreign key constraint"), "{text}");
    let page = html(&[document("ddl")]);
    assert!(page.contains("<details open class=\"first\"><summary>All statements"));
    assert!(page.contains("<h1>Failed: 10 statements ("), "{}", &page[..6000]);
}

#[test]
fn better_ways_stand_beside_the_statements() {
    let text = markdown(&[document("alternatives")]);
    let table = text.split("### Statements and the better ways in their place").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let row = |start: &str| {
        rows.iter().find(|row| row[1].starts_with(start)).unwrap_or_else(|| panic!("{start} in {rows:?}"))
    };
    // Class, and the work of others that is blocked.
    assert_eq!(row("3: CREATE INDEX orders\\_status")[2..4], ["index build", "writes"]);
    assert_eq!(row("3, better 1 of 1: CREATE INDEX CONCURRENTLY")[2..4], ["index build", ""]);
    assert_eq!(row("2: ALTER TABLE orders ADD COLUMN token")[2..4], ["rewrite", "reads and writes"]);
    assert_eq!(row("2, better 1 of ")[2..4], ["catalog only", "reads and writes"]);
    assert_eq!(row("2, better, in all")[2..4], ["", "reads and writes"]);
    let run = document("alternatives").run;
    let (_, steps) =
        events(&run, "alternative", "statements").into_iter().find(|one| one.0.starts_with("2: ")).unwrap();
    let wal: f64 = steps
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let runs = step["measured"].as_array().unwrap().last().unwrap()["runs"].as_array().unwrap();
            let mut values: Vec<f64> = runs.iter().map(|run| run["wal"].as_f64().unwrap()).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        })
        .sum();
    assert_eq!(row("2, better, in all")[6], format!("{:.1} MB", wal / 1e6));
    assert!(!markdown(&[document("ddl")]).contains("Better ways"));
}

#[test]
fn plots_that_are_missing_have_a_reason() {
    let page = html(&[document("ddl")]);
    assert!(
        page.contains(
            "These have no plot: statement 3 (it takes as much at any size); the time of statement 4"
        ),
        "{page}"
    );
    assert!(page.contains("Even during statement 1, SET lock_timeout"), "no lateness");
}

#[test]
fn a_migration_of_which_nothing_ran_has_a_page() {
    let none = changed("ddl", |run| run.trials.clear());
    assert!(html(&[none]).contains("No statement was measured"));
    // Only the session's own statements.
    let few = changed("ddl", |run| run.trials.truncate(2));
    assert!(html(&[few]).contains("No statement takes a lock"));
}

/// Short waits prove nothing where nobody waited to the end.
#[test]
fn failures_beside_readers_and_writers_are_reported() {
    let document = changed("ddl", |run| {
        let mut is_first = true;
        for event in run.trials.iter_mut().flat_map(|trial| &mut trial.events) {
            let what = &mut event.what;
            if what["event"] == "stall" && is_first {
                what["stall"]["failed"] = serde_json::json!("could not serialize access");
                what["stall"]["counts_for"] = serde_json::json!(3);
                is_first = false;
            }
        }
        let stopped = serde_json::json!({
            "name": "public.orders", "kind": "write", "number": 4, "message": "relation does not exist",
        });
        let probes = serde_json::json!({
            "seed": 1, "probed": [], "unprobed": ["public.log: it has no key"], "stopped": [stopped],
        });
        let what = serde_json::json!({ "event": "probes", "probes": probes });
        run.trials[0].events.push(Event { at: 0.0, text: "readers and writers".to_owned(), what });
    });
    let text = markdown(&[document]);
    for told in [
        "Not probed: public.log: it has no key.",
        "The writer of public.orders failed at statement 4: relation does not exist.",
        "failed: could not serialize access. Its waits are those before the failure.",
        "(waits for a lock that statement 3 holds count for that statement; the statement failed) |",
        "behind an open transaction)",
    ] {
        assert_eq!(text.matches(told).count(), 1, "{told}: {text}");
    }
}

/// The server counted them, and no reading saw them.
#[test]
fn temporary_files_that_were_not_measured_have_no_figure() {
    let text = markdown(&[changed("ddl", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("3: ")).unwrap();
        trial.observations.retain(|one| one.name != "space-temporary");
        let found = trial.events.iter_mut().find(|event| event.what["event"] == "found").unwrap();
        found.what["found"]["missed_temporary"] = true.into();
    })]);
    assert!(text.contains("temporary files"), "{text}");
    let is_told = |line: &str| line.starts_with("| 3: ") && line.contains("| not measured |");
    assert!(text.lines().any(is_told), "{text}");
}

#[test]
fn the_size_that_gives_a_figure_is_an_option_to_paste() {
    let text = markdown(&[changed("ddl", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("6: ")).unwrap();
        let forecast = trial.events.iter_mut().find(|event| event.what["event"] == "forecast").unwrap();
        let boundary = serde_json::json!({ "cause": "shared-buffers", "at": 134_217_728 });
        forecast.what["forecast"]["seconds"] =
            serde_json::json!({ "beyond": { "boundary": boundary, "measure": 617_401_549 } });
        forecast.what["up_to"] = 2_900_000_000_u64.into();
    })]);
    let told = "For the figures that are not known from a size on, give --up-to 2.90GB for statement 6.";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("from about 134 MB on, the work exceeds shared\\_buffers"), "{text}");
    assert!(!markdown(&[document("ddl")]).contains("For the figures that are not known"));
}
