//! The commands that are meant by some wrong command lines.

use clap::CommandFactory;

use super::{is_verb, path, suggested};
use crate::app::command_line::shown;
use crate::cmd::line::Cli;
use crate::cmd::testdb::bench::words::divided;

/// Commands of `pgrig server` that users give without `server`.
const OF_SERVER: [&str; 7] = ["start", "stop", "restart", "url", "logs", "psql", "fetch"];

/// The remedy for `help` after a verb.
pub(super) fn help(words: &[String]) -> Option<String> {
    match words {
        [verb, help, ..] if help == "help" && is_verb(verb) => {
            Some(format!("for help, run pgrig help {verb}\n"))
        }
        _ => None,
    }
}

/// The command line with `server`, if the verb is one of its commands: `pgrig server psql`.
pub(super) fn of_server(words: &[String], verb: &str) -> Option<String> {
    if !OF_SERVER.contains(&verb) {
        return None;
    }
    if words.first().is_some_and(|word| word == "help") {
        return Some(format!("pgrig help server {verb}"));
    }
    let at = words.iter().position(|word| word == verb)?;
    let mut rest = words[at..].to_vec();
    let option = rest.iter().position(|word| word.starts_with('-'));
    if let Some(option) = option.filter(|option| verb == "psql" && !is_of_pgrig(&rest[*option])) {
        rest.insert(option, "--".to_owned());
    }
    Some(format!("pgrig server {}", shown(&rest)))
}

/// Whether `server psql` itself has the option, or it ends pgrig's options.
fn is_of_pgrig(option: &str) -> bool {
    option == "--" || option.split('=').next() == Some("--instance")
}

/// The command that is meant by a misspelt one after `help`.
pub(super) fn after_help(words: &[String]) -> Option<String> {
    let rest = words.split_first().filter(|(help, _)| *help == "help")?.1;
    let arguments = std::iter::once("pgrig").chain(rest.iter().map(String::as_str));
    let error = Cli::command().try_get_matches_from(arguments).err()?;
    let suggested = suggested(&error)?;
    Some(format!("{} {suggested}", path(rest).replacen("pgrig", "pgrig help", 1)))
}

/// The remedy for pgbench's -i without a verb.
pub(super) fn initialize(words: &[String]) -> String {
    let scale = value_of(words, "-s").or_else(|| value_of(words, "--scale"));
    let scale = scale.filter(|scale| scale.parse::<u64>().is_ok()).unwrap_or_else(|| "N".to_owned());
    format!("pgrig fill does the work of pgbench -i: run pgrig fill --scale {scale}")
}

/// The value of an option: the next word, or the rest of its own.
pub(super) fn value_of(words: &[String], option: &str) -> Option<String> {
    let at = words.iter().position(|word| word.starts_with(option))?;
    let rest = words[at][option.len()..].trim_start_matches('=');
    if rest.is_empty() { words.get(at + 1).cloned() } else { Some(rest.to_owned()) }
}

/// The command line of `testdb bench` with `--` before the command, and pgrig's own options before that.
pub(super) fn bench(words: &[String], command: &str) -> String {
    let (own, rest) = divided(words, command);
    format!("pgrig {} -- {}", shown(&own), shown(&rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_of_bench_go_before_the_dashes() {
        for (line, meant) in [
            ("testdb bench pytest --from shops.sql", "pgrig testdb bench --from shops.sql -- pytest"),
            (
                "testdb bench --rounds 6 pytest -x --no-warm-up --from=a.sql --maxfail 2",
                "pgrig testdb bench --rounds 6 --no-warm-up --from=a.sql -- pytest -x --maxfail 2",
            ),
        ] {
            assert_eq!(bench(&words(line), "pytest"), meant);
        }
    }

    #[test]
    fn a_command_of_the_server_can_be_pasted() {
        for (line, verb, meant) in [
            ("psql", "psql", "pgrig server psql"),
            ("-q psql shop -c TABLE", "psql", "pgrig server psql shop -- -c TABLE"),
            ("psql --instance old", "psql", "pgrig server psql --instance old"),
            ("start --tcp", "start", "pgrig server start --tcp"),
            ("help url", "url", "pgrig help server url"),
        ] {
            assert_eq!(of_server(&words(line), verb).as_deref(), Some(meant));
        }
        assert_eq!(of_server(&words("frobnicate"), "frobnicate"), None);
    }
}
