//! Transactions over time: rates, latencies, waits, statements, processors and disk.

use measure::{Event, Run, Trial};
use serde_json::Value;

use super::intervals::{ShortEnd, joined, rates, rates_since, without};
use super::latency::{self, merged};
use super::{Section, Shown, waits};
use crate::document::{median, series, values};
use crate::escape::shortened;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Line, Lines, Plot, Span, SpanKind, Table};
use crate::quantity::Quantity;

pub(super) const CONFIG: &str = "tps";

pub(super) fn shown(run: &Run) -> Shown {
    let mut sections = Vec::new();
    for (number, trial) in run.trials.iter().enumerate() {
        let title = if run.trials.len() == 1 {
            "Over time".to_owned()
        } else {
            format!("Over time, trial {}", number + 1)
        };
        let plots: Vec<Plot> =
            [rate(trial), latencies(trial), waits::over_time(trial)].into_iter().flatten().collect();
        if !plots.is_empty() {
            sections.push(Section::new(&title, plots));
        }
    }
    let line = |latencies| Line { name: "latency".to_owned(), points: latency::percentiles(&latencies) };
    if let Some(plot) = latency::plot(merged(run, None, "latency").map(line).into_iter().collect()) {
        sections.push(Section::new("Latency", vec![plot]));
    }
    sections.extend(waits::in_total(run).map(|plot| Section::new("Waits", vec![plot])));
    sections.extend(statements(run));
    let used: Vec<Plot> = run.trials.iter().take(1).flat_map(used).collect();
    if !used.is_empty() {
        sections.push(Section::new("Processors and disk", used));
    }
    Shown { result: result(run), sections }
}

/// Transactions per second of a trial.
pub(super) fn tps(trial: &Trial) -> Option<f64> {
    Some(trial.value("succeeded")? / trial.value("elapsed")?).filter(|tps| tps.is_finite())
}

fn result(run: &Run) -> String {
    let Some(rate) = median(&run.trials.iter().filter_map(tps).collect::<Vec<_>>()) else {
        return "No trial was completed".to_owned();
    };
    let latency = |name: &str| {
        median(&values(run, CONFIG, &format!("latency-{name}")))
            .map(|value| format!("{name} {}", Quantity::Seconds.text(value)))
    };
    let latencies: Vec<String> = ["p50", "p95", "p99", "max"].into_iter().filter_map(latency).collect();
    let clients = run.request["clients"].as_u64().unwrap_or(1);
    let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    let trials = if run.trials.len() > 1 {
        format!(" (median of {} trials)", run.trials.len())
    } else {
        String::new()
    };
    let latencies = match latencies.as_slice() {
        [] => String::new(),
        known => format!("; latency {}", known.join(", ")),
    };
    format!("{} transactions per second by {clients}{trials}{latencies}", Quantity::PerSecond.text(rate))
}

/// The last interval of a trial, if it is short.
pub(super) fn short_end(trial: &Trial) -> Option<ShortEnd> {
    ShortEnd::of(series(trial, "succeeded").or_else(|| series(trial, "latency-max"))?)
}

/// Events during the trial.
pub(super) fn spans(trial: &Trial) -> Vec<Span> {
    trial.events.iter().filter_map(span).collect()
}

fn span(event: &Event) -> Option<Span> {
    let time = |name: &str| event.what[name].as_f64();
    let (kind, from, until) = match event.what["event"].as_str()? {
        "checkpoint" => {
            (SpanKind::Checkpoint, time("from").unwrap_or(event.at), time("until").unwrap_or(f64::MAX))
        }
        "maintenance" => {
            (SpanKind::Maintenance, time("from").unwrap_or(event.at), time("until").unwrap_or(f64::MAX))
        }
        "phase" if event.at > 0.0 => (SpanKind::Moment, event.at, event.at),
        _ => return None,
    };
    Some(Span { from, until, kind, text: event.text.clone() })
}

fn over_time(y: Axis, lines: Vec<Line>, spans: Vec<Span>) -> Chart {
    Chart::Lines(Lines { x: Axis::new("time", Quantity::Elapsed, Spread::Linear), y, series: lines, spans })
}

fn rate(trial: &Trial) -> Option<Plot> {
    let named = [
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("retries", "retries"),
        ("late", "late"),
    ];
    let line = |(name, shown): (&str, &str)| {
        Some(Line { name: shown.to_owned(), points: rates(series(trial, name)?) })
    };
    let lines: Vec<Line> = named.into_iter().filter_map(line).collect();
    let all = lines.first()?.points.iter().map(|point| point.1);
    let (low, high) = (all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max));
    let spans = spans(trial);
    let count = |kind| spans.iter().filter(|span| span.kind == kind).count();
    let number = |count: usize, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let marked: Vec<String> = [
        number(count(SpanKind::Checkpoint), "checkpoint", "checkpoints"),
        number(count(SpanKind::Maintenance), "vacuum or analyze", "vacuums and analyzes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let marked = if marked.is_empty() {
        "no checkpoint or vacuum was seen".to_owned()
    } else {
        format!("{} marked", marked.join(" and "))
    };
    let [low, high] = [low, high].map(|rate| Quantity::PerSecond.text(rate));
    let between = if low == high { low } else { format!("Between {low} and {high}") };
    let caption = format!("{between} transactions per second; {marked}.");
    let y = Axis::new("transactions per second", Quantity::PerSecond, Spread::Linear);
    Some(Plot::new("tps", "Transactions per second over time", caption, over_time(y, lines, spans)))
}

fn latencies(trial: &Trial) -> Option<Plot> {
    let short = short_end(trial);
    let line = |name: &str| {
        let points = series(trial, &format!("latency-{name}"))?;
        // The slowest transaction may be in the last milliseconds.
        let points = if name == "max" { joined(points, short, f64::max) } else { without(points, short) };
        Some(Line { name: name.to_owned(), points })
    };
    let lines: Vec<Line> = ["max", "p99", "p95", "p50"].into_iter().filter_map(line).collect();
    let worst = lines
        .first()?
        .points
        .iter()
        .copied()
        .reduce(|one, other| if other.1 > one.1 { other } else { one })?;
    let left_out = short.map_or_else(String::new, |short| {
        format!(" The percentiles of the last {} are left out.", Quantity::Seconds.text(short.length()))
    });
    let caption = format!(
        "Latencies of each interval, on a logarithmic scale: the slowest transaction took {} and ended {} after the start.{left_out}",
        Quantity::Seconds.text(worst.1),
        Quantity::Elapsed.text(worst.0)
    );
    let y = Axis::new("latency", Quantity::Seconds, Spread::Log);
    Some(Plot::new("latency", "Latency over time", caption, over_time(y, lines, spans(trial))))
}

/// Latency of each command, if commands were timed; and scripts, if there are several.
fn statements(run: &Run) -> Option<Section> {
    let scripts = run.plan["scripts"].as_array()?;
    let mut table = Table::new(&["statement", "mean", "p50", "p95", "p99", "max"]);
    let mut rows = Vec::new();
    for (script, described) in scripts.iter().enumerate() {
        let name = described["name"].as_str().unwrap_or_default();
        let script = format!("script-{}", script + 1);
        add(run, &script, name, &mut table);
        for (command, text) in described["commands"].as_array().into_iter().flatten().enumerate() {
            let text = shortened(text["text"].as_str().unwrap_or_default(), 90);
            let command = format!("{script}-command-{}", command + 1);
            // Commands of pgrig's own (\set) take no time.
            let mean = add(run, &command, &text, &mut table);
            rows.extend(mean.filter(|_| !text.starts_with('\\')).map(|mean| (text, vec![Some(mean)])));
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let slowest =
        rows.iter().max_by(|one, other| one.1[0].unwrap_or(0.0).total_cmp(&other.1[0].unwrap_or(0.0)));
    let plots = slowest.map(|(name, value)| {
        let caption =
            format!("The slowest, {} on average, is {name}", Quantity::Seconds.text(value[0].unwrap_or(0.0)));
        let axis = Axis::new("mean latency", Quantity::Seconds, Spread::Linear);
        let chart = Chart::Bars(Bars { axis, groups: vec![String::new()], rows: rows.clone() });
        Plot::new("statements", "Mean latency of statements", caption, chart)
    });
    Some(Section {
        title: "Statements".to_owned(),
        plots: plots.into_iter().collect(),
        tables: vec![("Latency of scripts and statements".to_owned(), table)],
        ..Section::default()
    })
}

/// Adds a row of latencies; gives the mean.
fn add(run: &Run, prefix: &str, name: &str, table: &mut Table) -> Option<f64> {
    let value = |percentile: &str| median(&values(run, CONFIG, &format!("{prefix}-latency-{percentile}")));
    let mean = value("mean")?;
    let text =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| Quantity::Seconds.text(value));
    table.add([
        name.to_owned(),
        text(Some(mean)),
        text(value("p50")),
        text(value("p95")),
        text(value("p99")),
        text(value("max")),
    ]);
    Some(mean)
}

fn used(trial: &Trial) -> Vec<Plot> {
    let line = |name: &str, shown: &str| {
        let points = rates_since(series(trial, name)?);
        (!points.is_empty()).then(|| Line { name: shown.to_owned(), points })
    };
    let mut plots = Vec::new();
    let disk: Vec<Line> = [("wal", "WAL"), ("disk-written", "disk, written"), ("disk-read", "disk, read")]
        .into_iter()
        .filter_map(|(name, shown)| line(name, shown))
        .collect();
    if !disk.is_empty() {
        let peak = |line: &Line| {
            let highest = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
            format!("{} up to {}", line.name, Quantity::BytesPerSecond.text(highest))
        };
        let caption = format!("Of all processes: {}.", disk.iter().map(peak).collect::<Vec<_>>().join("; "));
        let y = Axis::new("bytes per second", Quantity::BytesPerSecond, Spread::Linear);
        plots.push(Plot::new("disk", "WAL and disk over time", caption, over_time(y, disk, spans(trial))));
    }
    if let Some(client) = line("client-cpu", "pgrig") {
        let mean = client.points.iter().map(|point| point.1).sum::<f64>() / client.points.len().max(1) as f64;
        let busy = trial.value("machine-busy").zip(trial.value("elapsed")).map_or_else(
            String::new,
            |(busy, elapsed)| {
                format!(
                    "; all processes together used {} on average",
                    Quantity::Sessions.text(busy / elapsed)
                )
            },
        );
        let caption =
            format!("pgrig itself used {} processors on average{busy}.", Quantity::Sessions.text(mean));
        let y = Axis::new("processors", Quantity::Sessions, Spread::Linear);
        plots.push(Plot::new(
            "cpu",
            "Processors used by pgrig",
            caption,
            over_time(y, vec![client], Vec::new()),
        ));
    }
    plots
}

/// A field as text.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
