//! Statements whose time in the original is not measured: those that work on partitions without generated rows, and those that change no row.

use serde_json::Value;

use super::Statement;
use crate::sections::tps::text;

/// A sentence for each of these statements.
pub(super) fn sentences(statements: &[Statement]) -> Vec<String> {
    let sentence = |one: &Statement| {
        let (reason, remedy) = (reason(one)?, remedy(one)?);
        let short = one.short();
        Some(format!("The time in the original is not known of {short}: {reason}. To measure it, {remedy}."))
    };
    statements.iter().filter_map(sentence).collect()
}

/// Why the time of a statement is not known, for people; none if it is.
pub(super) fn reason(one: &Statement) -> Option<String> {
    reason_of(one.found, one.rowless)
}

/// The same of its parts in a run document.
pub(super) fn reason_of(found: Option<&Value>, rowless: Option<&[Value]>) -> Option<String> {
    if let Some(unmatched) = unmatched(found) {
        let changes =
            if unmatched["is_insert"] == true { "inserts no row into" } else { "changes no row of" };
        let table = text(&unmatched["table"]);
        return Some(format!("it {changes} {table}, because no generated row satisfies its conditions"));
    }
    let first = rowless?.first()?;
    let kind = if first["is_default"] == true { "the default partition" } else { "the partition" };
    Some(format!("{kind} {} has no generated rows", text(&first["partition"])))
}

/// Advice for other rows.
fn remedy(one: &Statement) -> Option<String> {
    if let Some(unmatched) = unmatched(one.found) {
        let is_plain = unmatched["is_plain"] == true;
        let table =
            if is_plain { text(&unmatched["table"]).replace('\'', r"'\''") } else { "TABLE".to_owned() };
        return Some(format!("give values that do with --column '{table}.COLUMN=SPEC'"));
    }
    let first = one.rowless?.first()?;
    let named = first["columns"].as_array().into_iter().flatten().map(text);
    let option = |column: String| format!("--column '{}=SPEC'", column.replace('\'', r"'\''"));
    let options: Vec<String> = named.map(option).collect();
    let options =
        if options.is_empty() { "--column 'TABLE.KEY=SPEC'".to_owned() } else { options.join(" and ") };
    let values = if first["is_default"] == true {
        "values outside the bounds of all other partitions"
    } else {
        "values within its bounds"
    };
    Some(format!("give {values} with {options}"))
}

/// The first table whose rows it writes, and of which it changed none.
fn unmatched(found: Option<&Value>) -> Option<&Value> {
    found?["unmatched"].as_array()?.first()
}
