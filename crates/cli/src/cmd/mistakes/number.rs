//! Remedies for numbers that are not ones, and for units apart from their numbers.

use clap::error::ErrorKind;
use clap::{CommandFactory, Error};

use crate::cmd::line::Cli;

/// Units that belong to the number before them.
const UNITS: [&str; 9] = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];

/// The end of a range that has no other.
const MOST: &str = "9223372036854775807";

/// The remedy for a negative number, which looks like an option.
pub(super) fn negative(words: &[String], argument: &str) -> Option<String> {
    let digits = argument.strip_prefix('-')?;
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let at = words.iter().position(|word| word.starts_with(argument)).filter(|_| is_number)?;
    let of_option = at.checked_sub(1).and_then(|before| out_of_range(words, before));
    Some(of_option.unwrap_or_else(|| format!("{} is negative: give a number above 0\n", words[at])))
}

/// The error of the option at this place if the next word is its value.
fn out_of_range(words: &[String], option: usize) -> Option<String> {
    let value = words[option + 1].as_str();
    let text = error_of_value(words, option, value)?;
    // Parsers of numbers from 0 on do not read a sign.
    if !text.contains("': give a whole number\n") {
        return Some(text);
    }
    Some(match error_of_value(words, option, "0") {
        Some(of_zero) => of_zero
            .replace("invalid value '0'", &format!("invalid value '{value}'"))
            .replace(": 0 is out", &format!(": {value} is out")),
        None => text.replace("': give a whole number\n", "': give a whole number, 0 or more\n"),
    })
}

/// The error if the option at this place has this value instead of the next word, unless the value is valid.
fn error_of_value(words: &[String], option: usize, value: &str) -> Option<String> {
    let name = &words[option];
    let joined = match name.strip_prefix('-')? {
        _ if name.contains('=') => return None,
        long if long.starts_with('-') => format!("{name}={value}"),
        _ => format!("{name}{value}"),
    };
    let mut again = words.to_vec();
    again.splice(option..=option + 1, [joined]);
    let arguments = std::iter::once("pgrig".to_owned()).chain(again);
    let error = Cli::command().try_get_matches_from(arguments).err()?;
    let is_of_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let text = is_of_value.then(|| number(&error).unwrap_or_else(|| error.to_string()))?;
    Some(text.trim_start_matches("error: ").to_owned())
}

/// The remedy for a unit that is separated from its number.
pub(super) fn unit(words: &[String], unit: &str) -> Option<String> {
    let at = words.iter().position(|word| word == unit)?;
    let number = words.get(at.checked_sub(1)?)?;
    let is_unit = UNITS.contains(&unit.to_ascii_lowercase().as_str()) && number.parse::<f64>().is_ok();
    is_unit.then(|| format!("write {number}{unit} without a space\n"))
}

/// A better message for an invalid number than Rust's.
pub(super) fn number(error: &Error) -> Option<String> {
    let text = error.to_string();
    if let Some((before, range)) = text.split_once(" is not in ") {
        let range = range.lines().next().unwrap_or_default();
        let rest = &text[before.len() + " is not in ".len() + range.len()..];
        let (low, high) = range.split_once("..=").or_else(|| range.split_once(".."))?;
        let before = before.trim_start_matches("error: ");
        let possible = if high == MOST { format!("{low} or more") } else { format!("{low} to {high}") };
        return Some(format!("{before} is out of range: give {possible}{rest}"));
    }
    let instead = [
        ("invalid digit found in string", "give a whole number"),
        ("cannot parse integer from empty string", "give a whole number"),
        ("number would be zero for non-zero type", "give 1 or more"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid float literal", "give a number"),
    ];
    let (words, better) = instead.into_iter().find(|(words, _)| text.contains(words))?;
    Some(text.replace(words, better).trim_start_matches("error: ").to_owned())
}
