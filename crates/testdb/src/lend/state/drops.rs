//! The databases to drop, a few at a time, and the requests that wait for a drop.

use std::collections::{BTreeMap, VecDeque};

use super::template::Stage;
use super::{Action, Answer, KeeperState, RETRY_INTERVAL, Ticket};
use crate::lend::api::{Dropped, Refusal};
use crate::lend::time::Time;

#[derive(Default)]
pub(super) struct Drops {
    /// The orders that each database belongs to, by the database's name.
    of: BTreeMap<String, Vec<Ticket>>,
    queue: VecDeque<String>,
    running: usize,
    orders: BTreeMap<Ticket, Order>,
    /// Databases that could not be dropped, and when to try again.
    stuck: BTreeMap<String, Time>,
}

/// An order to drop several databases.
struct Order {
    left: usize,
    done: Dropped,
}

impl Drops {
    pub(super) fn has(&self, name: &str) -> bool {
        self.of.contains_key(name)
    }

    pub(super) fn at_work(&self) -> bool {
        !self.of.is_empty()
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.stuck.values().min().copied()
    }

    pub(super) fn add(&mut self, name: String) {
        self.stuck.remove(&name);
        if !self.has(&name) {
            self.of.insert(name.clone(), Vec::new());
            self.queue.push_back(name);
        }
    }

    /// Drops all of the databases, and then answers the request.
    pub(super) fn order(&mut self, ticket: Ticket, names: Vec<String>, actions: &mut Vec<Action>) {
        if names.is_empty() {
            let answer = Ok(Answer::Dropped(Dropped::default()));
            return actions.push(Action::Answer { ticket, answer });
        }
        self.orders.insert(ticket, Order { left: names.len(), done: Dropped::default() });
        for name in names {
            self.add(name.clone());
            self.of.entry(name).or_default().push(ticket);
        }
    }

    /// Tries again to drop databases for which that failed.
    pub(super) fn again(&mut self, now: Time) {
        let due = self.stuck.iter().filter(|(_, when)| **when <= now);
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.add(name);
        }
    }

    /// Starts drops, a few at a time: each waits for a checkpoint, which those that wait together
    /// share.
    pub(super) fn start(&mut self, at_once: usize, actions: &mut Vec<Action>) {
        while self.running < at_once
            && let Some(name) = self.queue.pop_front()
        {
            self.running += 1;
            actions.push(Action::Drop { name });
        }
    }

    fn finished(&mut self, name: &str, dropped: &Result<(), Refusal>, now: Time, actions: &mut Vec<Action>) {
        self.running -= 1;
        if dropped.is_err() {
            self.stuck.insert(name.to_owned(), now.after(RETRY_INTERVAL));
        }
        for ticket in self.of.remove(name).unwrap_or_default() {
            let Some(order) = self.orders.get_mut(&ticket) else { continue };
            order.left -= 1;
            match dropped {
                Ok(()) => order.done.dropped.push(name.to_owned()),
                Err(refusal) => order.done.failed.push((name.to_owned(), refusal.to_string())),
            }
            if order.left == 0
                && let Some(order) = self.orders.remove(&ticket)
            {
                let answer = Ok(Answer::Dropped(order.done));
                actions.push(Action::Answer { ticket, answer });
            }
        }
    }
}

impl KeeperState {
    pub(super) fn dropped(&mut self, name: &str, dropped: &Result<(), Refusal>, now: Time) {
        self.drops.finished(name, dropped, now, &mut self.actions);
    }

    /// Ends the lease of a database, or drops any other database by its name.
    pub(super) fn returned(&mut self, ticket: Ticket, name: &str, wait: bool, now: Time) {
        self.last_request = now;
        let mut names = vec![name.to_owned()];
        if self.lent.remove(name).is_none() && !self.drops.has(name) {
            if self.templates.get(name).is_some_and(super::Template::is_busy) {
                let error = format!("template {name} is being made or copied");
                return self.answer(ticket, Err(Refusal::new(409, error, "try again in a moment")));
            }
            match self.templates.remove(name) {
                Some(template) => names.extend(template.spares),
                None if self.forget_spare(name) => {}
                None => return self.answer(ticket, Err(Refusal::unknown(name))),
            }
        }
        if wait {
            self.drops.order(ticket, names, &mut self.actions);
        } else {
            for name in names {
                self.drops.add(name);
            }
            self.answer(ticket, Ok(Answer::Returned));
        }
    }

    fn forget_spare(&mut self, name: &str) -> bool {
        self.templates.values_mut().any(|template| {
            let before = template.spares.len();
            template.spares.retain(|spare| spare != name);
            template.spares.len() < before
        })
    }

    /// Drops templates for requests that want that, once copies for the pool are done. A template
    /// that a request waits for stays.
    pub(super) fn drop_templates(&mut self) {
        let is_copied = |template: &super::Template| template.copying > 0 && template.waiting.is_empty();
        if self.template_drops.is_empty() || self.templates.values().any(is_copied) {
            return;
        }
        let names = self.forget_templates(|_| true);
        for ticket in std::mem::take(&mut self.template_drops) {
            self.drops.order(ticket, names.clone(), &mut self.actions);
        }
    }

    /// Drops all databases that are left, once no more are being made.
    pub(super) fn clear(&mut self) {
        let at_work = self.marking > 0 || self.templates.values().any(super::Template::is_busy);
        let Some((ticket, mut names)) = self.clearing.take_if(|_| !at_work) else { return };
        names.extend(std::mem::take(&mut self.lent).into_keys());
        names.extend(self.drops.of.keys().cloned());
        for (name, template) in std::mem::take(&mut self.templates) {
            names.extend(template.spares);
            names.extend((template.stage == Stage::Ready).then_some(name));
        }
        names.sort();
        names.dedup();
        self.drops.order(ticket, names, &mut self.actions);
    }
}
