//! The rehearsal: rounds, in each of which every way is backed up, restored and verified.

mod base;
mod dump;
mod scratch;
pub(crate) mod source;
mod step;
mod verify;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use pgserver::Home;
use server::Session;
use server::interruption::{Ended, until_stopped};

use crate::error::{BackupError, OnPath};
use crate::outcome::{Outcome, Trial, Verified, Witness};
use crate::plan::Plan;
use crate::programs::Programs;
use crate::request::Request;
use crate::way::Way;
use scratch::{RESTORED, Scratch};
use source::{Facts, Source};
use step::{Measured, STUCK, Trouble, Watch, size, used};

/// Room for small files and for WAL that a restore writes, bytes.
const SMALL: u64 = 64 << 20;
const WAL: u64 = 1 << 30;

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
    /// Processors of this machine.
    pub cores: u16,
}

/// Hears of progress.
pub trait Observer {
    /// The plan, before anything is started.
    fn planned(&mut self, plan: &Plan);
    /// A step of the preparation begins; the text names it.
    fn stage(&mut self, text: &str);
    /// A trial begins.
    fn begins(&mut self, way: &Way, round: u32);
    /// A trial is done, and this time is left.
    fn done(&mut self, trial: &Trial, left: Duration);
    /// A way has failed and is not tried again.
    fn failed(&mut self, way: &Way, why: &str);
}

/// Makes the plan. Reads only catalogs.
///
/// # Errors
/// If the database cannot be read, or no way is possible.
pub async fn plan(site: &Site<'_>, request: &Request) -> Result<Plan, BackupError> {
    Ok(prepare(site, request).await?.1)
}

/// The extent to which a rehearsal is possible.
#[derive(Debug)]
pub struct Readiness {
    /// The client programs of PATH or of the distribution; the error names the remedy.
    pub programs: Result<Programs, BackupError>,
    /// Why no base backup can be made, with the remedy.
    pub no_base_backup: Option<String>,
}

impl Readiness {
    /// That of a role and a server. Reads only catalogs.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn of(target: &Target, version_num: u32) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let facts = Facts::of(&session, version_num).await?;
        session.close().await;
        Ok(Self { programs: Programs::find(None, facts.major), no_base_backup: facts.no_base_backup() })
    }
}

async fn prepare(site: &Site<'_>, request: &Request) -> Result<(Facts, Plan), BackupError> {
    let session = Session::open(site.target).await?;
    let facts = Facts::of(&session, site.version_num).await?;
    session.close().await;
    let programs = Programs::find(request.bin.as_deref(), facts.major)?;
    let plan = Plan::new(&facts, programs, &request.ways, request.trials, site.cores);
    if plan.ways.is_empty() {
        return Err(BackupError::NoWay(
            plan.left_out.iter().map(|one| format!("{}: {}", one.way, one.why)).collect(),
        ));
    }
    Ok((facts, plan))
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
    let (facts, plan) = prepare(site, request).await?;
    observer.planned(&plan);
    let server = site.pg_bin.as_deref().or(plan.programs.server(facts.major));
    let mut scratch = Scratch::new(site.home, server, &facts)?;
    let ended = {
        let work = async {
            observer.stage("starting a scratch server (pgrig downloads it, if it is not there)");
            scratch.start(&facts).await?;
            let run = Run {
                site,
                facts: &facts,
                plan: &plan,
                scratch: &scratch,
                stop: &stop,
                has_other_locale: Cell::new(false),
            };
            run.rounds(observer).await
        };
        let mut work = Box::pin(work);
        until_stopped(site.target, interrupt, work.as_mut(), || stop.store(true, Ordering::Relaxed)).await
    };
    let removed = tokio::task::spawn_blocking(|| scratch.end()).await;
    let removed = removed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    match ended {
        Ended::Done(Ok(outcome)) => removed.map(|()| outcome),
        Ended::Done(Err(error)) => Err(error),
        Ended::Stopped(_) => removed.and(Err(BackupError::Interrupted)),
    }
}

struct Run<'a> {
    site: &'a Site<'a>,
    facts: &'a Facts,
    plan: &'a Plan,
    scratch: &'a Scratch,
    stop: &'a AtomicBool,
    /// Whether the scratch server lacks the database's locale.
    has_other_locale: Cell<bool>,
}

/// A backup that was restored, before it is a trial.
struct Restored {
    backup: Measured,
    restore: Measured,
    size: u64,
    verified: Verified,
}

impl Run<'_> {
    async fn rounds(&self, observer: &mut impl Observer) -> Result<Outcome, BackupError> {
        observer.stage("reading all tables, for the hashes with which restored ones are compared");
        let source = Source::read(self.site.target).await?;
        let mut outcome = Outcome::default();
        let (mut spent, mut tried) = (Duration::ZERO, 0_u32);
        for round in 0..self.plan.trials {
            for way in self.in_round(round) {
                if outcome.failed.iter().any(|(failed, _)| failed == way) {
                    continue;
                }
                observer.begins(way, round + 1);
                let began = Instant::now();
                match self.trial(way, &source).await {
                    Ok(trial) => {
                        outcome.trials.push(trial);
                        (spent, tried) = (spent + began.elapsed(), tried + 1);
                        let left = self.left(&outcome);
                        observer.done(&outcome.trials[outcome.trials.len() - 1], spent / tried * left);
                    }
                    Err(Trouble::Run(error)) => return Err(error),
                    Err(Trouble::Way(why)) => {
                        observer.failed(way, &why);
                        outcome.trials.retain(|trial| trial.way != *way);
                        outcome.failed.push((way.clone(), why));
                    }
                }
            }
        }
        source.close().await;
        if self.has_other_locale.get() {
            outcome.notes.push(format!(
                "the scratch server does not have the locale {}, so dumps were restored with locale C: indexes of text are built in less time",
                self.facts.collate
            ));
        }
        Ok(outcome)
    }

    /// The ways in the order of this round: each begins once, so that none is always the first.
    fn in_round(&self, round: u32) -> impl Iterator<Item = &Way> {
        let ways = &self.plan.ways;
        let first = round as usize % ways.len();
        ways[first..].iter().chain(&ways[..first])
    }

    /// Trials that are left, if no further way fails.
    fn left(&self, outcome: &Outcome) -> u32 {
        let sound = self.plan.ways.len() - outcome.failed.len();
        let all = u32::try_from(sound).unwrap_or(u32::MAX).saturating_mul(self.plan.trials);
        all.saturating_sub(u32::try_from(outcome.trials.len()).unwrap_or(u32::MAX))
    }

    async fn trial(&self, way: &Way, source: &Source) -> Result<Trial, Trouble> {
        let file = self.scratch.work.join("backup");
        let tried = if way.is_base() {
            self.base(way, source, &file).await
        } else {
            self.dump(way, source, &file).await
        };
        remove(&file)?;
        let Restored { backup, restore, size, verified } = tried?;
        Ok(Trial {
            way: way.clone(),
            backup: backup.seconds,
            restore: restore.seconds,
            backup_cpu: backup.cpu,
            restore_cpu: restore.cpu,
            size,
            peak_disk: backup.peak.max(restore.peak),
            verified,
        })
    }

    fn watch<'a>(&'a self, doing: String, directories: Vec<&'a Path>, stuck: Option<Duration>) -> Watch<'a> {
        Watch { doing, directories, log: self.scratch.work.join("messages"), stop: self.stop, stuck }
    }

    async fn dump(&self, way: &Way, source: &Source, file: &Path) -> Result<Restored, Trouble> {
        let programs = &self.plan.programs;
        let watch = self.watch(format!("the backup by {way}"), vec![&self.scratch.work], Some(STUCK));
        watch.check_room(&self.scratch.work, self.facts.bytes + SMALL)?;
        let command = dump::back_up(way, programs, self.site.target, &source.snapshot, file);
        let backup = watch.run(vec![command]).await?;
        let size = size(file);

        self.scratch.drop_database().await?;
        if !self.scratch.create_database(self.facts).await? {
            self.has_other_locale.set(true);
        }
        let (target, data) = (self.scratch.target(RESTORED), self.scratch.data_dir());
        let before = used(&data);
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &data], None);
        watch
            .check_room(&data, self.facts.bytes + self.facts.bytes / 5 + WAL.min(self.facts.bytes) + SMALL)?;
        let mut restore = watch.run(dump::restore(way, programs, &target, file)).await.map_err(of_restore)?;
        restore.peak = restore.peak.saturating_sub(before);
        let verified = verify::verify(&target, &source.content, Witness::SameSnapshot, false).await?;
        self.scratch.drop_database().await?;
        Ok(Restored { backup, restore, size, verified })
    }

    async fn base(&self, way: &Way, source: &Source, directory: &Path) -> Result<Restored, Trouble> {
        let programs = &self.plan.programs;
        let watch = self.watch(format!("the backup by {way}"), vec![&self.scratch.work], Some(STUCK));
        watch.check_room(&self.scratch.work, self.facts.server_bytes + SMALL)?;
        let backup = watch.run(vec![base::back_up(way, programs, self.site.target, directory)]).await?;
        let is_unchanged = source.is_unchanged(self.site.target).await?;
        let witness = if is_unchanged { Witness::Unchanged } else { Witness::Changed };
        let size = size(directory);

        let place = self.scratch.base.place_for_restored()?;
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &place], None);
        watch.check_room(&place, self.facts.server_bytes + SMALL)?;
        base::prepare(&place).on("create", &place)?;
        let mut restore = Measured::default();
        for commands in base::unpack(way, directory, &place) {
            let part = watch.run(commands).await.map_err(of_restore)?;
            restore.seconds += part.seconds;
            restore.cpu += part.cpu;
            restore.peak = restore.peak.max(part.peak);
        }
        watch.run(vec![base::verify(programs, self.facts.major, directory, &place)]).await?;
        let began = Instant::now();
        let started = self.scratch.start_base().await;
        restore.seconds += began.elapsed().as_secs_f64();
        let running = match started {
            Ok(running) => running,
            Err(error) => {
                self.scratch.end_base(None).await?;
                return Err(Trouble::Way(format!("its restore failed: {error}")));
            }
        };
        let at = running.connection();
        let role = self.facts.superuser.as_deref().unwrap_or(at.user);
        let target = Target::embedded(&at.socket_dir, at.port, role, &self.facts.database);
        let verified = verify::verify(&target, &source.content, witness, true).await;
        self.scratch.end_base(Some(running)).await?;
        Ok(Restored { backup, restore, size, verified: verified? })
    }
}

fn of_restore(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Way(why) => Trouble::Way(format!("its restore failed: {why}")),
        run @ Trouble::Run(_) => run,
    }
}

/// Deletes a backup, if it is there.
fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).on("delete", path),
        Ok(_) => fs::remove_file(path).on("delete", path),
        Err(_) => Ok(()),
    }
}
