//! A table of which only a sample of rows is made: values repeat in the sample as often as in the whole table.

use std::sync::Arc;

use crate::generate::range_of_fixed;
use crate::{Keys, Pick, Table, Values};

/// A set of no more values than this is not reduced: its values repeat often even among few rows,
/// and conditions may name them.
const SMALL: u64 = 1_000;

impl Table {
    /// The same table, but columns that draw at random from a set draw from `fraction` (above 0, at most 1) of that
    /// set. A sample of that fraction of the rows then has as many rows for each value as the table has, so that what
    /// its indexes take for each row is the same.
    #[must_use]
    pub fn sampled(&self, fraction: f64) -> Self {
        let columns = self.columns.iter().map(|column| {
            let mut column = column.clone();
            column.values = sampled(column.values, fraction, range_of_fixed(&column.kind));
            column
        });
        Self { columns: columns.collect(), ..self.clone() }
    }
}

/// A copy of the values that draws from a part of its set. `range` is the usual range if all values
/// have the same length; otherwise the first values may be shorter.
fn sampled(values: Values, fraction: f64, range: Option<(i64, i64)>) -> Values {
    match values {
        Values::Any if let Some((low, high)) = range => {
            sampled(Values::Between { low, high }, fraction, range)
        }
        Values::Between { low, high } if range.is_some() => {
            let all = high.abs_diff(low).saturating_add(1);
            Values::Between { low, high: low.saturating_add_unsigned(part(all, fraction) - 1) }
        }
        Values::Reference(mut reference)
            if matches!(reference.pick, Pick::Random { .. } | Pick::Spread { .. }) =>
        {
            reference.keys = Arc::new(keys(&reference.keys, fraction));
            Values::Reference(reference)
        }
        Values::Repeated { mut spread, values } => {
            spread.distinct = distinct(spread.distinct, fraction);
            Values::Repeated { spread, values }
        }
        Values::Ordered { other, others, side, values } => {
            let part = |values: Box<Values>| Box::new(sampled(*values, fraction, range));
            Values::Ordered { other, others: part(others), side, values: part(values) }
        }
        Values::Statistics(mut statistics) => {
            statistics.distinct = distinct(statistics.distinct, fraction);
            Values::Statistics(statistics)
        }
        Values::Ranked { ranking, values } => {
            Values::Ranked { ranking, values: Box::new(sampled(*values, fraction, range)) }
        }
        Values::Leading { until, leading, others } => {
            let part = |values: Box<Values>| Box::new(sampled(*values, fraction, range));
            Values::Leading { until, leading: part(leading), others: part(others) }
        }
        Values::Nulls { fraction: nulls, by, values } => {
            Values::Nulls { fraction: nulls, by, values: Box::new(sampled(*values, fraction, range)) }
        }
        values => values,
    }
}

fn keys(keys: &Keys, fraction: f64) -> Keys {
    match keys {
        Keys::Interval { low, high } => {
            let all = high.abs_diff(*low).saturating_add(1);
            Keys::Interval { low: *low, high: low.saturating_add_unsigned(part(all, fraction) - 1) }
        }
        // From all over the list: lengths may grow along it.
        Keys::Listed(all) => {
            let wanted = part(all.len() as u64, fraction);
            let at = |place: u64| usize::try_from(place * all.len() as u64 / wanted).unwrap_or_default();
            Keys::Listed((0..wanted).map(|place| all[at(place)].clone()).collect())
        }
        Keys::Made { table, first } => {
            let rows = first + part(table.rows.saturating_sub(*first), fraction);
            Keys::Made { table: Table { rows, ..table.clone() }, first: *first }
        }
    }
}

/// Number of different values among a fraction of the rows; `distinct` as in [`crate::Spread`].
fn distinct(distinct: f64, fraction: f64) -> f64 {
    let small = SMALL as f64;
    if distinct < 0.0 { distinct * fraction } else { (distinct * fraction).max(distinct.min(small)) }
}

/// A fraction of a number, but no less than [`SMALL`].
fn part(all: u64, fraction: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let part = (all as f64 * fraction).round() as u64;
    part.clamp(all.min(SMALL), all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Kind, Reference};

    fn table(values: Values) -> Table {
        let columns = vec![Column::new("a", Kind::Int8, values)];
        Table { name: "t".to_owned(), columns, rows: 1_000, seed: 0 }
    }

    fn reference(keys: Keys, pick: Pick) -> Values {
        Values::Reference(Reference { keys: Arc::new(keys), column: 0, pick, is_allowed: false })
    }

    #[test]
    fn large_sets_shrink_and_everything_else_stays() {
        let random = || Pick::Random { name: "fk".to_owned() };
        let cases = [
            (Values::Between { low: -5, high: 19_994 }, Values::Between { low: -5, high: 1_994 }),
            (Values::Between { low: 1, high: 3_000 }, Values::Between { low: 1, high: 1_000 }),
            (Values::Between { low: 7, high: 7 }, Values::Between { low: 7, high: 7 }),
            (Values::Any, Values::Between { low: 1, high: 303_700_050 }),
            (
                reference(Keys::Interval { low: 1, high: 20_000 }, random()),
                reference(Keys::Interval { low: 1, high: 2_000 }, random()),
            ),
            (Values::Serial { start: 1, step: 1 }, Values::Serial { start: 1, step: 1 }),
        ];
        for (whole, sample) in cases {
            assert_eq!(table(whole.clone()).sampled(0.1), table(sample.clone()));
            let nulls = |values| Values::Nulls { fraction: 0.5, by: None, values: Box::new(values) };
            assert_eq!(table(nulls(whole)).sampled(0.1), table(nulls(sample)));
        }
    }

    #[test]
    fn keys_from_all_over_a_list_stand_for_it() {
        let listed = |keys: std::ops::Range<u64>, factor: u64| {
            Keys::Listed(keys.map(|key| vec![Some((key * factor).to_string())]).collect())
        };
        let pick = || Pick::Random { name: "fk".to_owned() };
        let whole = table(reference(listed(0..50_000, 1), pick()));
        assert_eq!(whole.sampled(0.1), table(reference(listed(0..5_000, 10), pick())));
    }

    #[test]
    fn keys_by_turns_stay_unique() {
        let turn = crate::Turn { every: 1, of: u64::MAX };
        let whole = table(reference(Keys::Interval { low: 1, high: 20_000 }, Pick::InTurn(turn)));
        assert_eq!(whole.sampled(0.1), whole);
    }
}
