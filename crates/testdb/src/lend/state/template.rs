//! A template, its spares, and the requests that wait for one.

use std::collections::VecDeque;
use std::time::Duration;

use super::speeds::Speeds;
use super::{Recipe, TOUCH, Ticket, Wanted};
use crate::clone::Strategy;
use crate::lend::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Absent,
    Making,
    Ready,
}

pub(super) struct Template {
    pub(super) stage: Stage,
    /// Whether its making is being stopped.
    pub(super) is_stopped: bool,
    /// None if the template was adopted, and no request has named its source yet.
    pub(super) recipe: Option<Recipe>,
    /// Its source, as text for people.
    pub(super) source: String,
    pub(super) unlogged: bool,
    pub(super) created: Time,
    pub(super) used: Time,
    /// The time of its last use that is recorded in its tag.
    pub(super) touched: Time,
    pub(super) spares: VecDeque<String>,
    /// Copies under way.
    pub(super) copying: usize,
    pub(super) waiting: VecDeque<(Ticket, Wanted)>,
    pub(super) speeds: Speeds,
    /// Whether a copy has failed: then no copies for the pool are made until the next request.
    pub(super) paused: bool,
}

impl Template {
    pub(super) fn new(strategies: &[Strategy], now: Time) -> Self {
        Self {
            stage: Stage::Absent,
            is_stopped: false,
            recipe: None,
            source: String::new(),
            unlogged: false,
            created: now,
            used: now,
            touched: now,
            spares: VecDeque::new(),
            copying: 0,
            waiting: VecDeque::new(),
            speeds: Speeds::new(strategies),
            paused: false,
        }
    }

    /// Takes note that a copy is requested. Returns whether the time must be recorded.
    pub(super) fn asked(&mut self, recipe: Recipe, now: Time) -> bool {
        self.source = recipe.source();
        self.recipe = Some(recipe);
        self.used = now;
        self.paused = false;
        let touch = self.stage == Stage::Ready && now.since(self.touched) >= TOUCH;
        if touch {
            self.touched = now;
        }
        touch
    }

    /// Whether it is being made, copied or waited for.
    pub(super) fn is_busy(&self) -> bool {
        self.stage == Stage::Making || self.copying > 0 || !self.waiting.is_empty()
    }

    pub(super) fn can_lend(&self) -> bool {
        !self.spares.is_empty() && !self.waiting.is_empty()
    }

    /// The next spare, and the request that gets it.
    pub(super) fn next_lease(&mut self) -> Option<(String, Ticket, Wanted)> {
        if !self.can_lend() {
            return None;
        }
        let (ticket, wanted) = self.waiting.pop_front()?;
        Some((self.spares.pop_front()?, ticket, wanted))
    }

    /// Number of waiting requests for which no copy is under way yet.
    pub(super) fn lacks(&self) -> usize {
        if self.stage == Stage::Ready {
            self.waiting.len().saturating_sub(self.spares.len() + self.copying)
        } else {
            0
        }
    }

    /// Whether a copy is to be made for the pool.
    pub(super) fn is_thin(&self, pool: usize, warm: Duration, now: Time) -> bool {
        let there = (self.spares.len() + self.copying).saturating_sub(self.waiting.len());
        self.stage == Stage::Ready && !self.paused && there < pool && now.since(self.used) < warm
    }
}
