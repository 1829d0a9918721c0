//! Times the statements as they are written, undisturbed, in a copy of their own.

use std::time::Duration;

use connect::{ConnectError, Target};
use server::Session;

use crate::outcome::{Cost, Failed, Space, StatementOutcome};
use crate::run::failure;
use crate::run::look::timed;
use crate::run::space::Sampler;
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
    /// The spaces of the statements, if they were read.
    spaces: Vec<Option<Space>>,
    /// The time of all statements so far.
    spent: Duration,
    /// Starts of the statements whose transaction is not at its end, by their places.
    open: Vec<(usize, Duration)>,
    /// Whether a statement was disturbed, so that neither these costs count nor the spaces of this run.
    pub(crate) is_disturbed: bool,
}

impl Costs {
    /// Of so many statements.
    pub(crate) fn of(statements: usize) -> Self {
        Self {
            by_place: vec![None; statements],
            spaces: vec![None; statements],
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

    /// The space of each statement, by its place.
    pub(crate) fn spaces(&self) -> &[Option<Space>] {
        &self.spaces
    }

    /// Of each statement that ran, by its place.
    pub(crate) fn all(self) -> Vec<Option<Cost>> {
        self.by_place
    }
}

/// Runs the statements in order, without those that have failed before. Reads their spaces from the database `outside`, if it is given.
///
/// # Errors
/// If the connection is lost.
pub(crate) async fn measure(
    target: &Target,
    migrating: &Target,
    outside: Option<&Target>,
    statements: &[StatementOutcome],
) -> Result<Run, ConnectError> {
    let session = Session::open(migrating).await?;
    let watcher = Watcher::new(Session::open(target).await?, session.pid().await?);
    let sampler = match outside {
        Some(outside) => Some(Sampler::begin(outside, target.dbname()).await?),
        None => None,
    };
    // Fills the session's caches of catalogs, which a new database has none of.
    session.rows(include_str!("../sql/relations.sql"), &[]).await?;
    let mut costs = Costs::of(statements.len());
    for (place, one) in statements.iter().enumerate().filter(|(_, one)| one.failed.is_none()) {
        let before = watcher.wal().await?;
        let run = timed(session.run(&one.statement.sql));
        let (run, took) = match &sampler {
            Some(sampler) => {
                let (done, space) = sampler.during(run).await?;
                costs.spaces[place] = Some(space);
                done
            }
            None => run.await,
        };
        if let Err(error) = failure::refused(run)? {
            return Ok(Run::Failed(place, failure::of(&error)));
        }
        let wal = watcher.wal().await? - before;
        costs.ran(place, took, wal, watcher.is_in_transaction().await?);
    }
    if let Some(sampler) = sampler {
        sampler.close().await;
    }
    watcher.close().await;
    session.close().await;
    Ok(Run::Done(costs))
}
