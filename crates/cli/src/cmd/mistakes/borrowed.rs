//! Remedies for options that this verb has under another name, or that another verb has: the command line that works, with all
//! other words of the user's.

use std::path::Path;

use clap::Parser;

use super::elsewhere::value;
use super::{intended, path};
use crate::app::command_line::shown;
use crate::app::instance;
use crate::cmd::line::Cli;

/// The first words of a command line that name a verb or one of its commands.
type Named = &'static [&'static str];

/// Verbs with --json and --report.
const MEASURING: [Named; 7] =
    [&["tps"], &["blockio"], &["fill"], &["micro"], &["ddl"], &["backup", "rehearse"], &["testdb", "bench"]];

/// Options with the words that stand for them; `{}` in these is the value, or the last word where the value is missing.
const RENAMED: [(&[Named], &[&str], &str, &str); 7] = [
    (
        &[&["tps"], &["blockio"], &["backup", "rehearse"]],
        &["--rounds", "--runs", "--repeat", "--iterations"],
        "--trials {}",
        "N",
    ),
    (&[&["testdb", "bench"]], &["--trials", "--runs", "--repeat", "--iterations"], "--rounds {}", "N"),
    (&[&["tps"]], &["--seed"], "--random-seed {}", "SEED"),
    (&[&["fill"], &["micro"], &["ddl"], &["testdb", "bench"]], &["--random-seed"], "--seed {}", "N"),
    (&[&["testdb", "new"], &["testdb", "serve"]], &["--copy", "--clone", "-T"], "--template {}", "DBNAME"),
    (&[&["merge"]], &["--json"], "-o {}", "FILE"),
    (&[&["fill"]], &["--up-to"], "{}", "SIZE"),
];

/// Options with the words after `has no OPTION`; `{}` in these is the value, or the last word where the value is missing.
const TOLD: [(&[Named], &[&str], &str, &str); 12] = [
    (
        &[&["micro"]],
        &["--trials", "--rounds", "--runs", "--repeat", "--iterations"],
        ": it measures as many rounds as --budget has time for, for example --budget 30s",
        "",
    ),
    (
        &[&["ddl"]],
        &["--timeout", "--lock-timeout"],
        ": begin the migration with SET lock_timeout = '{}';",
        "2s",
    ),
    (
        &[&["ddl"]],
        &["--statement-timeout"],
        ": begin the migration with SET statement_timeout = '{}';",
        "10min",
    ),
    (
        &[&["fill"]],
        &["--force", "--overwrite", "--replace", "--clean"],
        ": --drop first drops pgbench's tables, and --append adds rows to tables; empty tables of your own with TRUNCATE",
        "",
    ),
    (&[&["fill"]], &["-P", "--progress"], ": leave it out; the progress needs no option", ""),
    (
        &[&["testdb", "new"]],
        &["--name", "-n"],
        ": leave it out; pgrig chooses the name, and prints it in PGDATABASE and DATABASE_URL",
        "",
    ),
    (&[&["testdb", "list"], &["server", "status"]], &["--all", "-a"], ": leave it out; it lists all", ""),
    (
        &[&["server", "stop"], &["server", "restart"]],
        &["-m", "--mode"],
        ": leave it out; pgrig always stops the server as pg_ctl does with -m fast",
        "",
    ),
    (
        &[&["server", "stop"], &["server", "restart"], &["server", "destroy"]],
        &["--all", "-a"],
        ": run the command once for each instance, with --instance NAME (pgrig server status lists the instances)",
        "",
    ),
    (&[&["tps"]], &["--rows"], ": pgrig fill --rows {}{server} makes the tables before", "N"),
    (&[&["tps"]], &["--size"], ": pgrig fill {}{server} makes the tables before", "SIZE"),
    (
        &[&["fill"], &["testdb", "drop"], &["runs", "rm"], &["runs", "prune"], &["server", "destroy"]],
        &["-y", "--yes"],
        ": leave it out; pgrig never asks",
        "",
    ),
];

/// Settings that users give to `server start` as options, as `postgres` takes them.
const SETTINGS: [&str; 16] = [
    "archive_mode",
    "autovacuum",
    "checkpoint_timeout",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "maintenance_work_mem",
    "max_connections",
    "max_wal_senders",
    "max_wal_size",
    "shared_buffers",
    "shared_preload_libraries",
    "synchronous_commit",
    "wal_level",
    "work_mem",
];

/// The remedy for an option that this verb has under another name, or that another verb has.
pub(super) fn remedy(words: &[String], names: &[&str], option: &str) -> Option<String> {
    let is_of = |verbs: &[Named], options: &[&str]| {
        verbs.iter().any(|verb| names.starts_with(verb)) && options.contains(&option)
    };
    let path = path(words);
    if let Some((.., template, missing)) = RENAMED.iter().find(|(verbs, options, ..)| is_of(verbs, options)) {
        return Some(format!("{path} has no {option}{}", renamed(words, option, template, missing)));
    }
    if let Some((.., template, missing)) = TOLD.iter().find(|(verbs, options, ..)| is_of(verbs, options)) {
        let told = template.replace("{}", &value(words, option, missing));
        return Some(format!("{path} has no {option}{}", told.replace("{server}", &of_servers(words))));
    }
    if is_of(&MEASURING, &["-o", "--output"]) {
        let is_page = Path::new(&value(words, option, "")).extension().is_some_and(|ending| ending == "html");
        let template = if is_page { "--report {}" } else { "--json {}" };
        return Some(format!("{path} has no {option}{}", renamed(words, option, template, "FILE")));
    }
    let told = match names {
        ["tps", ..] if option == "--schema" => of_schema(words),
        ["runs" | "compare" | "report", ..] => of_runs(words, names, option)?,
        ["server", "logs", ..] if ["-n", "--lines", "--tail"].contains(&option) => {
            let kept = command(&replaced(words, option, None));
            format!(": run {kept} | tail -n {}", value(words, option, "10"))
        }
        ["server", "start", ..] => of_start(words, option)?,
        _ => return None,
    };
    Some(format!("{path} has no {option}{told}"))
}

/// The command line with other words for an option, or only these words if the command line has other mistakes.
fn renamed(words: &[String], option: &str, template: &str, missing: &str) -> String {
    let instead = template.replace("{}", &given(words, option).unwrap_or_else(|| missing.to_owned()));
    let meant = match template.split_once(' ') {
        Some((option, _)) => {
            vec![option.to_owned(), instead[option.len() + 1..].to_owned()]
        }
        None => vec![instead],
    };
    let all = replaced(words, option, Some(&meant));
    if is_valid(&all) {
        format!(": run {}", command(&all))
    } else if meant.len() > 1 {
        format!("; give {}", shown(&meant))
    } else {
        format!(": write {} without it, and only once", shown(&meant))
    }
}

/// The value of an option as the user wrote it.
fn given(words: &[String], option: &str) -> Option<String> {
    intended::value_of(words, option).filter(|value| !value.starts_with('-'))
}

/// The words with others instead of an option and its value.
fn replaced(words: &[String], option: &str, instead: Option<&[String]>) -> Vec<String> {
    let Some(at) = words.iter().position(|word| word.starts_with(option)) else { return words.to_vec() };
    let has_own_word = words[at] == option && given(words, option).is_some();
    let end = at + 1 + usize::from(has_own_word);
    [&words[..at], instead.unwrap_or_default(), &words[end..]].concat()
}

/// Whether pgrig reads these words without an error.
fn is_valid(words: &[String]) -> bool {
    let arguments = std::iter::once("pgrig").chain(words.iter().map(String::as_str));
    Cli::try_parse_from(arguments).is_ok()
}

/// The command line of these words.
fn command(words: &[String]) -> String {
    format!("pgrig {}", shown(words))
}

/// The options that name a server, after a space.
fn of_servers(words: &[String]) -> String {
    let options = intended::of_servers(words);
    if options.is_empty() { String::new() } else { format!(" {}", shown(&options)) }
}

/// The remedy for --schema of `tps`. PGOPTIONS reaches every server but pgrig's own.
fn of_schema(words: &[String]) -> String {
    let schema = given(words, "--schema").unwrap_or_else(|| "SCHEMA".to_owned());
    let is_of_database = |word: &&String| word.starts_with("-d") || word.starts_with("--dbname");
    let database = match words.iter().find(is_of_database) {
        Some(word) if word.starts_with("--") => given(words, "--dbname"),
        Some(_) => given(words, "-d"),
        None => None,
    };
    let name = given(words, "--instance");
    let database = database.filter(|_| name.is_some()).unwrap_or_else(|| "postgres".to_owned());
    let sql = format!(
        "ALTER DATABASE {} SET search_path TO {}, public",
        server::quote::shown(&database),
        server::quote::shown(&schema)
    );
    let on_own = instance::run_sql(name.as_deref().unwrap_or("default"), "postgres", &sql);
    if name.is_some() {
        return format!(": run {on_own} first, then the command without --schema");
    }
    let listed = server::quote::shown(&schema).replace('\\', "\\\\").replace(' ', "\\ ");
    let path = server::quote::shell_word(&format!("-c search_path={listed}"));
    let rest = command(&replaced(words, "--schema", None));
    format!(": run PGOPTIONS={path} {rest} (for pgrig's own server, run {on_own} first instead)")
}

/// The remedy for options of `runs`, `compare` and `report` that one of the others has.
fn of_runs(words: &[String], names: &[&str], option: &str) -> Option<String> {
    let format = given(words, option).unwrap_or_default();
    let told = match names {
        ["compare", ..] if ["-o", "--output", "--report", "--html"].contains(&option) => {
            let file = given(words, option).unwrap_or_else(|| "report.html".to_owned());
            let mut report = replaced(words, option, Some(&["-o".to_owned(), file]));
            "report".clone_into(&mut report[0]);
            if !is_valid(&report) {
                return Some(": pgrig report RUN… -o FILE writes a page with plots of these runs".to_owned());
            }
            format!(": run {} for a page with plots of these runs", command(&report))
        }
        ["report", ..] if option == "--json" => {
            let runs = words[1..].iter().take_while(|word| !word.starts_with('-')).cloned();
            let run = runs.last().unwrap_or_else(|| "latest".to_owned());
            let show = command(&["runs", "show", run.as_str(), "--json"].map(str::to_owned));
            let file = value(words, option, "FILE");
            format!(": run {show} > {file} for the run document")
        }
        ["runs", "list" | "show", ..] if option == "--format" && format == "json" => {
            format!(": run {}", command(&replaced(words, option, Some(&["--json".to_owned()]))))
        }
        ["runs", "show", ..] if option == "--format" && ["csv", "md", "html", "svg"].contains(&&*format) => {
            let report: Vec<String> =
                std::iter::once("report".to_owned()).chain(words[2..].iter().cloned()).collect();
            format!(": run {}", command(&report))
        }
        ["runs", "list" | "show", ..] if option == "--format" => {
            ": --json prints JSON; pgrig report RUN… --format csv writes the figures of runs".to_owned()
        }
        _ => return None,
    };
    Some(told)
}

/// The remedy for an option of `server start` that is a setting, or names a directory.
fn of_start(words: &[String], option: &str) -> Option<String> {
    if ["-D", "--pgdata", "--data-directory", "--data-dir"].contains(&option) {
        let directory = value(words, option, "DIR");
        let rest = command(&replaced(words, option, None));
        return Some(format!(
            ": PGRIG_HOME names the directory for all instances, which every command needs: run export PGRIG_HOME={directory}, then \
             {rest}"
        ));
    }
    let setting = option.strip_prefix("--")?.replace('-', "_");
    SETTINGS.contains(&setting.as_str()).then(|| {
        let value = given(words, option).unwrap_or_else(|| "VALUE".to_owned());
        let meant = ["--set".to_owned(), format!("{setting}={value}")];
        format!(": run {}", command(&replaced(words, option, Some(&meant))))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::elsewhere;
    use crate::cmd::line::parse;

    /// The remedies, each with the command line that it is for. Each command that one names is read without an error.
    #[test]
    fn options_of_other_verbs_get_commands_that_keep_the_other_words() {
        for (line, option, told) in [
            ("tps --rounds 5 -S -d shop", "--rounds", "pgrig tps --trials 5 -S -d shop"),
            ("tps -S --rounds=5", "--rounds", "pgrig tps -S --trials 5"),
            ("blockio 1GB --repeat 2", "--repeat", "pgrig blockio 1GB --trials 2"),
            (
                "testdb bench --trials 3 -- pytest -x",
                "--trials",
                "pgrig testdb bench --rounds 3 -- pytest -x",
            ),
            ("tps --seed 7", "--seed", "pgrig tps --random-seed 7"),
            ("testdb new --copy shop -h db", "--copy", "pgrig testdb new --template shop -h db"),
            ("merge 1.json 2.json --json all.json", "--json", "pgrig merge 1.json 2.json -o all.json"),
            ("fill --up-to 10GB --table t", "--up-to", "pgrig fill 10GB --table t"),
            ("tps -S -o out.json", "-o", "pgrig tps -S --json out.json"),
            ("tps -oout.html", "-o", "pgrig tps --report out.html"),
            ("compare a b -o x.html", "-o", "pgrig report a b -o x.html for"),
            ("report a --json x.json", "--json", "pgrig runs show a --json >"),
            ("runs list --format json -n 5", "--format", "pgrig runs list --json -n 5"),
            ("runs show latest --format csv", "--format", "pgrig report latest --format csv"),
            ("server logs -n 20 --instance old", "-n", "pgrig server logs --instance old |"),
            (
                "server start --wal-level logical --tcp",
                "--wal-level",
                "pgrig server start --set wal_level=logical --tcp",
            ),
            ("server start --tcp -D /data", "-D", "pgrig server start --tcp"),
            ("tps --rows 1000 -S -h db", "--rows", "pgrig fill --rows 1000 -h db makes"),
            ("tps --schema app -S -h db", "--schema", "pgrig tps -S -h db ("),
            (
                "tps -S --schema app --instance old -d shop",
                "--schema",
                "pgrig server psql --instance old -- -c 'ALTER DATABASE shop SET search_path TO app, public' first",
            ),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let remedy = elsewhere::remedy(&words, option).unwrap();
            assert!(remedy.contains(told), "{line}: {remedy}");
            let command = told.trim_end_matches([' ', '>', '|', '(']);
            let command =
                [" for", " makes", " first"].iter().fold(command, |rest, end| rest.trim_end_matches(*end));
            let arguments: Vec<OsString> =
                shlex::split(command).unwrap().into_iter().map(OsString::from).collect();
            assert!(parse(&arguments).is_ok(), "{command}");
        }
    }

    #[test]
    fn a_command_line_with_other_mistakes_gets_only_the_option() {
        for (line, option, told) in [
            ("tps --rounds 5 --expalin", "--rounds", "pgrig tps has no --rounds; give --trials 5\n"),
            (
                "fill 5GB --up-to 10GB",
                "--up-to",
                "pgrig fill has no --up-to: write 10GB without it, and only once\n",
            ),
            ("testdb bench --trials", "--trials", "pgrig testdb bench has no --trials; give --rounds N\n"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(elsewhere::remedy(&words, option).as_deref(), Some(told));
        }
    }
}
