//! Statements whose time in the original is not measured: those that work on partitions without generated rows, those that change no row, and
//! changes that rewrite the table in most time zones, but not in that of the copy.

use serde_json::Value;

use super::Statement;
use crate::sections::tps::text;

/// A sentence for each of these statements.
pub(super) fn sentences(statements: &[Statement]) -> Vec<String> {
    let sentence = |one: &Statement| {
        let (reason, remedy) = (reason(one)?, remedy(one)?);
        let short = one.short();
        Some(format!("The time of {short} in the original is not known: {reason}. To measure it, {remedy}."))
    };
    statements.iter().filter_map(sentence).collect()
}

/// Why the time of a statement is not known, for people; none if it is.
pub(super) fn reason(one: &Statement) -> Option<String> {
    reason_of(one.found, one.rowless, one.zone)
}

/// The unknown time zone, if the statement did not rewrite the table anyway.
fn decisive<'a>(found: Option<&Value>, zone: Option<&'a Value>) -> Option<&'a Value> {
    zone.filter(|_| found.is_some_and(|found| found["class"] != "rewrite"))
}

/// The same of its parts in a run document.
pub(super) fn reason_of(
    found: Option<&Value>,
    rowless: Option<&[Value]>,
    zone: Option<&Value>,
) -> Option<String> {
    if let Some(unmatched) = unmatched(found) {
        let changes =
            if unmatched["is_insert"] == true { "inserts no row into" } else { "changes no row of" };
        let (table, cause) = (text(&unmatched["table"]), cause(unmatched));
        return Some(format!("it {changes} {table}, because {cause}"));
    }
    if let Some(first) = rowless.and_then(<[Value]>::first) {
        let kind = if first["is_default"] == true { "the default partition" } else { "the partition" };
        return Some(format!("{kind} {} has no generated rows", text(&first["partition"])));
    }
    let columns = decisive(found, zone)?["columns"].as_array();
    let columns: Vec<String> = columns.into_iter().flatten().map(text).collect();
    Some(format!(
        "the time zone decides whether PostgreSQL rewrites the table ({}), and the time zone of the original is not known",
        columns.join(", ")
    ))
}

/// Advice to measure it.
fn remedy(one: &Statement) -> Option<String> {
    if let Some(unmatched) = unmatched(one.found) {
        return Some(remedy_of(unmatched));
    }
    let Some(first) = one.rowless.and_then(<[Value]>::first) else {
        let advice = "give the time zone of the migration's sessions in production (--set TimeZone=ZONE, or SET TimeZone in the migration)";
        return decisive(one.found, one.zone).map(|_| advice.to_owned());
    };
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

/// Why a statement changed no row. Documents of earlier releases do not tell it: there it was always the conditions.
fn cause(unmatched: &Value) -> String {
    let sources = sources(unmatched).join(", ");
    match unmatched["why"].as_str() {
        Some("removed") => format!("earlier statements have removed all rows of {sources}"),
        Some("conflict") if unmatched["is_of_schema"] == true => {
            "each of its rows conflicts with one that the schema inserts".to_owned()
        }
        Some("conflict") => "each of its rows conflicts with an existing row".to_owned(),
        _ if unmatched["is_of_schema"] == true => {
            format!("no row that the schema inserts into {sources} satisfies its conditions")
        }
        _ => "no generated row satisfies its conditions".to_owned(),
    }
}

/// Advice for a statement that changed no row.
fn remedy_of(unmatched: &Value) -> String {
    let (values, insert) = match unmatched["why"].as_str() {
        Some("removed") => {
            ("values that these do not remove", "insert rows in the schema that these do not remove; or ")
        }
        Some("conflict") => ("other values of the key", ""),
        _ => ("values that do", "insert such rows in the schema; or "),
    };
    let values = format!("give {values} with {}", option(unmatched));
    if unmatched["is_of_schema"] != true {
        return values;
    }
    let sources = sources(unmatched).join(", ");
    format!(
        "{insert}remove the rows of {sources} from the schema, so that pgrig generates rows there, \
         and {values}"
    )
}

/// The option for other values: it names the table on whose rows the result depends, if that is a single one.
fn option(unmatched: &Value) -> String {
    let is_other = unmatched["why"].as_str().is_some_and(|why| why != "conditions");
    let is_named = is_other || unmatched["is_plain"] == true || unmatched["is_of_schema"] == true;
    let table = match &sources(unmatched)[..] {
        [source] if is_named => source.replace('\'', r"'\''"),
        _ => "TABLE".to_owned(),
    };
    format!("--column '{table}.COLUMN=SPEC'")
}

/// The tables on whose rows the result depends. Documents of earlier releases name only the table whose rows it writes.
fn sources(unmatched: &Value) -> Vec<String> {
    match unmatched["sources"].as_array() {
        Some(sources) => sources.iter().map(text).collect(),
        None => vec![text(&unmatched["table"])],
    }
}

/// The first table whose rows it writes, and of which it changed none.
fn unmatched(found: Option<&Value>) -> Option<&Value> {
    found?["unmatched"].as_array()?.first()
}
