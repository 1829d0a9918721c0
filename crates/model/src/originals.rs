//! The values of a model that are the original's.
//!
//! A model records which numbers, dates and times pgrig replaced: those that are not among the values in the statistics of the
//! original. All others count as the original's, also those that were edited, or that an earlier version wrote.

use rowgen::Kind;

use crate::facts::Statistics;
use crate::file::{Column, Others, Values};
use crate::make::bounds_of;
use crate::numbers::Number;

/// The values of a column that are the original's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Originals {
    /// Frequent values, or those of a list.
    pub values: Vec<String>,
    /// Bounds of the histogram; of a column of ranges, lower bounds.
    pub bounds: Vec<String>,
}

impl Column {
    /// The values that are the original's.
    pub fn originals(&self) -> Originals {
        match &self.values {
            Values::List { values, .. } if self.is_exchanged() => Originals {
                values: values.iter().map(|(text, _)| text.clone()).collect(),
                bounds: Vec::new(),
            },
            values => values.originals(),
        }
    }

    /// Whether the original's texts replace each other, because there are too few other texts of their length: replaced texts ascend otherwise.
    pub fn is_exchanged(&self) -> bool {
        let is_array = self.data_type.ends_with(']');
        match &self.values {
            Values::List { values, kept: false, .. } => {
                !is_array && !values.is_sorted_by(|one, next| one.0 < next.0)
            }
            _ => false,
        }
    }
}

impl Values {
    /// The values that are the original's, but for texts that replace each other.
    fn originals(&self) -> Originals {
        let texts = |common: &[(String, f64)]| common.iter().map(|(text, _)| text.clone()).collect();
        match self {
            Self::Statistics { common, bounds, moved_common, moved_bounds, .. } => Originals {
                values: without(common.iter().map(|(text, _)| text), moved_common),
                bounds: without(bounds.iter(), moved_bounds),
            },
            Self::Ranges { low, moved_low, .. } => {
                Originals { values: Vec::new(), bounds: without(low.iter(), moved_low) }
            }
            Self::List { values, kept: true, .. } => Originals { values: texts(values), bounds: Vec::new() },
            // Of text, all are replaced.
            Self::Elements { elements, others: Others::Any | Others::Between { .. }, .. } => {
                Originals { values: texts(elements), bounds: Vec::new() }
            }
            _ => Originals::default(),
        }
    }

    /// Records the values that are not in the statistics of the original.
    pub(crate) fn mark_moved(&mut self, kind: &Kind, statistics: &Statistics) {
        match (self, kind) {
            (Self::Statistics { common, bounds, moved_common, moved_bounds, .. }, kind) => {
                let texts = statistics.common.iter().map(|(text, _)| text).chain(&statistics.bounds);
                let known = Known::of(kind, texts.map(String::as_str));
                *moved_common = known.others(common.iter().map(|(text, _)| text));
                *moved_bounds = known.others(bounds.iter());
            }
            (Self::Ranges { low, moved_low, .. }, Kind::Range { element, .. }) => {
                let ranges = statistics.ranges.iter().flat_map(|ranges| &ranges.bounds);
                let texts = ranges.filter_map(|text| bounds_of(text)).flat_map(|(low, high)| [low, high]);
                *moved_low = Known::of(element, texts).others(low.iter());
            }
            _ => {}
        }
    }
}

/// The texts outside of runs of indexes.
fn without<'a>(texts: impl Iterator<Item = &'a String>, runs: &[(usize, usize)]) -> Vec<String> {
    let is_in = |at: usize| runs.iter().any(|(first, last)| (*first..=*last).contains(&at));
    texts.enumerate().filter(|(at, _)| !is_in(*at)).map(|(_, text)| text.clone()).collect()
}

/// Values of the original, in ascending order.
struct Known<'a> {
    kind: &'a Kind,
    at: Vec<f64>,
}

impl<'a> Known<'a> {
    fn of<'t>(kind: &'a Kind, texts: impl Iterator<Item = &'t str>) -> Self {
        let mut at: Vec<f64> = texts.filter_map(|text| position(kind, text)).collect();
        at.sort_by(f64::total_cmp);
        Self { kind, at }
    }

    /// Runs of indexes, first and last, of texts that are none of these values.
    fn others<'t>(&self, texts: impl Iterator<Item = &'t String>) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (at, text) in texts.enumerate() {
            if self.contains(text) {
                continue;
            }
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == at => *last = at,
                _ => runs.push((at, at)),
            }
        }
        runs
    }

    /// Whether it is one of them, however it is written, or no number.
    fn contains(&self, text: &str) -> bool {
        let found = |number: f64| self.at.binary_search_by(|known| known.total_cmp(&number)).is_ok();
        position(self.kind, text).is_none_or(found)
    }
}

/// The value on its type's scale; 0 has one sign.
fn position(kind: &Kind, text: &str) -> Option<f64> {
    Number::read(kind, text).map(|number| number.at + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ColumnRole, RangeStatistics};
    use crate::testing::{made, strings};

    /// The original's values in the model of a column: of its statistics, and those that the model tells of.
    fn told(kind: &Kind, statistics: &Statistics) -> (Vec<String>, Originals) {
        let column = made(kind.clone(), ColumnRole::Free, statistics.clone(), &[]);
        let all = statistics.common.iter().map(|(text, _)| text.clone()).chain(statistics.bounds.clone());
        (all.collect(), column.values.originals())
    }

    #[test]
    fn bounds_that_stay_are_told_and_those_that_moved_are_not() {
        let bounds: Vec<String> = [1, 3_003, 9_109, 15_027, 32_941].map(|bound| bound.to_string()).to_vec();
        let of = |n_distinct: f64| Statistics {
            n_distinct,
            common: vec![("500".to_owned(), 0.2), ("777".to_owned(), 0.0011)],
            bounds: bounds.clone(),
            ..Statistics::default()
        };
        // Of 300 values, k rows have each.
        let (_, kept) = told(&Kind::Int4, &of(300.0));
        assert_eq!(kept.bounds, ["3003", "9109", "15027"]);
        assert_eq!(kept.values, ["500"]);
        let (all, kept) = told(&Kind::Int4, &of(-0.8));
        assert_eq!((kept.values, kept.bounds), (vec!["500".to_owned()], Vec::new()));
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn each_value_of_the_statistics_that_is_in_the_model_is_told() {
        // 11 has no neighbour that is free; dense numbers keep their bounds.
        let common = [("10", 0.3), ("11", 0.0011), ("12", 0.3)].map(|(text, share)| (text.to_owned(), share));
        let bounds = (20..60).map(|bound| bound.to_string()).collect();
        let statistics =
            Statistics { n_distinct: 43.0, common: common.to_vec(), bounds, ..Statistics::default() };
        let column = made(Kind::Int4, ColumnRole::Free, statistics.clone(), &[]);
        let Values::Statistics { common, bounds, .. } = &column.values else { panic!("{column:?}") };
        let (all, told) = told(&Kind::Int4, &statistics);
        let there = common.iter().map(|(text, _)| text).chain(bounds).filter(|text| all.contains(text));
        let told: Vec<String> = told.values.into_iter().chain(told.bounds).collect();
        assert_eq!(there.cloned().collect::<Vec<String>>(), told);
        assert!(told.contains(&"11".to_owned()) && told.len() > 30, "{told:?}");
    }

    #[test]
    fn texts_that_replace_each_other_are_the_originals() {
        let letters = |count: u8| (0..count).map(|at| char::from(b'!' + at).to_string());
        let of = |count: u8| {
            let common = letters(count).map(|text| (text, 1.0 / f64::from(count))).collect();
            let statistics =
                Statistics { n_distinct: f64::from(count), avg_width: 2, common, ..Statistics::default() };
            let kind = Kind::Char(1);
            made(kind, ColumnRole::Free, statistics, &[]).originals().values
        };
        // There are 62 letters and digits.
        assert_eq!(of(20), Vec::<String>::new());
        let mut told = of(90);
        told.sort_unstable();
        assert_eq!(told, letters(90).collect::<Vec<String>>());
    }

    #[test]
    fn a_value_in_another_form_is_the_same() {
        let (numeric, float) = (Kind::Numeric(None), Kind::Float8);
        let known = Known::of(&numeric, ["1.50", "2", "0"].into_iter());
        let texts = strings(&["1.5", "1.51", "1.52", "2.000", "3"]);
        assert_eq!(known.others(texts.iter()), [(1, 2), (4, 4)]);
        let known = Known::of(&float, ["0"].into_iter());
        assert!(known.contains("-0") && !known.contains("1"));
    }

    #[test]
    fn lower_bounds_of_ranges_count_as_bounds() {
        let kind = Kind::Range { name: "daterange".to_owned(), oid: 3912, element: Box::new(Kind::Date) };
        let bounds = [
            "(,2020-03-01)",
            "[2020-01-11,2020-04-11)",
            "[2020-02-10,2020-06-10)",
            "[2020-05-20,2020-09-09)",
            "[2020-11-08,)",
        ];
        let lengths = vec![10.0, 20.0, 30.0, f64::INFINITY, f64::INFINITY];
        let ranges = RangeStatistics { empty: 0.0, bounds: strings(&bounds), lengths };
        let statistics = Statistics { n_distinct: -1.0, ranges: Some(ranges), ..Statistics::default() };
        let mut values = made(kind.clone(), ColumnRole::Free, statistics.clone(), &[]).values;
        assert_eq!(values.originals(), Originals::default());
        let Values::Ranges { low, .. } = &mut values else { panic!() };
        low[1] = "2020-06-10".to_owned();
        values.mark_moved(&kind, &statistics);
        assert_eq!(values.originals().bounds, ["2020-06-10"]);
    }

    #[test]
    fn without_a_record_of_it_no_value_counts_as_replaced() {
        let edited = Values::Statistics {
            distinct: 3.0,
            correlation: 0.0,
            common: vec![("7".to_owned(), 0.5)],
            bounds: strings(&["1", "2"]),
            replaced: false,
            moved_common: Vec::new(),
            moved_bounds: Vec::new(),
        };
        assert_eq!(edited.originals(), Originals { values: strings(&["7"]), bounds: strings(&["1", "2"]) });
    }
}
