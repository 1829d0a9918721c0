//! Creates the tables of a script, without rows.

use connect::Connection;
use futures_util::future::LocalBoxFuture;

use crate::error::FillError;
use crate::sql::absent::{Skipped, adapted};
use crate::sql::ddl;

/// Runs the statements of a script as a schema fill does. Returns those that are left out, because the server cannot run them.
///
/// # Errors
/// If the server refuses a statement.
pub fn create_schema<'a>(
    connection: &'a Connection,
    sql: &'a str,
) -> LocalBoxFuture<'a, Result<Vec<Skipped>, FillError>> {
    Box::pin(async move {
        let script = adapted(connection, sql, false).await?;
        ddl::run_script(connection, &ddl::of_script(None, false, &script)).await?;
        Ok(script.skipped)
    })
}
