//! Values of the original that pgrig cannot read as numbers, and that a model therefore lacks.

use rowgen::Kind;

use crate::facts::{ColumnFacts, ColumnRole, Facts};
use crate::make::is_text;
use crate::numbers::Number;

/// Least share of a table's rows for which there is a warning.
const LEAST: f64 = 0.001;

/// Columns of numbers, dates or times with values that the model lacks: `schema.table.column`, and the share of the rows.
pub fn unread(facts: &Facts) -> Vec<(String, f64)> {
    let columns =
        facts.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    columns
        .map(|(table, column)| (format!("{}.{}", table.name, column.name), share(column)))
        .filter(|(_, share)| *share > LEAST)
        .collect()
}

/// The share of the rows whose value is not read; 0 for columns whose values are listed as texts, or are no numbers.
fn share(column: &ColumnFacts) -> f64 {
    let is_free = matches!(column.role, ColumnRole::Free | ColumnRole::Above { .. });
    let (Some(kind), Some(statistics), true) = (&column.kind, &column.statistics, is_free) else {
        return 0.0;
    };
    let is_number = kind.units().is_some() && !is_text(kind);
    // Without a histogram, all values are listed.
    if !is_number || matches!(kind, Kind::Bool | Kind::Enum { .. }) || statistics.bounds.len() < 2 {
        return 0.0;
    }
    let is_unread = |text: &String| Number::read(kind, text).is_none();
    let of_common = |(text, share): &(String, f64)| if is_unread(text) { *share } else { 0.0 };
    let all: f64 = statistics.common.iter().map(|(_, share)| share).sum();
    let common: f64 = statistics.common.iter().map(of_common).sum();
    let unread = statistics.bounds.iter().filter(|text| is_unread(text)).count();
    let others = (1.0 - statistics.null_frac - all).max(0.0);
    common + others * unread as f64 / statistics.bounds.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Statistics;
    use crate::testing::{column, facts, strings};

    #[test]
    fn numbers_without_room_are_told_with_their_share() {
        let of = |name: &str, common: &[(&str, f64)], bounds: &[&str]| {
            let common = common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect();
            let statistics =
                Statistics { null_frac: 0.1, common, bounds: strings(bounds), ..Statistics::default() };
            column(name, Kind::Numeric(None), ColumnRole::Free, statistics)
        };
        let columns = vec![
            of("balance", &[("0", 0.4), ("NaN", 0.2)], &["1", "1000000000000000000000000"]),
            of("price", &[("0", 0.4)], &["1.5", "9.99"]),
            of("rate", &[("NaN", 0.9)], &[]),
        ];
        let found = unread(&facts(1_000, columns));
        let [(name, share)] = found.as_slice() else { panic!("{found:?}") };
        assert!(name.ends_with(".balance") && (share - 0.35).abs() < 1e-9, "{found:?}");
    }
}
