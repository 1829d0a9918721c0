//! The databases that a run creates: some that are filled, and copies of them. How they are marked and dropped.
//!
//! All are created with a connection limit that is pgrig's mark, because CREATE DATABASE cannot set a comment. Their names
//! begin with the run's. As long as the run lives, its leading session has the run's name as its application name. So the
//! next run finds what a killed one left, and does not touch databases of a run that lives.

use std::cell::RefCell;
use std::rc::Rc;

use connect::{ConnectError, SqlState, Target};
use futures_util::future::LocalBoxFuture;
use server::interruption::clear_up;
use server::marked;
use server::quote::identifier;
use server::{Restarter, Session, SurveyError};

use super::others::Others;
use super::removal::{drop_all, drop_whole};
use super::roles::Roles;
use super::{Observer, failure};
use crate::error::DdlError;
use crate::locale::{Locale, UnknownLocale};
use crate::script::Statement;

/// Prefix of all names. As in `left.sql`.
const PREFIX: &str = "pgrig_ddl_";
/// The database without objects, from which databases of any locale can be made.
const TEMPLATE: &str = "template0";
/// The first release with strategies of CREATE DATABASE.
const STRATEGIES: u32 = 150_000;

/// Databases of one run on one server.
pub(crate) struct Databases {
    /// The database of the user's connection.
    outside: Target,
    /// The run's name, with which the names of its databases begin.
    name: String,
    /// Session that creates and drops databases, and shows that the run lives.
    lead: Session,
    version: u32,
    /// The roles that the run makes.
    roles: Rc<Roles>,
    others: RefCell<Others>,
    /// The clauses with which databases get their locale; nothing for that of the server.
    locale: String,
    /// The locale, if the databases have the order of bytes in its place.
    pub(crate) doubt: Option<UnknownLocale>,
}

impl Databases {
    /// Connects, and drops what killed runs have left; the observer is warned of databases that stay. `target` is made [`Target::apart`], so that
    /// statements of the run are cancelled and not those that clear up.
    pub(crate) async fn begin(
        target: &Target,
        name: String,
        roles: Rc<Roles>,
        observer: &mut dyn Observer,
    ) -> Result<Self, DdlError> {
        let lead = Self::lead(target, &name).await?;
        for warning in sweep(&lead, target, observer).await? {
            observer.warned(&warning);
        }
        roles.begin(&lead).await?;
        let version = "SELECT current_setting('server_version_num')::int4 AS version";
        let version = lead.row(version, &[]).await?.get::<_, i32>("version").unsigned_abs();
        Ok(Self {
            outside: target.clone(),
            name,
            lead,
            version,
            roles,
            others: RefCell::default(),
            locale: String::new(),
            doubt: None,
        })
    }

    /// The database of the user's connection.
    pub(crate) fn outside(&self) -> &Target {
        &self.outside
    }

    /// The server's version (`server_version_num`).
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// A name for a run.
    pub(crate) fn name() -> String {
        format!("{PREFIX}{:016x}", fastrand::u64(..))
    }

    /// Creates a database with no relations, whose name ends with `suffix`.
    pub(crate) async fn create(&self, suffix: &str) -> Result<Target, DdlError> {
        match self.create_from(suffix, TEMPLATE).await {
            Ok(created) => Ok(created),
            Err(error) if error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                let role = self.lead.row("SELECT current_user::text AS role", &[]).await?.get("role");
                Err(DdlError::CreateDatabase(SurveyError::CreateDatabasePrivilege { role }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The locale that databases have without clauses.
    pub(crate) async fn own_locale(&self) -> Result<Locale, ConnectError> {
        let connection = &self.lead.connection;
        match catalog::locale(&connection.client, Some(TEMPLATE)).await {
            Ok(locale) => Ok(Locale::from(&locale)),
            Err(error) => Err(connection.explain(error).await),
        }
    }

    /// Gives databases that are created from now on a locale. The inner error says why the server does not have it; then they have that of the server.
    pub(crate) async fn try_locale(&mut self, locale: &Locale) -> Result<Result<(), String>, DdlError> {
        let Some(clauses) = locale.clauses(self.version) else {
            return Ok(Err(format!("PostgreSQL {} has no such locales", self.version / 10_000)));
        };
        self.locale = clauses;
        match self.create("locale").await {
            Ok(database) => {
                drop_whole(&self.lead, &self.outside, database.dbname()).await?;
                Ok(Ok(()))
            }
            Err(DdlError::Connect(error)) if failure::is_of_statement(&error) => {
                self.locale.clear();
                Ok(Err(failure::of(&error).message))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a copy of a database of this run, whose name ends with `suffix`, and forces everything to disk. The migration may run there.
    pub(crate) async fn copy(&self, of: &Target, suffix: &str) -> Result<Target, ConnectError> {
        let copy = self.create_from(suffix, of.dbname()).await?;
        self.flush().await?;
        Ok(copy)
    }

    /// Gives a database of this run a name that ends with `suffix`, in place of a copy, and forces everything to disk.
    pub(crate) async fn take(&self, database: &Target, suffix: &str) -> Result<Target, ConnectError> {
        let name = format!("{}_{suffix}", self.name);
        let rename =
            format!("ALTER DATABASE {} RENAME TO {}", identifier(database.dbname()), identifier(&name));
        self.lead.run(&rename).await?;
        self.flush().await?;
        Ok(self.outside.clone().with_database(&name))
    }

    /// Forces everything to disk, if the role may.
    pub(crate) async fn flush(&self) -> Result<(), ConnectError> {
        match self.lead.run("CHECKPOINT").await {
            // Then the server's own checkpoints are what they are.
            Err(error) if error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            done => done,
        }
    }

    /// Restarts the server with these settings in addition to its own, and connects again. Nobody else is connected. The inner
    /// error says why the server runs without the settings.
    pub(crate) async fn restart(
        &mut self,
        restarter: &dyn Restarter,
        settings: &[(String, String)],
    ) -> Result<Result<(), String>, DdlError> {
        // It can be interrupted, and leaves little for the one of the shutdown.
        self.lead.run("CHECKPOINT").await?;
        let result = tokio::task::block_in_place(|| restarter.restart(settings));
        match (Self::lead(&self.outside, &self.name).await, result) {
            (Ok(lead), result) => {
                self.lead = lead;
                Ok(result)
            }
            (Err(_), Err(why)) => Err(DdlError::Restart { why }),
            (Err(error), Ok(())) => Err(error.into()),
        }
    }

    /// The server's `wal_level`.
    pub(crate) async fn wal_level(&self) -> Result<String, ConnectError> {
        Ok(self.lead.row("SELECT current_setting('wal_level') AS level", &[]).await?.get("level"))
    }

    async fn lead(target: &Target, name: &str) -> Result<Session, ConnectError> {
        Session::open(&target.clone().with_application_name(name)).await
    }

    /// Notes the work of others from now on: their work up to each drop of a database.
    pub(crate) async fn note_others(&self) -> Result<(), ConnectError> {
        let rows = self.lead.rows(include_str!("../sql/others.sql"), &[&self.name]).await?;
        self.others.borrow_mut().add(&rows);
        Ok(())
    }

    /// A warning about the work of others, if there was any.
    pub(crate) fn others(&self) -> Option<String> {
        self.others.borrow().warning()
    }

    /// Drops a database of this run, and the roles that the migration has made there.
    pub(crate) async fn drop(&self, copy: &Target) -> Result<(), ConnectError> {
        let is_measuring = self.others.borrow().has_begun();
        if is_measuring {
            self.note_others().await?;
        }
        drop_whole(&self.lead, &self.outside, copy.dbname()).await?;
        self.roles.drop_new(&self.lead).await
    }

    /// Notes the roles that the open transaction of a session has made, in which it creates the schema.
    pub(crate) async fn note_roles_of_schema(&self, session: &Session) -> Result<(), ConnectError> {
        self.roles.note_schema(session, &self.lead).await
    }

    /// Notes the roles that the open transaction of a session has made, in which this statement of the migration was the last one.
    pub(crate) fn note_roles<'a>(
        &'a self,
        session: &'a Session,
        statement: &'a Statement,
    ) -> LocalBoxFuture<'a, Result<(), ConnectError>> {
        self.roles.note(statement, (session, &self.lead))
    }

    /// Runs a statement of the migration, and notes the roles that it makes if it has made some before. Then its transaction is one of pgrig's,
    /// unless one is open.
    pub(crate) fn run<'a>(
        &'a self,
        session: &'a Session,
        statement: &'a Statement,
        is_in_transaction: bool,
    ) -> LocalBoxFuture<'a, Result<(), ConnectError>> {
        self.roles.run(statement, (session, &self.lead), is_in_transaction)
    }

    /// The names of the roles that the schema has made.
    pub(crate) async fn made_roles(&self) -> Result<Vec<String>, ConnectError> {
        self.roles.made(&self.lead).await
    }

    async fn create_from(&self, suffix: &str, template: &str) -> Result<Target, ConnectError> {
        // Files are copied as they are: through shared buffers, the copy would be in the cache.
        let strategy = if self.version >= STRATEGIES { " STRATEGY = file_copy" } else { "" };
        let name = format!("{}_{suffix}", self.name);
        // A copy has the locale of its template.
        let locale = if template == TEMPLATE { self.locale.as_str() } else { "" };
        let (quoted, template) = (identifier(&name), identifier(template));
        let mark = marked::NUMBER;
        let create =
            format!("CREATE DATABASE {quoted} TEMPLATE {template}{strategy}{locale} CONNECTION LIMIT {mark}");
        self.lead.run(&create).await?;
        Ok(self.outside.clone().with_database(&name))
    }
}

/// Drops all databases of a run, after its sessions have ended or been given up, and the roles that it made. Returns warnings about roles that
/// stay; and as an error the databases that could not be dropped, and why the first could not.
pub(crate) async fn finish(
    target: &Target,
    name: &str,
    roles: &Roles,
) -> (Vec<String>, Result<(), (String, String)>) {
    let found = RefCell::new((Vec::new(), Vec::new()));
    let clear = async || {
        let last = Session::open(target).await?;
        let query = "SELECT datname::text AS name FROM pg_catalog.pg_database \
                     WHERE datname = $1 OR starts_with(datname::text, $1 || '_') ORDER BY 1 DESC";
        let rows = last.rows(query, &[&name]).await?;
        let kept = drop_all(&last, target, rows.iter().map(|row| row.get("name")).collect()).await?;
        let warnings = roles.end(&last).await?;
        *found.borrow_mut() = (warnings, kept);
        last.close().await;
        Ok(())
    };
    let cleared = clear_up(clear).await;
    let (warnings, kept) = found.into_inner();
    let finished = match (cleared, kept.first()) {
        (Err(why), _) => Err((name.to_owned(), why)),
        (Ok(()), Some((_, why))) => {
            let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
            Err((names.join(", "), why.clone()))
        }
        (Ok(()), None) => Ok(()),
    };
    (warnings, finished)
}

/// Drops the databases of runs that no longer live. Returns a warning for each that stays.
async fn sweep(
    session: &Session,
    target: &Target,
    observer: &mut dyn Observer,
) -> Result<Vec<String>, ConnectError> {
    let rows = session.rows(include_str!("../sql/left.sql"), &[&marked::NUMBER]).await?;
    if !rows.is_empty() {
        observer.step("dropping the databases that killed runs have left");
    }
    let kept = drop_all(session, target, rows.iter().map(|row| row.get("name")).collect()).await?;
    let warning = |(name, why): &(String, String)| {
        format!(
            "pgrig could not drop database {name}, which a killed run left: {why}. The next pgrig ddl on this server tries again"
        )
    };
    Ok(kept.iter().map(warning).collect())
}
