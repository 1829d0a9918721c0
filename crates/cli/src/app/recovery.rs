//! Restores the settings and tables that an earlier pgrig left changed on a server.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use connect::{ConnectError, ConnectOptions, SqlState, Target, resolve};
use pgserver::{Home, Instance, InstanceState, Lifetime, Spec, TELL_AFTER};
use server::settings::{
    Journal, JournalState, PutBack, Record, SYNC_BY_HAND, SYNC_BY_HAND_PERHAPS, ServerRef, SettingsError,
    Table, identify, put_back,
};
use tokio::runtime::{Builder, Runtime};

use crate::app::args::ServerChoice;
use crate::app::failure::{BadResult, Failure, MachineFailure};
use crate::app::interrupt;
use crate::app::printer::Printer;
use crate::app::target::{self, ServerKind, options, server_kind};

/// Time to wait for a server that does not answer: it must not delay a verb for another server.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval of checks whether another pgrig has finished.
const EVERY: Duration = Duration::from_millis(50);

/// Directory of the journals.
pub(crate) fn journals(home: &Home) -> PathBuf {
    home.root().join("journal")
}

/// Before a verb that uses a server: restores servers that an earlier pgrig left changed, the verb's own server first,
/// so that an unreachable one does not delay it. A journal says how to reach its server; if that fails, the verb's own
/// connection options are tried, since they may hold the password. For the rest, pgrig prints how to restore by hand.
pub(crate) fn sweep(choice: Option<&ServerChoice>, printer: &Printer) {
    // A verb that needs a home reports that there is none.
    let Ok(home) = Home::locate() else { return };
    let mut all = match Journal::all(&journals(&home)) {
        Ok(all) => all,
        Err(error) => return printer.warn(error),
    };
    let own = choice.map(|choice| ServerRef::Own(target::spec(&choice.address.embedded).name));
    let given = given(choice);
    all.sort_by_key(|found| {
        let is_verbs = |record: &Record| match &given {
            Some(given) => is_server_of(record, given, None),
            None => own.as_ref() == Some(&record.place),
        };
        !record_of(found).is_some_and(is_verbs)
    });
    for found in all {
        match found {
            JournalState::Live(_) | JournalState::InHand { .. } => {}
            // When pgrig's own server is started, that is known.
            JournalState::Elsewhere(journal) if matches!(journal.record.place, ServerRef::Own(_)) => {}
            JournalState::Elsewhere(journal) => printer.danger(elsewhere(&journal.record, &journal.path)),
            JournalState::Unreadable(error) => printer.danger(error),
            JournalState::Dead(journal) => {
                let restored = match &journal.record.place {
                    ServerRef::Own(name) => match shared(&home, name) {
                        Some(target) => restore(&target, &journal, Duration::MAX, printer),
                        // When it is started.
                        None => continue,
                    },
                    ServerRef::Named(recipe) => restore_named(recipe, &journal, choice, printer),
                };
                match restored {
                    Ok(done) => tell(&journal.record, &done, printer),
                    Err(error) => printer.danger(left(&journal, &error)),
                }
            }
        }
    }
}

/// To be called after pgrig's own server was started, before anything else works on it.
/// `is_exclusive` says that it was started for this process alone, so that no other process can be
/// at work on it.
///
/// # Errors
/// If something cannot be restored.
pub(crate) fn put_back_own(
    home: &Home,
    instance: &str,
    target: &Target,
    is_exclusive: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let own = ServerRef::Own(instance.to_owned());
    each_of(
        home,
        |record| record.place == own,
        printer,
        |found| match found {
            JournalState::Elsewhere(journal) if is_exclusive => match journal.claim()? {
                Some(JournalState::Dead(journal)) => restore_own(target, &journal, printer),
                _ => Ok(()),
            },
            JournalState::Elsewhere(journal) => {
                Err(MachineFailure(elsewhere(&journal.record, &journal.path)).into())
            }
            JournalState::Dead(journal) => restore_own(target, &journal, printer),
            _ => Ok(()),
        },
    )
}

fn restore_own(target: &Target, journal: &Journal, printer: &Printer) -> Result<(), Failure> {
    match restore(target, journal, Duration::MAX, printer) {
        Ok(done) => tell(&journal.record, &done, printer),
        // That instance was destroyed, and this is a new one of its name.
        Err(Left::Settings(SettingsError::OtherServer)) => journal.close()?,
        Err(error) => return Err(MachineFailure(left(journal, &error)).into()),
    }
    Ok(())
}

/// To be called before anything is measured on a named server: earlier changes there must have been
/// restored.
///
/// # Errors
/// If something is still changed; [`sweep`] has printed why.
pub(crate) fn check_restored(home: &Home, target: &Target, printer: &Printer) -> Result<(), Failure> {
    let all = Journal::all(&journals(home)).unwrap_or_default();
    if all.iter().all(|found| record_of(found).is_none()) {
        return Ok(());
    }
    drop(all);
    // If it cannot be reached, the verb says so.
    let Ok(identifier) = runtime()?.block_on(identifier(target, printer)) else { return Ok(()) };
    let is_same = |record: &Record| is_server_of(record, target, identifier.as_deref());
    each_of(home, is_same, printer, |found| {
        match found {
        JournalState::Elsewhere(journal) => Err(MachineFailure(elsewhere(&journal.record, &journal.path)).into()),
        JournalState::Dead(journal) => Err(MachineFailure(format!(
            "an earlier pgrig changed settings or tables of this server and did not restore them, so pgrig does not \
             measure: run pgrig server status to restore them (journal: {})",
            journal.path().display()
        ))
        .into()),
        _ => Ok(()),
    }
    })
}

/// Calls `act` for each journal of one server, once no other process is restoring it.
fn each_of(
    home: &Home,
    concerns: impl Fn(&Record) -> bool,
    printer: &Printer,
    act: impl Fn(JournalState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let (mut told, mut is_first) = (false, true);
    loop {
        let mut is_in_hand = false;
        for found in Journal::all(&journals(home))? {
            match &found {
                found if !record_of(found).is_some_and(&concerns) => {}
                JournalState::Live(record) if is_first => printer.warn(format!(
                    "pgrig process {} is changing settings of this server: do not use results that you measure before \
                     it ends",
                    record.pid
                )),
                JournalState::Live(_) => {}
                JournalState::InHand { pid, .. } => {
                    is_in_hand = true;
                    if begin.elapsed() > TELL_AFTER && !told {
                        told = true;
                        let who = pid.map_or("another pgrig".to_owned(), |pid| format!("pgrig process {pid}"));
                        printer.say(format!("waiting: {who} is restoring settings and tables of this server"));
                    }
                }
                _ => act(found)?,
            }
        }
        if !is_in_hand {
            return Ok(());
        }
        is_first = false;
        std::thread::sleep(EVERY);
    }
}

fn record_of(found: &JournalState) -> Option<&Record> {
    match found {
        JournalState::Live(record) | JournalState::InHand { record, .. } => Some(record),
        JournalState::Elsewhere(journal) => Some(&journal.record),
        JournalState::Dead(journal) => Some(&journal.record),
        JournalState::Unreadable(_) => None,
    }
}

/// Whether the target is the server that the record is about: by its system identifier, or if a role may not ask for
/// that, by its address.
fn is_server_of(record: &Record, target: &Target, identifier: Option<&str>) -> bool {
    match (identifier, record.system_identifier.as_deref(), &record.place) {
        (Some(found), Some(wanted), _) => found == wanted,
        (_, _, ServerRef::Named(recipe)) => resolved(recipe).is_ok_and(|other| {
            (other.host_list(), other.port_list()) == (target.host_list(), target.port_list())
        }),
        (_, _, ServerRef::Own(_)) => false,
    }
}

/// Why something is still changed.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("the server did not respond within {} s", PATIENCE.as_secs())]
    Late,
    #[error(transparent)]
    Stopped(#[from] BadResult),
    #[error("{0}")]
    Machine(#[from] std::io::Error),
}

impl Left {
    fn is_about_password(&self) -> bool {
        let Self::Settings(SettingsError::Connect(error)) = self else { return false };
        matches!(error, ConnectError::PasswordMissing { .. })
            || error.sqlstate() == Some(&SqlState::INVALID_PASSWORD)
    }
}

/// The instance's server, if it outlives the pgrig that started it. (A server of a killed pgrig
/// ends by itself.)
fn shared(home: &Home, name: &str) -> Option<Target> {
    let spec = Spec { name: name.to_owned(), ..Spec::default() };
    let instance = Instance::open(home, spec).ok()?;
    match instance.status().ok()?.state {
        InstanceState::Running(server) if server.lifetime == Lifetime::Detached && server.ready => {
            let at = instance.connection().ok()?;
            Some(Target::embedded(&at.socket_dir, at.port, at.user, at.database))
        }
        _ => None,
    }
}

/// The target of a server that was named when the journal was written.
fn resolved(recipe: &str) -> Result<Target, ConnectError> {
    let options = ConnectOptions { dbname: Some(recipe.to_owned()), ..ConnectOptions::default() };
    resolve(&options, &|name: &str| std::env::var(name).ok())
}

/// Connects as the journal says; if that fails, as the verb reaches its server, if it is the same
/// server.
fn restore_named(
    recipe: &str,
    journal: &Journal,
    choice: Option<&ServerChoice>,
    printer: &Printer,
) -> Result<PutBack, Left> {
    let at = resolved(recipe).map_err(SettingsError::from)?;
    let error = match restore(&at, journal, PATIENCE, printer) {
        Err(error) => error,
        done => return done,
    };
    // Tables are in that database.
    match given(choice).map(|given| given.with_database(at.dbname())) {
        Some(given) if is_reached(&given, &journal.record, printer) => {
            restore(&given, journal, Duration::MAX, printer)
        }
        _ => Err(error),
    }
}

/// The server that the verb names.
fn given(choice: Option<&ServerChoice>) -> Option<Target> {
    let choice = choice.filter(|choice| matches!(server_kind(choice), Ok(ServerKind::Named)))?;
    resolve(&options(choice), &|name: &str| std::env::var(name).ok()).ok()
}

fn is_reached(target: &Target, record: &Record, printer: &Printer) -> bool {
    match runtime().map(|runtime| runtime.block_on(identifier(target, printer))) {
        Ok(Ok(identifier)) => is_server_of(record, target, identifier.as_deref()),
        _ => false,
    }
}

/// The system identifier of the server, once it is ready.
async fn identifier(target: &Target, printer: &Printer) -> Result<Option<String>, ConnectError> {
    target.connect_when_ready(&|text| printer.say(text)).await?.close().await;
    identify(target).await
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn restore(
    target: &Target,
    journal: &Journal,
    patience: Duration,
    printer: &Printer,
) -> Result<PutBack, Left> {
    let work = async {
        let ready = target.connect_when_ready(&|text| printer.say(text)).await;
        ready.map_err(SettingsError::from)?.close().await;
        put_back(target, journal).await
    };
    interrupt::block_on(runtime()?, printer, async {
        let mut work = pin!(tokio::time::timeout(patience, work));
        let done = if let Ok(done) = tokio::time::timeout(TELL_AFTER, &mut work).await {
            done
        } else {
            let (pid, place) = (journal.record.pid, place(&journal.record));
            printer.say(format!("restoring {place}, which pgrig process {pid} changed"));
            work.await
        };
        match done {
            Ok(done) => Ok(done?),
            Err(_) => Err(Left::Late),
        }
    })
}

fn tell(record: &Record, done: &PutBack, printer: &Printer) {
    let mut parts: Vec<String> =
        done.settings.iter().map(|(name, shown)| format!("{name} = {shown}")).collect();
    parts.extend(done.tables.iter().map(|table| format!("{} logged", table.qualified())));
    let ended = ended(record);
    printer.warn(if parts.is_empty() {
        format!("{ended}; everything is already restored")
    } else {
        format!("{ended}; restored now: {}", parts.join(", "))
    });
    if done.wants_sync {
        printer.danger(if done.was_without_fsync { SYNC_BY_HAND } else { SYNC_BY_HAND_PERHAPS });
    }
    if !done.emptied.is_empty() {
        let names: Vec<String> = done.emptied.iter().map(Table::qualified).collect();
        printer.warn(format!(
            "the server crashed while these tables were unlogged, so they are empty now: {}",
            names.join(", ")
        ));
    }
}

/// `pgrig process 12 changed the server host=… and did not restore it`, and the reason if it was recorded.
fn ended(record: &Record) -> String {
    let why = record.gave_up.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    format!("pgrig process {} changed {} and did not restore it{why}", record.pid, place(record))
}

fn left(journal: &Journal, error: &Left) -> String {
    let again = if error.is_about_password() {
        "To restore it, put the password into PGPASSWORD, and run pgrig server status"
    } else {
        "To try again, run pgrig server status (or any pgrig command that uses a server)"
    };
    format!(
        "{}. Restoring it now failed: {error}. {again}. {}",
        ended(&journal.record),
        by_hand(&journal.record, journal.path())
    )
}

fn elsewhere(record: &Record, path: &Path) -> String {
    format!(
        "pgrig process {} in another container or on another machine has changed {}, and may still be running. If \
         it has ended, restore the server by hand. {}",
        record.pid,
        place(record),
        by_hand(record, path)
    )
}

fn by_hand(record: &Record, path: &Path) -> String {
    format!(
        "To restore it by hand, run as a superuser: {} Then delete {}",
        record.remedy().join(" "),
        path.display()
    )
}

fn place(record: &Record) -> String {
    match &record.place {
        ServerRef::Own(instance) => format!("pgrig's own server (instance {instance})"),
        ServerRef::Named(recipe) => format!("the server {recipe}"),
    }
}
