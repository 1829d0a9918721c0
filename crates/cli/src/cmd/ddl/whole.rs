//! The commands that measure with the whole schema of the original: the copy of its tables lacks objects that statements or constraints use.

use std::path::Path;

use ddl::Outcome;

use crate::app::command_line::shown;
use crate::cmd::ddl::args::DdlArgs;

/// The option in remedies that these commands carry out.
const REMEDY: &str = "--schema-file with the output of pg_dump --schema-only";
/// Options of the database that pgrig reads, in whose place --schema-file comes.
const OF_DATABASE: [(&str, &str); 4] =
    [("-d", "--dbname"), ("-h", "--host"), ("-p", "--port"), ("-U", "--username")];

/// The advice to run the commands, each in a line of its own; none if the tables are not those of a database.
pub(super) fn advice(arguments: &DdlArgs) -> Option<String> {
    if arguments.schema_file.is_some() || arguments.model.is_some() {
        return None;
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let server = [
        ("-h", arguments.host.as_deref()),
        ("-p", arguments.port.as_deref()),
        ("-U", arguments.username.as_deref()),
        ("-d", arguments.dbname.as_deref()),
    ];
    let amount = if arguments.rows.is_some() || arguments.size.is_some() {
        ""
    } else {
        " (with --rows or --size, because the file has no numbers of rows)"
    };
    Some(format!("run these commands{amount}:{}", commands(&words, &server, &free_name())))
}

/// A hint with the commands, if a statement failed because of an object that the copy lacks.
pub(super) fn hint(arguments: &DdlArgs, outcome: &Outcome) -> Option<String> {
    let mut remedies = outcome.failed().filter_map(|(_, failed)| failed.remedy.as_deref());
    let is_lacking = remedies.any(|remedy| remedy.contains(REMEDY));
    let advice = advice(arguments).filter(|_| is_lacking)?;
    Some(format!("hint: to measure with all objects of the database, {advice}"))
}

/// The commands for a command line, with the options of the database, and a file.
fn commands(words: &[String], server: &[(&str, Option<&str>)], file: &str) -> String {
    let mut dump = vec!["pg_dump", "--schema-only", "--no-subscriptions"];
    for (option, value) in server {
        if let Some(value) = value {
            dump.extend([*option, *value]);
        }
    }
    dump.extend(["-f", file]);
    let dump: Vec<String> = dump.into_iter().map(str::to_owned).collect();
    let mut again = without_database(words);
    again.extend(["--schema-file", file].map(str::to_owned));
    format!("\n  {}\n  pgrig {}", shown(&dump), shown(&again))
}

/// The words without the options of the database and their values.
fn without_database(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_option = OF_DATABASE.iter().any(|(short, long)| [*short, *long].contains(&word.as_str()));
        let is_attached = OF_DATABASE.iter().any(|(short, long)| {
            word.starts_with(*short) || word.strip_prefix(*long).is_some_and(|rest| rest.starts_with('='))
        });
        if is_option {
            words.next();
        } else if !is_attached {
            kept.push(word.clone());
        }
    }
    kept
}

/// The name of a file that is not there yet.
fn free_name() -> String {
    let further = (2_u32..).map(|number| format!("schema-{number}.sql"));
    let mut names = std::iter::once("schema.sql".to_owned()).chain(further);
    names.find(|name| !Path::new(name).exists()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_have_the_database_once_and_all_other_options() {
        for (line, wanted) in [
            ("ddl m.sql -d shop --quick", "ddl m.sql --quick"),
            ("ddl -dshop -h /tmp m.sql --port=5433 --username me", "ddl m.sql"),
            ("ddl --dbname=shop --rows 1000 m.sql", "ddl --rows 1000 m.sql"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let server = [("-p", None), ("-d", Some("postgresql://me:secret@h/shop"))];
            let told = commands(&words, &server, "schema.sql");
            let dump =
                "\n  pg_dump --schema-only --no-subscriptions -d postgresql://me@h/shop -f schema.sql\n";
            assert_eq!(told, format!("{dump}  pgrig {wanted} --schema-file schema.sql"), "{line}");
        }
    }
}
