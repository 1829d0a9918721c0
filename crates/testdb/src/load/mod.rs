//! Runs a script of SQL, as pg_dump writes it, in a database: as psql would, without psql.
//!
//! A thread reads the script (`parts`), and the session runs it statement by statement, each in a
//! message of its own. Several statements in one message would be one transaction, in which some
//! cannot run (CREATE DATABASE, VACUUM, an enum's new value that is used at once), and an error
//! would not tell which statement it is of.

mod error;
mod parts;

use futures_util::future::BoxFuture;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use bytes::Bytes;
use dump::{Options, Sequences, Summary, Survey, Unlogger};
use futures_util::SinkExt;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::Severity;

pub use error::LoadError;
use parts::{Parts, Step, Text};

use crate::source::Source;
use connect::{ConnectError, Connection, Target};
use server::{Session, Sessions};

/// The first release with unlogged sequences.
const UNLOGGED_SEQUENCES: i32 = 150_000;

/// Result of running a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Statements that were run, each COPY counted as one.
    pub statements: u64,
    /// Rows that the server reported for COPY.
    pub copied_rows: u64,
    /// Bytes of COPY data, as the script has them.
    pub copied_bytes: u64,
    /// Messages of the server: NOTICE, INFO and the like.
    pub notices: u64,
    /// Warnings of the server.
    pub warnings: u64,
    /// Settings of the script that this server does not know: a later version of pg_dump wrote it.
    pub unknown_settings: Vec<String>,
    /// The tables that were made unlogged on the way, if requested.
    pub unlogged: Option<Summary>,
    /// Time from connecting until the last commit is on disk.
    pub took: Duration,
}

/// Runs the script in the target's database; with `as_unlogged` its tables and sequences are made
/// unlogged while it is read. It stops at the first error; the statements before it remain, as with
/// psql. It uses a session of its own, so settings of the script end with it.
///
/// # Errors
/// If the script cannot be read, contains a command that only psql knows, or a statement fails.
pub fn load<'a>(
    target: &'a Target,
    source: &'a Source,
    as_unlogged: bool,
) -> BoxFuture<'a, Result<Loaded, LoadError>> {
    Box::pin(async move {
        let began = Instant::now();
        let session = Sessions::new(target).open().await?;
        // Commits need not wait for the disk one by one: `settle` waits for all of them.
        session.run("SET synchronous_commit = off").await?;
        let unlogger = if as_unlogged { Some(unlogger(&session, source).await?) } else { None };
        let mut parts = Parts::read(source.clone(), unlogger)?;
        let mut loaded = Loaded::default();
        while let Some(part) = parts.next().await? {
            match part {
                Step::Statement(text) => statement(&session, text, &mut loaded).await?,
                Step::Copy(text) => copy(&session, text, &mut parts, &mut loaded).await?,
                Step::Unlogged(summary) => loaded.unlogged = Some(summary),
                Step::Data(_) | Step::End => unreachable!("data come after their COPY"),
            }
            count_notices(&session.connection, &mut loaded);
        }
        if is_in_transaction(&session).await? {
            return Err(LoadError::InTransaction);
        }
        settle(&session).await?;
        session.connection.close().await;
        loaded.took = began.elapsed();
        Ok(loaded)
    })
}

/// The unlogger for the script. It first surveys the script if the script can be read twice.
async fn unlogger(session: &Session, source: &Source) -> Result<Unlogger, LoadError> {
    let version: i32 = session.row("SELECT current_setting('server_version_num')::int", &[]).await?.get(0);
    let sequences = if version >= UNLOGGED_SEQUENCES { Sequences::Unlogged } else { Sequences::Left };
    let options = Options { sequences, ..Options::default() };
    if !source.can_be_read_again() {
        return Ok(Unlogger::in_one_pass(options));
    }
    let source = source.clone();
    let survey = parts::off_the_runtime(move || Ok(Survey::of(source.open()?)?)).await?;
    Ok(Unlogger::after(survey, options)?)
}

async fn statement(session: &Session, text: Text, loaded: &mut Loaded) -> Result<(), LoadError> {
    match session.run(&text.sql).await {
        Ok(()) => loaded.statements += 1,
        // A setting that the server does not know.
        Err(error) if error.sqlstate() == Some(&SqlState::UNDEFINED_OBJECT) && text.is_set() => {
            loaded.unknown_settings.push(text.excerpt());
        }
        Err(error) => return Err(LoadError::statement(&text, error)),
    }
    Ok(())
}

async fn copy(
    session: &Session,
    text: Text,
    parts: &mut Parts,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    let connection = &session.connection;
    connection.forget_errors();
    let sink = match connection.client.copy_in::<_, Bytes>(&*text.sql).await {
        Ok(sink) => sink,
        Err(error) => return Err(failed(connection, &text, error).await),
    };
    let mut sink = pin!(sink);
    while let Some(Step::Data(data)) = parts.next().await? {
        loaded.copied_bytes += data.len() as u64;
        // The server reports its error only at the end of the COPY.
        if connection.heard_an_error() || sink.send(data).await.is_err() {
            break;
        }
    }
    match sink.finish().await {
        Ok(rows) => loaded.copied_rows += rows,
        Err(error) => return Err(failed(connection, &text, error).await),
    }
    loaded.statements += 1;
    Ok(())
}

async fn failed(connection: &Connection, text: &Text, error: tokio_postgres::Error) -> LoadError {
    LoadError::statement(text, connection.explain(error).await)
}

/// Whether a transaction has been begun and not ended. The query must be sent by the simple
/// protocol as a single message, so that it is a transaction of its own only if there is none.
async fn is_in_transaction(session: &Session) -> Result<bool, LoadError> {
    let connection = &session.connection;
    let query = "SELECT pg_catalog.now() <> pg_catalog.statement_timestamp()";
    match connection.client.simple_query(query).await {
        Ok(messages) => Ok(messages
            .iter()
            .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")))),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

/// Waits until all commits are on disk: makes a commit that waits for itself, and so for those
/// before it. It has to write something (xact.c, RecordTransactionCommit).
async fn settle(session: &Session) -> Result<(), ConnectError> {
    session.run("RESET synchronous_commit").await?;
    session.run("SELECT pg_catalog.pg_logical_emit_message(true, 'pgrig', '')").await
}

fn count_notices(connection: &Connection, loaded: &mut Loaded) {
    for notice in connection.take_notices() {
        match notice.parsed_severity() {
            Some(Severity::Warning) => loaded.warnings += 1,
            _ => loaded.notices += 1,
        }
    }
}
