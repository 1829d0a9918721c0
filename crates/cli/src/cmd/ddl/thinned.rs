//! Statements on tables of which earlier statements of the migration have removed most rows: their times are those of the rest.

use std::collections::BTreeMap;

use ddl::{Outcome, StatementOutcome, Thinned};

/// Tables that are named.
const NAMED: usize = 4;

/// A warning for each statement that removes most rows of tables on which later ones work.
pub(crate) fn warnings(outcome: &Outcome) -> Vec<String> {
    let mut by: BTreeMap<usize, (Vec<&Thinned>, Vec<usize>)> = BTreeMap::new();
    for one in &outcome.statements {
        for table in &one.thinned {
            let (tables, later) = by.entry(table.by).or_default();
            if !tables.contains(&table) {
                tables.push(table);
            }
            if !later.contains(&one.number) {
                later.push(one.number);
            }
        }
    }
    by.into_iter().map(|(number, (tables, later))| warning(number, &tables, &later)).collect()
}

fn warning(number: usize, tables: &[&Thinned], later: &[usize]) -> String {
    let numbers: Vec<String> = later.iter().map(ToString::to_string).collect();
    let (time, works) = match &numbers[..] {
        [one] => (format!("time of statement {one} is"), "the statement works"),
        several => (format!("times of statements {} are", several.join(", ")), "the statements work"),
    };
    let options: Vec<String> = tables
        .iter()
        .take(NAMED)
        .map(|table| format!("--column '{}.COLUMN=SPEC'", table.table.replace('\'', r"'\''")))
        .collect();
    format!(
        "after statement {number}, {} are removed, so the {time} for the remaining rows only. If {works} on more rows in the original, give values that are not \
         removed, with {}",
        removed(tables),
        options.join(" and ")
    )
}

/// The line of a statement among its details.
pub(super) fn line(one: &StatementOutcome) -> Option<String> {
    let tables: Vec<&Thinned> = one.thinned.iter().collect();
    let by = tables.first()?.by;
    Some(format!("\n   rows    after statement {by}, {} are removed", removed(&tables)))
}

/// The parts that were removed, for people.
fn removed(tables: &[&Thinned]) -> String {
    let part = |table: &&Thinned| format!("{} % of the generated rows of {}", table.percent, table.table);
    let parts: Vec<String> = tables.iter().take(NAMED).map(part).collect();
    let more = tables.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" (and so of {more} more tables)") } else { String::new() };
    format!("{}{more}", parts.join(" and "))
}
