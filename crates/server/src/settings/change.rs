//! Changes settings and tables of a server.

use futures_util::future::LocalBoxFuture;
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::durable::force_out;
use super::error::SettingsError;
use super::journal::Journal;
use super::look::{Effect, ToChange, stronger};
use super::record::{Before, Record, ServerRef};
use super::restore::{self, PutBack};
use super::{alter, tables};
use crate::session::{Session, Sessions};
use connect::{ConnectError, Target};

/// Time for the server to load its configuration again: it only has to read two files.
const RELOAD_DEADLINE: Duration = Duration::from_secs(30);
/// Time between two checks, each in a session of its own.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Time to wait for the ending session of another pgrig.
const IN_HAND_DEADLINE: Duration = Duration::from_secs(5);
/// Time to wait for statements of a pgrig that is gone.
const SESSIONS_DEADLINE: Duration = Duration::from_mins(1);
/// Time that a change of a table's persistence waits for other sessions.
pub(super) const LOCK_TIMEOUT: &str = "SET lock_timeout = '1min'";
/// Name of the setting that makes the server sync data to disk.
pub(super) const FSYNC: &str = "fsync";
/// Prefix of the application_name of sessions that change settings.
const SESSION_NAME: &str = "pgrig settings";

/// Changes settings and tables' persistence of one server, journalled. Dropping it leaves the journal, and
/// the next pgrig puts things back: see [`put_back`](super::put_back).
pub struct Changer {
    server: Server,
    session: Session,
    journal: Journal,
    /// Whether anything may have been changed so far.
    has_changed: Cell<bool>,
    /// Whether fsync may have been off.
    was_without_fsync: Cell<bool>,
}

impl Changer {
    /// Locks the server, reads the settings to be changed, and writes the journal into `directory`.
    ///
    /// # Errors
    /// If another pgrig is changing settings of the server, something cannot be changed, or the journal cannot be
    /// written.
    pub fn begin<'a>(
        target: &'a Target,
        place: ServerRef,
        directory: &'a Path,
        to_change: &'a ToChange,
    ) -> LocalBoxFuture<'a, Result<Self, SettingsError>> {
        Box::pin(
            async move { Self::begin_waiting_in(target.dbname(), target, place, directory, to_change).await },
        )
    }

    /// As [`Changer::begin`], for a target whose database must have no sessions between two
    /// changes, because it is copied. The role's privileges in that database count; sessions that
    /// wait are in another one.
    ///
    /// # Errors
    /// As [`Changer::begin`].
    pub fn begin_waiting_in<'a>(
        database: &'a str,
        target: &'a Target,
        place: ServerRef,
        directory: &'a Path,
        to_change: &'a ToChange,
    ) -> LocalBoxFuture<'a, Result<Self, SettingsError>> {
        Box::pin(async move {
            let mut record = Record::new(place, None);
            let target = named_session(target, &record);
            let server = Server { waiting: target.clone().with_database(database), acting: target };
            let session = Sessions::new(&server.waiting).open().await?;
            refuse_others(&session).await?;
            record.system_identifier = system_identifier(&session).await?;
            let found = to_change.look(&server.acting).await?;
            let reloaded = found.settings.into_iter().filter(|setting| setting.effect == Effect::Reload);
            record.settings = reloaded.map(|setting| setting.before).collect();
            let filled = found.tables.iter().filter(|loggable| loggable.has_rows);
            record.filled = filled.map(|loggable| loggable.table.clone()).collect();
            record.tables = found.tables.into_iter().map(|loggable| loggable.table).collect();
            record.statistics_since = statistics_since(&session).await?;
            session.run(LOCK_TIMEOUT).await?;
            let journal = Journal::begin(directory, record)?;
            let (has_changed, was_without_fsync) = (Cell::new(false), Cell::new(false));
            Ok(Self { server, session, journal, has_changed, was_without_fsync })
        })
    }

    /// Content of the journal.
    pub fn record(&self) -> &Record {
        &self.journal.record
    }

    /// Path of the journal.
    pub fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    /// The server, for sessions that are to be ended before everything is restored, if one of them
    /// is still open.
    pub fn target(&self) -> &Target {
        &self.server.waiting
    }

    /// Connects again after a restart of the server.
    ///
    /// # Errors
    /// If the server accepts no connection.
    pub async fn reconnect(&mut self) -> Result<(), SettingsError> {
        self.session = Sessions::new(&self.server.waiting).open().await?;
        Ok(self.session.run(LOCK_TIMEOUT).await?)
    }

    /// Makes the server check each value without changing any setting.
    ///
    /// # Errors
    /// [`SettingsError::Value`] for a value that the server refuses, or an error of the connection.
    pub fn try_values<'a>(
        &'a self,
        values: &'a [(String, String)],
    ) -> LocalBoxFuture<'a, Result<(), SettingsError>> {
        Box::pin(async move {
            for (name, value) in values {
                self.alter_system(name, value).await?;
            }
            for before in &self.record().settings {
                self.reset(before).await?;
            }
            Ok(())
        })
    }

    /// Sets all settings of the journal: those in `wanted` to the given values, the others to those
    /// found at the beginning. Returns the values that SHOW gives in a new session. If that turns
    /// fsync on again, data that was written without it is forced to disk, if the server is on this
    /// machine.
    ///
    /// # Errors
    /// If the server refuses a value, or a new session does not have it.
    pub fn set<'a>(
        &'a self,
        wanted: &'a [(String, String)],
    ) -> LocalBoxFuture<'a, Result<Vec<(String, String)>, SettingsError>> {
        Box::pin(async move {
            let settings = &self.record().settings;
            if settings.is_empty() {
                return Ok(Vec::new());
            }
            let was_without_fsync = show(&self.session, FSYNC).await? == "off";
            let value_of = |before: &Before| {
                wanted.iter().find(|(name, _)| *name == before.name).map(|(_, value)| value.as_str())
            };
            for before in settings {
                match value_of(before) {
                    Some(value) => self.alter_system(&before.name, value).await?,
                    None => self.reset(before).await?,
                }
            }
            if was_without_fsync || value_of_fsync(wanted) {
                self.was_without_fsync.set(true);
            }
            let fresh = reload(&self.session, &self.server).await?;
            let mut shown = Vec::new();
            for before in settings {
                shown.push((before.name.clone(), in_force(&fresh, before, value_of(before)).await?));
            }
            if was_without_fsync && has_fsync(&shown) {
                // If that is impossible, pgrig asks for a sync by hand once all is put back.
                force_out(&self.session).await?;
            }
            Ok(shown)
        })
    }

    /// Makes the journal's tables unlogged, or logged again. Returns whether any had to be changed.
    ///
    /// # Errors
    /// If a statement fails: somebody may hold a lock on a table for a minute.
    pub async fn set_unlogged(&self, unlogged: bool) -> Result<bool, SettingsError> {
        self.has_changed.set(true);
        Ok(!tables::set_persistence(&self.session, &self.record().tables, unlogged).await?.is_empty())
    }

    /// Restores everything, in any state.
    ///
    /// # Errors
    /// If something could not be put back; the journal then stays, and says why.
    pub async fn finish(self) -> Result<PutBack, SettingsError> {
        let Self { server, session, journal, has_changed, was_without_fsync } = self;
        // The session may be in the middle of a statement. Dropping it makes the server end that statement.
        drop(session);
        if !has_changed.get() {
            journal.close()?;
            return Ok(PutBack::default());
        }
        // It may have crashed, or be restarting; if it does not come back, the error below says so.
        if let Ok(connection) = server.waiting.connect_when_ready(&|_| ()).await {
            connection.close().await;
        }
        let done = restore::put_back_on(&server, &journal, was_without_fsync.get()).await;
        if let Err(error) = &done {
            // If that cannot be written, the next pgrig does not know why.
            let _ = journal.give_up(error.to_string());
        }
        done
    }

    async fn alter_system(&self, name: &str, value: &str) -> Result<(), SettingsError> {
        self.has_changed.set(true);
        match self.session.run(&alter(name, Some(value))).await {
            Err(error @ ConnectError::Query { .. }) if is_about_value(&error) => Err(SettingsError::Value {
                name: name.to_owned(),
                value: value.to_owned(),
                error: error.into(),
            }),
            done => done.map_err(|error| SettingsError::alter_system(name, error)),
        }
    }

    async fn reset(&self, before: &Before) -> Result<(), SettingsError> {
        self.has_changed.set(true);
        reset(&self.session, before).await
    }
}

/// Restores the value that ALTER SYSTEM had set before, or removes it if there was none.
pub(super) async fn reset(session: &Session, before: &Before) -> Result<(), SettingsError> {
    let done = session.run(&alter(&before.name, before.altered.as_deref())).await;
    done.map_err(|error| SettingsError::alter_system(&before.name, error))
}

/// Whether the error is about the value, and not, for example, about the disk.
fn is_about_value(error: &ConnectError) -> bool {
    error.sqlstate().is_some_and(|state| {
        state.code().starts_with("22")
            || [SqlState::UNDEFINED_OBJECT, SqlState::CANT_CHANGE_RUNTIME_PARAM].contains(state)
    })
}

fn value_of_fsync(wanted: &[(String, String)]) -> bool {
    wanted.iter().any(|(name, _)| name == FSYNC)
}

/// One server, for sessions whose application_name is the record's.
pub(super) struct Server {
    /// The database in which the role has its privileges: EXECUTE on a function is granted in each
    /// database separately.
    pub(super) acting: Target,
    /// Target of long-lived sessions. It is the same as `acting`, unless that database must have no
    /// sessions.
    pub(super) waiting: Target,
}

/// The same server, for sessions whose application_name names the record.
pub(super) fn named_session(target: &Target, record: &Record) -> Target {
    target.clone().with_application_name(&format!("{SESSION_NAME} {}", record.id))
}

/// Refuses to begin while another pgrig has a session that changes settings of this cluster. If two begin at the
/// same moment, both see the other.
async fn refuse_others(session: &Session) -> Result<(), SettingsError> {
    let query = "SELECT pid FROM pg_stat_activity \
                 WHERE application_name LIKE $1 AND pid <> pg_backend_pid() LIMIT 1";
    let pattern = format!("{SESSION_NAME} %");
    let begin = Instant::now();
    while let Some(row) = session.rows(query, &[&pattern]).await?.first() {
        if begin.elapsed() > IN_HAND_DEADLINE {
            return Err(SettingsError::InHand { pid: row.get(0) });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// Ends other sessions of this name, and waits for their end.
pub(super) async fn end_others(session: &Session, target: &Target) -> Result<(), SettingsError> {
    let query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE application_name = $1 AND pid <> pg_backend_pid()";
    let begin = Instant::now();
    loop {
        let sessions: i64 = session.row(query, &[&target.application_name()]).await?.get(0);
        if sessions == 0 {
            return Ok(());
        }
        if begin.elapsed() > SESSIONS_DEADLINE {
            return Err(SettingsError::Sessions { sessions });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Start of the server's statistics: after a crash they begin anew (`pgstat_discard_stats`, before PostgreSQL 15
/// `pgstat_reset_all`).
pub(super) async fn statistics_since(session: &Session) -> Result<Option<String>, ConnectError> {
    let query =
        "SELECT to_char(stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') FROM pg_stat_bgwriter";
    Ok(session.row(query, &[]).await?.get(0))
}

/// The system identifier; none if the role may not ask.
pub(super) async fn system_identifier(session: &Session) -> Result<Option<String>, ConnectError> {
    let query = "SELECT system_identifier::text FROM pg_control_system()";
    match session.row(query, &[]).await {
        Ok(row) => Ok(Some(row.get(0))),
        Err(ConnectError::Query { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has the server load its configuration again, and returns a session that began after that: new sessions have
/// the settings of the server's main process, and know when that loaded them.
pub(super) async fn reload(session: &Session, server: &Server) -> Result<Session, SettingsError> {
    let asked = "SELECT extract(epoch FROM clock_timestamp())::float8";
    let asked: f64 = session.row(asked, &[]).await?.get(0);
    ask_to_reload(session, server).await?;
    let begin = Instant::now();
    loop {
        let fresh = Session { connection: server.waiting.connect().await? };
        let loaded = "SELECT extract(epoch FROM pg_conf_load_time())::float8 >= $1";
        if fresh.row(loaded, &[&asked]).await?.get(0) {
            return Ok(fresh);
        }
        fresh.connection.close().await;
        if begin.elapsed() > RELOAD_DEADLINE {
            let why = file_errors(session).await;
            return Err(SettingsError::NotReloaded { seconds: RELOAD_DEADLINE.as_secs(), why });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Asks the server to reload, in the database where the role may do so.
async fn ask_to_reload(session: &Session, server: &Server) -> Result<(), ConnectError> {
    let query = "SELECT pg_reload_conf()";
    if server.waiting.dbname() == server.acting.dbname() {
        session.row(query, &[]).await?;
        return Ok(());
    }
    let there = Session { connection: server.acting.connect().await? };
    let asked = there.row(query, &[]).await;
    there.close().await;
    asked.map(|_| ())
}

/// Errors in the server's configuration files, where the role may see them.
async fn file_errors(session: &Session) -> String {
    let query = "SELECT sourcefile, sourceline, error FROM pg_file_settings WHERE error IS NOT NULL LIMIT 1";
    match session.rows(query, &[]).await.ok().as_deref() {
        Some([row]) => {
            let (file, line, error): (Option<&str>, Option<i32>, &str) = (row.get(0), row.get(1), row.get(2));
            format!(": {} line {}: {error}", file.unwrap_or("a configuration file"), line.unwrap_or(0))
        }
        _ => String::new(),
    }
}

/// Whether fsync is among the changed settings, and is on now.
pub(super) fn has_fsync(shown: &[(String, String)]) -> bool {
    shown.iter().any(|(name, value)| name == FSYNC && value == "on")
}

pub(super) async fn show(session: &Session, name: &str) -> Result<String, ConnectError> {
    Ok(session.row("SELECT current_setting($1)", &[&name]).await?.get(0))
}

/// The value of SHOW in this session. It must be the wanted one, or the earlier one if none is
/// wanted.
async fn in_force(fresh: &Session, before: &Before, wanted: Option<&str>) -> Result<String, SettingsError> {
    let shown = show(fresh, &before.name).await?;
    let row = fresh.row(include_str!("../sql/settings_look.sql"), &[&before.name]).await?;
    let source: &str = row.get("source");
    let is_so = match wanted {
        None => shown == before.shown,
        // The file was loaded, and this session has its value from there: so it is the written value.
        Some(_) => source == "configuration file" && row.get("is_altered"),
    };
    if is_so {
        return Ok(shown);
    }
    let why = match stronger(fresh, source, &before.name).await? {
        Some((by, remedy)) => format!("a setting {by} takes precedence: {remedy}"),
        None => format!(
            "its source there is \"{source}\": look at SELECT * FROM pg_file_settings WHERE name = '{}'",
            before.name
        ),
    };
    let wanted = wanted.unwrap_or(&before.shown).to_owned();
    Err(SettingsError::NotInForce { name: before.name.clone(), wanted, shown, why })
}
