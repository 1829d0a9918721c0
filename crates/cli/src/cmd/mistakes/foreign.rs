//! Remedies for options that a verb does not have, and options without a verb.

use std::path::Path;

use clap::{CommandFactory, Parser};

use super::elsewhere::{OF_SERVERS, value};
use super::{command_of, has_option, intended, is_verb, path};
use crate::app::command_line::shown;
use crate::cmd::line::{Cli, Verb};

/// Options that a verb or one of its commands does not have, with the words after `has no OPTION`.
const INSTEAD: [(&[&str], &[&str], &str); 4] = [
    (
        &["doctor"],
        &["--json"],
        ": it prints text; run documents (--json FILE of a measurement) describe the machine and the server, too",
    ),
    (
        &["server", "logs"],
        &["-f", "--follow"],
        ": it prints the whole log; to follow the log, run tail -f DIRECTORY/log with the directory that pgrig server status shows",
    ),
    (
        &["tps"],
        &["--db-driver", "--table-size", "--table_size", "--events", "--pgsql-host", "--pgsql-db"],
        ", which is an option of sysbench: pgrig tps runs pgbench's scripts, and pgrig tps --help lists its options",
    ),
    (
        &["model", "capture"],
        &["-t", "--table", "--tables"],
        ": a model has all tables, or with --schema NAME those of one schema",
    ),
];

/// Commands of verbs that are meant first, if several have the option.
const LIKELY: [&str; 5] = ["rehearse", "new", "capture", "list", "status"];

/// The remedy for an option that the verb does not have, or that has no verb.
pub(super) fn remedy(words: &[String], names: &[&str], option: &str) -> Option<String> {
    if names.first()?.starts_with('-') {
        return without_verb(words, option);
    }
    let told = match INSTEAD
        .iter()
        .find(|(verb, options, _)| names.starts_with(verb) && options.contains(&option))
    {
        Some((.., told)) => (*told).to_owned(),
        None => of_value(words, names, option)?,
    };
    Some(format!("{} has no {option}{told}", path(words)))
}

/// The same for options whose value another option takes.
fn of_value(words: &[String], names: &[&str], option: &str) -> Option<String> {
    let is_role = || has_option(&command_of(words).0, "--username");
    let told = match (names, option) {
        (["server", "start", ..], "-p" | "--port") => format!(": {}", free_port(words)),
        (["server", "restart", ..], _) if is_of_start(option) => format!(
            ": it keeps profile and settings; run pgrig server stop{}, then {}",
            instance(words),
            started(words)
        ),
        (["server", "url", ..], "--tcp") => {
            let of = instance(words);
            format!(
                ": run pgrig server stop{of}, then pgrig server start --tcp{of}; pgrig server url{of} then prints its URI"
            )
        }
        (["micro", ..], "-T" | "--time" | "--duration") => {
            let time = value(words, option, "10s");
            let unit = if time.parse::<u64>().is_ok() { "s" } else { "" };
            format!(": --budget {time}{unit} limits the time")
        }
        (["blockio", ..], "-c" | "-j" | "--jobs") => {
            format!("; to set the number of clients, give --clients {}", value(words, option, "N"))
        }
        (["model", "capture", ..], "-n") => {
            format!("; to name a schema, give --schema {}", value(words, option, "SCHEMA"))
        }
        (["micro", ..], "-c") if value(words, option, "").parse::<u64>().is_ok() => {
            ": it measures in one session".to_owned()
        }
        (["micro", ..], "-c" | "--command" | "--sql") => {
            format!("; to measure a statement, give --statement {}", value(words, option, "SQL"))
        }
        (["micro", ..], "-f" | "--file") => of_file(&value(words, option, "FILE")),
        (["ddl", ..], "--sql" | "--statement") => {
            format!("; to give SQL, write -c {}", value(words, option, "SQL"))
        }
        (_, "-u") if is_role() => format!("; to name the role, give -U {}", value(words, option, "ROLE")),
        _ => return None,
    };
    Some(told)
}

/// The way to the port of an instance, which pgrig chooses.
pub(super) fn free_port(words: &[String]) -> String {
    let named = instance(words);
    format!("--tcp listens on a free port of 127.0.0.1, and pgrig server url{named} prints it")
}

/// ` --instance NAME`, if the words name an instance.
pub(super) fn instance(words: &[String]) -> String {
    let name = intended::value_of(words, "--instance").filter(|name| !name.starts_with('-'));
    name.map_or_else(String::new, |name| format!(" --instance {}", shown(&[name])))
}

/// Whether `server start` has this option.
fn is_of_start(option: &str) -> bool {
    has_option(&command_of(&["server", "start"].map(str::to_owned)).0, option)
}

/// The command line with `start` instead of `restart`.
fn started(words: &[String]) -> String {
    let start = |word: &String| if word == "restart" { "start".to_owned() } else { word.clone() };
    format!("pgrig {}", shown(&words.iter().map(start).collect::<Vec<_>>()))
}

/// The option of `micro` for a file.
fn of_file(file: &str) -> String {
    if Path::new(file).extension().is_some_and(|extension| extension == "toml") {
        format!("; to name a suite, give --suite {file}")
    } else {
        format!("; to measure the statement in the file, give --statement \"$(cat {file})\"")
    }
}

/// The remedy for pgbench's options without a verb: psql has options of the same names, with other values.
pub(super) fn of_pgbench(words: &[String]) -> Option<String> {
    if !words.first()?.starts_with('-') || words.iter().any(|word| is_verb(word)) {
        return None;
    }
    let arguments = ["pgrig", "tps"].into_iter().chain(words.iter().map(String::as_str));
    let Verb::Tps(tps) = Cli::try_parse_from(arguments).ok()?.verb else { return None };
    tps.sets_a_load()
        .then(|| format!("no command is given: to run pgbench's scripts, run pgrig tps {}", shown(words)))
}

/// The remedy for options of psql's or of a server without a verb.
fn without_verb(words: &[String], option: &str) -> Option<String> {
    if words.iter().any(|word| is_verb(word)) {
        return None;
    }
    let is_of_sql = |word: &String| ["-c", "--command"].contains(&word.as_str());
    let is_of_server = |word: &String| OF_SERVERS.contains(&word.as_str());
    if words.iter().any(is_of_sql) {
        let psql = if words.iter().any(is_of_server) { "psql" } else { "pgrig server psql --" };
        return Some(format!(
            "pgrig has no {option} without a command: to run SQL, run {psql} {}",
            shown(words)
        ));
    }
    OF_SERVERS.contains(&option).then(|| {
        format!(
            "no command is given: give one, for example pgrig doctor {} (pgrig --help lists the commands)",
            shown(words)
        )
    })
}

/// The remedy for options of a verb before its command, or without one.
pub(super) fn command_first(words: &[String], option: &str) -> Option<String> {
    let (verb, rest) = words.split_first()?;
    rest.first().filter(|first| first.starts_with('-'))?;
    let command = Cli::command().find_subcommand(verb)?.clone();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let own = rest.iter().position(|word| word == "--");
    let given = rest[..own.unwrap_or(rest.len())].iter().position(|word| names.contains(&word.as_str()));
    let has = |name: &&str| command.find_subcommand(name).is_some_and(|found| has_option(found, option));
    let meant = match given {
        Some(place) => rest[place].as_str(),
        None if own.is_some() && verb == "testdb" => "bench",
        None => LIKELY
            .into_iter()
            .filter(|name| names.contains(name))
            .find(has)
            .or_else(|| names.iter().copied().find(has))
            .or_else(|| (verb == "backup").then_some("rehearse"))?,
    };
    let kept = rest.iter().enumerate().filter(|(place, _)| Some(*place) != given);
    let kept: Vec<String> = kept.map(|(_, word)| word.clone()).collect();
    Some(format!("give the command first: pgrig {verb} {meant} {}", shown(&kept)))
}

/// The remedy for an option that the commands of `ab` have, and not `ab`: the command line with the option in each command.
pub(super) fn of_ab(words: &[String], option: &str) -> Option<String> {
    let is_command = |word: &String| word.starts_with("pgrig ");
    let first = shlex::split(words.iter().find(|word| is_command(word))?)?;
    if !has_option(&command_of(&first[1..]).0, option) {
        return None;
    }
    let at = words.iter().position(|word| word.starts_with(option))?;
    let is_value = |word: &&String| words[at] == option && !word.starts_with('-') && !is_command(word);
    let end = at + 1 + usize::from(words.get(at + 1).as_ref().is_some_and(is_value));
    let added = shown(&words[at..end]);
    let with_option = |word: &String| match word.split_once(" -- ") {
        _ if !is_command(word) => word.clone(),
        Some((own, command)) => format!("{own} {added} -- {command}"),
        None => format!("{word} {added}"),
    };
    let kept: Vec<String> = words[..at].iter().chain(&words[end..]).map(with_option).collect();
    Some(format!("put {option} into each command: pgrig {}", shown(&kept)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::elsewhere;
    use crate::cmd::line::parse;

    /// The remedies that name a command, each with the command line that it is for. Each command is read without an error.
    #[test]
    fn commands_that_are_named_work() {
        for (line, option, told) in [
            ("-d mydb -U bob", "-d", "pgrig doctor -d mydb -U bob"),
            ("-h db -d mydb", "-h", "pgrig doctor -h db -d mydb"),
            ("-c 'select 1'", "-c", "pgrig server psql -- -c 'select 1'"),
            ("-c 'select 1' -t", "-c", "pgrig server psql -- -c 'select 1' -t"),
            ("-c 4 -j 2 -T 10 shop", "-c", "pgrig tps -c 4 -j 2 -T 10 shop"),
            ("-c4 -T10 -d shop", "-c", "pgrig tps -c4 -T10 -d shop"),
            ("-h db -U bob --time=60 -S", "-h", "pgrig tps -h db -U bob --time=60 -S"),
            ("-t 100 --instance old", "-t", "pgrig tps -t 100 --instance old"),
            ("testdb --from a.sql", "--from", "pgrig testdb new --from a.sql"),
            ("testdb --from a.sql -- pytest new", "--from", "pgrig testdb bench --from a.sql -- pytest new"),
            ("runs -n 5", "-n", "pgrig runs list -n 5"),
            ("model -d shop -o m.toml", "-d", "pgrig model capture -d shop -o m.toml"),
            ("server restart --set work_mem=8MB", "--set", "pgrig server start --set work_mem=8MB"),
            ("server url --tcp --instance old", "--tcp", "pgrig server start --tcp --instance old"),
            ("ab -T 10 'pgrig tps' 'pgrig tps -S'", "-T", "pgrig ab 'pgrig tps -T 10' 'pgrig tps -S -T 10'"),
            (
                "ab 'pgrig tps' 'pgrig tps -S' -d shop",
                "-d",
                "pgrig ab 'pgrig tps -d shop' 'pgrig tps -S -d shop'",
            ),
        ] {
            let remedy = elsewhere::remedy(&shlex::split(line).unwrap(), option).unwrap();
            assert!(remedy.contains(told), "{line}: {remedy}");
            let arguments: Vec<OsString> =
                shlex::split(told).unwrap().into_iter().map(OsString::from).collect();
            assert!(parse(&arguments).is_ok(), "{told}");
        }
    }

    #[test]
    fn options_of_a_server_alone_are_no_load() {
        for line in ["-d shop", "-h db -p 5433", "--instance old"] {
            assert_eq!(super::of_pgbench(&shlex::split(line).unwrap()), None, "{line}");
        }
    }

    #[test]
    fn a_misspelt_option_of_ab_is_left_to_clap() {
        let words = shlex::split("ab 'pgrig tps' 'pgrig tps -S' --roundz 5").unwrap();
        assert_eq!(elsewhere::remedy(&words, "--roundz"), None);
    }
}
