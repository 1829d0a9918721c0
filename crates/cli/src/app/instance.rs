//! The instances of pgrig's own PostgreSQL, by their names.

use std::path::Path;

use connect::ConnectError;
use pgserver::{Home, Instance, InstanceState, Spec};
use server::quote::{shell_word, shown};

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
    if name == Spec::default().name || all.iter().any(|other| other.name() == name) {
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

/// The error of a socket that belongs to an instance which is stopped: `why` is the operating system's.
pub(crate) fn stopped_at(home: &Home, directory: &str, why: &ConnectError) -> Option<MachineFailure> {
    let is_it = |instance: &Instance| {
        let is_stopped =
            instance.status().is_ok_and(|status| matches!(status.state, InstanceState::Stopped { .. }));
        is_stopped && instance.resting_connection().is_ok_and(|at| at.socket_dir == Path::new(directory))
    };
    let stopped = Instance::list(home).ok()?.into_iter().find(is_it)?;
    let name = stopped.name();
    let option = if name == Spec::default().name {
        String::new()
    } else {
        format!(" --instance {}", shell_word(name))
    };
    Some(MachineFailure(format!(
        "instance {name} of pgrig's own PostgreSQL is stopped: run pgrig server start{option} ({why})"
    )))
}

/// The command that creates a database on an instance, and starts it for that if it is stopped.
pub(crate) fn create_database(instance: &str, database: &str) -> String {
    let option = if instance == Spec::default().name {
        String::new()
    } else {
        format!("--instance {} ", shell_word(instance))
    };
    let sql = format!("CREATE DATABASE {}", shown(database));
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
