//! Times the statements as they are written, undisturbed, in a copy of their own.

use std::time::Duration;

use connect::{ConnectError, Target};
use server::Session;

use crate::edge::Edge;
use crate::find::Class;
use crate::open::Open;
use crate::outcome::{Cost, Failed, Space, StatementOutcome};
use crate::run::Observer;
use crate::run::databases::Databases;
use crate::run::failure;
use crate::run::files;
use crate::run::look::timed;
use crate::run::space::Sampler;
use crate::run::watch::Watcher;
use crate::script::Statement;

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
    /// Starts of the statements whose locks are not at their end, by their places.
    open: Open<(usize, Duration)>,
    /// Whether a statement was disturbed, so that these costs do not count, nor some of the spaces of this run.
    pub(crate) is_disturbed: bool,
}

impl Costs {
    /// Of so many statements.
    pub(crate) fn of(statements: usize) -> Self {
        Self {
            by_place: vec![None; statements],
            spaces: vec![None; statements],
            spent: Duration::ZERO,
            open: Open::new(),
            is_disturbed: false,
        }
    }

    /// The statement at this place took so long, and so many bytes of WAL.
    pub(crate) fn ran(
        &mut self,
        place: usize,
        (took, wal): (Duration, i64),
        statement: &Statement,
        is_in_transaction: bool,
    ) {
        let wal = u64::try_from(wal).unwrap_or_default();
        let start = self.spent;
        self.spent += took;
        self.by_place[place] = Some(Cost { seconds: took.as_secs_f64(), wal, held: took.as_secs_f64() });
        for (place, start) in self.open.add((place, start), Edge::of(statement), is_in_transaction) {
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

/// Runs the statements in order, without those that have failed before. Reads their spaces, too, if `has_spaces`. The second target has the settings of
/// the migration.
///
/// # Errors
/// If the connection is lost.
pub(crate) async fn measure(
    (target, migrating): (&Target, &Target),
    (databases, has_spaces): (&Databases, bool),
    statements: &[StatementOutcome],
    observer: &mut dyn Observer,
) -> Result<Run, ConnectError> {
    // The first session of a new database makes a file of relations; in those after it, statements run as in a database in use.
    let beside = Session::open(target).await?;
    let session = Session::open(migrating).await?;
    let watcher = Watcher::new(beside, session.pid().await?);
    let sampler =
        if has_spaces { Some(Sampler::begin(databases.outside(), target.dbname()).await?) } else { None };
    // Fills the session's caches of catalogs, which a new database has none of.
    session.rows(include_str!("../sql/relations.sql"), &[]).await?;
    let mut costs = Costs::of(statements.len());
    let (mut is_in_transaction, mut is_after) = (false, false);
    for (place, one) in statements.iter().enumerate().filter(|(_, one)| one.failed.is_none()) {
        observer.step(&format!("running statement {} of {}", one.number, statements.len()));
        let found = one.found.as_ref();
        let is_alone = found.is_some_and(|found| found.is_alone);
        let is_copy = is_after && found.is_some_and(|found| found.class == Class::Copy);
        // In a transaction, the locks of the statements before would hold this reading up, and the old files are there at the end of the statement.
        let files = if has_spaces && !is_in_transaction && (is_alone || is_copy) {
            files::before(&watcher, &one.statement, found).await?
        } else {
            None
        };
        is_after |= is_alone;
        let before = watcher.wal().await?;
        let run = timed(databases.run(&session, &one.statement, is_in_transaction));
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
        if let Some(space) = costs.spaces[place] {
            costs.spaces[place] = Some(files::at_least(&watcher, files, space).await?);
        }
        is_in_transaction = watcher.is_in_transaction().await?;
        costs.ran(place, (took, wal), &one.statement, is_in_transaction);
    }
    if let Some(sampler) = sampler {
        sampler.close().await;
    }
    watcher.close().await;
    session.close().await;
    Ok(Run::Done(costs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    /// Seconds for which each statement of a migration in one transaction or several holds its locks, if each takes one.
    fn held(migration: &str) -> Vec<u64> {
        let statements = Script::read(migration, None).unwrap().statements;
        let mut costs = Costs::of(statements.len());
        let mut is_in_transaction = false;
        for (place, statement) in statements.iter().enumerate() {
            if let Some(edge) = Edge::of(statement) {
                is_in_transaction = edge != Edge::Ends;
            }
            costs.ran(place, (Duration::from_secs(1), 0), statement, is_in_transaction);
        }
        costs.all().into_iter().flatten().map(|cost| Duration::from_secs_f64(cost.held).as_secs()).collect()
    }

    #[test]
    fn locks_are_held_until_their_transaction_ends() {
        assert_eq!(held("SELECT 1; BEGIN; SELECT 2; COMMIT; SELECT 3"), [1, 3, 2, 1, 1]);
        assert_eq!(held("BEGIN; SELECT 1; COMMIT AND CHAIN; SELECT 2; COMMIT"), [3, 2, 1, 2, 1]);
    }

    #[test]
    fn locks_are_held_until_their_transaction_goes_back_to_an_earlier_savepoint() {
        let found = held("BEGIN; SELECT 1; SAVEPOINT a; SELECT 2; ROLLBACK TO A; SELECT 3; COMMIT");
        assert_eq!(found, [7, 6, 5, 2, 1, 2, 1]);
        let found =
            held("BEGIN; SAVEPOINT a; SAVEPOINT b; SELECT 1; ROLLBACK TO a; SELECT 2; ROLLBACK TO a; COMMIT");
        assert_eq!(found, [8, 7, 3, 2, 1, 2, 1, 1]);
        // The locks of a savepoint that is released are those of the one before.
        let found = held(
            "BEGIN; SAVEPOINT a; SAVEPOINT b; SELECT 1; RELEASE b; ROLLBACK TO b; ROLLBACK TO a; COMMIT",
        );
        assert_eq!(found, [8, 7, 5, 4, 3, 2, 1, 1]);
    }
}
