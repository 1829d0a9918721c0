//! Result of a merge for people.

use std::time::Duration;

use measure::human::grouped;
use measure::merge::MergedPart;
use measure::{Percentile, Run, Trial};

use crate::app::numbers::{duration, rounded};
use crate::app::table::{align_right, new_table, trimmed};

/// A line on the throughput, a table of latencies, a table of the parts.
pub(crate) fn result(run: &Run, parts: &[MergedPart]) -> String {
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
    let mut table = new_table(&["part", "run", "cut before", "cut after"]);
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    for part in parts {
        table.add_row([part.number.to_string(), part.id.clone(), seconds(part.cut.0), seconds(part.cut.1)]);
    }
    align_right(&mut table, 2..4);
    trimmed(&table)
}
