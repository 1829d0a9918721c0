//! Numbers with their unit: as text on an axis, in a table and in a sentence.

use measure::FigureUnit;
use measure::human::{self, grouped};

/// The unit of an axis or a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// A latency or another short time, in seconds.
    Seconds,
    /// Time since a start, in seconds.
    Elapsed,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A number per second.
    PerSecond,
    /// Rows per second.
    RowsPerSecond,
    /// A number of anything.
    Count,
    /// A ratio to another value: 1.03.
    Times,
    /// A share: 0.05 is 5 %.
    Share,
    /// Nanoseconds per row, in seconds.
    PerRow,
    /// A percentile, as a share.
    Percentile,
    /// Sessions on average.
    Sessions,
}

impl Quantity {
    /// The name in run documents, by which the script of a page formats values too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Elapsed => "elapsed",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::PerSecond => "per-second",
            Self::RowsPerSecond => "rows/s",
            Self::Count => "count",
            Self::Times => "times",
            Self::Share => "share",
            Self::PerRow => "seconds-per-row",
            Self::Percentile => "percentile",
            Self::Sessions => "sessions",
        }
    }

    /// The quantity of figures.
    pub(crate) fn of_figure(unit: FigureUnit) -> Self {
        match unit {
            FigureUnit::Seconds | FigureUnit::SecondsPerTransaction => Self::Seconds,
            FigureUnit::Bytes | FigureUnit::BytesPerTransaction | FigureUnit::BytesPerRow => Self::Bytes,
            FigureUnit::PerSecond => Self::PerSecond,
            FigureUnit::PerTransaction => Self::Sessions,
            FigureUnit::SecondsPerRow => Self::PerRow,
            FigureUnit::Times => Self::Times,
        }
    }

    /// Whether ticks are whole numbers of seconds, minutes and hours.
    pub(crate) fn is_elapsed(self) -> bool {
        self == Self::Elapsed
    }

    /// The value for people, with its unit.
    pub(crate) fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        if value < 0.0 {
            return format!("\u{2212}{}", self.text(-value));
        }
        // Of no values, the sum is -0.
        let value = value.abs();
        match self {
            Self::Seconds => human::time(value),
            Self::Elapsed => elapsed(value),
            Self::Bytes => human::bytes(whole(value)),
            Self::BytesPerSecond => format!("{}/s", human::bytes(whole(value))),
            Self::PerSecond => digits(value),
            Self::RowsPerSecond | Self::Count => human::count(value),
            Self::Times => format!("{value:.3}"),
            Self::Share => format!("{} %", short(value * 100.0)),
            Self::PerRow => format!("{} ns", short(value * 1e9)),
            Self::Percentile => percentile(value),
            Self::Sessions => short(value),
        }
    }

    /// The value on an axis, as short as possible.
    pub(crate) fn tick(self, value: f64) -> String {
        if value < 0.0 {
            return format!("\u{2212}{}", self.tick(-value));
        }
        if value == 0.0 {
            return "0".to_owned();
        }
        match self {
            Self::Elapsed => elapsed(value),
            Self::Percentile => percentile(value),
            Self::Seconds => trimmed(&human::time(value)),
            Self::PerSecond | Self::Count | Self::RowsPerSecond if value >= 1e4 => {
                trimmed(&human::count(value))
            }
            Self::PerSecond | Self::Count | Self::RowsPerSecond => digits(value),
            Self::Sessions | Self::Times => short(value),
            other => trimmed(&other.text(value)),
        }
    }
}

/// A percentile as its share: `99.9 %`. It has two digits of the difference from 100 %, and is never rounded up to 100 %.
fn percentile(share: f64) -> String {
    if share >= 1.0 {
        return "max".to_owned();
    }
    let nines = -(1.0 - share).max(1e-9).log10();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
    let decimals = (nines.ceil() - 1.0).max(0.0) as usize;
    let text = format!("{:.decimals$}", share * 100.0);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() };
    format!("{text} %")
}

/// The text without trailing zeros of the number before its unit: `5.00 ms` is `5 ms`.
fn trimmed(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Seconds, minutes or hours, in the two largest units.
fn elapsed(seconds: f64) -> String {
    let whole = whole(seconds);
    match whole {
        0..60 => format!("{} s", short(seconds)),
        60..3600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ if whole % 3600 < 60 => format!("{} h", whole / 3600),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The value with separated thousands; small numbers have decimals.
fn digits(value: f64) -> String {
    if value >= 1000.0 { grouped(whole(value)) } else { short(value) }
}

/// Three significant digits without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A ratio as a change: `+5.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "\u{2212}")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, below 2^64")]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        for (quantity, value, expected) in [
            (Quantity::Seconds, 0.005, "5 ms"),
            (Quantity::Seconds, 0.000_5, "0.5 ms"),
            (Quantity::Elapsed, 30.0, "30 s"),
            (Quantity::Elapsed, 300.0, "5 min"),
            (Quantity::Elapsed, 5400.0, "1 h 30 min"),
            (Quantity::PerSecond, 2500.0, "2,500"),
            (Quantity::PerSecond, 25_000.0, "25 k"),
            (Quantity::Bytes, 2e9, "2 GB"),
            (Quantity::Percentile, 0.9999, "99.99 %"),
            (Quantity::Percentile, 0.999_990_91, "99.99909 %"),
            (Quantity::Percentile, 0.091_482_42, "9 %"),
            (Quantity::Percentile, 0.5, "50 %"),
            (Quantity::Percentile, 0.999_96, "99.996 %"),
            (Quantity::Share, -0.05, "−5 %"),
            (Quantity::Times, 1.05, "1.05"),
            (Quantity::PerRow, 50e-9, "50 ns"),
        ] {
            assert_eq!(quantity.tick(value), expected);
        }
    }
}
