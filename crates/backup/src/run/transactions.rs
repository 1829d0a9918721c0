//! The transactions of a load, on a database that pgrig has made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connect::Target;
use failure::Class;
use server::Session;
use server::quote::identifier;
use tps::{End, Outcome, Second, TpsError};

use super::Run;
use super::point::Witness;
use super::step::{LOOK, Trouble};
use crate::error::BackupError;
use crate::load::Load;

/// The database in which the scripts are tried.
const COPY: &str = "pgrig_try";
/// Connections to this one do not hinder the copy of another.
const ELSEWHERE: &str = "template1";
/// First version that copies a database by WAL by default (CREATE DATABASE … STRATEGY).
const BY_WAL: i32 = 150_000;
/// Interval of checks, and of the rows of the witness.
const INTERVAL: Duration = Duration::from_millis(20);

/// Prepares pgbench's tables, as pgbench does before a run.
pub(super) async fn prepare(load: &Load, target: &Target) -> Result<(), BackupError> {
    let connection = of_clients(target).connect().await?;
    let plan = tps::Plan::new(&connection, load.request.clone()).await?;
    plan.prepare(&connection).await?;
    connection.close().await;
    Ok(())
}

/// The database as its clients reach it, with the event triggers that pgrig switches off for its own sessions.
fn of_clients(target: &Target) -> Target {
    target.clone().without_settings()
}

/// Carries out each script once, so that one that fails is refused before anything is measured. It does so in a copy of the database:
/// the scripts may delete all rows. No session is connected to the database, or it is just being closed.
pub(super) async fn try_once(load: &Load, target: &Target, stop: &AtomicBool) -> Result<(), BackupError> {
    let session = Session::open(&target.clone().with_database(ELSEWHERE)).await?;
    let query = "SELECT current_setting('server_version_num')::int AS n";
    let version: i32 = session.row(query, &[]).await?.get("n");
    let strategy = if version >= BY_WAL { " STRATEGY file_copy" } else { "" };
    let database = identifier(target.dbname());
    session.run(&format!("CREATE DATABASE {COPY} TEMPLATE {database}{strategy}")).await?;
    let tried = Box::pin(try_in(load, &target.clone().with_database(COPY), stop)).await;
    // After an error, the whole server is removed.
    tried?;
    session.run(&format!("DROP DATABASE {COPY} WITH (FORCE)")).await?;
    session.close().await;
    Ok(())
}

async fn try_in(load: &Load, copy: &Target, stop: &AtomicBool) -> Result<(), BackupError> {
    prepare(load, copy).await?;
    for request in load.once() {
        let tried = Box::pin(put(load, request, copy, || Ok(()), None, stop)).await;
        tried.map_err(|trouble| of_trouble(load, trouble))?;
    }
    Ok(())
}

/// The error of a load.
pub(super) fn of_trouble(load: &Load, trouble: Trouble) -> BackupError {
    match trouble {
        Trouble::Run(error) => error,
        Trouble::Way(why) => BackupError::Load { script: load.script(), why, class: Class::Machine },
    }
}

impl Run<'_> {
    /// The load with random numbers that no load of the rehearsal had. With those of an earlier load it would update the same rows, whose
    /// versions lie together since, and write few whole pages of WAL.
    pub(super) fn next_load(&self, load: &Load) -> Load {
        let loads = self.loads.get();
        self.loads.set(loads + 1);
        load.after(loads)
    }
}

/// Runs the transactions for this time. Meanwhile, `check` is called every [`INTERVAL`], and its error ends them; the witness gets rows.
pub(super) async fn run(
    load: &Load,
    time: Duration,
    target: &Target,
    check: impl Fn() -> Result<(), Trouble>,
    witness: Option<&mut Witness>,
    stop: &AtomicBool,
) -> Result<Outcome, Trouble> {
    Box::pin(put(load, load.lasting(time), target, check, witness, stop)).await
}

/// The same for a request, which is that of the load or a part of it.
async fn put(
    load: &Load,
    request: tps::Request,
    target: &Target,
    check: impl Fn() -> Result<(), Trouble>,
    mut witness: Option<&mut Witness>,
    stop: &AtomicBool,
) -> Result<Outcome, Trouble> {
    let target = of_clients(target);
    let connection = target.connect().await.map_err(BackupError::from)?;
    let plan = tps::Plan::new(&connection, request).await.map_err(BackupError::from)?;
    connection.close().await;
    let targets = std::slice::from_ref(&target);
    let ended = AtomicBool::new(false);
    let mut running = tps::run(targets, &plan, &Unwatched, Box::pin(stopped([stop, &ended])));
    let mut found = Ok(());
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut running => break outcome,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if found.is_err() {
            continue;
        }
        found = check();
        if let (Ok(()), Some(witness)) = (&found, witness.as_deref_mut()) {
            found = witness.write().await.map_err(Trouble::from);
        }
        if found.is_err() {
            ended.store(true, Ordering::Relaxed);
        }
    };
    found?;
    match outcome {
        Err(TpsError::Interrupted) => Err(BackupError::Interrupted.into()),
        outcome => completed(load, outcome.map_err(BackupError::from)?),
    }
}

/// Refuses the results of a load that was not put on the server as asked for.
fn completed(load: &Load, outcome: Outcome) -> Result<Outcome, Trouble> {
    let failed = |why: String| {
        let class = outcome.class_of_loss();
        Err(BackupError::Load { script: load.script(), why, class }.into())
    };
    if matches!(outcome.end, End::Interrupted) {
        return Err(BackupError::Interrupted.into());
    }
    if let Some(lost) = outcome.lost.first() {
        return failed(lost.why.clone());
    }
    if outcome.all.counts.succeeded == 0 {
        return failed("no transaction succeeded".to_owned());
    }
    Ok(outcome)
}

/// Resolves when one of these is set.
async fn stopped(any: [&AtomicBool; 2]) {
    while !any.iter().any(|stop| stop.load(Ordering::Relaxed)) {
        tokio::time::sleep(LOOK).await;
    }
}

struct Unwatched;

impl tps::Observer for Unwatched {
    fn second(&self, _second: &Second) {}
}
