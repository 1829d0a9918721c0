//! What a pgrig that was killed left changed on a server is put back by the next one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use pgserver::{Home, Instance, Lifetime, Spec, State};
use tokio::runtime::{Builder, Runtime};
use workload::connect::{ConnectOptions, Target, resolve};
use workload::settings::{Found, Journal, Place, PutBack, Record, SYNC_BY_HAND, SettingsError, put_back};

use crate::printer::Printer;

/// A server that does not answer must not keep a verb that has nothing to do with it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where journals are.
pub(crate) fn journals(home: &Home) -> PathBuf {
    home.root().join("journal")
}

/// Before any verb: puts back what can be reached. What cannot is told, with the statements to type.
pub(crate) fn sweep(printer: &Printer) {
    // Whoever needs a home says that there is none.
    let Ok(home) = Home::locate() else { return };
    let found = match Journal::all(&journals(&home)) {
        Ok(found) => found,
        Err(error) => return printer.warn(error),
    };
    for journal in found.into_iter().filter_map(dead) {
        let target = match &journal.record.place {
            Place::Own(name) => match shared(&home, name) {
                Some(target) => target,
                // It is put back when it is started.
                None => continue,
            },
            Place::Named(recipe) => match named(recipe) {
                Ok(target) => target,
                Err(error) => {
                    tell_left(&journal.record, journal.path(), &error, printer);
                    continue;
                }
            },
        };
        let (record, path) = (journal.record.clone(), journal.path().to_owned());
        match restore(&target, journal) {
            Ok(done) => tell(&record, &done, printer),
            Err(error) => tell_left(&record, &path, &error, printer),
        }
    }
}

/// After pgrig's own server was started, and before anybody works on it.
///
/// # Errors
/// If something cannot be put back.
pub(crate) fn put_back_own(
    home: &Home,
    instance: &str,
    target: &Target,
    printer: &Printer,
) -> anyhow::Result<()> {
    let own = Place::Own(instance.to_owned());
    for found in Journal::all(&journals(home))? {
        match found {
            Found::Live(record) if record.place == own => printer.warn(format!(
                "pgrig process {} is changing settings of this server: what is measured meanwhile tells nothing",
                record.pid
            )),
            Found::Dead(journal) if journal.record.place == own => {
                let record = journal.record.clone();
                let path = journal.path().to_owned();
                match restore(target, journal) {
                    Ok(done) => tell(&record, &done, printer),
                    // That instance was destroyed, and this is a new one of its name.
                    Err(Left::Settings(SettingsError::OtherServer)) => std::fs::remove_file(&path)
                        .with_context(|| format!("cannot delete the journal {}", path.display()))?,
                    Err(error) => anyhow::bail!("{}", left(&record, &path, &error)),
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why something is still changed.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("the server did not do it within {} s", PATIENCE.as_secs())]
    Late,
    #[error("{0}")]
    Machine(#[from] std::io::Error),
}

fn dead(found: Found) -> Option<Journal> {
    match found {
        Found::Dead(journal) => Some(journal),
        Found::Live(_) => None,
    }
}

/// The instance's server, if it runs on its own. One that ran for a killed pgrig ends by itself.
fn shared(home: &Home, name: &str) -> Option<Target> {
    let spec = Spec { name: name.to_owned(), ..Spec::default() };
    let instance = Instance::open(home, spec).ok()?;
    match instance.status().ok()?.state {
        State::Running(server) if server.lifetime == Lifetime::Detached && server.ready => {
            let at = instance.connection().ok()?;
            Some(Target::embedded(&at.socket_dir, at.port, at.user, at.database))
        }
        _ => None,
    }
}

/// A server that was named when the journal was written.
fn named(recipe: &str) -> Result<Target, Left> {
    let options = ConnectOptions { dbname: Some(recipe.to_owned()), ..ConnectOptions::default() };
    let env = |name: &str| std::env::var(name).ok();
    resolve(&options, &env).map_err(|error| Left::Settings(error.into()))
}

fn restore(target: &Target, journal: Journal) -> Result<PutBack, Left> {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
    // An embedded server answers, and its tables may take their time.
    let patience = if target.is_embedded() { Duration::MAX } else { PATIENCE };
    runtime.block_on(async {
        match tokio::time::timeout(patience, put_back(target, journal)).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Left::Late),
        }
    })
}

fn tell(record: &Record, done: &PutBack, printer: &Printer) {
    let mut parts: Vec<String> =
        done.settings.iter().map(|(name, shown)| format!("{name} = {shown}")).collect();
    parts.extend(done.tables.iter().map(|table| format!("{} logged", table.qualified())));
    if parts.is_empty() {
        parts.push("nothing was changed any more".to_owned());
    }
    let (pid, place) = (record.pid, place(record));
    printer.warn(format!(
        "pgrig process {pid} was killed while it had changed {place}; put back: {}",
        parts.join(", ")
    ));
    if done.wants_sync {
        printer.danger(SYNC_BY_HAND);
    }
    if !done.empty.is_empty() {
        let names: Vec<String> = done.empty.iter().map(workload::settings::Table::qualified).collect();
        printer
            .warn(format!("empty now: {} (a crash of the server empties unlogged tables)", names.join(", ")));
    }
}

fn tell_left(record: &Record, path: &Path, error: &Left, printer: &Printer) {
    printer.danger(left(record, path, error));
}

fn left(record: &Record, path: &Path, error: &Left) -> String {
    format!(
        "pgrig process {} was killed while it had changed {}, and that is NOT put back: {error}. By hand, as a \
         superuser: {} Then delete {}",
        record.pid,
        place(record),
        record.remedy().join(" "),
        path.display()
    )
}

fn place(record: &Record) -> String {
    match &record.place {
        Place::Own(instance) => format!("pgrig's own server (instance {instance})"),
        Place::Named(recipe) => format!("the server {recipe}"),
    }
}
