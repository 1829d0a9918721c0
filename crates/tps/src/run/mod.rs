//! Carries a plan out: connects, has jobs do the work, collects their counts, and ends them.

mod answer;
mod carry_out;
mod client;
pub(crate) mod clock;
mod job;
pub(crate) mod pace;
mod part_monitor;
mod server_clock;
mod session;
mod shell;
mod start_barrier;
pub(crate) mod stop_signal;
pub(crate) mod tally;
mod targets;
mod waiter;
pub mod wire;

use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use script::Started;
use tokio::sync::mpsc;

use crate::error::TpsError;
use crate::observer::{Debugged, Observer};
use crate::outcome::{End, LostClient, Moves, Outcome, Parted};
use crate::plan::Plan;
use crate::request::{Connecting, Request};
use crate::run::job::{Start, work};
use crate::run::pace::Timetable;
use crate::run::part_monitor::PartMonitor;
use crate::run::session::{AbortHandle, Session};
use crate::run::start_barrier::StartBarrier;
use crate::run::stop_signal::StopSignal;
use crate::run::tally::{Collected, Collector, Tally};
use crate::run::targets::Targets;
use connect::Target;

/// Connections that are made at the same time.
pub(crate) const CONNECTING_AT_ONCE: usize = 16;
/// Time between two cancel requests. They are repeated because one between two statements has no
/// effect.
const CANCEL_INTERVAL: Duration = Duration::from_millis(200);
/// Time after which connections whose statements have not been cancelled are closed.
const CANCEL_DEADLINE: Duration = Duration::from_secs(1);
/// Largest number of unread messages from jobs.
const MOST_UNREAD: usize = 1000;

/// State that all jobs share.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) stop_signal: StopSignal,
    /// Names of prepared statements, by script and command.
    statements: Vec<Vec<String>>,
    /// Handle of each connected client.
    abort_handles: Vec<Mutex<Option<AbortHandle>>>,
    connected: Mutex<Connected>,
    pub(crate) targets: Targets,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connected {
    took: Duration,
    connections: u64,
}

/// Message from a job.
pub(crate) enum JobMessage {
    Lost(LostClient),
    Moved(Moved),
    Debugged(Debugged),
}

/// A client that lost its session and works on another target now.
pub(crate) struct Moved {
    pub(crate) at: Instant,
    /// Numbers of the targets, from 0.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Why it lost its session.
    pub(crate) why: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    fn new(targets: &[Target], plan: &Plan) -> Result<Self, TpsError> {
        let Request { clients, jobs, statements, .. } = plan.request;
        let phase = plan.request.first_phase();
        let names = plan.scripts.iter().enumerate().map(|(script, commands)| {
            let names = 0..commands.commands().len();
            names.map(|command| format!("pgrig_{script}_{command}")).collect()
        });
        let stop_signal =
            StopSignal::new().map_err(|source| TpsError::Machine { what: "make an event", source })?;
        Ok(Self {
            tallies: (0..jobs.min(clients))
                .map(|_| Tally::new(&plan.scripts, statements, phase, targets.len()))
                .collect(),
            stop_signal,
            statements: names.collect(),
            abort_handles: (0..clients).map(|_| Mutex::new(None)).collect(),
            connected: Mutex::default(),
            targets: Targets::new(targets, &plan.request),
            plan: plan.clone(),
        })
    }

    pub(crate) fn statement(&self, (script, command): (usize, usize)) -> &str {
        &self.statements[script][command]
    }

    /// Adds the time that connecting or disconnecting took.
    pub(crate) fn connecting_took(&self, took: Duration) {
        lock(&self.connected).took += took;
    }

    /// Registers the handle that ends the work of a client.
    pub(crate) fn register(&self, client: usize, handle: AbortHandle) {
        lock(&self.connected).connections += 1;
        *lock(&self.abort_handles[client]) = Some(handle);
    }

    /// Removes the handle of a client that closes its connection.
    pub(crate) fn unregister(&self, client: usize) {
        *lock(&self.abort_handles[client]) = None;
    }

    /// Cancels all statements.
    async fn cancel(&self) {
        let cancellers: Vec<_> = self
            .abort_handles
            .iter()
            .filter_map(|handle| lock(handle).as_ref().map(|handle| handle.canceller.clone()))
            .collect();
        let each = stream::iter(cancellers).for_each_concurrent(CONNECTING_AT_ONCE, async |canceller| {
            // A server that cannot be reached has ended the statement, or pgrig closes its connection later.
            let _ = canceller.cancel().await;
        });
        each.await;
    }

    /// Closes all connections.
    fn close_connections(&self) {
        for handle in &self.abort_handles {
            if let Some(handle) = lock(handle).as_ref() {
                handle.close();
            }
        }
    }
}

/// The threads of the jobs. Drop stops them.
struct JobThreads {
    run: Arc<Run>,
    threads: Vec<JoinHandle<io::Result<Instant>>>,
}

impl Drop for JobThreads {
    fn drop(&mut self) {
        self.run.stop_signal.raise();
        if !self.threads.is_empty() {
            self.run.close_connections();
        }
    }
}

impl JobThreads {
    /// Starts the threads, which begin together: then, or as soon as possible.
    fn start(
        run: Arc<Run>,
        starts: Vec<Start>,
        then: Option<Instant>,
    ) -> Result<(Self, Timetable), TpsError> {
        let timetable = Arc::new(OnceLock::<Option<Timetable>>::new());
        let mut job_threads = Self { run, threads: Vec::new() };
        for start in starts {
            let (run, begun) = (Arc::clone(&job_threads.run), Arc::clone(&timetable));
            let work = move || match begun.wait() {
                Some(timetable) => work(&run, *timetable, start),
                None => Ok(Instant::now()),
            };
            let name = format!("tps {}", job_threads.threads.len());
            match thread::Builder::new().name(name).spawn(work) {
                Ok(thread) => job_threads.threads.push(thread),
                Err(source) => {
                    // Those that have begun must not wait for ever.
                    let _ = timetable.set(None);
                    return Err(TpsError::Machine { what: "start a thread for each of --jobs", source });
                }
            }
        }
        let begun = Timetable::new(then.unwrap_or_else(Instant::now), &job_threads.run.plan.request);
        let _ = timetable.set(Some(begun));
        Ok((job_threads, begun))
    }

    /// Waits for the threads. Returns the time at which the last transaction ended.
    fn join(mut self) -> Result<Instant, TpsError> {
        let mut over = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            over.push(ended.map_err(|source| TpsError::Machine { what: "wait for connections", source })?);
        }
        Ok(over.into_iter().max().unwrap_or_else(Instant::now))
    }
}

/// Carries a plan out. Clients are divided over the targets, at least one; on the first, parts synchronise. With several, a
/// client that loses its session connects to the next. `interrupt` resolves when the user wants to stop: running statements are
/// then cancelled, and the results so far returned.
///
/// # Errors
/// If nothing was measured, because clients could not connect or the user interrupted it before.
/// Later failures are in the outcome.
pub fn run<'a>(
    targets: &'a [Target],
    plan: &'a Plan,
    observer: &'a dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Outcome, TpsError>> {
    Box::pin(async move {
        let mut interrupt = pin!(interrupt);
        make_room_for_files(&plan.request)?;
        let run = Arc::new(Run::new(targets, plan)?);
        let Ready { sessions, mut monitor, first } = tokio::select! {
            biased;
            () = &mut interrupt => return Err(TpsError::Interrupted),
            ready = get_ready(&run, observer) => ready?,
        };
        let (tell, mut messages) = mpsc::channel(MOST_UNREAD);
        let (job_threads, timetable) =
            JobThreads::start(Arc::clone(&run), starts(plan, sessions, &tell), first)?;
        drop(tell);
        let mut collector =
            Collector::new(timetable, &plan.scripts, &plan.request, (run.tallies.len(), targets.len()));
        let mut lost = Vec::new();
        let mut moves = MovesBySecond::new();
        let mut parted = None;
        let mut interrupted = false;
        let mut stopped: Option<Instant> = None;
        let cancelling = async {
            loop {
                run.cancel().await;
                tokio::time::sleep(CANCEL_INTERVAL).await;
            }
        };
        let mut cancelling = pin!(cancelling);
        let mut closing = tokio::time::interval(CANCEL_INTERVAL);
        loop {
            tokio::select! {
                biased;
                () = &mut interrupt, if !interrupted => {
                    interrupted = true;
                    stopped.get_or_insert_with(Instant::now);
                    run.stop_signal.raise();
                }
                reason = parted_from(&mut monitor) => {
                    parted = Some(reason);
                    stopped.get_or_insert_with(Instant::now);
                    run.stop_signal.raise();
                }
                message = messages.recv() => match message {
                    Some(JobMessage::Lost(client)) => lost.push(client),
                    Some(JobMessage::Moved(client)) => count(&mut moves, client, &timetable, observer),
                    Some(JobMessage::Debugged(debugged)) => observer.debugged(&debugged),
                    // All jobs are done.
                    None => break,
                },
                () = tokio::time::sleep_until(collector.next().into()) => {
                    observer.second(&collector.cut(&run.tallies));
                }
                () = &mut cancelling, if stopped.is_some() => {}
                _ = closing.tick(), if stopped.is_some_and(|since| since.elapsed() > CANCEL_DEADLINE) => {
                    run.close_connections();
                }
            }
        }
        let over = job_threads.join()?;
        let (collected, rest) = collector.finish(&run.tallies, over);
        if let Some(second) = rest {
            observer.second(&second);
        }
        let end = match (interrupted, &parted, lost.as_slice()) {
            (true, ..) => End::Interrupted,
            (false, Some(_), _) => End::Parted,
            (false, None, []) => End::Complete,
            (false, None, _) => End::Lost,
        };
        let clock = monitor.as_ref().map(PartMonitor::readings).unwrap_or_default();
        let agreed = monitor.as_ref().map(|monitor| monitor.agreed);
        match monitor {
            Some(monitor) if matches!(end, End::Complete | End::Parted) => tokio::select! {
                biased;
                () = &mut interrupt => {}
                () = monitor.leave() => {}
            },
            Some(monitor) => monitor.abandon(),
            None => {}
        }
        let Connected { took, connections } = *lock(&run.connected);
        let Collected { elapsed, all, scripts, targets, seconds, increments } = collected;
        Ok(Outcome {
            end,
            elapsed,
            connecting: took,
            connections,
            all,
            scripts,
            targets,
            moves: moves.into_values().collect(),
            seconds,
            lost,
            increments,
            clock,
            agreed,
            parted,
            begun: timetable.start(),
        })
    })
}

/// Clients that moved, by second and targets: a server that comes and goes does not fill the memory.
type MovesBySecond = BTreeMap<(u64, usize, usize), Moves>;

fn count(moves: &mut MovesBySecond, client: Moved, timetable: &Timetable, observer: &dyn Observer) {
    let Moved { at, from, to, why } = client;
    let at = at.saturating_duration_since(timetable.start());
    let together = moves.entry((at.as_secs(), from, to)).or_insert_with(|| {
        let first = Moves { at: at.as_secs_f64(), from, to, clients: 0, why };
        observer.moved(&first);
        first
    });
    together.clients += 1;
}

/// The state before the first transaction.
struct Ready {
    sessions: Vec<Option<Session>>,
    /// For a part: the monitor of the other parts, and the time at which all begin.
    monitor: Option<PartMonitor>,
    first: Option<Instant>,
}

/// Connects all clients. A part takes its place among the others before that, and then waits for them.
async fn get_ready(run: &Run, observer: &dyn Observer) -> Result<Ready, TpsError> {
    let barrier = match &run.plan.request.part {
        None => None,
        Some(part) => Some(StartBarrier::arrive(run.targets.first(), &run.plan, part).await?),
    };
    let began = Instant::now();
    let sessions = connect_all(run).await?;
    run.connecting_took(began.elapsed());
    let (monitor, first) = match barrier {
        None => (None, None),
        Some(barrier) => {
            barrier.begin(observer).await.map(|(monitor, first)| (Some(monitor), Some(first)))?
        }
    };
    Ok(Ready { sessions, monitor, first })
}

/// For a part: resolves when the run lost another one.
async fn parted_from(monitor: &mut Option<PartMonitor>) -> Parted {
    match monitor {
        Some(monitor) => monitor.parted().await,
        None => std::future::pending().await,
    }
}

/// Raises this process's limit of open files as far as the clients need it.
pub(crate) fn make_room_for_files(request: &Request) -> Result<(), TpsError> {
    let clients = request.clients;
    // A socket, and the duplicate in its `AbortHandle`; each job's own; and what the process has anyway.
    let needed = (2 * clients + 8 * request.jobs.min(clients) + 100) as u64;
    let failed = |error: Errno| TpsError::Machine {
        what: "read or raise the limit of open files (give fewer clients)",
        source: error.into(),
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if needed > hard {
        return Err(TpsError::Files { clients, needed, most: hard });
    }
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(failed)?;
    }
    Ok(())
}

/// Connects all clients, unless they connect for each transaction.
async fn connect_all(run: &Run) -> Result<Vec<Option<Session>>, TpsError> {
    let Request { clients, connecting, .. } = run.plan.request;
    if connecting == Connecting::EachTransaction {
        return Ok((0..clients).map(|_| None).collect());
    }
    let connect = async |client| {
        let target = run.targets.get(run.targets.of_client(client));
        target.connect_raw().await.map(|connection| Some(Session::new(connection, run)))
    };
    let sessions = stream::iter(0..clients).map(connect).buffered(CONNECTING_AT_ONCE);
    Ok(sessions.try_collect().await?)
}

/// Gives each job its clients.
fn starts(plan: &Plan, sessions: Vec<Option<Session>>, tell: &mpsc::Sender<JobMessage>) -> Vec<Start> {
    let Request { seed, clients, jobs, definitions, part, .. } = &plan.request;
    let part = part.as_ref().map_or((0, 1), |part| (part.number - 1, part.of));
    let (clients, threads) = (*clients, *jobs);
    let start = script::Start { seed: *seed, clients, threads, scale: plan.scale, part, definitions };
    let Started { clients, threads } = plan.scripts.start(&start);
    let mut clients = clients.into_iter().zip(sessions).enumerate();
    let start = |(job, thread): (usize, script::Thread)| {
        let clients = clients.by_ref().take(thread.clients.len());
        let clients = clients.map(|(number, (memory, session))| (number, memory, session)).collect();
        Start { job, randoms: [thread.choose, thread.throttle], clients, tell: tell.clone() }
    };
    threads.into_iter().enumerate().map(start).collect()
}
