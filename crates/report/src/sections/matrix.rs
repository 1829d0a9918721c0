//! A matrix of settings: a heat map of two axes, and each cell with its trials.

use measure::Run;
use serde_json::Value;

use super::tps::{text, tps};
use super::{Section, Shown, dots, latency, log_dots, marks, trials};
use crate::document::{configs, median};
use crate::plot::{Chart, Colours, Heat, Line, Plot};
use crate::quantity::Quantity;

/// Most cells whose latencies are drawn in one plot.
const MOST_LINES: usize = 8;

pub(super) fn shown(run: &Run) -> Shown {
    let cells = configs(run);
    let rates = trials(run, &cells, tps);
    let best = rates.iter().max_by(|one, other| one.value.total_cmp(&other.value));
    let worst = rates.iter().min_by(|one, other| one.value.total_cmp(&other.value));
    let (Some(best), Some(worst)) = (best, worst) else {
        return Shown { result: "No trial was completed".to_owned(), sections: Vec::new() };
    };
    let per_second = |value: f64| Quantity::PerSecond.text(value);
    let result = format!(
        "{} cells: most transactions per second with {} ({}), fewest with {} ({})",
        rates.len(),
        best.name,
        per_second(best.value),
        worst.name,
        per_second(worst.value)
    );
    let caption = format!(
        "{}. The cells have {} to {} transactions per second.",
        marks(&rates),
        per_second(worst.value),
        per_second(best.value)
    );
    let mut plots: Vec<Plot> = heat(run, &cells).into_iter().collect();
    plots.push(Plot::new(
        "cells",
        "Transactions per second of each cell",
        caption,
        dots("transactions per second", Quantity::PerSecond, rates),
    ));
    let p95 = trials(run, &cells, |trial| trial.value("latency-p95"));
    let highest = p95.iter().map(|row| row.value).fold(0.0, f64::max);
    let caption = format!(
        "95 % of a cell's transactions took at most this long; the highest median is {}.",
        Quantity::Seconds.text(highest)
    );
    let mut latencies =
        vec![Plot::new("p95", "p95 of each cell", caption, log_dots("latency, p95", Quantity::Seconds, p95))];
    if cells.len() <= MOST_LINES {
        let line = |cell: &String| {
            let found = latency::merged(run, Some(cell), "latency")?;
            Some(Line::new(cell, latency::percentiles(&found)))
        };
        latencies.extend(latency::plot(cells.iter().filter_map(line).collect()));
    }
    Shown { result, sections: vec![Section::new("Cells", plots), Section::new("Latency", latencies)] }
}

/// Heat map: the last axis in columns, all others in rows; none with a single axis.
fn heat(run: &Run, cells: &[String]) -> Option<Plot> {
    let axes = run.request["matrix"]["axes"].as_array().filter(|axes| axes.len() > 1)?;
    let values = |axis: &Value| axis["values"].as_array().map_or(0, Vec::len);
    let across = axes.iter().max_by_key(|axis| if values(axis) <= 8 { values(axis) } else { 0 })?;
    let name = text(&across["axis"]);
    let columns: Vec<String> = across["values"].as_array()?.iter().map(text).collect();
    let split = |cell: &str| {
        columns.iter().enumerate().find_map(|(number, column)| {
            let part = format!("{name}={column}");
            let at = format!(" {cell} ").find(&format!(" {part} "))?;
            let rest = format!("{} {}", &cell[..at], cell.get(at + part.len()..).unwrap_or_default());
            Some((rest.split_whitespace().collect::<Vec<_>>().join(" "), number))
        })
    };
    let mut rows: Vec<String> = Vec::new();
    let mut numbers: Vec<Vec<Option<f64>>> = Vec::new();
    for cell in cells {
        let (row, column) = split(cell)?;
        let at = rows.iter().position(|known| *known == row).unwrap_or_else(|| {
            rows.push(row);
            numbers.push(vec![None; columns.len()]);
            rows.len() - 1
        });
        let of_cell: Vec<f64> =
            run.trials.iter().filter(|trial| trial.config == *cell).filter_map(tps).collect();
        numbers[at][column] = median(&of_cell);
    }
    let rest: Vec<String> =
        axes.iter().map(|axis| text(&axis["axis"])).filter(|axis| *axis != name).collect();
    // The trials of a cell differ by as much as chance makes them.
    let scatter = |cell: &String| {
        let of_cell: Vec<f64> =
            run.trials.iter().filter(|trial| trial.config == *cell).filter_map(tps).collect();
        let (low, high) =
            (of_cell.iter().copied().reduce(f64::min)?, of_cell.iter().copied().reduce(f64::max)?);
        (of_cell.len() > 1).then_some((high - low, (high - low) / low))
    };
    let scatters: Vec<(f64, f64)> = cells.iter().filter_map(scatter).collect();
    let widest = scatters.iter().map(|found| found.0).fold(0.0, f64::max);
    let share = scatters.iter().map(|found| found.1).filter(|share| share.is_finite()).fold(0.0, f64::max);
    let chart = Heat {
        colours: Colours::Steps(widest),
        quantity: Quantity::PerSecond,
        row_label: rest.join(", "),
        column_label: format!("{name} →"),
        rows,
        columns,
        cells: numbers,
    };
    let scattered = if scatters.is_empty() {
        " With one trial in each cell, pgrig cannot tell how much of a difference is chance.".to_owned()
    } else {
        format!(
            " The trials of a cell differ by up to {} ({}): cells of one colour differ by less than that.",
            Quantity::PerSecond.text(widest),
            Quantity::Share.text(share)
        )
    };
    let caption = format!(
        "Median transactions per second by {name} (columns) and {} (rows); the stronger the colour, the more.{scattered}",
        rest.join(", ")
    );
    Some(Plot::new("matrix", "Transactions per second", caption, Chart::Heat(chart)))
}
