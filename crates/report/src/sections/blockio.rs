//! Block I/O: each step with its trials, and rates.

use measure::{Run, Trial};
use serde_json::Value;

use super::{Section, Shown, log_dots};
use crate::document::{median, values};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Dot, Plot};
use crate::quantity::Quantity;

const CONFIG: &str = "total";

pub(super) fn shown(run: &Run) -> Shown {
    let steps: Vec<&str> =
        run.plan["steps"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let rows: Vec<Dot> = steps
        .iter()
        .filter_map(|step| {
            let observed = values(run, CONFIG, step);
            Some(Dot {
                name: (*step).to_owned(),
                value: median(&observed)?,
                interval: None,
                observed,
                remark: state(run, step),
            })
        })
        .collect();
    let total = |trial: &Trial| steps.iter().filter_map(|step| trial.value(step)).sum::<f64>();
    let totals: Vec<f64> = run.trials.iter().filter(|trial| trial.config == CONFIG).map(total).collect();
    let Some(whole) = median(&totals) else {
        return Shown { result: "No trial was completed".to_owned(), sections: Vec::new() };
    };
    let size = run.request["size"].as_f64().unwrap_or(0.0);
    let trials =
        if totals.len() == 1 { "1 trial".to_owned() } else { format!("median of {} trials", totals.len()) };
    let result = format!(
        "All steps on a table of {} took {} ({trials})",
        Quantity::Bytes.text(size),
        Quantity::Seconds.text(whole)
    );
    let longest = rows.iter().max_by(|one, other| one.value.total_cmp(&other.value));
    let caption = format!(
        "Each circle is a trial, each line the median, on a logarithmic scale; the longest step is {}.",
        longest.map_or("", |row| &row.name)
    );
    let mut plots =
        vec![Plot::new("steps", "Time of each step", caption, log_dots("time", Quantity::Seconds, rows))];
    plots.extend(rates(run, &steps));
    Shown { result, sections: vec![Section::new("Steps", plots)] }
}

/// Source of the step's data (a cache or storage), if all trials agree.
fn state(run: &Run, step: &str) -> String {
    let events = run.trials.iter().flat_map(|trial| &trial.events);
    let mut found: Vec<&str> = events
        .filter(|event| event.what["event"] == "state" && event.what["step"] == step)
        .filter_map(|event| event.what["state"].as_str())
        .collect();
    found.dedup();
    if let [one] = found.as_slice() { format!("({one})") } else { String::new() }
}

/// Plot of the least bytes that each step must read and write, divided by its time.
fn rates(run: &Run, steps: &[&str]) -> Option<Plot> {
    let rate = |step: &str| {
        let of = |trial: &Trial| {
            let bytes =
                trial.value(&format!("{step}-must-read"))? + trial.value(&format!("{step}-must-write"))?;
            (bytes > 0.0).then(|| Some(bytes / trial.value(step)?))?
        };
        median(&run.trials.iter().filter(|trial| trial.config == CONFIG).filter_map(of).collect::<Vec<_>>())
    };
    let rows: Vec<(String, Vec<Option<f64>>)> =
        steps.iter().filter_map(|step| Some(((*step).to_owned(), vec![Some(rate(step)?)]))).collect();
    let least =
        rows.iter().min_by(|one, other| one.1[0].unwrap_or(0.0).total_cmp(&other.1[0].unwrap_or(0.0)))?;
    let caption = format!(
        "Bytes that a step must read and write, divided by its time (medians); the lowest is {} of {}. Cached steps measure memory, not the disk.",
        Quantity::BytesPerSecond.text(least.1[0].unwrap_or(0.0)),
        least.0
    );
    let axis = Axis::new("bytes per second", Quantity::BytesPerSecond, Spread::Linear);
    Some(Plot::new(
        "rates",
        "Rate of each step",
        caption,
        Chart::Bars(Bars { axis, groups: vec![String::new()], rows }),
    ))
}
