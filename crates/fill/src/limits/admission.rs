//! Admission of chunks: the budget with a clock and real volumes, shared by the streams.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::budget::{self, Budget, No, Reading, Ticket};
use super::event::{Event, StopReason};
use super::file_volumes::FileVolumes;
use super::headroom::{Headroom, SpaceRule};
use super::refusal::{LimitsError, OutOfSpace};
use super::{ChunkSpace, Group, Limits, Owed, Shortage, SpaceLimit};
use server::volume::{Volume, Volumes, wal_held};

/// Time between two readings of the volumes.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two measurements of the size of a large `pg_wal`.
const LARGE_WAL_INTERVAL: Duration = Duration::from_secs(1);
/// Size from which `pg_wal` counts as large, bytes.
const LARGE_WAL: u64 = 16 << 30;

/// Callback for every event as it happens, in order. It must not call the [`AdmissionControl`].
pub type OnEvent<'a> = dyn Fn(&Event) + Send + Sync + 'a;

/// Whether a chunk may begin.
#[derive(Debug, PartialEq)]
pub enum Admission {
    /// It may: load it, then hand the ticket back.
    Go(Ticket),
    /// No chunk may begin any more: the fill is done.
    Stop(StopReason),
}

/// Reads the space of a server's volumes during a fill, and knows the space that has to stay free.
pub struct VolumeMonitor {
    rule: SpaceRule,
    reader: VolumeReader,
}

/// Space that a fill may still take on the tables' volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingSpace {
    /// Bytes that are free now.
    pub free: u64,
    /// Bytes that chunks may still take, their keys included.
    pub to_go: u64,
}

impl VolumeMonitor {
    /// Monitors these volumes; `rule` determines the space that has to stay free on them.
    pub fn new(volumes: &Volumes, rule: SpaceRule) -> Self {
        Self { rule, reader: VolumeReader::new(volumes) }
    }

    /// A warning for the user before a fill begins, if any.
    pub(super) fn warning(&self) -> Option<String> {
        self.rule.warning()
    }

    /// The tables' volume.
    pub fn volume(&self) -> &Volume {
        &self.reader.heap
    }

    /// The space that now stays free on the tables' volume, with the reason: `--reserve` or the server's need,
    /// whichever is more.
    ///
    /// # Errors
    /// If the volume cannot be read.
    pub fn kept(&mut self, limits: &Limits) -> Result<Headroom, LimitsError> {
        Ok(budget::kept(limits, &self.rule, &self.reader.read()?))
    }
}

/// Admits chunks as long as limits and space allow.
pub struct AdmissionControl<'a> {
    /// Time of the first possible row; time counts from then.
    began: OnceLock<Instant>,
    state: Mutex<Watched>,
    tell: &'a OnEvent<'a>,
}

struct Watched {
    budget: Budget,
    reader: Option<VolumeReader>,
    read_at: Instant,
    told: usize,
}

impl<'a> AdmissionControl<'a> {
    /// Time counts from the first request for a chunk. `volume_monitor` is none if pgrig cannot see the
    /// server's volumes; `owed` is the space that chunks of an earlier run still need.
    ///
    /// # Errors
    /// If the limits cannot be kept: see [`LimitsError`].
    pub fn new(
        limits: Limits,
        volume_monitor: Option<VolumeMonitor>,
        owed: Owed,
        tell: &'a OnEvent<'a>,
    ) -> Result<Self, LimitsError> {
        let (reader, seen) = if let Some(VolumeMonitor { rule, mut reader }) = volume_monitor {
            let reading = reader.read()?;
            (Some(reader), Some((rule, reading)))
        } else {
            refuse_without_volumes(&limits, None)?;
            (None, None)
        };
        let budget = Budget::new(limits, seen, owed);
        let now = Instant::now();
        let state = Watched { budget, reader, read_at: now, told: 0 };
        Ok(Self { began: OnceLock::new(), state: Mutex::new(state), tell })
    }

    /// To be called before the first row: reads the volumes again, because earlier steps may have
    /// freed space.
    ///
    /// # Errors
    /// If the volume cannot be read.
    pub fn begin(&self) -> Result<(), OutOfSpace> {
        let mut state = self.lock();
        if let Some(reader) = &mut state.reader {
            let reading = reader.read().map_err(|error| OutOfSpace::Unreadable(error.to_string()))?;
            state.read_at = Instant::now();
            state.budget.begin(self.now(), reading);
        }
        self.tell_news(&mut state);
        Ok(())
    }

    /// Refuses a fill that has no room even for one chunk, unless it may wait for space. `freed`
    /// bytes of the tables' volume are freed before it begins.
    ///
    /// # Errors
    /// [`LimitsError::NoRoom`].
    pub fn refuse_full(&self, chunk: ChunkSpace, freed: u64) -> Result<(), LimitsError> {
        self.lock().budget.refuse_full(chunk, freed)
    }

    /// Holds so many bytes beside the tables, which can be freed for the checkpoints' own files: that many fewer
    /// bytes have to stay free.
    pub(crate) fn hold_ballast(&self, bytes: u64) {
        self.lock().budget.hold_ballast(bytes);
    }

    /// Counts so many bytes of heap as loaded; they will be frozen.
    pub(crate) fn hold_unfrozen(&self, bytes: u64) {
        self.lock().budget.hold_unfrozen(bytes);
    }

    /// Waits until a chunk may begin, or until it is clear that none may any more.
    ///
    /// # Errors
    /// If there is no room, and the user did not ask the fill to stop there.
    pub async fn before_chunk(&self, chunk: ChunkSpace) -> Result<Admission, OutOfSpace> {
        self.before_chunk_of(chunk, Group::ALONE).await
    }

    /// As [`Self::before_chunk`], for the next chunk of a group.
    ///
    /// # Errors
    /// If there is no room, and the user did not ask the fill to stop there.
    pub(crate) async fn before_chunk_of(
        &self,
        chunk: ChunkSpace,
        group: Group,
    ) -> Result<Admission, OutOfSpace> {
        loop {
            let answer = {
                let mut state = self.lock();
                self.refresh(&mut state)?;
                let answer = state.budget.admit_of(self.now(), chunk, group);
                self.tell_news(&mut state);
                answer
            };
            match answer {
                Ok(ticket) => return Ok(Admission::Go(ticket)),
                Err(No::Wait(pause)) => tokio::time::sleep(pause).await,
                Err(No::Stop(reason)) => return Ok(Admission::Stop(reason)),
                Err(No::Fail(error)) => return Err(error),
            }
        }
    }

    /// To be called when the chunk is committed.
    pub fn chunk_done(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.budget.done(self.now(), ticket);
        self.tell_news(&mut state);
    }

    /// To be called when the chunk failed for another reason than space.
    pub(crate) fn chunk_failed(&self, ticket: Ticket) {
        self.lock().budget.failed(ticket);
    }

    /// To be called when the chunk failed for want of space. After [`Admission::Go`] the caller
    /// tries it again.
    ///
    /// # Errors
    /// If the user asked neither to stop there nor to wait (any longer).
    pub(crate) async fn chunk_short(
        &self,
        ticket: Ticket,
        shortage: Shortage,
    ) -> Result<Admission, OutOfSpace> {
        let chunk = ticket.chunk();
        let answer = {
            let mut state = self.lock();
            let answer = state.budget.short(self.now(), ticket, shortage);
            self.tell_news(&mut state);
            answer
        };
        match answer {
            No::Wait(pause) => tokio::time::sleep(pause).await,
            No::Stop(reason) => return Ok(Admission::Stop(reason)),
            No::Fail(error) => return Err(error),
        }
        self.before_chunk(chunk).await
    }

    /// Whether a lack of space ends the fill successfully.
    pub(crate) fn ends_at_space(&self) -> bool {
        self.lock().budget.ends_at_space()
    }

    /// Announces marks that were crossed since the last reading.
    pub fn look(&self) {
        let mut state = self.lock();
        let Some(reader) = state.reader.as_mut().filter(|_| self.has_begun()) else { return };
        if let Ok(reading) = reader.read() {
            state.read_at = Instant::now();
            state.budget.observe(self.now(), reading);
        }
        self.tell_news(&mut state);
    }

    fn has_begun(&self) -> bool {
        self.began.get().is_some()
    }

    /// Reads the volumes again and again, from the first rows to the end of the last step, so that
    /// marks are announced as they are crossed. `seen` gets each time the distance to the point at
    /// which the fill stops, if pgrig can see the volumes.
    pub async fn watch(&self, seen: impl Fn(RemainingSpace)) -> Infallible {
        loop {
            if !self.has_begun() {
                tokio::time::sleep(READ_INTERVAL).await;
                continue;
            }
            let remaining = {
                let mut state = self.lock();
                // Where this matters, the next chunk meets it too.
                let _ = self.refresh(&mut state);
                self.tell_news(&mut state);
                state.budget.remaining_space()
            };
            remaining.map(&seen);
            tokio::time::sleep(READ_INTERVAL).await;
        }
    }

    /// Free on the tables' volume now, bytes; none where that cannot be seen.
    pub fn free(&self) -> Option<u64> {
        let space = self.lock().reader.as_ref()?.heap.space();
        space.ok().map(|space| space.free)
    }

    /// Events of space and time so far, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.lock().budget.events().to_vec()
    }

    fn refresh(&self, state: &mut Watched) -> Result<(), OutOfSpace> {
        let Some(reader) = &mut state.reader else { return Ok(()) };
        let now = Instant::now();
        if now.duration_since(state.read_at) >= READ_INTERVAL {
            let reading = reader.read().map_err(|error| OutOfSpace::Unreadable(error.to_string()))?;
            state.read_at = now;
            state.budget.observe(self.now(), reading);
        }
        Ok(())
    }

    fn tell_news(&self, state: &mut Watched) {
        for event in &state.budget.events()[state.told..] {
            (self.tell)(event);
        }
        state.told = state.budget.events().len();
    }

    fn now(&self) -> Duration {
        self.began.get_or_init(Instant::now).elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses limits that pgrig cannot apply without reading the volumes. `restricted_role`: the role, if its rights are the
/// cause.
pub(crate) fn refuse_without_volumes(
    limits: &Limits,
    restricted_role: Option<&str>,
) -> Result<(), LimitsError> {
    let unseen = |flag, instead| {
        let restricted_role = restricted_role.map(str::to_owned);
        Err(LimitsError::Unseen { flag, restricted_role, instead })
    };
    match limits.space {
        SpaceLimit::UntilFree(_) => return unseen("--until-free", "give a SIZE, --rows or --for instead"),
        SpaceLimit::Brim { reserve } if reserve > 0 => {
            return unseen("--reserve", "give --brim alone, which ends when the server reports disk full");
        }
        SpaceLimit::Brim { .. } | SpaceLimit::MustFit => {}
    }
    if limits.marks.is_empty() {
        return Ok(());
    }
    unseen("--mark", "leave out --mark; the run document has the fill's own size over time")
}

/// Reads the volumes.
struct VolumeReader {
    heap: Volume,
    others: Vec<Volume>,
    pg_wal: Option<PathBuf>,
    held: Option<(Instant, u64)>,
}

impl VolumeReader {
    fn new(volumes: &Volumes) -> Self {
        let (_, distinct) = FileVolumes::of(volumes);
        Self {
            heap: volumes.heap.clone(),
            others: distinct.into_iter().skip(1).collect(),
            pg_wal: volumes.wal.as_ref().map(|volume| volume.directory().to_owned()),
            held: None,
        }
    }

    fn read(&mut self) -> io::Result<Reading> {
        let others = self.others.iter().map(|volume| Ok(volume.space()?.free));
        Ok(Reading {
            heap: self.heap.space()?,
            others: others.collect::<io::Result<_>>()?,
            wal_held: self.wal_held()?,
        })
    }

    fn wal_held(&mut self) -> io::Result<u64> {
        let Some(pg_wal) = &self.pg_wal else { return Ok(0) };
        match self.held {
            Some((at, held)) if held >= LARGE_WAL && at.elapsed() < LARGE_WAL_INTERVAL => Ok(held),
            _ => {
                let held = wal_held(pg_wal)?;
                self.held = Some((Instant::now(), held));
                Ok(held)
            }
        }
    }
}
