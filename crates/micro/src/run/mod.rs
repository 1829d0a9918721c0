//! Carries a request out: one session, rounds of samples. Everything that it creates is dropped
//! again.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod rounds;
pub(crate) mod rows;
pub(crate) mod scratch;
pub(crate) mod session;

use futures_util::future::LocalBoxFuture;
use std::pin::pin;
use std::time::Duration;

use self::bench::Bench;
use self::calibrate::Calibration;
use self::rounds::Round;
use crate::error::MicroError;
use crate::plan::Plan;
use crate::request::Request;
use connect::{Connection, Target};
use server::Sessions;
use server::fault::caught;
use server::interruption::{self, clear_up, until_stopped};

/// Observer of a run's progress.
pub trait Observer {
    /// Plans have been read and the number of rows has been found; rounds begin.
    fn planned(&mut self, plan: &Plan);
    /// A round is complete.
    fn round(&mut self, round: &Round, progress: RunProgress);
}

/// Progress of a run, by rounds and by time.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Number of judged rounds so far.
    pub rounds: usize,
    /// Time that they took.
    pub elapsed: Duration,
    /// Time that they may take.
    pub budget: Duration,
}

/// The end of a run, besides its rounds.
#[derive(Debug)]
pub struct Ended {
    /// Whether it came to its end.
    pub result: Result<(), MicroError>,
    /// Disturbances and limits of the results.
    pub notes: Vec<String>,
    /// Checkpoints that pgrig asked for.
    pub own_checkpoints: u64,
    /// Warning that objects of pgrig's or of --setup could not be dropped; none if they were.
    pub left_behind: Option<String>,
}

/// Time that --teardown may take after an interruption.
const TEARDOWN_GRACE: Duration = Duration::from_secs(1);
/// Finds out how the server would execute the candidates, without timing them.
///
/// # Errors
/// If the server does not take a candidate, or cannot be asked.
pub fn explain<'a>(
    target: &'a Target,
    connection: &'a Connection,
    request: &'a Request,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Plan, MicroError>> {
    Box::pin(async move {
        let bench = Bench::open(Sessions::new(target), request).await?;
        let work = async {
            let settings = bench.begin(connection, request.rows.unwrap_or(0)).await?;
            let (_, mut plan) = bench.look(settings).await?;
            plan.notes = bench.notes();
            Ok(plan)
        };
        let (result, left_behind) = guarded(&bench, interrupt, work).await;
        let plan = result?;
        left_behind.map_or(Ok(plan), |why| Err(MicroError::Request(why)))
    })
}

/// Measures. `interrupt` resolves when the user wants to stop. Everything that was created is
/// dropped again.
///
/// # Errors
/// If no session for measuring can be opened. Later errors are in [`Ended::result`].
pub fn run<'a>(
    target: &'a Target,
    connection: &'a Connection,
    request: &'a Request,
    observer: &'a mut dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Ended, MicroError>> {
    Box::pin(async move {
        let bench = Bench::open(Sessions::new(target), request).await?;
        let work = async {
            let settings = bench.begin(connection, request.rows.unwrap_or(0)).await?;
            let (arms, mut plan) = bench.look(settings).await?;
            bench.refuse(&plan.findings)?;
            bench.size_up(&arms, &mut plan).await?;
            bench.refuse(&plan.findings)?;
            observer.planned(&plan);
            rounds::run(&bench, &arms, &plan, observer).await
        };
        let (result, left_behind) = guarded(&bench, interrupt, work).await;
        Ok(Ended { result, notes: bench.notes(), own_checkpoints: bench.checkpoints.get(), left_behind })
    })
}

/// Times the first candidate at many numbers of rows.
///
/// # Errors
/// If it fails or is interrupted.
pub fn calibrate<'a>(
    target: &'a Target,
    connection: &'a Connection,
    request: &'a Request,
    observer: &'a mut dyn FnMut(&Calibration, RunProgress),
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Calibration, MicroError>> {
    Box::pin(async move {
        let bench = Bench::open(Sessions::new(target), request).await?;
        let work = async {
            let settings = bench.begin(connection, calibrate::most_rows(request)).await?;
            let (arms, plan) = bench.look(settings).await?;
            bench.refuse(&plan.findings)?;
            calibrate::run(&bench, &arms, plan, observer).await
        };
        let (result, left_behind) = guarded(&bench, interrupt, work).await;
        let calibration = result?;
        left_behind.map_or(Ok(calibration), |why| Err(MicroError::Request(why)))
    })
}

/// Does the work until it ends or is interrupted, and cleans up after it. Returns a warning of objects that may remain,
/// if that failed.
async fn guarded<T>(
    bench: &Bench<'_>,
    interrupt: impl Future<Output = ()>,
    work: impl Future<Output = Result<T, MicroError>>,
) -> (Result<T, MicroError>, Option<String>) {
    let mut interrupt = pin!(interrupt);
    let stopped = || MicroError::Interrupted { rounds: bench.rounds.get() };
    let ended = until_stopped(bench.sessions.target, &mut interrupt, pin!(caught(work)), || {}).await;
    let (mut result, was_stopped) = match ended {
        interruption::Ended::Done(result) => {
            let panicked = matches!(result, Err(MicroError::Panicked(_)));
            (result, panicked)
        }
        interruption::Ended::Stopped(Some(result)) => (result.map_err(|_| stopped()), true),
        interruption::Ended::Stopped(None) => {
            return (Err(stopped()), left_behind(bench, "the server does not answer"));
        }
    };
    // The user's own SQL has only so much time then.
    let patience =
        async { if was_stopped { tokio::time::sleep(TEARDOWN_GRACE).await } else { interrupt.await } };
    let torn_down = until_stopped(bench.sessions.target, patience, pin!(bench.tear_down()), || {}).await;
    let torn_down = match torn_down {
        interruption::Ended::Done(torn_down) => torn_down,
        interruption::Ended::Stopped(torn_down) => {
            result = Err(stopped());
            match torn_down {
                Some(torn_down) => torn_down,
                None => return (result, left_behind(bench, "the server does not answer")),
            }
        }
    };
    let cleared = clear_up(async || bench.clear().await).await;
    let mut warning = cleared.err().and_then(|why| left_behind(bench, &why));
    match torn_down {
        Err(error) if result.is_ok() => result = Err(error),
        Err(error) => {
            let both = [Some(error.to_string()), warning].into_iter().flatten();
            warning = Some(both.collect::<Vec<_>>().join(". "));
        }
        Ok(()) => {}
    }
    (result, warning)
}

/// The warning that objects may remain; none if there are none.
fn left_behind(bench: &Bench<'_>, why: &str) -> Option<String> {
    let of_pgrig = bench.has_objects().then(|| {
        format!(
            "pgrig could not drop all of its objects: {why}. The next pgrig micro in this schema drops them"
        )
    });
    let of_setup = bench.request.teardown.is_some().then(|| format!("--teardown did not run: {why}"));
    of_pgrig.or(of_setup)
}
