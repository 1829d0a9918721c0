//! The cost of statements by size, as it was measured and as it is forecast.

use serde_json::Value;

use super::{Size, Statement, rowless};
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
    /// The name within a sentence.
    name: &'static str,
    label: &'static str,
    quantity: Quantity,
}

const COSTS: [Cost; 2] = [
    Cost {
        field: "seconds",
        forecast: "seconds",
        title: "Time",
        name: "time",
        label: "time",
        quantity: Quantity::Seconds,
    },
    Cost {
        field: "wal",
        forecast: "wal",
        title: "WAL",
        name: "WAL",
        label: "bytes of WAL",
        quantity: Quantity::Bytes,
    },
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
    section.tables.extend(temporary(statements));
    section.tables.extend(measured(statements));
    if !drawn.is_empty() {
        section.text.push("Seconds are those of this machine; WAL is the same on others.".to_owned());
    }
    let is_drawn = |at: usize| drawn.iter().any(|one| one.0 == at);
    let reasons: Vec<(String, String)> = statements
        .iter()
        .enumerate()
        .filter(|(_, one)| one.forecast.is_some())
        .flat_map(|(at, one)| without_plot(one, is_drawn(at)))
        .collect();
    section.text.extend(sentence(&reasons));
    section.text.extend(advice(statements));
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
    let last = points.last().copied().filter(|last| low > 0.0 && !(low..=high).contains(&last.1))?;
    let ends = |size: &Size| {
        let values = size.values(cost.field);
        let (low, high) =
            (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        (low > 0.0).then_some((size.bytes, low, high))
    };
    let text = |value: f64| cost.quantity.text(value);
    let ratio = at / last.0;
    let times = if ratio < 10.0 { format!("{ratio:.1}") } else { Quantity::Count.text(ratio.round()) };
    let caption = format!(
        "{}: {} at {} as measured; at {}, {times} times that size, the forecast is {}, with a 90 % interval from {} to {}. Nothing was \
         measured along the dashed line.",
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
        from: Some(last),
        ..Line::new(&format!("forecast, {times} times the size (bar: 90 % interval)"), vec![(at, expected)])
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

/// The costs of a statement that have no plot, each with the reason.
fn without_plot(one: &Statement, is_drawn: bool) -> Vec<(String, String)> {
    let number = one.trial.config.split(": ").next().unwrap_or_default();
    let why = COSTS.each_ref().map(|cost| not_drawn(one, cost, is_drawn));
    if let [Some(time), Some(wal)] = &why
        && time == wal
    {
        return vec![(format!("statement {number}"), time.clone())];
    }
    let named = COSTS.iter().zip(why).filter_map(|(cost, why)| Some((cost, why?)));
    named.map(|(cost, why)| (format!("the {} of statement {number}", cost.name), why)).collect()
}

/// All costs without a plot, those with the same reason together.
fn sentence(reasons: &[(String, String)]) -> Option<String> {
    let mut whys: Vec<&String> = Vec::new();
    for (_, why) in reasons {
        if !whys.contains(&why) {
            whys.push(why);
        }
    }
    let of = |why: &&String| {
        let costs: Vec<&str> =
            reasons.iter().filter(|one| one.1 == **why).map(|one| one.0.as_str()).collect();
        format!("{} ({why})", costs.join(", "))
    };
    let parts: Vec<String> = whys.iter().map(of).collect();
    (!parts.is_empty()).then(|| format!("These have no plot: {}.", parts.join("; ")))
}

/// Why a cost of a statement with a forecast has no plot; none if it has one.
fn not_drawn(one: &Statement, cost: &Cost, is_drawn: bool) -> Option<String> {
    let class = one.found.map(|found| text(&found["class"]))?;
    if class == "catalog-only" || class == "wait" {
        return Some("it takes as much at any size".to_owned());
    }
    if value(&one.forecast?[cost.forecast]).is_none() {
        Some(reason(&one.forecast?[cost.forecast]))
    } else if plot(one, cost).is_none() {
        Some("it does not grow with the size".to_owned())
    } else {
        (!is_drawn).then(|| format!("only the {DRAWN} longest statements are drawn"))
    }
}

/// The options that give figures which are not known from a size on.
fn advice(statements: &[Statement]) -> Option<String> {
    let option = |one: &Statement| {
        let number = one.trial.config.split(": ").next().unwrap_or_default();
        let up_to = Quantity::Bytes.text(one.up_to?).replace(' ', "");
        Some(format!("--up-to {up_to} for statement {number}"))
    };
    let options: Vec<String> = statements.iter().filter_map(option).collect();
    let is_quick = statements.iter().all(|one| one.sizes.len() < 2);
    let how = if is_quick { "leave out --quick, and give" } else { "give" };
    (!options.is_empty())
        .then(|| format!("For the figures that are not known from a size on, {how} {}.", options.join(", ")))
}

/// All forecasts, with the reasons of those that there are not.
fn forecasts(statements: &[Statement]) -> Option<(String, Table)> {
    let mut table = Table::new(&["statement", "tables", "time", "90 % interval", "WAL", "90 % interval"]);
    for one in statements {
        if let Some(reason) = rowless::reason(one) {
            let why = reason.as_str();
            let cells = ["any size", "not known", why, "not known", why];
            table.rows.push(std::iter::once(one.name()).chain(cells.map(str::to_owned)).collect());
            continue;
        }
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

/// Forecasts of temporary files, of the statements that write any.
fn temporary(statements: &[Statement]) -> Option<(String, Table)> {
    let mut table = Table::new(&["statement", "tables", "temporary files", "90 % interval"]);
    for one in statements.iter().filter(|one| one.found.is_some()) {
        let Some(forecast) = one.forecast.filter(|forecast| !forecast["temporary"].is_null()) else {
            continue;
        };
        let text = |value: f64| Quantity::Bytes.text(value);
        let figure = &forecast["temporary"];
        let [expected, interval] = match value(figure) {
            Some((value, low, high)) => [text(value), format!("{} to {}", text(low), text(high))],
            None => ["not known".to_owned(), reason(figure)],
        };
        let bytes = forecast["bytes"].as_f64().map_or_else(String::new, text);
        table.add([one.name(), bytes, expected, interval]);
    }
    (!table.rows.is_empty()).then(|| ("Forecasts of temporary files".to_owned(), table))
}

/// Why nothing is forecast.
fn reason(figure: &Value) -> String {
    let boundary = &figure["beyond"]["boundary"];
    if let Some(at) = boundary["at"].as_f64() {
        let effect = match boundary["cause"].as_str().unwrap_or_default() {
            "cache" => "the work may no longer fit in the cache, a part of the machine's memory".to_owned(),
            setting @ ("max-wal-size" | "checkpoint-timeout") => {
                format!("a checkpoint begins meanwhile ({})", setting.replace('-', "_"))
            }
            setting => format!("the work exceeds {}", setting.replace('-', "_")),
        };
        return format!("from about {} on, {effect}", Quantity::Bytes.text(at));
    }
    match figure.as_str() {
        Some("too-few-sizes") => "too few sizes were measured".to_owned(),
        Some("not-measured") => "it was not measured".to_owned(),
        Some("too-small") => {
            "it hardly grows between the measured sizes, or no more than runs differ".to_owned()
        }
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
