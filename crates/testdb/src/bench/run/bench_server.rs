//! A server on which trials have their databases, with everything that is created and changed on
//! it.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::bench::error::BenchError;
use crate::bench::run::databases::Databases;
use crate::bench::variant::{Means, Variant};
use crate::clone::{self, Measured, Strategy, clone};
use crate::load::{LoadError, load};
use crate::source::Source;
use crate::unlog::{self, Direction, UnlogRequest};
use connect::Target;
use server::interruption::Stopped;
use server::marked;
use server::quote::identifier;
use server::settings::{Changer, Record, Restart, ServerRef, ToChange};
use server::{Session, removal};

/// Number of timed copies by each strategy.
const CLONE_ROUNDS: usize = 3;
/// Settings that a dangerous variant turns off for the whole server. (synchronous_commit is turned
/// off for the database only.)
const SERVER_WIDE: [&str; 2] = ["fsync", "full_page_writes"];

/// The content of the databases.
#[derive(Debug)]
pub enum Content {
    /// Nothing: the suite makes its own schema.
    Empty,
    /// The database that a script creates.
    Script(Source),
    /// The content of this database. It is copied, never changed.
    Database(String),
}

/// Settings and tables of a trial's database, as its sessions see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Active {
    /// `SHOW fsync`.
    pub fsync: String,
    /// `SHOW full_page_writes`.
    pub full_page_writes: String,
    /// `SHOW synchronous_commit`.
    pub synchronous_commit: String,
    /// `SHOW wal_level`.
    pub wal_level: String,
    /// Tables that are logged when the trial begins.
    pub logged_tables: i64,
    /// Tables that are unlogged when the trial begins.
    pub unlogged_tables: i64,
}

struct Unobserved;

impl unlog::Observer for Unobserved {}

/// The changes to a server for dangerous variants.
pub(crate) fn dangerous() -> ToChange {
    ToChange {
        settings: SERVER_WIDE.map(str::to_owned).to_vec(),
        tables: Vec::new(),
        restart: Restart::Impossible("pgrig testdb bench does not restart a server"),
    }
}

/// See the module's documentation.
pub(crate) struct BenchServer<'a> {
    databases: Databases,
    content: &'a Content,
    /// Set if any variant is dangerous.
    changer: Option<Changer>,
    /// Values that SHOW gives without changes.
    normal: Active,
    templates: Templates,
}

/// Databases that are copied; none if no variant needs them.
#[derive(Default)]
struct Templates {
    logged: Option<String>,
    unlogged: Option<String>,
    copying: Option<Measured>,
}

impl<'a> BenchServer<'a> {
    /// Prepares the server: first drops the leftovers of a killed bench.
    pub(crate) async fn begin(
        target: &Target,
        content: &'a Content,
        stopped: &Stopped,
    ) -> Result<Self, BenchError> {
        let databases = Databases::begin(target, stopped).await?;
        match active(&databases.lead).await {
            Ok(normal) => {
                Ok(Self { databases, content, changer: None, normal, templates: Templates::default() })
            }
            Err(error) => {
                databases.finish().await?;
                Err(error)
            }
        }
    }

    /// Makes dangerous variants possible.
    pub(crate) async fn allow_danger(&mut self, place: ServerRef, journals: &Path) -> Result<(), BenchError> {
        let Databases { outside, anchor, .. } = &self.databases;
        let changer = Changer::begin_waiting_in(anchor, outside, place, journals, &dangerous()).await?;
        self.changer = Some(changer);
        Ok(())
    }

    /// Values that SHOW gives without changes.
    pub(crate) fn normal(&self) -> &Active {
        &self.normal
    }

    /// Makes the template, which also shows whether a script can be loaded. Returns its size in
    /// bytes; 0 without a template.
    pub(crate) async fn make_template(&mut self) -> Result<u64, BenchError> {
        let name = match self.content {
            Content::Empty => return Ok(0),
            Content::Database(name) => name.clone(),
            Content::Script(source) => {
                let name = self.databases.name("logged");
                self.load(source, &name, false, false).await?;
                name
            }
        };
        let size: i64 = self.databases.lead.row("SELECT pg_database_size($1::name)", &[&name]).await?.get(0);
        self.templates.logged = Some(name);
        Ok(u64::try_from(size).unwrap_or_default())
    }

    /// Makes the unlogged template, or returns why that is not possible. `dump` is the command for a dump to use instead of the
    /// database.
    pub(crate) async fn make_unlogged_template(
        &mut self,
        dump: &str,
    ) -> Result<Result<(), String>, BenchError> {
        let name = self.databases.name("unlogged");
        let made = match self.content {
            Content::Empty => Ok(()),
            Content::Script(source) => self.load(source, &name, true, false).await,
            Content::Database(template) => self.unlog_copy(template, &name).await,
        };
        match made {
            Ok(()) => {}
            Err(BenchError::Unlog(error)) if let Some(why) = error.hindrance() => {
                return Ok(Err(format!("{why}, or run {dump}")));
            }
            // Logged it was loaded before.
            Err(error @ BenchError::Load { error: LoadError::Statement { .. } | LoadError::Dump(_), .. }) => {
                return Ok(Err(format!("with unlogged tables the script cannot be loaded: {error}")));
            }
            Err(error) => return Err(error),
        }
        if self.look(&name).await?.unlogged_tables == 0 {
            return Ok(Err("no table of the database can be unlogged".to_owned()));
        }
        self.templates.unlogged = Some(name);
        Ok(Ok(()))
    }

    async fn unlog_copy(&self, template: &str, name: &str) -> Result<(), BenchError> {
        clone(&self.databases.lead, template, name, Strategy::Default).await?;
        let copy = self.databases.at(name);
        let plan = unlog::plan(&copy, &UnlogRequest::whole_database(Direction::Unlogged)).await?;
        // An interrupted bench drops its databases, so this needs no interruption of its own.
        unlog::apply(&copy, &plan, &Unobserved, Box::pin(std::future::pending())).await?;
        Ok(())
    }

    /// Measures each way to copy the template.
    pub(crate) async fn measure_copying(&mut self) -> Result<Option<&Measured>, BenchError> {
        if let Some(template) = &self.templates.logged {
            let trial = self.databases.name("trial");
            let measured = clone::fastest(&self.databases.lead, template, CLONE_ROUNDS, &trial).await?;
            self.templates.copying = Some(measured);
        }
        Ok(self.templates.copying.as_ref())
    }

    /// Sets the server's settings for the variant.
    pub(crate) async fn set(&self, variant: Variant) -> Result<(), BenchError> {
        let Some(changer) = &self.changer else { return Ok(()) };
        let off = |name: &&str| ((*name).to_owned(), "off".to_owned());
        let wanted: Vec<(String, String)> =
            SERVER_WIDE.iter().filter(|_| variant.has(Means::Dangerous)).map(off).collect();
        changer.set(&wanted).await?;
        Ok(())
    }

    /// Makes the database of a trial. Returns its target, and the time that took, seconds.
    pub(crate) async fn make(&self, variant: Variant, number: usize) -> Result<(Target, f64), BenchError> {
        let name = self.databases.name(&number.to_string());
        let is_unlogged = variant.has(Means::Unlogged);
        let is_dangerous = variant.has(Means::Dangerous);
        let began = Instant::now();
        match self.content {
            Content::Script(source) if !variant.has(Means::Template) => {
                self.load(source, &name, is_unlogged, is_dangerous).await?;
            }
            _ => {
                let template = if is_unlogged { &self.templates.unlogged } else { &self.templates.logged };
                let template = template.as_deref();
                let fastest = self.templates.copying.as_ref().map(|copying| copying.fastest);
                let strategy = fastest.filter(|_| variant.has(Means::Template)).unwrap_or(Strategy::Default);
                // CREATE DATABASE copies template1 by default.
                clone(&self.databases.lead, template.unwrap_or("template1"), &name, strategy).await?;
                self.relax(&name, is_dangerous).await?;
            }
        }
        Ok((self.databases.at(&name), began.elapsed().as_secs_f64()))
    }

    /// Drops the database of a trial.
    pub(crate) async fn drop(&self, number: usize) -> Result<(), BenchError> {
        let name = self.databases.name(&number.to_string());
        Ok(marked::drop_database(&self.databases.lead, &name).await?)
    }

    /// Checks that the variant's settings and tables are in force, in a session like those of the
    /// command.
    pub(crate) async fn assert(&self, variant: Variant, target: &Target) -> Result<Active, BenchError> {
        let found = self.look(target.dbname()).await?;
        let off = || "off".to_owned();
        let (found_values, mut wanted) = (found.durability(), self.normal.durability());
        if variant.has(Means::Dangerous) {
            wanted = wanted.map(|(name, _)| (name, off()));
        }
        for ((name, shown), (_, wanted)) in found_values.into_iter().zip(wanted) {
            if shown != wanted {
                let remedy = self.remedy(target.dbname(), name).await?;
                return Err(BenchError::NotActive { variant, name, shown, wanted, remedy });
            }
        }
        if variant.has(Means::Unlogged) && found.unlogged_tables == 0 {
            return Err(BenchError::NoneUnlogged { variant });
        }
        Ok(found)
    }

    async fn look(&self, name: &str) -> Result<Active, BenchError> {
        let session = Session::open(&self.databases.at(name)).await?;
        let found = active(&session).await;
        session.close().await;
        found
    }

    /// How to remove the value that a setting has in a session like those of the command.
    async fn remedy(&self, database: &str, setting: &str) -> Result<String, BenchError> {
        let session = Session::open(&self.databases.at(database)).await?;
        let remedy = match removal(&session.connection.client, setting).await {
            Ok(remedy) => remedy,
            Err(error) => return Err(session.connection.explain(error).await.into()),
        };
        session.close().await;
        Ok(remedy)
    }

    async fn load(
        &self,
        source: &Source,
        name: &str,
        is_unlogged: bool,
        is_dangerous: bool,
    ) -> Result<(), BenchError> {
        // Scripts of pg_dump expect a database made from template0.
        clone(&self.databases.lead, "template0", name, Strategy::Default).await?;
        self.relax(name, is_dangerous).await?;
        match load(&self.databases.at(name), source, is_unlogged).await {
            Ok(_) => Ok(()),
            // These errors name their subject themselves.
            Err(LoadError::Source(error)) => Err(error.into()),
            Err(LoadError::Connect(error)) => Err(error.into()),
            Err(error) => Err(BenchError::Load { script: source.to_string(), error }),
        }
    }

    /// Turns synchronous_commit off for the sessions of this database only, if the variant is
    /// dangerous.
    async fn relax(&self, name: &str, is_dangerous: bool) -> Result<(), BenchError> {
        if is_dangerous {
            let set = format!("ALTER DATABASE {} SET synchronous_commit = off", identifier(name));
            self.databases.lead.run(&set).await?;
        }
        Ok(())
    }

    /// The changes that are journalled, if any.
    pub(crate) fn record(&self) -> Option<Record> {
        self.changer.as_ref().map(|changer| changer.record().clone())
    }

    /// Restores settings, then drops all databases, even if the first fails. Returns whether
    /// somebody has to run sync on the server's host.
    pub(crate) async fn finish(self) -> Result<bool, BenchError> {
        let put_back = match self.changer {
            Some(changer) => changer.finish().await.map(|done| done.wants_sync),
            None => Ok(false),
        };
        let dropped = self.databases.finish().await;
        let wants_sync = put_back?;
        dropped.map(|()| wants_sync)
    }
}

impl Active {
    fn durability(&self) -> [(&'static str, String); 3] {
        [
            ("fsync", self.fsync.clone()),
            ("full_page_writes", self.full_page_writes.clone()),
            ("synchronous_commit", self.synchronous_commit.clone()),
        ]
    }

    /// The first setting that is off where a crash then costs data, if any.
    pub(crate) fn off(&self) -> Option<&'static str> {
        self.durability().into_iter().find(|(_, shown)| shown == "off").map(|(name, _)| name)
    }
}

/// `fsync off, full_page_writes off, synchronous_commit off, wal_level replica; 0 tables logged, 12 unlogged`.
impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, shown) in self.durability() {
            write!(f, "{name} {shown}, ")?;
        }
        let Self { wal_level, logged_tables, unlogged_tables, .. } = self;
        write!(f, "wal_level {wal_level}; {logged_tables} tables logged, {unlogged_tables} unlogged")
    }
}

async fn active(session: &Session) -> Result<Active, BenchError> {
    let row = session.row(include_str!("../../sql/bench_active.sql"), &[]).await?;
    Ok(Active {
        fsync: row.get("fsync"),
        full_page_writes: row.get("full_page_writes"),
        synchronous_commit: row.get("synchronous_commit"),
        wal_level: row.get("wal_level"),
        logged_tables: row.get("logged"),
        unlogged_tables: row.get("unlogged"),
    })
}
