//! Decides whether the next chunk may begin, from numbers alone: time and volumes are passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::{Event, EventKind, StopReason};
use super::file_volumes::FileVolumes;
use super::headroom::{Headroom, SpaceRule};
use super::refusal::{AS_ASKED, LimitsError, OutOfSpace, VolumeRole};
use super::{ChunkSpace, Group, Limits, Mark, Owed, Percent, RemainingSpace, Shortage, SpaceLimit};
use server::volume::Space;

/// Time between two readings of a volume that has no room.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Bounds of the time between two attempts after the server has reported a shortage. The time is
/// half of the wait so far.
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// State of the volumes at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The tables' volume.
    pub heap: Space,
    /// Free on the fill's other volumes, bytes.
    pub others: Vec<u64>,
    /// Bytes that `pg_wal` takes; 0 where it cannot be seen.
    pub(crate) wal_held: u64,
}

impl Reading {
    /// Free on each volume by its number.
    fn free(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.heap.free).chain(self.others.iter().copied())
    }
}

/// Permission for a chunk to run. The caller hands it back when the chunk has ended, successfully
/// or not.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a chunk counts as running until its ticket is handed back"]
pub struct Ticket {
    number: u64,
    chunk: ChunkSpace,
    granted_at: Duration,
    free: Option<u64>,
}

impl Ticket {
    /// The space of the chunk.
    pub fn chunk(&self) -> ChunkSpace {
        self.chunk
    }
}

/// Why a chunk may not begin.
#[derive(Debug, PartialEq)]
pub(super) enum No {
    /// Ask again after this long.
    Wait(Duration),
    Stop(StopReason),
    Fail(OutOfSpace),
}

/// The space that a chunk lacks.
struct Lack {
    volume: VolumeRole,
    needed: u64,
    free: u64,
    kept: Headroom,
}

/// A wait for space, from the first refusal until a chunk that began later is done.
struct Wait {
    since: Duration,
    first_ticket: u64,
    free: Option<u64>,
}

/// Keeps account of chunks and space.
///
/// A running chunk counts in full until it ends, even if a part of it is visible in the readings
/// already; an ended chunk counts until the next reading. So running chunks never take more than
/// they may. If only this double counting keeps a chunk from beginning, the answer is to wait for
/// the next reading.
pub(super) struct Budget {
    limits: Limits,
    volumes: Option<(SpaceRule, Reading)>,
    running: BTreeMap<u64, ChunkSpace>,
    unseen: Vec<Ticket>,
    owed: Owed,
    loaded: u64,
    next_ticket: u64,
    marks: Vec<Mark>,
    told_size: u64,
    wait: Option<Wait>,
    full: Option<Shortage>,
    stopped: bool,
    events: Vec<Event>,
}

impl Budget {
    /// `volumes` is the first reading, with the rule of the space that has to stay free; none if pgrig cannot
    /// see the volumes. `owed` is the space that chunks of an earlier run still need.
    pub(super) fn new(limits: Limits, volumes: Option<(SpaceRule, Reading)>, owed: Owed) -> Self {
        Self {
            marks: limits.marks.clone(),
            limits,
            told_size: volumes.as_ref().map_or(0, |(_, reading)| reading.heap.size),
            volumes,
            running: BTreeMap::new(),
            unseen: Vec::new(),
            owed,
            loaded: 0,
            next_ticket: 0,
            wait: None,
            full: None,
            stopped: false,
            events: Vec::new(),
        }
    }

    /// To be called before the first row; `reading` is made after everything done so far.
    pub(super) fn begin(&mut self, now: Duration, reading: Reading) {
        let Some((_, current)) = &mut self.volumes else { return };
        self.told_size = reading.heap.size;
        *current = reading;
        for (mark, space) in self.crossed() {
            self.tell(now, EventKind::MarkPassedBefore { mark, space });
        }
    }

    /// Refuses a fill that has no room for its first chunk. `freed` bytes of the tables' volume are
    /// freed before it begins.
    ///
    /// # Errors
    /// If there is no room even for this chunk, and the user did not ask to wait.
    pub(super) fn refuse_full(&self, chunk: ChunkSpace, freed: u64) -> Result<(), LimitsError> {
        match self.lack(chunk, freed) {
            Some(Lack { volume, needed, free, kept }) if self.limits.wait_for_space.is_none() => {
                let Headroom { bytes: kept, because } = kept;
                let freed = if volume == VolumeRole::Heap { freed } else { 0 };
                Err(LimitsError::NoRoom { volume, needed, free, freed, kept, because })
            }
            _ => Ok(()),
        }
    }

    /// See [`SpaceRule::hold_ballast`].
    pub(super) fn hold_ballast(&mut self, bytes: u64) {
        if let Some((rule, _)) = &mut self.volumes {
            rule.hold_ballast(bytes);
        }
    }

    /// See [`SpaceRule::hold_unfrozen`].
    pub(super) fn hold_unfrozen(&mut self, bytes: u64) {
        if let Some((rule, _)) = &mut self.volumes {
            rule.hold_unfrozen(bytes);
        }
    }

    /// Takes note of a reading that was made after all calls so far.
    pub(super) fn observe(&mut self, now: Duration, reading: Reading) {
        let Some((_, current)) = &mut self.volumes else { return };
        let (from, to) = (self.told_size, reading.heap.size);
        *current = reading;
        self.unseen.clear();
        // The size of some file systems varies, because others take space from the same pool.
        if from.abs_diff(to) > from / 100 {
            self.told_size = to;
            let what = if to > from {
                EventKind::VolumeGrew { from, to }
            } else {
                EventKind::VolumeShrank { from, to }
            };
            self.tell(now, what);
        }
        for (mark, space) in self.crossed() {
            self.tell(now, EventKind::MarkCrossed { mark, space, loaded: self.loaded });
        }
    }

    /// Decides whether this chunk, the next one of its group, may begin.
    pub(super) fn admit_of(&mut self, now: Duration, chunk: ChunkSpace, group: Group) -> Result<Ticket, No> {
        if let Some(limit) = self.limits.duration.filter(|limit| now >= *limit && !group.begun) {
            return Err(self.stop(now, StopReason::Duration { seconds: limit.as_secs_f64() }));
        }
        if let Some(shortage) = self.full {
            return Err(self.stop(now, StopReason::DiskFull { shortage }));
        }
        let unseen = self.unseen.iter().map(|ticket| ticket.chunk);
        let pending = self.running.values().copied().chain(unseen).fold(ChunkSpace::NONE, ChunkSpace::and);
        let wanted = chunk.times(group.chunks);
        if self.lack(pending.and(wanted), 0).is_none() {
            return Ok(self.grant(now, chunk));
        }
        Err(match self.lack(wanted, 0) {
            // Running chunks are in the way; their space is known when they have ended.
            None => No::Wait(LOOK_AGAIN),
            Some(lack) => self.no_room(now, lack),
        })
    }

    /// Takes note that the chunk is committed.
    pub(super) fn done(&mut self, now: Duration, ticket: Ticket) {
        self.loaded += ticket.chunk.heap;
        self.owed = self.owed.and(ticket.chunk.later);
        if let Some(wait) = self.wait.take_if(|wait| ticket.number >= wait.first_ticket) {
            let gained = ticket.free.zip(wait.free).map(|(now, then)| now.saturating_sub(then));
            let after = ticket.granted_at.saturating_sub(wait.since).as_secs_f64();
            self.tell(now, EventKind::SpaceCameBack { gained, after });
        }
        self.end(ticket);
    }

    /// Takes note that the chunk failed. The blocks that it added to the table stay there.
    pub(super) fn failed(&mut self, ticket: Ticket) {
        self.end(ticket);
    }

    /// Takes note that the chunk failed for want of space, and answers whether to wait.
    pub(super) fn short(&mut self, now: Duration, ticket: Ticket, shortage: Shortage) -> No {
        self.failed(ticket);
        if let Some(waited) = self.keep_waiting(now, Some(shortage)) {
            let retry = (waited.so_far / 2).clamp(SHORTEST_RETRY, LONGEST_RETRY);
            return No::Wait(retry.min(waited.left));
        }
        match self.limits.space {
            SpaceLimit::Brim { .. } => {
                self.full = Some(shortage);
                self.stop(now, StopReason::DiskFull { shortage })
            }
            SpaceLimit::MustFit | SpaceLimit::UntilFree(_) => No::Fail(OutOfSpace::Reported(shortage)),
        }
    }

    /// Whether a lack of space ends the fill successfully.
    pub(super) fn ends_at_space(&self) -> bool {
        self.limits.space != SpaceLimit::MustFit
    }

    /// Space up to the limit; none if pgrig cannot read the volumes.
    pub(super) fn remaining_space(&self) -> Option<RemainingSpace> {
        let (rule, reading) = self.volumes.as_ref()?;
        let free = reading.heap.free;
        let owed = rule.needed(FileVolumes::TABLES, ChunkSpace::NONE, self.owed, reading);
        let kept = kept(&self.limits, rule, reading).bytes;
        Some(RemainingSpace { free, to_go: free.saturating_sub(kept).saturating_sub(owed) })
    }

    /// All events so far, oldest first.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    fn grant(&mut self, now: Duration, chunk: ChunkSpace) -> Ticket {
        let number = self.next_ticket;
        self.next_ticket += 1;
        self.running.insert(number, chunk);
        Ticket { number, chunk, granted_at: now, free: self.free() }
    }

    fn end(&mut self, ticket: Ticket) {
        self.running.remove(&ticket.number);
        if self.volumes.is_some() {
            self.unseen.push(ticket);
        }
    }

    fn free(&self) -> Option<u64> {
        self.volumes.as_ref().map(|(_, reading)| reading.heap.free)
    }

    /// The space that `wanted` lacks on the volumes as last seen, with `freed` bytes more on the tables' volume.
    fn lack(&self, wanted: ChunkSpace, freed: u64) -> Option<Lack> {
        let (rule, reading) = self.volumes.as_ref()?;
        let lacks = reading.free().enumerate().map(|(number, free)| Lack {
            volume: rule.role(number),
            needed: rule.needed(number, wanted, self.owed, reading),
            free: if number == FileVolumes::TABLES { free.saturating_add(freed) } else { free },
            kept: match number {
                FileVolumes::TABLES => kept(&self.limits, rule, reading),
                _ => rule.on_volume(number, reading),
            },
        });
        lacks.into_iter().find(|lack| lack.free < lack.kept.bytes.saturating_add(lack.needed))
    }

    fn no_room(&mut self, now: Duration, lack: Lack) -> No {
        let Lack { volume, needed, free, kept } = lack;
        let Headroom { bytes: kept, because } = kept;
        if matches!(self.limits.space, SpaceLimit::UntilFree(_)) && volume == VolumeRole::Heap {
            return self.stop(now, StopReason::BrimReached { volume, free, kept, because, needed });
        }
        if let Some(waited) = self.keep_waiting(now, None) {
            return No::Wait(LOOK_AGAIN.min(waited.left));
        }
        match self.limits.space {
            SpaceLimit::Brim { .. } => {
                self.stop(now, StopReason::BrimReached { volume, free, kept, because, needed })
            }
            SpaceLimit::MustFit | SpaceLimit::UntilFree(_) => {
                No::Fail(OutOfSpace::NoRoom { volume, needed, free, kept, because })
            }
        }
    }

    /// Ends the fill. The first reason is kept.
    fn stop(&mut self, now: Duration, reason: StopReason) -> No {
        if !self.stopped {
            self.stopped = true;
            self.tell(now, EventKind::Stopped { reason: reason.clone(), loaded: self.loaded });
        }
        No::Stop(reason)
    }

    /// Whether to go on waiting, and for how long; none if waiting was not asked for, or has lasted
    /// long enough.
    fn keep_waiting(&mut self, now: Duration, shortage: Option<Shortage>) -> Option<Waited> {
        let limit = self.limits.wait_for_space?;
        if self.wait.is_none() {
            let free = self.free();
            self.wait = Some(Wait { since: now, first_ticket: self.next_ticket, free });
            let (up_to, loaded) = (limit.as_secs_f64(), self.loaded);
            self.tell(now, EventKind::WaitingForSpace { shortage, free, up_to, loaded });
        }
        let so_far = now.saturating_sub(self.wait.as_ref()?.since);
        let left = limit.checked_sub(so_far).filter(|left| !left.is_zero())?;
        Some(Waited { so_far, left })
    }

    /// Marks that have been reached and not announced yet, in the order in which a filling volume
    /// reaches them. They count as announced from now on.
    fn crossed(&mut self) -> Vec<(Mark, Space)> {
        let Some((_, Reading { heap: space, .. })) = self.volumes else { return Vec::new() };
        let reached = |mark: &Mark| match mark {
            Mark::Used(percent) => space.free <= free_at(*percent, space),
            Mark::Free(bytes) => space.free <= *bytes,
        };
        let mut crossed: Vec<Mark> = self.marks.iter().copied().filter(reached).collect();
        self.marks.retain(|mark| !reached(mark));
        crossed.sort_by_key(|mark| match mark {
            Mark::Used(percent) => std::cmp::Reverse(free_at(*percent, space)),
            Mark::Free(bytes) => std::cmp::Reverse(*bytes),
        });
        crossed.into_iter().map(|mark| (mark, space)).collect()
    }

    fn tell(&mut self, now: Duration, what: EventKind) {
        self.events.push(Event { at: now.as_secs_f64(), what });
    }
}

struct Waited {
    so_far: Duration,
    left: Duration,
}

/// The space that stays free on the tables' volume: the user's reserve or the server's need, whichever is more.
pub(super) fn kept(limits: &Limits, rule: &SpaceRule, reading: &Reading) -> Headroom {
    let needed = rule.on_volume(FileVolumes::TABLES, reading);
    let asked = limits.asked_free();
    if asked > needed.bytes { Headroom { bytes: asked, because: AS_ASKED.to_owned() } } else { needed }
}

/// Bytes free when so much is used.
fn free_at(Percent(percent): Percent, space: Space) -> u64 {
    let usable = u128::from(space.used) + u128::from(space.free);
    let free = usable * u128::from(100 - percent) / 100;
    u64::try_from(free).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
