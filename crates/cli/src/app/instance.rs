//! The instances of pgrig's own PostgreSQL, by their names.

use std::path::Path;

use connect::ConnectError;
use pgserver::{Home, Instance, InstanceState, Spec};
use server::quote::{shell_word, shown};
use strsim::osa_distance;

use crate::app::failure::{Failure, MachineFailure, Usage};

/// An instance that exists. The default instance need not exist yet.
///
/// # Errors
/// If there is no instance of this name.
pub(crate) fn existing(home: &Home, name: &str) -> Result<Instance, Failure> {
    existing_or(home, name, "check the name of --instance")
}

/// The same for commands to which a new instance is of use, too.
///
/// # Errors
/// As [`existing`].
pub(crate) fn existing_to_use(home: &Home, name: &str) -> Result<Instance, Failure> {
    existing_or(home, name, &format!("pgrig server start --instance {} creates it", shell_word(name)))
}

/// The same with this remedy.
///
/// # Errors
/// As [`existing`].
pub(crate) fn existing_or(home: &Home, name: &str, remedy: &str) -> Result<Instance, Failure> {
    let instance = Instance::open(home, Spec { name: name.to_owned(), ..Spec::default() })?;
    let all = Instance::list(home)?;
    let is_there = instance.is_recorded() || all.iter().any(|other| other.name() == name);
    if name == Spec::default().name || is_there {
        return Ok(instance);
    }
    let names: Vec<&str> = all.iter().map(Instance::name).collect();
    let there = if names.is_empty() {
        "there is none".to_owned()
    } else {
        format!("instances: {}", names.join(", "))
    };
    Err(Usage(format!("there is no instance {name} ({there}); {remedy}")).into())
}

/// Refuses a database of an instance that does not exist: a new instance has none but `postgres`.
///
/// # Errors
/// If the instance does not exist.
pub(crate) fn refuse_new(home: &Home, name: &str, database: &str) -> Result<(), Failure> {
    if database == DATABASE {
        return Ok(());
    }
    let all = Instance::list(home)?;
    let distance = |other: &&str| osa_distance(name, other);
    let meant = all.iter().map(Instance::name).min_by_key(distance);
    let meant = meant.filter(|other| distance(other) <= (name.chars().count() / 4).max(1));
    let (meant, to) = match meant {
        Some(other) => (format!("did you mean --instance {other}? "), "To"),
        None => (String::new(), "to"),
    };
    let database = shell_word(database);
    let remedy = format!(
        "{meant}{to} create it, leave out -d {database}: a new instance has only the database {DATABASE}"
    );
    existing_or(home, name, &remedy).map(drop)
}

/// The error of a socket that belongs to an instance which is stopped, or that another program has deleted: `why` is the
/// operating system's.
pub(crate) fn unreachable_at(home: &Home, directory: &str, why: &ConnectError) -> Option<MachineFailure> {
    let directory = Path::new(directory);
    let is_it =
        |instance: &Instance| instance.resting_connection().is_ok_and(|at| at.socket_dir == directory);
    let instance = Instance::list(home).ok()?.into_iter().find(is_it)?;
    let name = instance.name();
    let option = if name == Spec::default().name {
        String::new()
    } else {
        format!(" --instance {}", shell_word(name))
    };
    let way = match instance.status().ok()?.state {
        InstanceState::Stopped { .. } => format!("is stopped: run pgrig server start{option}"),
        InstanceState::Running(server) if server.ready && !has_socket(directory, server.port) => format!(
            "is running, and its socket no longer exists in {}: run pgrig server restart{option}",
            directory.display()
        ),
        InstanceState::Running(_) | InstanceState::NotCreated => return None,
    };
    Some(MachineFailure(format!("instance {name} of pgrig's own PostgreSQL {way} ({why})")))
}

/// Whether the socket of a server is in the directory.
fn has_socket(directory: &Path, port: Option<u16>) -> bool {
    port.is_some_and(|port| directory.join(format!(".s.PGSQL.{port}")).exists())
}

/// The instance on which `ddl` measures.
pub(crate) const OF_DDL: &str = "ddl";
/// The instance on which `testdb bench` measures.
pub(crate) const OF_TESTDB_BENCH: &str = "testdb-bench";
/// Instances whose own verb always starts them with the profile stock.
pub(crate) const WITH_STOCK: [&str; 2] = [OF_DDL, OF_TESTDB_BENCH];

/// Whether a word in the place of a database is SQL.
fn is_statement(word: &str) -> bool {
    const FIRST: [&str; 12] = [
        "select", "insert", "update", "delete", "create", "alter", "drop", "with", "show", "set", "vacuum",
        "analyze",
    ];
    let first = word.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    word.trim().contains(char::is_whitespace) && FIRST.contains(&first.as_str())
}

/// The command that creates a database on an instance, and starts it for that if it is stopped; for SQL in the place of the database, the
/// command that runs it.
pub(crate) fn create_database(instance: &str, database: &str) -> String {
    let option = if instance == Spec::default().name {
        String::new()
    } else {
        format!("--instance {} ", shell_word(instance))
    };
    let sql = if is_statement(database) {
        database.to_owned()
    } else {
        format!("CREATE DATABASE {}", shown(database))
    };
    format!("pgrig server psql {option}-- -c {}", shell_word(&sql))
}

/// The database of an instance that `pgrig server psql` opens if none is named.
const DATABASE: &str = "postgres";

/// The command that opens a database of an instance.
pub(crate) fn psql(instance: &str, database: &str) -> String {
    let named = if database == DATABASE { String::new() } else { format!(" {}", shell_word(database)) };
    let option = if instance == Spec::default().name {
        String::new()
    } else {
        format!(" --instance {}", shell_word(instance))
    };
    format!("pgrig server psql{named}{option}")
}

/// The command that runs SQL in a database of an instance, and starts it for that if it is stopped.
pub(crate) fn run_sql(instance: &str, database: &str, sql: &str) -> String {
    format!("{} -- -c {}", psql(instance, database), shell_word(sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_created_where_it_is_missing() {
        for (instance, database, command) in [
            ("default", "shop", "pgrig server psql -- -c 'CREATE DATABASE shop'"),
            ("old", "Shop", "pgrig server psql --instance old -- -c 'CREATE DATABASE \"Shop\"'"),
            ("default", "select 1", "pgrig server psql -- -c 'select 1'"),
        ] {
            assert_eq!(create_database(instance, database), command);
        }
    }

    #[test]
    fn psql_opens_the_database_with_the_data() {
        for (instance, database, command) in [
            ("default", "postgres", "pgrig server psql"),
            ("default", "my shop", "pgrig server psql 'my shop'"),
            ("old", "postgres", "pgrig server psql --instance old"),
            ("old", "shop", "pgrig server psql shop --instance old"),
        ] {
            assert_eq!(psql(instance, database), command);
            assert_eq!(run_sql(instance, database, "SELECT 1"), format!("{command} -- -c 'SELECT 1'"));
        }
    }
}
