//! Fills: rows over time, steps, sizes, probes, marks of a volume, whole schemas, and the ladder.

use measure::{Run, Trial};
use serde_json::Value;

use super::intervals::rates;
use super::together::grouped;
use super::tps::text;
use super::{Section, Shown, dots, marks, trials};
use crate::document::{configs, median, series};
use crate::escape::shortened;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Grouped, Line, Lines, Plot, Span, SpanKind, Table, numbered};
use crate::quantity::Quantity;

/// The trial of a schema that sums up its tables.
const ALL: &str = "all tables";
/// Least number of points of a rate for which a plot is made.
const FEWEST: usize = 3;
const STEPS: [&str; 7] =
    ["drop", "create", "generate", "vacuum", "primary-keys", "foreign-keys", "keys-and-indexes"];

pub(super) fn shown(run: &Run) -> Shown {
    let mut sections = Vec::new();
    let all = run.trials.iter().find(|trial| trial.config == ALL);
    if all.is_some() {
        sections.push(tables(run));
    }
    if let [trial] = run.trials.as_slice() {
        let plots: Vec<Plot> = [rate(trial), steps(trial), sizes(trial)].into_iter().flatten().collect();
        sections.push(Section::new("Filling", plots));
        sections.extend(probes(trial));
    }
    let whole = all.or(run.trials.first());
    let result = whole.and_then(result).unwrap_or_else(|| {
        match run.trials.iter().flat_map(|trial| &trial.events).last() {
            Some(event) => event.text.clone(),
            None => "No trial was completed".to_owned(),
        }
    });
    Shown { result, sections }
}

fn size(trial: &Trial) -> Option<f64> {
    let before = trial.value("heap-before").unwrap_or(0.0) + trial.value("index-before").unwrap_or(0.0);
    Some(trial.value("heap")? + trial.value("index").unwrap_or(0.0) - before)
}

fn result(trial: &Trial) -> Option<String> {
    let (size, seconds) = (size(trial)?, trial.value("total")?);
    let rows =
        trial.value("rows").map_or_else(String::new, |rows| format!(", {} rows", Quantity::Count.text(rows)));
    Some(format!(
        "{} in {}: {}{rows}",
        Quantity::Bytes.text(size),
        Quantity::Seconds.text(seconds),
        Quantity::BytesPerSecond.text(size / seconds)
    ))
}

fn rate(trial: &Trial) -> Option<Plot> {
    let points = rates(series(trial, "rows-sent")?);
    if points.len() < FEWEST {
        return None;
    }
    let (low, high) = (
        points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min),
        points.iter().map(|point| point.1).fold(0.0, f64::max),
    );
    let kinds = [
        "mark-crossed",
        "mark-passed-before",
        "waiting-for-space",
        "space-came-back",
        "stopped",
        "volume-grew",
        "volume-shrank",
    ];
    let events = trial
        .events
        .iter()
        .filter(|event| event.what["event"].as_str().is_some_and(|kind| kinds.contains(&kind)));
    let spans: Vec<Span> = events
        .map(|event| Span {
            from: event.at,
            until: event.at,
            kind: SpanKind::Moment,
            text: event.text.clone(),
        })
        .collect();
    let marked = match spans.as_slice() {
        [only] => format!(" Marked: {}.", shortened(&only.text, 80)),
        several => numbered(several),
    };
    let caption = format!(
        "pgrig sent between {} and {} rows per second.{marked}",
        Quantity::Count.text(low),
        Quantity::Count.text(high)
    );
    let lines = vec![Line::new("rows sent", points)];
    let y = Axis::new("rows per second", Quantity::RowsPerSecond, Spread::Linear);
    let x = Axis::new("time since step generate began", Quantity::Elapsed, Spread::Linear);
    Some(Plot::new("rows", "Rows per second", caption, Chart::Lines(Lines { x, y, series: lines, spans })))
}

fn steps(trial: &Trial) -> Option<Plot> {
    let rows: Vec<(String, Vec<Option<f64>>)> = STEPS
        .into_iter()
        .filter_map(|step| Some((step.to_owned(), vec![Some(trial.value(step)?)])))
        .collect();
    let longest =
        rows.iter().max_by(|one, other| one.1[0].unwrap_or(0.0).total_cmp(&other.1[0].unwrap_or(0.0)))?;
    let caption = format!(
        "The longest step, {}, took {}.",
        longest.0,
        Quantity::Seconds.text(longest.1[0].unwrap_or(0.0))
    );
    let axis = Axis::new("time", Quantity::Seconds, Spread::Linear);
    Some(Plot::new("steps", "Steps", caption, Chart::Bars(Bars { axis, groups: vec![String::new()], rows })))
}

fn sizes(trial: &Trial) -> Option<Plot> {
    let row = |name: &str, shown: &str| {
        let values = [trial.value(&format!("predicted-{name}")), trial.value(name)];
        values.iter().all(Option::is_some).then(|| (shown.to_owned(), values.to_vec()))
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = [("heap", "tables"), ("index", "indexes"), ("wal", "WAL")]
        .into_iter()
        .filter_map(|(name, shown)| row(name, shown))
        .collect();
    // The one with the worst prediction.
    let off = |row: &&(String, Vec<Option<f64>>)| match row.1[..] {
        [Some(predicted), Some(actual)] if predicted > 0.0 && actual > 0.0 => (predicted / actual).ln().abs(),
        _ => 0.0,
    };
    let worst = rows.iter().max_by(|one, other| off(one).total_cmp(&off(other)))?;
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| Quantity::Bytes.text(value));
    let caption = format!(
        "Furthest from its prediction is the size of {}: {} predicted, {} actual.",
        worst.0,
        text(worst.1[0]),
        text(worst.1[1])
    );
    let axis = Axis::new("size", Quantity::Bytes, Spread::Linear);
    let groups = vec!["predicted".to_owned(), "actual".to_owned()];
    Some(Plot::new("sizes", "Predicted and actual sizes", caption, Chart::Bars(Bars { axis, groups, rows })))
}

/// Latency of each probe by the size of the table, and how much of it came from shared_buffers.
fn probes(trial: &Trial) -> Option<Section> {
    let mut kinds: Vec<&str> = Vec::new();
    for series in &trial.series {
        let kind = series.name.strip_prefix("probe-").and_then(|name| name.strip_suffix("-p50"));
        kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
    }
    let plots: Vec<Plot> =
        kinds.into_iter().flat_map(|kind| [probe(trial, kind), hits(trial, kind)]).flatten().collect();
    (!plots.is_empty()).then(|| Section::new("Probes by size of the table", plots))
}

/// The size from which on less than this share of blocks was found in shared_buffers: the table has outgrown it.
const IN_CACHE: f64 = 0.95;

/// Share of blocks that were found in shared_buffers, by size.
fn found_by_size(trial: &Trial, kind: &str) -> Vec<(f64, f64)> {
    let counts = |what: &str| series(trial, &format!("probe-{kind}-{what}")).unwrap_or_default();
    let share = |((size, hits), (_, reads)): (&(f64, f64), &(f64, f64))| {
        (hits + reads > 0.0).then(|| (*size, hits / (hits + reads)))
    };
    counts("hits").iter().zip(counts("reads")).filter_map(share).collect()
}

/// Between which sizes the table leaves the cache for good: it was in it before, and from there on no size has enough of its blocks
/// in it.
fn outgrown(found: &[(f64, f64)]) -> Option<(f64, f64)> {
    let last_within = found.iter().rposition(|point| point.1 >= IN_CACHE)?;
    Some((found[last_within].0, found.get(last_within + 1)?.0))
}

/// The sentence on it.
fn in_words((within, outside): (f64, f64)) -> String {
    format!(
        "Between {} and {}, the share of blocks found in shared_buffers fell below 95 %",
        Quantity::Bytes.text(within),
        Quantity::Bytes.text(outside)
    )
}

fn by_size(y: Axis, lines: Vec<Line>, left: Option<(f64, f64)>) -> Chart {
    let span = |(from, until): (f64, f64)| Span {
        from,
        until,
        kind: SpanKind::Moment,
        text: "the table outgrew shared_buffers".to_owned(),
    };

    Chart::Lines(Lines {
        x: Axis::new("size of the table", Quantity::Bytes, Spread::Linear),
        y,
        series: lines,
        spans: left.map(span).into_iter().collect(),
    })
}

/// The percentiles of a probe, and the least number of executions of which that percentile is not the slowest one.
const PERCENTILES: [(&str, f64); 4] = [("max", 1.0), ("p99", 100.0), ("p95", 20.0), ("p50", 1.0)];
/// With fewer executions, medians are not compared in words.
const COMPARABLE: f64 = 20.0;

fn probe(trial: &Trial, kind: &str) -> Option<Plot> {
    let executions = series(trial, &format!("probe-{kind}-executions"));
    // Older documents do not tell.
    let times = |size: f64| {
        executions.map_or(f64::INFINITY, |all| {
            all.iter().find(|point| point.0.to_bits() == size.to_bits()).map_or(0.0, |point| point.1)
        })
    };
    let line = |(name, least): (&str, f64)| {
        let mut points = series(trial, &format!("probe-{kind}-{name}"))?.to_vec();
        points.retain(|point| times(point.0) >= least);
        (!points.is_empty()).then(|| Line::new(name, points))
    };
    let lines: Vec<Line> = PERCENTILES.into_iter().filter_map(line).collect();
    let middle = series(trial, &format!("probe-{kind}-p50"))?;
    let comparable: Vec<&(f64, f64)> = middle.iter().filter(|point| times(point.0) >= COMPARABLE).collect();
    let left = outgrown(&found_by_size(trial, kind));
    let leaves = left.map_or_else(String::new, |left| format!(" {}.", in_words(left)));
    let at = |point: &(f64, f64)| {
        format!("{} at {}", Quantity::Seconds.text(point.1), Quantity::Bytes.text(point.0))
    };
    let medians = match comparable.as_slice() {
        [first, .., last] => format!("The median latency of {kind} was {} and {}.", at(first), at(last)),
        _ => format!("The last median latency of {kind} was {}.", at(middle.last()?)),
    };
    let counts = executions.unwrap_or_default().iter().map(|point| point.1);
    let (fewest, most) = (counts.clone().reduce(f64::min), counts.reduce(f64::max));
    let executed = fewest.zip(most).map_or_else(String::new, |(fewest, most)| {
        let times = if fewest >= most {
            Quantity::Count.text(most)
        } else {
            format!("{} to {}", Quantity::Count.text(fewest), Quantity::Count.text(most))
        };
        let times = if times == "1" { "once".to_owned() } else { format!("{times} times") };
        format!(" It was executed {times} at each size; p95 is drawn from 20 executions on, p99 from 100 on.")
    });
    let caption = format!("{medians}{executed}{leaves}");
    let y = Axis::new("latency", Quantity::Seconds, Spread::Log);
    Some(Plot::new(
        &format!("probe-{kind}"),
        &format!("Latency of the probe {kind}"),
        caption,
        by_size(y, lines, left),
    ))
}

/// Plot of the share of blocks found in shared_buffers: where it falls, the table has outgrown the
/// cache.
fn hits(trial: &Trial, kind: &str) -> Option<Plot> {
    let points = found_by_size(trial, kind);
    let left = outgrown(&points);
    let caption = match left {
        Some(left) => format!("{}.", in_words(left)),
        None if points.last()?.1 < IN_CACHE => {
            "At every size, less than 95 % of the blocks were found in shared_buffers.".to_owned()
        }
        None => "At the end, at least 95 % of the blocks were found in shared_buffers: the table did not outgrow them."
            .to_owned(),
    };
    points.first()?;
    let y = Axis::new("share of blocks found in shared_buffers", Quantity::Share, Spread::Linear);
    let lines = vec![Line::new("hits", points)];
    Some(Plot::new(
        &format!("hits-{kind}"),
        &format!("Blocks of the probe {kind} in shared_buffers"),
        caption,
        by_size(y, lines, left),
    ))
}

/// Each table of a schema, by size and by rate.
fn tables(run: &Run) -> Section {
    let trials: Vec<&Trial> = run.trials.iter().filter(|trial| trial.config != ALL).collect();
    let mut by_size: Vec<(String, f64, f64)> = trials
        .iter()
        .filter_map(|trial| {
            Some((trial.config.clone(), size(trial)?, trial.value("rows")? / trial.value("total")?))
        })
        .collect();
    by_size.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut table = Table::new(&["table", "rows", "size", "time", "rows/s"]);
    for trial in &trials {
        let cell = |name: &str, quantity: Quantity| {
            trial.value(name).map_or_else(|| "–".to_owned(), |value| quantity.text(value))
        };
        let rate = by_size
            .iter()
            .find(|(name, ..)| *name == trial.config)
            .map_or_else(String::new, |row| Quantity::RowsPerSecond.text(row.2));
        table.add([
            trial.config.clone(),
            cell("rows", Quantity::Count),
            size(trial).map_or_else(String::new, |size| Quantity::Bytes.text(size)),
            cell("total", Quantity::Seconds),
            rate,
        ]);
    }
    let mut plots = Vec::new();
    if let Some(first) = by_size.first() {
        let largest: Vec<&(String, f64, f64)> = by_size.iter().take(30).collect();
        let rows = |of: &dyn Fn(&(String, f64, f64)) -> f64| {
            largest.iter().map(|row| (row.0.clone(), vec![Some(of(row))])).collect()
        };
        let bars = |label: &str, quantity, rows| {
            Chart::Bars(Bars {
                axis: Axis::new(label, quantity, Spread::Linear),
                groups: vec![String::new()],
                rows,
            })
        };
        let caption = format!(
            "{} tables; the largest, {}, has {} with its indexes.",
            by_size.len(),
            first.0,
            Quantity::Bytes.text(first.1)
        );
        plots.push(Plot::new(
            "tables",
            "Tables by size",
            caption,
            bars("size", Quantity::Bytes, rows(&|row| row.1)),
        ));
        let slowest = largest.iter().min_by(|one, other| one.2.total_cmp(&other.2)).unwrap_or(&first);
        let caption = format!(
            "Rows divided by the time of all steps, in the order of the tables' sizes; the slowest of them, {}, got {} rows per second.",
            slowest.0,
            Quantity::Count.text(slowest.2)
        );
        plots.push(Plot::new(
            "table-rates",
            "Rows per second of each table",
            caption,
            bars("rows per second", Quantity::RowsPerSecond, rows(&|row| row.2)),
        ));
    }
    Section {
        title: "Tables".to_owned(),
        plots,
        tables: vec![("All tables".to_owned(), table)],
        ..Section::default()
    }
}

/// Each step of a fill of one table.
pub(super) fn steps_of(run: &Run) -> Vec<(String, Grouped)> {
    let [trial] = run.trials.as_slice() else { return Vec::new() };
    STEPS
        .into_iter()
        .filter_map(|step| Some((step.to_owned(), Grouped { value: trial.value(step)?, interval: None })))
        .collect()
}

/// Rows per second of each table of a schema.
pub(super) fn table_rates(run: &Run) -> Vec<(String, Grouped)> {
    let trials = run.trials.iter().filter(|trial| run.trials.len() > 1 && trial.config != ALL);
    let rate = |trial: &Trial| {
        let value = trial.value("rows")? / trial.value("total")?;
        Some((trial.config.clone(), Grouped { value, interval: None }))
    };
    trials.filter_map(rate).collect()
}

/// The rate of each level of the ladder, in their order.
pub(super) fn levels(run: &Run) -> Vec<(String, Grouped)> {
    let of = |level: String| {
        let trials = run.trials.iter().filter(|trial| trial.config == level);
        let rates = trials.filter_map(|trial| Some(size(trial)? / trial.value("total")?)).collect();
        Some((level_name(&level), grouped(rates)?))
    };
    levels_in_order(run).into_iter().filter_map(of).collect()
}

fn levels_in_order(run: &Run) -> Vec<String> {
    let mut levels: Vec<String> = configs(run);
    levels.sort_by_key(|level| (level.starts_with("best"), level.parse::<u32>().unwrap_or(u32::MAX)));
    levels
}

/// The levels of the ladder in a few words.
const LEVELS: [(&str, &str); 9] = [
    ("0", "CREATE TABLE AS"),
    ("1", "pgbench's plain init"),
    ("2", "unlogged"),
    ("3", "data only"),
    ("4", "fillfactor 10"),
    ("5", "two streams"),
    ("bonus", "partitions, rows re-inserted"),
    ("best of 1", "pgrig's own method"),
    ("best of 5", "pgrig's own method"),
];

/// A level with its words: `4: fillfactor 10`.
fn level_name(level: &str) -> String {
    match LEVELS.iter().find(|(name, _)| *name == level).map(|(_, phrase)| *phrase) {
        Some(phrase) if level.starts_with("best of ") => {
            format!("{phrase} for {}", level.trim_start_matches("best of "))
        }
        Some(phrase) => format!("{level}: {phrase}"),
        None => format!("level {level}"),
    }
}

/// `4: fillfactor 10` in a sentence.
fn in_prose(name: &str) -> String {
    name.split_once(": ")
        .map_or_else(|| name.to_owned(), |(level, phrase)| format!("level {level} ({phrase})"))
}

/// The levels of the ladder, in their order.
pub(super) fn ladder(run: &Run) -> Shown {
    let rate = |trial: &Trial| Some(size(trial)? / trial.value("total")?);
    let levels = levels_in_order(run);
    let mut rows = trials(run, &levels, rate);
    for row in &mut rows {
        row.name = level_name(&row.name);
    }
    let best = rows.iter().max_by(|one, other| one.value.total_cmp(&other.value));
    let result = best.map_or_else(
        || "No level was completed".to_owned(),
        |best| {
            let plain = level_name("1");
            let first = rows.iter().find(|row| row.name == plain).map_or_else(String::new, |first| {
                format!(", {} times {}", crate::quantity::short(best.value / first.value), in_prose(&plain))
            });
            format!(
                "Fastest: {} with {}{first}",
                in_prose(&best.name),
                Quantity::BytesPerSecond.text(best.value)
            )
        },
    );
    let caption = format!("{}. {result}.", marks(&rows));
    let flags: &Value = &run.request["ladder"]["levels"];
    let mut table = Table::new(&["level", "flags", "median time"]);
    for level in &levels {
        let times: Vec<f64> = run
            .trials
            .iter()
            .filter(|trial| trial.config == *level)
            .filter_map(|trial| trial.value("total"))
            .collect();
        table.add([
            level.clone(),
            text(&flags[level]),
            median(&times).map_or_else(String::new, |value| Quantity::Seconds.text(value)),
        ]);
    }
    let plot = Plot::new(
        "ladder",
        "Write rate of each level",
        caption,
        dots("bytes of finished tables and indexes per second", Quantity::BytesPerSecond, rows),
    );
    let section = Section {
        title: "Levels".to_owned(),
        plots: vec![plot],
        tables: vec![("Flags of the levels".to_owned(), table)],
        ..Section::default()
    };
    Shown { result, sections: vec![section] }
}
