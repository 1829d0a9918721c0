//! Sizes as people write and read them.

use std::str::FromStr;

/// A number of bytes, read with a unit: B, kB … TB are powers of 1000, KiB … TiB of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let number: f64 = number
            .parse()
            .map_err(|_| format!("\"{text}\" is no size: give one like 500MB, 1.5GB or 20GiB"))?;
        let unit = unit.trim().to_ascii_lowercase();
        if unit.is_empty() {
            return Err(format!("\"{text}\" has no unit: give one like {text}MB, {text}GB or {text}GiB"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!(
                "\"{text}\": units are B, kB, MB, GB, TB (1000) and KiB, MiB, GiB, TiB (1024)"
            ));
        };
        let bytes = number * *factor as f64;
        if bytes >= u64::MAX as f64 {
            return Err(format!("\"{text}\" is more than any server holds"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        Ok(Self(bytes.round() as u64))
    }
}

/// Bytes for people, in powers of 1000 with three significant digits: `1.07 GB`.
pub(crate) fn human(bytes: u64) -> String {
    // 999.5 MB and more round to 1.00 GB.
    let (unit, factor) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..999_500 => ("kB", 1e3),
        999_500..999_500_000 => ("MB", 1e6),
        999_500_000..999_500_000_000 => ("GB", 1e9),
        _ => ("TB", 1e12),
    };
    format!("{} {unit}", three_digits(bytes as f64 / factor))
}

/// The same with GiB beside it, where there is one: `1.07 GB (1.00 GiB)`.
pub(crate) fn described(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{} ({} GiB)", human(bytes), three_digits(gib)) } else { human(bytes) }
}

/// A count for people: `746 k`, `7.46 M`.
pub(crate) fn count(number: f64) -> String {
    match number {
        ..1e4 => format!("{number:.0}"),
        ..1e6 => format!("{} k", three_digits(number / 1e3)),
        ..1e9 => format!("{} M", three_digits(number / 1e6)),
        _ => format!("{} G", three_digits(number / 1e9)),
    }
}

/// A whole number with its thousands apart: `7,460,000`.
pub(crate) fn grouped(number: u64) -> String {
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
    // What would be rounded up to a further digit has one decimal less.
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_either_kind_of_unit() {
        for (text, bytes) in [
            ("1GB", 1_000_000_000),
            ("1GiB", 1_073_741_824),
            ("1.5 gb", 1_500_000_000),
            ("500MB", 500_000_000),
            ("10kB", 10_000),
            ("10KiB", 10_240),
            ("73 GB", 73_000_000_000),
            ("2TiB", 2 << 40),
            ("17B", 17),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_how_to_write_one() {
        for (text, remedy) in [
            ("", "500MB"),
            ("GB", "1.5GB"),
            ("-1GB", "500MB"),
            ("1e9", "units are"),
            ("100", "100MB"),
            ("1GX", "units are"),
            ("1.2.3GB", "500MB"),
            ("99999999999TB", "more than any"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_and_counts_are_short() {
        assert_eq!(human(999), "999 B");
        assert_eq!(human(999_499_999), "999 MB");
        assert_eq!(human(999_999_999), "1.00 GB");
        assert_eq!(human(9_996_000_000), "10.0 GB");
        assert_eq!(human(1_073_741_824), "1.07 GB");
        assert_eq!(human(73_412_000_000), "73.4 GB");
        assert_eq!(human(734_120_000), "734 MB");
        assert_eq!(count(5_340_000.0), "5.34 M");
        assert_eq!(count(12.0), "12");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }
}
