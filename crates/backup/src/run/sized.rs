//! The rehearsal at three sizes of data that pgrig makes, and the forecast for the size of the user.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use connect::{ConnectError, Target};
use measure::forecast::Memory;
use pgserver::{Binaries, Home, Major};
use server::interruption::until_stopped_alone;
use server::{DataDirectory, Session};

use super::scratch::{SIZES, Scratch};
use super::source::{Facts, Source};
use super::step::{Trouble, Watch};
use super::{Observer, Run, SMALL, STARTING, Subject, WAL, incremental, lost, result, transactions, wal};
use crate::error::BackupError;
use crate::forecast::{Asked, Conditions, forecast};
use crate::held::Held;
use crate::load::{Load, WalOfLoad, spread};
use crate::outcome::{DataSize, Outcome, Trial};
use crate::plan::Plan;
use crate::programs::Programs;
use crate::request::SizesRequest;

/// The largest of the measured sizes is at least this: below it, the fixed part of each cost hides the rest.
const LEAST: u64 = 10_000_000;

/// The place of the servers with data that pgrig makes.
pub struct SizesSite<'a> {
    /// The home below which servers and backups are.
    pub home: &'a Home,
    /// Directory of the programs of the servers; none for those beside the client programs, or for downloaded ones.
    pub pg_bin: Option<PathBuf>,
    /// Major version of the servers; none for the newest that the client programs can read.
    pub major: Option<u16>,
    /// Settings of all servers.
    pub set: &'a [(String, String)],
    /// Processors of this machine.
    pub cores: u16,
    /// Version of pgrig.
    pub pgrig: &'a str,
}

/// Makes the plan. Starts nothing.
///
/// # Errors
/// If no way is possible, or the sizes are too small.
pub fn plan_sizes(site: &SizesSite, asked: &SizesRequest) -> Result<Plan, BackupError> {
    Ok(prepare(site, asked)?.1)
}

fn prepare(site: &SizesSite, asked: &SizesRequest) -> Result<(Facts, Plan), BackupError> {
    let largest = asked.up_to.min(asked.size);
    if largest < LEAST {
        return Err(BackupError::TooSmall { size: asked.size, up_to: asked.up_to, least: LEAST });
    }
    let given = match &site.pg_bin {
        Some(dir) => Some(Binaries::installed(dir)?.version().major()),
        None => site.major,
    };
    let option = if site.pg_bin.is_some() { "--pg-bin" } else { "--pg-version" };
    let programs = Programs::find(asked.request.bin.as_deref(), given.unwrap_or_default())
        .map_err(|error| error.of_forecast(option))?;
    let newest = Major::all().map(Major::number).max().unwrap_or_default();
    let major = given.unwrap_or(programs.major.min(newest));
    let facts = Facts::of_scratch(major, &asked.shape.origin, largest);
    let plan = Plan::new(&facts, programs, (&asked.request, asked.load.as_ref()), site.cores).possible()?;
    let plan = plan.at_sizes(asked, &facts);
    Ok((facts, plan))
}

/// Fills databases of three sizes on servers of its own, backs up, restores and verifies each, and makes the forecasts. Whatever happens,
/// it removes backups and servers.
///
/// # Errors
/// If the rehearsal cannot go on; a way that fails is no error.
pub async fn rehearse_sizes(
    site: &SizesSite<'_>,
    asked: &SizesRequest,
    observer: &mut impl Observer,
    interrupt: impl Future<Output = ()>,
) -> Result<Outcome, BackupError> {
    let stop = AtomicBool::new(false);
    let (facts, plan) = prepare(site, asked)?;
    observer.planned(&plan);
    let server = site.pg_bin.as_deref().or(plan.programs.server(facts.major));
    let more: &[_] = if incremental::is_in(&plan.ways) { &[("summarize_wal", "on")] } else { &[] };
    let mut scratch = Scratch::new(site.home, server, &facts, site.set, (SIZES, more))?;
    let ended = {
        let mut work = Box::pin(work(site, asked, &plan, &mut scratch, &stop, observer));
        until_stopped_alone(interrupt, work.as_mut(), || stop.store(true, Ordering::Relaxed)).await
    };
    result(ended, scratch).await
}

async fn work(
    site: &SizesSite<'_>,
    asked: &SizesRequest,
    plan: &Plan,
    scratch: &mut Scratch,
    stop: &AtomicBool,
    observer: &mut impl Observer,
) -> Result<Outcome, BackupError> {
    observer.stage(STARTING);
    scratch.start(None).await?;
    let mut memory = memory(&scratch.target("postgres")).await?;
    let sizes = plan.sizes.as_ref().map_or(&[][..], |sizes| &sizes.measured);
    check_room(scratch, sizes, stop)?;
    let mut subjects = Vec::new();
    for (number, bytes) in sizes.iter().enumerate() {
        let of = asked.shape.origin.as_str();
        observer.stage(&format!("filling {} with {of}", measure::human::bytes(*bytes)));
        let target = scratch.start_filled(number).await?;
        let directory = DataDirectory::Own(scratch.filled_data_dir(number));
        let told = RefCell::new(&mut *observer);
        let steps = |text: &str| told.borrow_mut().step(text);
        let data = (&asked.shape, *bytes);
        let survey = super::fill::fill(&target, &directory, site.pgrig, data, stop, &steps).await?;
        memory.machine = survey.site.memory.unwrap_or_default();
        observer.surveyed(&survey.environment);
        let is_largest = number + 1 == sizes.len();
        if let Some(load) = plan.load.as_ref().filter(|_| number == 0) {
            observer.stage("trying each script of the load");
            Box::pin(transactions::try_once(load, &target, stop)).await?;
        }
        observer.step("reading all tables, to compare their hashes with those of the restored tables");
        let (data, server) = (scratch.filled_data_dir(number), scratch.filled_server_pid(number));
        subjects.push(subject((target, data, server), *bytes, is_largest).await?);
    }
    let Some(largest) = subjects.last() else { return Ok(Outcome::default()) };
    if let Some(lacks) = scratch.create_roles(&largest.facts).await? {
        return Err(lacks.of_dumps());
    }
    let content = &largest.source.content;
    let sorted = if content.valid.is_empty() { 0 } else { content.most_rows() };
    let changes = Some(asked.changes);
    let (has_other_locale, others) = (Cell::new(false), RefCell::default());
    let run = Run {
        plan,
        scratch,
        stop,
        has_other_locale,
        lacks: None,
        changes,
        prober: None,
        space: None,
        others,
        loads: Cell::new(0),
    };
    let mut outcome = run.rounds(&subjects, observer).await?;
    let measured = run.under_load(largest, &mut outcome, observer).await;
    lost::keep_trials(measured, &mut outcome)?;
    add_forecasts(&mut outcome, plan, asked, Conditions { memory, sorted });
    for subject in subjects {
        subject.source.close().await;
    }
    Ok(outcome)
}

/// Adds the forecasts of the ways that were measured at each size, and names those that were measured only at some.
fn add_forecasts(outcome: &mut Outcome, plan: &Plan, asked: &SizesRequest, conditions: Conditions) {
    let wal = spread(outcome.wal.iter().map(WalOfLoad::per_day).collect());
    let held = spread(outcome.held.iter().map(Held::per_hour).collect());
    let question = Asked { bytes: asked.size, price: asked.price, rto: asked.rto, wal, held };
    let sizes = plan.sizes.as_ref().map_or(&[][..], |sizes| &sizes.measured);
    let mut partial: Vec<String> = Vec::new();
    for way in &plan.ways {
        let trials: Vec<&Trial> = outcome.trials.iter().filter(|trial| trial.way == *way).collect();
        let is_measured =
            |bytes: &u64| trials.iter().any(|trial| trial.at.is_some_and(|at| at.asked == *bytes));
        if sizes.iter().all(is_measured) {
            outcome.forecasts.extend(forecast(way, &trials, question, conditions));
        } else if !trials.is_empty() {
            partial.push(way.to_string());
        }
    }
    if !partial.is_empty() {
        outcome.unmeasured.push(format!(
            "there is no forecast for {}, because pgrig did not measure all sizes",
            partial.join(", ")
        ));
    }
}

impl Run<'_> {
    /// Measures under the load, if there is one, unless a server is lost.
    async fn under_load(
        &self,
        subject: &Subject,
        outcome: &mut Outcome,
        observer: &mut impl Observer,
    ) -> Result<(), BackupError> {
        if !outcome.is_lost {
            self.load(subject, outcome, observer).await?;
            return self.held(subject, outcome, observer).await;
        }
        if self.plan.load.is_some() {
            let text = "pgrig did not measure the load, because the trials ended early";
            outcome.unmeasured.push(text.to_owned());
        }
        Ok(())
    }

    /// Measures the WAL of the load, if there is one, on the largest database. A failure is a note: the trials have their results.
    async fn load(
        &self,
        subject: &Subject,
        outcome: &mut Outcome,
        observer: &mut impl Observer,
    ) -> Result<(), BackupError> {
        let Some(load) = &self.plan.load else { return Ok(()) };
        for number in 1..=self.plan.trials {
            observer.stage(&format!("measuring the WAL of the load, {number} of {}", self.plan.trials));
            let measured = self.measure_wal(load, subject).await;
            match self.of_load(load, subject, measured).await? {
                Ok(wal) => {
                    observer.measured(&wal);
                    outcome.wal.push(wal);
                }
                Err(why) => {
                    outcome.notes.push(format!("pgrig could not measure the WAL of the load: {why}"));
                    break;
                }
            }
        }
        outcome.notes.extend(wal::notes(load, &outcome.wal, checkpoint_timeout(&subject.target).await?));
        Ok(())
    }

    /// The result of a measurement under the load, or the reason why there is none. The run ends if it was interrupted, or if the server
    /// is lost.
    pub(super) async fn of_load<T>(
        &self,
        load: &Load,
        subject: &Subject,
        measured: Result<T, Trouble>,
    ) -> Result<Result<T, String>, BackupError> {
        if self.is_stopped() {
            return Err(BackupError::Interrupted);
        }
        let error = match measured {
            Ok(measured) => return Ok(Ok(measured)),
            Err(trouble) => transactions::of_trouble(load, trouble),
        };
        match Session::open(&subject.target).await {
            Ok(session) => {
                session.close().await;
                Ok(Err(error.to_string()))
            }
            Err(_) => Err(error),
        }
    }
}

/// Seconds between two checkpoints.
async fn checkpoint_timeout(target: &Target) -> Result<f64, ConnectError> {
    let session = Session::open(target).await?;
    let query =
        "SELECT extract(epoch FROM current_setting('checkpoint_timeout')::interval)::float8 AS seconds";
    let seconds = session.row(query, &[]).await?.get("seconds");
    session.close().await;
    Ok(seconds)
}

/// Refuses to fill if the databases would not fit.
fn check_room(scratch: &Scratch, sizes: &[u64], stop: &AtomicBool) -> Result<(), BackupError> {
    let all: u64 = sizes.iter().map(|bytes| bytes + WAL.min(*bytes) + SMALL).sum();
    let log = scratch.work.join("messages");
    let doing = "filling databases of three sizes".to_owned();
    // The servers may be on another volume than the backups. One of them runs already.
    let watch = Watch { doing, directories: Vec::new(), log, stop, stuck: None, server: None, space: None };
    watch.check_room(&scratch.data_dir(), all)
}

/// A filled database.
async fn subject(
    (target, data, server): (Target, PathBuf, u32),
    asked: u64,
    is_largest: bool,
) -> Result<Subject, BackupError> {
    let session = Session::open(&target).await?;
    let version: i32 =
        session.row("SELECT current_setting('server_version_num')::int AS n", &[]).await?.get("n");
    let mut facts = Facts::of(&session, version.unsigned_abs()).await?;
    facts.data = Some(data);
    session.close().await;
    let bytes = bytes_of_tables(&target).await?;
    let source = Source::read(&target).await?;
    let at = DataSize { asked, bytes, rows: source.content.rows(), is_largest };
    Ok(Subject { target, facts, source, server: Some(server), at: Some(at) })
}

/// Bytes of all tables of a database with their indexes. Reads only catalogs and the sizes of files.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn bytes_of_tables(target: &Target) -> Result<u64, ConnectError> {
    let session = Session::open(target).await?;
    let bytes: i64 = session.row(include_str!("../sql/data.sql"), &[]).await?.get("bytes");
    session.close().await;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// The settings of a server on which the time of a restore depends.
pub(super) async fn memory(target: &Target) -> Result<Memory, ConnectError> {
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/memory.sql"), &[]).await?;
    session.close().await;
    let whole = |name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
    Ok(Memory {
        shared_buffers: whole("shared_buffers"),
        maintenance_work_mem: whole("maintenance_work_mem"),
        max_wal_size: whole("max_wal_size"),
        machine: 0,
    })
}
