//! All numbers of run documents as CSV, a row for each (RFC 4180); runs of the published Complete Block Check as its
//! collector's rows.

use std::fmt::Write;

use measure::{Run, figures};
use serde::Serialize;

use crate::document::{Document, median, values};
use crate::sections::blockio::server_rates;
use crate::sections::kind;

/// The kind of runs that have rows of the collector.
const COMPAT: &str = "blockio --compat";
/// Keys of the collector's times (cbc-lines.txt of gregs1104/pgbench-tools), which are the names of the steps.
const STEPS: [&str; 9] = [
    "CREATE_TABLE",
    "VACUUM",
    "CREATE_INDEX",
    "SELECT_u1",
    "SELECT_c1",
    "SELECT_r",
    "CLUSTER",
    "SELECT_u2",
    "SELECT_c2",
];
/// Bytes of a megabyte as PostgreSQL counts: 1024 × 1024.
const MEBIBYTE: f64 = 1_048_576.0;
const HEADER: &str = "run,label,verb,started_at,config,trial,kind,name,x,x_unit,value,unit";

/// The rows: observations, points of series, and figures of the whole run.
pub(crate) fn csv(documents: &[Document]) -> String {
    if !documents.is_empty() && documents.iter().all(|document| kind(&document.run) == COMPAT) {
        return collector(documents);
    }
    let mut text = HEADER.to_owned() + "\n";
    for Document { run, .. } in documents {
        let label = run.label.as_deref().unwrap_or_default();
        let start: String =
            [&run.id, label, &run.verb, &run.started_at].map(|field| quoted(field) + ",").concat();
        for (number, trial) in run.trials.iter().enumerate() {
            let start = format!("{start}{},{}", quoted(&trial.config), number + 1);
            for one in &trial.observations {
                let _ = writeln!(
                    text,
                    "{start},observation,{},,,{},{}",
                    quoted(&one.name),
                    one.value,
                    unit(one.unit)
                );
            }
            for series in &trial.series {
                let (x_unit, y_unit, name) = (unit(series.x_unit), unit(series.y_unit), quoted(&series.name));
                for (x, y) in &series.points {
                    let _ = writeln!(text, "{start},series,{name},{x},{x_unit},{y},{y_unit}");
                }
            }
        }
        for (figure, value) in figures(run) {
            let _ = writeln!(
                text,
                "{start}{},,figure,{},,,{value},{}",
                quoted(&figure.config),
                quoted(&figure.name),
                unit(figure.unit)
            );
        }
    }
    text
}

/// The published collector's row for each run: medians over its trials; times in milliseconds, sizes in bytes, rates in MB/s of
/// 1,048,576 bytes as PostgreSQL prints them. A step that did not run has an empty field.
fn collector(documents: &[Document]) -> String {
    let mut text = format!("SERVER,{},SIZE_T,SIZE_I,READ_RATE,WRITE_RATE\n", STEPS.join(","));
    for Document { run, .. } in documents {
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
        };
        let of = |name: &str| median(&values(run, "total", name));
        let times = STEPS.iter().map(|step| number(of(step).map(|seconds| seconds * 1e3), 3));
        let sizes = ["heap-after", "index-after"].map(|name| number(of(name), 0));
        let rates = ["read", "write"]
            .map(|name| number(median(&server_rates(run, name)).map(|rate| rate / MEBIBYTE), 3));
        let row: Vec<String> =
            std::iter::once(quoted(&server(run))).chain(times).chain(sizes).chain(rates).collect();
        text += &(row.join(",") + "\n");
    }
    text
}

/// The host that was connected to.
fn server(run: &Run) -> String {
    let host = run.environment.transport.strip_prefix("tcp ").and_then(|rest| rest.split([' ', ',']).next());
    host.unwrap_or("localhost").to_owned()
}

/// A unit as documents name it.
fn unit(unit: impl Serialize) -> String {
    serde_json::to_value(unit).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A field, in quotes if necessary. Text that a spreadsheet would take for a formula gets an
/// apostrophe.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        assert_eq!(quoted("md5(i::text)"), "md5(i::text)");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
    }
}
