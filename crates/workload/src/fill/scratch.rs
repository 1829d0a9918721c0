//! A schema of pgrig's own, for fills that are only measured.

use super::error::FillError;
use super::ledger;
use super::request::Subject;
use super::survey::ask;
use super::tables::Tables;
use crate::connect::{ConnectError, Connection};
use crate::quote::{identifier, qualified};

/// Its name. Whatever is in it was left by a killed pgrig.
pub const SCRATCH_SCHEMA: &str = "pgrig_ladder";

/// Drops all that fills have made in the scratch schema, and that itself if it is then empty and the
/// role's to drop.
///
/// # Errors
/// If tables cannot be dropped.
pub async fn clear_scratch(connection: &Connection) -> Result<(), FillError> {
    let exists = "SELECT to_regnamespace($1) IS NOT NULL";
    if !ask(connection, exists, &[&SCRATCH_SCHEMA]).await?.get::<_, bool>(0) {
        return Ok(());
    }
    let mut names: Vec<String> = Vec::new();
    for subject in [Subject::Pgbench, Subject::Series] {
        let tables = Tables::new(&subject, 1, 1, rowgen::Payload::Blank);
        names.extend(ledger::names(&tables.bulk.name).map(|name| qualified(SCRATCH_SCHEMA, &name)));
        names.extend(tables.all().map(|table| qualified(SCRATCH_SCHEMA, &table.name)));
    }
    run(connection, &format!("DROP TABLE IF EXISTS {}", names.join(", "))).await?;
    // Somebody may have put something there, or made the schema for a role that may not drop it.
    let _ = run(connection, &format!("DROP SCHEMA {}", identifier(SCRATCH_SCHEMA))).await;
    Ok(())
}

/// Has the server write what it holds, and the kernel too where it is this machine's: what one trial
/// leaves unwritten shall not burden the next.
///
/// A role that may not CHECKPOINT goes without: tells whether there was one.
///
/// # Errors
/// If the connection is lost.
pub async fn settle(connection: &Connection, is_local: bool) -> Result<bool, FillError> {
    let has_checkpoint = match run(connection, "CHECKPOINT").await {
        Ok(()) => true,
        Err(ConnectError::Query { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if is_local {
        // Takes as long as the disk needs; the runtime goes on meanwhile.
        let _ = tokio::task::spawn_blocking(nix::unistd::sync).await;
    }
    Ok(has_checkpoint)
}

async fn run(connection: &Connection, sql: &str) -> Result<(), ConnectError> {
    match connection.client.batch_execute(sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(connection.explain(error).await),
    }
}
