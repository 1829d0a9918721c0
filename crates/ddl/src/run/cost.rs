//! Times the statements as they are written, undisturbed, in a copy of their own.

use std::time::Instant;

use connect::{ConnectError, Target};
use server::Session;

use crate::outcome::{Cost, StatementOutcome};
use crate::run::watch::Watcher;

/// Runs the statements in order, and sets the cost of each. A statement that did not fail when it was looked at must not fail
/// now.
///
/// # Errors
/// If a statement fails, or the connection is lost.
pub(crate) async fn measure<'a>(
    target: &Target,
    migrating: &Target,
    statements: impl Iterator<Item = &'a mut StatementOutcome>,
) -> Result<(), ConnectError> {
    let session = Session::open(migrating).await?;
    let watcher = Watcher::new(Session::open(target).await?, session.pid().await?);
    // Fills the session's caches of catalogs, which a new database has none of.
    session.rows(include_str!("../sql/relations.sql"), &[]).await?;
    let began = Instant::now();
    let mut open: Vec<(f64, &mut StatementOutcome)> = Vec::new();
    for outcome in statements {
        let before = watcher.wal().await?;
        let start = began.elapsed().as_secs_f64();
        session.run(&outcome.statement.sql).await?;
        let end = began.elapsed().as_secs_f64();
        let wal = u64::try_from(watcher.wal().await? - before).unwrap_or_default();
        outcome.cost = Some(Cost { seconds: end - start, wal, held: end - start });
        open.push((start, outcome));
        if !watcher.is_in_transaction().await? {
            for (start, outcome) in open.drain(..) {
                if let Some(cost) = &mut outcome.cost {
                    cost.held = end - start;
                }
            }
        }
    }
    watcher.close().await;
    session.close().await;
    Ok(())
}
