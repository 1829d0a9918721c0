//! Statements on tables of which earlier statements of the migration have removed most rows: their times are those of the rows left.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Statement;
use crate::sections::tps::text;

/// Tables that are named.
const NAMED: usize = 4;

/// A sentence for each statement that removes most rows of tables on which later ones work.
pub(super) fn sentences(statements: &[Statement]) -> Vec<String> {
    let mut by: BTreeMap<u64, (Vec<&Value>, Vec<String>)> = BTreeMap::new();
    for one in statements {
        for table in one.thinned {
            let Some(number) = table["by"].as_u64() else { continue };
            let (tables, later) = by.entry(number).or_default();
            if !tables.contains(&table) {
                tables.push(table);
            }
            let short = one.short();
            if !later.contains(&short) {
                later.push(short);
            }
        }
    }
    by.into_iter().map(|(number, (tables, later))| sentence(number, &tables, &later)).collect()
}

fn sentence(number: u64, tables: &[&Value], later: &[String]) -> String {
    let (time, works) = match later {
        [one] => (format!("time of {one} is that"), "the statement works"),
        several => (format!("times of {} are those", several.join("; ")), "the statements work"),
    };
    let named = || tables.iter().take(NAMED).map(|table| (text(&table["table"]), text(&table["percent"])));
    let removed: Vec<String> =
        named().map(|(table, percent)| format!("{percent} % of the generated rows of {table}")).collect();
    let more = tables.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" (and so of {more} more tables)") } else { String::new() };
    let options: Vec<String> = named()
        .map(|(table, _)| format!("--column '{}.COLUMN=SPEC'", table.replace('\'', r"'\''")))
        .collect();
    format!(
        "After statement {number}, {}{more} are removed, so the {time} of the rows left. If {works} on more rows in the original, give \
         values that are not removed, with {}.",
        removed.join(" and "),
        options.join(" and ")
    )
}
