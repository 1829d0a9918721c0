//! Remedies for options of other verbs and other programs.

use clap::Arg;

use super::{TWO_MIGRATIONS, borrowed, command_of, foreign, intended, is_verb, path};
use crate::app::command_line::shown;
use crate::app::size::Size;

/// Options that name a server.
pub(super) const OF_SERVERS: [&str; 9] =
    ["-d", "--dbname", "-h", "--host", "-p", "--port", "-U", "--username", "--instance"];

/// Options of `fill` for the user's own tables.
const OF_OWN_TABLES: [&str; 6] = ["--ddl", "--schema-file", "--from", "--table", "--all-tables", "--model"];

/// The remedy for an option that another verb or program has.
pub(super) fn remedy(words: &[String], option: &str) -> Option<String> {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = of_any(words, option)
        .or_else(|| file(words, &names, option))
        .or_else(|| of_fill(words, &names, option))
        .or_else(|| of_backup(words, &names, option))
        .or_else(|| of_others(words, &names, option))
        .or_else(|| borrowed::remedy(words, &names, option))
        .or_else(|| foreign::command_first(words, option))
        .or_else(|| foreign::remedy(words, &names, option))?;
    Some(text + "\n")
}

/// The value of an option as a word for a shell, or `placeholder`.
pub(super) fn value(words: &[String], option: &str, placeholder: &str) -> String {
    let value = intended::value_of(words, option).filter(|value| !value.starts_with('-'));
    value.map_or_else(|| placeholder.to_owned(), |value| shown(&[value]))
}

/// The words with the values of this option as arguments.
fn as_arguments(words: &[String], option: &str) -> String {
    let is_long = option.starts_with("--");
    let kept = words.iter().filter_map(|word| match word.strip_prefix(option) {
        Some("") => None,
        Some(value) if !is_long || value.starts_with('=') => Some(value.trim_start_matches('=').to_owned()),
        _ => Some(word.clone()),
    });
    format!("pgrig {}", shown(&kept.collect::<Vec<_>>()))
}

/// The command line without this option and its value.
fn without(words: &[String], option: &str) -> String {
    let is_it = |word: &String| {
        word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let mut kept = words.to_vec();
    if let Some(at) = words.iter().position(is_it) {
        let has_value = words[at] == option && words.get(at + 1).is_some_and(|value| !value.starts_with('-'));
        kept.drain(at..=at + usize::from(has_value));
    }
    format!("pgrig {}", shown(&kept))
}

/// Whether a size is an argument, not the value of an option.
fn has_size(words: &[String]) -> bool {
    let is_value = |before: &str| before.starts_with('-') && !before.contains('=');
    words.windows(2).any(|pair| !is_value(&pair[0]) && pair[1].parse::<Size>().is_ok())
}

/// The remedy for an option that no verb has, or that is written before the verb.
fn of_any(words: &[String], option: &str) -> Option<String> {
    if let Some(text) = initialized(words).or_else(|| foreign::of_pgbench(words)) {
        return Some(text);
    }
    let text = match option {
        "-h" if !names_a_host(words) => "for help, give --help or -?; -h is the host of a server",
        "-v" => "for the version, give --version or -V",
        "--verbose" => {
            "pgrig has no --verbose: leave it out (-q prints less; --json FILE writes all figures of a measurement)"
        }
        "-W" | "--password" => {
            "pgrig never asks for a password: set PGPASSWORD, or put the password into ~/.pgpass"
        }
        "-w" | "--no-password" => "pgrig never asks for a password: leave out -w",
        _ => return displaced(words, option).or_else(|| database(words, option)),
    };
    Some(text.to_owned())
}

/// Whether -h has a host, in a command line without a verb.
fn names_a_host(words: &[String]) -> bool {
    let host = intended::value_of(words, "-h").filter(|host| !host.starts_with('-'));
    host.is_some() && !words.iter().any(|word| is_verb(word))
}

/// The remedy for `pgrig -i`, with any other options of `pgbench -i`.
fn initialized(words: &[String]) -> Option<String> {
    let is_asked = words.iter().any(|word| ["-i", "--initialize"].contains(&word.as_str()));
    let has_verb = words.iter().any(|word| is_verb(word));
    (is_asked && words.first()?.starts_with('-') && !has_verb).then(|| intended::initialize(words))
}

/// The remedy for an option before the verb.
fn displaced(words: &[String], option: &str) -> Option<String> {
    if !words.first()?.starts_with('-') {
        return None;
    }
    let at = words.iter().position(|word| is_verb(word))?;
    let moved = shown(&[&words[at..], &words[..at]].concat());
    Some(format!("write {option} after the command: pgrig {moved}"))
}

/// The remedy for the option with which other programs name a database.
fn database(words: &[String], option: &str) -> Option<String> {
    let (command, path) = command_of(words);
    let is_dbname = |argument: &Arg| argument.get_long() == Some("dbname") && !argument.is_hide_set();
    let is_meant = ["--database", "--db"].contains(&option) && command.get_arguments().any(is_dbname);
    is_meant.then(|| {
        format!("{path} has no {option}; to name a database, give -d {}", value(words, option, "DBNAME"))
    })
}

/// The remedy for the option with which other verbs and programs name a file.
fn file(words: &[String], names: &[&str], option: &str) -> Option<String> {
    if !["-f", "--file"].contains(&option) {
        return None;
    }
    let file = || value(words, option, "FILE");
    let is_command = |word: &&str| word.starts_with("-c") || word.starts_with("--command");
    if names.first() == Some(&"ddl") && names.iter().any(is_command) {
        return Some(format!("pgrig ddl has no {option}: {TWO_MIGRATIONS}"));
    }
    let told = match names {
        ["fill", ..] => format!("to name a file of SQL, give --ddl {}", file()),
        ["testdb", "new" | "bench" | "serve", ..] => format!("to name a file of SQL, give --from {}", file()),
        ["model", "capture", ..] => format!("to name the file of the model, give -o {}", file()),
        ["ddl", ..] | ["backup", "check", ..] | ["testdb", "unlog", ..] | ["model", "show", ..] => {
            format!("write the name of the file without it: {}", as_arguments(words, option))
        }
        _ => return None,
    };
    Some(format!("{} has no {option}; {told}", path(words)))
}

/// Whether a word sets the scale.
fn is_scale(word: &str) -> bool {
    word == "-s" || word == "--scale" || word.starts_with("--scale=")
}

/// The remedy for an option of pgbench's or psql's that `fill` does not have.
fn of_fill(words: &[String], names: &[&str], option: &str) -> Option<String> {
    let ["fill", ..] = names else { return None };
    let number = || intended::value_of(words, option).filter(|value| value.parse::<u64>().is_ok());
    let told = match option {
        "-c" if number().is_none() => "; to give SQL, write it into a file, and give --ddl FILE".to_owned(),
        "-c" | "--clients" | "-j" | "--jobs" | "--threads" | "--workers" | "--parallel" => {
            ": --streams N sets the number of connections that load rows".to_owned()
        }
        "-T" | "--time" => ": --for 10min stops the fill after this time".to_owned(),
        "-t" => format!("; to name a table, give --table {}", value(words, option, "TABLE")),
        "-n" | "--no-vacuum" => match number() {
            Some(rows) => format!("; to set the number of rows, give --rows {rows}"),
            None => ": -I tgp leaves out the vacuum; --rows N sets the number of rows".to_owned(),
        },
        "-i" | "--initialize" => {
            let has_amount = words.iter().any(|word| word.parse::<Size>().is_ok() || is_scale(word));
            let amount = if has_amount { "" } else { ", and give --scale N" };
            return Some(format!("pgrig fill does the work of pgbench -i: leave out -i{amount}"));
        }
        _ => return None,
    };
    Some(format!("pgrig fill has no {option}{told}"))
}

/// The remedy for an option that `backup` or one of its commands does not have.
fn of_backup(words: &[String], names: &[&str], option: &str) -> Option<String> {
    match names {
        ["backup", "check", ..] if OF_SERVERS.contains(&option) => {
            let mut server = intended::of_servers(words);
            if !server.iter().any(|word| word.starts_with("-d") || word.starts_with("--dbname")) {
                server.extend(["-d", "DBNAME"].map(str::to_owned));
            }
            let server = shown(&server);
            Some(format!(
                "pgrig backup check reads a backup and needs no server: leave out {option}; to measure backups of a database, give \
                 pgrig backup rehearse {server}"
            ))
        }
        ["backup", "rehearse", ..] => way(words, option),
        _ => None,
    }
}

/// The remedy for options of pg_dump's that are parts of a way.
fn way(words: &[String], option: &str) -> Option<String> {
    let told = match option {
        "-j" | "--jobs" => {
            let has_jobs =
                |way: &String| ["custom", "directory"].iter().any(|format| way.starts_with(*format));
            let way = intended::value_of(words, "--way").filter(has_jobs);
            let way = way.filter(|way| !way.contains("jobs=")).unwrap_or_else(|| "directory".to_owned());
            format!("--way {way},jobs={}", value(words, option, "N"))
        }
        "-F" | "--format" => match value(words, option, "").chars().next() {
            Some('c') => "--way custom".to_owned(),
            Some('d') => "--way directory".to_owned(),
            Some('p') => "--way plain".to_owned(),
            _ => "--way plain, custom, directory, base or base-tar".to_owned(),
        },
        "-Z" | "--compress" | "--compression" => format!("--way {}", shown(&[compressed(words, option)])),
        _ => return None,
    };
    Some(format!("pgrig backup rehearse has no {option}: give {told}"))
}

/// The way with the compression of an option of pg_dump's: a method, a level of gzip, or both like `zstd:3`.
fn compressed(words: &[String], option: &str) -> String {
    let given = intended::value_of(words, option).filter(|value| !value.starts_with('-'));
    let method = match given {
        Some(level) if level.parse::<u8>().is_ok() => format!("gzip={level}"),
        Some(method) => method.replacen(":level=", "=", 1).replacen(':', "=", 1),
        None => "zstd".to_owned(),
    };
    let is_of_dump =
        |way: &String| ["plain", "custom", "directory"].iter().any(|format| way.starts_with(*format));
    let way = intended::value_of(words, "--way").filter(is_of_dump).filter(|way| !way.contains(':'));
    let way = way.unwrap_or_else(|| "custom".to_owned());
    match way.split_once(',') {
        Some((format, jobs)) => format!("{format}:{method},{jobs}"),
        None => format!("{way}:{method}"),
    }
}

/// The remedy for options that other verbs do not have.
fn of_others(words: &[String], names: &[&str], option: &str) -> Option<String> {
    match names {
        ["ab", ..] => foreign::of_ab(words, option),
        ["ddl", ..] if option == "--trials" => Some(
            "pgrig ddl has no --trials: it runs the migration several times at each of three sizes; --quick runs it once"
                .to_owned(),
        ),
        ["micro", ..] if ["-e", "--expr", "--expression"].contains(&option) => {
            Some(format!("pgrig micro has no {option}; write each expression without it: {}", as_arguments(words, option)))
        }
        ["tps", ..] if ["--querymode", "--query-mode"].contains(&option) => {
            let mode = value(words, option, "prepared");
            Some(format!("pgrig tps has no {option}; to name the protocol, give -M {mode}"))
        }
        ["size", ..] if OF_OWN_TABLES.contains(&option) => {
            Some(format!("pgrig size calculates pgbench's tables: for your own, give {}", explained(words)))
        }
        ["fill" | "size" | "blockio", ..] if option == "--size" && has_size(words) => {
            Some(format!("{} has no {option}, and a size is given without it: {}", path(words), without(words, option)))
        }
        ["fill" | "size" | "blockio", ..] if option == "--size" => {
            Some(format!("{} has no {option}; write the size without it: {}", path(words), as_arguments(words, option)))
        }
        ["size", ..] if OF_SERVERS.contains(&option) => {
            Some(format!("pgrig size needs no server: leave out {option}"))
        }
        ["server", "psql", ..] if option.starts_with('-') => {
            Some(format!("write psql's options after --: {}", with_dashes(words, option)))
        }
        _ => None,
    }
}

/// The command line of `size` with `fill --explain` instead.
fn explained(words: &[String]) -> String {
    let mut words = words.to_vec();
    words.splice(..1, ["fill".to_owned()]);
    let is_amount = |word: &String| {
        word.parse::<Size>().is_ok()
            || ["-s", "--scale", "--rows"].iter().any(|option| word.starts_with(option))
    };
    if !words.iter().any(is_amount) {
        words.insert(1, "1GB".to_owned());
    }
    words.push("--explain".to_owned());
    format!("pgrig {}", shown(&words))
}

/// The command line with `--` before this word.
fn with_dashes(words: &[String], word: &str) -> String {
    let at = words.iter().position(|given| given.starts_with(word)).unwrap_or(words.len());
    format!("pgrig {} -- {}", shown(&words[..at]), shown(&words[at..]))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cmd::line::parse;

    /// The remedies, each with the command line that it is for. Each command that one names is read without an error.
    #[test]
    fn options_of_other_programs_get_commands_that_work() {
        for (line, option, told) in [
            ("ddl -f m.sql -d shop", "-f", "pgrig ddl m.sql -d shop"),
            ("ddl -f m.sql -d postgresql://u:s3cret@h/d", "-f", "pgrig ddl m.sql -d postgresql://u@h/d"),
            ("backup -dpostgresql://u:s3cret@h/d", "-d", "pgrig backup rehearse -dpostgresql://u@h/d"),
            ("ddl --file=m.sql", "--file", "pgrig ddl m.sql"),
            ("testdb unlog -fa.sql -o b.sql", "-f", "pgrig testdb unlog a.sql -o b.sql"),
            ("backup check -f shop.dump", "-f", "pgrig backup check shop.dump"),
            ("backup -d shop", "-d", "pgrig backup rehearse -d shop"),
            ("backup --rto 4h rehearse -d shop", "--rto", "pgrig backup rehearse --rto 4h -d shop"),
            ("backup --restore a.dump", "--restore", "pgrig backup check --restore a.dump"),
            ("size --ddl schema.sql 10GB", "--ddl", "pgrig fill --ddl schema.sql 10GB --explain"),
            ("size --all-tables", "--all-tables", "pgrig fill 1GB --all-tables --explain"),
            ("fill --size 10MB -d shop", "--size", "pgrig fill 10MB -d shop"),
            ("blockio --size=10MB", "--size", "pgrig blockio 10MB"),
            ("fill 5MB --size 6MB -d shop", "--size", "pgrig fill 5MB -d shop"),
            ("blockio --size=6MB 5MB", "--size", "pgrig blockio 5MB"),
            ("micro --expr i+1 --expr=i+2", "--expr", "pgrig micro i+1 i+2"),
            ("-s 5 -i -h 127.0.0.1 shop", "-s", "pgrig fill --scale 5 -h 127.0.0.1 -d shop"),
            ("-i -s 1 -n -q shop", "-i", "pgrig fill --scale 1 -I tgp -q -d shop"),
            ("-i -I dtgvp -s 1 --no-vacuum shop", "-i", "pgrig fill --scale 1 -I dtgp -d shop"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let remedy = remedy(&words, option).unwrap();
            let command = &remedy[remedy.rfind("pgrig ").unwrap()..];
            assert_eq!(command.trim_end(), told, "{line}");
            let arguments: Vec<OsString> = command.split_whitespace().map(Into::into).collect();
            assert!(parse(&arguments).is_ok(), "{told}");
        }
    }
}
