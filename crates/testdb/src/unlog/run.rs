//! Carries a plan out, completely or not at all.

use futures_util::future::LocalBoxFuture;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use crate::unlog::error::UnlogError;
use crate::unlog::plan::{ObjectKind, Step, UnlogPlan, locked};
use connect::{ConnectError, Target};
use server::interruption::{Ended, until_stopped};
use server::{Session, Sessions};

/// Time between two checks of the holders of a lock that pgrig waits for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Observer of the progress of a plan.
pub trait Observer: Sync {
    /// This statement runs now.
    fn begun(&self, _step: &Step) {}
    /// The statement has run.
    fn done(&self, _step: &Step) {}
    /// It waits for a lock that this process, as a phrase, holds.
    fn waiting_for_lock(&self, _holder: &str) {}
}

/// An observer that ignores everything.
impl Observer for () {}

/// Settings that decide on the cost of a write and on the loss in a crash, as SHOW gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability(pub Vec<(String, String)>);

/// Result of carrying out a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlogged {
    /// Tables that were changed.
    pub tables: usize,
    /// Sequences that were changed, including those that followed their tables.
    pub sequences: usize,
    /// Size of the tables before, with their indexes, bytes.
    pub bytes: u64,
    /// From BEGIN to COMMIT.
    pub took: Duration,
    /// Active settings of the session.
    pub durability: Durability,
}

/// Carries the plan out in one transaction. `interrupt` resolves when the user wants to stop; then it is rolled back.
///
/// # Errors
/// If a statement fails, a lock is not granted in time, or it is interrupted: then nothing was changed.
pub fn apply<'a>(
    target: &'a Target,
    plan: &'a UnlogPlan,
    observer: &'a dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Unlogged, UnlogError>> {
    Box::pin(async move {
        let session = Session::open(target).await?;
        let pid = session.pid().await?;
        // Now: a request to cancel that comes late must not hit it.
        let durability = durability(&session).await?;
        let stop = AtomicBool::new(false);
        let result = {
            let work = pin!(async {
                tokio::select! {
                    result = transaction(&session, plan, observer, &stop) => result,
                    never = watch(target, pid, observer) => match never {},
                }
            });
            match until_stopped(target, interrupt, work, || stop.store(true, Ordering::Relaxed)).await {
                Ended::Done(result) => result,
                // If it was committing already, it is done.
                Ended::Stopped(Some(result)) => result.map_err(interrupted),
                Ended::Stopped(None) => Err(UnlogError::Silent),
            }
        };
        let took = result?;
        session.connection.close().await;
        Ok(Unlogged {
            tables: plan.changes(ObjectKind::Table).count(),
            sequences: plan.changes(ObjectKind::Sequence).count() + plan.following,
            bytes: plan.bytes(),
            took,
            durability,
        })
    })
}

async fn transaction(
    session: &Session,
    plan: &UnlogPlan,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Duration, UnlogError> {
    let began = Instant::now();
    for statement in plan.opening() {
        session.run(&statement).await?;
    }
    for step in &plan.steps {
        observer.begun(step);
        let ran = session.run(&step.sql()).await;
        let stopped = stop.load(Ordering::Relaxed);
        if ran.is_err() || stopped {
            // If the connection is gone, so is the transaction.
            let _ = session.run("ROLLBACK").await;
        }
        match ran {
            Err(error) => return Err(failed(session, step, error).await),
            Ok(()) if stopped => return Err(UnlogError::Interrupted),
            Ok(()) => observer.done(step),
        }
    }
    match session.run("COMMIT").await {
        Ok(()) => Ok(began.elapsed()),
        Err(error @ ConnectError::Lost { .. }) => Err(UnlogError::InDoubt { error }),
        Err(error) => Err(UnlogError::Statement { statement: "COMMIT".to_owned(), error }),
    }
}

async fn failed(session: &Session, step: &Step, error: ConnectError) -> UnlogError {
    match error.sqlstate() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            let table = match step {
                Step::Set { object, .. } => object,
                Step::DropForeignKey(key) | Step::AddForeignKey(key) => &key.table,
                Step::Lock(table) | Step::Comment { table, .. } => table,
            };
            locked(session, Some(table), error).await
        }
        // The lock table is full.
        Some(&SqlState::OUT_OF_MEMORY) => UnlogError::TooManyLocks { error },
        _ => UnlogError::Statement { statement: step.sql(), error },
    }
}

/// Replaces an error after the user's interruption by [`UnlogError::Interrupted`], unless the
/// connection broke.
fn interrupted(error: UnlogError) -> UnlogError {
    match error {
        UnlogError::Statement { error, .. } if error.sqlstate().is_some() => UnlogError::Interrupted,
        UnlogError::Connect(error) if error.sqlstate().is_some() => UnlogError::Interrupted,
        UnlogError::Locked { .. } => UnlogError::Interrupted,
        error => error,
    }
}

/// Reports the holders of a lock that pgrig waits for, if the server has a connection left.
async fn watch(target: &Target, pid: i32, observer: &dyn Observer) -> Infallible {
    let mut every = tokio::time::interval(LOOK_INTERVAL);
    every.tick().await;
    every.tick().await;
    if let Ok(watcher) = Sessions::new(target).open().await {
        while let Ok(holder) = watcher.lock_holder(pid).await {
            if let Some(holder) = holder {
                observer.waiting_for_lock(&holder);
            }
            every.tick().await;
        }
    }
    std::future::pending().await
}

/// Active settings of a session of the target.
async fn durability(session: &Session) -> Result<Durability, ConnectError> {
    let rows = session.rows(include_str!("../sql/durability.sql"), &[]).await?;
    Ok(Durability(rows.iter().map(|row| (row.get("name"), row.get("shown"))).collect()))
}
