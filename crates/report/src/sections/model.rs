//! How faithful a copy is.

use measure::Run;
use serde_json::Value;

use super::tps::text;
use super::{Section, Shown};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Colours, Heat, Plot};
use crate::quantity::Quantity;

/// Columns and tables that are drawn.
const MOST: usize = 40;
/// A field that is further off counts as this many tolerances.
const FAR: f64 = 100.0;

pub(super) fn shown(run: &Run) -> Shown {
    let trial = run.trials.first();
    let share = |all: &str, part: &str| {
        let trial = trial?;
        let all = trial.value(all).filter(|all| *all > 0.0)?;
        Some(trial.value(part)? / all)
    };
    let alike = |distance: &str| Some(1.0 - trial?.value(distance)?);
    let distances = |name: &str| (alike(&format!("{name}-distance")), alike(&format!("own-{name}-distance")));
    let [of_columns, of_pairs, of_keys] = ["column", "pair", "rows-per-key"].map(distances);
    let rows: Vec<(String, Vec<Option<f64>>)> = [
        (
            "statistics within tolerance",
            share("fields", "fields-within"),
            share("own-fields", "own-fields-within"),
        ),
        ("plans of the same shape", share("plans", "plans-same"), share("own-plans", "own-plans-same")),
        ("distributions of columns", of_columns.0, of_columns.1),
        ("distributions of two columns", of_pairs.0, of_pairs.1),
        ("rows for each key", of_keys.0, of_keys.1),
    ]
    .into_iter()
    .filter(|(_, copy, _)| copy.is_some())
    .map(|(name, copy, own)| (name.to_owned(), vec![copy, own]))
    .collect();
    if rows.is_empty() {
        return Shown { result: "No comparison was completed".to_owned(), sections: Vec::new() };
    }
    let said = |(name, values): &(String, Vec<Option<f64>>)| {
        format!("{}: {}", name, Quantity::Share.text(values[0].unwrap_or(0.0)))
    };
    let result = format!(
        "The copy compared with the original: {}",
        rows.iter().map(said).collect::<Vec<_>>().join("; ")
    );
    let has_own = rows.iter().any(|row| row.1[1].is_some());
    let groups = if has_own {
        vec!["copy".to_owned(), "the original with itself".to_owned()]
    } else {
        vec!["copy".to_owned()]
    };
    let caption = if has_own {
        "Shares of the copy that agree with the original, beside those of the original with itself."
            .to_owned()
    } else {
        "Shares of the copy that agree with the original.".to_owned()
    };
    let rows = rows.into_iter().map(|(name, values)| (name, values[..groups.len()].to_vec())).collect();
    let axis = Axis::new("share", Quantity::Share, Spread::Linear);
    let plot = Plot::new("fidelity", "Fidelity", caption, Chart::Bars(Bars { axis, groups, rows }));
    let mut plots = vec![plot];
    plots.extend(columns(run));
    let mut sections = vec![Section::new("Copy and original", plots)];
    sections.extend(sizes(run).map(|plot| Section::new("Tables", vec![plot])));
    Shown { result, sections }
}

fn events<'a>(run: &'a Run, kind: &str) -> Vec<&'a Value> {
    let all = run.trials.iter().flat_map(|trial| &trial.events).map(|event| &event.what);
    all.filter(|event| event["event"] == kind).collect()
}

/// How far each statistic of each column is off, in tolerances: up to 1 it is as in the original. The worst columns first.
fn columns(run: &Run) -> Option<Plot> {
    let mut statistics: Vec<String> = Vec::new();
    let mut rows: Vec<(String, Vec<(usize, f64)>)> = Vec::new();
    for event in events(run, "column") {
        let mut row = Vec::new();
        for field in event["fields"].as_array().into_iter().flatten() {
            let name = text(&field["statistic"]);
            let at = statistics.iter().position(|known| *known == name).unwrap_or_else(|| {
                statistics.push(name);
                statistics.len() - 1
            });
            row.extend(tolerances(field).map(|off| (at, off)));
        }
        rows.push((text(&event["column"]), row));
    }
    let worst = |row: &(String, Vec<(usize, f64)>)| row.1.iter().map(|field| field.1).fold(0.0, f64::max);
    rows.sort_by(|one, other| worst(other).total_cmp(&worst(one)));
    let (first, all) = (rows.first()?.clone(), rows.len());
    let outside = rows.iter().filter(|row| worst(row) > 1.0).count();
    rows.truncate(MOST);
    let shown = if all > rows.len() {
        format!(" The {} worst of them are shown.", rows.len())
    } else {
        String::new()
    };
    let furthest = first.1.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let caption = format!(
        "Difference between copy and original, divided by the tolerance of each statistic: up to 1, they agree. In {outside} of {all} \
         columns, a statistic exceeds its tolerance; the greatest of these values is that of {} of {}: {}.{shown}",
        statistics[furthest.0],
        first.0,
        Quantity::Sessions.text(furthest.1)
    );
    let cells = rows
        .iter()
        .map(|(_, fields)| {
            let cell = |at| fields.iter().find(|field| field.0 == at).map(|field| field.1);
            (0..statistics.len()).map(cell).collect()
        })
        .collect();
    let chart = Heat {
        quantity: Quantity::Sessions,
        row_label: "column".to_owned(),
        column_label: "statistic →".to_owned(),
        rows: without_schema(rows.into_iter().map(|row| row.0).collect()),
        columns: statistics,
        cells,
        colours: Colours::Limit(1.0),
    };
    Some(Plot::new("columns", "Statistics of each column", caption, Chart::Heat(chart)))
}

/// How far a statistic is off, in tolerances; of an array, the rank that is furthest off.
fn tolerances(field: &Value) -> Option<f64> {
    let numbers = |name: &str| -> Vec<f64> {
        match &field[name] {
            Value::Array(ranks) => ranks.iter().filter_map(Value::as_f64).collect(),
            number => number.as_f64().into_iter().collect(),
        }
    };
    let (copy, original, tolerance) = (numbers("copy"), numbers("original"), numbers("tolerance"));
    let off = copy.iter().zip(&original).zip(&tolerance).map(|((copy, original), tolerance)| {
        let off = (copy - original).abs();
        if off == 0.0 { 0.0 } else { (off / tolerance).min(FAR) }
    });
    off.reduce(f64::max)
}

/// The names without their schema, if it is the same in all.
fn without_schema(names: Vec<String>) -> Vec<String> {
    let schema = |name: &str| name.split_once('.').map(|(schema, _)| schema.to_owned());
    let first = names.first().and_then(|name| schema(name));
    // A quoted schema may have a point in its name.
    match first.filter(|first| {
        !first.starts_with('"') && names.iter().all(|name| schema(name).as_ref() == Some(first))
    }) {
        Some(schema) => names.iter().map(|name| name[schema.len() + 1..].to_owned()).collect(),
        None => names,
    }
}

/// Sizes of the tables of copy and original.
fn sizes(run: &Run) -> Option<Plot> {
    let mut rows: Vec<(String, Vec<Option<f64>>)> = events(run, "table")
        .into_iter()
        .map(|event| {
            (
                text(&event["table"]),
                vec![event["bytes"]["original"].as_f64(), event["bytes"]["copy"].as_f64()],
            )
        })
        .collect();
    rows.sort_by(|one, other| other.1[0].unwrap_or(0.0).total_cmp(&one.1[0].unwrap_or(0.0)));
    let all = rows.len();
    rows.truncate(MOST);
    let names = without_schema(rows.iter().map(|row| row.0.clone()).collect());
    rows.iter_mut().zip(names).for_each(|(row, name)| row.0 = name);
    let (name, values) = rows.first()?;
    let bytes =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| Quantity::Bytes.text(value));
    let caption = format!(
        "{all} tables with TOAST and indexes; the largest, {name}, has {} in the original and {} in the copy.",
        bytes(values[0]),
        bytes(values[1])
    );
    let axis = Axis::new("size", Quantity::Bytes, Spread::Linear);
    let groups = vec!["original".to_owned(), "copy".to_owned()];
    Some(Plot::new("sizes", "Sizes of the tables", caption, Chart::Bars(Bars { axis, groups, rows })))
}
