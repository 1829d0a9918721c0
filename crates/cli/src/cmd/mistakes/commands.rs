//! Words that users give instead of a command of a verb, with the command line that they mean.

use clap::Parser;

use super::foreign;
use crate::app::command_line::shown;
use crate::cmd::line::Cli;

/// A verb, words that users give after it, the command that is meant, and that command with the arguments that it needs.
type Meant = (&'static str, &'static [&'static str], &'static str, &'static str);

/// Words after a verb that mean one of its commands.
const OF_VERBS: [Meant; 16] = [
    ("testdb", &["rm", "remove", "delete", "destroy", "dropdb"], "drop", "drop NAME"),
    ("testdb", &["ls", "status", "ps", "show"], "list", "list"),
    ("testdb", &["create", "createdb", "lend", "clone", "copy"], "new", "new"),
    ("testdb", &["run", "measure", "test"], "bench", "bench -- COMMAND"),
    ("runs", &["ls", "history"], "list", "list"),
    ("runs", &["delete", "remove", "drop", "destroy"], "rm", "rm RUN"),
    ("runs", &["cat", "view", "print", "get"], "show", "show RUN"),
    ("server", &["ls", "list", "ps", "info", "show"], "status", "status"),
    ("server", &["rm", "remove", "delete", "drop"], "destroy", "destroy --instance NAME"),
    ("server", &["log", "tail"], "logs", "logs"),
    ("server", &["sql", "query", "exec", "connect", "shell"], "psql", "psql -- -c 'SQL'"),
    ("server", &["kill", "shutdown", "down"], "stop", "stop"),
    ("server", &["download", "install"], "fetch", "fetch"),
    ("model", &["create", "make", "dump", "extract"], "capture", "capture -d DBNAME -o FILE"),
    ("model", &["diff", "compare", "verify"], "check", "check ORIGINAL COPY"),
    ("backup", &["run", "measure", "test", "bench"], "rehearse", "rehearse -d DBNAME"),
];

/// The remedy for a word after a verb that is not one of its commands, if the intended command is known.
pub(super) fn instead(words: &[String], word: &str) -> Option<String> {
    let at = words.iter().position(|given| given == word)?;
    let verb = words[..at].iter().rfind(|given| !given.starts_with('-'))?.as_str();
    let rest = &words[at + 1..];
    match (verb, word) {
        ("server", "upgrade" | "pg_upgrade" | "update") => return Some(of_upgrade()),
        ("server", "reload") => {
            let instance = foreign::instance(words);
            return Some(format!("run pgrig server psql{instance} -- -c 'SELECT pg_reload_conf()'"));
        }
        ("model", "fill" | "load" | "apply" | "use") => return Some(of_model(rest)),
        ("runs", "diff" | "cmp" | "compare") => return Some(of_verb("compare", rest)),
        ("runs", "report") => return Some(of_verb("report", rest)),
        ("runs", "merge") => return Some(of_verb("merge", rest)),
        _ => {}
    }
    let is_it = |(of, given, ..): &&Meant| *of == verb && given.contains(&word);
    let (.., command, example) = OF_VERBS.iter().find(is_it)?;
    let meant = [&words[..at], &[(*command).to_owned()], rest].concat();
    let arguments = std::iter::once("pgrig").chain(meant.iter().map(String::as_str));
    if Cli::try_parse_from(arguments).is_ok() {
        return Some(format!("run pgrig {}", shown(&meant)));
    }
    Some(format!("use pgrig {verb} {example}"))
}

/// The way to another version of PostgreSQL.
fn of_upgrade() -> String {
    "an instance keeps the version of its first start, and its data: a new instance can have another one, for example pgrig server start --instance \
     new --pg-version 18"
        .to_owned()
}

/// `fill` with a model: `model fill m.toml`.
fn of_model(rest: &[String]) -> String {
    let mut meant = vec!["fill".to_owned()];
    match rest.first() {
        Some(first) if !first.starts_with('-') => meant.push("--model".to_owned()),
        Some(_) => {}
        None => meant.extend(["--model", "FILE"].map(str::to_owned)),
    }
    meant.extend_from_slice(rest);
    format!("run pgrig {}", shown(&meant))
}

/// A verb with the words that follow.
fn of_verb(verb: &str, rest: &[String]) -> String {
    let words: Vec<String> = std::iter::once(verb.to_owned()).chain(rest.iter().cloned()).collect();
    format!("run pgrig {}", shown(&words))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cmd::line::parse;

    /// The remedies, each with the command line that it is for. Each command that one names is read without an error.
    #[test]
    fn commands_of_a_verb_keep_the_other_words() {
        for (line, word, told) in [
            ("testdb rm x -h db", "rm", "pgrig testdb drop x -h db"),
            ("testdb ls --instance old", "ls", "pgrig testdb list --instance old"),
            ("runs delete latest", "delete", "pgrig runs rm latest"),
            ("runs diff a b", "diff", "pgrig compare a b"),
            ("server rm --instance old", "rm", "pgrig server destroy --instance old"),
            (
                "server reload --instance old",
                "reload",
                "pgrig server psql --instance old -- -c 'SELECT pg_reload_conf()'",
            ),
            ("model fill m.toml -d copy", "fill", "pgrig fill --model m.toml -d copy"),
            ("server upgrade", "upgrade", "pgrig server start --instance new --pg-version 18"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let remedy = instead(&words, word).unwrap();
            assert!(remedy.ends_with(told), "{line}: {remedy}");
            let arguments: Vec<OsString> =
                shlex::split(told).unwrap().into_iter().map(OsString::from).collect();
            assert!(parse(&arguments).is_ok(), "{told}");
        }
    }

    #[test]
    fn a_command_that_needs_more_is_named_with_its_arguments() {
        for (line, word, told) in [
            ("testdb rm", "rm", "use pgrig testdb drop NAME"),
            ("server delete", "delete", "use pgrig server destroy --instance NAME"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(instead(&words, word).as_deref(), Some(told));
        }
        assert_eq!(instead(&["rm".to_owned()], "rm"), None);
    }
}
