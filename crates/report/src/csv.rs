//! All numbers of run documents as CSV, a row for each (RFC 4180).

use std::fmt::Write;

use measure::figures;
use serde::Serialize;

use crate::document::Document;

const HEADER: &str = "run,label,verb,started_at,config,trial,kind,name,x,x_unit,value,unit";

/// The rows: observations, points of series, and figures of the whole run.
pub(crate) fn csv(documents: &[Document]) -> String {
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
