//! Times the statements as they are written, undisturbed, in a copy of their own.

use std::time::Instant;

use connect::{ConnectError, Target};
use server::Session;

use crate::outcome::{Cost, Failed, StatementOutcome};
use crate::run::failure;
use crate::run::watch::Watcher;

/// One run: the cost of each statement that ran, by its place; or the first that the server refused.
pub(crate) enum Run {
    /// The whole migration ran.
    Done(Vec<Option<Cost>>),
    /// A statement, by its place, failed, though it had not when it was looked at.
    Failed(usize, Failed),
}

/// Runs the statements in order, without those that have failed before.
///
/// # Errors
/// If the connection is lost.
pub(crate) async fn measure(
    target: &Target,
    migrating: &Target,
    statements: &[StatementOutcome],
) -> Result<Run, ConnectError> {
    let session = Session::open(migrating).await?;
    let watcher = Watcher::new(Session::open(target).await?, session.pid().await?);
    // Fills the session's caches of catalogs, which a new database has none of.
    session.rows(include_str!("../sql/relations.sql"), &[]).await?;
    let began = Instant::now();
    let mut costs: Vec<Option<Cost>> = vec![None; statements.len()];
    // Starts of the statements whose transaction is not at its end.
    let mut open: Vec<(usize, f64)> = Vec::new();
    for (place, one) in statements.iter().enumerate().filter(|(_, one)| one.failed.is_none()) {
        let before = watcher.wal().await?;
        let start = began.elapsed().as_secs_f64();
        match failure::refused(session.run(&one.statement.sql).await)? {
            Ok(()) => {}
            Err(error) => return Ok(Run::Failed(place, failure::of(&error))),
        }
        let end = began.elapsed().as_secs_f64();
        let wal = u64::try_from(watcher.wal().await? - before).unwrap_or_default();
        costs[place] = Some(Cost { seconds: end - start, wal, held: end - start });
        open.push((place, start));
        if !watcher.is_in_transaction().await? {
            for (place, start) in open.drain(..) {
                if let Some(cost) = &mut costs[place] {
                    cost.held = end - start;
                }
            }
        }
    }
    watcher.close().await;
    session.close().await;
    Ok(Run::Done(costs))
}
