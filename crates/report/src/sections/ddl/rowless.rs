//! Statements that work on partitions without generated rows, so that their time in the original is not measured.

use serde_json::Value;

use super::Statement;
use crate::sections::tps::text;

/// A sentence for each of these statements.
pub(super) fn sentences(statements: &[Statement]) -> Vec<String> {
    let sentence = |one: &Statement| {
        let (reason, remedy) = (one.rowless.and_then(reason)?, one.rowless.and_then(remedy)?);
        let short = one.short();
        Some(format!("The time in the original is not known of {short}: {reason}. To measure it, {remedy}."))
    };
    statements.iter().filter_map(sentence).collect()
}

/// Why the time is not known, for people; none if there is no such partition.
pub(super) fn reason(partitions: &[Value]) -> Option<String> {
    let first = partitions.first()?;
    let kind = if first["is_default"] == true { "the default partition" } else { "the partition" };
    Some(format!("{kind} {} has no generated rows", text(&first["partition"])))
}

/// Advice for rows in the partition.
fn remedy(partitions: &[Value]) -> Option<String> {
    let first = partitions.first()?;
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
