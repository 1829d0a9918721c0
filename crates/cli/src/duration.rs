//! Durations as people write them.

use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::friendly::SpanParser;

/// A length of time with a unit: `90s`, `10min`, `1h 30m`. Not nothing, and no more than a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Duration);

const LONGEST: Duration = Duration::from_hours(366 * 24);

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.') {
            return Err(format!("\"{text}\" has no unit: give one like {text}s, {text}min or {text}h"));
        }
        let parsed = SpanParser::new().parse_unsigned_duration(text);
        let duration =
            parsed.map_err(|_| format!("\"{text}\" is no duration: give one like 90s, 10min or 2h"))?;
        if duration.is_zero() {
            return Err(format!("\"{text}\" is no time at all: give one like 90s, 10min or 2h"));
        }
        if duration > LONGEST {
            return Err(format!("\"{text}\" is more than a year"));
        }
        Ok(Self(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("10min", 600.0),
            ("2h", 7200.0),
            ("1h 30m", 5400.0),
            ("1h30m", 5400.0),
            ("0.5s", 0.5),
            ("250ms", 0.25),
            ("2 hours, 3 minutes", 7380.0),
            (" 10 min ", 600.0),
        ] {
            assert_eq!(text.parse(), Ok(Length(Duration::from_secs_f64(seconds))), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_how_to_write_one() {
        for (text, remedy) in [
            ("", "10min"),
            ("90", "90s"),
            ("1.5", "1.5min"),
            ("-5s", "90s"),
            ("soon", "90s"),
            ("5 parsecs", "90s"),
            ("0s", "no time"),
            ("400 days", "90s"),
            ("9000h", "more than a year"),
            ("99999999999999999999h", "90s"),
        ] {
            let error = text.parse::<Length>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}
