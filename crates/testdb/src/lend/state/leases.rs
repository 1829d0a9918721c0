//! Databases that are lent: their owners, the tags that record that, and the ends of leases.

use super::{Action, Answer, Change, Failed, KeeperState, Ticket};
use crate::lend::api::Refusal;
use crate::lend::owner::Owner;
use crate::lend::tag::{Purpose, Tag, Terms};
use crate::lend::time::Time;

impl KeeperState {
    pub(super) fn watch(&mut self, terms: &Terms) {
        let owner = terms.owner.as_ref().filter(|_| !terms.kept);
        if let Some(owner) = owner.filter(|owner| !self.watched.contains(owner)) {
            self.watched.push(owner.clone());
            self.actions.push(Action::Watch(owner.clone()));
        }
    }

    pub(super) fn mark(&mut self, name: String, change: Change) {
        let lent = &self.lent[&name];
        let state = Purpose::Lent(lent.terms.clone());
        let tag = Tag::new(&self.keeper, &lent.template, &self.epoch, lent.since, state);
        self.marking += 1;
        self.actions.push(Action::Mark { name, tag, change });
    }

    pub(super) fn marked(&mut self, name: String, change: Change, marked: Result<(), Failed>) {
        self.marking -= 1;
        let lent = self.lent.get(&name).map(|lent| (lent.template.clone(), lent.terms.until));
        match (marked, lent, change) {
            (Ok(()), Some((_, until)), Change::Lend(ticket, _)) => {
                self.answer(ticket, Ok(Answer::Lent { name, until }));
            }
            (Ok(()), Some((_, until)), Change::Terms(ticket)) => {
                self.answer(ticket, Ok(Answer::Changed { name, until }));
            }
            // Somebody dropped the spare: the next one.
            (Err(Failed::Missing), Some((template, _)), Change::Lend(ticket, wanted)) if !self.ending => {
                self.lent.remove(&name);
                match self.templates.get_mut(&template) {
                    Some(template) => template.waiting.push_front((ticket, wanted)),
                    None => self.answer(ticket, Err(Failed::Missing.told())),
                }
            }
            (Err(failed), Some(_), Change::Lend(ticket, _)) => {
                self.end_lease(&name);
                self.answer(ticket, Err(failed.told()));
            }
            (Err(failed), Some(_), Change::Terms(ticket)) => {
                if failed == Failed::Missing {
                    self.lent.remove(&name);
                }
                self.answer(ticket, Err(failed.told()));
            }
            // Its owner exited, or its time was over, meanwhile.
            (_, None, Change::Lend(ticket, _) | Change::Terms(ticket)) => {
                self.answer(ticket, Err(Failed::Missing.told()));
            }
        }
    }

    pub(super) fn change(&mut self, ticket: Ticket, name: &str, now: Time, change: impl FnOnce(&mut Terms)) {
        self.last_request = now;
        if let Some(lent) = self.lent.get_mut(name) {
            change(&mut lent.terms);
            return self.mark(name.to_owned(), Change::Terms(ticket));
        }
        let refusal = if self.knows(name) { Refusal::not_lent(name) } else { Refusal::unknown(name) };
        self.answer(ticket, Err(refusal));
    }

    pub(super) fn end_lease(&mut self, name: &str) {
        if self.lent.remove(name).is_some() {
            self.drops.add(name.to_owned());
        }
    }

    pub(super) fn owner_gone(&mut self, owner: &Owner) {
        self.watched.retain(|watched| watched != owner);
        self.end_leases_if(|terms| !terms.kept && terms.owner.as_ref() == Some(owner));
    }

    pub(super) fn end_leases_if(&mut self, condition: impl Fn(&Terms) -> bool) {
        let names = self.lent.iter().filter(|(_, lent)| condition(&lent.terms));
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.end_lease(&name);
        }
    }
}
