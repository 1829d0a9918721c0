//! Ranges: quantiles of lower bounds and of lengths, moved as bounds of histograms are.

use rowgen::Kind;

use super::{Maker, round};
use crate::facts::Statistics;
use crate::file::Values;
use crate::numbers::{DENSE, ENOUGH, Number, different, divide, grain, move_bounds, step};

/// The greatest length, in units.
const LONGEST: f64 = 9e15;

impl Maker<'_> {
    /// Values for a column of one of PostgreSQL's own range types; none without a histogram of its bounds.
    pub(super) fn ranges(&mut self, name: &str, element: &Kind, statistics: &Statistics) -> Option<Values> {
        let units = units_of_length(name, element)?;
        let ranges = statistics.ranges.as_ref()?;
        let bounds: Vec<(&str, &str)> = ranges.bounds.iter().filter_map(|text| bounds_of(text)).collect();
        let missing = |one: fn(&(&str, &str)) -> bool| {
            round(bounds.iter().filter(|both| one(both)).count() as f64 / bounds.len().max(1) as f64)
        };
        let unbounded = (missing(|(low, _)| is_missing(low)), missing(|(_, high)| is_missing(high)));
        let low = bounds.iter().filter(|(low, _)| !is_missing(low));
        let mut low: Vec<Number> = low.filter_map(|(low, _)| Number::read(element, low)).collect();
        low.sort_by(|one, other| one.at.total_cmp(&other.at));
        let lengths = ranges.lengths.iter().filter(|length| length.is_finite());
        let mut lengths: Vec<Number> = lengths.map(|length| whole(length * units)).collect();
        lengths.sort_by(|one, other| one.at.total_cmp(&other.at));
        let is_known = low.len() > 1 && (lengths.len() > 1 || unbounded.1 >= 1.0);
        if ranges.empty < 1.0 && !is_known {
            return None;
        }
        let share =
            self.least(statistics) * bounds.len() as f64 / (1.0 - ranges.empty).max(f64::MIN_POSITIVE);
        for (numbers, kind) in [(&mut low, element), (&mut lengths, &Kind::Int8)] {
            self.move_quantiles(kind, numbers, share);
        }
        Some(Values::Ranges {
            of: element.sql(),
            empty: round(ranges.empty),
            unbounded,
            low: low.into_iter().map(|number| number.text).collect(),
            lengths: lengths.iter().filter_map(|number| number.text.parse().ok()).collect(),
            moved_low: Vec::new(),
        })
    }
}

impl Maker<'_> {
    /// Moves quantiles in ascending order, except for those that k rows share. `share` is k's share of the rows between two quantiles.
    fn move_quantiles(&mut self, kind: &Kind, numbers: &mut Vec<Number>, share: f64) {
        let at: Vec<f64> = numbers.iter().map(|number| number.at).collect();
        let originals = different(&at);
        let first = |number: f64| at.partition_point(|other| *other < number);
        let mut moved: Vec<Number> = originals.iter().map(|number| numbers[first(*number)].clone()).collect();
        let step = unit(kind, &moved, &originals);
        let both = (moved.as_mut_slice(), originals.as_slice());
        move_bounds(self.rng, kind, both, step, share.min(1.0), true);
        for (number, original) in numbers.iter_mut().zip(&at) {
            let same = at.iter().filter(|other| other.total_cmp(original).is_eq()).count();
            if ((same - 1) as f64) < share || same == 1 {
                let place = originals.partition_point(|other| other < original);
                number.clone_from(&moved[place]);
            }
        }
        numbers.sort_by(|one, other| one.at.total_cmp(&other.at));
        divide(self.rng, kind, &[], numbers, step);
    }
}

/// By which distances quantiles move: the greatest of which all distances are multiples; a smaller one if they are few, or if there
/// are no others at such distances.
fn unit(kind: &Kind, numbers: &[Number], at: &[f64]) -> f64 {
    let of_all = step(kind, numbers.iter());
    let sorted = different(at);
    let width = sorted.first().zip(sorted.last()).map_or(0.0, |(first, last)| last - first);
    let count = sorted.len() as f64;
    if sorted.len() < ENOUGH || count >= DENSE * (width / of_all + 1.0) {
        grain(kind, at, count)
    } else {
        of_all
    }
}

/// Units of the bounds in one unit of the length, by the `subtype_diff` of PostgreSQL's own types.
fn units_of_length(name: &str, element: &Kind) -> Option<f64> {
    match (name, element) {
        ("int4range", Kind::Int4) | ("int8range", Kind::Int8) | ("daterange", Kind::Date) => Some(1.0),
        // Millionths, and microseconds in a second.
        ("numrange", Kind::Numeric(None))
        | ("tsrange", Kind::Timestamp)
        | ("tstzrange", Kind::TimestampTz) => Some(1e6),
        _ => None,
    }
}

/// The bounds of a range as the server prints it, empty where they are left out; none of an empty range.
pub(crate) fn bounds_of(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix(['[', '('])?.strip_suffix([']', ')'])?;
    let (low, high) = inner.split_once(',')?;
    Some((low.trim_matches('"'), high.trim_matches('"')))
}

/// Whether the bound is left out, or infinite.
fn is_missing(bound: &str) -> bool {
    bound.is_empty() || bound.eq_ignore_ascii_case("infinity") || bound.eq_ignore_ascii_case("-infinity")
}

fn whole(length: f64) -> Number {
    let at = length.round().clamp(0.0, LONGEST);
    Number { at, text: format!("{at:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ColumnRole, RangeStatistics};
    use crate::testing::{made, strings};

    fn of_dates(ranges: RangeStatistics) -> Values {
        let kind = Kind::Range { name: "daterange".to_owned(), oid: 3912, element: Box::new(Kind::Date) };
        let statistics = Statistics { n_distinct: -1.0, ranges: Some(ranges), ..Statistics::default() };
        made(kind, ColumnRole::Free, statistics, &[]).values
    }

    #[test]
    fn bounds_and_lengths_are_quantiles_that_moved() {
        let bounds = [
            "(,2020-03-01)",
            "[2020-01-11,2020-04-11)",
            "[2020-02-10,2020-06-10)",
            "[2020-05-20,2020-09-09)",
            "[2020-11-08,)",
        ];
        let lengths = vec![10.0, 20.0, 30.0, f64::INFINITY, f64::INFINITY];
        let made = of_dates(RangeStatistics { empty: 0.25, bounds: strings(&bounds), lengths });
        let Values::Ranges { of, empty, unbounded, low, lengths, .. } = made else { panic!("{made:?}") };
        assert_eq!((of.as_str(), low.len(), lengths.len()), ("date", 4, 3));
        assert!((empty - 0.25).abs() < 1e-9 && (unbounded.0 - 0.2).abs() < 1e-9, "{unbounded:?}");
        assert!((unbounded.1 - 0.2).abs() < 1e-9 && low.is_sorted() && lengths.is_sorted());
        assert!(low[0].as_str() >= "2020-01-11" && low[3].as_str() <= "2020-11-08", "{low:?}");
        assert!(lengths[0] >= 10 && lengths[2] <= 30, "{lengths:?}");
        let originals: Vec<&String> =
            low.iter().filter(|low| bounds.iter().any(|of| of.contains(*low))).collect();
        assert!(originals.is_empty(), "{originals:?}");
    }

    #[test]
    fn quantiles_at_equal_distances_move_too() {
        let day = |day: usize| Kind::Date.write_units(i64::try_from(10 * day).unwrap());
        let bounds: Vec<String> =
            (0..60).map(|number| format!("[{},{})", day(number), day(number + 3))).collect();
        let lengths = (0..60).map(|number| f64::from(30 + 70 * number)).collect();
        let made = of_dates(RangeStatistics { empty: 0.0, bounds, lengths });
        let Values::Ranges { low, lengths, .. } = made else { panic!("{made:?}") };
        let stayed: Vec<&String> =
            low.iter().filter(|low| (0..60).any(|number| **low == day(number))).collect();
        assert!(stayed.is_empty(), "{stayed:?}");
        let stayed: Vec<&i64> = lengths.iter().filter(|length| (*length - 30) % 70 == 0).collect();
        assert!(stayed.is_empty(), "{stayed:?}");
    }

    #[test]
    fn a_length_that_few_rows_share_moves_and_one_of_many_rows_stays() {
        // Of 40 rows, three have the length 1,000, and thirty the length 500.
        let bounds = (0..40).map(|day| Kind::Date.write_units(100 * day));
        let bounds = bounds.map(|day| format!("[{day},2030-01-01)")).collect();
        let lengths = [
            vec![500.0; 30],
            (1..=7).map(|number| 520.0 + 60.0 * f64::from(number)).collect(),
            vec![1_000.0; 3],
        ];
        let ranges = RangeStatistics { empty: 0.0, bounds, lengths: lengths.concat() };
        let kind = Kind::Range { name: "daterange".to_owned(), oid: 3912, element: Box::new(Kind::Date) };
        let statistics = Statistics {
            null_frac: 0.996,
            n_distinct: -0.004,
            ranges: Some(ranges),
            ..Statistics::default()
        };
        let Values::Ranges { lengths, .. } = made(kind, ColumnRole::Free, statistics, &[]).values else {
            panic!()
        };
        assert_eq!((lengths.len(), lengths[..30].to_vec()), (40, vec![500; 30]));
        assert!(!lengths.contains(&1_000), "{lengths:?}");
    }

    #[test]
    fn ranges_without_histogram_are_random_unless_all_are_empty() {
        let all_empty = of_dates(RangeStatistics { empty: 1.0, ..RangeStatistics::default() });
        assert!(matches!(all_empty, Values::Ranges { .. }), "{all_empty:?}");
        let unknown = of_dates(RangeStatistics { empty: 0.5, ..RangeStatistics::default() });
        assert!(matches!(unknown, Values::Any { .. }), "{unknown:?}");
    }
}
