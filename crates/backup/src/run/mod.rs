//! The rehearsal: rounds, in each of which every way is backed up, restored and verified.

pub(crate) mod base;
pub(crate) mod dump;
mod extensions;
mod files;
mod fill;
mod held;
mod hidden;
pub(crate) mod incremental;
mod instances;
mod large;
mod locked;
mod logins;
mod lost;
mod memberships;
mod network;
mod only;
mod others;
mod parts;
pub(crate) mod pitr;
mod point;
mod postmaster;
mod probe;
mod readiness;
mod receiver;
mod recovery;
mod relay;
mod replay;
mod room;
pub(crate) mod scratch;
mod sequences;
mod sized;
pub(crate) mod source;
pub(crate) mod step;
pub(crate) mod tablespaces;
pub(crate) mod tool;
mod tool_recovery;
mod transactions;
pub(crate) mod verify;
mod wal;

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use connect::Target;
use measure::Environment;
use pgserver::Home;
use server::Session;
use server::interruption::{Ended, until_stopped};

use crate::beside::Beside;
use crate::error::{BackupError, OnPath};
use crate::held::Held;
use crate::load::WalOfLoad;
use crate::outcome::{DataSize, Increment, Outcome, Recovery, Trial};
use crate::plan::Plan;
use crate::programs::Programs;
use crate::request::Request;
use crate::verified::Verified;
use crate::way::{Format, Way};
use extensions::Lacks;
use files::{move_files, remove};
use lost::Cause;
use others::Others;
use probe::Prober;
use room::ServerSpace;
use scratch::Scratch;
use source::{Facts, Source};
use step::{Measured, STUCK, Trouble, Watch};

pub use readiness::Readiness;
pub(crate) use sized::bytes_of_tables;
pub use sized::{SizesSite, plan_sizes, rehearse_sizes};

/// Room for small files and for WAL that a restore writes, bytes.
pub(crate) const SMALL: u64 = 64 << 20;
pub(crate) const WAL: u64 = 1 << 30;
/// Bytes that take about as long as the fixed part of a trial.
const FIXED: f64 = 20e6;
/// The CPU time of the server is missing; the reason follows.
const NO_SERVER_CPU: &str = "the CPU time of the server during the backups is not known";
/// The stage in which servers are started.
pub(crate) const STARTING: &str =
    "starting a scratch server (if PostgreSQL is not installed, pgrig first downloads it)";

/// Where the rehearsal takes place.
pub struct Site<'a> {
    /// The database. Only read.
    pub target: &'a Target,
    /// `server_version_num` of its server.
    pub version_num: u32,
    /// The home below which scratch servers and backups are.
    pub home: &'a Home,
    /// Directory of the programs of the scratch servers; none for those of `bin`, or for downloaded ones.
    pub pg_bin: Option<PathBuf>,
    /// The server's data directory, if it is on this machine.
    pub data: Option<PathBuf>,
    /// Whether it is pgrig's own server, used by nobody else.
    pub own: bool,
    /// Processors of this machine.
    pub cores: u16,
}

/// Hears of progress.
pub trait Observer {
    /// The plan, before anything is started.
    fn planned(&mut self, plan: &Plan);
    /// A server with data that pgrig makes was surveyed.
    fn surveyed(&mut self, _environment: &Environment) {}
    /// A stage of the preparation begins; the text names it.
    fn stage(&mut self, text: &str);
    /// A step of the stage begins; the text names it.
    fn step(&mut self, _text: &str) {}
    /// A trial begins, on data of this size if there are several.
    fn begins(&mut self, way: &Way, round: u32, at: Option<DataSize>);
    /// A trial is done, and this time is left.
    fn done(&mut self, trial: &Trial, left: Duration);
    /// The bytes of one more backup were counted. The trial, which was done before, has them now.
    fn counted(&mut self, _trial: &Trial) {}
    /// The WAL of the load was measured.
    fn measured(&mut self, _wal: &WalOfLoad) {}
    /// The row versions that the snapshot of a dump keeps under the load were measured.
    fn held(&mut self, _held: &Held) {}
    /// A way is not tried again, because a server is lost. It keeps so many trials.
    fn cut_short(&mut self, _way: &Way, _trials: usize, _why: &str) {}
    /// A way has failed and is not tried again.
    fn failed(&mut self, way: &Way, why: &str);
}

/// Makes the plan. Reads only catalogs.
///
/// # Errors
/// If the database cannot be read, or no way is possible.
pub async fn plan(site: &Site<'_>, request: &Request) -> Result<Plan, BackupError> {
    Ok(prepare(site, request).await?.plan)
}

/// All that is known before anything is started.
struct Prepared {
    /// The server to which pgrig has connected, for the whole rehearsal.
    target: Target,
    facts: Facts,
    plan: Plan,
    /// Process id of the server, or the reason why it is not known.
    server: Result<u32, &'static str>,
    space: Option<ServerSpace>,
}

async fn prepare(site: &Site<'_>, request: &Request) -> Result<Prepared, BackupError> {
    let session = Session::open(site.target).await?;
    let target = site.target.pinned_to(session.connection.address());
    let mut facts = Facts::of(&session, site.version_num).await?;
    facts.data.clone_from(&site.data);
    let (target, note) = logins::avoided(&session, target, facts.major).await?;
    facts.logins = note;
    let server = postmaster::find(&session, site.data.as_deref()).await?;
    let space = match &site.data {
        Some(data) => ServerSpace::of(&session, data, site.own).await?,
        None => None,
    };
    session.close().await;
    let programs = Programs::find(request.bin.as_deref(), facts.major)?;
    let may_need_replication = request.ways.is_empty() || request.ways.iter().any(Way::is_base);
    if may_need_replication && facts.no_base_backup().is_none() {
        facts.refused_replication = base::refused_replication(&programs, &target).await?;
    }
    let plan = Plan::new(&facts, programs, (request, None), site.cores).possible()?;
    Ok(Prepared { target, facts, plan, server, space })
}

/// Backs up, restores and verifies. Whatever happens, it removes backups and scratch servers.
///
/// # Errors
/// If the rehearsal cannot go on; a way that fails is no error.
pub async fn rehearse(
    site: &Site<'_>,
    request: &Request,
    observer: &mut impl Observer,
    interrupt: impl Future<Output = ()>,
) -> Result<Outcome, BackupError> {
    let stop = AtomicBool::new(false);
    let Prepared { target, facts, plan, server: process, space } = prepare(site, request).await?;
    observer.planned(&plan);
    let server = site.pg_bin.as_deref().or(plan.programs.server(facts.major));
    let mut scratch = Scratch::new(site.home, server, &facts, &[], (0, &[]))?;
    let ended = {
        let work = async {
            observer.stage(STARTING);
            scratch.start(space.as_ref()).await?;
            let lacks = scratch.create_roles(&facts).await?;
            if let Some(lacks) = lacks.as_ref().filter(|_| plan.ways.iter().all(Way::is_dump)) {
                return Err(lacks.of_dumps());
            }
            let has_no_dump = lacks.is_some() || plan.ways.iter().all(Way::is_base);
            let has_other_locale = Cell::new(false);
            let run = Run {
                plan: &plan,
                scratch: &scratch,
                stop: &stop,
                has_other_locale,
                lacks,
                changes: None,
                prober: None,
                space,
                others: RefCell::default(),
                loads: Cell::new(0),
            };
            observer.stage("reading all tables, to compare their hashes with those of the restored tables");
            let source = Source::read(&target).await?;
            if has_no_dump {
                // No dump needs the snapshot, and its session has locks on all tables.
                source.release().await?;
            }
            let subject = Subject { target: target.clone(), facts, source, server: process.ok(), at: None };
            let (prober, note) = Prober::if_asked(request, &target).await?;
            let run = Run { prober, ..run };
            let mut outcome = run.rounds(std::slice::from_ref(&subject), observer).await;
            if let Ok(outcome) = &mut outcome {
                outcome.notes.extend(note);
                outcome.notes.extend(subject.facts.logins.clone());
                outcome.notes.extend(process.err().map(|why| format!("{NO_SERVER_CPU}: {why}")));
            }
            subject.source.close().await;
            outcome
        };
        let mut work = Box::pin(work);
        until_stopped(&target, interrupt, work.as_mut(), || stop.store(true, Ordering::Relaxed)).await
    };
    result(ended, scratch).await
}

/// The result of the work, once everything is removed.
async fn result(
    ended: Ended<Result<Outcome, BackupError>>,
    scratch: Scratch,
) -> Result<Outcome, BackupError> {
    let removed = tokio::task::spawn_blocking(|| scratch.end()).await;
    let removed = removed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    match ended {
        Ended::Done(Ok(outcome)) => removed.map(|()| outcome),
        Ended::Done(Err(error)) => Err(error),
        Ended::Stopped(_) => removed.and(Err(BackupError::Interrupted)),
    }
}

/// A database that is rehearsed.
struct Subject {
    target: Target,
    facts: Facts,
    source: Source,
    /// Process id of its server; none if that is not known.
    server: Option<u32>,
    /// Its size, if there are several.
    at: Option<DataSize>,
}

impl Subject {
    /// The time of a trial, in units that are the same for all subjects.
    fn weight(&self) -> f64 {
        self.at.map_or(1.0, |at| at.bytes as f64 + FIXED)
    }

    /// Size of all databases of its server, now that its tables have so many bytes.
    fn server_bytes(&self, tables: u64) -> u64 {
        self.facts.server_bytes + self.at.map_or(0, |at| tables.saturating_sub(at.bytes))
    }

    /// This directory, and the server's data directory, which may be on another volume.
    fn with_data<'a>(&'a self, directory: &'a Path) -> Vec<&'a Path> {
        std::iter::once(directory).chain(self.facts.data.as_deref()).collect()
    }
}

struct Run<'a> {
    plan: &'a Plan,
    scratch: &'a Scratch,
    stop: &'a AtomicBool,
    /// Whether the scratch server lacks the database's locale.
    has_other_locale: Cell<bool>,
    /// Extensions of the database that the scratch server lacks.
    lacks: Option<Lacks>,
    /// Share of all rows that pgrig updates before an incremental backup; none if it only reads the database.
    changes: Option<f64>,
    /// Lookups beside the backups.
    prober: Option<Prober>,
    /// The server that is backed up, if it may write to the same disks, and was not started for the rehearsal.
    space: Option<ServerSpace>,
    /// The other databases of restored servers.
    others: RefCell<Others>,
    /// Loads that were put on a server so far.
    loads: Cell<u64>,
}

/// A backup that was restored, before it is a trial.
struct Restored {
    backup: Measured,
    restore: Measured,
    size: u64,
    verified: Verified,
    increment: Option<Increment>,
    recovery: Option<Recovery>,
    beside: Option<Beside>,
}

impl Run<'_> {
    async fn rounds(
        &self,
        subjects: &[Subject],
        observer: &mut impl Observer,
    ) -> Result<Outcome, BackupError> {
        let mut outcome = Outcome::default();
        self.refuse_dumps(&mut outcome, observer);
        let (mut spent, mut weight) = (Duration::ZERO, 0.0);
        let all = self.schedule(subjects);
        // Trials that change the data come last. The dumps whose bytes are counted need the snapshot.
        let that_only_read = all.iter().filter(|(_, _, way)| !self.changes_data(way)).count();
        for (number, (round, subject, way)) in all.iter().enumerate() {
            if number == that_only_read {
                Box::pin(self.count_network(subjects, false, &mut outcome, observer)).await?;
            }
            if !outcome.goes_on(way) {
                continue;
            }
            observer.begins(way, round + 1, subject.at);
            let began = Instant::now();
            let tried = self.trial(way, subject).await;
            if self.stop.load(Ordering::Relaxed) {
                return Err(BackupError::Interrupted);
            }
            let cause = match tried {
                Ok(trial) => {
                    outcome.trials.push(trial);
                    (spent, weight) = (spent + began.elapsed(), weight + subject.weight());
                    let left = all[number + 1..].iter().filter(|(_, _, way)| outcome.goes_on(way));
                    let left: f64 = left.map(|(_, subject, _)| subject.weight()).sum();
                    observer.done(&outcome.trials[outcome.trials.len() - 1], spent.mul_f64(left / weight));
                    continue;
                }
                Err(trouble) => subject.cause(trouble).await?,
            };
            match cause {
                Cause::Way(why) => {
                    observer.failed(way, &why);
                    outcome.trials.retain(|trial| trial.way != **way);
                    outcome.failed.push(((*way).clone(), why));
                }
                Cause::Original(why) => lost::keep(way, &why, &mut outcome, observer),
                Cause::Server(why) => {
                    let left = all[number..].iter().map(|(_, _, way)| *way);
                    lost::keep_all(left, &why, &mut outcome, observer);
                    break;
                }
                Cause::Run(error) if outcome.trials.is_empty() => return Err(error),
                Cause::Run(error) => {
                    let left = all[number..].iter().map(|(_, _, way)| *way);
                    lost::keep_all(left, &error.to_string(), &mut outcome, observer);
                    break;
                }
            }
        }
        if that_only_read == all.len() {
            Box::pin(self.count_network(subjects, false, &mut outcome, observer)).await?;
        }
        Box::pin(self.count_network(subjects, true, &mut outcome, observer)).await?;
        outcome.notes.extend(incremental::note(&outcome.trials));
        outcome.notes.extend(point::note(&outcome.trials));
        outcome.notes.extend(self.others.take().notes);
        outcome.notes.extend(subjects.first().into_iter().flat_map(|subject| subject.source.content.notes()));
        if self.has_other_locale.get()
            && let Some(subject) = subjects.first()
        {
            outcome.notes.push(format!(
                "the scratch server does not have the locale {}, so pgrig restored dumps with locale C, in which the server builds indexes of text faster. For exact times, install the locale on this machine",
                subject.facts.collate
            ));
        }
        Ok(outcome)
    }

    /// All trials in order. Each way of each subject begins a round once, so that none is always the first.
    fn schedule<'s>(&'s self, subjects: &'s [Subject]) -> Vec<(u32, &'s Subject, &'s Way)> {
        let ways = &self.plan.ways;
        let pairs: Vec<(&Subject, &Way)> =
            subjects.iter().flat_map(|subject| ways.iter().map(move |way| (subject, way))).collect();
        let in_round = |round: u32| {
            let first = round as usize % pairs.len().max(1);
            let pairs = pairs[first..].iter().chain(&pairs[..first]);
            pairs.map(|(subject, way)| (round, *subject, *way)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = (0..self.plan.trials).flat_map(in_round).collect();
        // After these changes, there is no snapshot to dump.
        all.sort_by_key(|(_, _, way)| self.changes_data(way));
        all
    }

    /// Whether a trial of the way changes the database: only if pgrig has made it.
    fn changes_data(&self, way: &Way) -> bool {
        self.changes.is_some() && way.changes_data()
    }

    async fn trial(&self, way: &Way, subject: &Subject) -> Result<Trial, Trouble> {
        let file = self.backup_path();
        if way.is_dump() {
            self.scratch.revive().await?;
        }
        self.write_out().await?;
        let tried = match way.format {
            Format::Plain | Format::Custom | Format::Directory => self.dump(way, subject, &file).await,
            Format::Base | Format::BaseTar => self.base(way, subject, &file).await,
            Format::Incremental => self.incremental(way, subject, &file).await,
            Format::Pitr => self.pitr(way, subject, &file).await,
            Format::Tool if way.recovers() => self.tool_to_point(way, subject, &file).await,
            Format::Tool => self.tool(way, subject, &file).await,
        };
        tablespaces::remove_with(&file)?;
        if tried.is_err() && !self.is_stopped() {
            // The next trial meets the same error, if there is one.
            let _ = self.scratch.clear().await;
        }
        let Restored { backup, restore, size, verified, increment, recovery, beside } = tried?;
        Ok(Trial {
            way: way.clone(),
            backup: backup.seconds,
            restore: restore.seconds,
            backup_cpu: backup.cpu,
            restore_cpu: restore.cpu,
            backup_server_cpu: backup.server_cpu,
            restore_server_cpu: restore.server_cpu,
            size,
            peak_disk: backup.peak.max(restore.peak),
            verified,
            beside,
            at: subject.at,
            increment,
            recovery,
            network: None,
        })
    }

    /// The file or directory of the backup, of which there is one at a time.
    fn backup_path(&self) -> PathBuf {
        self.scratch.work.join("backup")
    }

    /// Writes to disk the blocks that earlier trials left in memory: this one's first fsync could wait for it.
    async fn write_out(&self) -> Result<(), BackupError> {
        let work = self.scratch.work.clone();
        let written = tokio::task::spawn_blocking(move || server::volume::write_out(&work)).await;
        written.map_err(io::Error::other).flatten().on("write files to disk in", &self.scratch.work)
    }

    fn watch<'a>(&'a self, doing: String, directories: Vec<&'a Path>, stuck: Option<Duration>) -> Watch<'a> {
        let log = self.scratch.work.join("messages");
        let space = self.space.as_ref();
        Watch { doing, directories, log, stop: self.stop, stuck, server: None, space }
    }

    /// The limits of a backup of this database.
    fn watch_backup(&self, way: &Way, subject: &Subject) -> Watch<'_> {
        let watch = self.watch(format!("the backup by {way}"), vec![&self.scratch.work], Some(STUCK));
        Watch { server: subject.server, ..watch }
    }

    /// Whether the user wants the run to end.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn of_restore(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Way(why) => Trouble::Way(format!("its restore failed: {why}")),
        run @ Trouble::Run(_) => run,
    }
}
