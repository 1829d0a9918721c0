//! Descriptions of a column's values.

use crate::value::Value;
use crate::{Column, Distribution, Keys, Kind, Pick, Reference, Side, Values, render};

impl Column {
    /// A description of the column's values, such as `evenly from 1.00 to 999.99; NULL in 5 %`.
    pub fn phrase(&self) -> String {
        phrase(&self.values, &self.kind)
    }
}

/// A description of the values of a column of this kind.
pub(crate) fn phrase(values: &Values, kind: &Kind) -> String {
    let units = |units| units_as_text(kind, units);
    match values {
        Values::Any => "any".to_owned(),
        Values::Server => "made by the server".to_owned(),
        Values::Null => "NULL".to_owned(),
        Values::Int(value) => value.to_string(),
        Values::Text(text) => format!("'{text}'"),
        Values::Serial { .. } => "ascending".to_owned(),
        Values::Group { .. } => "ascending, in groups".to_owned(),
        Values::Unique(_) => "unique".to_owned(),
        Values::Long { length, .. } => format!("unique ({length})"),
        Values::Shuffle { low, high } => format!("{} to {}, shuffled", units(*low), units(*high)),
        Values::Between { low, high } => format!("evenly from {} to {}", units(*low), units(*high)),
        Values::Drawn(Distribution::Uniform { low, high }) => format!("evenly from {low} to {high}"),
        Values::Drawn(Distribution::Normal { .. }) => "normally distributed".to_owned(),
        Values::Drawn(Distribution::Exponential { .. }) => "exponentially distributed".to_owned(),
        Values::Drawn(Distribution::Zipf { .. }) => "Zipf-distributed".to_owned(),
        Values::List(list) => format!("one of {} values", list.len()),
        Values::Cycle(list) => format!("{} values in turn", list.len()),
        Values::Payload { payload, low, high } if low == high => format!("{} ({low})", payload.name()),
        Values::Payload { payload, low, high } => format!("{} ({low} to {high})", payload.name()),
        Values::Topic { topic, turn: None } => topic.name().to_owned(),
        Values::Topic { topic, turn: Some(_) } => format!("{}, unique", topic.name()),
        Values::Reference(Reference { keys, pick, is_allowed: true, .. }) => match pick {
            Pick::InTurn(_) | Pick::Shared(_) => format!("{} allowed values in turn", keys.count()),
            _ => format!("one of {} allowed values", keys.count()),
        },
        Values::Reference(Reference { keys, pick, .. }) => match (&**keys, pick) {
            (_, Pick::Earlier { .. }) => "key of an earlier row".to_owned(),
            (keys, Pick::Random { .. } | Pick::Spread { .. } | Pick::Paired(_)) => {
                format!("one of {} referenced keys", keys.count())
            }
            (Keys::Interval { low, high }, Pick::InTurn(_)) => {
                format!("{} to {}, in turn", units(*low), units(*high))
            }
            (keys, Pick::InTurn(_) | Pick::Shared(_)) => format!("{} keys in turn", keys.count()),
        },
        Values::Repeated { spread, values } => {
            format!("{} different: {}", number_of(spread.distinct), phrase(values, kind))
        }
        Values::Statistics(statistics) => {
            format!("by statistics, {} different", number_of(statistics.distinct))
        }
        Values::Ordered { other, side: Side::Lesser, values, .. } => {
            format!("{}, not above {other}", phrase(values, kind))
        }
        Values::Ordered { other, values, .. } => format!("{}, not below {other}", phrase(values, kind)),
        Values::Ranked { values, .. } => format!("{}, correlated with other columns", phrase(values, kind)),
        Values::Leading { until, leading, others } => {
            let [leading, others] = [leading, others].map(|values| phrase(values, kind));
            format!("up to row {until}: {leading}; after it: {others}")
        }
        Values::Elements(_) => "arrays by statistics of their elements".to_owned(),
        Values::Letters(letters) => format!("ascending strings of {}", letters.alphabet.name()),
        Values::Nulls { fraction, by, values } => {
            let by = if by.is_some() { ", correlated with other columns" } else { "" };
            format!("{}; NULL in {:.0} %{by}", phrase(values, kind), fraction * 100.0)
        }
    }
}

/// The number of different values, or their share of the rows, in words.
fn number_of(distinct: f64) -> String {
    if distinct < 0.0 { format!("{:.0} %", -distinct * 100.0) } else { format!("{distinct:.0}") }
}

fn units_as_text(kind: &Kind, units: i64) -> String {
    let mut text = Vec::new();
    render::value(kind, Value::Units(units), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    #[test]
    fn limits_are_told_in_the_column_s_own_terms() {
        let price = Kind::Numeric(Some(Precision { precision: 6, scale: 2 }));
        for (kind, values, said) in [
            (price, Values::Between { low: 100, high: 99_999 }, "evenly from 1.00 to 999.99"),
            (Kind::Date, Values::Shuffle { low: 0, high: 31 }, "2000-01-01 to 2000-02-01, shuffled"),
            (
                Kind::Bool,
                Values::Nulls { fraction: 0.05, by: None, values: Box::new(Values::Any) },
                "any; NULL in 5 %",
            ),
        ] {
            assert_eq!(Column::new("c", kind, values).phrase(), said);
        }
    }
}
