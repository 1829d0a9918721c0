//! Adds remedies to errors of the command line.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use crate::cmd::line::Cli;
use crate::cmd::tps::args::instead_of;

/// Words that users give instead of a verb, with the command that they mean.
const INSTEAD: [(&[&str], &str); 18] = [
    (
        &["init", "load", "generate", "populate", "seed", "data"],
        "pgrig fill SIZE makes test data; pgrig fill --scale N makes pgbench's tables",
    ),
    (
        &["bench", "benchmark", "run", "pgbench", "load-test"],
        "pgrig tps runs pgbench scripts; pgrig testdb bench measures a test suite",
    ),
    (
        &["migrate", "migration", "lint", "alter"],
        "pgrig ddl FILE measures what a migration does to your tables",
    ),
    (&["io", "disk", "fio", "storage"], "pgrig blockio"),
    (
        &["list", "ls", "status", "ps"],
        "use pgrig runs list (saved runs), pgrig server status (instances) or pgrig testdb list (databases for tests)",
    ),
    (
        &["start", "stop", "restart", "url", "logs", "psql", "fetch", "download", "install", "prune"],
        "pgrig server start, stop, restart, url, logs, psql, fetch or prune",
    ),
    (&["check", "info", "env", "config", "setup"], "pgrig doctor shows what works here"),
    (&["diff", "cmp"], "pgrig compare BASELINE CANDIDATE"),
    (&["new", "serve", "unlog", "template"], "pgrig testdb new, serve or unlog"),
    (
        &["history", "results", "export", "import", "rm", "show"],
        "pgrig runs list, show, rm, prune, export or import",
    ),
    (&["matrix"], "pgrig tps --matrix durability"),
    (&["ladder"], "pgrig fill --ladder SIZE"),
    (&["uuid", "suite", "expr"], "pgrig micro 'EXPR' 'EXPR', or pgrig micro --suite uuid"),
    (&["version"], "pgrig --version"),
    (
        &["createdb", "create", "clone", "copy"],
        "pgrig testdb new lends a fresh database; pgrig server psql runs CREATE DATABASE",
    ),
    (
        &["dropdb", "drop"],
        "pgrig testdb drop NAME drops a database that pgrig lent; pgrig server psql runs DROP DATABASE",
    ),
    (
        &["dump", "pg_dump", "restore", "pg_restore", "backup"],
        "pg_dump and pg_restore do that; pgrig fill --ddl FILE fills the tables of a dump",
    ),
    (
        &["vacuum", "analyze", "vacuumdb", "reindex", "query", "exec", "sql"],
        "pgrig server psql -- -c 'SQL' runs SQL",
    ),
];
/// Units that belong to the number before them.
const UNITS: [&str; 9] = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];

/// The error with its remedy, where one is known.
pub(crate) fn remedied(arguments: &[OsString], error: Error) -> Error {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let text = match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&words, &error),
        ErrorKind::UnknownArgument => argument(&words, &error),
        ErrorKind::InvalidValue => help(&words, &error),
        ErrorKind::ValueValidation => number(&error),
        _ => None,
    };
    text.map_or_else(|| error, |text| Error::raw(ErrorKind::InvalidValue, text))
}

/// The remedy for a word that is not a verb, if the intended verb is known.
fn verb(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let known = |(words, _): &&(&[&str], &str)| words.contains(&word.to_ascii_lowercase().as_str());
    if let Some((_, instead)) = INSTEAD.iter().find(known) {
        return Some(format!("there is no command {word}: {instead}\n"));
    }
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let names = commands(words);
    Some(format!("there is no command {word}: give one of {}\n", names.join(", ")))
}

/// The commands that are possible where these words name one that does not exist.
fn commands(words: &[String]) -> Vec<String> {
    let mut command = Cli::command();
    for word in words {
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    command
        .get_subcommands()
        .filter(|found| !found.is_hide_set())
        .map(|found| found.get_name().to_owned())
        .collect()
}

/// An argument that the verb does not have.
fn argument(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let others = || match (argument.as_str(), words) {
        ("-h", _) => Some("for help, give --help or -?; -h is the host of a server\n".to_owned()),
        ("-v", _) => Some("for the version, give --version or -V\n".to_owned()),
        ("-W" | "--password", _) => Some(
            "pgrig never asks for a password: set PGPASSWORD, or put the password into ~/.pgpass\n"
                .to_owned(),
        ),
        ("-w" | "--no-password", _) => Some("pgrig never asks for a password: leave out -w\n".to_owned()),
        ("-i" | "--initialize", [fill, ..]) if fill == "fill" => {
            Some("pgrig fill does what pgbench -i does: leave out -i, and give --scale N\n".to_owned())
        }
        (version, [server, fetch, ..])
            if server == "server" && fetch == "fetch" && !version.starts_with('-') =>
        {
            Some(format!("unexpected argument {version}; to name a version, give --pg-version {version}\n"))
        }
        (second, [fill, first, ..]) if fill == "fill" && !second.starts_with('-') => {
            let is_size = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
            let database = if is_size(second) { first } else { second };
            Some(format!("unexpected argument {second}; to name a database, give -d {database}\n"))
        }
        (option, [server, psql, ..]) if server == "server" && psql == "psql" && option.starts_with('-') => {
            Some(format!("write psql's options after --: pgrig server psql -- {option} …\n"))
        }
        (command, [testdb, bench, ..])
            if testdb == "testdb" && bench == "bench" && !command.starts_with('-') =>
        {
            Some(format!("write the command to measure after --: pgrig testdb bench -- {command} …\n"))
        }
        (database, [verb, ..])
            if ["doctor", "blockio"].contains(&verb.as_str()) && !database.starts_with('-') =>
        {
            Some(format!("unexpected argument {database}; to name a database, give -d {database}\n"))
        }
        _ => None,
    };
    option_of_pgbench(words, argument)
        .or_else(|| unit(words, argument))
        .or_else(|| negative(words, argument))
        .or_else(others)
}

/// The remedy for `-h` without a host, if the user wants help.
fn help(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_help = option.starts_with("--host") && words.last().is_some_and(|word| word == "-h");
    is_help.then(|| "-h needs the host of a server; for help, give --help or -?\n".to_owned())
}

/// The remedy for a negative number, which looks like an option.
fn negative(words: &[String], argument: &str) -> Option<String> {
    let digits = argument.strip_prefix('-')?;
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let word = words.iter().find(|word| word.starts_with(argument)).filter(|_| is_number)?;
    Some(format!("{word} is negative: give 0 or more\n"))
}

/// An option of pgbench's that `tps` does not have.
fn option_of_pgbench(words: &[String], option: &str) -> Option<String> {
    let verb = words.iter().find(|word| !word.starts_with('-'))?;
    let instead = instead_of(option).filter(|_| verb == "tps")?;
    Some(format!("pgrig tps has no {option}: {instead}\n"))
}

/// The remedy for a unit that is separated from its number.
fn unit(words: &[String], unit: &str) -> Option<String> {
    let at = words.iter().position(|word| word == unit)?;
    let number = words.get(at.checked_sub(1)?)?;
    let is_unit = UNITS.contains(&unit.to_ascii_lowercase().as_str()) && number.parse::<f64>().is_ok();
    is_unit.then(|| format!("write {number}{unit} without a space\n"))
}

/// A better message for an invalid number than Rust's.
fn number(error: &Error) -> Option<String> {
    let text = error.to_string();
    if let Some((before, range)) = text.split_once(" is not in ") {
        let range = range.lines().next().unwrap_or_default();
        let rest = &text[before.len() + " is not in ".len() + range.len()..];
        let (low, high) = range.split_once("..=")?;
        let before = before.trim_start_matches("error: ");
        return Some(format!("{before} is out of range: give {low} to {high}{rest}"));
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
