//! `pgrig server psql`: psql with the instance in its environment, so that options such as -d and -U reach the same server.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use connect::{SqlState, Target};
use pgserver::{Home, Instance, Running};
use server::quote::shell_word;
use tokio::runtime::Builder;

use crate::app::failure::{Failure, MachineFailure, Usage};
use crate::app::instance::{create_database, existing_to_use};
use crate::app::printer::Printer;
use crate::app::{interrupt, near};

/// Variables with which libpq would connect elsewhere, or refuse the instance's socket or its authentication.
const IN_THE_WAY: [&str; 10] = [
    "PGSERVICE",
    "PGHOSTADDR",
    "PGREQUIREPEER",
    "PGREQUIREAUTH",
    "PGREQUIRESSL",
    "PGSSLMODE",
    "PGSSLNEGOTIATION",
    "PGCHANNELBINDING",
    "PGGSSENCMODE",
    "PGTARGETSESSIONATTRS",
];

/// A phrase for people; the text itself may hold a password.
const CONNECTION_STRING: &str = "connection string";

/// psql's options that take a value.
const WITH_VALUE: [(char, &str); 14] = [
    ('c', "command"),
    ('d', "dbname"),
    ('f', "file"),
    ('F', "field-separator"),
    ('h', "host"),
    ('L', "log-file"),
    ('o', "output"),
    ('p', "port"),
    ('P', "pset"),
    ('R', "record-separator"),
    ('T', "table-attr"),
    ('U', "username"),
    ('v', "set"),
    ('v', "variable"),
];

/// Runs psql; stops the server afterwards if it was started for that.
pub(super) fn run(
    home: &Home,
    instance: &str,
    database: Option<&str>,
    arguments: &[OsString],
    printer: &Printer,
) -> Result<(), Failure> {
    let of_database = database.filter(|name| is_connection_string(name)).map(|_| CONNECTION_STRING);
    if let Some(elsewhere) = of_database.or_else(|| naming_a_server(arguments)) {
        return Err(Usage(format!(
            "pgrig server psql connects to instance {instance}, so it takes no {elsewhere}: leave it out (-d DBNAME names a \
             database, -U ROLE a role), or run psql without pgrig"
        ))
        .into());
    }
    let running = existing_to_use(home, instance)?.attach_or_start(&|event| printer.say(event))?;
    let ran = psql(home, &running, instance, database, arguments, printer);
    let stopped = running.stop_telling(&|event| printer.say(event));
    ran?;
    Ok(stopped?)
}

fn psql(
    home: &Home,
    running: &Running,
    instance: &str,
    database: Option<&str>,
    arguments: &[OsString],
    printer: &Printer,
) -> Result<(), Failure> {
    let at = running.connection();
    let target = Target::embedded(&at.socket_dir, at.port, at.user, database.unwrap_or(at.database));
    if database.is_some() {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        interrupt::block_on(runtime, printer, require_database(home, &target, instance, printer))?;
    }
    let mut command = Command::new("psql");
    for name in IN_THE_WAY {
        command.env_remove(name);
    }
    match command.args(arguments).envs(target.variables()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(MachineFailure(format!("psql ended with {status}")).into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(MachineFailure(
            "psql is not installed: install PostgreSQL's client programs (Debian: postgresql-client), or give \
             the output of pgrig server url to another client"
                .to_owned(),
        )
        .into()),
        Err(error) => Err(MachineFailure(format!("cannot run psql: {error}")).into()),
    }
}

/// Refuses a database that does not exist, with the command that creates it: psql does not know this command.
async fn require_database(
    home: &Home,
    target: &Target,
    instance: &str,
    printer: &Printer,
) -> Result<(), Failure> {
    match target.connect_when_ready(&|text| printer.say(text)).await {
        Ok(connection) => {
            connection.close().await;
            Ok(())
        }
        Err(error)
            if error.sqlstate() == Some(&SqlState::UNDEFINED_DATABASE) && has_instance(home, target) =>
        {
            let name = target.dbname();
            let word = shell_word(name);
            Err(Usage(format!(
                "database \"{name}\" does not exist; to name an instance, give --instance {word}"
            ))
            .into())
        }
        Err(error) => {
            let error = error.with_creation(&create_database(instance, target.dbname()));
            let error = near::with_databases(target, error).await;
            Err(error.with_another_database("name another database").into())
        }
    }
}

/// Whether an instance has the name that was given for a database.
fn has_instance(home: &Home, target: &Target) -> bool {
    Instance::list(home).is_ok_and(|all| all.iter().any(|instance| instance.name() == target.dbname()))
}

/// The first of psql's arguments that names a server, as a phrase for people. The text of a connection string may hold a password.
fn naming_a_server(arguments: &[OsString]) -> Option<&'static str> {
    let mut words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let mut has_options = true;
    while let Some(word) = words.next() {
        if !has_options || !word.starts_with('-') {
            if is_connection_string(&word) {
                return Some(CONNECTION_STRING);
            }
        } else if word == "--" {
            has_options = false;
        } else if let Some((letter, value)) = option_with_value(&word) {
            let value = value.map(str::to_owned).or_else(|| words.next());
            match letter {
                'h' => return Some("-h (--host)"),
                'p' => return Some("-p (--port)"),
                'd' if value.as_deref().is_some_and(is_connection_string) => return Some(CONNECTION_STRING),
                _ => {}
            }
        }
    }
    None
}

/// The option with a value in a word of psql's arguments, and the value if it is in the same word. psql takes the beginning of a
/// long option, and joined short ones (`-Atc`).
fn option_with_value(word: &str) -> Option<(char, Option<&str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let (letter, _) = WITH_VALUE.iter().find(|(_, known)| known.starts_with(name))?;
        return Some((*letter, value));
    }
    let joined = word.strip_prefix('-')?;
    let takes_value = |letter: char| WITH_VALUE.iter().any(|(known, _)| *known == letter);
    let (at, letter) = joined.char_indices().find(|(_, letter)| takes_value(*letter))?;
    let value = &joined[at + letter.len_utf8()..];
    Some((letter, (!value.is_empty()).then_some(value)))
}

/// Whether libpq takes the name of a database for a connection string.
fn is_connection_string(text: &str) -> bool {
    text.contains('=') || text.starts_with("postgresql://") || text.starts_with("postgres://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_a_server_are_found() {
        for (line, named) in [
            ("-d shop -U alice -Atc SELECT", None),
            ("-c a=b -v x=1 --set=y=2 -f host -At -o out -P border=2", None),
            ("--command --host", None),
            ("shop alice", None),
            ("-h db.example", Some("-h (--host)")),
            ("-Ath localhost", Some("-h (--host)")),
            ("shop -p5433", Some("-p (--port)")),
            ("--hos=db.example", Some("-h (--host)")),
            ("--port 5433", Some("-p (--port)")),
            ("postgres://db.example/shop", Some("connection string")),
            ("-d postgresql://db.example", Some("connection string")),
            ("-- service=prod", Some("connection string")),
            ("--dbname=host=db.example", Some("connection string")),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(naming_a_server(&arguments), named, "{line}");
        }
    }
}
