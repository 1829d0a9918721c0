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

pub(super) fn shown(run: &Run) -> Shown {
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
            row.remark = text(&event["verdict"]).replace('-', " ");
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
        let axis = Axis::new("ns per row more than the first candidate", Quantity::PerRow, Spread::Linear);
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
        let cheapest =
            own.iter().min_by(|one, other| one.value.total_cmp(&other.value)).map_or("", |row| &row.name);
        let caption = format!(
            "Time per row without the empty loop, with its 95 % interval; the cheapest is {cheapest}."
        );
        plots.push(Plot::new(
            "times",
            "Time per row",
            caption,
            dots("nanoseconds per row", Quantity::PerRow, own),
        ));
    }
    let mut sections = vec![Section::new("Verdicts", plots)];
    sections.extend(samples(run).map(|plot| Section::new("Rounds", vec![plot])));
    sections.extend(statements(run));
    Shown { result, sections }
}

fn in_words(row: &Dot, baseline: &str) -> String {
    let by = Quantity::PerRow.text(row.value.abs());
    let direction = if row.value < 0.0 { "less" } else { "more" };
    format!("{} takes {by} per row {direction} than {baseline}: {}", row.name, row.remark)
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
            Line { name: name.to_owned(), points: rounds.iter().enumerate().filter_map(point).collect() }
        })
        .collect();
    let caption = format!(
        "{} rounds, each with a sample of each candidate; a slope would be drift of the machine.",
        rounds.len()
    );
    let chart = Lines {
        x: Axis::new("round", Quantity::Count, Spread::Linear),
        y: Axis::new("nanoseconds per row", Quantity::PerRow, Spread::Log),
        series: lines,
        spans: Vec::new(),
    };
    Some(Plot::new("rounds", "Samples over rounds", caption, Chart::Lines(chart)))
}

fn statements(run: &Run) -> Option<Section> {
    let mut table = Table::new(&["candidate", "executed", "plan"]);
    for arm in run.plan["arms"].as_array()? {
        table.add([text(&arm["name"]), text(&arm["executed"]), text(&arm["shape"])]);
    }
    Some(Section {
        title: "Statements".to_owned(),
        tables: vec![("What the server executes".to_owned(), table)],
        ..Section::default()
    })
}
