//! `pgrig server`: the embedded PostgreSQL.

mod psql;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use comfy_table::{Table, presets};
use connect::Target;
use jiff::Timestamp;
use measure::human::bytes;
use pgserver::{
    Fetched, Home, Instance, InstanceState, Lifetime, Major, Profile, Running, ServerStatus, Spec, Status,
};

use crate::app::announce::announce;
use crate::app::args::{EmbeddedArgs, InstanceName, ServerAction, ServerArgs};
use crate::app::failure::{Context, Failure};
use crate::app::instance::{WITH_STOCK, existing, existing_to_use};
use crate::app::json;
use crate::app::printer::Printer;
use crate::app::table::trimmed;
use crate::app::target::{self, assert_settings};
use crate::app::{interrupt, recovery};

/// Runs the subcommand.
pub(crate) fn run(arguments: &ServerArgs, printer: &Printer) -> Result<(), Failure> {
    let home = Home::locate()?;
    match &arguments.action {
        ServerAction::Start { embedded, tcp } => start(&home, embedded, *tcp, printer),
        ServerAction::Stop(name) => stop(&home, name, printer),
        ServerAction::Status { instance, json } => status(&home, instance.as_deref(), *json, printer),
        ServerAction::Restart(name) => restart(&home, name, printer),
        ServerAction::Url { name, database } => url(&home, name, database.as_deref(), printer),
        ServerAction::Psql { name, database, arguments } => {
            psql::run(&home, &name.instance, database.as_deref(), arguments, printer)
        }
        ServerAction::Logs(name) => logs(&home, name),
        ServerAction::Destroy { instance } => destroy(&home, instance, printer),
        ServerAction::Fetch { pg_version, from } => fetch(&home, *pg_version, from.as_deref(), printer),
        ServerAction::Prune => prune(&home, printer),
    }
}

fn start(home: &Home, embedded: &EmbeddedArgs, tcp: bool, printer: &Printer) -> Result<(), Failure> {
    let spec = Spec { tcp: tcp.then_some(true), ..target::spec(embedded) };
    let running = Instance::open(home, spec)?.start_detached(&|event| printer.say(event))?;
    announce(&running, home, printer);
    let instance = embedded.instance.as_deref().unwrap_or("default");
    recovery::put_back_own(home, instance, &target(&running), false, printer)?;
    check(&running, printer)?;
    let connection = running.connection();
    printer.result(connection.tcp_url().unwrap_or_else(|| connection.url()))?;
    Ok(())
}

fn target(running: &Running) -> Target {
    let at = running.connection();
    Target::embedded(&at.socket_dir, at.port, at.user, at.database)
}

/// Asserts with SHOW that the settings are in force.
fn check(running: &Running, printer: &Printer) -> Result<(), Failure> {
    let target = target(running);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    interrupt::block_on(runtime, printer, async {
        let connection = target.connect_when_ready(&|text| printer.say(text)).await?;
        assert_settings(&connection, running.settings()).await
    })
}

fn stop(home: &Home, name: &InstanceName, printer: &Printer) -> Result<(), Failure> {
    let was_running = existing(home, &name.instance)?.stop(&|event| printer.say(event))?;
    let instance = &name.instance;
    printer.say(if was_running {
        format!("instance {instance} is stopped")
    } else {
        format!("instance {instance} was not running")
    });
    Ok(())
}

fn restart(home: &Home, name: &InstanceName, printer: &Printer) -> Result<(), Failure> {
    existing_to_use(home, &name.instance)?.stop(&|event| printer.say(event))?;
    let embedded = EmbeddedArgs { instance: Some(name.instance.clone()), ..EmbeddedArgs::default() };
    start(home, &embedded, false, printer)
}

fn fetch(home: &Home, major: Option<Major>, from: Option<&Path>, printer: &Printer) -> Result<(), Failure> {
    let Fetched { version, dir, is_new } = pgserver::fetch(home, major, from, &|event| printer.say(event))?;
    let is_there = if is_new { "is installed in" } else { "is already installed in" };
    printer.result(format!("PostgreSQL {version} {is_there} {}", dir.display()))?;
    Ok(())
}

fn prune(home: &Home, printer: &Printer) -> Result<(), Failure> {
    let pruned = pgserver::prune(home)?;
    if pruned.is_empty() {
        printer.say("nothing to delete: instances use all downloaded versions");
    }
    for (version, size) in pruned {
        printer.result(format!("deleted PostgreSQL {version}: {}", bytes(size)))?;
    }
    Ok(())
}

fn status(home: &Home, name: Option<&str>, json: bool, printer: &Printer) -> Result<(), Failure> {
    let instances = match name {
        Some(name) => vec![existing(home, name)?],
        None => Instance::list(home)?,
    };
    // One that cannot be read must not hide the others.
    let (found, unreadable): (Vec<_>, Vec<_>) =
        instances.iter().map(Instance::status).partition(Result::is_ok);
    let found: Vec<Status> = found.into_iter().flatten().collect();
    for error in unreadable.into_iter().filter_map(Result::err) {
        printer.warn(error);
    }
    if json {
        return Ok(Printer::json(&json::pretty(&found)?)?);
    }
    if found.is_empty() {
        printer.say("no instance yet: pgrig fill or pgrig server start creates one");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["instance", "state", "version", "profile", "data", "directory"]);
    for status in &found {
        table.add_row(row(status));
    }
    Ok(printer.result(trimmed(&table))?)
}

fn row(status: &Status) -> [String; 6] {
    let unknown = || "?".to_owned();
    let (state, version, profile, data) = match &status.state {
        InstanceState::NotCreated => ("not created".to_owned(), String::new(), String::new(), String::new()),
        InstanceState::Stopped { version, profile, set, data_bytes } => {
            let version = version.as_ref().map_or_else(unknown, ToString::to_string);
            ("stopped".to_owned(), version, next_profile(&status.instance, *profile, set), bytes(*data_bytes))
        }
        InstanceState::Running(server) => {
            let version = server.version.as_ref().map_or_else(unknown, ToString::to_string);
            let profile = server.profile.map_or_else(unknown, |profile| profile.to_string());
            let profile = format!("{profile}{}", settings(&server.set));
            (running(server), version, profile, bytes(server.data_bytes))
        }
    };
    [status.instance.clone(), state, version, profile, data, status.directory.display().to_string()]
}

/// The profile and the settings with which a stopped instance starts. Its own verb always starts `ddl` and `testdb-bench` with stock.
fn next_profile(name: &str, profile: Profile, set: &[(String, String)]) -> String {
    if WITH_STOCK.contains(&name) {
        Profile::Stock.to_string()
    } else {
        format!("{profile}{}", settings(set))
    }
}

/// The user's settings, as text after the profile's name.
fn settings(set: &[(String, String)]) -> String {
    set.iter().fold(String::new(), |text, (name, value)| text + " " + name + "=" + value)
}

/// `running since 12:00:01Z, pid 123`, and the process that owns it.
fn running(server: &ServerStatus) -> String {
    let since = server.since_unix_seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    let since = since.map_or(String::new(), |since| format!(" since {since}"));
    let state = if server.ready { "running" } else { "starting or stopping" };
    let owner = match (server.lifetime, server.owner_pid) {
        (Lifetime::Owned, Some(owner)) => format!(", for pgrig process {owner}"),
        _ => String::new(),
    };
    format!("{state}{since}, pid {}{owner}", server.pid)
}

/// Prints the URI even if the server does not run: otherwise `psql "$(pgrig server url)"` would get
/// an empty argument and connect to another server, instead of failing.
fn url(home: &Home, name: &InstanceName, database: Option<&str>, printer: &Printer) -> Result<(), Failure> {
    let instance = existing_to_use(home, &name.instance)?;
    let running = instance.connection();
    let connection = match &running {
        Ok(connection) => connection.clone(),
        Err(_) => instance.resting_connection()?,
    };
    let database = database.unwrap_or(connection.database);
    printer.result(connection.tcp_url_of(database).unwrap_or_else(|| connection.url_of(database)))?;
    running?;
    Ok(())
}

fn logs(home: &Home, name: &InstanceName) -> Result<(), Failure> {
    let path = existing(home, &name.instance)?.log_path();
    let mut log = File::open(&path).with_context(|| format!("cannot read the log {}", path.display()))?;
    io::copy(&mut log, &mut io::stdout().lock())?;
    Ok(io::stdout().flush()?)
}

fn destroy(home: &Home, name: &str, printer: &Printer) -> Result<(), Failure> {
    existing(home, name)?.destroy(&|event| printer.say(event))?;
    printer.say(format!("deleted instance {name} with its data"));
    Ok(())
}
