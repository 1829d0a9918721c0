//! The costs of each way at the size of the user.

use measure::Run;
use serde_json::Value;

use super::{COSTS, front, rto};
use crate::plot::Table;
use crate::quantity::Quantity;
use crate::sections::Section;

/// The forecasts of all ways; none without any.
pub(super) fn forecast(run: &Run, all: &[(String, &Value)]) -> Option<Section> {
    let size = all.first()?.1["bytes"].as_f64()?;
    let rto = rto::seconds(run).map(rto::title);
    let known: Vec<(&str, [f64; 3])> =
        all.iter().filter_map(|(way, forecast)| Some((way.as_str(), values(forecast)?))).collect();
    // One way alone is not compared.
    let front = (known.len() > 1).then(|| front(&known));
    let mut header = vec!["way"];
    header.extend(front.as_ref().map(|_| "front"));
    header.extend(["size", "backup", "restore", "peak of disk space"]);
    header.extend(rto.as_deref());
    let mut table = Table::new(&header);
    for (way, forecast) in all {
        let mut row = vec![way.clone()];
        let is_known = known.iter().any(|(name, _)| name == way);
        row.extend(front.as_ref().map(|front| mark(front.contains(way), is_known)));
        row.extend(COSTS.map(|(name, quantity)| figure(&forecast[name], quantity)));
        row.push(disk(&forecast["disk"]));
        row.extend(rto.as_ref().map(|_| rto::forecast(forecast)));
        table.rows.push(row);
    }
    let text = format!(
        "For {} of tables and indexes, from three smaller sizes, on a machine like this one. Each interval should contain the true value in 90 of 100 cases.",
        Quantity::Bytes.text(size)
    );
    let meaning = "front: by the forecast values, no other way with all three figures is better in size, backup or restore without being worse in another of them.";
    Some(Section {
        text: std::iter::once(text).chain(front.map(|_| meaning.to_owned())).collect(),
        first: Some(("Forecasts".to_owned(), table)),
        ..Section::new("Forecast", Vec::new())
    })
}

/// The cell of a way in the column of the front.
fn mark(is_front: bool, is_known: bool) -> String {
    match (is_front, is_known) {
        (true, _) => "yes",
        (false, true) => "",
        (false, false) => "not compared",
    }
    .to_owned()
}

/// The peak of disk space; older documents lack it.
fn disk(forecast: &Value) -> String {
    if forecast.is_null() { "–".to_owned() } else { figure(forecast, Quantity::Bytes) }
}

/// Size, backup and restore; none if one of them is not known.
fn values(forecast: &Value) -> Option<[f64; 3]> {
    let [size, backup, restore] = COSTS.map(|(name, _)| forecast[name]["value"]["value"].as_f64());
    Some([size?, backup?, restore?])
}

/// A forecast with its interval.
pub(super) fn figure(figure: &Value, quantity: Quantity) -> String {
    let found = &figure["value"];
    match (found["value"].as_f64(), found["low"].as_f64(), found["high"].as_f64()) {
        (Some(value), Some(low), Some(high)) => {
            format!("{} ({} to {})", quantity.text(value), quantity.text(low), quantity.text(high))
        }
        _ => "not known".to_owned(),
    }
}
