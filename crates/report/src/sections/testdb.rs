//! Variants of databases for tests.

use measure::Run;

use super::tps::tps;
use super::{Section, Shown, marks, trials};
use crate::document::{configs, median, values};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Dots, Plot};
use crate::quantity::Quantity;

pub(super) fn shown(run: &Run) -> Shown {
    let cells = configs(run);
    let has_tps = run.trials.iter().any(|trial| tps(trial).is_some());
    let (label, quantity) = if has_tps {
        ("transactions per second", Quantity::PerSecond)
    } else {
        ("time to prepare and run", Quantity::Seconds)
    };
    let rows = trials(run, &cells, |trial| if has_tps { tps(trial) } else { trial.value("total") });
    let better = |one: f64, other: f64| if has_tps { one > other } else { one < other };
    let best = rows.iter().reduce(|one, other| if better(other.value, one.value) { other } else { one });
    let Some(best) = best else {
        return Shown { result: "No variant was completed".to_owned(), sections: Vec::new() };
    };
    let beside =
        rows.iter().find(|row| row.name.starts_with("normal")).filter(|normal| normal.name != best.name);
    let beside =
        beside.map_or_else(String::new, |normal| format!(", normal with {}", quantity.text(normal.value)));
    let result = format!("Best median: {} with {}{beside}", best.name, quantity.text(best.value));
    let normal = rows.iter().find(|row| row.name == "normal").map(|row| row.value);
    let reference = if normal.is_some() { ", the line through all rows that of normal" } else { "" };
    let caption = format!("{}{reference}. {result}.", marks(&rows));
    let axis = Axis::new(label, quantity, Spread::Linear);
    let chart = Chart::Dots(Dots { axis, rows, reference: normal, band: None });
    let mut plots = vec![Plot::new(
        "variants",
        if has_tps { "Transactions per second" } else { "Total time" },
        caption,
        chart,
    )];
    if !has_tps {
        plots.extend(parts(run, &cells));
    }
    Shown { result, sections: vec![Section::new("Variants", plots)] }
}

fn parts(run: &Run, cells: &[String]) -> Option<Plot> {
    let rows: Vec<(String, Vec<Option<f64>>)> = cells
        .iter()
        .map(|cell| {
            (
                cell.clone(),
                ["prepare", "command"].iter().map(|name| median(&values(run, cell, name))).collect(),
            )
        })
        .collect();
    let first = rows.first()?;
    let text =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| Quantity::Seconds.text(value));
    let caption =
        format!("Medians; {}: prepare {}, command {}.", first.0, text(first.1[0]), text(first.1[1]));
    let axis = Axis::new("time", Quantity::Seconds, Spread::Linear);
    let groups = vec!["prepare".to_owned(), "command".to_owned()];
    Some(Plot::new("parts", "Prepare and command", caption, Chart::Bars(Bars { axis, groups, rows })))
}
