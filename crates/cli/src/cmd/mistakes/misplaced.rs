//! Remedies for words in the wrong place.

use pgserver::Major;

use super::{foreign, intended, is_sql};
use crate::app::command_line::shown;
use crate::app::size::Size;
use crate::cmd::tps::database;

/// The remedy for the value of a setting after a space: `--set work_mem 64MB`.
pub(super) fn setting(words: &[String], value: &str) -> Option<String> {
    let at = words.iter().rposition(|word| word == value)?;
    let [.., option, name] = &words[..at] else { return None };
    let set = shown(&[format!("{name}={value}")]);
    let is_it = option == "--set" && !name.contains('=');
    is_it.then(|| format!("unexpected argument {value}: write --set {set}\n"))
}

/// The remedy for a word in the wrong place, or one that needs an option before it.
pub(super) fn remedy(words: &[String], word: &str) -> Option<String> {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["ab", rest @ ..] = names.as_slice()
        && rest.contains(&"pgrig")
    {
        let text = "put each command in quotes: pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -c 4'\n";
        return Some(text.to_owned());
    }
    if word.starts_with('-') {
        return None;
    }
    let option = |told: String| Some(format!("unexpected argument {word}; to name {told}\n"));
    match names.as_slice() {
        ["size", rest @ ..] if is_after(rest, "--json", word) => Some(format!(
            "--json of pgrig size writes to standard output: write {} > {word}\n",
            without_file(words, word)
        )),
        ["size", first, ..] if !first.starts_with('-') => {
            Some(format!("unexpected argument {word}: give one SIZE\n"))
        }
        ["blockio", ..] if is_size(word) => Some(format!("unexpected argument {word}: give one SIZE\n")),
        ["server", "fetch", ..] => option(version(word)),
        ["server", "start", rest @ ..] if is_after(rest, "--tcp", word) => Some(port(words, word)),
        ["server", action, ..] if is_of_instance(action) => {
            option(format!("an instance, give --instance {word}"))
        }
        ["model", "capture", ..] if is_file(word) || has_database(words) => {
            option(format!("the file of the model, give -o {word}"))
        }
        ["testdb", "new" | "serve", ..] if is_file(word) => {
            option(format!("a file of SQL, give --from {word}"))
        }
        ["testdb", "new" | "serve", ..] => option(format!("the database to copy, give --template {word}")),
        ["testdb", "list", ..] => option(format!("a database, give -d {word}")),
        ["runs", "list", ..] => {
            Some(format!("unexpected argument {word}: to show one run, run pgrig runs show {word}\n"))
        }
        ["testdb", "bench", ..] => {
            Some(format!("write -- before the command to measure: {}\n", intended::bench(words, word)))
        }
        ["fill", first, ..] => Some(second_of_fill(first, word)),
        ["backup", "check", ..] => {
            Some(format!("unexpected argument {word}: give one backup; run the command once for each\n"))
        }
        ["compare", ..] => Some(
            "give two runs or labels; for several runs on a side: pgrig compare --baseline RUN RUN --candidate RUN RUN\n"
                .to_owned(),
        ),
        ["tps", ..] => {
            let told = database::instead(word, &of_servers(words)).unwrap_or_else(|| {
                "give one database; to divide the clients over several, repeat -d".to_owned()
            });
            Some(format!("unexpected argument {word}: {told}\n"))
        }
        ["model", "capture", ..] | ["backup", "rehearse", ..] | ["doctor" | "blockio", ..] => {
            option(format!("a database, give -d {word}"))
        }
        _ => None,
    }
}

/// Whether a word follows this option.
fn is_after(names: &[&str], option: &str, word: &str) -> bool {
    names.windows(2).any(|pair| pair == [option, word])
}

/// The remedy for a port as the value of --tcp.
pub(super) fn port(words: &[String], port: &str) -> String {
    format!("--tcp has no value: leave out {port}; {}\n", foreign::free_port(words))
}

/// Whether a command of `pgrig server` has the option --instance, and no argument.
fn is_of_instance(action: &str) -> bool {
    ["start", "stop", "restart", "status", "logs", "destroy"].contains(&action)
}

/// The options that name a server, for a command: ` -h db`.
fn of_servers(words: &[String]) -> String {
    let options = intended::of_servers(words);
    if options.is_empty() { String::new() } else { format!(" {}", shown(&options)) }
}

/// Whether a word is a size.
fn is_size(word: &str) -> bool {
    word.parse::<Size>().is_ok()
}

/// Whether a word looks like the name of a file.
fn is_file(word: &str) -> bool {
    word.contains(['.', '/']) && !word.contains("://") && !word.contains('=')
}

/// Whether -d names a database.
fn has_database(words: &[String]) -> bool {
    words.iter().any(|word| word.starts_with("-d") || word.starts_with("--dbname"))
}

/// The option for a version of PostgreSQL: pgrig knows major versions only.
fn version(word: &str) -> String {
    let major = word.split('.').next().unwrap_or_default();
    match major.parse::<Major>() {
        Ok(_) if major == word => format!("a version, give --pg-version {major}"),
        Ok(_) => format!("a major version, give --pg-version {major}"),
        Err(_) => format!("a version, give --pg-version {} to {}", Major::OLDEST, Major::NEWEST),
    }
}

/// The remedy for a second argument of `fill`: one of the two may be a database, or a file of SQL.
fn second_of_fill(first: &str, second: &str) -> String {
    let is_size = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let database = match (is_size(first), is_size(second)) {
        (_, false) => second,
        (false, true) if !first.starts_with('-') => first,
        _ => return format!("unexpected argument {second}: give one SIZE\n"),
    };
    if is_sql(database) {
        return format!("unexpected argument {database}; to name a file of SQL, give --ddl {database}\n");
    }
    format!("unexpected argument {database}; to name a database, give -d {database}\n")
}

/// The command line without --json's file.
fn without_file(words: &[String], file: &str) -> String {
    let kept: Vec<String> = words.iter().filter(|word| *word != file).cloned().collect();
    format!("pgrig {}", shown(&kept))
}
