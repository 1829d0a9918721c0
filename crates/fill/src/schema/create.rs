//! Creates the tables of a script, without rows; and lets one session at a time do so.

use connect::Connection;
use futures_util::future::LocalBoxFuture;

use crate::error::FillError;
use crate::sql::absent::adapted;
use crate::sql::ddl;
use server::quote::literal;

/// The first key of pgrig's advisory locks: "pgri" in ASCII, as in `server`'s `try_lock.sql`.
const LOCK: i32 = 1_885_827_689;

/// Runs the statements of a script as a schema fill does: those that the server cannot run are left out.
///
/// # Errors
/// If the server refuses a statement.
pub fn create_schema<'a>(
    connection: &'a Connection,
    sql: &'a str,
) -> LocalBoxFuture<'a, Result<(), FillError>> {
    Box::pin(async move {
        let script = adapted(connection, sql, false).await?;
        ddl::run_script(connection, &ddl::of_script(None, false, &script)).await
    })
}

/// A statement that waits until no other transaction of pgrig's creates tables in this schema, and holds up others until its
/// transaction ends.
///
/// PostgreSQL 18 chooses names of sequences and indexes that no transaction under way has taken. That of a pgrig which was killed a
/// moment ago may still be under way, and a plan would have names that the tables do not get.
pub(super) fn alone(schema: Option<&str>) -> String {
    let name = format!("pgrig create {}", schema.unwrap_or_default());
    format!("SELECT pg_advisory_xact_lock({LOCK}, hashtext({}))", literal(&name))
}
