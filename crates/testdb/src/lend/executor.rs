//! Carries out the keeper's actions: makes, copies, marks and drops databases on the server.

use failure::Classified;
use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use tokio::sync::oneshot;

use super::super::clone::{CloneError, Strategy, clone};
use super::super::load::{LoadError, load};
use super::super::source::Source;
use super::api::Refusal;
use super::error::LendError;
use super::name::{self, KeeperId};
use super::state::{Failed, FoundDatabase, Origin, Recipe};
use super::tag::{Purpose, Tag};
use connect::{ConnectError, Target};
use server::interruption::{Ended, until_stopped};
use server::marked::drop_database;
use server::quote::{identifier, literal, shown};
use server::{Session, Sessions, SurveyError};

/// Time to wait for the session of a keeper that has just ended.
const PREDECESSOR_DEADLINE: Duration = Duration::from_secs(5);
/// Time to wait for the statements of that keeper to end.
const WORK_DEADLINE: Duration = Duration::from_mins(1);
/// Time between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Connections to one server, all of them to a database that pgrig does not lend or copy.
pub(super) struct Executor {
    target: Target,
    keeper: KeeperId,
    /// Session for statements that must not wait, such as marks. It holds the lock that ensures
    /// that there is only one keeper with this id on a server.
    control: Session,
    /// Sessions for statements that take long; opened when needed.
    idle: Mutex<Vec<Session>>,
    /// Names of databases that are not finished yet.
    making: Mutex<BTreeSet<String>>,
}

/// Facts about the server that a keeper needs.
pub(super) struct ServerInfo {
    /// For instance `18.6`.
    pub(super) version: String,
    /// Changes whenever the server has crashed.
    pub(super) epoch: String,
    pub(super) strategies: Vec<Strategy>,
}

impl Executor {
    /// Connects, and checks whether databases can be lent here.
    pub(super) async fn connect(target: &Target, keeper: &KeeperId) -> Result<(Self, ServerInfo), LendError> {
        // A lost mark is no harm where it can be lost: a crash of the server ends what is lent with it, and spares
        // of before are not lent any more.
        let target = target
            .clone()
            .with_application_name(&keeper.application_name())
            .with_setting("synchronous_commit", "off");
        // Its lock must not outlive it for hours if the network goes, or the machine. Unix sockets need none.
        let keepalives = [("idle", "30"), ("interval", "10"), ("count", "3")];
        let target = keepalives.iter().fold(target, |target, (name, value)| {
            target.with_setting(&format!("tcp_keepalives_{name}"), value)
        });
        let (target, control) = connect_beside_templates(target).await?;
        server::ServerInfo::ask(&control.connection).await?.check_writable()?;
        let row = control.row(include_str!("../sql/lend_server.sql"), &[]).await?;
        if !row.get::<_, bool>("may_create") {
            return Err(SurveyError::CreateDatabasePrivilege { role: row.get("role") }.into());
        }
        claim(&control, keeper).await?;
        end_predecessor(&control, keeper).await?;
        let strategies = Strategy::available(&control).await?;
        let server = ServerInfo { version: row.get("version"), epoch: row.get("epoch"), strategies };
        let (keeper, idle, making) = (keeper.clone(), Mutex::default(), Mutex::default());
        Ok((Self { target, keeper, control, idle, making }, server))
    }

    /// Whether the sessions are connected to this database, so that it cannot be copied.
    pub(super) fn is_connected_to(&self, database: &str) -> bool {
        self.target.dbname() == database
    }

    /// Resolves when the server is gone.
    pub(super) async fn lost(&self) -> ConnectError {
        self.control.connection.ending().await
    }

    /// This role's databases that have names and the mark of pgrig's.
    pub(super) async fn find(&self) -> Result<Vec<FoundDatabase>, ConnectError> {
        let rows = self.control.rows(include_str!("../sql/lend_found.sql"), &[&name::PREFIX]).await?;
        let found = rows.iter().filter_map(|row| {
            let comment: Option<String> = row.get("comment");
            let tag = comment.as_deref().and_then(Tag::read);
            let half_dropped = row.get("half_dropped");
            let is_own = tag.is_some() || half_dropped || row.get("is_being_made");
            is_own.then(|| FoundDatabase { name: row.get("name"), tag, half_dropped })
        });
        Ok(found.filter(|found| name::meaning(&found.name).is_some()).collect())
    }

    /// A function that tells whether the keeper with an id has a session here.
    pub(super) async fn live_keepers(&self) -> Result<impl Fn(&KeeperId) -> bool + use<>, ConnectError> {
        let rows = self.control.rows(include_str!("../sql/lend_keepers.sql"), &[]).await?;
        let names: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
        Ok(move |keeper: &KeeperId| names.contains(&keeper.application_name()))
    }

    /// Durability settings, by SHOW.
    pub(super) async fn settings(&self) -> Result<Vec<(String, String)>, ConnectError> {
        // The keeper's own sessions do not wait for commits; others do as the server says.
        let session = Sessions::new(&self.target.clone().without_settings()).open().await?;
        let rows = session.rows(include_str!("../sql/durability.sql"), &[]).await?;
        Ok(rows.iter().map(|row| (row.get("name"), row.get("shown"))).collect())
    }

    /// Sizes of databases on disk; none for dropped ones.
    pub(super) async fn sizes(&self, names: &[String]) -> Result<Vec<Option<u64>>, ConnectError> {
        let session = self.session().await?;
        let mut sizes = Vec::with_capacity(names.len());
        for name in names {
            let size = session.row("SELECT pg_database_size($1::text::name)", &[name]).await;
            let bytes = size.ok().and_then(|row| row.get::<_, Option<i64>>(0));
            sizes.push(bytes.and_then(|bytes| u64::try_from(bytes).ok()));
        }
        self.put_back(session);
        Ok(sizes)
    }

    /// A text that changes when the database changes; none if there is no database of this name.
    pub(super) async fn fingerprint(&self, database: &str) -> Result<Option<String>, ConnectError> {
        let query = include_str!("../sql/lend_fingerprint.sql");
        let rows = self.control.rows(query, &[&database]).await?;
        Ok(rows.first().map(|row| row.get("fingerprint")))
    }

    /// Makes a template, and returns whether it contains unlogged tables. It has a temporary name
    /// until it is complete. A message from `stopped` cancels it.
    pub(super) async fn make(
        &self,
        template: &str,
        recipe: &Recipe,
        tag: Tag,
        stopped: oneshot::Receiver<()>,
    ) -> Result<bool, Refusal> {
        // Other work must not be cancelled with it.
        let target = self.target.clone().apart();
        let making = self.begin();
        let stopped = async {
            if stopped.await.is_err() {
                // The keeper has ended, and with it this.
                std::future::pending::<()>().await;
            }
        };
        let work = pin!(make_as(&target, &making, template, recipe, tag));
        let made = match until_stopped(&target, stopped, work, || {}).await {
            Ended::Done(made) | Ended::Stopped(Some(made)) => made,
            Ended::Stopped(None) => Err(Refusal::failed("the server does not answer")),
        };
        if made.is_err()
            && let Ok(session) = self.session().await
        {
            // The next keeper drops the databases that cannot be dropped now.
            let _ = drop_database(&session, &making).await;
            self.put_back(session);
        }
        self.unfinished().remove(&making);
        made
    }

    /// Copies a template. The copy has a temporary name until it has its tag.
    pub(super) async fn copy(
        &self,
        template: &str,
        name: &str,
        strategy: Strategy,
        tag: &Tag,
    ) -> Result<Duration, Failed> {
        let session = self.session().await.map_err(failed)?;
        let making = self.begin();
        let copied = match clone(&session, template, &making, strategy).await {
            Ok(took) => finish(&session, &making, name, tag).await.map(|()| took).map_err(failed),
            Err(CloneError::Missing { .. }) => Err(Failed::Missing),
            Err(error) => Err(Failed::Other(refused(error))),
        };
        if copied.is_err() {
            let _ = drop_database(&session, &making).await;
        }
        self.unfinished().remove(&making);
        self.put_back(session);
        copied
    }

    /// Writes a tag at once.
    pub(super) async fn mark(&self, name: &str, tag: &Tag) -> Result<(), Failed> {
        self.control.run(&comment(name, tag)).await.map_err(failed)
    }

    /// Writes a tag as soon as the database is not being copied.
    pub(super) async fn touch(&self, name: &str, tag: &Tag) -> Result<(), ConnectError> {
        let session = self.session().await?;
        session.run(&comment(name, tag)).await?;
        self.put_back(session);
        Ok(())
    }

    /// Drops a database, ending its sessions.
    pub(super) async fn drop_database(&self, name: &str) -> Result<(), Refusal> {
        let session = self.session().await.map_err(Refusal::failed)?;
        let dropped = drop_database(&session, name).await;
        self.put_back(session);
        dropped.map_err(|error| Refusal::failed(format!("cannot drop database {name}: {error}")))
    }

    /// Whether this is the name of an unfinished database that this keeper will finish or drop.
    pub(super) fn is_making(&self, name: &str) -> bool {
        self.unfinished().contains(name)
    }

    /// A temporary name for a database that is to be made.
    fn begin(&self) -> String {
        let making = name::making(&self.keeper, fastrand::u32(..));
        self.unfinished().insert(making.clone());
        making
    }

    fn unfinished(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn session(&self) -> Result<Session, ConnectError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(session) if !session.connection.client.is_closed() => Ok(session),
            _ => Sessions::new(&self.target).open().await,
        }
    }

    fn put_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

/// Connects to `postgres`, which no keeper copies, or if that is not possible to the database that
/// the user named.
async fn connect_beside_templates(target: Target) -> Result<(Target, Session), ConnectError> {
    let named = target.dbname().to_owned();
    let target = target.with_database("postgres");
    match Sessions::new(&target).open().await {
        Ok(session) => Ok((target, session)),
        Err(error)
            if matches!(
                error.sqlstate(),
                Some(
                    &(SqlState::UNDEFINED_DATABASE
                        | SqlState::INSUFFICIENT_PRIVILEGE
                        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
                )
            ) =>
        {
            let target = target.with_database(&named);
            let session = Sessions::new(&target).open().await?;
            Ok((target, session))
        }
        Err(error) => Err(error),
    }
}

/// Takes the lock of this id, until the session ends. The file lock in PGRIG_HOME is not enough: a
/// keeper on another machine or container may have the same id.
async fn claim(control: &Session, keeper: &KeeperId) -> Result<(), LendError> {
    let key = keeper.lock();
    let began = Instant::now();
    while !control.row("SELECT pg_try_advisory_lock($1)", &[&key]).await?.get::<_, bool>(0) {
        if began.elapsed() > PREDECESSOR_DEADLINE {
            let holders = control.rows(include_str!("../sql/lend_holder.sql"), &[&key]).await?;
            // None if it has just gone: then it is tried again.
            if let Some(holder) = holders.first() {
                return Err(LendError::Taken { pid: holder.get("pid"), seen: holder.get("seen") });
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Ends the statements of an earlier keeper with this id. Otherwise the server would finish them
/// after this keeper has looked for existing databases.
async fn end_predecessor(control: &Session, keeper: &KeeperId) -> Result<(), LendError> {
    let began = Instant::now();
    loop {
        let end = include_str!("../sql/lend_end.sql");
        let left: i64 = control.row(end, &[&keeper.application_name()]).await?.get(0);
        match left {
            0 => return Ok(()),
            left if began.elapsed() > WORK_DEADLINE => {
                return Err(LendError::Lingering { sessions: left, named: keeper.application_name() });
            }
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Makes the database, in sessions of this target.
async fn make_as(
    target: &Target,
    making: &str,
    template: &str,
    recipe: &Recipe,
    mut tag: Tag,
) -> Result<bool, Refusal> {
    let session = Session::open(target).await.map_err(Refusal::failed)?;
    let origin = match &recipe.from {
        Origin::Database(name) => name,
        Origin::File(_) | Origin::Nothing => "template0",
    };
    clone(&session, origin, making, Strategy::Default).await.map_err(refused)?;
    let target = target.clone().with_database(making);
    if let Origin::File(path) = &recipe.from {
        let unreadable = |error| Refusal::new(422, format!("{error}"), "give an existing dump or script");
        let source = Source::file(path).map_err(unreadable)?;
        load(&target, &source, recipe.unlogged).await.map_err(|error| not_loaded(path, &error))?;
    }
    let unlogged = settle(&target).await.map_err(Refusal::failed)?;
    if let Purpose::Template(content) = &mut tag.state {
        content.unlogged = unlogged;
    }
    // No session may connect to it: a template that is in use cannot be copied.
    let close = format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", identifier(making));
    session.run(&close).await.map_err(Refusal::failed)?;
    finish(&session, making, template, &tag).await.map_err(Refusal::failed)?;
    session.close().await;
    Ok(unlogged)
}

/// Sets tag and final name in one transaction: a database with the final name always has its tag,
/// which replaces the mark.
async fn finish(session: &Session, making: &str, name: &str, tag: &Tag) -> Result<(), ConnectError> {
    let (making, tagged) = (identifier(making), comment(making, tag));
    let finished = [
        tagged,
        format!("ALTER DATABASE {making} CONNECTION LIMIT -1"),
        format!("ALTER DATABASE {making} RENAME TO {}", identifier(name)),
    ];
    session.run_all(&finished).await
}

/// Does work on the template that every copy would otherwise repeat. Returns whether it contains
/// unlogged tables.
async fn settle(target: &Target) -> Result<bool, ConnectError> {
    let session = Sessions::new(target).open().await?;
    // It only helps: it may fail for what no load fails for, since it runs functions of indexes with a search_path
    // of its own (PostgreSQL 17).
    if let Err(error) = session.run("VACUUM (ANALYZE)").await
        && error.sqlstate().is_none()
    {
        return Err(error);
    }
    let row = session.row(include_str!("../sql/lend_unlogged.sql"), &[]).await?;
    session.connection.close().await;
    Ok(row.get("unlogged"))
}

fn comment(name: &str, tag: &Tag) -> String {
    format!("COMMENT ON DATABASE {} IS {}", identifier(name), literal(&tag.write()))
}

fn failed(error: ConnectError) -> Failed {
    match error.sqlstate() {
        Some(&SqlState::UNDEFINED_DATABASE) => Failed::Missing,
        _ => Failed::Other(Refusal::failed(error)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is turned into")]
fn refused(error: CloneError) -> Refusal {
    let status = match &error {
        CloneError::InUse { .. } => 409,
        error if error.is_usage() => 422,
        _ => 500,
    };
    // The keeper connects to another database, so it can copy one that accepts no connections.
    let remedy = match &error {
        CloneError::InUse { template, .. } => Some(format!(
            "to keep new sessions out, run ALTER DATABASE {} ALLOW_CONNECTIONS false",
            shown(template)
        )),
        _ => None,
    };
    Refusal { status, error: error.to_string(), remedy }
}

fn not_loaded(path: &Path, error: &LoadError) -> Refusal {
    let status = if matches!(error, LoadError::Connect(_)) { 500 } else { 422 };
    let error = match error {
        // It names the file itself.
        LoadError::Source(error) => error.to_string(),
        error => format!("{}: {error}", path.display()),
    };
    Refusal { status, error, remedy: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_in_use_names_the_statement_that_keeps_sessions_out() {
        let in_use = |template: &str| CloneError::InUse { template: template.to_owned(), by: "x".to_owned() };
        let refusal = refused(in_use("Shop"));
        assert_eq!(refusal.status, 409);
        assert!(
            refusal.to_string().ends_with("run ALTER DATABASE \"Shop\" ALLOW_CONNECTIONS false"),
            "{refusal}"
        );
        // pgrig testdb bench has to connect to the database itself.
        assert!(!in_use("Shop").to_string().contains("ALLOW_CONNECTIONS"));
        assert_eq!(refused(CloneError::Exists { name: "x".to_owned() }).remedy, None);
    }
}
