//! The order of chunks.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use crate::ledger::Ledger;
use crate::limits::Group;
use crate::plan::Plan;
use crate::plan::chunks::{Chunk, Spread};
use crate::request::Share;

/// The chunks that are still to be loaded, in order, for several streams.
pub(crate) struct Queue<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    /// The share to which these chunks belong; none for all chunks.
    share: Option<Share>,
    /// Number after the last chunk's.
    end: u64,
    state: Mutex<Taken>,
}

struct Taken {
    /// Number of the chunk that is examined next.
    next: u64,
    given_back: BTreeSet<u64>,
}

impl<'a> Queue<'a> {
    /// Chunks of the plan that are not loaded: those of a share, or all.
    pub(crate) fn of(plan: &'a Plan, ledger: &'a Ledger, share: Option<Share>) -> Self {
        let state = Mutex::new(Taken { next: 0, given_back: BTreeSet::new() });
        Self { plan, ledger, share, end: plan.chunks(), state }
    }

    /// Number of chunks that are left.
    pub(crate) fn left(&self) -> u64 {
        let mut state = self.lock();
        let (next, mut left) = (state.next, state.given_back.len() as u64);
        while self.skip(&mut state).is_some() {
            left += 1;
            state.next += 1;
        }
        state.next = next;
        left
    }

    /// The parts that own the chunks which are left; `share` is that of one part.
    pub(crate) fn owners(&self, share: &Share) -> BTreeSet<u32> {
        let mut state = self.lock();
        let mut owners = BTreeSet::new();
        while let Some(chunk) = self.skip(&mut state) {
            owners.insert(share.owner(chunk.number));
            state.next += 1;
        }
        state.next = 0;
        owners
    }

    /// Whether nothing is left to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        let mut state = self.lock();
        state.given_back.is_empty() && self.skip(&mut state).is_none()
    }

    /// The group of the next chunk. A fill does not end within a group: if a limit ends the fill,
    /// the chunks with the same ids, one in each leaf by hash, form a group.
    pub(crate) fn group(&self) -> Group {
        self.group_of_next(&mut self.lock())
    }

    fn group_of_next(&self, state: &mut Taken) -> Group {
        let (Spread::Hash { leaves }, None) = (self.plan.chunking.spread, self.plan.rows()) else {
            return Group::ALONE;
        };
        let next = state.given_back.first().copied();
        let next = next.or_else(|| self.skip(state).map(|chunk| chunk.number));
        match next {
            Some(number) if number % u64::from(leaves) != 0 => Group { begun: true, ..Group::ALONE },
            _ => Group { chunks: leaves.into(), begun: false },
        }
    }

    /// The next chunk. None if it would begin a new group although the permission was given for a
    /// group that has begun.
    pub(crate) fn take_of(&self, group: Group, most: u64) -> Option<Chunk> {
        if group.begun && !self.group().begun {
            return None;
        }
        self.take(most)
    }

    /// The next chunk, cut to so many rows.
    pub(crate) fn take(&self, most: u64) -> Option<Chunk> {
        let mut state = self.lock();
        let mut chunk = if let Some(number) = state.given_back.pop_first() {
            self.plan.chunking.chunk(number)
        } else {
            let chunk = self.skip(&mut state)?;
            state.next += 1;
            chunk
        };
        chunk.rows.end = chunk.rows.end.min(chunk.rows.start.saturating_add(most));
        Some(chunk)
    }

    /// Takes back a chunk that could not be loaded.
    pub(crate) fn give_back(&self, chunk: &Chunk) {
        self.lock().given_back.insert(chunk.number);
    }

    /// Rows of chunks that are not loaded although a later chunk is (or, of leaves by hash, another
    /// chunk of the same rows).
    pub(crate) fn gaps(&self) -> Vec<Range<u64>> {
        let state = self.lock();
        let Some(last) = (0..state.next).rev().find(|number| !state.given_back.contains(number)) else {
            return Vec::new();
        };
        let chunking = &self.plan.chunking;
        let end = match chunking.spread {
            Spread::Hash { leaves } => (last + 1).next_multiple_of(leaves.into()).min(self.end),
            _ => last,
        };
        let missing = state.given_back.range(..end).copied().chain(state.next..end);
        let mut gaps: Vec<Range<u64>> = missing.map(|number| chunking.chunk(number).rows).collect();
        gaps.dedup();
        gaps
    }

    /// The next own chunk that has rows and is not loaded. Chunks before it are skipped.
    fn skip(&self, state: &mut Taken) -> Option<Chunk> {
        while state.next < self.end {
            let is_own = self.share.as_ref().is_none_or(|share| share.has(state.next));
            let chunk = self.plan.chunking.chunk(state.next);
            if is_own && !chunk.rows.is_empty() && !self.ledger.is_loaded(self.plan, &chunk) {
                return Some(chunk);
            }
            state.next += 1;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.state.lock().expect("nobody panics holding this")
    }
}
