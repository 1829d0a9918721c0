//! Transactions over time: rates, latencies, waits, statements, processors and disk.

use std::fmt::Write;

use measure::{Event, Run, Trial};
use serde_json::Value;

use super::intervals::{ShortEnd, joined, rates, rates_since, without};
use super::latency::{self, merged};
use super::{Section, Shown, waits};
use crate::document::{median, series, values};
use crate::escape::shortened;
use crate::plot::scale::Spread;
use crate::plot::{
    Axis, Bars, Chart, Line, Lines, Long, Plot, Span, SpanKind, Table, intervals_of_a_point, numbered,
};
use crate::quantity::Quantity;

pub(super) const CONFIG: &str = "tps";

pub(super) fn shown(run: &Run) -> Shown {
    let mut sections = Vec::new();
    let colours = waits::Colours::of(run);
    for (number, trial) in run.trials.iter().enumerate() {
        let title = if run.trials.len() == 1 {
            "Over time".to_owned()
        } else {
            format!("Over time, trial {}", number + 1)
        };
        let plots: Vec<Plot> = [rate(trial), latencies(trial), waits::over_time(trial, &colours)]
            .into_iter()
            .flatten()
            .collect();
        if !plots.is_empty() {
            sections.push(Section::new(&title, plots));
        }
    }
    let line = |latencies| Line::new("latency", latency::percentiles(&latencies));
    if let Some(plot) = latency::plot(merged(run, None, "latency").map(line).into_iter().collect()) {
        sections.push(Section::new("Latency", vec![plot]));
    }
    sections.extend(waits::in_total(run).map(|plot| Section::new("Waits", vec![plot])));
    sections.extend(statements(run));
    let used: Vec<Plot> = run.trials.iter().take(1).flat_map(|trial| used(run, trial)).collect();
    if !used.is_empty() {
        let mut section = Section::new("Processors and disk", used);
        if run.trials.len() > 1 {
            section.text.push("During the first trial.".to_owned());
        }
        sections.push(section);
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
    // Of all trials together, as the plots show them.
    let all = merged(run, None, "latency");
    let latency = |name: &str| {
        let of_trials = values(run, CONFIG, &format!("latency-{name}"));
        let share = match name {
            "p50" => Some(0.5),
            "p95" => Some(0.95),
            "p99" => Some(0.99),
            _ => None,
        };
        let value = match (share, all.as_ref()) {
            (None, _) => of_trials.into_iter().reduce(f64::max),
            (Some(share), Some(all)) if run.trials.len() > 1 => Some(all.quantile(share)?.as_secs_f64()),
            _ => median(&of_trials),
        };
        value.map(|value| format!("{name} {}", Quantity::Seconds.text(value)))
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
        known if run.trials.len() > 1 => format!("; latency of all trials {}", known.join(", ")),
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
        ("late", "late (among those that succeeded)"),
    ];
    let line = |(name, shown): (&str, &str)| Some(Line::new(shown, rates(series(trial, name)?)));
    let lines: Vec<Line> = named.into_iter().filter_map(line).collect();
    let summed_up = summed_up(&lines);
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
    let caption = format!("{between} transactions per second; {marked}.{}{summed_up}", numbered(&spans));
    let y = Axis::new("transactions per second", Quantity::PerSecond, Spread::Linear);
    Some(Plot::new("tps", "Transactions per second over time", caption, over_time(y, lines, spans)))
}

/// Meaning of the points of long series.
fn summed_up(lines: &[Line]) -> String {
    let of = |long: Long| {
        lines.iter().filter(move |line| line.long == long && intervals_of_a_point(line.points.len()) > 1)
    };
    let mut text = String::new();
    if let Some(intervals) = of(Long::Medians).map(|line| intervals_of_a_point(line.points.len())).max() {
        let _ = write!(
            text,
            " Each point of a line is the median of {intervals} intervals; the pale area reaches from the lowest to the highest interval."
        );
    }
    let highest: Vec<&str> = of(Long::Highest).map(|line| line.name.as_str()).collect();
    if !highest.is_empty() {
        let _ = write!(
            text,
            " Each point of {} is the highest value of the intervals that it stands for.",
            highest.join(" and ")
        );
    }
    text
}

/// The percentiles of an interval, and the least number of transactions of which that percentile is not the slowest one.
const PERCENTILES: [(&str, f64); 4] = [("max", 0.0), ("p99", 100.0), ("p95", 20.0), ("p50", 2.0)];

fn latencies(trial: &Trial) -> Option<Plot> {
    let short = short_end(trial);
    // Intervals without transactions have no percentiles either.
    let succeeded = series(trial, "succeeded").unwrap_or_default().iter().map(|point| point.1);
    let counts: Vec<f64> = succeeded.filter(|count| *count > 0.0).collect();
    let typical = median(&counts).unwrap_or(f64::INFINITY);
    let (drawn, few): (Vec<_>, Vec<_>) = PERCENTILES.into_iter().partition(|(_, least)| typical >= *least);
    let line = |(name, _): (&str, f64)| {
        let points = series(trial, &format!("latency-{name}"))?;
        // The slowest transaction may be in the last milliseconds.
        let (points, long) = if name == "max" {
            (joined(points, short, f64::max), Long::Highest)
        } else {
            (without(points, short), Long::Medians)
        };
        Some(Line { long, ..Line::new(name, points) })
    };
    let lines: Vec<Line> = drawn.into_iter().filter_map(line).collect();
    let few: Vec<&str> = few
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| series(trial, &format!("latency-{name}")).is_some())
        .collect();
    let few = if few.is_empty() {
        String::new()
    } else {
        let transactions = if typical > 1.0 { "transactions" } else { "transaction" };
        format!(
            " With {} {transactions} in an interval, {} would be the slowest of them and {} left out.",
            Quantity::Sessions.text(typical),
            few.join(" and "),
            if few.len() == 1 { "is" } else { "are" }
        )
    };
    let summed_up = summed_up(&lines);
    let worst = lines
        .first()?
        .points
        .iter()
        .copied()
        .reduce(|one, other| if other.1 > one.1 { other } else { one })?;
    let left_out = short.map_or_else(String::new, |short| {
        format!(
            " The percentiles of the last {}, an unfinished interval, are left out.",
            Quantity::Seconds.text(short.length())
        )
    });
    let caption = format!(
        "Latencies of each interval: the slowest transaction took {} and ended {} after the start.{left_out}{few}{summed_up}",
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
            let is_own = text.starts_with('\\');
            // Scripts may have the same statements.
            let number = command + 1;
            let text = if scripts.len() > 1 {
                format!("{name} {number}: {text}")
            } else {
                format!("{number}: {text}")
            };
            let command = format!("{script}-command-{number}");
            // Commands of pgrig's own (\set) take no time.
            let mean = add(run, &command, &text, &mut table);
            rows.extend(mean.filter(|_| !is_own).map(|mean| (text, vec![Some(mean)])));
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let slowest =
        rows.iter().max_by(|one, other| one.1[0].unwrap_or(0.0).total_cmp(&other.1[0].unwrap_or(0.0)));
    let plots = slowest.map(|(name, value)| {
        let caption = format!(
            "The slowest statement, {} on average, is {name}",
            Quantity::Seconds.text(value[0].unwrap_or(0.0))
        );
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

/// WAL, the disk, and the processors of a trial: each on an axis of its own, as they differ by orders of magnitude.
fn used(run: &Run, trial: &Trial) -> Vec<Plot> {
    let line = |name: &str, shown: &str| {
        let points = rates_since(series(trial, name)?);
        (!points.is_empty()).then(|| Line::new(shown, points))
    };
    let bytes = |name: &str, title: &str, label: &str, lines: Vec<Line>| {
        let peak = |line: &Line| {
            let highest = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
            format!("{} up to {}", line.name, Quantity::BytesPerSecond.text(highest))
        };
        let caption = format!(
            "Of all processes: {}.{}",
            lines.iter().map(peak).collect::<Vec<_>>().join("; "),
            summed_up(&lines)
        );
        let y = Axis::new(label, Quantity::BytesPerSecond, Spread::Linear);
        let is_any = !lines.is_empty();
        is_any.then(|| Plot::new(name, title, caption, over_time(y, lines, spans(trial))))
    };
    // Peaks fill a disk's queue, not medians.
    let highest = |line: Line| Line { long: Long::Highest, ..line };
    let wal = line("wal", "WAL").map(highest).into_iter().collect();
    let disk = [("disk-written", "disk, written"), ("disk-read", "disk, read")]
        .into_iter()
        .filter_map(|(name, shown)| line(name, shown).map(highest))
        .collect();
    [
        bytes("wal", "WAL over time", "bytes of WAL per second", wal),
        bytes("disk", "Disk over time", "bytes per second", disk),
        processors(run, trial, line("machine-busy", "all processes"), line("client-cpu", "pgrig")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Processors that all processes and pgrig itself used, of those that there are.
fn processors(run: &Run, trial: &Trial, all: Option<Line>, own: Option<Line>) -> Option<Plot> {
    let own = own?;
    let mean = |line: &Line| {
        let sum: f64 = line.points.iter().map(|point| point.1).sum();
        Quantity::Sessions.text(sum / line.points.len().max(1) as f64)
    };
    let cores = run.environment.client.cores;
    // Older documents have only the sum of the machine's use. It was observed a little longer than the transactions took.
    let all = all.or_else(|| {
        let busy = (trial.value("machine-busy")? / trial.value("elapsed")?).min(f64::from(cores));
        let ends = [own.points.first()?.0, own.points.last()?.0];
        Some(Line::new("all processes, mean", ends.map(|at| (at, busy)).to_vec()))
    });
    let others = all
        .as_ref()
        .map_or_else(String::new, |all| format!("; all processes together used {} of {cores}", mean(all)));
    let lines: Vec<Line> = all.into_iter().chain([own]).collect();
    let caption = format!(
        "pgrig itself used {} processors on average{others}.{}",
        mean(lines.last()?),
        summed_up(&lines)
    );
    let y = Axis::new(&format!("processors, of {cores}"), Quantity::Sessions, Spread::Linear);
    Some(Plot::new("cpu", "Processors that are busy", caption, over_time(y, lines, spans(trial))))
}

/// A field as text.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
