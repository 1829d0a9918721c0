//! Copies a template database, in each way that the server supports.

use failure::{Class, Classified};
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use measure::Sample;
use measure::paired::Orders;
use serde::Serialize;

use connect::ConnectError;
use server::marked;
use server::quote::{identifier, shown};
use server::{Session, SurveyError};

/// Seed of the order in which strategies take turns; results do not depend on it.
const SEED: u64 = 8;

/// Way of CREATE DATABASE to copy its template (documentation, "CREATE DATABASE", STRATEGY, and `file_copy_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The server's default: before PostgreSQL 15 it copies files, since then it logs blocks.
    Default,
    /// File by file, between two checkpoints. PostgreSQL 15 or later.
    FileCopy,
    /// Block by block, through shared buffers and WAL. PostgreSQL 15 or later.
    WalLog,
    /// As [`Self::FileCopy`], but the file system copies and may share blocks (`file_copy_method =
    /// clone`). PostgreSQL 18 or later, if the file system supports it.
    Clone,
}

impl Strategy {
    /// The name in run documents and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::FileCopy => "file-copy",
            Self::WalLog => "wal-log",
            Self::Clone => "clone",
        }
    }

    /// The strategies that the server knows. Whether its file system can clone is found only by trying: [`fastest`]
    /// does.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn available(session: &Session) -> Result<Vec<Self>, CloneError> {
        let row = session.row(include_str!("sql/strategies.sql"), &[]).await?;
        if !row.get::<_, bool>("has_strategies") {
            return Ok(vec![Self::Default]);
        }
        let clone = row.get::<_, bool>("may_clone").then_some(Self::Clone);
        Ok([Self::WalLog, Self::FileCopy].into_iter().chain(clone).collect())
    }

    fn clause(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::WalLog => " STRATEGY = wal_log",
            Self::FileCopy | Self::Clone => " STRATEGY = file_copy",
        }
    }

    /// The value of file_copy_method that the strategy needs, if any.
    fn file_copy_method(self) -> Option<&'static str> {
        match self {
            Self::Clone => Some("clone"),
            Self::Default | Self::WalLog | Self::FileCopy => None,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a database cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// The template has sessions.
    #[error(
        "cannot copy database {template} while it is in use: {by}. End these sessions, or copy a database without \
         sessions"
    )]
    InUse {
        /// Name of the database to copy.
        template: String,
        /// The connected sessions, as far as this role may see them.
        by: String,
    },
    /// The role may not create databases.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// The role may not copy this one.
    #[error(
        "role {role} may not copy database {template}: connect as its owner, or have the owner run ALTER DATABASE \
         {} IS_TEMPLATE true",
        shown(.template)
    )]
    NoTemplate {
        /// The role connected as.
        role: String,
        /// Name of the database to copy.
        template: String,
    },
    /// The name is taken.
    #[error("database {name} exists already: drop it, or repeat the command")]
    Exists {
        /// The name of the copy.
        name: String,
    },
    /// There is no template.
    #[error("there is no database {template} to copy: check the name")]
    Missing {
        /// Name of the missing database.
        template: String,
    },
    /// The file system cannot share blocks, or not between these places.
    #[error("the server's file system cannot clone files: {0}")]
    CannotClone(Box<ConnectError>),
    /// The server refused, or is gone.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Classified for CloneError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::NoTemplate { .. } | Self::Exists { .. } | Self::Missing { .. } => Class::Request,
            Self::InUse { .. } | Self::CannotClone(_) => Class::Machine,
        }
    }
}

/// Makes database `name` a copy of `template`, with the mark, and tells how long the server took. Outside a
/// transaction; the session must be connected to another database than the template. Copies of one template may be made at the same time.
///
/// # Errors
/// [`CloneError`]; there is then no database `name` that was not there before.
pub fn clone<'a>(
    session: &'a Session,
    template: &'a str,
    name: &'a str,
    strategy: Strategy,
) -> BoxFuture<'a, Result<Duration, CloneError>> {
    Box::pin(async move {
        if let Some(method) = strategy.file_copy_method() {
            session.run(&format!("SET file_copy_method = {method}")).await?;
        }
        let create = format!(
            "CREATE DATABASE {} TEMPLATE {}{} CONNECTION LIMIT {}",
            identifier(name),
            identifier(template),
            strategy.clause(),
            marked::NUMBER
        );
        let started = Instant::now();
        let created = session.run(&create).await;
        let took = started.elapsed();
        if strategy.file_copy_method().is_some() {
            session.run("RESET file_copy_method").await?;
        }
        match created {
            Ok(()) => Ok(took),
            Err(error) => Err(explain(session, error, template, name, strategy).await),
        }
    })
}

async fn explain(
    session: &Session,
    error: ConnectError,
    template: &str,
    name: &str,
    strategy: Strategy,
) -> CloneError {
    let (template, name) = (template.to_owned(), name.to_owned());
    match error.sqlstate() {
        Some(&SqlState::OBJECT_IN_USE) => match sessions(session, &template).await {
            Ok(by) => CloneError::InUse { template, by },
            Err(_) => error.into(),
        },
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => match session
            .row(include_str!("sql/rights.sql"), &[])
            .await
        {
            Ok(row) if row.get("may_create") => CloneError::NoTemplate { role: row.get("role"), template },
            Ok(row) => SurveyError::CreateDatabasePrivilege { role: row.get("role") }.into(),
            Err(_) => error.into(),
        },
        Some(&SqlState::DUPLICATE_DATABASE) => CloneError::Exists { name },
        Some(&SqlState::UNDEFINED_DATABASE) => CloneError::Missing { template },
        // Errors of system calls (fd.c, copydir.c): class 58 for I/O errors, class XX for errors without an SQLSTATE.
        Some(state)
            if strategy == Strategy::Clone
                && ["58", "XX"].iter().any(|class| state.code().starts_with(class)) =>
        {
            CloneError::CannotClone(error.into())
        }
        _ => error.into(),
    }
}

/// The sessions of a database, as text.
async fn sessions(session: &Session, database: &str) -> Result<String, ConnectError> {
    let rows = session.rows(include_str!("sql/sessions.sql"), &[&database]).await?;
    let described: Vec<String> = rows
        .iter()
        .map(|row| {
            let (pid, role, application): (i32, &str, &str) =
                (row.get("pid"), row.get("role"), row.get("application"));
            let application = if application.is_empty() { "" } else { &format!(", {application}") };
            format!("server process {pid} ({role}{application})")
        })
        .collect();
    if described.is_empty() {
        // CountOtherDBBackends (procarray.c) also counts these, and waits 5 s for both.
        return Ok("a prepared transaction (look at pg_prepared_xacts), or a session that has ended since (repeat the command)".to_owned());
    }
    Ok(described.join(", "))
}

/// The time of each strategy for one template.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The strategy with the least median.
    pub fastest: Strategy,
    /// All strategies that work here, in the order of [`Strategy::available`].
    pub strategies: Vec<Timed>,
}

/// One strategy's trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timed {
    /// The strategy that was timed.
    pub strategy: Strategy,
    /// Median of the times, seconds.
    pub median: f64,
    /// Time of each round in order, seconds.
    pub seconds: Vec<f64>,
}

/// Copies the template with every available strategy, in `rounds` rounds (at least one) of balanced
/// order. The copy is always the database `trial`, which is dropped again, also after an error.
/// Only the caller may use that name: a database of that name is dropped first. A caller that drops
/// this future (Ctrl-C) must call [`marked::drop_database`].
///
/// # Errors
/// If the template cannot be copied. If the file system cannot clone, that is no error:
/// [`Strategy::Clone`] is left out.
pub fn fastest<'a>(
    session: &'a Session,
    template: &'a str,
    rounds: usize,
    trial: &'a str,
) -> BoxFuture<'a, Result<Measured, CloneError>> {
    Box::pin(async move {
        marked::drop_database(session, trial).await?;
        let measured = time_all(session, template, rounds.max(1), trial).await;
        let dropped = marked::drop_database(session, trial).await;
        let times = measured?;
        dropped?;
        let strategies: Vec<Timed> = times
            .into_iter()
            .filter_map(|(strategy, seconds)| {
                let median = Sample::new(seconds.clone())?.median();
                Some(Timed { strategy, median, seconds })
            })
            .collect();
        let fastest = strategies.iter().min_by(|one, other| one.median.total_cmp(&other.median));
        let fastest = fastest.map_or(Strategy::Default, |timed| timed.strategy);
        Ok(Measured { fastest, strategies })
    })
}

async fn time_all(
    session: &Session,
    template: &str,
    rounds: usize,
    trial: &str,
) -> Result<Vec<(Strategy, Vec<f64>)>, CloneError> {
    let mut times: Vec<(Strategy, Vec<f64>)> =
        Strategy::available(session).await?.into_iter().map(|strategy| (strategy, Vec::new())).collect();
    let mut cannot_clone = false;
    for arm in Orders::new(times.len(), SEED).take(rounds).flatten() {
        let (strategy, seconds) = &mut times[arm];
        if *strategy == Strategy::Clone && cannot_clone {
            continue;
        }
        match clone(session, template, trial, *strategy).await {
            Ok(took) => seconds.push(took.as_secs_f64()),
            Err(CloneError::CannotClone(_)) => cannot_clone = true,
            Err(error) => return Err(error),
        }
        marked::drop_database(session, trial).await?;
    }
    Ok(times)
}
