//! `pgrig testdb new`, `list`, `keep`, `drop` and `serve`.

pub(crate) mod args;
mod call;
mod list_text;
mod place;
mod serve;

use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::human::counted;
use pgserver::{Home, Instance, Spec};
use testdb::lend::{Format, LendRequest, List, Owner, OwnerName, Which};

use crate::app::args::ServerChoice;
use crate::app::failure::{Context, Failure, MachineFailure, Usage};
use crate::app::instance::existing;
use crate::app::json;
use crate::app::printer::Printer;
use crate::app::target::{ServerKind, server_kind};
use crate::cmd::testdb::fail_in_eval;
use crate::cmd::testdb::lend::args::{DropArgs, KeepArgs, LeaseFormat, LendAction, ListArgs, NewArgs};
use call::KeeperClient;

/// The effect of a crash on unlogged tables.
const EMPTIED: &str = "unlogged: a crash of the server empties these tables";

/// The answer where no database is dropped.
const NOTHING: &str = "there was nothing to drop";

/// Time without work after which a keeper ends that was started to lend.
const LENDS: Duration = Duration::from_mins(10);
/// The same for a keeper that was started to list or drop databases.
const LOOKS: Duration = Duration::from_secs(5);

/// Sends a request to the keeper, or runs the keeper itself.
pub(crate) fn run(action: &LendAction, printer: &Printer) -> Result<(), Failure> {
    match action {
        LendAction::New(arguments) => new(arguments, printer),
        LendAction::List(arguments) => list(arguments, printer),
        LendAction::Keep(arguments) => keep(arguments, printer),
        LendAction::Drop(arguments) => drop(arguments, printer),
        LendAction::Serve(arguments) => serve::run(arguments, printer),
    }
}

/// Lends a fresh database.
fn new(arguments: &NewArgs, printer: &Printer) -> Result<(), Failure> {
    let result = lend(arguments, printer);
    if result.is_err() && matches!(arguments.format, LeaseFormat::Shell) {
        fail_in_eval();
    }
    result
}

fn lend(arguments: &NewArgs, printer: &Printer) -> Result<(), Failure> {
    let request = LendRequest {
        from: arguments.from.as_deref().map(absolute).transpose()?,
        template: arguments.template.clone(),
        unlogged: arguments.unlogged,
        owner: owner(arguments)?.map(OwnerName::Exactly),
        // A fraction of a second is no reason to drop it earlier.
        seconds: arguments.time.map(|time| time.0.as_secs() + u64::from(time.0.subsec_nanos() > 0)),
        keep: arguments.keep,
    };
    let keeper = KeeperClient::new(&arguments.server, Some(&arguments.keeper), LENDS, printer)?;
    let lease = keeper.call(&async |client| client.lend(&request).await)?;
    if arguments.unlogged {
        printer.say(EMPTIED);
    }
    Ok(Printer::json(&lease.told(arguments.format.into()))?)
}

fn owner(arguments: &NewArgs) -> Result<Option<Owner>, Failure> {
    match arguments.owner {
        Some(pid) => {
            let owner = Owner::of(pid);
            Ok(Some(owner.ok_or_else(|| Usage(format!("--owner: there is no process {pid}: give the id of a running process, for example $$ in a shell")))?))
        }
        None if arguments.keep => Ok(None),
        None => Ok(testdb::lend::caller()),
    }
}

/// Whether pgrig's own server is meant, and does not exist yet: it has no databases, and this is no reason to create it.
///
/// # Errors
/// If an option names an instance that does not exist.
fn is_absent(server: &ServerChoice) -> Result<bool, Failure> {
    let home = Home::locate()?;
    let option = &server.address.embedded.instance;
    if let Some(name) = option {
        existing(&home, name)?;
    }
    let name = option.clone().unwrap_or_else(|| Spec::default().name);
    Ok(server_kind(server)? == ServerKind::Own
        && !Instance::list(&home)?.iter().any(|one| one.name() == name))
}

fn no_database(name: &str) -> Failure {
    Usage(format!("there is no database {name}: pgrig has not created its own PostgreSQL yet; name the server that has it: -d, -h or --instance")).into()
}

/// Lists the databases.
fn list(arguments: &ListArgs, printer: &Printer) -> Result<(), Failure> {
    let list = if is_absent(&arguments.server)? {
        List { databases: Vec::new(), settings: Vec::new() }
    } else {
        let keeper = KeeperClient::new(&arguments.server, None, LOOKS, printer)?;
        let list = keeper.call(&async |client| client.list().await)?;
        keeper.retire()?;
        list
    };
    if arguments.json {
        return Ok(Printer::json(&json::pretty(&list)?)?);
    }
    list_text::print(&list, printer)
}

/// Keeps lent databases when their owners end.
fn keep(arguments: &KeepArgs, printer: &Printer) -> Result<(), Failure> {
    if is_absent(&arguments.server)? {
        return Err(no_database(&arguments.names[0]));
    }
    let keeper = KeeperClient::new(&arguments.server, None, LOOKS, printer)?;
    let server = arguments.server.shown();
    for name in &arguments.names {
        let lease = keeper.call(&async |client| client.keep(name).await)?;
        let url = lease.url_without_password();
        printer.say(format!("kept {url}; to drop it, run pgrig testdb drop {name}{server}"));
    }
    keeper.retire()
}

/// Drops the named databases.
fn drop(arguments: &DropArgs, printer: &Printer) -> Result<(), Failure> {
    if is_absent(&arguments.server)? {
        if let Some(name) = arguments.names.first() {
            return Err(no_database(name));
        }
        printer.say(NOTHING);
        return Ok(());
    }
    let keeper = KeeperClient::new(&arguments.server, None, LOOKS, printer)?;
    let which = [
        (arguments.all, Which::All),
        (arguments.templates, Which::Templates),
        (arguments.orphans, Which::Orphans),
    ];
    let Some((_, which)) = which.into_iter().find(|(given, _)| *given) else {
        for name in &arguments.names {
            keeper.call(&async |client| client.drop(name).await)?;
            printer.say(format!("dropped {name}"));
        }
        return keeper.retire();
    };
    let (process, dropped) = keeper.call(&async |client| {
        let process = client.keeper();
        client.drop_many(which).await.map(|dropped| (process, dropped))
    })?;
    for name in &dropped.dropped {
        printer.say(format!("dropped {name}"));
    }
    if dropped.dropped.is_empty() && dropped.failed.is_empty() {
        printer.say(NOTHING);
    }
    if matches!(which, Which::All) {
        keeper.wait_for_end(process)?;
    } else {
        keeper.retire()?;
    }
    match dropped.failed.as_slice() {
        [] => Ok(()),
        [(_, error), ..] => Err(MachineFailure(format!(
            "pgrig could not drop {}: {error}",
            counted(dropped.failed.len() as u64, "database")
        ))
        .into()),
    }
}

impl From<LeaseFormat> for Format {
    fn from(format: LeaseFormat) -> Self {
        match format {
            LeaseFormat::Shell => Self::Shell,
            LeaseFormat::Json => Self::Json,
            LeaseFormat::Url => Self::Url,
            LeaseFormat::Env => Self::Env,
        }
    }
}

/// The absolute path: the keeper has another working directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    if path.as_os_str() == "-" {
        return Err(Usage(
            "--from - is not possible, because pgrig reads the file again later: give a file name".to_owned(),
        )
        .into());
    }
    if !path.exists() {
        return Err(Usage(format!(
            "cannot read {}: the file does not exist; check the path",
            path.display()
        ))
        .into());
    }
    if !path.is_file() && !path.is_dir() {
        return Err(Usage(format!(
            "--from {}: pgrig reads the file again later, which is not possible with a pipe or a device: give a file",
            path.display()
        ))
        .into());
    }
    std::path::absolute(path).with_context(|| format!("cannot find the path of {}", path.display()))
}
