//! Statements of a migration: each number that is drawn is in the document, read here without pgrig's code for reports.

use measure::Run;
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

/// Seconds of the longest waits, by statement and session; with the part of the bar in its name.
fn waits(run: &Run, event: &str, of: impl Fn(&Value) -> f64, part: &str) -> Expected {
    let worked: Vec<String> = events(run, "found", "found").into_iter().map(|one| one.0).collect();
    events(run, event, "stall")
        .into_iter()
        .filter(|(name, _)| worked.contains(name))
        .flat_map(|(name, stall)| {
            [("reader", &stall["read"]), ("writer", &stall["write"])]
                .map(|(who, wait)| (format!("{name}, {who}, {part}"), of(wait)))
        })
        // A part of nothing is not drawn.
        .filter(|(name, value)| *value > 0.0 || !name.ends_with(part))
        .collect()
}

fn locked(run: &Run, event: &str) -> Expected {
    waits(run, event, |wait| wait["lock"].as_f64().unwrap(), "waiting for locks")
}

fn ended(run: &Run, event: &str) -> Expected {
    waits(run, event, |wait| wait["seconds"].as_f64().unwrap(), "slower for other reasons")
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
        case("ddl-wal.svg", Marks::Bars(0), |run| {
            let drawn = largest(run, "wal");
            let is_drawn = |trial: &&measure::Trial| drawn.iter().any(|one| one.0 == trial.config);
            let all = run.trials.iter().filter(is_drawn);
            all.map(|trial| (trial.config.clone(), trial.value("wal").unwrap())).collect()
        }),
        case("ddl-stalls.svg", Marks::Bars(0), |run| locked(run, "stall")),
        case("ddl-stalls.svg", Marks::Bars(1), |run| ended(run, "stall")),
        case("ddl-queue.svg", Marks::Bars(0), |run| locked(run, "stall-blocked")),
        case("ddl-queue.svg", Marks::Bars(1), |run| ended(run, "stall-blocked")),
        case(
            "ddl-forecast-seconds-8.svg",
            Marks::Line("measured (median; bar: lowest to highest run)"),
            by_size,
        ),
        case("ddl-forecast-seconds-8.svg", Marks::Line("forecast (bar: 90 % interval)"), |run| {
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
    let (points, [x, y]) = drawn(&svg, "forecast (bar: 90 % interval)");
    let whisker = svg.split("whisker w1\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
    // M<x - 4> <low>h8m-4 0V<high>m-4 0h8
    let (left, rest) = whisker.split_once(' ').unwrap();
    let lower: f64 = rest.split('h').next().unwrap().parse().unwrap();
    let upper: f64 = rest.split('V').nth(1).unwrap().split('m').next().unwrap().parse().unwrap();
    for (found, expected) in [
        (left.parse::<f64>().unwrap() + 4.0, pixel(x, bytes)),
        (lower, pixel(y, low)),
        (upper, pixel(y, high)),
        (points[0].0, pixel(x, bytes)),
    ] {
        assert!((found - expected).abs() <= 0.2, "{found} instead of {expected}");
    }
    assert_eq!(attribute(&svg, "data-x").split(' ').next(), Some("log"));
}

#[test]
fn locks_that_block_others_are_drawn_with_the_time_for_which_they_are_held() {
    let run = document("ddl");
    let svg = plot(&run, "ddl-locks.svg");
    let mut expected = 0;
    for (name, found) in events(&run.run, "found", "found") {
        let mut modes: Vec<&str> = found["locks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|lock| lock["is_new"] == false)
            .map(|lock| lock["mode"].as_str().unwrap())
            .filter(|mode| ["ACCESS-EXCLUSIVE", "EXCLUSIVE", "SHARE-ROW-EXCLUSIVE", "SHARE"].contains(mode))
            .collect();
        modes.dedup();
        let number = name.split(':').next().unwrap();
        for mode in &modes {
            let title = format!("<g><title>{number}: {} on ", mode.replace('-', " "));
            assert!(svg.contains(&title), "{title} in {svg}");
        }
        expected += modes.len();
    }
    assert!(expected > 2);
    assert_eq!(svg.matches("<g><title>").count(), expected);
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
fn a_migration_of_which_nothing_ran_has_a_page() {
    let none = changed("ddl", |run| run.trials.clear());
    assert!(html(&[none]).contains("No statement was measured"));
    // Only the session's own statements.
    let few = changed("ddl", |run| run.trials.truncate(2));
    assert!(html(&[few]).contains("No statement takes a lock"));
}
