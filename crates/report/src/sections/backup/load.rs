//! The effects of a load: its WAL, and the row versions that the snapshot of a dump keeps meanwhile.

use measure::Run;
use measure::human::counted;
use serde_json::Value;

use super::forecast::figure;
use crate::document::{median, values};
use crate::plot::Table;
use crate::quantity::Quantity;
use crate::sections::Section;

/// Configurations of the trials that measure the WAL, and the row versions.
const WAL: &str = "wal";
const SNAPSHOT: &str = "snapshot";

/// The WAL that a load wrote, and the space that it takes.
pub(super) fn wal(run: &Run) -> Option<Section> {
    let per_day = median(&values(run, WAL, "wal-per-day"))?;
    let mut table = Table::new(&["WAL of a day", "size"]);
    table.add(["not compressed".to_owned(), Quantity::Bytes.text(per_day)]);
    for method in ["gzip", "lz4", "zstd"] {
        if let Some(size) = median(&values(run, WAL, &format!("wal-per-day-{method}"))) {
            table.add([method.to_owned(), Quantity::Bytes.text(size)]);
        }
    }
    Some(Section {
        text: vec![format!("{}; each segment is compressed alone.", measured(run, WAL))],
        first: Some(("Space for WAL".to_owned(), table)),
        ..Section::new("WAL of the load", Vec::new())
    })
}

/// The load, and the data that it changed, without a full stop.
fn measured(run: &Run, config: &str) -> String {
    let load = &run.plan["load"];
    format!(
        "Of {} transactions a second by {}, measured for {} on {} of tables and indexes",
        load["rate"].as_f64().unwrap_or_default(),
        counted(load["clients"].as_u64().unwrap_or_default(), "client"),
        load["seconds"].as_f64().map_or_else(|| "–".to_owned(), |seconds| Quantity::Seconds.text(seconds)),
        median(&values(run, config, "data"))
            .map_or_else(|| "–".to_owned(), |data| Quantity::Bytes.text(data))
    )
}

/// The row versions that VACUUM cannot remove while the snapshot of a dump is open, and those that each dump keeps until its end.
pub(super) fn snapshot(run: &Run, forecasts: &[(String, &Value)]) -> Option<Section> {
    let mut table = Table::new(&["while the snapshot was open", "median"]);
    for (title, name, quantity) in [
        ("row versions that VACUUM could not remove", "dead", Quantity::Bytes),
        ("the same in an hour", "dead-per-hour", Quantity::Bytes),
        ("number of these versions", "dead-rows", Quantity::Count),
        ("growth of all tables and indexes", "growth", Quantity::Bytes),
    ] {
        let value = median(&values(run, SNAPSHOT, name))?;
        table.add([title.to_owned(), quantity.text(value)]);
    }
    let mut dumps = Table::new(&["way", "backup", "row versions at its end"]);
    for (way, forecast) in forecasts.iter().filter(|(_, forecast)| !forecast["held"].is_null()) {
        let (backup, held) = (&forecast["backup"], &forecast["held"]);
        dumps.add([way.clone(), figure(backup, Quantity::Seconds), figure(held, Quantity::Bytes)]);
    }
    let tables =
        if dumps.rows.is_empty() { Vec::new() } else { vec![("Forecasts for dumps".to_owned(), dumps)] };
    Some(Section {
        text: vec![format!("{}.", measured(run, SNAPSHOT))],
        first: Some(("Old row versions".to_owned(), table)),
        tables,
        ..Section::new("Snapshot of a dump under the load", Vec::new())
    })
}
