//! Expressions in nanoseconds per row: differences from the first one, and samples over rounds.

use measure::{Run, Trial};
use serde_json::Value;

use super::tps::text;
use super::{Section, Shown, dots};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Dot, Dots, Line, Lines, Plot, Table};
use crate::quantity::Quantity;

/// Most candidates whose samples are drawn.
const MOST_LINES: usize = 8;
const CALIBRATION: &str = "calibration";

pub(super) fn shown(run: &Run) -> Shown {
    if run.trials.iter().any(|trial| trial.config == CALIBRATION) {
        return calibration(run);
    }
    let events: Vec<&Value> =
        run.trials.iter().flat_map(|trial| &trial.events).map(|event| &event.what).collect();
    let of = |kind: &str| events.iter().copied().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let own: Vec<Dot> =
        of("own-time").into_iter().filter_map(|event| row(&event["candidate"], &event["time"])).collect();
    let verdicts = of("verdict");
    let mut plots = Vec::new();
    let floor = verdicts.iter().filter_map(|event| event["noise_floor"].as_f64()).fold(0.0, f64::max);
    let differences: Vec<Dot> = verdicts
        .iter()
        .filter_map(|event| {
            let mut row = row(&event["candidate"], &event["difference"])?;
            row.remark = format!("({})", in_a_word(&event["verdict"]));
            Some(row)
        })
        .collect();
    let baseline = verdicts.first().map(|event| text(&event["baseline"])).unwrap_or_default();
    let sentence: Vec<String> = differences.iter().map(|row| in_words(row, &baseline)).collect();
    let result = match (sentence.as_slice(), own.first()) {
        ([], Some(only)) => format!("{} takes {} per row", only.name, Quantity::PerRow.text(only.value)),
        ([], None) => "No candidate was judged".to_owned(),
        (several, _) => several.join("; "),
    };
    if !differences.is_empty() {
        let caption = format!(
            "Difference from {baseline} per row with its 95 % interval; left of the line is faster. Differences within the band may be noise."
        );
        let axis = Axis::new("difference in time per row", Quantity::PerRow, Spread::Linear);
        let chart = Dots {
            axis,
            rows: differences,
            reference: Some(0.0),
            band: Some((-floor, floor, format!("noise: up to {}", Quantity::PerRow.text(floor)))),
        };
        plots.push(Plot::new(
            "differences",
            &format!("Differences from {baseline}"),
            caption,
            Chart::Dots(chart),
        ));
    }
    if !own.is_empty() {
        let caption =
            format!("Time per row without the empty loop, with its 95 % interval; {}.", cheapest(&own));
        plots.push(Plot::new("times", "Time per row", caption, dots("time per row", Quantity::PerRow, own)));
    }
    let mut sections = vec![Section::new("Verdicts", plots)];
    sections.extend(samples(run).map(|plot| Section::new("Rounds", vec![plot])));
    sections.extend(statements(run));
    Shown { result, sections }
}

/// A verdict on expressions, which are not versions of the same: none improves or regresses.
fn in_a_word(verdict: &Value) -> String {
    match text(verdict).as_str() {
        "improved" => "faster".to_owned(),
        "regressed" => "slower".to_owned(),
        other => other.replace('-', " "),
    }
}

/// The candidates that may be the cheapest: those whose intervals overlap with that of the least value.
fn cheapest(own: &[Dot]) -> String {
    let Some(least) = own.iter().min_by(|one, other| one.value.total_cmp(&other.value)) else {
        return String::new();
    };
    let (_, end) = least.interval.unwrap_or((least.value, least.value));
    let start = |row: &Dot| row.interval.map_or(row.value, |interval| interval.0);
    let alike: Vec<&str> = own.iter().filter(|row| start(row) <= end).map(|row| row.name.as_str()).collect();
    let said = match alike.as_slice() {
        [_] => format!("the cheapest is {}", least.name),
        several if several.len() == own.len() => "none is the cheapest, as all intervals overlap".to_owned(),
        several => format!("the intervals of the cheapest, {}, overlap", several.join(" and ")),
    };
    let none: Vec<&str> = own.iter().filter(|row| start(row) <= 0.0).map(|row| row.name.as_str()).collect();
    match none.as_slice() {
        [] => said,
        within => format!("{said}; not distinguishable from the empty loop: {}", within.join(", ")),
    }
}

fn in_words(row: &Dot, baseline: &str) -> String {
    let by = Quantity::PerRow.text(row.value.abs());
    let direction = if row.value < 0.0 { "less" } else { "more" };
    format!(
        "{} takes {by} per row {direction} than {baseline}: {}",
        row.name,
        row.remark.trim_matches(['(', ')'])
    )
}

fn row(name: &Value, estimate: &Value) -> Option<Dot> {
    let number = |field: &str| estimate[field].as_f64();
    let interval = Some((number("low")?, number("high")?));
    Some(Dot {
        name: text(name),
        value: number("value")?,
        interval,
        observed: Vec::new(),
        remark: String::new(),
    })
}

/// Plot of each sample's time by round: drift shows as a slope.
fn samples(run: &Run) -> Option<Plot> {
    let rounds: Vec<&Trial> = run.trials.iter().filter(|trial| trial.config == "round").collect();
    let first = rounds.first()?;
    let mut names: Vec<&str> = run.request["candidates"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str())
        .collect();
    names.push("empty");
    let lines: Vec<Line> = names
        .into_iter()
        .filter(|name| first.value(name).is_some())
        .take(MOST_LINES)
        .map(|name| {
            let point = |(number, round): (usize, &&Trial)| {
                Some((number as f64 + 1.0, round.value(name)? / round.value("rows")?))
            };
            Line::new(name, rounds.iter().enumerate().filter_map(point).collect())
        })
        .collect();
    let caption = format!(
        "{} rounds, each with a sample of each candidate. If all of them rise or fall together, the machine became slower or faster.",
        rounds.len()
    );
    let chart = Lines {
        x: Axis::new("round", Quantity::Count, Spread::Linear),
        y: Axis::new("time per row", Quantity::PerRow, Spread::Log),
        series: lines,
        spans: Vec::new(),
    };
    Some(Plot::new("rounds", "Samples over rounds", caption, Chart::Lines(chart)))
}

/// Scatter of the times of one candidate, by the number of rows of a sample: with more rows, the fixed cost of a statement
/// and single interruptions matter less.
fn calibration(run: &Run) -> Shown {
    let mut table = Table::new(&["rows", "samples", "mean per row", "standard deviation"]);
    let mut points = Vec::new();
    for series in run.trials.iter().flat_map(|trial| &trial.series) {
        let Some(rows) = series.name.strip_prefix("rows-").and_then(|rows| rows.parse::<f64>().ok()) else {
            continue;
        };
        let count = series.points.len() as f64;
        let mean = series.points.iter().map(|point| point.1).sum::<f64>() / count;
        let squares: f64 = series.points.iter().map(|point| (point.1 - mean).powi(2)).sum();
        let scatter = (squares / (count - 1.0)).sqrt() / mean;
        let shown = if scatter.is_finite() { Quantity::Share.text(scatter) } else { "–".to_owned() };
        table.add([
            Quantity::Count.text(rows),
            Quantity::Count.text(count),
            Quantity::PerRow.text(mean / rows),
            shown,
        ]);
        if scatter.is_finite() && scatter > 0.0 {
            points.push((rows, scatter));
        }
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let name = run.request["candidates"][0]["name"].as_str().unwrap_or("the candidate");
    let steadiest = points.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1));
    let Some((steadiest, last)) = steadiest.zip(points.last().copied()) else {
        return Shown { result: "No number of rows has two samples".to_owned(), sections: Vec::new() };
    };
    let result = format!(
        "{name}: times scatter least with {} rows in a sample, by {} of their mean",
        Quantity::Count.text(steadiest.0),
        Quantity::Share.text(steadiest.1)
    );
    let caption = format!(
        "Standard deviation of the times of samples as a share of their mean: {} with {} rows, {} with {}.",
        Quantity::Share.text(points[0].1),
        Quantity::Count.text(points[0].0),
        Quantity::Share.text(last.1),
        Quantity::Count.text(last.0)
    );
    let chart = Lines {
        x: Axis::new("rows in a sample", Quantity::Count, Spread::Log),
        y: Axis::new("standard deviation, share of the mean", Quantity::Share, Spread::Log),
        series: vec![Line::new(name, points)],
        spans: Vec::new(),
    };
    let section = Section {
        title: "Calibration".to_owned(),
        plots: vec![Plot::new("scatter", "Scatter by rows in a sample", caption, Chart::Lines(chart))],
        tables: vec![("Samples".to_owned(), table)],
        ..Section::default()
    };
    Shown { result, sections: vec![section] }
}

fn statements(run: &Run) -> Option<Section> {
    let mut table = Table::new(&["candidate", "executed", "plan"]);
    for arm in run.plan["arms"].as_array()? {
        table.add([text(&arm["name"]), text(&arm["executed"]), text(&arm["shape"])]);
    }
    Some(Section {
        title: "Statements".to_owned(),
        tables: vec![("Executed statements".to_owned(), table)],
        ..Section::default()
    })
}
