//! Result of a merge for people.

use std::time::Duration;

use measure::human::{bytes, grouped};
use measure::merge::MergedPart;
use measure::{Percentile, Run, Trial};

use crate::app::numbers::{duration, rounded};
use crate::app::table::{align_right, new_table, trimmed};

/// The trial that sums up the tables of a schema.
const ALL: &str = "all tables";

/// A line on the throughput, a table of latencies, a table of the parts.
pub(crate) fn result(run: &Run, parts: &[MergedPart]) -> String {
    if run.verb == "fill" {
        return format!("{}\n\n{}", filled(run, parts.len()), table(parts));
    }
    let mut texts: Vec<String> = run.trials.iter().map(|trial| headline(run, trial, parts.len())).collect();
    texts.extend(run.trials.iter().filter_map(latencies));
    texts.push(table(parts));
    texts.join("\n\n")
}

/// `parts 2 and 3 are missing`.
pub(crate) fn missing(missing: &[u64]) -> String {
    let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        [one] => format!("part {one} is missing"),
        several => format!("parts {} are missing", several.join(", ")),
    }
}

/// `8,123 tps: 81,234 transactions in 10.0 s by 8 clients in 4 parts`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn headline(run: &Run, trial: &Trial, parts: usize) -> String {
    let value = |name| trial.value(name).unwrap_or_default();
    let (succeeded, elapsed) = (value("succeeded"), value("elapsed"));
    let clients = run.request["clients"].as_u64().unwrap_or_default();
    let failed: f64 =
        ["failed-serialization", "failed-deadlock", "failed-other"].into_iter().map(value).sum();
    let others = [(failed, "failed"), (value("skipped"), "skipped"), (value("late"), "late")];
    let others = others.into_iter().filter(|(number, _)| *number > 0.0);
    let others: Vec<String> = others.map(|(number, name)| format!("; {} {name}", count(number))).collect();
    let plural = |number: u64| if number == 1 { "" } else { "s" };
    format!(
        "{} tps: {} transaction{} in {} by {} client{} in {parts} part{}{others}",
        rounded(succeeded / elapsed),
        count(succeeded),
        plural(succeeded as u64),
        duration(Duration::from_secs_f64(elapsed)),
        grouped(clients),
        plural(clients),
        plural(parts as u64),
        others = others.concat()
    )
}

/// `1,000,000 rows and 150 MB in 12.3 s by 4 parts`, and the rate of the time that they share.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
fn filled(run: &Run, parts: usize) -> String {
    let whole = run.trials.iter().find(|trial| trial.config == ALL).or(run.trials.first());
    let value = |name| whole.and_then(|trial| trial.value(name));
    let seconds = |name| value(name).map(Duration::from_secs_f64);
    let total = seconds("total").unwrap_or_default();
    let size = value("heap").unwrap_or_default() + value("index").unwrap_or_default();
    let plural = if parts == 1 { "" } else { "s" };
    let loaded = format!(
        "{} rows in {} by {parts} part{plural}; the tables have {} with their indexes",
        count(value("rows").unwrap_or_default()),
        duration(total),
        bytes(size as u64),
    );
    match (seconds("shared"), value("shared-rows")) {
        (Some(shared), Some(rows)) => format!(
            "{loaded}\n{} rows/s in the {} in which all parts loaded rows",
            count(rows / shared.as_secs_f64()),
            duration(shared),
        ),
        _ => loaded,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn count(number: f64) -> String {
    grouped(number.round() as u64)
}

/// Percentiles of all transactions.
fn latencies(trial: &Trial) -> Option<String> {
    let rows: Vec<[String; 2]> = Percentile::ALL
        .into_iter()
        .filter_map(|percentile| {
            let value = trial.value(&format!("latency-{}", percentile.name()))?;
            Some([percentile.name().to_owned(), duration(Duration::from_secs_f64(value))])
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut table = new_table(&["latency", ""]);
    for row in rows {
        table.add_row(row);
    }
    align_right(&mut table, 1..2);
    Some(trimmed(&table))
}

/// The parts, and the time of each that does not count.
fn table(parts: &[MergedPart]) -> String {
    let has_rows = parts.iter().any(|part| part.rows.is_some());
    let mut header = vec!["part", "run"];
    header.extend(has_rows.then_some("rows"));
    header.extend(["cut before", "cut after"]);
    let mut table = new_table(&header);
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    for part in parts {
        let mut row = vec![part.number.to_string(), part.id.clone()];
        row.extend(part.rows.map(count));
        row.extend([seconds(part.cut.0), seconds(part.cut.1)]);
        table.add_row(row);
    }
    align_right(&mut table, 2..header.len());
    trimmed(&table)
}
