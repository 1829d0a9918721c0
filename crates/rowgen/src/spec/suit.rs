//! Converts a specification's name and arguments to values of the column's type.

use super::amount::{count, real, step, value};
use super::name::Name;
use super::{SpecError, Unsuited};
use crate::units::decimals;
use crate::{Alphabet, Distribution, Kind, Letters, Payload, Reference, Turn, Values};

/// The values that a specification means for a type. How many arguments it has is checked.
pub(super) fn values(
    name: Name,
    arguments: &[String],
    kind: &Kind,
    reference: Option<&Reference>,
) -> Result<Values, SpecError> {
    let suited = |fits: bool, suited| {
        let error = || Unsuited::Kind { values: name.word(), kind: kind.sql(), suited };
        fits.then_some(()).ok_or_else(error)
    };
    let counted = || suited(kind.units().is_some(), "numbers, dates and times, text, boolean and enums");
    let first = || arguments[0].as_str();
    match name {
        Name::Any => Ok(Values::Any),
        Name::Unique => Ok(Values::Unique(Turn::EACH)),
        Name::Serial => {
            suited(is_number(kind) || kind.is_text(), "numbers and text; times take timeseries")?;
            serial(arguments, kind)
        }
        Name::Timeseries => {
            suited(is_clock(kind), "dates and times")?;
            serial(arguments, kind)
        }
        Name::Shuffle => {
            counted()?;
            Ok(Values::Shuffle { low: value(kind, first())?, high: value(kind, &arguments[1])? })
        }
        Name::Uniform => {
            counted()?;
            uniform(first(), &arguments[1], kind)
        }
        Name::Normal => {
            counted()?;
            let (mean, sd) = (position(first(), kind)?, width(&arguments[1], kind)?);
            Ok(Values::Drawn(Distribution::Normal { mean, sd }))
        }
        Name::Exponential => {
            suited(is_number(kind) || *kind == Kind::Interval, "numbers and interval")?;
            Ok(Values::Drawn(Distribution::Exponential { mean: width(first(), kind)? }))
        }
        Name::Zipf => {
            let whole = is_number(kind) && !matches!(kind, Kind::Numeric(_) | Kind::Money);
            suited(whole || kind.is_text(), "integers, floating point and text")?;
            zipf(arguments)
        }
        Name::Cycle => Ok(Values::Cycle(arguments.to_vec())),
        Name::Constant => Ok(Values::Text(arguments[0].clone())),
        Name::Null => Ok(Values::Null),
        Name::Text => payload(Payload::Text, arguments),
        Name::Random => payload(Payload::Random, arguments),
        Name::Blank => payload(Payload::Blank, arguments),
        Name::Topic(topic) => {
            let turn = match arguments.first().map(String::as_str) {
                None => None,
                Some("unique") => Some(Turn::EACH),
                Some(other) => {
                    let (argument, expected) = (other.to_owned(), "the word unique".to_owned());
                    return Err(SpecError::Argument { argument, expected });
                }
            };
            Ok(Values::Topic { topic, turn })
        }
        Name::Reference => {
            let reference = reference.ok_or_else(|| SpecError::Unresolved(first().to_owned()))?;
            Ok(Values::Reference(reference.clone()))
        }
        Name::Default => Ok(Values::Server),
        Name::Letters => letters(arguments),
        Name::List
        | Name::Nulls
        | Name::Statistics
        | Name::Repeated
        | Name::Keys
        | Name::Elements
        | Name::Ranked
        | Name::Lesser
        | Name::Greater
        | Name::Above => {
            unreachable!("these have forms of their own")
        }
    }
}

fn serial(arguments: &[String], kind: &Kind) -> Result<Values, SpecError> {
    let start = arguments.first().map_or(Ok(1), |start| value(kind, start))?;
    let step = arguments.get(1).map_or(Ok(1), |by| step(kind, by))?;
    Ok(Values::Serial { start, step })
}

fn uniform(low: &str, high: &str, kind: &Kind) -> Result<Values, SpecError> {
    if is_real(kind) {
        let (low, high) = (real(low, NUMBER)?, real(high, NUMBER)?);
        return Ok(Values::Drawn(Distribution::Uniform { low, high }));
    }
    Ok(Values::Between { low: value(kind, low)?, high: value(kind, high)? })
}

fn zipf(arguments: &[String]) -> Result<Values, SpecError> {
    let n = count(&arguments[0], "a whole number of at least 1")?;
    let s = arguments.get(1).map_or(Ok(1.0), |s| real(s, "a number above 0"))?;
    Ok(Values::Drawn(Distribution::Zipf { n, s }))
}

fn payload(payload: Payload, arguments: &[String]) -> Result<Values, SpecError> {
    let length = |text: &String| count(text, CHARACTERS);
    let low = length(&arguments[0])?;
    let high = arguments.get(1).map_or(Ok(low), length)?;
    Ok(Values::Payload { payload, low, high })
}

fn letters(arguments: &[String]) -> Result<Values, SpecError> {
    let alphabet = Alphabet::find(&arguments[0]).ok_or_else(|| SpecError::Argument {
        argument: arguments[0].clone(),
        expected: "digits, hex, upper, lower, mixed or words".to_owned(),
    })?;
    let lengths = arguments[1..].iter().map(|length| count(length, CHARACTERS));
    Ok(Values::Letters(Letters { alphabet, lengths: lengths.collect::<Result<_, _>>()? }))
}

const NUMBER: &str = "a number";
const CHARACTERS: &str = "a number of characters from 0 to 4294967295";

/// Reads a mean, in units; it need not be whole.
fn position(text: &str, kind: &Kind) -> Result<f64, SpecError> {
    if is_number(kind) || kind.is_text() { scaled(text, kind) } else { Ok(value(kind, text)? as f64) }
}

/// Reads a standard deviation, in units; it need not be whole.
fn width(text: &str, kind: &Kind) -> Result<f64, SpecError> {
    if is_number(kind) || kind.is_text() { scaled(text, kind) } else { Ok(step(kind, text)? as f64) }
}

fn scaled(text: &str, kind: &Kind) -> Result<f64, SpecError> {
    let places = match kind {
        Kind::Numeric(precision) => decimals(*precision),
        Kind::Money => 2,
        _ => 0,
    };
    Ok(real(text, NUMBER)? * libm::pow(10.0, f64::from(places)))
}

fn is_real(kind: &Kind) -> bool {
    matches!(kind, Kind::Float4 | Kind::Float8)
}

fn is_number(kind: &Kind) -> bool {
    let exact =
        matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid | Kind::Numeric(_) | Kind::Money);
    exact || is_real(kind)
}

fn is_clock(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Date | Kind::Time | Kind::TimeTz | Kind::Timestamp | Kind::TimestampTz | Kind::Interval
    )
}
