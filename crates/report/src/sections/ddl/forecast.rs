//! The cost of statements by size, as it was measured and as it is forecast.

use serde_json::Value;

use super::{Size, Statement};
use crate::document::median;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Line, Lines, Plot, Table};
use crate::quantity::Quantity;
use crate::sections::Section;
use crate::sections::tps::text;

/// Statements whose forecasts are drawn: those that take the longest.
const DRAWN: usize = 8;

/// The quantities that are drawn by size.
struct Cost {
    /// The field of a run.
    field: &'static str,
    /// The field of a forecast.
    forecast: &'static str,
    title: &'static str,
    label: &'static str,
    quantity: Quantity,
}

const COSTS: [Cost; 2] = [
    Cost { field: "seconds", forecast: "seconds", title: "Time", label: "time", quantity: Quantity::Seconds },
    Cost { field: "wal", forecast: "wal", title: "WAL", label: "bytes of WAL", quantity: Quantity::Bytes },
];

pub(super) fn section(statements: &[Statement]) -> Option<Section> {
    let mut section = Section::new("By size", Vec::new());
    let works = |one: &&Statement| {
        let class = one.found.map(|found| text(&found["class"]));
        class.is_some_and(|class| class != "catalog-only" && class != "wait")
    };
    let mut drawn: Vec<(usize, &Statement, f64)> = statements
        .iter()
        .enumerate()
        .filter(|(_, one)| works(one))
        .filter(|(_, one)| COSTS.iter().any(|cost| plot(one, cost).is_some()))
        .filter_map(|(at, one)| Some((at, one, one.trial.value("time")?)))
        .collect();
    drawn.sort_by(|one, other| other.2.total_cmp(&one.2));
    drawn.truncate(DRAWN);
    drawn.sort_by_key(|one| one.0);
    for (_, one, _) in &drawn {
        section.plots.extend(COSTS.iter().filter_map(|cost| plot(one, cost)));
    }
    section.tables.extend(forecasts(statements));
    section.tables.extend(measured(statements));
    if !drawn.is_empty() {
        section.text.push(
            "Seconds are those of this machine; WAL is the same on others. Statements that change only catalogs are not drawn: they take \
             as long at any size."
                .to_owned(),
        );
    }
    (!section.plots.is_empty() || !section.tables.is_empty()).then_some(section)
}

/// A forecast with its interval.
fn value(figure: &Value) -> Option<(f64, f64, f64)> {
    let found = &figure["value"];
    Some((found["value"].as_f64()?, found["low"].as_f64()?, found["high"].as_f64()?))
}

fn plot(one: &Statement, cost: &Cost) -> Option<Plot> {
    let forecast = one.forecast?;
    let at = forecast["bytes"].as_f64()?;
    let (expected, low, high) = value(&forecast[cost.forecast])?;
    let median_of = |size: &Size| Some((size.bytes, median(&size.values(cost.field))?));
    let points: Vec<(f64, f64)> =
        one.sizes.iter().filter_map(median_of).filter(|point| point.1 > 0.0).collect();
    // On a logarithmic axis there is no zero. A cost that does not grow needs no drawing.
    let last = points.last().filter(|last| low > 0.0 && !(low..=high).contains(&last.1))?;
    let ends = |size: &Size| {
        let values = size.values(cost.field);
        let (low, high) =
            (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        (low > 0.0).then_some((size.bytes, low, high))
    };
    let text = |value: f64| cost.quantity.text(value);
    let caption = format!(
        "{}: {} at {} as measured; at {}, the forecast is {}, with a 90 % interval from {} to {}.",
        one.name(),
        text(last.1),
        Quantity::Bytes.text(last.0),
        Quantity::Bytes.text(at),
        text(expected),
        text(low),
        text(high)
    );
    let measured = Line {
        intervals: one.sizes.iter().filter_map(ends).collect(),
        ..Line::new("measured (median; bar: lowest to highest run)", points)
    };
    let forecast = Line {
        intervals: vec![(at, low, high)],
        ..Line::new("forecast (bar: 90 % interval)", vec![(at, expected)])
    };
    let number = one.trial.config.split(": ").next().unwrap_or_default();
    let chart = Lines {
        x: Axis::new("size of the statement's tables", Quantity::Bytes, Spread::Log),
        y: Axis::new(cost.label, cost.quantity, Spread::Log),
        series: vec![measured, forecast],
        spans: Vec::new(),
    };
    let title = format!("{} of statement {number} by size", cost.title);
    Some(Plot::new(&format!("forecast-{}-{number}", cost.forecast), &title, caption, Chart::Lines(chart)))
}

/// All forecasts, with the reasons of those that there are not.
fn forecasts(statements: &[Statement]) -> Option<(String, Table)> {
    let mut table = Table::new(&["statement", "tables", "time", "90 % interval", "WAL", "90 % interval"]);
    for one in statements {
        let Some(forecast) = one.forecast.filter(|_| one.found.is_some()) else { continue };
        let cells = |cost: &Cost| {
            let figure = &forecast[cost.forecast];
            let text = |value: f64| cost.quantity.text(value);
            match value(figure) {
                Some((value, low, high)) => [text(value), format!("{} to {}", text(low), text(high))],
                None => ["not known".to_owned(), reason(figure)],
            }
        };
        let bytes = forecast["bytes"].as_f64().map_or_else(String::new, |bytes| Quantity::Bytes.text(bytes));
        let [time, wal] = [cells(&COSTS[0]), cells(&COSTS[1])];
        table.rows.push([one.name(), bytes].into_iter().chain(time).chain(wal).collect());
    }
    (!table.rows.is_empty()).then(|| ("Forecasts".to_owned(), table))
}

/// Why nothing is forecast.
fn reason(figure: &Value) -> String {
    let boundary = &figure["beyond"]["boundary"];
    if let Some(at) = boundary["at"].as_f64() {
        let cause = match boundary["cause"].as_str().unwrap_or_default() {
            "cache" => "the machine's memory".to_owned(),
            setting => setting.replace('-', "_"),
        };
        return format!("from about {} on, the work exceeds {cause}", Quantity::Bytes.text(at));
    }
    match figure.as_str() {
        Some("too-few-sizes") => "too few sizes were measured".to_owned(),
        Some("too-small") => "it hardly grows between the measured sizes".to_owned(),
        _ => String::new(),
    }
}

/// Time and WAL at each measured size.
fn measured(statements: &[Statement]) -> Option<(String, Table)> {
    let mut table = Table::new(&["statement", "tables", "rows", "time", "lowest to highest", "WAL"]);
    for one in statements.iter().filter(|one| one.found.is_some() && one.sizes.len() > 1) {
        for size in &one.sizes {
            let seconds = size.values("seconds");
            let text = |value: Option<f64>, quantity: Quantity| {
                value.map_or_else(|| "–".to_owned(), |value| quantity.text(value))
            };
            let end = |of: fn(f64, f64) -> f64| text(seconds.iter().copied().reduce(of), Quantity::Seconds);
            table.add([
                one.name(),
                Quantity::Bytes.text(size.bytes),
                Quantity::Count.text(size.rows),
                text(median(&seconds), Quantity::Seconds),
                format!("{} to {}", end(f64::min), end(f64::max)),
                text(median(&size.values("wal")), Quantity::Bytes),
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| ("Measured at each size".to_owned(), table))
}
