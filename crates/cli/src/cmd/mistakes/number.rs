//! Remedies for numbers that are not ones, and for units apart from their numbers.

use clap::error::ErrorKind;
use clap::{CommandFactory, Error};

use crate::cmd::line::Cli;
use crate::cmd::tps::database;

/// Units of sizes, which belong to the number before them.
const SIZES: [&str; 9] = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];

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
    joined(words, at)
}

/// The remedy for the same, if the number alone is not a value of its option.
pub(super) fn before_unit(words: &[String], number: &str) -> Option<String> {
    let at = words.iter().position(|word| word == number)?;
    joined(words, at + 1)
}

/// The remedy if the word at this place is a unit after a number.
fn joined(words: &[String], at: usize) -> Option<String> {
    let number = words.get(at.checked_sub(1)?).filter(|number| number.parse::<f64>().is_ok())?;
    let unit = written(words.get(at)?)?;
    let option = at.checked_sub(2).map(|before| words[before].as_str()).filter(|word| word.starts_with('-'));
    let option = option.map_or_else(String::new, |option| format!("{option} "));
    Some(format!("write {option}{number}{unit} without a space\n"))
}

/// A word that is a unit of sizes or times, as it is written after its number.
fn written(word: &str) -> Option<&str> {
    let lower = word.to_ascii_lowercase();
    SIZES.contains(&lower.as_str()).then_some(word).or_else(|| database::unit(&lower))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_after_a_space_belongs_to_its_number() {
        for (line, word, said) in [
            ("fill 500 MB", "MB", "write 500MB without a space\n"),
            ("fill --for 10 min", "min", "write --for 10min without a space\n"),
            ("backup rehearse --rto 4 hours", "hours", "write --rto 4h without a space\n"),
            ("ddl m.sql --up-to 1 GB", "GB", "write --up-to 1GB without a space\n"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(unit(&words, word).as_deref(), Some(said), "{line}");
        }
        let words = ["micro", "--budget", "10", "s"].map(str::to_owned);
        assert_eq!(before_unit(&words, "10").as_deref(), Some("write --budget 10s without a space\n"));
        let words = ["fill", "mydb", "min"].map(str::to_owned);
        assert_eq!(unit(&words, "min"), None);
    }
}
