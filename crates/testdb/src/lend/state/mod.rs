//! The keeper's state machine: facts and requests in, actions out. No database, no clock, no I/O.

mod adopt;
mod drops;
mod fact;
mod leases;
mod speeds;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub(super) use adopt::FoundDatabase;
pub(super) use fact::{Action, Answer, Change, Counts, Fact, Failed, Origin, Recipe, Ticket, Wanted};

use super::super::clone::Strategy;
use super::api::Refusal;
use super::name::{self, KeeperId};
use super::owner::Owner;
use super::tag::{Content, Purpose, Tag, Terms};
use super::time::Time;
use drops::Drops;
use template::{Stage, Template};

/// Resolution of the recorded time of a template's last use.
pub(super) const TOUCH: Duration = Duration::from_mins(10);
/// Databases that are dropped at the same time, while others are in use.
const DROPS: usize = 2;
/// Databases that are dropped at the same time in the end, when a request waits for it.
const LAST_DROPS: usize = 8;
/// Most databases that are lent or waited for at the same time, not counting kept ones.
const MOST_LENT: usize = 1000;
/// Time before a database that could not be dropped is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Rules of the keeper for its databases.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Number of spare databases of each template that is in use.
    pub pool: usize,
    /// Number of databases that are copied at the same time. It is small, to leave the machine to
    /// the tests.
    pub makers: usize,
    /// Time after its last request during which a template has spares.
    pub warm: Duration,
    /// Time after that until the template is dropped.
    pub template_age: Duration,
    /// The keeper ends if nothing is lent and no request came for so long; none if it never ends by
    /// itself.
    pub idle: Option<Duration>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            pool: 4,
            makers: 2,
            warm: Duration::from_mins(10),
            template_age: Duration::from_hours(7 * 24),
            idle: Some(Duration::from_mins(10)),
        }
    }
}

/// All databases of one keeper, and the requests that wait for one.
pub(super) struct KeeperState {
    keeper: KeeperId,
    epoch: String,
    rules: Rules,
    strategies: Vec<Strategy>,
    templates: BTreeMap<String, Template>,
    lent: BTreeMap<String, Lent>,
    drops: Drops,
    watched: Vec<Owner>,
    /// Number of tags that are being written.
    marking: usize,
    last_request: Time,
    ending: bool,
    /// The request to drop all databases, and those of other keepers to drop with them.
    clearing: Option<(Ticket, Vec<String>)>,
    /// Requests to drop the templates.
    template_drops: Vec<Ticket>,
    finished: bool,
    random: fastrand::Rng,
    actions: Vec<Action>,
}

struct Lent {
    template: String,
    since: Time,
    terms: Terms,
}

impl KeeperState {
    /// A keeper without databases.
    pub(super) fn new(
        keeper: KeeperId,
        epoch: String,
        rules: Rules,
        strategies: Vec<Strategy>,
        random: fastrand::Rng,
        now: Time,
    ) -> Self {
        Self {
            keeper,
            epoch,
            rules,
            strategies,
            templates: BTreeMap::new(),
            lent: BTreeMap::new(),
            drops: Drops::default(),
            watched: Vec::new(),
            marking: 0,
            last_request: now,
            ending: false,
            clearing: None,
            template_drops: Vec::new(),
            finished: false,
            random,
            actions: Vec::new(),
        }
    }

    /// Applies a fact, and returns the actions to carry out.
    pub(super) fn learn(&mut self, fact: Fact, now: Time) -> Vec<Action> {
        match fact {
            Fact::Lend { ticket, template, recipe, wanted } => {
                self.lend(ticket, &template, recipe, wanted, now);
            }
            Fact::Made { template, made } => self.made(&template, made),
            Fact::Copied { template, name, strategy, copied } => {
                self.copied(&template, name, strategy, copied, now);
            }
            Fact::Marked { name, change, marked } => self.marked(name, change, marked),
            Fact::Forgotten { ticket } => self.forgotten(ticket),
            Fact::Unclaimed { name } => self.end_lease(&name),
            Fact::Return { ticket, name, wait } => self.returned(ticket, &name, wait, now),
            Fact::Keep { ticket, name } => self.change(ticket, &name, now, |terms| terms.kept = true),
            Fact::Renew { ticket, name, length } => {
                self.change(ticket, &name, now, |terms| terms.until = Some(now.after(length)));
            }
            Fact::Dropped { name, dropped } => self.dropped(&name, &dropped, now),
            Fact::DropTemplates { ticket } => {
                self.last_request = now;
                self.template_drops.push(ticket);
            }
            Fact::DropForeign { ticket, names } => self.drops.order(ticket, names, &mut self.actions),
            Fact::DropAll { ticket, foreign } => {
                self.clearing = Some((ticket, foreign));
                self.end();
            }
            Fact::OwnerGone(owner) => self.owner_gone(&owner),
            Fact::TimePassed => self.passed(now),
            Fact::Shutdown => self.end(),
        }
        self.go_on(now)
    }

    /// Time at which [`Fact::TimePassed`] next changes anything.
    pub(super) fn next(&self) -> Option<Time> {
        if self.ending {
            return self.drops.next();
        }
        let ends = self.lent.values().filter(|lent| !lent.terms.kept).filter_map(|lent| lent.terms.until);
        let cools = self.templates.values().filter(|template| !template.spares.is_empty());
        let cools = cools.map(|template| template.used.after(self.rules.warm));
        let ages = self.templates.values().filter(|template| !template.is_busy());
        let ages = ages.map(|template| template.used.after(self.rules.template_age));
        let idle = self.rules.idle.filter(|_| self.is_idle()).map(|idle| self.last_request.after(idle));
        ends.chain(cools).chain(ages).chain(self.drops.next()).chain(idle).min()
    }

    pub(super) fn counts(&self) -> Counts {
        let kept = self.lent.values().filter(|lent| lent.terms.kept).count();
        Counts {
            lent: self.lent.len() - kept,
            kept,
            spare: self.templates.values().map(|template| template.spares.len()).sum(),
            templates: self.templates.values().filter(|template| template.stage == Stage::Ready).count(),
            waiting: self.templates.values().map(|template| template.waiting.len()).sum(),
        }
    }

    /// Present strategies of copies, by template's source.
    pub(super) fn strategies(&self) -> Vec<(String, Strategy)> {
        let known = self.templates.values();
        known.filter_map(|template| Some((template.source.clone(), template.speeds.best()?))).collect()
    }

    /// Whether this database is lent and not kept.
    pub(super) fn lends(&self, name: &str) -> bool {
        self.lent.get(name).is_some_and(|lent| !lent.terms.kept)
    }

    /// Whether this database is in the state, whatever its state is.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.lent.contains_key(name)
            || self.drops.has(name)
            || self.templates.contains_key(name)
            || self.templates.values().any(|template| template.spares.iter().any(|spare| spare == name))
    }

    /// Whether this database is about to be dropped and has no other purpose.
    pub(super) fn drops(&self, name: &str) -> bool {
        self.drops.has(name)
    }

    fn lend(&mut self, ticket: Ticket, name: &str, recipe: Recipe, wanted: Wanted, now: Time) {
        self.last_request = now;
        if self.ending {
            return self.answer(ticket, Err(Refusal::ending()));
        }
        let Counts { lent, waiting, .. } = self.counts();
        if lent + waiting >= MOST_LENT {
            return self.answer(ticket, Err(Refusal::too_many(MOST_LENT)));
        }
        let strategies = &self.strategies;
        let template =
            self.templates.entry(name.to_owned()).or_insert_with(|| Template::new(strategies, now));
        let touch = template.asked(recipe, now);
        template.waiting.push_back((ticket, wanted));
        if touch {
            let tag = self.template_tag(name);
            self.actions.push(Action::Touch { name: name.to_owned(), tag });
        }
        self.lend_spares(name, now);
    }

    /// Forgets clients that no longer wait. A template without a waiting client is cancelled.
    fn forgotten(&mut self, ticket: Ticket) {
        let waited = |template: &mut Template| {
            let before = template.waiting.len();
            template.waiting.retain(|(waits, _)| *waits != ticket);
            template.waiting.len() < before
        };
        if self.templates.values_mut().any(waited) {
            self.answer(ticket, Err(Refusal::ending()));
            self.stop_making();
        }
    }

    fn stop_making(&mut self) {
        for (name, template) in &mut self.templates {
            if template.stage == Stage::Making && template.waiting.is_empty() && !template.is_stopped {
                template.is_stopped = true;
                self.actions.push(Action::Stop { template: name.clone() });
            }
        }
    }

    fn made(&mut self, name: &str, made: Result<bool, Refusal>) {
        let Some(template) = self.templates.get_mut(name) else { return };
        let was_stopped = std::mem::take(&mut template.is_stopped);
        match made {
            // Somebody has asked for it since: it is made anew.
            Err(_) if was_stopped && !template.waiting.is_empty() => template.stage = Stage::Absent,
            Ok(unlogged) => {
                template.stage = Stage::Ready;
                template.unlogged = unlogged;
            }
            Err(refusal) => {
                let waiting = std::mem::take(&mut template.waiting);
                template.spares.drain(..).for_each(|spare| self.drops.add(spare));
                self.templates.remove(name);
                for (ticket, _) in waiting {
                    self.answer(ticket, Err(refusal.clone()));
                }
            }
        }
    }

    fn copied(
        &mut self,
        name: &str,
        copy: String,
        strategy: Strategy,
        copied: Result<Duration, Failed>,
        now: Time,
    ) {
        let Some(template) = self.templates.get_mut(name) else { return self.drops.add(copy) };
        // One of that name may have been forgotten meanwhile, and asked for anew.
        template.copying = template.copying.saturating_sub(1);
        match copied {
            Ok(took) => {
                template.speeds.took(strategy, took);
                template.spares.push_back(copy);
                self.lend_spares(name, now);
            }
            Err(Failed::Missing) => self.lost(name),
            // A file system may not be able to clone.
            Err(Failed::Other(_)) if template.speeds.without(strategy) => {}
            Err(failed) => {
                template.paused = true;
                if let Some((ticket, _)) = template.waiting.pop_front() {
                    self.answer(ticket, Err(failed.told()));
                }
            }
        }
    }

    /// The template was dropped by others: it is made again if it is wanted.
    fn lost(&mut self, name: &str) {
        let Some(template) = self.templates.get_mut(name) else { return };
        if template.recipe.is_some() {
            // While it is being made again, a copy of before may fail as well.
            if template.stage == Stage::Ready {
                template.stage = Stage::Absent;
            }
        } else if let Some(template) = self.templates.remove(name) {
            template.spares.into_iter().for_each(|spare| self.drops.add(spare));
        }
    }

    /// Lends spares to the requests that wait, in the order of their arrival.
    fn lend_spares(&mut self, name: &str, now: Time) {
        while let Some(template) = self.templates.get_mut(name)
            && let Some((spare, ticket, wanted)) = template.next_lease()
        {
            let until = wanted.length.map(|length| now.after(length));
            let terms = Terms { owner: wanted.owner.clone(), until, kept: wanted.keep };
            self.watch(&terms);
            self.lent.insert(spare.clone(), Lent { template: name.to_owned(), since: now, terms });
            self.mark(spare, Change::Lend(ticket, wanted));
        }
    }

    fn passed(&mut self, now: Time) {
        self.end_leases_if(|terms| !terms.kept && terms.until.is_some_and(|until| until <= now));
        self.drops.again(now);
        for template in self.templates.values_mut() {
            if template.used.after(self.rules.warm) <= now && template.waiting.is_empty() {
                template.spares.drain(..).for_each(|spare| self.drops.add(spare));
            }
        }
        let age = self.rules.template_age;
        self.forget_templates(|template| template.used.after(age) <= now);
        let idle = self.rules.idle.filter(|_| self.is_idle());
        if idle.is_some_and(|idle| self.last_request.after(idle) <= now) {
            self.end();
        }
    }

    fn is_idle(&self) -> bool {
        self.lent.values().all(|lent| lent.terms.kept) && !self.templates.values().any(Template::is_busy)
    }

    /// Drops the templates for which `condition` holds, if they are not being made, copied or
    /// waited for. Returns their names.
    fn forget_templates(&mut self, condition: impl Fn(&Template) -> bool) -> Vec<String> {
        let template_drops =
            self.templates.iter().filter(|(_, template)| !template.is_busy() && condition(template));
        let template_drops: Vec<String> = template_drops.map(|(name, _)| name.clone()).collect();
        let mut dropped = Vec::new();
        for name in template_drops {
            if let Some(template) = self.templates.remove(&name) {
                dropped.extend(template.spares);
                dropped.push(name);
            }
        }
        for name in &dropped {
            self.drops.add(name.clone());
        }
        dropped
    }

    fn end(&mut self) {
        if self.ending {
            return;
        }
        self.ending = true;
        let waiting = self.templates.values_mut().flat_map(|template| template.waiting.drain(..));
        let tickets: Vec<Ticket> = waiting.map(|(ticket, _)| ticket).collect();
        for ticket in tickets {
            self.answer(ticket, Err(Refusal::ending()));
        }
        self.stop_making();
        self.end_leases_if(|terms| !terms.kept);
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, Refusal>) {
        self.actions.push(Action::Answer { ticket, answer });
    }

    fn template_tag(&self, name: &str) -> Tag {
        let template = &self.templates[name];
        let Template { source, unlogged, used, created, .. } = template;
        let content = Content { source: source.clone(), unlogged: *unlogged, used: *used };
        Tag::new(&self.keeper, name, &self.epoch, *created, Purpose::Template(content))
    }

    /// The actions that follow from the present state.
    fn go_on(&mut self, now: Time) -> Vec<Action> {
        self.drop_templates();
        if self.ending {
            let spares = self.templates.values_mut().flat_map(|template| template.spares.drain(..));
            spares.for_each(|spare| self.drops.add(spare));
            self.clear();
        } else {
            self.make_templates();
            self.hand_out_all(now);
            self.copy(now);
        }
        self.drops.start(if self.ending { LAST_DROPS } else { DROPS }, &mut self.actions);
        let at_work = self.marking > 0
            || self.clearing.is_some()
            || self.drops.at_work()
            || self
                .templates
                .values()
                .any(|template| template.copying > 0 || template.stage == Stage::Making);
        if self.ending && !at_work && !self.finished {
            self.finished = true;
            self.actions.push(Action::Finish);
        }
        std::mem::take(&mut self.actions)
    }

    fn hand_out_all(&mut self, now: Time) {
        let waited = self.templates.iter().filter(|(_, template)| template.can_lend());
        let waited: Vec<String> = waited.map(|(name, _)| name.clone()).collect();
        for name in waited {
            self.lend_spares(&name, now);
        }
    }

    /// Makes requested templates that do not exist. An earlier one of the same name must have been dropped first.
    fn make_templates(&mut self) {
        let wanted = self.templates.iter_mut().filter_map(|(name, template)| {
            let recipe = template.recipe.clone()?;
            let wanted = template.stage == Stage::Absent && !template.waiting.is_empty();
            (wanted && !self.drops.has(name)).then(|| {
                template.stage = Stage::Making;
                (name.clone(), recipe)
            })
        });
        for (template, recipe) in wanted.collect::<Vec<_>>() {
            let tag = self.template_tag(&template);
            self.actions.push(Action::Make { template, recipe, tag });
        }
    }

    /// Starts copies: first for waiting requests, the longest waiting first, then for the pool.
    fn copy(&mut self, now: Time) {
        while self.templates.values().map(|template| template.copying).sum::<usize>() < self.rules.makers {
            let waited = self.templates.iter_mut().filter(|(_, template)| template.lacks() > 0);
            let waited =
                waited.min_by_key(|(_, template)| template.waiting.front().map(|(ticket, _)| *ticket));
            let (name, template, in_haste) = if let Some((name, template)) = waited {
                (name, template, true)
            } else {
                let Rules { warm, pool, .. } = self.rules;
                // Templates that are to go must not be copied for ever.
                let pool = if self.template_drops.is_empty() { pool } else { 0 };
                let mut templates = self.templates.iter_mut();
                let thin = templates.find(|(_, template)| template.is_thin(pool, warm, now));
                let Some((name, template)) = thin else { return };
                (name, template, false)
            };
            template.copying += 1;
            let strategy = template.speeds.choose(in_haste);
            let copy = name::lease(name, self.random.u32(..));
            let tag = Tag::new(&self.keeper, name, &self.epoch, now, Purpose::Spare);
            let template = name.clone();
            self.actions.push(Action::Copy { template, name: copy, strategy, tag });
        }
    }
}
