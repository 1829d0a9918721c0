//! A fill while it is carried out: its plan, its sessions, and its results so far.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use measure::Series;
use tokio::sync::watch;

use super::Observer;
use super::ballast::Ballast;
use super::parts::{KEEPALIVES, LOOK_AFTER_CLIENT, PartEnd, Parts};
use super::resume;
use crate::error::{BegunError, FillError};
use crate::ledger::Ledger;
use crate::limits::{AdmissionControl, StopReason};
use crate::part_work::{FillId, PartWork};
use crate::plan::{Plan, Sizes};
use crate::probe::{ProbePoint, Prober};
use crate::remains::{Progress, Remains};
use crate::request::{InitStep, Persistence, Share};
use connect::{ConnectError, Target};
use server::quote::qualified;
use server::{Session, Sessions};

/// Interval between two checks whether another session still runs the same fill.
const IN_HAND_INTERVAL: Duration = Duration::from_millis(500);
/// Time to wait for another session that runs the same fill.
const IN_HAND_DEADLINE: Duration = Duration::from_secs(20);
/// Time to wait for the answer of a server that may be gone, when pgrig asks which rows are there.
const REMAINS_DEADLINE: Duration = Duration::from_secs(10);

/// A fill that is being carried out.
pub(crate) struct Filler<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sessions: Sessions<'a>,
    pub(crate) progress: Progress,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) control: Option<AdmissionControl<'a>>,
    pub(crate) prober: tokio::sync::Mutex<Option<Prober>>,
    pub(crate) generated: Mutex<Generated>,
    pub(crate) own_checkpoints: AtomicU64,
    /// Ballast where the disk may become full.
    pub(crate) ballast: Option<Ballast>,
    /// Directory in which files are recorded before pages are written into them.
    pub(crate) records: Option<PathBuf>,
    /// Whether the compression of the rows is not sampled.
    pub(crate) is_unsampled: bool,
    /// Statements that create indexes and constraints after the rows.
    pub(crate) makes: Vec<String>,
    /// Statement that records the end of the fill, in the transaction that removes the ledger.
    pub(crate) at_end: Option<String>,
    /// Whether an end for want of time counts as an interruption.
    pub(crate) must_complete: bool,
    /// Number of rows when rows were last frozen; none before the first time.
    pub(crate) frozen: tokio::sync::Mutex<Option<u64>>,
    /// The rows, if a transaction has loaded them together with those of other tables.
    pub(crate) in_cycle: OnceLock<InCycle>,
    /// The ledger, once it exists.
    pub(crate) ledger: OnceLock<Ledger>,
    /// The other parts, if this process is one of several.
    pub(super) parts: Option<Parts>,
    /// Whether another part has prepared the tables.
    pub(super) is_prepared: OnceLock<()>,
    /// How this part ended.
    pub(super) part_end: OnceLock<PartEnd>,
    /// Which of the work this process does.
    pub(super) stage: Stage,
    stop: watch::Sender<bool>,
}

/// Which of the work on a table a process does.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    /// All, or that of a part of the fill of this table.
    #[default]
    All,
    /// Loads the chunks of a share, as a part of the fill of a schema. Another process carries out the steps after the rows.
    Rows {
        /// The ledger that the tables were prepared with.
        ledger: Box<Ledger>,
        /// The chunks that this process loads.
        share: Share,
    },
    /// The steps after the rows, which the parts of the fill of a schema have loaded.
    Steps,
}

/// Rows that came in the transaction of a cycle of tables.
#[derive(Debug)]
pub(crate) struct InCycle {
    pub(crate) rows: u64,
    /// Time of the table's own rows.
    pub(crate) elapsed: Duration,
}

/// The outcome of the step `generate`, besides its rows.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    /// Rows handed to the server, second by second.
    pub rate: Option<Series>,
    /// Whether a chunk was rolled back.
    pub rolled_back: bool,
    /// Why it ended.
    pub stop: Option<StopReason>,
    /// Rows that are missing between others.
    pub gaps: Vec<Range<u64>>,
    /// Results of probes, size by size.
    pub probes: Vec<ProbePoint>,
    /// Time of probes, including the wait for streams to pause.
    pub probing: Duration,
    /// When this part worked, if there are several.
    pub(crate) part_work: Option<PartWork>,
    /// The fill that it is a part of.
    pub fill: Option<FillId>,
}

/// Takes the lock of this name for as long as the session lasts, alone or together with others. A session that a killed
/// pgrig left behind ends by itself, so this waits for it.
///
/// # Errors
/// If another session keeps the lock, or the server refuses.
pub(crate) async fn take_in_hand(session: &Session, name: &str, is_shared: bool) -> Result<(), FillError> {
    let started = Instant::now();
    loop {
        let taken =
            if is_shared { session.try_share_lock(name).await? } else { session.try_lock(name).await? };
        match taken {
            None => return Ok(()),
            Some(pid) if started.elapsed() > IN_HAND_DEADLINE => {
                return Err(BegunError::InHand { pid }.into());
            }
            Some(_) => tokio::time::sleep(IN_HAND_INTERVAL).await,
        }
    }
}

impl<'a> Filler<'a> {
    pub(crate) fn new(
        target: &'a Target,
        plan: &'a Plan,
        control: Option<AdmissionControl<'a>>,
        prober: Option<Prober>,
        ballast: bool,
        records: Option<PathBuf>,
        observer: &'a dyn Observer,
    ) -> Self {
        let ballast = ballast.then(|| Ballast::of(plan, &plan.tables.bulk.name));
        Self {
            control,
            ballast,
            in_cycle: OnceLock::new(),
            ledger: OnceLock::new(),
            prober: tokio::sync::Mutex::new(prober),
            generated: Mutex::default(),
            plan,
            sessions: Sessions::new(target),
            progress: Progress::new(plan),
            observer,
            own_checkpoints: AtomicU64::new(0),
            records,
            is_unsampled: false,
            makes: Vec::new(),
            at_end: None,
            must_complete: false,
            frozen: tokio::sync::Mutex::default(),
            parts: None,
            is_prepared: OnceLock::new(),
            part_end: OnceLock::new(),
            stage: Stage::All,
            stop: watch::Sender::new(false),
        }
    }

    /// Makes [`Self::stopped`] resolve, so that no further chunk begins.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Resolves once [`Self::stop`] has been called.
    pub(crate) async fn stopped(&self) {
        // The sender is ours.
        let _ = self.stop.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// The step that is being carried out, or has failed.
    pub(crate) fn step(&self) -> InitStep {
        self.progress.step()
    }

    /// Opens the session that leads, makes sure that no other one is at this fill, and rehearses. A session that a
    /// killed pgrig left behind ends by itself: it is waited for.
    ///
    /// # Errors
    /// If the server refuses, another session runs this fill, or the rehearsal finds a conflict.
    pub(crate) async fn begin(&self) -> Result<Session, FillError> {
        let session = self.open_loader().await?;
        if let Stage::Rows { ledger, .. } = &self.stage {
            take_in_hand(&session, &self.plan.bulk_qualified(), true).await?;
            self.is_prepared.get_or_init(|| ());
            self.ledger.set(Ledger::clone(ledger)).expect("nobody has begun it");
            return Ok(session);
        }
        let is_prepared = if let Some(parts) = &self.parts {
            parts.take_place(&session).await?
        } else {
            take_in_hand(&session, &self.plan.bulk_qualified(), false).await?;
            matches!(self.stage, Stage::Steps)
        };
        self.rehearse(&session).await?;
        if let Some(begun) = &self.plan.unfinished {
            let ledger = if is_prepared {
                self.is_prepared.get_or_init(|| ());
                resume::join(&session, self.plan, begun).await?
            } else {
                resume::resume(&session, self.plan, begun, self.observer).await?
            };
            self.ledger.set(ledger).expect("nobody has begun it");
        }
        Ok(session)
    }

    /// The chunks that this process loads; none if it loads all.
    pub(super) fn share(&self) -> Option<Share> {
        match &self.stage {
            Stage::All => self.plan.share(),
            Stage::Rows { share, .. } => Some(share.clone()),
            Stage::Steps => None,
        }
    }

    /// Announces changes of the volumes since the last reading.
    pub(crate) fn look_at_volumes(&self) {
        self.control.iter().for_each(AdmissionControl::look);
    }

    pub(crate) fn generated(&self) -> MutexGuard<'_, Generated> {
        self.generated.lock().expect("nobody panics holding this")
    }

    /// Opens a session that loads. The kernel is made to write early: by default it writes nothing
    /// until a tenth of the memory is dirty, and then blocks the writers.
    pub(crate) async fn open_loader(&self) -> Result<Session, ConnectError> {
        let session = self.sessions.open().await?;
        if self.plan.flush_early {
            session.run("SET backend_flush_after = '2MB'").await?;
        }
        if self.plan.part().is_some() {
            session.run(KEEPALIVES).await?;
            if self.plan.major >= 14 {
                // Not on all platforms of the server.
                let _ = session.run(LOOK_AFTER_CLIENT).await;
            }
        }
        Ok(session)
    }

    /// Creates the tables that record the loaded chunks.
    pub(crate) async fn begin_ledger(&self, session: &Session) -> Result<(), ConnectError> {
        self.set_sequences(session).await?;
        let ledger = Ledger::begin(session, self.plan).await?;
        self.ledger.set(ledger).expect("a fill has one");
        Ok(())
    }

    pub(crate) async fn sizes(&self, session: &Session) -> Result<Sizes, ConnectError> {
        let names: Vec<&str> = self.plan.tables.all().map(|table| table.name.as_str()).collect();
        let row = session.row(include_str!("../sql/sizes.sql"), &[&self.plan.schema, &names]).await?;
        let bytes = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        Ok(Sizes { heap: bytes("heap"), index: bytes("index") })
    }

    /// The state of the tables after a failure. A commit may have been under way when the fill
    /// ended, so pgrig asks the server if it can.
    pub(crate) async fn remains(&self) -> Remains {
        let plan = self.plan;
        let unlogged = match self.ledger.get() {
            Some(ledger) => ledger.relations.persistences().contains(&Persistence::Unlogged),
            None => plan.persistence == Persistence::Unlogged,
        };
        let told = self.progress.remains(plan, unlogged);
        let in_doubt = matches!(told, Remains::Nothing { .. }) && self.step() == InitStep::Generate;
        let exist = tokio::time::timeout(REMAINS_DEADLINE, self.bulk_exists());
        if in_doubt && exist.await.unwrap_or(false) {
            self.progress.commit_tables();
            self.progress.commit_rows(plan.rows().unwrap_or(0));
            return self.progress.remains(plan, unlogged);
        }
        told
    }

    async fn bulk_exists(&self) -> bool {
        let Ok(session) = self.sessions.open().await else { return false };
        let name = qualified(&self.plan.schema, &self.plan.tables.bulk.name);
        session.row("SELECT to_regclass($1) IS NOT NULL", &[&name]).await.is_ok_and(|row| row.get(0))
    }
}
