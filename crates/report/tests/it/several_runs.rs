//! Plots of several runs, read back and looked for in the documents: groups, verdicts, histories.

use crate::page::value;
use crate::plots::{attribute, marks, median, observed, plot};
use crate::{DOCUMENTS, changed};
use measure::Run;
use report::{Document, html};
use serde_json::json;

/// Runs of the same kind, one after the other.
fn repeated(name: &str, count: u32, change: impl Fn(u32, &mut Run)) -> Vec<Document> {
    let one = |number: u32| {
        changed(name, |run| {
            run.id = format!("{}-{number}", run.id);
            run.label = None;
            run.started_at = format!("2026-10-{:02}T0{}:00:00Z", 1 + number / 9, number % 9);
            change(number, run);
        })
    };
    (0..count).map(one).collect()
}

#[test]
fn few_runs_of_any_kind_are_drawn_on_top_of_each_other() {
    for (name, _) in DOCUMENTS {
        // Two runs are two sides, three without labels are none.
        for count in [2, 3] {
            let page = html(&repeated(name, count, |_, _| {}));
            // In base64 there may be any letters.
            let (page, _) = page.split_once("<script type=").unwrap();
            assert!(page.contains("<h2>On top of each other</h2>"), "{count} runs of {name}");
            assert!(!page.contains("NaN") && page.contains("class=\"plot wide\""), "{name}");
            assert!(count == 3 || page.contains("a verdict needs at least"), "{count} runs of {name}");
        }
    }
}

/// The sentence names no figure that did not change, where there are many.
#[test]
fn verdicts_of_many_figures_are_counted() {
    let runs = repeated("ladder", 14, |number, run| {
        run.label = Some(if number < 7 { "before" } else { "after" }.to_owned());
        let slower = if number < 7 { 1.0 } else { 1.5 } * (1.0 + f64::from(number % 7) / 1000.0);
        for trial in run.trials.iter_mut().filter(|trial| trial.config == "4") {
            for one in trial.observations.iter_mut().filter(|one| one.name == "total") {
                one.value *= slower;
            }
        }
    });
    let page = html(&runs);
    let headline = page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
    let said = "after (7 runs) beside before (7 runs): of 9 figures, 1 regressed (4: total +50";
    assert!(headline.starts_with(said) && headline.ends_with(", 8 without change"), "{headline}");
}

#[test]
fn what_differs_between_three_runs_is_listed() {
    let runs = repeated("tps", 3, |number, run| {
        if number == 2 {
            run.request["clients"] = json!(77);
        }
    });
    let page = html(&runs);
    assert!(page.contains("Differences between the runs") && page.contains("<td>77"), "{page}");
    assert!(!html(&repeated("tps", 3, |_, _| {})).contains("Differences between the runs"));
}

#[test]
fn ladders_of_several_servers_stand_side_by_side() {
    let runs = repeated("ladder", 3, |number, run| {
        run.label = Some(format!("server {number}"));
        for one in run.trials.iter_mut().flat_map(|trial| &mut trial.observations) {
            if one.name == "total" {
                one.value *= f64::from(number + 1);
            }
        }
    });
    let marks = marks(&plot(&runs, "fill-ladder-ladder.svg"));
    let levels: std::collections::BTreeSet<&String> = marks.iter().map(|mark| &mark.0).collect();
    assert!(levels.len() > 2 && marks.len() == 3 * levels.len(), "{marks:?}");
    for (level, series, found) in &marks {
        let run = &runs.iter().find(|run| run.run.label.as_ref() == Some(series)).unwrap().run;
        // 4: fillfactor 10; pgrig's own method for 5.
        let level = level.replace("&#39;", "'");
        let config = match level.split_once(": ") {
            Some((number, _)) => number.to_owned(),
            None => format!("best of {}", level.strip_prefix("pgrig's own method for ").unwrap()),
        };
        let rates = observed(run, &config, |value| {
            (value("heap") + value("index") - value("heap-before") - value("index-before")) / value("total")
        });
        let expected = median(rates);
        assert!((found / expected - 1.0).abs() < 0.02, "{level} of {series}: {found}, not {expected}");
    }
}

#[test]
fn steps_of_several_runs_are_the_medians_of_their_trials() {
    let runs = repeated("blockio", 2, |_, _| {});
    let marks = marks(&plot(&runs, "blockio-steps.svg"));
    assert!(marks.len() > 10);
    for (step, _, found) in &marks {
        let expected = median(observed(&runs[0].run, "total", |value| value(step)));
        assert!((found / expected - 1.0).abs() < 0.02, "{step}: {found}, not {expected}");
    }
}

/// Runs of tps with noise of 1 %, slower by `change` from the 14th on.
fn history(count: u32, change: f64) -> Vec<Document> {
    repeated("tps", count, |number, run| {
        let noise = 1.0 + f64::from(number.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 / 50.0;
        let times = if number < 13 { noise } else { noise * change };
        for one in &mut run.trials[0].observations {
            if one.name == "elapsed" || one.name == "latency-p95" {
                one.value *= times;
            }
        }
    })
}

#[test]
fn a_history_is_marked_only_where_it_changes() {
    let changed = history(25, 1.2);
    let page = html(&changed);
    assert!(
        page.contains(
            "The level changed at 2026-10-02 04:00:00: the median of the 12 runs from this run on differs by"
        ),
        "{page}"
    );
    assert!(page.contains("◀ changed:") && page.contains("Of 100 reports"));
    let page = html(&history(25, 1.0));
    assert!(page.contains("No lasting change is marked") && !page.contains("◀ changed:"));
    assert!(html(&history(9, 1.0)).contains("pgrig looks for no change"));
    // Each run is drawn where its document says.
    let svg = plot(&changed, "tps-figure-1.svg");
    let axis = attribute(&svg, "data-axis");
    let drawn: Vec<f64> = svg
        .split("class=\"value\" cx=\"")
        .skip(1)
        .map(|part| value(axis, part.split('"').next().unwrap().parse().unwrap()))
        .collect();
    let expected: Vec<f64> = changed
        .iter()
        .map(|run| observed(&run.run, "tps", |value| value("succeeded") / value("elapsed"))[0])
        .collect();
    assert_eq!(drawn.len(), expected.len());
    for (found, expected) in drawn.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
    }
}

#[test]
fn runs_of_a_label_are_one_row_of_a_history() {
    let runs = repeated("tps", 12, |number, run| run.label = Some(format!("commit {}", number / 4)));
    let svg = plot(&runs, "tps-figure-1.svg");
    assert_eq!(svg.matches("<g><title>commit ").count(), 3);
    assert_eq!(svg.matches("class=\"observed\"").count(), 12);
}
