//! Runs trial after trial, and restores everything afterwards.

pub(crate) mod bench_server;
pub(crate) mod command;
pub(crate) mod databases;
pub(crate) mod tmpfs;

use failure::Classified;
use futures_util::future::LocalBoxFuture;
use std::pin::pin;

use measure::Trial;

use crate::bench::error::BenchError;
use crate::bench::outcome::Figures;
use crate::bench::plan::{BenchPlan, Cell, choose};
use crate::bench::request::{BenchRequest, Site, Work, dump};
use crate::bench::run::bench_server::{Active, BenchServer, Content};
use crate::bench::run::command::{Ended, Output, TestCommand};
use crate::bench::run::tmpfs::Volatile;
use crate::bench::variant::{Means, Missing, Variant};
use connect::Target;
use server::fault::caught;
use server::interruption::{self, Stopped, stop, told_to_stop, until_stopped};
use server::settings::ServerRef;
use tps::matrix::rounds;
use tps::{self, End, Outcome, Plan, Request, Second, TpsError};

/// A trial that is complete.
#[derive(Debug)]
pub struct Done {
    /// Combination that was measured.
    pub cell: Cell,
    /// Its number, from 1 on, warm-up included.
    pub number: usize,
    /// Whether it is judged.
    pub is_judged: bool,
    /// Times of the trial.
    pub figures: Figures,
    /// Settings that were in force.
    pub active: Active,
    /// The outcome of a script of transactions.
    pub outcome: Option<Box<Outcome>>,
}

impl Done {
    /// The run document's trial.
    pub fn trial(&self) -> Trial {
        let config = self.cell.to_string();
        let mut trial = match &self.outcome {
            Some(outcome) => outcome.trial(&config),
            None => Trial { config, ..Trial::default() },
        };
        trial.observe("prepare", self.figures.prepare, measure::Unit::Seconds);
        if self.outcome.is_none() {
            trial.observe("command", self.figures.work, measure::Unit::Seconds);
            trial.observe("total", self.figures.total(), measure::Unit::Seconds);
        }
        trial.events.push(measure::Event {
            at: self.figures.prepare,
            text: self.active.to_string(),
            what: serde_json::json!({ "event": "active", "active": self.active }),
        });
        trial
    }
}

/// A variant that failed and is not tried any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The variant that failed.
    pub variant: Variant,
    /// The failure: `exit status: 1`, or an error.
    pub how: String,
    /// The end of the command's output.
    pub output: String,
}

/// Observer of a bench: gets all events in order.
pub trait BenchObserver {
    /// The stage before the trials.
    fn stage(&mut self, text: &str);
    /// The plan has been made.
    fn planned(&mut self, plan: &BenchPlan);
    /// A trial begins: its number from 1, of so many.
    fn begins(&mut self, number: usize, trials: usize, cell: Cell);
    /// A trial has come to its end.
    fn done(&mut self, done: &Done);
    /// A variant failed and is not tried any more.
    fn failed(&mut self, failure: &Failure);
    /// Settings are being restored and databases dropped.
    fn putting_back(&mut self);
    /// Everything is restored, and the user has to run sync on the server's host
    /// ([`SYNC_BY_HAND`](server::settings::SYNC_BY_HAND)).
    fn wants_sync(&mut self);
}

/// Makes databases and measures, until all trials are done. `missing` is the result of
/// [`check`](crate::bench::check). `interrupt` resolves when the user wants to stop. In any case
/// settings are restored and databases dropped.
///
/// # Errors
/// If the normal variant or the server fails, the user interrupts it, or something could not be
/// restored.
pub fn run<'a>(
    site: &'a Site<'a>,
    request: &'a BenchRequest,
    missing: Vec<Missing>,
    observer: &'a mut dyn BenchObserver,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<(), BenchError>> {
    Box::pin(async move {
        let (stop, stopped) = stop();
        let work = async {
            let begin = pin!(BenchServer::begin(site.target, &request.content, &stopped));
            let server = match until_stopped(site.target, stopped.told(), begin, || {}).await {
                interruption::Ended::Done(server) => server?,
                interruption::Ended::Stopped(Some(Ok(server))) => server,
                interruption::Ended::Stopped(_) => return Err(BenchError::InterruptedEarly),
            };
            let stopped = stopped.clone();
            let mut bench = Bench {
                site,
                request,
                server,
                volatile: None,
                stopped,
                failed: Vec::new(),
                has_judged: false,
            };
            let result = Box::pin(caught(bench.work(missing, observer))).await;
            observer.putting_back();
            Box::pin(bench.finish(result, observer)).await
        };
        told_to_stop(interrupt, &stop, Box::pin(work)).await
    })
}

struct Bench<'a> {
    site: &'a Site<'a>,
    request: &'a BenchRequest,
    server: BenchServer<'a>,
    /// The server in memory, if there is one.
    volatile: Option<BenchServer<'a>>,
    stopped: Stopped,
    failed: Vec<Variant>,
    /// Whether a judged trial is complete.
    has_judged: bool,
}

/// Result of a trial.
enum TrialResult {
    Done(Figures, Active, Option<Box<Outcome>>),
    Failed { how: String, output: String },
}

impl<'a> Bench<'a> {
    async fn work(
        &mut self,
        missing: Vec<Missing>,
        observer: &mut dyn BenchObserver,
    ) -> Result<(), BenchError> {
        let plan = self.unless_stopped(async |bench| bench.plan(missing, observer).await).await?;
        observer.planned(&plan);
        let trials = plan.trials();
        let in_order = plan
            .rounds
            .iter()
            .enumerate()
            .flat_map(|(round, cells)| cells.iter().map(move |cell| (round, cell)));
        for (index, (round, cell)) in in_order.enumerate() {
            let (number, cell) = (index + 1, plan.cells[*cell]);
            if self.failed.contains(&cell.variant) {
                continue;
            }
            observer.begins(number, trials, cell);
            match self.trial(number, cell).await {
                Ok(TrialResult::Done(figures, active, outcome)) => {
                    let is_judged = round > 0 || !self.request.warm_up;
                    self.has_judged |= is_judged;
                    observer.done(&Done { cell, number, is_judged, figures, active, outcome });
                }
                Ok(TrialResult::Failed { how, output }) => self.fail(cell.variant, how, output, observer)?,
                Err(error) if error.is_interrupt() || cell.variant == Variant::NORMAL => return Err(error),
                // The next normal trial finds out whether it is the server.
                Err(error) => self.fail(cell.variant, error.to_string(), String::new(), observer)?,
            }
        }
        Ok(())
    }

    /// Removes a variant that fails. If it is the normal one, the bench ends.
    fn fail(
        &mut self,
        variant: Variant,
        how: String,
        output: String,
        observer: &mut dyn BenchObserver,
    ) -> Result<(), BenchError> {
        observer.failed(&Failure { variant, how: how.clone(), output });
        self.failed.push(variant);
        if variant == Variant::NORMAL { Err(BenchError::NormalFailed { how }) } else { Ok(()) }
    }

    /// Makes templates and servers that trials need, and so finds out which variants are possible.
    async fn plan(
        &mut self,
        mut missing: Vec<Missing>,
        observer: &mut dyn BenchObserver,
    ) -> Result<BenchPlan, BenchError> {
        let normal = self.server.normal().clone();
        if let Some(name) = normal.off() {
            let why = format!(
                "the server already runs with {name} = off, so variant normal is not durable: turn {name} on first"
            );
            missing.push(Missing { means: Means::Dangerous, why });
        }
        let wanted = choose(self.request, &missing)?;
        if !matches!(self.request.content, Content::Empty) {
            observer.stage("making a template, and measuring its size");
        }
        let template_size = self.server.make_template().await?;
        if wanted.has(Means::Tmpfs)
            && let Err(why) = self.start_in_memory(template_size, observer).await?
        {
            missing.push(Missing { means: Means::Tmpfs, why });
        }
        if wanted.has(Means::Unlogged)
            && let Err(why) = self.make_unlogged(observer).await?
        {
            missing.push(Missing { means: Means::Unlogged, why });
        }
        let choice = choose(self.request, &missing)?;
        let mut copying = None;
        if choice.has(Means::Template) {
            observer.stage("measuring each way to copy the template");
            copying = self.server.measure_copying().await?.cloned();
            if let Some(server) = &mut self.volatile {
                server.measure_copying().await?;
            }
        }
        if choice.has(Means::Dangerous) {
            self.server.allow_danger(self.site.place.clone(), self.site.journals).await?;
        }
        let clients = match &self.request.work {
            Work::Command(..) => vec![None],
            Work::Tps(_, clients) => clients.iter().map(|clients| Some(*clients)).collect(),
        };
        let cells: Vec<Cell> = choice
            .variants
            .iter()
            .flat_map(|variant| clients.iter().map(|clients| Cell { variant: *variant, clients: *clients }))
            .collect();
        let warm_up = self.request.warm_up;
        let count = self.request.trials + usize::from(warm_up);
        let rounds = rounds(cells.len(), count, self.request.seed);
        Ok(BenchPlan { choice, cells, rounds, warm_up, copying, template_size, normal })
    }

    /// Starts the server in memory, or returns why that is not possible.
    async fn start_in_memory(
        &mut self,
        template_size: u64,
        observer: &mut dyn BenchObserver,
    ) -> Result<Result<(), String>, BenchError> {
        let Ok(tmpfs) = self.site.tmpfs else { return Ok(Ok(())) };
        observer.stage("starting a server with its data in memory");
        let started = tokio::task::block_in_place(|| tmpfs.start(template_size));
        let Volatile { target, journals } = match started {
            Ok(volatile) => volatile,
            Err(why) => return Ok(Err(why)),
        };
        let mut server = BenchServer::begin(&target, &self.request.content, &self.stopped).await?;
        server.make_template().await?;
        server.allow_danger(ServerRef::Own("testdb-bench".to_owned()), &journals).await?;
        self.volatile = Some(server);
        Ok(Ok(()))
    }

    /// Makes unlogged templates, or returns why that is not possible.
    async fn make_unlogged(
        &mut self,
        observer: &mut dyn BenchObserver,
    ) -> Result<Result<(), String>, BenchError> {
        observer.stage("making an unlogged template");
        let dump = dump(&self.site.place, self.site.target.dbname());
        let made = self.server.make_unlogged_template(&dump).await?;
        match &mut self.volatile {
            Some(server) if made.is_ok() => server.make_unlogged_template(&dump).await,
            _ => Ok(made),
        }
    }

    /// Makes the database, measures, and drops it.
    async fn trial(&mut self, number: usize, cell: Cell) -> Result<TrialResult, BenchError> {
        let result = self.on_a_database(number, cell).await;
        let interrupted = matches!(&result, Err(error) if error.is_interrupt());
        // In the end all are dropped together.
        if !interrupted {
            let server = self.server_of(cell.variant);
            // DROP DATABASE is a checkpoint of the whole cluster, which without fsync forgets to sync other databases.
            if cell.variant.has(Means::Dangerous) {
                server.set(Variant::NORMAL).await?;
            }
            server.drop(number).await?;
        }
        result
    }

    async fn on_a_database(&mut self, number: usize, cell: Cell) -> Result<TrialResult, BenchError> {
        let variant = cell.variant;
        let (target, prepare, active) = self
            .unless_stopped(async |bench| {
                let server = bench.server_of(variant);
                server.set(variant).await?;
                let (target, prepare) = server.make(variant, number).await?;
                let active = server.assert(variant, &target).await?;
                Ok((target, prepare, active))
            })
            .await?;
        let done = |work, outcome| TrialResult::Done(Figures { prepare, work }, active, outcome);
        match &self.request.work {
            Work::Command(command, output) => {
                match self.command(command, output, &target, number, cell).await? {
                    Ended::Well(seconds) => Ok(done(seconds, None)),
                    Ended::Badly { how, output } => Ok(TrialResult::Failed { how, output }),
                }
            }
            Work::Tps(base, _) => {
                let outcome = self.transactions(base, &target, cell).await?;
                let lost = outcome.lost.first().map(|lost| lost.why.clone());
                match (outcome.end, lost) {
                    (End::Interrupted, _) => Err(BenchError::Interrupted),
                    (End::Complete, None) => {
                        let seconds =
                            outcome.elapsed.as_secs_f64() / outcome.all.counts.succeeded.max(1) as f64;
                        Ok(done(seconds, Some(Box::new(outcome))))
                    }
                    (_, why) => {
                        let how = why.unwrap_or_else(|| "clients were lost".to_owned());
                        Ok(TrialResult::Failed { how, output: String::new() })
                    }
                }
            }
        }
    }

    async fn command(
        &self,
        command: &TestCommand,
        output: &Output,
        target: &Target,
        number: usize,
        cell: Cell,
    ) -> Result<Ended, BenchError> {
        let log = |error| BenchError::Log { path: output.path.clone(), error };
        output.title(&format!("trial {number}, {cell}, database {}", target.dbname())).map_err(log)?;
        let mut run = command.start(target, output).map_err(BenchError::Command)?;
        if let Some(ended) = self.stopped.unless_told(run.wait()).await {
            return ended.map_err(BenchError::Command);
        }
        run.end().await;
        Err(BenchError::Interrupted)
    }

    async fn transactions(&self, base: &Request, target: &Target, cell: Cell) -> Result<Outcome, BenchError> {
        let clients = cell.clients.unwrap_or(base.clients);
        let request = Request { clients, jobs: base.jobs.min(clients), ..base.clone() };
        let connection = target.connect().await?;
        let plan = match Plan::new(&connection, request).await {
            Err(error @ (TpsError::NoTables { .. } | TpsError::Empty)) => return Err(self.no_tables(error)),
            plan => plan?,
        };
        plan.prepare(&connection).await?;
        connection.close().await;
        let interrupt = Box::pin(self.stopped.told());
        match tps::run(std::slice::from_ref(target), &plan, &Unwatched, interrupt).await {
            Err(TpsError::Interrupted) => Err(BenchError::Interrupted),
            outcome => Ok(outcome?),
        }
    }

    /// Replaces the name of the trial's database by that of its source: the database will be
    /// dropped in a moment.
    fn no_tables(&self, error: TpsError) -> BenchError {
        match (&self.request.content, error) {
            (Content::Database(name), TpsError::NoTables { .. }) => {
                TpsError::NoTables { database: name.clone() }.into()
            }
            (Content::Database(_), error) => error.into(),
            (Content::Script(source), _) => BenchError::NoTables { content: source.to_string() },
            (Content::Empty, _) => BenchError::NoTables { content: "an empty database".to_owned() },
        }
    }

    fn server_of(&self, variant: Variant) -> &BenchServer<'a> {
        self.volatile.as_ref().filter(|_| variant.has(Means::Tmpfs)).unwrap_or(&self.server)
    }

    /// Does work that may be interrupted. Statements of interrupted work are ended before
    /// everything is restored.
    async fn unless_stopped<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let stopped = self.stopped.clone();
        stopped.unless_told(work(self)).await.unwrap_or(Err(BenchError::Interrupted))
    }

    /// Restores everything. The caller destroys a server in memory that it has started.
    async fn finish(
        self,
        result: Result<(), BenchError>,
        observer: &mut dyn BenchObserver,
    ) -> Result<(), BenchError> {
        let result = match result {
            Err(BenchError::Interrupted) if !self.has_judged => Err(BenchError::InterruptedEarly),
            result => result,
        };
        let record = self.server.record().map(Box::new);
        match self.server.finish().await {
            Ok(wants_sync) => {
                if wants_sync {
                    observer.wants_sync();
                }
                result
            }
            Err(error) => Err(BenchError::NotPutBack {
                error: Box::new(error),
                record,
                ended: result.err().map(Box::new),
            }),
        }
    }
}

struct Unwatched;

impl tps::Observer for Unwatched {
    fn second(&self, _second: &Second) {}
}
