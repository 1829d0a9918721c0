//! Converts arguments to units of the column's type.

use jiff::civil::{Date, DateTime, Time, date};
use jiff::{Span, SpanRelativeTo, Timestamp};

use super::SpecError;
use crate::Kind;
use crate::units::{DAY, decimals};

/// The time 2000-01-01 00:00 UTC, microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

/// Days of 400 years.
const ERA: i64 = 146_097;

/// A value of the type, in units.
pub(super) fn value(kind: &Kind, text: &str) -> Result<i64, SpecError> {
    let expected = || wrong(text, expected(kind));
    match (kind.infinities(), text) {
        (Some([low, _]), "-infinity") => return Ok(low),
        (Some([_, high]), "infinity") => return Ok(high),
        _ => {}
    }
    match kind {
        Kind::Bool => match text {
            "false" | "f" => Ok(0),
            "true" | "t" => Ok(1),
            _ => Err(expected()),
        },
        Kind::Enum { labels, .. } => {
            let position = labels.iter().position(|label| label == text).ok_or_else(expected)?;
            i64::try_from(position).map_err(|_| expected())
        }
        Kind::Date => Ok(timestamp(text).ok_or_else(expected)?.div_euclid(DAY)),
        Kind::Timestamp | Kind::TimestampTz => timestamp(text).ok_or_else(expected),
        Kind::Time | Kind::TimeTz => time(text).ok_or_else(expected),
        Kind::Interval => span(text).ok_or_else(expected),
        Kind::PgLsn => lsn(text).ok_or_else(expected),
        kind => decimal(text, places(kind)).ok_or_else(expected),
    }
}

/// Reads the difference of two values, in units.
pub(super) fn step(kind: &Kind, text: &str) -> Result<i64, SpecError> {
    let is_time = matches!(kind, Kind::Timestamp | Kind::TimestampTz | Kind::Time | Kind::TimeTz);
    match kind {
        Kind::Date => {
            let span = span(text).filter(|span| span % DAY == 0);
            span.map(|span| span / DAY)
                .ok_or_else(|| wrong(text, "a number of days, such as 1d or 2w".into()))
        }
        _ if is_time => {
            span(text).ok_or_else(|| wrong(text, "a time span, such as 10ms, 1s, 5min, 2h or 1d".into()))
        }
        Kind::Bool | Kind::Enum { .. } | Kind::PgLsn => {
            text.parse().map_err(|_| wrong(text, "a whole number".into()))
        }
        kind => value(kind, text),
    }
}

/// A count: 0 or more, in decimal.
pub(super) fn count<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, SpecError> {
    text.parse().map_err(|_| wrong(text, expected.to_owned()))
}

/// A number that need not be whole.
pub(super) fn real(text: &str, expected: &str) -> Result<f64, SpecError> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| wrong(text, expected.to_owned()))
}

fn wrong(argument: &str, expected: String) -> SpecError {
    SpecError::Argument { argument: argument.to_owned(), expected }
}

fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Date => "a date, such as 2024-12-31".into(),
        Kind::Timestamp | Kind::TimestampTz => {
            "a date or a timestamp, such as 2024-12-31 or 2024-12-31 23:59:59".into()
        }
        Kind::Time | Kind::TimeTz => "a time of day, such as 23:59:59".into(),
        Kind::Interval => "a time span, such as 10ms, 1s, 5min, 2h or 1d".into(),
        Kind::Bool => "true or false".into(),
        Kind::Enum { name, labels, .. } => format!("a label of {name}: {}", labels.join(", ")),
        Kind::PgLsn => "a log position, such as 16/B374D848".into(),
        kind => match places(kind) {
            0 => format!("a whole number that {} can hold", kind.sql()),
            places => format!("a number with at most {places} decimals that {} can hold", kind.sql()),
        },
    }
}

/// Decimals of a unit.
fn places(kind: &Kind) -> i16 {
    match kind {
        Kind::Numeric(precision) => decimals(*precision),
        Kind::Money => 2,
        _ => 0,
    }
}

/// A decimal number × 10^`places`, if that is whole.
fn decimal(text: &str, places: i16) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, fraction].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i128 = all.parse().ok()?;
    let missing = i32::from(places) - i32::try_from(fraction.len()).ok()?;
    let power = 10_i128.checked_pow(missing.unsigned_abs())?;
    let units = match missing {
        0.. => number.checked_mul(power)?,
        _ if number % power == 0 => number / power,
        _ => return None,
    };
    i64::try_from(if negative { -units } else { units }).ok()
}

/// Microseconds from 2000-01-01 00:00; a text without a time zone is in UTC.
fn timestamp(text: &str) -> Option<i64> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment.as_microsecond() - EPOCH);
    }
    // No time zone, or a moment that jiff's Timestamp has no room for: it ends a day before the year 10000.
    let (text, eras) = within_this_era(text.strip_suffix("+00").unwrap_or(text))?;
    let local = text.parse::<DateTime>().ok().or_else(|| Some(text.parse::<Date>().ok()?.at(0, 0, 0, 0)))?;
    let since = local.duration_since(date(2000, 1, 1).at(0, 0, 0, 0)).as_micros();
    i64::try_from(since + i128::from(eras) * i128::from(ERA * DAY)).ok()
}

/// A date with a year of five digits or more (the server has years up to 294276), moved by whole times of 400 years to one of four
/// digits, and how many times.
fn within_this_era(text: &str) -> Option<(String, i64)> {
    let year = text.split_once('-').map_or("", |(year, _)| year);
    if year.len() < 5 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((text.to_owned(), 0));
    }
    let number: i64 = year.parse().ok().filter(|number| *number < 300_000)?;
    let moved = 2_000 + number % 400;
    Some((format!("{moved}{}", &text[year.len()..]), (number - moved) / 400))
}

/// Microseconds from midnight.
fn time(text: &str) -> Option<i64> {
    let since = text.parse::<Time>().ok()?.duration_since(Time::midnight());
    i64::try_from(since.as_micros()).ok()
}

/// Microseconds; a day has 24 hours.
fn span(text: &str) -> Option<i64> {
    let Ok(span) = text.parse::<Span>() else { return interval(text) };
    let nanoseconds = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?.as_nanos();
    (nanoseconds % 1_000 == 0).then(|| i64::try_from(nanoseconds / 1_000).ok())?
}

/// Microseconds of an interval as the server prints it (`IntervalStyle = postgres`): `-1 mons +2 days 03:04:05.6`. A month has 30 days and a
/// day 24 hours, as in the server's comparisons (`interval_cmp_value` in `timestamp.c`).
fn interval(text: &str) -> Option<i64> {
    let (mut days, mut clock) = (0_i64, 0);
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            clock = signed_time(word)?;
            continue;
        }
        let number: i64 = word.parse().ok()?;
        let of_unit = match words.next()? {
            "year" | "years" => 360,
            "mon" | "mons" => 30,
            "day" | "days" => 1,
            _ => return None,
        };
        days = days.checked_add(number.checked_mul(of_unit)?)?;
    }
    days.checked_mul(DAY)?.checked_add(clock)
}

/// Microseconds of hours (any number of them), minutes and seconds.
fn signed_time(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let [hours, minutes, seconds] = <[&str; 3]>::try_from(digits.split(':').collect::<Vec<_>>()).ok()?;
    let whole = |text: &str| text.parse::<u32>().ok().map(i64::from);
    let time = (whole(hours)? * 60 + whole(minutes)?) * 60_000_000 + decimal(seconds, 6)?;
    Some(if text.starts_with('-') { -time } else { time })
}

fn lsn(text: &str) -> Option<i64> {
    let (high, low) = text.split_once('/')?;
    let [high, low] = [high, low].map(|part| u32::from_str_radix(part, 16).ok());
    i64::try_from(u64::from(high?) << 32 | u64::from(low?)).ok()
}
