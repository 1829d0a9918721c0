//! Carries a plan out: trials of steps, and the tables that they need.

pub(crate) mod bench;
pub(crate) mod client;
pub(crate) mod counters;
pub(crate) mod evict;
pub(crate) mod explain;
pub(crate) mod scratch;
pub(crate) mod trial;
pub(crate) mod vacuum;

use futures_util::future::LocalBoxFuture;
use std::pin::pin;

use self::bench::Bench;
use crate::error::BlockioError;
use crate::outcome::Outcome;
use crate::plan::{Plan, SCHEMA};
use crate::request::Request;
use crate::step::Step;
use connect::Target;
use server::Sessions;
use server::Survey;
use server::fault::caught;
use server::interruption::{Ended, clear_up, until_stopped};

/// Observer of a run's progress.
pub trait Observer: Sync {
    /// A step of this trial begins.
    fn step_started(&self, trial: u16, step: &Step);
    /// The step has ended.
    fn step_finished(&self);
    /// pgrig could not drop the objects that it made.
    fn left_behind(&self, why: &str);
}

/// Drops the objects that an earlier run left in the schema of the request. Call it before a plan is made.
///
/// # Errors
/// If another pgrig is at work there, or something cannot be dropped.
pub async fn clear_leftovers(target: &Target, request: &Request) -> Result<(), BlockioError> {
    let lead = Sessions::new(target).open().await?;
    let schema = request.schema.as_deref().unwrap_or(SCHEMA);
    scratch::take_in_hand(&lead, schema).await?;
    scratch::clear(&lead, schema).await?;
    // The run takes it in hand again.
    lead.connection.close().await;
    Ok(())
}

/// Carries the plan out, and hands each trial over when it is done. `interrupt` resolves when the user wants
/// to stop. Everything made is dropped again, unless the run is complete and the request keeps it.
///
/// # Errors
/// If a step fails or is interrupted.
pub fn run<'a>(
    target: &'a Target,
    survey: &'a Survey,
    plan: &'a Plan,
    observer: &'a dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
    finished: &'a mut dyn FnMut(Outcome),
) -> LocalBoxFuture<'a, Result<(), BlockioError>> {
    Box::pin(async move {
        let bench = Bench::open(target, survey, plan, observer).await?;
        let result = {
            let work = pin!(caught(async {
                bench.begin().await?;
                for number in 1..=plan.request.trials {
                    finished(bench.trial(number).await?);
                }
                Ok(())
            }));
            match until_stopped(target, interrupt, work, || {}).await {
                Ended::Done(result) => result,
                Ended::Stopped(Some(Ok(()))) => Ok(()),
                Ended::Stopped(Some(Err(_))) => Err(BlockioError::Interrupted { step: bench.step() }),
                Ended::Stopped(None) => {
                    observer.left_behind("the server does not answer");
                    return Err(BlockioError::Interrupted { step: bench.step() });
                }
            }
        };
        if result.is_ok() {
            if !plan.request.keep {
                bench.clear().await?;
            }
            return Ok(());
        }
        // Other clients may still be at the step that failed.
        target.cancel_running().await;
        if let Err(why) = clear_up(async || bench.clear().await).await {
            observer.left_behind(&why);
        }
        result
    })
}
