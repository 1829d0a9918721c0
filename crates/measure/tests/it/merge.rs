//! Merging parts: exact, whatever the parts' clocks show, and refused if they are no parts of one run.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::merge::merge;
use measure::{
    Event, FORMAT_VERSION, Histogram, Increment, Latencies, PackedLatencies, Run, Status, Trial, Unit,
};
use serde_json::json;

use crate::support::environment;

/// Latencies of each second of a part.
type Seconds = Vec<Vec<u64>>;

fn latencies<'a>(microseconds: impl IntoIterator<Item = &'a u64>) -> Latencies {
    let mut latencies = Latencies::default();
    microseconds.into_iter().for_each(|each| latencies.record(Duration::from_micros(*each)));
    latencies
}

/// A part that began at this time of the server, while its own trial had run for 0 s.
fn part(number: u64, of: u64, began: f64, seconds: &Seconds) -> Run {
    let all = latencies(seconds.iter().flatten());
    let mut trial = Trial { config: "tps".to_owned(), ..Trial::default() };
    trial.observe("elapsed", seconds.len() as f64, Unit::Seconds);
    trial.observe("connecting", 0.1 * number as f64, Unit::Seconds);
    trial.observe("connections", 4.0, Unit::Count);
    trial.observe("succeeded", all.count() as f64, Unit::Count);
    trial.observe("failed-deadlock", seconds.len() as f64, Unit::Count);
    trial.observe_latencies("latency", &all);
    trial.increments = (0..)
        .zip(seconds)
        .map(|(second, values)| Increment {
            from: f64::from(second),
            until: f64::from(second) + 1.0,
            counts: BTreeMap::from([
                ("succeeded".to_owned(), values.len() as u64),
                ("failed-deadlock".to_owned(), 1),
            ]),
            histograms: BTreeMap::from([("latency".to_owned(), PackedLatencies::from(&latencies(values)))]),
        })
        .collect();
    let what = json!({ "event": "clock", "time": began, "error": 0.0005, "started": 7.5, "database": 16384 });
    trial.events.push(Event { at: 0.0, text: "the server's clock is read".to_owned(), what });
    Run {
        format_version: FORMAT_VERSION,
        id: format!("20261121T120000Z-tps-1a{number}"),
        verb: "tps".to_owned(),
        label: None,
        started_at: "2026-11-21T12:00:00Z".to_owned(),
        command: Vec::new(),
        status: Status::Done,
        request: json!({
            "clients": 4, "jobs": 2, "rate": null, "seed": number, "part": { "number": number, "of": of }
        }),
        plan: json!({ "scale": 10, "scripts": [] }),
        environment: environment(),
        trials: vec![trial],
        notes: Vec::new(),
    }
}

/// Random latencies from 20 µs to a minute.
fn seconds(random: &mut fastrand::Rng, number: usize) -> Seconds {
    let value = |random: &mut fastrand::Rng| 20 * 10_u64.pow(random.u32(..7)) / random.u64(1..9).max(1);
    (0..number).map(|_| (0..random.usize(1..400)).map(|_| value(random)).collect()).collect()
}

fn refusal(runs: Vec<Run>) -> String {
    merge(runs).unwrap_err().to_string()
}

#[test]
fn merged_latencies_are_those_of_one_histogram_that_saw_all() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20 {
        let parts: Vec<Seconds> = (0..3).map(|_| seconds(&mut random, 10)).collect();
        // They begin at 1000, 1002 and 1003 s of the server, so 1003 to 1010 s counts.
        let began = [1000.0, 1002.0, 1003.0];
        let runs =
            (1..).zip(&parts).zip(began).map(|((number, part_of), began)| part(number, 3, began, part_of));
        let mut runs: Vec<Run> = runs.collect();
        random.shuffle(&mut runs);
        let merged = merge(runs).unwrap();

        let shared = [&parts[0][3..10], &parts[1][1..8], &parts[2][0..7]];
        let expected = latencies(shared.iter().copied().flatten().flatten());
        let trial = &merged.run.trials[0];
        let histogram = Histogram { name: "latency".to_owned(), latencies: expected.clone() };
        assert_eq!(trial.histograms, [histogram]);
        let text = |latencies: &Latencies| serde_json::to_string(latencies).unwrap();
        assert_eq!(text(&trial.histograms[0].latencies), text(&expected), "not bit-identical");
        assert_eq!(trial.value("latency-p99"), expected.quantile(0.99).map(|p99| p99.as_secs_f64()));
        assert_eq!(trial.value("succeeded"), Some(expected.count() as f64));
        assert_eq!([trial.value("failed-deadlock"), trial.value("elapsed")], [Some(21.0), Some(7.0)]);
        assert_eq!([trial.value("connections"), trial.value("connecting")], [Some(12.0), Some(0.1 * 3.0)]);

        // Second by second, on the server's clock.
        let of_second = |second: usize| shared.iter().map(|part| part[second].len()).sum::<usize>() as f64;
        let series = |name: &str| &trial.series.iter().find(|series| series.name == name).unwrap().points;
        let counts: Vec<(f64, f64)> = (0..7).map(|second| (second as f64 + 1.0, of_second(second))).collect();
        assert_eq!(series("succeeded"), &counts);
        let slowest = latencies(shared.iter().flat_map(|part| &part[4])).max().unwrap();
        assert_eq!(series("latency-max")[4], (5.0, slowest.as_secs_f64()));

        assert_eq!(merged.began.to_bits(), 1003.0_f64.to_bits());
        assert!(merged.missing.is_empty());
        let cut: Vec<(u64, (f64, f64))> = merged.parts.iter().map(|part| (part.number, part.cut)).collect();
        assert_eq!(cut, [(1, (3.0, 0.0)), (2, (1.0, 2.0)), (3, (0.0, 3.0))]);
        assert_eq!(merged.run.status, Status::Done);
        assert_eq!((&merged.run.request["clients"], &merged.run.request["part"]), (&json!(12), &json!(null)));
        assert_eq!(merged.run.environment.client.cores, 6);
    }
}

#[test]
fn a_missing_part_makes_a_partial_result() {
    let mut random = fastrand::Rng::with_seed(6);
    let runs = [1, 4].map(|number| part(number, 4, 1000.0, &seconds(&mut random, 3)));
    let merged = merge(runs.to_vec()).unwrap();
    assert_eq!((merged.missing, merged.run.status), (vec![2, 3], Status::Failed));
    assert!(
        merged.run.notes[0].text.starts_with("the result is partial: parts 2, 3 of 4"),
        "{:?}",
        merged.run.notes
    );
}

#[test]
fn runs_that_are_no_parts_of_one_are_refused_and_each_difference_is_named() {
    let mut random = fastrand::Rng::with_seed(7);
    let both = [1, 2].map(|number| part(number, 2, 1000.0, &seconds(&mut random, 3)));
    let changed = |change: &dyn Fn(&mut Run)| {
        let mut both = both.to_vec();
        change(&mut both[1]);
        refusal(both)
    };
    let text = changed(&|run| {
        run.plan["scale"] = json!(20);
        run.request["rate"] = json!(100.0);
        run.environment.pgrig = "0.1.0 (commit ffffffffffff)".to_owned();
        run.environment.server.version_num = 170_000;
        "PostgreSQL 17.0 on x86_64".clone_into(&mut run.environment.server.version);
        run.trials[0].events[0].what["started"] = json!(8.5);
    });
    for named in
        ["plan.scale: 10 → 20", "request.rate", "commit ffffffffffff", "server version", "different servers"]
    {
        assert!(text.contains(named), "no {named} in {text}");
    }
    // Machines and seeds may differ.
    let mut apart = both.to_vec();
    apart[1].environment.client.cpu = "another CPU".to_owned();
    apart[1].environment.transport = "unix socket /s".to_owned();
    assert_eq!(merge(apart).unwrap().run.environment.client.cpu, "a CPU, another CPU");

    assert!(refusal(vec![both[0].clone(), both[0].clone()]).contains("given twice"));
    assert!(changed(&|run| run.request["part"]["number"] = json!(1)).contains("both part 1"));
    assert!(changed(&|run| run.request["part"]["of"] = json!(3)).contains("request.part.of: 2 → 3"));
    assert!(changed(&|run| run.request["part"] = json!(null)).contains("--part I/N"));
    assert!(changed(&|run| "fill".clone_into(&mut run.verb)).contains("is a run of tps, and"));
    assert!(changed(&|run| run.status = Status::Interrupted).contains("is interrupted"));
    assert!(changed(&|run| run.trials[0].events.clear()).contains("no readings of the server's clock"));
    assert!(changed(&|run| run.trials[0].events[0].what["time"] = json!(1003.0)).contains("no whole second"));
    let merged = merge(both.to_vec()).unwrap().run;
    assert!(refusal(vec![merged]).contains("is a merged run"));
    assert!(refusal(Vec::new()).contains("no run"));
}
