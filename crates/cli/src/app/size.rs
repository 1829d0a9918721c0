//! Sizes as people write them.

use std::str::FromStr;

use measure::human;

/// A number of bytes, read with a unit: B, kB … TB are powers of 1000; KiB … TiB are powers of
/// 1024.
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

/// From this number on, a size without a unit is a number of bytes rather than of a larger unit.
const LIKELY_BYTES: u64 = 10_000;

/// The advice for a name in place of a size.
const DATABASE: &str = "; to name a database, give -d ";

/// Parses a size for a command that has no databases.
pub(crate) fn without_database(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error: String| error.split(DATABASE).next().unwrap_or_default().to_owned())
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let odd = |c: char| c == ',' || c == '_' || c == '\'';
        let has_exponent = text.to_ascii_lowercase().split_once('e').is_some_and(|(before, after)| {
            before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
                && after.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-')
        });
        if text.starts_with(|first: char| first.is_ascii_digit()) && (text.contains(odd) || has_exponent) {
            return Err(format!(
                "\"{text}\" is not a size: write the number in digits, without an exponent or thousands separators, for example 1500MB or 1.5GB"
            ));
        }
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let number: f64 = number.parse().map_err(|_| {
            let database = if text.starts_with(|first: char| first.is_alphabetic()) {
                format!("{DATABASE}{text}")
            } else {
                String::new()
            };
            format!("\"{text}\" is not a size: give one like 500MB, 1.5GB or 20GiB{database}")
        })?;
        let unit = unit.trim().to_ascii_lowercase();
        if unit.is_empty() && number == 0.0 {
            return Err(format!("\"{text}\" is not a size: give one above 0, like 500MB, 1.5GB or 20GiB"));
        }
        if unit.is_empty()
            && let Ok(bytes) = text.parse::<u64>()
            && bytes >= LIKELY_BYTES
        {
            return Err(format!(
                "\"{text}\" has no unit: if these are bytes, write {text}B ({})",
                human::bytes(bytes)
            ));
        }
        if unit.is_empty() {
            return Err(format!("\"{text}\" has no unit: give one like {text}MB, {text}GB or {text}GiB"));
        }
        if unit == "%" {
            return Err(format!("\"{text}\" is a share, not a size: give one like 500MB, 1.5GB or 20GiB"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!(
                "\"{text}\" is not a size: give a unit of B, kB, MB, GB, TB (1000) or KiB, MiB, GiB, TiB (1024), for example 10GB"
            ));
        };
        let bytes = number * *factor as f64;
        if bytes >= u64::MAX as f64 {
            return Err(format!("\"{text}\" is too large: give less than 18000000TB"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        Ok(Self(bytes.round() as u64))
    }
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
            ("1e9", "1500MB"),
            ("100", "100MB"),
            ("9999", "9999MB"),
            ("10000", "if these are bytes, write 10000B (10.0 kB)"),
            ("1000000000", "if these are bytes, write 1000000000B (1.00 GB)"),
            ("1GX", "give a unit of B, kB"),
            ("1.2.3GB", "500MB"),
            ("99999999999TB", "too large"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_command_with_databases_takes_a_word_for_one() {
        let error = "mydb".parse::<Size>().unwrap_err();
        assert!(error.ends_with("or 20GiB; to name a database, give -d mydb"), "{error}");
        let error = without_database("mydb").unwrap_err();
        assert_eq!(error, "\"mydb\" is not a size: give one like 500MB, 1.5GB or 20GiB");
        assert_eq!(without_database("1GB"), Ok(Size(1_000_000_000)));
    }
}
