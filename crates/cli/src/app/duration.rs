//! Durations as people write them.

use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::friendly::SpanParser;

/// A length of time with a unit: `90s`, `10min`, `1h 30m`. More than zero, and at most a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Duration);

/// Durations that errors propose.
const EXAMPLES: &str = "90s, 10min or 2h";

const LONGEST: Duration = Duration::from_hours(366 * 24);

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_zero = |text: &str| text.parse::<f64>().is_ok_and(|number| number == 0.0);
        if is_number(text) && !is_zero(text) {
            return Err(format!("\"{text}\" has no unit: give one like {text}s, {text}min or {text}h"));
        }
        if is_zero(text) {
            return Err(format!("\"{text}\" is zero: give a duration like {EXAMPLES}"));
        }
        let parsed = SpanParser::new().parse_unsigned_duration(text);
        let duration =
            parsed.map_err(|_| format!("\"{text}\" is not a duration: give one like {EXAMPLES}"))?;
        if duration.is_zero() {
            return Err(format!("\"{text}\" is zero: give a duration like {EXAMPLES}"));
        }
        if duration > LONGEST {
            return Err(format!("\"{text}\" is more than a year: the longest is 8784h"));
        }
        Ok(Self(duration))
    }
}

/// Whether it is a number without a unit.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Parses the limit of a wait. If the unit is missing, milliseconds are the likeliest one.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if is_number(text) && text.parse::<f64>().is_ok_and(|number| number > 0.0) {
        return Err(format!("\"{text}\" has no unit: give one like {text}ms, {text}s or {text}min"));
    }
    text.parse().map(|Length(duration)| duration)
}

/// Parses a time as pgbench's options do: `30` is 30 seconds, as `30s` is.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    without_unit(text, "s")
}

/// Parses a time as pgbench's -L does: `20` is 20 milliseconds, as `20ms` is.
pub(crate) fn milliseconds(text: &str) -> Result<Duration, String> {
    without_unit(text, "ms").map_err(|error| error.replace(EXAMPLES, "20, 20ms or 1s"))
}

/// As [`seconds`], but 0 is allowed too.
pub(crate) fn seconds_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s") { Ok(Duration::ZERO) } else { seconds(text) }
}

/// As [`seconds`], but only whole seconds are allowed.
pub(crate) fn whole_seconds(text: &str) -> Result<u64, String> {
    let duration = seconds(text).map_err(|error| error.replace(EXAMPLES, "5, 30s or 10min"))?;
    match duration.subsec_nanos() {
        0 => Ok(duration.as_secs()),
        _ => Err(format!("\"{text}\" is not a whole number of seconds: give whole seconds, for example 30s")),
    }
}

fn without_unit(text: &str, unit: &str) -> Result<Duration, String> {
    let text = text.trim();
    let text = if is_number(text) { &format!("{text}{unit}") } else { text };
    text.parse().map(|Length(duration)| duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_may_be_left_out_where_pgbench_has_none() {
        assert_eq!(seconds("30"), Ok(Duration::from_secs(30)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("5min"), Ok(Duration::from_mins(5)));
        assert_eq!(milliseconds("20"), Ok(Duration::from_millis(20)));
        assert_eq!(milliseconds("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        assert_eq!(whole_seconds("5s"), Ok(5));
        assert!(whole_seconds("0.5").unwrap_err().contains("a whole number of seconds"));
        assert!(whole_seconds("0").unwrap_err().ends_with("is zero: give a duration like 5, 30s or 10min"));
        assert!(milliseconds("abc").unwrap_err().ends_with("give one like 20, 20ms or 1s"));
        for text in ["0", "", ".", "-1", "1..2"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_without_a_unit_may_be_in_milliseconds() {
        assert_eq!(limit("500ms"), Ok(Duration::from_millis(500)));
        let error = limit("500").unwrap_err();
        let proposed = error.split("like ").nth(1).unwrap().split(',').next().unwrap();
        assert_eq!(limit(proposed), limit("500ms"), "{error}");
        assert!(limit("0").unwrap_err().contains("is zero"));
    }

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
            ("0s", "is zero"),
            ("400 days", "90s"),
            ("9000h", "more than a year"),
            ("99999999999999999999h", "90s"),
        ] {
            let error = text.parse::<Length>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}
