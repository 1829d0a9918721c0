//! Adds remedies to errors of the command line.

mod intended;
mod number;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use server::quote::shell_word;

use crate::app::command_line::without_passwords;
use crate::cmd::line::Cli;
use crate::cmd::mistakes::number::{negative, number, unit};
use crate::cmd::tps::args::instead_of;

/// Words that users give instead of a verb, with the command that they mean.
const INSTEAD: [(&[&str], &str); 19] = [
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
    (&["download", "install", "prune"], "use pgrig server fetch or prune"),
    (
        &["verify", "verifybackup", "pg_verifybackup", "checkbackup"],
        "pgrig backup check FILE checks whether a backup is whole; pgrig doctor shows which verbs work here",
    ),
    (&["check", "info", "env", "config", "setup"], "pgrig doctor shows which verbs work here"),
    (&["diff", "cmp"], "use pgrig compare BASELINE CANDIDATE"),
    (&["new", "serve", "unlog", "template"], "use pgrig testdb new, serve or unlog"),
    (
        &["history", "results", "export", "import", "rm", "show"],
        "use pgrig runs list, show, rm, prune, export or import",
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
        &["dump", "pg_dump", "restore", "pg_restore", "backup"],
        "run PostgreSQL's own pg_dump or pg_restore; pgrig backup rehearse -d DBNAME measures them, and pgrig fill --ddl FILE fills the tables of a dump",
    ),
    (
        &["vacuum", "analyze", "vacuumdb", "reindex", "query", "exec", "sql"],
        "pgrig server psql -- -c 'SQL' runs SQL",
    ),
];
/// The error with its remedy, where one is known.
pub(crate) fn remedied(arguments: &[OsString], mut error: Error) -> Error {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let text = match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&words, &error),
        ErrorKind::UnknownArgument => argument(&words, &error),
        ErrorKind::InvalidValue => help(&words, &error).or_else(|| without_value(&words, &error)),
        ErrorKind::ValueValidation => {
            intended::help(&words).or_else(|| sql_file(&words, &error)).or_else(|| number(&error))
        }
        ErrorKind::MissingRequiredArgument | ErrorKind::TooFewValues => missing(&words),
        ErrorKind::InvalidUtf8 => not_text(arguments),
        ErrorKind::ArgumentConflict => two_amounts(&error),
        _ => None,
    };
    if text.is_none() && error.kind() == ErrorKind::UnknownArgument {
        leave_out_escape(&mut error);
    }
    text.map_or_else(|| error, |text| Error::raw(ErrorKind::InvalidValue, text))
}

/// SIZE beside an option that also sets the amount.
fn two_amounts(error: &Error) -> Option<String> {
    let name = |kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) => several.first().cloned(),
        _ => None,
    };
    let names = [name(ContextKind::InvalidArg)?, name(ContextKind::PriorArg)?];
    let size = names.iter().position(|name| name == "[SIZE]" || name == "<SIZE>")?;
    let option = names[1 - size].split(' ').next()?.to_owned();
    Some(format!("SIZE and {option} each set the amount: give one of them\n"))
}

/// An argument that is not UTF-8, where only text is possible.
fn not_text(arguments: &[OsString]) -> Option<String> {
    let argument = arguments.iter().skip(1).find(|argument| argument.to_str().is_none())?;
    let shown = argument.display();
    Some(format!("the argument \"{shown}\" is not UTF-8: write it in UTF-8; a file may need another name\n"))
}

/// Leaves out clap's advice to write an unknown option after `--`: no option is meant as a value.
fn leave_out_escape(error: &mut Error) {
    let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) else { return };
    let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value, use")).collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Words as a shell reads them, without passwords.
fn shown(words: &[String]) -> String {
    let words = words.iter().map(|word| shell_word(&without_passwords(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// The command line with `--` before this word.
fn with_dashes(words: &[String], word: &str) -> String {
    let at = words.iter().position(|given| given.starts_with(word)).unwrap_or(words.len());
    format!("pgrig {} -- {}", shown(&words[..at]), shown(&words[at..]))
}

/// The remedy for a word that is not a verb, if the intended verb is known.
fn verb(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if let Some(meant) = intended::of_server(words, word) {
        return Some(format!("there is no command {word}: run {meant}\n"));
    }
    let known = |(words, _): &&(&[&str], &str)| words.contains(&word.to_ascii_lowercase().as_str());
    if let Some((_, instead)) = INSTEAD.iter().find(known) {
        return Some(format!("there is no command {word}: {instead}\n"));
    }
    if let Some(meant) = intended::after_help(words) {
        return Some(format!("there is no command {word}: did you mean {meant}?\n"));
    }
    let path = path(words);
    if let Some(suggested) = suggested(error) {
        return Some(format!("there is no command {word}: did you mean {path} {suggested}?\n"));
    }
    if words.iter().find(|word| !word.starts_with('-')).is_some_and(|verb| verb == "backup") {
        let has_dot = word.contains(['.', '/']);
        let meant = if has_dot { format!("check {word}") } else { format!("rehearse -d {word}") };
        return Some(format!(
            "there is no command {word}: give one of rehearse, check, for example pgrig backup {meant}\n"
        ));
    }
    let names = commands(words);
    Some(format!("{path} has no command {word}: give one of {}\n", names.join(", ")))
}

/// The command that clap proposes for one that does not exist.
fn suggested(error: &Error) -> Option<&str> {
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::String(one) => Some(one),
        // The most similar one is last.
        ContextValue::Strings(several) => several.last().map(String::as_str),
        _ => None,
    }
}

/// The commands before the first word that names none: `pgrig testdb`.
fn path(words: &[String]) -> String {
    let mut command = Cli::command();
    let mut path = "pgrig".to_owned();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some(found) = command.find_subcommand(word).cloned() else { break };
        path = format!("{path} {word}");
        command = found;
    }
    path
}

/// The command line without --json's file.
fn without_file(words: &[String], file: &str) -> String {
    let kept: Vec<String> = words.iter().filter(|word| *word != file).cloned().collect();
    format!("pgrig {}", shown(&kept))
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
    let equals = || {
        let option = with_equals(words, argument)?;
        Some(format!("unexpected argument {argument}: write {option}={argument}\n"))
    };
    intended::help(words)
        .or_else(|| option_of_pgbench(words, argument))
        .or_else(equals)
        .or_else(|| unit(words, argument))
        .or_else(|| negative(words, argument))
        .or_else(|| of_elsewhere(words, argument))
        .or_else(|| misplaced(words, argument))
}

/// The remedy for an option of another verb or program.
fn of_elsewhere(words: &[String], argument: &str) -> Option<String> {
    match (argument, words) {
        ("-h", _) => Some("for help, give --help or -?; -h is the host of a server\n".to_owned()),
        ("-v", _) => Some("for the version, give --version or -V\n".to_owned()),
        ("-W" | "--password", _) => Some(
            "pgrig never asks for a password: set PGPASSWORD, or put the password into ~/.pgpass\n"
                .to_owned(),
        ),
        ("-w" | "--no-password", _) => Some("pgrig never asks for a password: leave out -w\n".to_owned()),
        (option, [first, ..]) if first.starts_with('-') && words.iter().any(|word| is_verb(word)) => {
            let at = words.iter().position(|word| is_verb(word))?;
            let moved = shown(&[&words[at..], &words[..at]].concat());
            Some(format!("write {option} after the command: pgrig {moved}\n"))
        }
        ("-i" | "--initialize", [first, ..]) if first.starts_with('-') => {
            Some(intended::initialize(words))
        }
        ("-f" | "--file", [fill, ..]) if fill == "fill" => {
            let path = intended::value_of(words, argument).unwrap_or_else(|| "FILE".to_owned());
            Some(format!("pgrig fill has no {argument}; to name a file of SQL, give --ddl {}\n", shell_word(&path)))
        }
        ("-c" | "--clients" | "-j" | "--jobs", [fill, ..]) if fill == "fill" => {
            Some(format!("pgrig fill has no {argument}: --streams N sets the number of connections that load rows\n"))
        }
        ("-T" | "--time", [fill, ..]) if fill == "fill" => {
            Some(format!("pgrig fill has no {argument}: --for 10min stops the fill after this time\n"))
        }
        ("--trials", [ddl, ..]) if ddl == "ddl" => Some(
            "pgrig ddl has no --trials: it runs the migration several times at each of three sizes; --quick runs it once\n"
                .to_owned(),
        ),
        ("-i" | "--initialize", [fill, ..]) if fill == "fill" => {
            Some("pgrig fill does the work of pgbench -i: leave out -i, and give --scale N\n".to_owned())
        }
        (option, [size, ..]) if size == "size" && OF_SERVERS.contains(&option) => {
            Some(format!("pgrig size needs no server: leave out {option}\n"))
        }
        (option, [backup, check, ..])
            if backup == "backup" && check == "check" && OF_SERVERS.contains(&option) =>
        {
            Some(format!(
                "pgrig backup check reads a backup and needs no server: leave out {option}; to measure backups of a database, \
                 give pgrig backup rehearse -d DBNAME\n"
            ))
        }
        (option, [server, psql, ..]) if server == "server" && psql == "psql" && option.starts_with('-') => {
            Some(format!("write psql's options after --: {}\n", with_dashes(words, option)))
        }
        _ => None,
    }
}

/// The remedy for a word in the wrong place, or one that needs an option before it.
fn misplaced(words: &[String], argument: &str) -> Option<String> {
    match (argument, words) {
        (file, [size, rest @ ..])
            if size == "size" && rest.windows(2).any(|pair| pair[0] == "--json" && pair[1] == file) =>
        {
            Some(format!("--json of pgrig size writes to standard output: write {} > {file}\n", without_file(words, file)))
        }
        (version, [server, fetch, ..])
            if server == "server" && fetch == "fetch" && !version.starts_with('-') =>
        {
            Some(format!("unexpected argument {version}; to name a version, give --pg-version {version}\n"))
        }
        (second, [size, first, ..])
            if size == "size" && !second.starts_with('-') && !first.starts_with('-') =>
        {
            Some(format!("unexpected argument {second}: give one SIZE\n"))
        }
        (_, [ab, pgrig, ..]) if ab == "ab" && pgrig == "pgrig" => {
            Some("put each command in quotes: pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -c 4'\n".to_owned())
        }
        (database, [model, capture, ..])
            if model == "model" && capture == "capture" && !database.starts_with('-') =>
        {
            Some(format!("unexpected argument {database}; to name a database, give -d {database}\n"))
        }
        (second, [fill, first, ..]) if fill == "fill" && !second.starts_with('-') => {
            let is_size = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
            let database = match (is_size(first), is_size(second)) {
                (_, false) => second,
                (false, true) if !first.starts_with('-') => first,
                _ => return Some(format!("unexpected argument {second}: give one SIZE\n")),
            };
            Some(format!("unexpected argument {database}; to name a database, give -d {database}\n"))
        }
        (database, [backup, rehearse, ..])
            if backup == "backup" && rehearse == "rehearse" && !database.starts_with('-') =>
        {
            Some(format!("unexpected argument {database}; to name a database, give -d {database}\n"))
        }
        (second, [backup, check, ..])
            if backup == "backup" && check == "check" && !second.starts_with('-') =>
        {
            Some(format!("unexpected argument {second}: give one backup; run the command once for each\n"))
        }
        (name, [server, action, ..]) if server == "server" && is_of_instance(action) && !name.starts_with('-') => {
            Some(format!("unexpected argument {name}; to name an instance, give --instance {name}\n"))
        }
        (third, [compare, ..]) if compare == "compare" && !third.starts_with('-') => Some(
            "give two runs or labels; for several runs on a side: pgrig compare --baseline RUN RUN --candidate RUN RUN\n"
                .to_owned(),
        ),
        (second, [tps, ..]) if tps == "tps" && !second.starts_with('-') => Some(format!(
            "unexpected argument {second}: give one database; to divide the clients over several, repeat -d\n"
        )),
        (command, [testdb, bench, ..])
            if testdb == "testdb" && bench == "bench" && !command.starts_with('-') =>
        {
            Some(format!("write -- before the command to measure: {}\n", intended::bench(words, command)))
        }
        (database, [verb, ..])
            if ["doctor", "blockio"].contains(&verb.as_str()) && !database.starts_with('-') =>
        {
            Some(format!("unexpected argument {database}; to name a database, give -d {database}\n"))
        }
        _ => None,
    }
}

/// The remedy for `-h` without a host, if the user wants help.
fn help(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_help = option.starts_with("--host") && words.last().is_some_and(|word| word == "-h");
    is_help.then(|| "-h needs the host of a server; for help, give --help or -?\n".to_owned())
}

/// The remedy where one of several arguments is needed, or the second one of two.
fn missing(words: &[String]) -> Option<String> {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let has = |option: &str| names.iter().any(|word| word.split('=').next() == Some(option));
    let text = match names.as_slice() {
        ["ddl", ..] => {
            "no migration is given: give a file with SQL, or -c 'ALTER TABLE orders ADD COLUMN note text'"
        }
        ["fill", ..] if has("--reserve") => "--reserve goes with --brim: give both, or leave out --reserve",
        ["size", ..] => "give SIZE, --scale N or --rows N, for example: pgrig size 73GB",
        ["compare", ..] if !has("--baseline") && !has("--candidate") => {
            "give two runs or labels, for example: pgrig compare before after"
        }
        ["ab", ..] => {
            "give two commands or more, each in quotes, for example: pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -M prepared'"
        }
        ["merge", ..] => "give the runs of all parts, for example: pgrig merge 1.json 2.json",
        ["backup", "rehearse", ..] if has("--tool-backup") != has("--tool-restore") => {
            "another tool needs --tool-backup and --tool-restore: give both"
        }
        ["backup", "rehearse", ..] if !has("--tool-backup") && (has("--tool-wal") || has("--tool-name")) => {
            "--tool-wal and --tool-name are for another tool: give --tool-backup and --tool-restore, too"
        }
        ["backup", "rehearse", ..] if has("--tool-wal") && !has("--load") => {
            "--tool-wal stores the WAL of a load: give a load, too, for example --load simple-update -R 500"
        }
        ["backup", "rehearse", ..] if has("--load") => {
            "--load needs a rate: give its transactions per second, for example -R 500"
        }
        ["backup", "rehearse", ..] => {
            "-R, -T and -c are for a load: give its script, too, for example --load simple-update -R 500"
        }
        ["backup", "check", ..] => {
            "give the file or directory of a backup, or - for standard input, for example: pgrig backup check shop.dump"
        }
        ["model", "capture", ..] => {
            "no file for the model is given: pgrig model capture -d DBNAME -o FILE, or --explain to see the queries"
        }
        ["model", "show", ..] => "give the file of a model, for example: pgrig model show shop.model.toml",
        ["model", "check", ..] => {
            "give the original, then the copy, for example: pgrig model check shop copy"
        }
        ["runs", "rm", ..] => "give the runs to remove: their ids or labels (pgrig runs list shows them)",
        ["runs", "export", ..] => {
            "give the runs, and a file for them: pgrig runs export latest -o latest.runs.json"
        }
        ["testdb", "bench", ..] => {
            "give your test command after --, for example: pgrig testdb bench -- sh suite.sh; or --tps SCRIPT"
        }
        ["testdb", "keep", ..] => "give the name of a lent database (pgrig testdb list shows them)",
        ["server", "destroy", ..] => {
            "--instance is missing: pgrig server destroy deletes an instance with all its data (pgrig server status lists \
             the instances)"
        }
        ["testdb", "drop", ..] => "give NAME, --all, --templates or --orphans",
        ["runs", "prune", ..] => "give --keep N, --older-than AGE, or both",
        ["compare", ..] if has("--baseline") => "--baseline needs --candidate: give both",
        ["compare", ..] if has("--candidate") => "--candidate needs --baseline: give both",
        _ => return None,
    };
    Some(format!("{text}\n"))
}

/// The remedy for --ladder without its size, which stands in the place of SIZE or nowhere.
fn without_value(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_ladder = option.starts_with("--ladder") && words.last().is_some_and(|word| word == "--ladder");
    is_ladder
        .then(|| "--ladder needs the size of the tables, for example: pgrig fill --ladder 1GB\n".to_owned())
}

/// Whether a word is one of pgrig's commands.
fn is_verb(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

/// Whether a command of `pgrig server` has the option --instance, and no argument.
fn is_of_instance(action: &str) -> bool {
    ["start", "stop", "restart", "status", "logs", "destroy"].contains(&action)
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

/// Options that name a server.
const OF_SERVERS: [&str; 9] =
    ["-d", "--dbname", "-h", "--host", "-p", "--port", "-U", "--username", "--instance"];

/// An option of pgbench's that `tps` does not have.
fn option_of_pgbench(words: &[String], option: &str) -> Option<String> {
    let verb = words.iter().find(|word| !word.starts_with('-'))?;
    let instead = instead_of(option).filter(|_| verb == "tps")?;
    Some(format!("pgrig tps has no {option}: {instead}\n"))
}

/// The remedy for a file of SQL in the place of the size.
fn sql_file(words: &[String], error: &Error) -> Option<String> {
    let Some(ContextValue::String(file)) = error.get(ContextKind::InvalidValue) else { return None };
    let is_sql = std::path::Path::new(file).extension().is_some_and(|end| end.eq_ignore_ascii_case("sql"));
    let is_fill = words.first().is_some_and(|verb| verb == "fill");
    (is_sql && is_fill)
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
