//! The ledger with a clock and a real volume, shared by the streams.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::event::{Event, StopReason};
use super::headroom::{Headroom, SpaceRule};
use super::ledger::{self, Ledger, No, Reading, Ticket};
use super::refusal::{LimitsError, OutOfSpace};
use super::{ChunkSpace, Limits, Shortage, SpaceLimit};
use crate::volume::{Volume, Volumes, wal_held};

/// Between two readings of the volumes.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// Between two sums of `pg_wal`, which may hold thousands of files.
const WAL_INTERVAL: Duration = Duration::from_secs(1);

/// Told of every event as it happens, in order. Must not call the governor.
pub type Tell<'a> = dyn Fn(&Event) + Send + Sync + 'a;

/// Whether a chunk may begin.
#[derive(Debug, PartialEq)]
pub enum Admission {
    /// It may: load it, then hand the ticket back.
    Go(Ticket),
    /// None may any more: the fill is done.
    Stop(StopReason),
}

/// What can be seen of a server's volumes while it is filled.
pub struct Sight {
    rule: SpaceRule,
    gauge: Gauge,
}

impl Sight {
    /// Of these volumes; `rule` says what has to stay free on them.
    pub fn new(volumes: &Volumes, rule: SpaceRule) -> Self {
        Self { rule, gauge: Gauge::new(volumes) }
    }

    /// What people must know before a fill begins, if anything.
    pub(super) fn warning(&self) -> Option<String> {
        self.rule.warning()
    }

    /// What stays free on the tables' volume as things stand: `--reserve` or the server's need,
    /// whichever is more, and why.
    ///
    /// # Errors
    /// If the volume cannot be read.
    pub fn kept(&mut self, limits: &Limits) -> Result<Headroom, LimitsError> {
        Ok(ledger::kept(limits, &self.rule, &self.gauge.read()?))
    }
}

/// Lets chunks begin as long as limits and space allow.
pub struct Governor<'a> {
    began: Instant,
    state: Mutex<State>,
    tell: &'a Tell<'a>,
}

struct State {
    ledger: Ledger,
    gauge: Option<Gauge>,
    read_at: Instant,
    told: usize,
}

impl<'a> Governor<'a> {
    /// Time counts from now. `sight` is none where the server's volumes cannot be seen; `chunk` is what
    /// the chunks take.
    ///
    /// # Errors
    /// If the limits cannot be kept: see [`LimitsError`].
    pub fn new(
        limits: Limits,
        sight: Option<Sight>,
        chunk: ChunkSpace,
        tell: &'a Tell<'a>,
    ) -> Result<Self, LimitsError> {
        let (gauge, seen) = if let Some(Sight { rule, mut gauge }) = sight {
            let reading = gauge.read()?;
            (Some(gauge), Some((rule, reading)))
        } else {
            refuse_blind(&limits)?;
            (None, None)
        };
        let ledger = Ledger::new(limits, seen);
        ledger.refuse_full(chunk)?;
        let now = Instant::now();
        let state = State { ledger, gauge, read_at: now, told: 0 };
        let governor = Self { began: now, state: Mutex::new(state), tell };
        governor.tell_news(&mut governor.lock());
        Ok(governor)
    }

    /// Waits, if need be, until a chunk may begin, or it is clear that none may.
    ///
    /// # Errors
    /// If there is no room, and stopping for that was not asked for.
    pub async fn before_chunk(&self, chunk: ChunkSpace) -> Result<Admission, OutOfSpace> {
        loop {
            let answer = {
                let mut state = self.lock();
                self.refresh(&mut state)?;
                let answer = state.ledger.admit(self.now(), chunk);
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

    /// The chunk is committed.
    pub fn chunk_done(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.ledger.done(self.now(), ticket);
        self.tell_news(&mut state);
    }

    /// The chunk failed, not for want of space.
    pub fn chunk_failed(&self, ticket: Ticket) {
        self.lock().ledger.failed(ticket);
    }

    /// The chunk failed for want of space. [`Admission::Go`] means: there may be room now, try it again.
    ///
    /// # Errors
    /// If neither stopping nor (further) waiting was asked for.
    pub async fn chunk_short(&self, ticket: Ticket, shortage: Shortage) -> Result<Admission, OutOfSpace> {
        let chunk = ticket.chunk();
        let answer = {
            let mut state = self.lock();
            let answer = state.ledger.short(self.now(), ticket, shortage);
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

    /// Looks at the volumes all the time, so that marks are told when they are crossed and not only
    /// when the next chunk begins.
    pub async fn watch(&self) -> Infallible {
        loop {
            {
                let mut state = self.lock();
                // Where this matters, the next chunk meets it too.
                let _ = self.refresh(&mut state);
                self.tell_news(&mut state);
            }
            tokio::time::sleep(READ_INTERVAL).await;
        }
    }

    /// All that happened, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.lock().ledger.events().to_vec()
    }

    fn refresh(&self, state: &mut State) -> Result<(), OutOfSpace> {
        let Some(gauge) = &mut state.gauge else { return Ok(()) };
        let now = Instant::now();
        if now.duration_since(state.read_at) >= READ_INTERVAL {
            let reading = gauge.read().map_err(|error| OutOfSpace::Unreadable(error.to_string()))?;
            state.read_at = now;
            state.ledger.observe(self.now(), reading);
        }
        Ok(())
    }

    fn tell_news(&self, state: &mut State) {
        for event in &state.ledger.events()[state.told..] {
            (self.tell)(event);
        }
        state.told = state.ledger.events().len();
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits that only a volume that is seen can keep.
fn refuse_blind(limits: &Limits) -> Result<(), LimitsError> {
    let unseen = |flag, instead| Err(LimitsError::Unseen { flag, instead });
    match limits.space {
        SpaceLimit::UntilFree(_) => return unseen("--until-free", "an amount or --for instead"),
        SpaceLimit::Brim { reserve } if reserve > 0 => {
            return unseen("--reserve", "--brim alone, which then ends when the server reports disk full");
        }
        SpaceLimit::Brim { .. } | SpaceLimit::MustFit => {}
    }
    if limits.marks.is_empty() {
        return Ok(());
    }
    unseen("--mark", "up --mark; the run document has the fill's own size over time")
}

/// Reads the volumes.
struct Gauge {
    heap: Volume,
    pg_wal: Option<PathBuf>,
    other_wal: Option<Volume>,
    held: Option<(Instant, u64)>,
}

impl Gauge {
    fn new(volumes: &Volumes) -> Self {
        Self {
            heap: volumes.heap.clone(),
            pg_wal: volumes.wal.as_ref().map(|volume| volume.directory().to_owned()),
            other_wal: volumes.wal.clone().filter(|volume| !volume.is_same_as(&volumes.heap)),
            held: None,
        }
    }

    fn read(&mut self) -> io::Result<Reading> {
        Ok(Reading {
            heap: self.heap.space()?,
            wal_held: self.wal_held()?,
            wal_free: self.other_wal.as_ref().map(Volume::space).transpose()?.map(|space| space.free),
        })
    }

    fn wal_held(&mut self) -> io::Result<u64> {
        let Some(pg_wal) = &self.pg_wal else { return Ok(0) };
        match self.held {
            Some((at, held)) if at.elapsed() < WAL_INTERVAL => Ok(held),
            _ => {
                let held = wal_held(pg_wal)?;
                self.held = Some((Instant::now(), held));
                Ok(held)
            }
        }
    }
}
