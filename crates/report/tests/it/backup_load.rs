//! Bytes on the network, row versions that a dump keeps, and verdicts on restores, in the report of a rehearsal.

use measure::{Event, Run, Trial, Unit};
use report::{Document, html, markdown};
use serde_json::{Value, json};

use crate::changed;

const WAY: &str = "plain:gzip";

/// The report, without escapes.
fn text(document: &Document) -> String {
    markdown(std::slice::from_ref(document)).replace('\\', "")
}

/// The cells of the first row that begins with this cell, below this title.
fn row(text: &str, title: &str, first: &str) -> Vec<String> {
    let (_, below) = text.split_once(title).unwrap_or_else(|| panic!("{title}: {text}"));
    let found = below.lines().find(|line| line.starts_with(&format!("| {first} |")));
    let found = found.unwrap_or_else(|| panic!("{first}: {below}"));
    found.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn last_of<'a>(run: &'a mut Run, way: &str) -> &'a mut Trial {
    run.trials.iter_mut().rfind(|trial| trial.config == way).unwrap()
}

/// A run with data of several sizes, the verdict on a restore, and row versions of a dump.
fn with_forecast() -> Document {
    changed("backup", |run: &mut Run| {
        run.plan["sizes"] =
            json!({ "measured": [1_000_000, 3_000_000, 9_000_000], "forecast": 2_000_000_000 });
        run.plan["load"] = json!({ "script": "a", "rate": 200.0, "clients": 8, "seconds": 10.0 });
        run.request["rto"] = json!(14400.0);
        let value =
            |value: f64| json!({ "value": { "value": value, "low": value / 2.0, "high": value * 2.0 } });
        let what = json!({ "event": "forecast", "forecast": {
            "way": WAY, "bytes": 2_000_000_000, "size": value(1e9), "backup": value(60.0), "restore": value(600.0),
            "held": value(5e6), "rto": "does-not-keep"
        } });
        last_of(run, WAY).events.push(Event { at: 1.0, text: "forecast".to_owned(), what });
        let mut held = Trial { config: "snapshot".to_owned(), ..Trial::default() };
        for (name, value, unit) in [
            ("dead", 1e6, Unit::Bytes),
            ("dead-per-hour", 3.6e8, Unit::Bytes),
            ("dead-rows", 8000.0, Unit::Rows),
            ("growth", 2e6, Unit::Bytes),
            ("data", 9e6, Unit::Bytes),
        ] {
            held.observe(name, value, unit);
        }
        run.trials.push(held);
    })
}

#[test]
fn bytes_on_the_network_are_those_of_the_trial_that_counted_them() {
    let counted = changed("backup", |run: &mut Run| {
        run.plan["network"] = true.into();
        let last = last_of(run, WAY);
        last.observe("network-received", 18e6, Unit::Bytes);
        last.observe("network-sent", 2e6, Unit::Bytes);
    });
    let found = text(&counted);
    let title = "Bytes between server and client programs";
    assert_eq!(row(&found, title, WAY), [WAY, "18.0 MB", "2.00 MB", "20.0 MB"]);
    let other = row(&found, title, "base-tar:client-gzip=1");
    assert_eq!(other[1..], ["not counted", "not counted", "not counted"]);
    assert!(!found.contains("Other path: "), "{found}");
    let partial = changed("backup", |run: &mut Run| {
        run.plan["network"] = true.into();
        let last = last_of(run, WAY);
        last.observe("network-received", 18e3, Unit::Bytes);
        last.observe("network-sent", 2e3, Unit::Bytes);
        let network = json!({ "received": 18_000, "sent": 2_000, "is_partial": true });
        let what = json!({ "event": "network", "network": network });
        last.events.push(Event { at: 1.0, text: "network".to_owned(), what });
    });
    let found = text(&partial);
    assert_eq!(row(&found, title, WAY), [WAY, "18.0 kB", "2.00 kB", "20.0 kB (other path)"]);
    assert!(found.contains("Other path: most of the backup did not pass these connections"), "{found}");
    assert!(!text(&crate::document("backup")).contains(title));
}

#[test]
fn row_versions_that_the_snapshot_keeps_are_shown_with_the_forecast_of_each_dump() {
    let document = with_forecast();
    let found = text(&document);
    let title = "Old row versions";
    assert_eq!(row(&found, title, "the same in an hour")[1], "360 MB");
    assert_eq!(row(&found, title, "growth of all tables and indexes")[1], "2.00 MB");
    assert_eq!(row(&found, "Forecasts for dumps", WAY)[2], "5.00 MB (2.50 MB to 10.0 MB)");
    assert!(
        found.contains("Of 200 transactions a second by 8 clients, measured for 10.0 s on 9.00 MB"),
        "{found}"
    );
    assert!(html(&[document]).contains("Snapshot of a dump under the load"));
    assert!(!text(&crate::document("backup")).contains(title));
}

/// A way without a forecast of its restore is not compared.
#[test]
fn the_front_of_forecasts_has_ways_with_all_figures() {
    let found = text(&with_forecast());
    let (_, forecasts) = found.split_once("Forecasts\n").unwrap();
    assert!(!forecasts.contains("| way | front |"), "one way alone: {forecasts}");
    let mut document = with_forecast();
    let last = last_of(&mut document.run, WAY);
    let own = last.events[last.events.len() - 1].clone();
    for (way, restore) in [("custom:gzip,jobs=2", Some(900.0)), ("base-tar:client-gzip=1", None)] {
        let mut event = own.clone();
        let forecast = &mut event.what["forecast"];
        forecast["way"] = way.into();
        match restore {
            Some(seconds) => forecast["restore"]["value"]["value"] = Value::from(seconds),
            None => forecast["restore"] = "too-small".into(),
        }
        last_of(&mut document.run, way).events.push(event);
    }
    let found = text(&document);
    for (way, mark) in [(WAY, "yes"), ("custom:gzip,jobs=2", ""), ("base-tar:client-gzip=1", "not compared")]
    {
        assert_eq!(row(&found, "Forecasts\n", way)[1], mark, "{way}: {found}");
    }
    assert!(found.contains("by the forecast values"), "{found}");
}

#[test]
fn a_forecast_has_the_verdict_on_its_restore() {
    let found = text(&with_forecast());
    let cells = row(&found, "Forecasts\n", WAY);
    assert_eq!(cells[cells.len() - 1], "misses");
    let (_, forecasts) = found.split_once("Forecasts\n").unwrap();
    assert!(forecasts.lines().any(|line| line.ends_with("| RTO 4 h |")), "{forecasts}");
    // The measured restores are of another size.
    assert!(!found.contains("A way meets the RTO"), "{found}");
}

#[test]
fn measured_restores_meet_a_time_if_the_upper_end_of_their_interval_does() {
    let judged = |seconds: f64, trials: usize| {
        let document = changed("backup", |run: &mut Run| {
            run.request["rto"] = Value::from(seconds);
            let mut left = trials;
            run.trials.retain(|trial| {
                let is_way = trial.config == WAY;
                let is_kept = !is_way || left > 0;
                left -= usize::from(is_way && is_kept);
                is_kept
            });
        });
        let found = text(&document);
        assert!(found.contains("A way meets the RTO if it restores within"), "{found}");
        let cells = row(&found, "All ways", WAY);
        cells[cells.len() - 1].clone()
    };
    let run = crate::document("backup").run;
    let restores = run.trials.iter().filter(|trial| trial.config == WAY);
    let restores: Vec<f64> = restores.map(|trial| trial.value("restore").unwrap()).collect();
    let most = restores.iter().copied().fold(0.0, f64::max);
    // With six trials, the interval is that of all of them.
    assert_eq!([judged(most, 6), judged(most * 0.999, 6)], ["meets", "misses"]);
    let most_of_three = restores[..3].iter().copied().fold(0.0, f64::max);
    assert_eq!([judged(most_of_three, 3), judged(most_of_three * 0.999, 3)], ["meets", "misses"]);
}
