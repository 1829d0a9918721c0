//! Adds remedies to errors of the command line.

mod borrowed;
mod commands;
mod elsewhere;
mod foreign;
mod intended;
mod misplaced;
mod missing;
mod number;
mod tips;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};
use server::quote::shell_word;

use crate::app::command_line::{has_password, shown};
use crate::app::size::Size;
use crate::cmd::line::Cli;
use crate::cmd::mistakes::number::{before_unit, negative, number, unit};
use crate::cmd::tps::args::instead_of;

/// Words that users give instead of a verb, with the command that they mean.
const INSTEAD: [(&[&str], &str); 24] = [
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
        "pgrig ddl FILE measures the effects of a migration on your tables",
    ),
    (&["io", "disk", "fio", "storage"], "use pgrig blockio"),
    (
        &["list", "ls", "status", "ps"],
        "use pgrig runs list (saved runs), pgrig server status (instances) or pgrig testdb list (databases for tests)",
    ),
    (
        &["destroy"],
        "pgrig server destroy --instance NAME deletes an instance with all its data (pgrig server status lists the instances)",
    ),
    (&["download", "install", "prune"], "use pgrig server fetch or prune"),
    (
        &["verify", "verifybackup", "pg_verifybackup", "checkbackup"],
        "pgrig backup check FILE checks whether a backup is whole; pgrig doctor shows which verbs work here",
    ),
    (&["check", "info", "env", "config", "setup"], "pgrig doctor shows which verbs work here"),
    (&["diff", "cmp"], "use pgrig compare BASELINE CANDIDATE"),
    (&["new", "serve", "unlog", "template"], "use pgrig testdb new, serve or unlog"),
    (&["history", "results", "export", "rm"], "use pgrig runs list, show, rm, prune, export or import"),
    (&["show"], "use pgrig runs show RUN, or pgrig model show FILE"),
    (
        &["import"],
        "pgrig runs import FILE adds saved runs; pgrig testdb new --from FILE loads a dump; pgrig fill --ddl FILE fills the tables of a dump",
    ),
    (&["capture"], "use pgrig model capture -d DBNAME -o FILE"),
    (
        &["uninstall"],
        "pgrig server destroy --instance NAME deletes an instance; then delete the program, and the directory that pgrig doctor shows as home",
    ),
    (&["matrix"], "use pgrig tps --matrix durability"),
    (&["ladder"], "use pgrig fill --ladder SIZE"),
    (&["uuid", "suite", "expr"], "use pgrig micro 'EXPR' 'EXPR', or pgrig micro --suite uuid"),
    (&["version"], "use pgrig --version"),
    (
        &["createdb", "create", "clone", "copy"],
        "pgrig testdb new lends a fresh database; pgrig server psql -- -c 'CREATE DATABASE shop' makes one on pgrig's own server",
    ),
    (
        &["dropdb", "drop"],
        "pgrig testdb drop NAME drops a database that pgrig lent; pgrig server psql -- -c 'DROP DATABASE shop' drops one on pgrig's own server",
    ),
    (
        &["dump", "pg_dump", "backup"],
        "run PostgreSQL's own pg_dump or pg_restore; pgrig backup rehearse -d DBNAME measures them, and pgrig fill --ddl FILE fills the tables of a dump",
    ),
    (
        &["vacuum", "analyze", "vacuumdb", "reindex", "query", "exec", "sql"],
        "pgrig server psql -- -c 'SQL' runs SQL",
    ),
];

/// The remedy for files of a migration beside -c.
const TWO_MIGRATIONS: &str = "FILE and -c each give the migration: give one of them. To run both, write the SQL of -c into a file, and give the files \
                              in order, for example: pgrig ddl first.sql second.sql";

/// The error with its remedy, where one is known.
pub(crate) fn remedied(arguments: &[OsString], mut error: Error) -> Error {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let text = match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&words, &error),
        ErrorKind::UnknownArgument => argument(&words, &error),
        ErrorKind::InvalidValue => help(&words, &error).or_else(|| without_value(&words, &error)),
        ErrorKind::ValueValidation => {
            let meant = intended::help(&words)
                .or_else(|| before_unit(&words, string(&error, ContextKind::InvalidValue)?))
                .or_else(|| one_dash(&words, &error));
            meant.or_else(|| sql_file(&words, &error)).or_else(|| number(&error))
        }
        ErrorKind::MissingRequiredArgument | ErrorKind::TooFewValues => missing::remedy(&words),
        ErrorKind::InvalidUtf8 => not_text(arguments),
        ErrorKind::ArgumentConflict => two_amounts(&error)
            .or_else(|| two_persistences(&error))
            .or_else(|| two_kinds(&words, &error))
            .or_else(|| two_migrations(&words, &error))
            .or_else(|| second_level(&words, &error)),
        ErrorKind::TooManyValues => port_of_tcp(&words),
        _ => None,
    };
    if text.is_none() && matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidValue) {
        tips::leave_out(&mut error);
    }
    match text {
        Some(text) => Error::raw(ErrorKind::InvalidValue, with_password(&words, masked(&words, text))),
        None => without_password(&words, error),
    }
}

/// Options of `fill` of which a second one would silently replace the first, with the remedy.
const ONCE: [(&[&str], &str); 4] = [
    (&["-d", "--dbname"], "run the command once for each database"),
    (&["--ddl", "--schema-file", "--from"], "give all files as one: cat FILE FILE | pgrig fill --ddl -"),
    (&["--table"], "run the command once for each table, or give --all-tables"),
    (&["--model"], "run the command once for each model"),
];

/// Refuses an option that is given twice. Others may replace those of --level.
pub(crate) fn refuse_twice(arguments: &[OsString]) -> Result<(), Error> {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    for (options, remedy) in ONCE {
        let is_it =
            |word: &&String| options.iter().any(|option| word == option || intended::is_joined(word, option));
        if words.iter().filter(is_it).count() > 1 {
            let text = format!("{} is given twice: {remedy}\n", options[0]);
            return Err(Error::raw(ErrorKind::ArgumentConflict, text));
        }
    }
    Ok(())
}

/// The text without the passwords of connection strings.
fn masked(words: &[String], text: String) -> String {
    let odd = words.iter().filter(|word| has_password(word));
    odd.fold(text, |text, word| text.replace(word.as_str(), &shown(std::slice::from_ref(word))))
}

/// clap's own error without the passwords of connection strings.
fn without_password(words: &[String], error: Error) -> Error {
    let text = error.to_string();
    let without = masked(words, text.clone());
    if without == text {
        return error;
    }
    Error::raw(error.kind(), without.trim_start_matches("error: ").to_owned())
}

/// The remedy, and the place for the password that the command in it lacks.
fn with_password(words: &[String], remedy: String) -> String {
    let lacks = |word: &String| has_password(word) && remedy.contains(&shown(std::slice::from_ref(word)));
    if words.iter().any(lacks) {
        return remedy + "Give the password in PGPASSWORD\n";
    }
    remedy
}

/// A port as the value of `server start --tcp=5433`.
fn port_of_tcp(words: &[String]) -> Option<String> {
    let port = words.iter().find_map(|word| word.strip_prefix("--tcp="))?;
    words.first().is_some_and(|verb| verb == "server").then(|| misplaced::port(words, port))
}

/// The two arguments that cannot be combined, as clap shows them.
fn conflicting(error: &Error) -> Option<[String; 2]> {
    let name = |kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) => several.first().cloned(),
        _ => None,
    };
    Some([name(ContextKind::InvalidArg)?, name(ContextKind::PriorArg)?])
}

/// SIZE beside an option that also sets the amount.
fn two_amounts(error: &Error) -> Option<String> {
    let names = conflicting(error)?;
    let size = names.iter().position(|name| name == "[SIZE]" || name == "<SIZE>")?;
    let option = names[1 - size].split(' ').next()?.to_owned();
    Some(format!("SIZE and {option} each set the amount: give one of them\n"))
}

/// --logged beside --unlogged.
fn two_persistences(error: &Error) -> Option<String> {
    let names = conflicting(error)?;
    let is_one = |name: &String| ["--logged", "--unlogged"].contains(&name.as_str());
    names.iter().all(is_one).then(|| "--unlogged and --logged: give one of them\n".to_owned())
}

/// Expressions of `micro` beside statements, tables or a suite.
fn two_kinds(words: &[String], error: &Error) -> Option<String> {
    let names = conflicting(error)?;
    let expression = names.iter().position(|name| name.contains("EXPR"))?;
    let option = names[1 - expression].split(' ').next()?.to_owned();
    // A statement without quotes.
    if let Some(at) = words.windows(3).position(|three| {
        three[0] == option
            && three[1].bytes().all(|byte| byte.is_ascii_alphabetic())
            && !three[2].starts_with('-')
    }) {
        let rest = words[at + 1..].iter().take_while(|word| !word.starts_with('-'));
        let statement = shell_word(&rest.cloned().collect::<Vec<_>>().join(" "));
        return Some(format!("put the statement in quotes: {option} {statement}\n"));
    }
    let as_statement = if option == "--statement" {
        ". To compare an expression with a statement, write it as a statement, too, for example --statement 'SELECT md5(1::text)'"
    } else {
        ""
    };
    Some(format!("expressions and {option}: give one of them{as_statement}\n"))
}

/// Files of a migration beside -c.
fn two_migrations(words: &[String], error: &Error) -> Option<String> {
    let names = conflicting(error)?;
    let is_command = names.iter().any(|name| name.starts_with("--command"));
    let is_ddl = words.first().is_some_and(|verb| verb == "ddl");
    (is_ddl && is_command).then(|| format!("{TWO_MIGRATIONS}\n"))
}

/// A level of an axis after a space, which `tps` takes for a database beside -d: `--matrix work_mem=4MB 64MB`.
fn second_level(words: &[String], error: &Error) -> Option<String> {
    let is_database = conflicting(error)?.iter().any(|name| name == "[DBNAME]");
    let (axis, level) = words.windows(3).filter(|_| is_database).find_map(|three| match three {
        [option, axis, level] if option == "--matrix" && axis.contains('=') && !level.starts_with('-') => {
            Some((axis, level))
        }
        _ => None,
    })?;
    let levels = shown(&[format!("{axis},{level}")]);
    Some(format!("unexpected argument {level}: to add a level, give --matrix {levels}\n"))
}

/// An argument that is not UTF-8, where only text is possible.
fn not_text(arguments: &[OsString]) -> Option<String> {
    let argument = arguments.iter().skip(1).find(|argument| argument.to_str().is_none())?;
    let shown = argument.display();
    Some(format!("the argument \"{shown}\" is not UTF-8: write it in UTF-8; rename a file of this name\n"))
}

/// The text that clap's error has of this kind, if it is a single one.
fn string(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one),
        _ => None,
    }
}

/// The remedy for a word that is not a verb, if the intended verb is known.
fn verb(words: &[String], error: &Error) -> Option<String> {
    let word = string(error, ContextKind::InvalidSubcommand)?;
    if let Some(meant) = intended::of_server(words, word) {
        return Some(format!("there is no command {word}: run {meant}\n"));
    }
    if ["restore", "pg_restore"].contains(&word) {
        return Some(intended::restore(words, word));
    }
    if let Some(meant) = commands::instead(words, word) {
        return Some(format!("there is no command {word}: {meant}\n"));
    }
    let known = |(words, _): &&(&[&str], &str)| words.contains(&word.to_ascii_lowercase().as_str());
    if let Some((_, instead)) = INSTEAD.iter().find(known) {
        return Some(format!("there is no command {word}: {instead}\n"));
    }
    if word.parse::<Size>().is_ok() && words.first().is_some_and(|first| first == word) {
        return Some(format!("there is no command {word}: run pgrig fill {}\n", shown(words)));
    }
    if let Some(meant) = intended::after_help(words) {
        return Some(format!("there is no command {word}: did you mean {meant}?\n"));
    }
    let path = path(words);
    let small = word.to_lowercase();
    if commands(words).contains(&small) {
        return Some(format!("there is no command {word}: did you mean {path} {small}?\n"));
    }
    if let Some(suggested) = suggested(error) {
        return Some(format!("there is no command {word}: did you mean {path} {suggested}?\n"));
    }
    let near = |(words, _): &&(&[&str], &str)| words.iter().any(|known| tips::is_like(word, known));
    if let Some((_, instead)) = INSTEAD.iter().find(near).filter(|_| path == "pgrig") {
        return Some(format!("there is no command {word}: {instead}\n"));
    }
    if words.iter().find(|word| !word.starts_with('-')).is_some_and(|verb| verb == "backup") {
        let meant = intended::backup(words, word);
        return Some(format!(
            "there is no command {word}: give one of rehearse, check, for example {meant}\n"
        ));
    }
    let names = commands(words);
    let word = shell_word(word);
    Some(format!("{path} has no command {word}: give one of {}\n", names.join(", ")))
}

/// The command that clap proposes for one that does not exist, if the two are alike.
fn suggested(error: &Error) -> Option<&str> {
    let proposed = match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::String(one) => Some(one.as_str()),
        // The most similar one is last.
        ContextValue::Strings(several) => several.last().map(String::as_str),
        _ => None,
    }?;
    let given = string(error, ContextKind::InvalidSubcommand)?;
    tips::is_like_command(given, proposed).then_some(proposed)
}

/// The command that the first words name, and these words: `pgrig testdb`.
fn command_of(words: &[String]) -> (Command, String) {
    let mut command = Cli::command();
    let mut path = "pgrig".to_owned();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some(found) = command.find_subcommand(word).cloned() else { break };
        path = format!("{path} {word}");
        command = found;
    }
    (command, path)
}

/// The words that name a command: `pgrig testdb`.
fn path(words: &[String]) -> String {
    command_of(words).1
}

/// Whether a command has this option.
fn has_option(command: &Command, option: &str) -> bool {
    let long = option.strip_prefix("--");
    let short = option.strip_prefix('-').filter(|_| long.is_none()).and_then(|rest| rest.chars().next());
    command.get_arguments().any(|argument| match long {
        Some(_) => argument.get_long() == long,
        None => short.is_some() && argument.get_short() == short,
    })
}

/// The commands that are possible where these words name one that does not exist.
fn commands(words: &[String]) -> Vec<String> {
    let (command, _) = command_of(words);
    let shown = command.get_subcommands().filter(|found| !found.is_hide_set());
    shown.map(|found| found.get_name().to_owned()).collect()
}

/// An argument that the verb does not have.
fn argument(words: &[String], error: &Error) -> Option<String> {
    let argument = string(error, ContextKind::InvalidArg)?;
    let equals = || {
        let option = with_equals(words, argument)?;
        Some(format!("unexpected argument {argument}: write {option}={argument}\n"))
    };
    intended::help(words)
        .or_else(|| option_of_pgbench(words, argument))
        .or_else(equals)
        .or_else(|| misplaced::setting(words, argument))
        .or_else(|| unit(words, argument))
        .or_else(|| negative(words, argument))
        .or_else(|| elsewhere::remedy(words, argument))
        .or_else(|| misplaced::remedy(words, argument))
        .or_else(|| tips::of_unlike(words, error))
}

/// The remedy for `-h` without a host, if the user wants help.
fn help(words: &[String], error: &Error) -> Option<String> {
    let option = string(error, ContextKind::InvalidArg)?;
    let is_help = option.starts_with("--host") && words.last().is_some_and(|word| word == "-h");
    is_help.then(|| "-h needs the host of a server; for help, give --help or -?\n".to_owned())
}

/// The remedy for --matrix without an axis, and for --ladder without its size, which stands in the place of SIZE or nowhere.
fn without_value(words: &[String], error: &Error) -> Option<String> {
    let option = string(error, ContextKind::InvalidArg)?;
    if option.starts_with("--matrix") {
        return Some("--matrix needs an axis, for example: pgrig tps --matrix durability\n".to_owned());
    }
    let is_ladder = option.starts_with("--ladder") && words.last().is_some_and(|word| word == "--ladder");
    is_ladder
        .then(|| "--ladder needs the size of the tables, for example: pgrig fill --ladder 1GB\n".to_owned())
}

/// Whether a word is one of pgrig's commands.
fn is_verb(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

/// An option whose value follows an equals sign, if the word is its value.
fn with_equals<'w>(words: &'w [String], value: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == value)?;
    let option = &words[at.checked_sub(1)?];
    let command = Cli::command().find_subcommand(words.first()?)?.clone();
    let is_it = |argument: &clap::Arg| {
        argument.is_require_equals_set() && argument.get_long() == option.strip_prefix("--")
    };
    command.get_arguments().any(is_it).then_some(option)
}

/// An option of pgbench's that `tps` does not have.
fn option_of_pgbench(words: &[String], option: &str) -> Option<String> {
    let verb = words.iter().find(|word| !word.starts_with('-'))?;
    let instead = instead_of(option).filter(|_| verb == "tps")?;
    if ["-i", "--init", "--initialize"].contains(&option) && words.iter().any(|word| word == option) {
        let rest: Vec<String> = words.iter().skip_while(|word| *word != verb).skip(1).cloned().collect();
        return Some(format!("pgrig tps has no {option}: {}\n", intended::initialize(&rest)));
    }
    Some(format!("pgrig tps has no {option}: {instead}\n"))
}

/// Whether a word is the name of a file of SQL.
fn is_sql(word: &str) -> bool {
    std::path::Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"))
}

/// The remedy for a long option with one dash, which is read as a short one with a value: `-time 2`.
fn one_dash(words: &[String], error: &Error) -> Option<String> {
    let value = string(error, ContextKind::InvalidValue)?;
    let command = command_of(words).0;
    let is_meant = |word: &&String| {
        word.get(2..).is_some_and(|rest| !rest.is_empty() && rest == value)
            && !word.starts_with("--")
            && has_option(&command, &format!("-{word}"))
    };
    let given = words.iter().find(is_meant)?;
    let long = format!("-{given}");
    let with_two = words.iter().map(|word| if word == given { long.clone() } else { word.clone() });
    let meant = shown(&with_two.collect::<Vec<_>>());
    Some(format!("write {long} with two dashes: pgrig {meant}\n"))
}

/// The remedy for a file of SQL in the place of the size.
fn sql_file(words: &[String], error: &Error) -> Option<String> {
    let file = string(error, ContextKind::InvalidValue)?;
    let is_fill = words.first().is_some_and(|verb| verb == "fill");
    (is_sql(file) && is_fill)
        .then(|| format!("unexpected argument {file}; to name a file of SQL, give --ddl {file}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::wrap::VERBS;

    #[test]
    fn lines_are_broken_as_commands_for_every_verb() {
        for verb in Cli::command().get_subcommands() {
            assert!(VERBS.contains(&verb.get_name()), "{}", verb.get_name());
        }
    }
}
