//! Objects that pgrig makes for a run: it drops only those that carry its mark, a comment, and belong to its role.

use tokio_postgres::Row;

use crate::quote::{identifier, qualified};
use crate::session::Session;
use connect::{ConnectError, SqlState};

/// "pgri" in ASCII: the connection limit that marks a database as pgrig's, and the first key of pgrig's advisory locks. CREATE DATABASE cannot
/// set a comment and cannot run in a transaction, so a database's mark is one of its options; nobody has so many connections.
/// The same number is in SQL files: `try_lock.sql`, `bench_left.sql`, `lend_found.sql`, `in_hand.sql`.
pub const NUMBER: i32 = 1_885_827_689;

/// Drops a database if it is there, and ends sessions that are connected to it.
///
/// # Errors
/// If the server refuses.
pub async fn drop_database(session: &Session, name: &str) -> Result<(), ConnectError> {
    let drop = format!("DROP DATABASE IF EXISTS {}", identifier(name));
    match session.run(&format!("{drop} WITH (FORCE)")).await {
        // FORCE wants the right to end every session there, and autovacuum's belong to nobody; without it the server
        // ends those itself (procarray.c: TerminateOtherDBBackends, CountOtherDBBackends).
        Err(error) if error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => session.run(&drop).await,
        done => done,
    }
}

/// The object that [`drop_table`] found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropOutcome {
    /// Nothing: the name is free.
    Nothing,
    /// A table with the mark; it is dropped.
    Dropped,
    /// Something that pgrig did not make; it stays.
    Foreign,
}

/// Drops a table if it carries the mark. Call it in a transaction: the table is locked before the mark is read for the
/// last time, so that nobody can put another one in its place.
///
/// # Errors
/// If the server refuses.
pub async fn drop_table(
    session: &Session,
    schema: &str,
    name: &str,
    mark: &str,
) -> Result<DropOutcome, ConnectError> {
    let table = qualified(schema, name);
    // Without a lock at first: an object of somebody else's must not be waited for.
    for statement in
        [format!("LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE"), format!("DROP TABLE {table}")]
    {
        match look(session, schema, name, mark).await? {
            None => return Ok(DropOutcome::Nothing),
            Some(row) if row.get("is_marked") => session.run(&statement).await?,
            Some(_) => return Ok(DropOutcome::Foreign),
        }
    }
    Ok(DropOutcome::Dropped)
}

/// The relation of that name, as `marked_table.sql` describes it.
///
/// # Errors
/// If the server refuses.
pub async fn look(
    session: &Session,
    schema: &str,
    name: &str,
    mark: &str,
) -> Result<Option<Row>, ConnectError> {
    let rows = session.rows(include_str!("sql/marked_table.sql"), &[&schema, &name, &mark]).await?;
    Ok(rows.into_iter().next())
}
