//! Positions of frequent values among all values.

use super::round;
use crate::facts::Statistics;

/// A value's position among all values, 0 to 1, by the bounds or the common values.
pub(super) fn place(value: &str, bounds: &[String], common: &[(String, f64)]) -> f64 {
    let number = |text: &str| text.parse::<f64>().ok();
    let is_less = |other: &str| match (number(other), number(value)) {
        (Some(other), Some(value)) => other < value,
        _ => other < value,
    };
    if bounds.len() > 1 {
        let below = bounds.iter().filter(|bound| is_less(bound)).count();
        return (below as f64 / (bounds.len() - 1) as f64).min(1.0);
    }
    let below = common.iter().filter(|(other, _)| is_less(other)).count();
    (below as f64 + 0.5) / common.len().max(1) as f64
}

/// A number's position between the bounds of all values, 0 to 1.
pub(super) fn place_on(number: f64, line: &[f64]) -> f64 {
    let after = line.partition_point(|bound| *bound <= number).clamp(1, line.len() - 1);
    let (low, high) = (line[after - 1], line[after]);
    let within = if high > low { ((number - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    (after as f64 - 1.0 + within) / (line.len() - 1) as f64
}

pub(super) fn place_of_key(value: &str, statistics: &Statistics, line: &[f64]) -> f64 {
    match value.parse() {
        Ok(number) if line.len() > 1 => place_on(number, line),
        _ => place(value, &statistics.bounds, &statistics.common),
    }
}

/// Frequent keys in order, each with its position among all keys and its share.
pub(super) fn keys_in_order(statistics: &Statistics, line: &[f64]) -> Vec<(String, f64, f64)> {
    in_order(&statistics.common, |value| place_of_key(value, statistics, line))
}

/// Frequent texts in order, each with its position among all texts and its share.
pub(super) fn texts_in_order(statistics: &Statistics) -> Vec<(String, f64, f64)> {
    in_order(&statistics.common, |value| place(value, &statistics.bounds, &[]))
}

pub(super) fn in_order(common: &[(String, f64)], place: impl Fn(&str) -> f64) -> Vec<(String, f64, f64)> {
    let at_place = |(value, share): &(String, f64)| (value.clone(), round(place(value)), round(*share));
    let mut places: Vec<(String, f64, f64)> = common.iter().map(at_place).collect();
    // Of the same place, by value: numbers by their length first.
    places.sort_by(|one, other| {
        one.1.total_cmp(&other.1).then_with(|| match (one.0.parse::<f64>(), other.0.parse::<f64>()) {
            (Ok(one), Ok(other)) => one.total_cmp(&other),
            _ => one.0.cmp(&other.0),
        })
    });
    places.retain(|(.., share)| *share > 0.0);
    places
}
