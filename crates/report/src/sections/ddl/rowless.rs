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
        let cause = if unmatched["is_of_schema"] == true {
            format!(
                "no row that the schema inserts into {} satisfies its conditions",
                sources(unmatched).join(", ")
            )
        } else {
            "no generated row satisfies its conditions".to_owned()
        };
        return Some(format!("it {changes} {table}, because {cause}"));
    }
    let first = rowless?.first()?;
    let kind = if first["is_default"] == true { "the default partition" } else { "the partition" };
    Some(format!("{kind} {} has no generated rows", text(&first["partition"])))
}

/// Advice for other rows.
fn remedy(one: &Statement) -> Option<String> {
    if let Some(unmatched) = unmatched(one.found) {
        let option = option(unmatched);
        if unmatched["is_of_schema"] == true {
            let sources = sources(unmatched).join(", ");
            return Some(format!(
                "insert such rows in the schema; or remove the rows of {sources} from the schema, so that pgrig generates rows \
                 there, and give values that do with {option}"
            ));
        }
        return Some(format!("give values that do with {option}"));
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

/// The option for other values: it names the table on whose rows the conditions depend, if that is a single one.
fn option(unmatched: &Value) -> String {
    let is_named = unmatched["is_plain"] == true || unmatched["is_of_schema"] == true;
    let table = match &sources(unmatched)[..] {
        [source] if is_named => source.replace('\'', r"'\''"),
        _ => "TABLE".to_owned(),
    };
    format!("--column '{table}.COLUMN=SPEC'")
}

/// The tables on whose rows the conditions depend. Documents of earlier releases name only the table whose rows it writes.
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
