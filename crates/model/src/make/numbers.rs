//! Numbers, dates and times: rare values are replaced, frequent ones and bounds of the histogram stay or move.

use rowgen::Kind;

use super::{Maker, correlation, random, round};
use crate::facts::{ColumnFacts, Statistics};
use crate::file::Values;
use crate::numbers::{
    DENSE, ENOUGH, Number, different, divide, grain, move_bounds, replace_rare, smooth, step,
};

impl Maker<'_> {
    pub(super) fn numbers(&mut self, kind: &Kind, statistics: &Statistics) -> Values {
        let read = |text: &String| Number::read(kind, text);
        let common: Vec<(Number, f64)> =
            statistics.common.iter().filter_map(|(value, share)| Some((read(value)?, *share))).collect();
        let mut bounds: Vec<Number> = statistics.bounds.iter().filter_map(read).collect();
        bounds.sort_by(|one, other| one.at.total_cmp(&other.at));
        if common.is_empty() && bounds.len() < 2 {
            return random(kind, statistics);
        }
        // They say nothing of a person, and take no part in the arithmetic.
        let (infinite, mut common): (Vec<_>, Vec<_>) =
            common.into_iter().partition(|(number, _)| number.is_infinite(kind));
        common.sort_by(|(one, _), (other, _)| one.at.total_cmp(&other.at));
        bounds.retain(|bound| !bound.is_infinite(kind));
        if bounds.len() == 1 {
            bounds.clear();
        }
        if !matches!(kind, Kind::Bool | Kind::Enum { .. }) {
            let (step, is_rare) = self.step(kind, statistics, &common, &bounds);
            let least = self.least(statistics);
            replace_rare(self.rng, least, kind, &mut common, &bounds, step);
            let originals: Vec<f64> = bounds.iter().map(|bound| bound.at).collect();
            smooth(kind, &mut bounds, step);
            let others = (1.0 - common.iter().map(|(_, share)| share).sum::<f64>()).max(f64::MIN_POSITIVE);
            let of_bucket = least * bounds.len().max(1) as f64 / others;
            let both = (bounds.as_mut_slice(), originals.as_slice());
            move_bounds(self.rng, kind, both, step, of_bucket.min(1.0), is_rare);
            divide(self.rng, kind, &common, &mut bounds, step);
        }
        common.dedup_by(|(number, share), (before, all)| {
            let is_same = number.at.total_cmp(&before.at).is_eq();
            if is_same {
                *all += *share;
            }
            is_same
        });
        common.extend(infinite);
        common.sort_by(|(one, _), (other, _)| one.at.total_cmp(&other.at));
        let distinct = if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct };
        Values::Statistics {
            distinct,
            correlation: correlation(statistics),
            common: common.into_iter().map(|(number, share)| (number.text, round(share))).collect(),
            bounds: bounds.into_iter().map(|number| number.text).collect(),
            replaced: false,
            moved_common: Vec::new(),
            moved_bounds: Vec::new(),
        }
    }

    /// By which distances values move, and whether bounds of the histogram do: fewer than k rows have the same value on average, and
    /// there are others.
    fn step(
        &self,
        kind: &Kind,
        statistics: &Statistics,
        common: &[(Number, f64)],
        bounds: &[Number],
    ) -> (f64, bool) {
        let numbers = || common.iter().map(|(number, _)| number).chain(bounds);
        let at: Vec<f64> = numbers().map(|number| number.at).collect();
        // A value that k rows hold on average may stay. Frequent values say nothing of the others.
        let there = self.table.rows as f64 * (1.0 - statistics.null_frac);
        let count =
            if statistics.n_distinct < 0.0 { -statistics.n_distinct * there } else { statistics.n_distinct };
        let of_others = 1.0 - statistics.common.iter().map(|(_, share)| share).sum::<f64>();
        let others = (count - statistics.common.len() as f64).max(0.0);
        let is_rare = others * f64::from(self.privacy.k) > there * of_others.max(0.0);
        // Where nearly every number between the bounds occurs, moved ones are no others.
        let is_dense = |step: f64| match (bounds.first(), bounds.last()) {
            (Some(low), Some(high)) if step > 0.0 => count >= DENSE * ((high.at - low.at) / step + 1.0),
            _ => false,
        };
        let of_all = step(kind, numbers());
        let step = if different(&at).len() < ENOUGH || (is_rare && is_dense(of_all)) {
            grain(kind, &at, count)
        } else {
            of_all
        };
        (step, is_rare && !is_dense(step))
    }

    /// Values for integers that ascend with the rows and have gaps: keys at equal distances.
    pub(super) fn serial(&mut self, facts: &ColumnFacts, statistics: &Statistics) -> Option<Values> {
        let kind = facts.kind.as_ref().filter(|kind| matches!(kind, Kind::Int4 | Kind::Int8))?;
        let units = |text: &String| kind.read_units(text);
        let (first, last) = (units(statistics.bounds.first()?)?, units(statistics.bounds.last()?)?);
        let rows = i64::try_from(self.table.rows).ok().filter(|rows| *rows > 1_000)?;
        let step = last.checked_sub(first)?.checked_add(rows / 2)? / rows;
        if step < 2 || statistics.correlation.unwrap_or_default() < 0.999 {
            return None;
        }
        // The least key is one row's: the copy begins between this one and the next.
        Some(Values::Serial { start: first + self.rng.i64(1..step), step })
    }
}

#[cfg(test)]
mod tests {
    use rowgen::Precision;

    use super::*;
    use crate::facts::ColumnRole;
    use crate::testing::{column, made, modelled, strings};

    /// `rows` of 10,000 are not NULL.
    fn kept(rows: f64, share: f64, n_distinct: f64) -> (bool, bool) {
        let statistics = Statistics {
            null_frac: 1.0 - rows / 10_000.0,
            n_distinct,
            common: vec![("500".to_owned(), share * rows / 10_000.0)],
            bounds: strings(&["1", "1003", "2009", "5027", "9999"]),
            ..Statistics::default()
        };
        let Values::Statistics { common, bounds, .. } =
            made(Kind::Int4, ColumnRole::Free, statistics, &[]).values
        else {
            panic!()
        };
        (common.iter().any(|(value, _)| value == "500"), bounds[1..4] == ["1003", "2009", "5027"])
    }

    #[test]
    fn rows_with_null_and_frequent_values_do_not_count_for_others() {
        // 30 of 10,000 rows, and 15 of 5,000, of which 20 are needed.
        assert!(kept(10_000.0, 0.003, 10.0).0 && !kept(5_000.0, 0.003, 10.0).0);
        // 100 values: each in 100 rows; or in one, because one value is in 9,900.
        assert!(kept(10_000.0, 0.01, 100.0).1 && !kept(10_000.0, 0.99, 100.0).1);
    }

    #[test]
    fn numbers_that_few_rows_hold_are_replaced_and_bounds_move() {
        let statistics = Statistics {
            null_frac: 0.2,
            n_distinct: -0.4,
            avg_width: 4,
            correlation: Some(0.3),
            common: vec![("500".to_owned(), 0.4), ("77".to_owned(), 0.0008)],
            bounds: strings(&["1", "100", "1000", "5000", "9999"]),
            ..Statistics::default()
        };
        let column = made(Kind::Int4, ColumnRole::Free, statistics, &[]);
        assert!((column.nulls - 0.2).abs() < 1e-9);
        let Values::Statistics { distinct, common, bounds, .. } = column.values else { panic!() };
        assert!((distinct + 0.5).abs() < 1e-9, "relative to the rows that are not NULL");
        assert!((common.iter().find(|(value, _)| value == "500").unwrap().1 - 0.5).abs() < 1e-9);
        assert!(common.iter().all(|(value, _)| value != "77") && common.len() == 2);
        let bounds: Vec<i64> = bounds.iter().map(|bound| bound.parse().unwrap()).collect();
        assert!(bounds.is_sorted() && bounds[0] >= 1 && bounds[4] <= 9_999);
        assert_ne!(bounds, [1, 100, 1000, 5000, 9999]);
    }

    /// Facts of a column with `rows` of 10,000 that are not NULL, whose values are all in the histogram.
    fn histogram(rows: f64, texts: &[&str]) -> Statistics {
        Statistics {
            null_frac: 1.0 - rows / 10_000.0,
            n_distinct: texts.len() as f64,
            bounds: strings(texts),
            ..Statistics::default()
        }
    }

    #[test]
    fn values_of_fewer_than_k_rows_leave_counts_only() {
        let one = |text: &str| Statistics {
            null_frac: 0.9998,
            n_distinct: 1.0,
            avg_width: 8,
            common: vec![(text.to_owned(), 0.0002)],
            ..Statistics::default()
        };
        let range = Kind::Range { name: "daterange".to_owned(), oid: 3912, element: Box::new(Kind::Date) };
        let array = Kind::Array(Box::new(Kind::Int4));
        for (kind, text) in [
            (Kind::Int4, "1234567"),
            (Kind::Numeric(None), "4711.08"),
            (Kind::Float8, "3.14159265"),
            (Kind::TimestampTz, "1987-06-05 04:03:02.123456+00"),
            (Kind::Date, "1961-08-13"),
            (Kind::Time, "13:37:42"),
            (Kind::Interval, "1 mon"),
            (Kind::Uuid, "b2f7cbe7-6d45-4fd3-9d4b-3f3a4b7e4c11"),
            (Kind::Bytea, "\\x0123456789"),
            (Kind::Text, "a secret"),
            (range, "[1961-08-13,1989-11-07)"),
            (array, "{4711,4712}"),
        ] {
            let made = made(kind.clone(), ColumnRole::Free, one(text), &[]);
            assert!(
                matches!(&made.values, Values::Fill { .. })
                    || matches!(&made.values, Values::Letters { common, .. } if common.is_empty()),
                "{kind:?}: {made:?}"
            );
        }
        // Two values are as few, and the foreign key keeps the number of used keys alone.
        let dates = histogram(2.0, &["1961-08-13", "1975-02-02"]);
        assert!(matches!(made(Kind::Date, ColumnRole::Free, dates, &[]).values, Values::Fill { .. }));
        let role = ColumnRole::Reference { table: "public.t".to_owned(), column: "id".to_owned() };
        let keys = made(Kind::Int4, role, histogram(19.0, &["7", "4711"]), &[]);
        let Values::Keys { common, bounds, .. } = keys.values else { panic!() };
        assert!(common.is_empty() && bounds.is_empty() && (keys.nulls - 0.9981).abs() < 1e-9);
        let enough = made(Kind::Int4, ColumnRole::Free, histogram(20.0, &["7", "4711"]), &[]);
        assert!(matches!(enough.values, Values::Statistics { .. }));
    }

    #[test]
    fn a_column_beside_one_with_few_values_keeps_its_own() {
        let placed: Vec<String> = (0..=100).map(|bound| (bound * 977).to_string()).collect();
        let all = Statistics { n_distinct: -1.0, bounds: placed, ..Statistics::default() };
        let role = ColumnRole::Above { column: "placed".to_owned(), is_strict: false };
        let columns = vec![
            column("placed", Kind::Int4, ColumnRole::Free, all),
            column("sent", Kind::Int4, role, histogram(3.0, &["5003", "7001", "9001"])),
        ];
        let [placed, sent] = <[_; 2]>::try_from(modelled(columns, &[])).unwrap();
        assert!(matches!(&placed.values, Values::Statistics { bounds, .. } if bounds.len() == 101));
        assert_eq!((&sent.values, sent.not_below.as_deref()), (&placed.values, Some("placed")));
        assert!((sent.nulls - 0.9997).abs() < 1e-9);
    }

    #[test]
    fn no_value_stays_because_few_values_lie_at_equal_distances() {
        // Each in one row: fifty salaries at equal distances, the least and the greatest of many (statistics target 1), and twenty
        // rows with two times.
        let salaries: Vec<String> = (0..50).map(|number| (50_700 + 700 * number).to_string()).collect();
        let salaries =
            Statistics { null_frac: 0.995, n_distinct: -0.005, bounds: salaries, ..Statistics::default() };
        let two = |kind: &Kind, distinct: f64, texts: &[&str]| {
            (kind.clone(), Statistics { n_distinct: distinct, ..histogram(10_000.0, texts) })
        };
        for (kind, statistics) in [
            (Kind::Int4, salaries),
            two(&Kind::Int4, -1.0, &["20018", "85011"]),
            two(&Kind::Date, -0.9, &["1930-03-09", "1998-08-17"]),
            two(&Kind::Numeric(Some(Precision { precision: 12, scale: 2 })), -1.0, &["11.72", "36552.15"]),
            two(&Kind::Float8, -1.0, &["2.718281828", "3.141592654"]),
            two(&Kind::Timestamp, -0.9, &["2001-02-03 04:05:06", "2001-02-03 05:06:07"]),
        ] {
            let made = made(kind.clone(), ColumnRole::Free, statistics.clone(), &[]);
            let Values::Statistics { bounds, .. } = &made.values else { panic!("{made:?}") };
            let stayed: Vec<&String> =
                bounds.iter().filter(|bound| statistics.bounds.contains(bound)).collect();
            assert!(stayed.is_empty(), "{kind:?}: {stayed:?}");
            assert_eq!(made.originals().bounds, Vec::<String>::new());
        }
    }

    #[test]
    fn values_that_become_equal_share_their_frequency() {
        let kind = Kind::Numeric(Some(Precision { precision: 20, scale: 10 }));
        let common = [("0.1428571411", 0.3), ("0.1428571429", 0.2), ("0.5000000000", 0.1)];
        let statistics = Statistics {
            n_distinct: 3.0,
            common: common.map(|(text, share)| (text.to_owned(), share)).to_vec(),
            ..Statistics::default()
        };
        let Values::Statistics { common, .. } = made(kind, ColumnRole::Free, statistics, &[]).values else {
            panic!()
        };
        assert_eq!(common, [("0.14285714".to_owned(), 0.5), ("0.50000000".to_owned(), 0.1)]);
    }

    #[test]
    fn a_series_of_keys_does_not_begin_with_the_original_s_least_key() {
        let bounds = (0..=100).map(|bound| (1_000_003 + bound * 200).to_string()).collect();
        let keys = Statistics { n_distinct: -1.0, correlation: Some(1.0), bounds, ..Statistics::default() };
        let one = |at: u32| column(&format!("c{at}"), Kind::Int8, ColumnRole::Unique, keys.clone());
        for made in modelled((0..20).map(one).collect(), &[]) {
            assert_eq!(made.values, Values::Serial { start: 1_000_004, step: 2 });
        }
    }

    #[test]
    fn the_least_and_the_greatest_number_move_inwards() {
        // 10 to 100 in steps of 10, each in 9 rows.
        let common: Vec<_> = (1..=10).map(|tens| (format!("{}", tens * 10), 0.009)).collect();
        let bounds = strings(&["11", "37", "52", "88", "99"]);
        let statistics = Statistics {
            null_frac: 0.0,
            n_distinct: 90.0,
            avg_width: 4,
            correlation: Some(0.0),
            common,
            bounds,
            ..Statistics::default()
        };
        let column = made(Kind::Int4, ColumnRole::Free, statistics, &[]);
        let Values::Statistics { common, .. } = column.values else { panic!() };
        let numbers: Vec<i64> = common.iter().map(|(number, _)| number.parse().unwrap()).collect();
        assert!(numbers.iter().all(|number| (10..=100).contains(number)), "{numbers:?}");
    }

    #[test]
    fn numbers_that_are_too_long_are_random_and_as_frequent() {
        let long = |digit: u32| format!("{digit}00000000000000000000000");
        let statistics = Statistics {
            n_distinct: 700.0,
            common: vec![(long(7), 0.25)],
            bounds: vec![long(1), long(2), long(3)],
            ..Statistics::default()
        };
        let column = made(Kind::Numeric(None), ColumnRole::Free, statistics, &[]);
        let Values::Any { distinct, common, .. } = column.values else { panic!("{column:?}") };
        assert!((distinct - 700.0).abs() < 1e-9 && common.len() == 1, "{common:?}");
        assert!((common[0].1 - 0.25).abs() < 1e-9, "{common:?}");
    }

    #[test]
    fn labels_are_the_schema_s() {
        let kind = Kind::Enum {
            name: "mood".to_owned(),
            labels: strings(&["sad", "ok", "happy"]),
            oids: Vec::new(),
            oid: 0,
        };
        let statistics = Statistics {
            n_distinct: 2.0,
            avg_width: 4,
            common: vec![("happy".to_owned(), 0.9999), ("sad".to_owned(), 0.0001)],
            ..Statistics::default()
        };
        let column = made(kind, ColumnRole::Free, statistics, &[]);
        let Values::Statistics { common, .. } = column.values else { panic!() };
        assert_eq!(common, [("sad".to_owned(), 0.0001), ("happy".to_owned(), 0.9999)]);
    }
}
