//! The commands that are meant by some wrong command lines.

use clap::CommandFactory;

use super::elsewhere::OF_SERVERS;
use super::{is_verb, path, suggested};
use crate::app::command_line::shown;
use crate::cmd::line::Cli;
use crate::cmd::testdb::bench::words::divided;

/// Commands of `pgrig server` that users give without `server`.
const OF_SERVER: [&str; 8] = ["start", "stop", "restart", "url", "logs", "psql", "fetch", "destroy"];

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
    let names_none = || !words.iter().any(|word| word.starts_with("--instance"));
    if !OF_SERVER.contains(&verb) || verb == "destroy" && names_none() {
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

/// The remedy for a command that restores a backup.
pub(super) fn restore(words: &[String], command: &str) -> String {
    let names =
        words.iter().skip_while(|word| *word != command).skip(1).filter(|word| !word.starts_with('-'));
    let names: Vec<&String> = names.collect();
    let is_path = |name: &&&String| name.contains(['.', '/']) && !name.contains("://");
    let file = names.iter().find(is_path).or(names.last()).map_or("FILE", |name| name.as_str());
    format!(
        "there is no command {command}: pgrig backup check {} --restore restores a backup on a server of pgrig's own, and checks it; \
         to keep the tables, run PostgreSQL's own pg_restore\n",
        shown(&[file.to_owned()])
    )
}

/// The command of `backup` for a file or a database, with all other words.
pub(super) fn backup(words: &[String], name: &str) -> String {
    let is_path = name.contains(['.', '/']) && !name.contains("://");
    let meant: &[&str] = if is_path { &["check", name] } else { &["rehearse", "-d", name] };
    let kept = words.iter().flat_map(|word| {
        if word == name { meant.iter().map(|&word| word.to_owned()).collect() } else { vec![word.clone()] }
    });
    format!("pgrig {}", shown(&kept.collect::<Vec<_>>()))
}

/// The options that name a server, with their values.
pub(super) fn of_servers(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if OF_SERVERS.contains(&word.as_str()) {
            kept.extend([word.clone()].into_iter().chain(rest.next().cloned()));
        } else if OF_SERVERS.iter().any(|option| is_joined(word, option)) {
            kept.push(word.clone());
        }
    }
    kept
}

/// Options of `pgbench -i` with a value that `pgrig fill` has under the same name.
const OF_PGBENCH: [&str; 16] = [
    "-h",
    "--host",
    "-p",
    "--port",
    "-U",
    "--username",
    "-d",
    "--dbname",
    "-I",
    "--init-steps",
    "-F",
    "--fillfactor",
    "--tablespace",
    "--index-tablespace",
    "--partitions",
    "--partition-method",
];

/// Options of pgbench with a value that `pgrig fill` does not have.
const OF_LOAD: [&str; 22] = [
    "-b",
    "--builtin",
    "-c",
    "--client",
    "-D",
    "--define",
    "-f",
    "--file",
    "-j",
    "--jobs",
    "-L",
    "--latency-limit",
    "-M",
    "--protocol",
    "-P",
    "--progress",
    "-R",
    "--rate",
    "-T",
    "--time",
    "-t",
    "--transactions",
];

/// Options of `pgbench -i` without a value, with those of `pgrig fill`.
const SWITCHES: [(&str, &str); 4] = [
    ("-q", "-q"),
    ("--quiet", "-q"),
    ("--foreign-keys", "--foreign-keys"),
    ("--unlogged-tables", "--unlogged"),
];

/// pgbench's options that leave out the vacuum; `pgrig fill` has only steps.
const NO_VACUUM: [&str; 2] = ["-n", "--no-vacuum"];

/// Options that name the steps.
const STEPS: [&str; 2] = ["-I", "--init-steps"];

/// The steps of `pgrig fill` without the vacuum.
fn without_vacuum(words: &[String]) -> String {
    let given = STEPS.iter().find_map(|option| value_of(words, option));
    let given = given.map(|steps| steps.replace('v', "")).filter(|steps| !steps.is_empty());
    given.unwrap_or_else(|| "tgp".to_owned())
}

/// The remedy for pgbench's -i without a verb: the same tables, on the same server.
pub(super) fn initialize(words: &[String]) -> String {
    let scale = value_of(words, "-s").or_else(|| value_of(words, "--scale"));
    let scale = scale.filter(|scale| scale.parse::<u64>().is_ok()).unwrap_or_else(|| "N".to_owned());
    let mut kept = vec!["fill".to_owned(), "--scale".to_owned(), scale];
    let no_vacuum = words.iter().find(|word| NO_VACUUM.contains(&word.as_str()));
    let mut left_out = vec!["-s", "--scale"];
    if no_vacuum.is_some() {
        left_out.extend(STEPS);
    }
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if Some(word) == no_vacuum {
            kept.extend(["-I".to_owned(), without_vacuum(words)]);
        } else if left_out.iter().any(|option| option == word) || OF_LOAD.contains(&word.as_str()) {
            rest.next();
        } else if OF_PGBENCH.contains(&word.as_str()) {
            kept.extend([word.clone()].into_iter().chain(rest.next().cloned()));
        } else if OF_PGBENCH.iter().any(|option| is_joined(word, option) && !left_out.contains(option)) {
            kept.push(word.clone());
        } else if let Some((_, switch)) = SWITCHES.iter().find(|(given, _)| given == word) {
            kept.push((*switch).to_owned());
        } else if !word.starts_with('-') {
            kept.extend(["-d".to_owned(), word.clone()]);
        }
    }
    format!("pgrig fill does the work of pgbench -i: run pgrig {}", shown(&kept))
}

/// Whether a word is this option with its value: `-p5432`, `--port=5432`.
pub(super) fn is_joined(word: &str, option: &str) -> bool {
    let value = word.strip_prefix(option).filter(|value| !value.is_empty());
    value.is_some_and(|value| !option.starts_with("--") || value.starts_with('='))
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
            ("destroy --instance old", "destroy", "pgrig server destroy --instance old"),
            ("help url", "url", "pgrig help server url"),
        ] {
            assert_eq!(of_server(&words(line), verb).as_deref(), Some(meant));
        }
        assert_eq!(of_server(&words("frobnicate"), "frobnicate"), None);
        assert_eq!(of_server(&words("destroy"), "destroy"), None);
    }

    #[test]
    fn a_command_of_backup_keeps_the_other_words() {
        for (line, word, meant) in [
            ("backup shop", "shop", "pgrig backup rehearse -d shop"),
            ("backup shop -h db --trials 3", "shop", "pgrig backup rehearse -d shop -h db --trials 3"),
            ("backup a.dump --restore", "a.dump", "pgrig backup check a.dump --restore"),
            (
                "-q backup postgresql://db/shop",
                "postgresql://db/shop",
                "pgrig -q backup rehearse -d postgresql://db/shop",
            ),
        ] {
            assert_eq!(backup(&words(line), word), meant);
        }
        assert_eq!(
            of_servers(&words("backup check -h db -p5433 --bin x --dbname=d")).join(" "),
            "-h db -p5433 --dbname=d"
        );
    }

    #[test]
    fn tables_of_pgbench_are_made_on_the_server_that_is_named() {
        for (line, meant) in [
            ("-i -s 10", "fill --scale 10"),
            ("-i -s10 shop", "fill --scale 10 -d shop"),
            ("-i --scale=10 -F 90 -q -n", "fill --scale 10 -F 90 -q -I tgp"),
            ("-i", "fill --scale N"),
            ("-i -s 10 -c 4 -f a.sql shop", "fill --scale 10 -d shop"),
            (
                "-i -s 10 -h 127.0.0.1 -p5433 --username=bob shop --unlogged-tables",
                "fill --scale 10 -h 127.0.0.1 -p5433 --username=bob -d shop --unlogged",
            ),
        ] {
            let told = initialize(&words(line));
            assert_eq!(told, format!("pgrig fill does the work of pgbench -i: run pgrig {meant}"));
        }
    }
}
