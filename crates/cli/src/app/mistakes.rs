//! Errors of the command line that say what to write instead.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words that people give in place of a verb, and the command for what they mean.
const INSTEAD: [(&[&str], &str); 12] = [
    (
        &["init", "load", "generate", "populate", "seed", "data"],
        "pgrig fill SIZE makes test data; pgrig fill --scale N makes pgbench's tables",
    ),
    (
        &["bench", "benchmark", "run", "pgbench", "load-test"],
        "pgrig tps runs pgbench scripts; pgrig testdb bench measures a test suite",
    ),
    (&["io", "disk", "fio", "storage"], "pgrig blockio"),
    (
        &["list", "ls", "status", "ps"],
        "pgrig server status lists the instances; pgrig testdb list lists the databases for tests",
    ),
    (
        &["start", "stop", "restart", "url", "logs", "psql", "fetch", "download", "install", "prune"],
        "pgrig server start, stop, restart, url, logs, psql, fetch or prune",
    ),
    (&["check", "info", "env", "config", "setup"], "pgrig doctor shows what works here"),
    (&["diff", "cmp"], "pgrig compare BASELINE CANDIDATE"),
    (&["new", "serve", "unlog", "template"], "pgrig testdb new, serve or unlog"),
    (&["matrix"], "pgrig tps --matrix durability"),
    (&["ladder"], "pgrig fill --ladder SIZE"),
    (&["uuid", "suite", "expr"], "pgrig micro 'EXPR' 'EXPR', or pgrig micro --suite uuid"),
    (&["version"], "pgrig --version"),
];
/// Units that belong to the number before them.
const UNITS: [&str; 9] = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];

/// The error with what to write instead, where that is known.
pub(crate) fn remedied(arguments: &[OsString], error: Error) -> Error {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let text = match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&error),
        ErrorKind::UnknownArgument => option_of_pgbench(&words, &error).or_else(|| unit(&words, &error)),
        ErrorKind::ValueValidation => number(&error),
        _ => None,
    };
    text.map_or_else(|| error, |text| Error::raw(ErrorKind::InvalidValue, text))
}

/// A word that is no verb, where the verb that is meant is known.
fn verb(error: &Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let known = |(words, _): &&(&[&str], &str)| words.contains(&word.to_ascii_lowercase().as_str());
    let (_, instead) = INSTEAD.iter().find(known)?;
    Some(format!("there is no command {word}: {instead}\n"))
}

/// An option of pgbench's that `tps` does not have.
fn option_of_pgbench(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let verb = words.iter().find(|word| !word.starts_with('-'))?;
    let instead = crate::cmd::tps::args::instead_of(option).filter(|_| verb == "tps")?;
    Some(format!("pgrig tps has no {option}: {instead}\n"))
}

/// A unit apart from its number.
fn unit(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(unit)) = error.get(ContextKind::InvalidArg) else { return None };
    let at = words.iter().position(|word| word == unit)?;
    let number = words.get(at.checked_sub(1)?)?;
    let is_unit = UNITS.contains(&unit.to_ascii_lowercase().as_str()) && number.parse::<f64>().is_ok();
    is_unit.then(|| format!("write the unit without a space before it: {number}{unit}\n"))
}

/// A number that Rust's own words describe badly.
fn number(error: &Error) -> Option<String> {
    let text = error.to_string();
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
