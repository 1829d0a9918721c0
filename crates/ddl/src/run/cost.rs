//! Times the statements as they are written, undisturbed, in a copy of their own.

use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use server::Session;

use crate::outcome::{Cost, Failed, StatementOutcome};
use crate::run::failure;
use crate::run::watch::Watcher;

/// One run: the costs of the statements; or the first that the server refused.
pub(crate) enum Run {
    /// The whole migration ran.
    Done(Costs),
    /// A statement, by its place, failed, though it had not when it was looked at.
    Failed(usize, Failed),
}

/// The costs of the statements of one run. Its clock stops while pgrig reads from the server between two statements.
pub(crate) struct Costs {
    by_place: Vec<Option<Cost>>,
    /// The time of all statements so far.
    spent: Duration,
    /// Starts of the statements whose transaction is not at its end, by their places.
    open: Vec<(usize, Duration)>,
    /// Whether a statement was disturbed, so that none of these costs counts.
    pub(crate) is_disturbed: bool,
}

impl Costs {
    /// Of so many statements.
    pub(crate) fn of(statements: usize) -> Self {
        Self {
            by_place: vec![None; statements],
            spent: Duration::ZERO,
            open: Vec::new(),
            is_disturbed: false,
        }
    }

    /// The statement at this place took so long, and so many bytes of WAL.
    pub(crate) fn ran(&mut self, place: usize, took: Duration, wal: i64, is_in_transaction: bool) {
        let wal = u64::try_from(wal).unwrap_or_default();
        self.open.push((place, self.spent));
        self.spent += took;
        self.by_place[place] = Some(Cost { seconds: took.as_secs_f64(), wal, held: took.as_secs_f64() });
        if is_in_transaction {
            return;
        }
        for (place, start) in self.open.drain(..) {
            if let Some(cost) = &mut self.by_place[place] {
                cost.held = self.spent.saturating_sub(start).as_secs_f64();
            }
        }
    }

    /// Of each statement that ran, by its place.
    pub(crate) fn all(self) -> Vec<Option<Cost>> {
        self.by_place
    }
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
    let mut costs = Costs::of(statements.len());
    for (place, one) in statements.iter().enumerate().filter(|(_, one)| one.failed.is_none()) {
        let before = watcher.wal().await?;
        let start = Instant::now();
        match failure::refused(session.run(&one.statement.sql).await)? {
            Ok(()) => {}
            Err(error) => return Ok(Run::Failed(place, failure::of(&error))),
        }
        let took = start.elapsed();
        let wal = watcher.wal().await? - before;
        costs.ran(place, took, wal, watcher.is_in_transaction().await?);
    }
    watcher.close().await;
    session.close().await;
    Ok(Run::Done(costs))
}
