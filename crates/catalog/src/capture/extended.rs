//! Extended statistics: a server's knowledge of several columns of a table.

use std::collections::BTreeMap;

use model::{Joint, Pair};
use tokio_postgres::Row;

/// Pairs of columns of a table that depend on each other, and sentences on objects that the role could not see; from the rows of
/// `extended.sql`.
pub(super) fn read(objects: &[Row], table: &str, rows: u64) -> (Vec<Pair>, Vec<String>) {
    let (mut pairs, mut unseen) = (Vec::new(), Vec::new());
    for row in objects {
        let name: String = row.get("name");
        match (row.get("is_seen"), row.get("is_owner")) {
            (true, _) => pairs.extend(of_row(row, rows)),
            (false, true) => unseen.push(format!(
                "{table}: the statistics object {name} has no statistics: run ANALYZE, then capture again"
            )),
            (false, false) => unseen.push(format!(
                "{table}: only the owner can read the extended statistics {name}, so the model lacks the dependence \
                 between their columns: capture as the owner, or with --aggregates"
            )),
        }
    }
    (pairs, unseen)
}

fn of_row(row: &Row, rows: u64) -> Vec<Pair> {
    let numbers: Vec<i32> = row.get("numbers");
    let names: Vec<String> = row.get("names");
    let common: Vec<Option<String>> = row.get("common");
    let shares: Vec<f64> = row.get::<_, Option<_>>("shares").unwrap_or_default();
    let names_of: BTreeMap<i32, &str> =
        numbers.iter().zip(&names).map(|(number, name)| (*number, name.as_str())).collect();
    let pair = |one: &str, other: &str, joint| Pair { columns: (one.to_owned(), other.to_owned()), joint };
    let mut pairs = Vec::new();
    // Expressions come after the columns.
    let width = if shares.is_empty() { 0 } else { common.len() / shares.len() };
    if width >= names.len() {
        for (at, one) in names.iter().enumerate() {
            for (with, other) in names.iter().enumerate().skip(at + 1) {
                let mut all: BTreeMap<(Option<String>, Option<String>), f64> = BTreeMap::new();
                for (values, share) in common.chunks_exact(width).zip(&shares) {
                    *all.entry((values[at].clone(), values[with].clone())).or_default() += share;
                }
                let combinations = all.into_iter().map(|((one, other), share)| (one, other, share));
                pairs.push(pair(one, other, Joint::Common(combinations.collect())));
            }
        }
    }
    let text = |name: &str| row.get::<_, Option<String>>(name).unwrap_or_default();
    for (key, number) in entries(&text("dependencies")) {
        if let Some((from, to)) = key.split_once("=>")
            && let (Some(from), Some(to)) = (named(from, &names_of), named(to, &names_of))
        {
            pairs.push(pair(from, to, Joint::Dependency(number)));
        }
    }
    for (key, number) in entries(&text("n_distinct")) {
        let columns: Vec<&str> = key.split(',').collect();
        if let [one, other] = columns[..]
            && let (Some(one), Some(other)) = (named(one, &names_of), named(other, &names_of))
        {
            let number = if number < 0.0 { -number * rows as f64 } else { number };
            pairs.push(pair(one, other, Joint::Distinct(number)));
        }
    }
    pairs
}

fn named<'a>(number: &str, names: &BTreeMap<i32, &'a str>) -> Option<&'a str> {
    names.get(&number.trim().parse().ok()?).copied()
}

/// Entries of the text form of `pg_ndistinct` and `pg_dependencies`: `{"1, 2": 5, "1, 3": 7}`.
fn entries(text: &str) -> Vec<(&str, f64)> {
    let mut entries = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((key, after)) = after.split_once('"') else { break };
        let number = after.trim_start_matches([':', ' ']);
        let end = number.find([',', '}']).unwrap_or(number.len());
        if let Ok(value) = number[..end].trim().parse() {
            entries.push((key, value));
        }
        rest = &number[end..];
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_servers_write_them() {
        assert_eq!(entries(r#"{"1, 2": 5, "1, 2, 3": 1000}"#), [("1, 2", 5.0), ("1, 2, 3", 1000.0)]);
        assert_eq!(
            entries(r#"{"3 => 4": 1.000000, "4 => 3": 0.250000}"#),
            [("3 => 4", 1.0), ("4 => 3", 0.25)]
        );
        assert!(entries("").is_empty() && entries("{}").is_empty());
    }
}
