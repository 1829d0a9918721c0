//! The plan is carried out: steps in order, rows in chunks.
//!
//! - [`filler`] holds the state of a fill; [`steps`] runs its steps, and [`rehearsal`] those before the rows, on empty
//!   tables in a transaction that is rolled back.
//! - A *chunk* is the range of rows that one transaction loads. [`generate`] prepares the loop for all methods: in
//!   [`chunk_loop`] each
//!   stream takes the next chunk from the [`queue`], [`crate::limits`] lets it begin, and [`load_chunk`] loads it.
//! - The [`sink`] is how rows get into their relation: by COPY ([`copy`]; frozen if the chunk is a whole leaf that
//!   is truncated in the same transaction), by the server's own `generate_series`, or as direct pages ([`direct`]).
//! - [`foreign_keys`] of direct pages, and of COPY where the role may turn triggers off ([`by_set`]), are proved before the
//!   commit, all rows of a chunk at once.
//! - A [`cycle`] of tables that reference each other is loaded in one transaction, before the steps of each table.
//! - Several processes share a fill by [`parts`]: chunks are divided, and the last part to end carries out the later steps. For
//!   a schema, [`prepare`] begins the ledgers of all tables first, and each [`Stage`] is a run of its own.
//! - To resume is no mode of its own: the same loop runs with some chunks recorded as loaded. Before that, [`resume`]
//!   compares the tables with the records: oids, the number of rows in each relation, first and last id, and whether
//!   rows from before an append are there. Any other difference refuses the fill, with the command that begins anew.
//! - pgrig knows the state of the tables after a failure from its own commits ([`crate::remains`]), so it can report this
//!   state even when the server is gone.

mod ballast;
mod by_set;
mod chunk_loop;
pub(crate) mod compression;
pub(crate) mod copy;
mod cycle;
pub(crate) mod direct;
mod filler;
pub(crate) mod foreign_keys;
mod freeze;
mod generate;
mod growth;
mod load_chunk;
mod parts;
mod prepare;
mod queue;
mod rate;
mod rehearsal;
pub(crate) mod resume;
mod rows;
pub(crate) mod scratch;
mod sink;
mod steps;
mod vacuum;
mod watched;

use futures_util::future::LocalBoxFuture;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

pub(crate) use cycle::{Member, run_cycle};
pub use parts::{Arrival, PartEnd, arrive};
pub use rate::RateMeter;
pub use rehearsal::{Rehearsed, Unwatched};

use self::filler::Filler;
pub(crate) use self::filler::{Stage, take_in_hand};
pub(crate) use self::parts::{ARRIVAL, LOOKS_AT_END, Parts, open_noticed};
pub(crate) use self::prepare::{begin_ledger, continue_ledger};
pub(crate) use self::queue::Queue;
use crate::cause::Cause;
use crate::error::FillError;
use crate::limits::{AdmissionControl, Event, Limits, OnEvent, RemainingSpace, VolumeMonitor};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::probe::{ProbeKind, ProbePoint};
use crate::request::InitStep;
use connect::Target;
use server::interruption::{Ended, until_stopped};

/// Observer of a fill's progress. Several threads call it.
pub trait Observer: Sync {
    /// pgrig is comparing the rows of an interrupted fill with its records before it continues.
    fn checking_rows(&self, rows: u64);
    /// A step begins.
    fn step_started(&self, step: InitStep);
    /// Reports further rows of the bulk table that were handed to the server.
    fn rows_sent(&self, rows: u64);
    /// How far the step has come, 0 to 1: as the server says, or as a table has grown to its size.
    fn fraction_done(&self, fraction: f64);
    /// A mark was crossed, space ran short or came back.
    fn event(&self, event: &Event);
    /// The space left on the volume; called often, where pgrig can see it.
    fn remaining_space(&self, remaining: RemainingSpace);
    /// A probe was made.
    fn probed(&self, point: &ProbePoint);
    /// The step waits for another session: called again as long as the wait lasts. The phrase follows the word "waiting".
    fn waiting(&self, phrase: &str);
    /// A step is done.
    fn step_finished(&self, step: InitStep, elapsed: Duration);
}

/// The conduct of a run besides its plan.
#[derive(Default)]
pub struct Conduct {
    /// The limits of the fill, and its marks.
    pub limits: Limits,
    /// Monitor of the server's volumes; none if pgrig cannot read them.
    pub volume_monitor: Option<VolumeMonitor>,
    /// A query to run as the table grows.
    pub probe: Option<ProbeKind>,
    /// Whether no rows are read back to see how well they compress.
    pub is_unsampled: bool,
    /// Statements that make indexes and constraints after the rows, in the transaction that removes the fill's ledger.
    pub makes: Vec<String>,
    /// Statements that record the end of the fill, in the transaction that removes its ledger.
    pub at_end: Option<String>,
    /// Whether a fill that ends for want of time counts as interrupted, so that the same request completes it.
    pub must_complete: bool,
    /// The arrival, if this process is one of several parts.
    pub arrival: Option<Arrival>,
    /// Directory for records of files that are written past the server; see [`remove_abandoned`](crate::remove_abandoned).
    pub records: Option<PathBuf>,
}

/// Refuses the requests that [`run`] would refuse before it changes anything, and changes nothing.
///
/// # Errors
/// As [`run`] before its first step.
pub fn rehearse<'a>(
    target: &'a Target,
    plan: &'a Plan,
    conduct: Conduct,
) -> LocalBoxFuture<'a, Result<Rehearsed, FillError>> {
    Box::pin(async move {
        let prober = conduct.probe.map(|kind| plan.prober(kind)).transpose()?;
        let control = admission_control(plan, conduct.limits, conduct.volume_monitor, &|_| {})?;
        Filler::new(target, plan, control, prober, false, None, &Unwatched).rehearse_alone().await
    })
}

/// Whether rows are committed chunk by chunk.
fn in_chunks(plan: &Plan) -> bool {
    plan.has_ledger() && !plan.is_single_transaction()
}

/// The control of the admission of chunks, if rows come in chunks; refuses limits that it cannot keep.
fn admission_control<'a>(
    plan: &Plan,
    limits: Limits,
    volume_monitor: Option<VolumeMonitor>,
    tell: &'a OnEvent<'a>,
) -> Result<Option<AdmissionControl<'a>>, FillError> {
    let in_chunks = in_chunks(plan);
    let control =
        in_chunks.then(|| AdmissionControl::new(limits, volume_monitor, plan.owed(), tell)).transpose()?;
    if let Some(control) = control.as_ref().filter(|_| !plan.may_be_full()) {
        // The rehearsal, which has the locks of the tables to be dropped, knows what they give back.
        let freed = if plan.dropped.is_empty() { 0 } else { u64::MAX };
        control.refuse_full(plan.first_space(), freed)?;
    }
    Ok(control)
}

/// Carries the plan out. `interrupt` resolves when the user wants to stop: running statements are
/// then cancelled, and the error describes the state of the tables.
///
/// # Errors
/// If a step fails or is interrupted.
pub fn run<'a>(
    target: &'a Target,
    plan: &'a Plan,
    conduct: Conduct,
    observer: &'a dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Outcome, FillError>> {
    run_stage(target, plan, conduct, Stage::All, observer, interrupt)
}

/// Does a stage of the work on a table, as [`run`] does all of it.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_stage<'a>(
    target: &'a Target,
    plan: &'a Plan,
    conduct: Conduct,
    stage: Stage,
    observer: &'a dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Outcome, FillError>> {
    Box::pin(async move {
        let tell = |event: &Event| observer.event(event);
        // The checkpoints' own files are beside tables that are in no tablespace of their own.
        let ballast = in_chunks(plan) && conduct.limits.may_meet_full_disk() && plan.tablespace.is_none();
        let prober = conduct.probe.map(|kind| plan.prober(kind)).transpose()?;
        let control = admission_control(plan, conduct.limits, conduct.volume_monitor, &tell)?;
        let mut filler = Filler::new(target, plan, control, prober, ballast, conduct.records, observer);
        if matches!(stage, Stage::All) {
            let part = plan.part();
            filler.parts = part.map(|part| Parts::new(plan.bulk_qualified(), part, conduct.arrival));
        }
        filler.stage = stage;
        filler.is_unsampled = conduct.is_unsampled;
        filler.makes = conduct.makes;
        filler.at_end = conduct.at_end;
        filler.must_complete = conduct.must_complete;
        let work = pin!(async { Ok(filler.execute(filler.begin().await?).await) });
        let result = match until_stopped(target, interrupt, work, || filler.stop()).await {
            Ended::Done(result) => Some(result),
            Ended::Stopped(Some(Ok(Ok(outcome)))) => return Ok(outcome),
            // Cancelled statements end with an error of their own.
            Ended::Stopped(_) => None,
        };
        match result {
            Some(Ok(Ok(outcome))) => Ok(outcome),
            Some(Ok(Err(cause))) => Err(failed(&filler, Some(cause)).await),
            None => Err(failed(&filler, None).await),
            Some(Err(refused)) => {
                filler.look_at_volumes();
                Err(refused)
            }
        }
    })
}

/// The error of a fill that failed; without a cause, it was interrupted.
async fn failed(filler: &Filler<'_>, cause: Option<Cause>) -> FillError {
    filler.look_at_volumes();
    let (step, remains) = (filler.step(), filler.remains().await);
    match cause {
        None | Some(Cause::Interrupted) => FillError::Interrupted { step, remains },
        Some(source) => FillError::Step {
            step,
            remains: if source.is_of_rows() { remains.stuck() } else { remains },
            source: Box::new(source.with_remedy()),
        },
    }
}
