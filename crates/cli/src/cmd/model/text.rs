//! Models as people read them.

use std::fmt::Write;
use std::path::Path;

use measure::human::{bytes, count, grouped};
use model::{Column, Model, Table, Values};

use crate::app::table::{align_right, new_table};

/// Rows changed since ANALYZE, relative to all, from which on statistics are called old.
const OLD: f64 = 0.1;

/// What was captured, and what to do with it.
pub(super) fn captured(model: &Model, file: &Path, length: usize) -> String {
    let columns: usize = model.tables.iter().map(|table| table.columns.len()).sum();
    let rows: u64 = model.tables.iter().map(|table| table.rows).sum();
    let total: u64 = model.tables.iter().map(size).sum();
    let name = file.display();
    format!(
        "{} tables, {columns} columns, {} rows, {} in the original; model {} ({})\n\n\
         look at it: pgrig model show {name}\n\
         fill as many rows: pgrig fill --model {name}",
        model.tables.len(),
        count(rows as f64),
        bytes(total),
        name,
        bytes(length as u64)
    )
}

fn size(table: &Table) -> u64 {
    table.bytes.heap + table.bytes.toast + table.bytes.indexes
}

/// Tables whose statistics are missing or old.
pub(super) fn warnings(model: &Model) -> Vec<String> {
    let mut warnings = Vec::new();
    for table in &model.tables {
        let blind: Vec<&str> = table
            .columns
            .iter()
            .filter(
                |column| matches!(&column.values, Values::Fill { why } if why.starts_with("no statistics")),
            )
            .map(|column| column.name.as_str())
            .collect();
        if !blind.is_empty() && blind.len() == table.columns.len() {
            warnings.push(format!(
                "{}: no statistics. Run ANALYZE there, or connect as a role that may select from the table",
                table.name
            ));
        } else if !blind.is_empty() {
            warnings.push(format!("{}: no statistics of {}", table.name, blind.join(", ")));
        }
        if table.changed as f64 > OLD * table.rows as f64 {
            warnings.push(format!(
                "{}: {} rows changed since it was last analyzed: run ANALYZE, then capture again",
                table.name,
                grouped(table.changed)
            ));
        }
    }
    warnings
}

/// Columns of --keep-values whose values the model does not have.
pub(super) fn not_kept<'a>(model: &Model, keep: &'a [String]) -> Vec<&'a str> {
    let is_kept = |name: &str| {
        let mut columns =
            model.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        columns.any(|(table, column)| {
            let whole = format!("{}.{}", table.name, column.name);
            let plain = whole.split_once('.').map_or("", |(_, name)| name);
            (whole == name || plain == name) && matches!(&column.values, Values::List { kept: true, .. })
        })
    };
    keep.iter().map(String::as_str).filter(|name| !is_kept(name)).collect()
}

/// Tables with their columns.
pub(super) fn shown(model: &Model) -> String {
    let mut text = format!("{}, captured {}, k = {}\n", model.server, model.captured, model.k);
    for table in &model.tables {
        let analyzed = match &table.analyzed {
            Some(when) => format!("analyzed {when}, {} rows changed since", grouped(table.changed)),
            None => "never analyzed".to_owned(),
        };
        let _ = writeln!(
            text,
            "\n{}: {} rows, {}; {analyzed}",
            table.name,
            grouped(table.rows),
            bytes(size(table))
        );
        let mut columns = new_table(&["column", "type", "nulls", "distinct", "values"]);
        for column in &table.columns {
            let of = if matches!(column.values, Values::Keys { .. }) { "keys" } else { "rows" };
            let distinct = column.values.distinct().map(|number| distinct(number, of)).unwrap_or_default();
            let nulls =
                if column.nulls > 0.0 { format!("{:.1} %", column.nulls * 100.0) } else { String::new() };
            columns.add_row([
                column.name.clone(),
                column.data_type.clone(),
                nulls,
                distinct,
                phrase(&column.values),
            ]);
        }
        align_right(&mut columns, 2..4);
        for line in columns.to_string().lines() {
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
    text.trim_end().to_owned()
}

fn distinct(distinct: f64, of: &str) -> String {
    if distinct < 0.0 { format!("{:.3} × {of}", -distinct) } else { grouped_real(distinct) }
}

fn grouped_real(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
    grouped(number.round() as u64)
}

fn phrase(values: &Values) -> String {
    match values {
        Values::Fill { why } => format!("left to fill: {why}"),
        Values::Keys { common, .. } => format!("keys; {} frequent", common.len()),
        Values::Statistics { common, bounds, .. } => {
            format!("{} frequent, {} buckets", common.len(), bounds.len().saturating_sub(1))
        }
        Values::Letters { alphabet, lengths, .. } => {
            let (least, most) = (lengths.first().unwrap_or(&1), lengths.last().unwrap_or(&1));
            format!("{alphabet}, {least} to {most} characters")
        }
        Values::List { values, kept: true, .. } => format!("{} values of the original", values.len()),
        Values::List { values, .. } => format!("{} values, replaced", values.len()),
        Values::Any { .. } => "random".to_owned(),
    }
}

/// Every value of the original.
pub(super) fn values(model: &Model) -> String {
    let mut text = String::new();
    for table in &model.tables {
        for column in &table.columns {
            let originals = originals(table, column, model.k);
            if !originals.is_empty() {
                let _ = writeln!(text, "{}.{}: {}", table.name, column.name, originals.join(", "));
            }
        }
    }
    let note = "Bounds of buckets are moved at random and are not among these.";
    if text.is_empty() { "no value of the original".to_owned() } else { format!("{text}\n{note}") }
}

/// Frequent values that at least k rows hold: others are replaced.
fn originals(table: &Table, column: &Column, k: u32) -> Vec<String> {
    let rows = table.rows as f64 * (1.0 - column.nulls);
    match &column.values {
        Values::Statistics { common, .. } => {
            let is_shown = |(_, share): &&(String, f64)| share * rows >= f64::from(k);
            common.iter().filter(is_shown).map(|(value, _)| value.clone()).collect()
        }
        Values::List { values, kept: true, .. } => {
            values.iter().map(|(value, _)| format!("{value:?}")).collect()
        }
        _ => Vec::new(),
    }
}
