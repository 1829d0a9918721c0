//! Numbers as people read them: three significant digits, decimal units.

use crate::figure::FigureUnit;

/// Bytes for people, in powers of 1000 with three significant digits: `1.07 GB`.
pub fn bytes(number: u64) -> String {
    // 999.5 MB and more round to 1.00 GB.
    let (unit, factor) = match number {
        0..1_000 => return format!("{number} B"),
        1_000..999_500 => ("kB", 1e3),
        999_500..999_500_000 => ("MB", 1e6),
        999_500_000..999_500_000_000 => ("GB", 1e9),
        _ => ("TB", 1e12),
    };
    format!("{} {unit}", three_digits(number as f64 / factor))
}

/// The same, from 1 GiB on with GiB beside it: `1.07 GB (1.00 GiB)`.
pub fn bytes_both(number: u64) -> String {
    let gib = number as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{} ({} GiB)", bytes(number), three_digits(gib)) } else { bytes(number) }
}

/// A latency in seconds for people: `0.050 ms`, `1.90 ms`, `2.50 s`.
pub fn latency(seconds: f64) -> String {
    match seconds * 1e3 {
        milliseconds @ ..0.9995 => format!("{milliseconds:.3} ms"),
        milliseconds @ ..999.5 => format!("{} ms", three_digits(milliseconds)),
        _ => format!("{} s", three_digits(seconds)),
    }
}

/// A time in seconds for people, however short: `123 ns`, `9.99 µs`, then as a latency.
pub fn time(seconds: f64) -> String {
    match seconds * 1e9 {
        nanoseconds @ ..999.5 => format!("{} ns", three_digits(nanoseconds)),
        nanoseconds @ ..9_995.0 => format!("{} µs", three_digits(nanoseconds / 1e3)),
        _ => latency(seconds),
    }
}

/// A count for people: `746 k`, `7.46 M`.
pub fn count(number: f64) -> String {
    match number {
        ..1e4 => format!("{number:.0}"),
        ..1e6 => format!("{} k", three_digits(number / 1e3)),
        ..1e9 => format!("{} M", three_digits(number / 1e6)),
        _ => format!("{} G", three_digits(number / 1e9)),
    }
}

/// A number with its noun: `1 table`, `2,000 tables`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The value of a figure, in a unit that suits it.
pub fn figure(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Seconds => time(value),
        FigureUnit::SecondsPerTransaction => format!("{} µs", digits(value * 1e6)),
        FigureUnit::SecondsPerRow => format!("{} ns", digits(value * 1e9)),
        FigureUnit::Bytes | FigureUnit::BytesPerTransaction | FigureUnit::BytesPerRow => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "observed bytes")]
            let whole = value.max(0.0).round() as u64;
            bytes(whole)
        }
        FigureUnit::PerSecond => format!("{}/s", digits(value)),
        FigureUnit::PerTransaction => format!("{value:.3}"),
        FigureUnit::Times => format!("{value:.3} × the first"),
    }
}

/// The number with at least four digits, so that small changes show.
fn digits(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1000")]
    match value.abs() {
        1000.0.. => grouped(value.round() as u64),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number with separated thousands: `7,460,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn three_digits(number: f64) -> String {
    // A number that rounding lengthens by a digit has one decimal less.
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_short() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(999_499_999), "999 MB");
        assert_eq!(bytes(999_999_999), "1.00 GB");
        assert_eq!(bytes(9_996_000_000), "10.0 GB");
        assert_eq!(bytes(1_073_741_824), "1.07 GB");
        assert_eq!(bytes(73_412_000_000), "73.4 GB");
        assert_eq!(bytes(734_120_000), "734 MB");
        assert_eq!(latency(0.000_05), "0.050 ms");
        assert_eq!(latency(0.000_999_7), "1.00 ms");
        assert_eq!(latency(0.0123), "12.3 ms");
        assert_eq!(latency(0.9996), "1.00 s");
        assert_eq!(time(0.000_000_123_4), "123 ns");
        assert_eq!(time(0.000_000_999_6), "1.00 µs");
        assert_eq!(time(0.000_012), latency(0.000_012));
        assert_eq!(count(5_340_000.0), "5.34 M");
        assert_eq!(count(12.0), "12");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }
}
