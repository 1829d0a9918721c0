use std::collections::BTreeSet;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A state, with a server that carries out each action at once.
struct Simulation {
    state: KeeperState,
    now: Time,
    tickets: Ticket,
    /// Databases that are there, with their tags.
    there: BTreeMap<String, Tag>,
    /// The answers.
    answers: Vec<(Ticket, Result<Answer, Refusal>)>,
    watched: Vec<Owner>,
    made: usize,
    most_copies: usize,
    /// Work that the server has not done yet.
    todo: Vec<Action>,
    finished: bool,
}

impl Simulation {
    fn new(rules: Rules) -> Self {
        Self::at(Time::now(), BTreeMap::new(), rules, "epoch", &|_| true)
    }

    fn at(
        now: Time,
        there: BTreeMap<String, Tag>,
        rules: Rules,
        epoch: &str,
        is_alive: &dyn Fn(&Owner) -> bool,
    ) -> Self {
        let strategies = vec![Strategy::WalLog, Strategy::FileCopy];
        let random = fastrand::Rng::with_seed(there.len() as u64);
        let state = KeeperState::new(keeper(), epoch.to_owned(), rules, strategies, random, now);
        let found = there.iter().map(|(name, tag)| FoundDatabase {
            name: name.clone(),
            tag: Some(tag.clone()),
            half_dropped: false,
        });
        let found: Vec<FoundDatabase> = found.collect();
        let mut simulation = Self {
            state,
            now,
            tickets: 0,
            there,
            answers: Vec::new(),
            watched: Vec::new(),
            made: 0,
            most_copies: 0,
            todo: Vec::new(),
            finished: false,
        };
        let actions = simulation.state.adopt(found, is_alive, now);
        simulation.take(actions);
        simulation.settle();
        simulation
    }

    /// Another keeper after this one was killed.
    fn succeeded(self, epoch: &str, is_alive: &dyn Fn(&Owner) -> bool) -> Self {
        Self::at(self.now, self.there, Rules::default(), epoch, is_alive)
    }

    fn learn(&mut self, fact: Fact) {
        let actions = self.state.learn(fact, self.now);
        self.take(actions);
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Answer { ticket, answer } => self.answers.push((ticket, answer)),
                Action::Watch(owner) => self.watched.push(owner),
                Action::Finish => self.finished = true,
                action => self.todo.push(action),
            }
        }
        let copies = self.todo.iter().filter(|action| matches!(action, Action::Copy { .. })).count();
        self.most_copies = self.most_copies.max(copies);
    }

    /// Until the server has done everything.
    fn settle(&mut self) {
        while !self.todo.is_empty() {
            let action = self.todo.remove(0);
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        let missing = |there: &BTreeMap<String, Tag>, name: &str| {
            if there.contains_key(name) { Ok(()) } else { Err(Failed::Missing) }
        };
        match action {
            Action::Make { template, tag, .. } => {
                self.made += 1;
                assert!(self.there.insert(template.clone(), tag).is_none(), "made twice: {template}");
                self.learn(Fact::Made { template, made: Ok(false) });
            }
            // It comes too late.
            Action::Stop { .. } => {}
            Action::Copy { template, name, strategy, tag } => {
                let copied = missing(&self.there, &template).map(|()| SECOND);
                if copied.is_ok() {
                    assert!(self.there.insert(name.clone(), tag).is_none(), "copied twice: {name}");
                }
                self.learn(Fact::Copied { template, name, strategy, copied });
            }
            Action::Mark { name, tag, change } => {
                let marked = missing(&self.there, &name);
                if marked.is_ok() {
                    self.there.insert(name.clone(), tag);
                }
                self.learn(Fact::Marked { name, change, marked });
            }
            Action::Touch { name, tag } => {
                self.there.insert(name, tag);
            }
            Action::Drop { name } => {
                self.there.remove(&name);
                self.learn(Fact::Dropped { name, dropped: Ok(()) });
            }
            Action::Answer { .. } | Action::Watch(_) | Action::Finish => unreachable!("taken before"),
        }
    }

    fn ask(&mut self, template: &str, wanted: Wanted) -> Ticket {
        self.tickets += 1;
        let (ticket, template) = (self.tickets, template.to_owned());
        let recipe = Recipe { from: Origin::Nothing, unlogged: false };
        self.learn(Fact::Lend { ticket, template, recipe, wanted });
        ticket
    }

    fn lend(&mut self, wanted: Wanted) -> String {
        let ticket = self.ask(TEMPLATE, wanted);
        self.settle();
        self.lent(ticket)
    }

    fn lent(&self, ticket: Ticket) -> String {
        match self.answers.iter().find(|(answered, _)| *answered == ticket) {
            Some((_, Ok(Answer::Lent { name, .. }))) => name.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.learn(Fact::TimePassed);
        self.settle();
    }

    fn has(&self, state: &str) -> Vec<&str> {
        let is = |tag: &Tag| match &tag.state {
            Purpose::Template(_) => state == "template",
            Purpose::Spare => state == "spare",
            Purpose::Lent(terms) => state == if terms.kept { "kept" } else { "lent" },
        };
        self.there.iter().filter(|(_, tag)| is(tag)).map(|(name, _)| name.as_str()).collect()
    }
}

const TEMPLATE: &str = "pgrig_testdb_t_0123456789ab";

fn keeper() -> KeeperId {
    KeeperId::of(&["test"])
}

fn owner(pid: u32) -> Owner {
    Owner { pid, start: 1, machine: "here".to_owned() }
}

fn owned(pid: u32) -> Wanted {
    Wanted { owner: Some(owner(pid)), ..Wanted::default() }
}

#[test]
fn a_template_is_made_once_and_a_pool_of_copies_kept() {
    let mut simulation = Simulation::new(Rules::default());
    let tickets: Vec<Ticket> = (0..200).map(|_| simulation.ask(TEMPLATE, Wanted::default())).collect();
    simulation.settle();
    let lent: BTreeSet<String> = tickets.iter().map(|ticket| simulation.lent(*ticket)).collect();
    assert_eq!(lent.len(), 200, "none is shared");
    assert_eq!((simulation.made, simulation.most_copies), (1, 2));
    assert_eq!(simulation.has("lent").len(), 200);
    assert_eq!(simulation.has("spare").len(), 4);
    let order: Vec<Ticket> = simulation.answers.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(order, tickets, "first come, first served");
}

#[test]
fn nothing_is_answered_before_it_is_marked() {
    let mut simulation = Simulation::new(Rules::default());
    simulation.lend(Wanted::default());
    let ticket = simulation.ask(TEMPLATE, Wanted::default());
    assert!(simulation.todo.iter().any(|action| matches!(action, Action::Mark { .. })));
    assert!(simulation.answers.iter().all(|(answered, _)| *answered != ticket));
    // Killed here: the database is a spare still, and nobody has it.
    let spares = simulation.has("spare").len();
    let simulation = simulation.succeeded("epoch", &|_| true);
    assert_eq!(simulation.has("spare").len(), spares);
    assert_eq!(simulation.has("lent").len(), 1);
}

#[test]
fn an_owner_s_exit_drops_what_it_has_and_nothing_else() {
    let mut simulation = Simulation::new(Rules::default());
    let first = simulation.lend(owned(1));
    simulation.lend(owned(1));
    let other = simulation.lend(owned(2));
    let kept = simulation.lend(Wanted { keep: true, ..owned(1) });
    assert_eq!(simulation.watched, [owner(1), owner(2)], "each is watched once");
    simulation.learn(Fact::OwnerGone(owner(1)));
    assert!(simulation.state.drops(&first));
    simulation.settle();
    assert_eq!(simulation.has("lent"), [other]);
    assert_eq!(simulation.has("kept"), [kept]);
}

#[test]
fn an_owner_that_exits_while_its_database_is_marked_gets_none() {
    let mut simulation = Simulation::new(Rules::default());
    let ticket = simulation.ask(TEMPLATE, owned(1));
    while !matches!(simulation.todo[0], Action::Mark { .. }) {
        let action = simulation.todo.remove(0);
        simulation.act(action);
    }
    simulation.learn(Fact::OwnerGone(owner(1)));
    simulation.settle();
    let answer = simulation.answers.iter().find(|(answered, _)| *answered == ticket);
    assert!(matches!(answer, Some((_, Err(_)))), "{answer:?}");
    assert!(simulation.has("lent").is_empty());
}

#[test]
fn time_passes() {
    let mut simulation = Simulation::new(Rules { idle: Some(Duration::from_mins(20)), ..Rules::default() });
    let hour = Wanted { length: Some(60 * 60 * SECOND), ..Wanted::default() };
    let brief = simulation.lend(Wanted { length: Some(SECOND), ..Wanted::default() });
    let long = simulation.lend(hour);
    assert_eq!(simulation.state.next(), Some(simulation.now.after(SECOND)));
    simulation.pass(SECOND);
    assert_eq!(simulation.has("lent"), [long.as_str()], "{brief} had a second");
    assert_eq!(simulation.has("spare").len(), 4);
    simulation.pass(Duration::from_mins(10));
    assert!(simulation.has("spare").is_empty(), "nobody asked for ten minutes");
    let ticket = 1000;
    simulation.learn(Fact::Renew { ticket, name: long.clone(), length: Duration::from_hours(2) });
    simulation.settle();
    simulation.pass(Duration::from_hours(1));
    assert_eq!(simulation.has("lent"), [long.as_str()], "it was renewed");
    assert!(!simulation.finished, "something is lent");
    simulation.pass(Duration::from_hours(1));
    assert!(simulation.has("lent").is_empty() && simulation.finished);
    assert_eq!(simulation.has("template").len(), 1, "templates stay");
}

#[test]
fn templates_that_nobody_asks_for_go() {
    let mut simulation = Simulation::new(Rules { idle: None, ..Rules::default() });
    let name = simulation.lend(Wanted { length: Some(SECOND), ..Wanted::default() });
    simulation.pass(Duration::from_hours(6 * 24));
    assert!(!simulation.there.contains_key(&name));
    assert_eq!(simulation.has("template"), [TEMPLATE]);
    simulation.pass(Duration::from_hours(24));
    assert!(simulation.there.is_empty());
    assert!(!simulation.finished, "serve does not end by itself");
    simulation.lend(Wanted::default());
    assert_eq!(simulation.made, 2);
}

#[test]
fn the_next_keeper_adopts_what_is_whole_and_drops_the_rest() {
    let mut simulation = Simulation::new(Rules::default());
    let live_keepers = simulation.lend(owned(1));
    simulation.lend(owned(2));
    let kept = simulation.lend(Wanted { keep: true, ..owned(2) });
    simulation.lend(Wanted { length: Some(SECOND), ..Wanted::default() });
    let foreign = Tag::new(&KeeperId::of(&["another"]), TEMPLATE, "epoch", simulation.now, Purpose::Spare);
    simulation.there.insert("pgrig_testdb_012345_00000000".to_owned(), foreign.clone());
    let half = Tag::new(&keeper(), TEMPLATE, "epoch", simulation.now, Purpose::Spare);
    simulation.there.insert(name::making(&keeper(), 1), half);
    simulation.there.insert(name::making(&KeeperId::of(&["another"]), 1), foreign);
    simulation.now = simulation.now.after(SECOND);
    let spares: Vec<String> = simulation.has("spare").into_iter().map(str::to_owned).collect();
    let mut simulation = simulation.succeeded("epoch", &|owner| owner.pid == 1);
    assert_eq!(simulation.has("lent"), [live_keepers.as_str()]);
    assert_eq!(simulation.has("kept"), [kept]);
    let own_making = name::making(&keeper(), 1);
    let expected: Vec<&String> = spares.iter().filter(|name| **name != own_making).collect();
    assert_eq!(simulation.has("spare"), expected, "spares, and what is another keeper's");
    assert_eq!(simulation.watched, [owner(1)]);
    assert_ne!(simulation.lend(Wanted::default()), live_keepers, "no database is handed out twice");
    assert_eq!(simulation.made, 0, "the template is still there");
}

#[test]
fn after_a_crash_of_the_server_no_spare_is_believed() {
    let mut simulation = Simulation::new(Rules::default());
    simulation.lend(owned(1));
    let Purpose::Template(content) = &mut simulation.there.get_mut(TEMPLATE).unwrap().state else { panic!() };
    content.unlogged = true;
    let simulation = simulation.succeeded("after a crash", &|_| true);
    assert!(simulation.has("template").is_empty(), "it may be empty");
    assert!(simulation.has("spare").is_empty(), "one may have been lent, and the mark lost");
    assert_eq!(simulation.has("lent").len(), 1);
}

#[test]
fn what_somebody_else_dropped_is_made_again() {
    let mut simulation = Simulation::new(Rules::default());
    let lent = simulation.lend(Wanted::default());
    simulation.there.clear();
    simulation.lend(Wanted::default());
    assert_eq!(simulation.made, 2);
    assert_eq!(simulation.has("lent").len(), 1);
    let ticket = 1000;
    simulation.learn(Fact::Keep { ticket, name: lent });
    simulation.settle();
    assert!(simulation.answers.iter().any(|(answered, answer)| *answered == ticket && answer.is_err()));
}

#[test]
fn a_template_that_cannot_be_made_is_told_to_all_who_wait_and_tried_again() {
    let mut simulation = Simulation::new(Rules::default());
    let tickets = [simulation.ask(TEMPLATE, Wanted::default()), simulation.ask(TEMPLATE, Wanted::default())];
    simulation.todo.clear();
    simulation.learn(Fact::Made { template: TEMPLATE.to_owned(), made: Err(Refusal::failed("no")) });
    assert_eq!(simulation.answers.len(), 2);
    assert!(simulation.answers.iter().all(|(ticket, answer)| tickets.contains(ticket) && answer.is_err()));
    simulation.lend(Wanted::default());
    assert_eq!(simulation.made, 1);
}

#[test]
fn giving_back_drops_and_never_lends_again() {
    let mut simulation = Simulation::new(Rules { pool: 0, ..Rules::default() });
    let name = simulation.lend(Wanted::default());
    simulation.learn(Fact::Return { ticket: 1000, name: name.clone(), wait: false });
    assert_eq!(simulation.answers.last(), Some(&(1000, Ok(Answer::Returned))));
    assert_ne!(simulation.lend(Wanted::default()), name);
    assert!(!simulation.there.contains_key(&name));
    simulation.learn(Fact::Return { ticket: 1001, name, wait: true });
    assert!(matches!(simulation.answers.last(), Some((1001, Err(refusal))) if refusal.status == 404));
}

#[test]
fn dropping_all_waits_for_what_is_being_made() {
    let mut simulation = Simulation::new(Rules::default());
    simulation.lend(Wanted { keep: true, ..Wanted::default() });
    let waits = simulation.ask("pgrig_testdb_t_ba9876543210", Wanted::default());
    assert!(simulation.todo.iter().any(|action| matches!(action, Action::Make { .. })));
    simulation
        .there
        .insert("foreign".to_owned(), Tag::new(&keeper(), "", "", simulation.now, Purpose::Spare));
    simulation.learn(Fact::DropAll { ticket: 1000, foreign: vec!["foreign".to_owned()] });
    simulation.settle();
    assert!(simulation.there.is_empty(), "{:?}", simulation.there.keys());
    assert!(simulation.finished);
    assert!(simulation.answers.iter().any(|(ticket, answer)| *ticket == waits && answer.is_err()));
    let done = simulation.answers.iter().find(|(ticket, _)| *ticket == 1000);
    assert!(matches!(done, Some((_, Ok(Answer::Dropped(done)))) if done.failed.is_empty()), "{done:?}");
}

#[test]
fn dropping_templates_waits_for_copies_and_leaves_what_is_lent() {
    let mut simulation = Simulation::new(Rules::default());
    let name = simulation.lend(Wanted::default());
    simulation.lend(Wanted::default());
    simulation.learn(Fact::Return { ticket: 999, name: name.clone(), wait: false });
    let next = simulation.ask(TEMPLATE, Wanted::default());
    assert!(simulation.todo.iter().any(|action| matches!(action, Action::Copy { .. })), "for the pool");
    simulation.learn(Fact::DropTemplates { ticket: 1000 });
    simulation.settle();
    let done = simulation.answers.iter().find(|(ticket, _)| *ticket == 1000);
    assert!(matches!(done, Some((_, Ok(Answer::Dropped(done)))) if done.dropped.len() > 4), "{done:?}");
    simulation.lent(next);
    assert!(simulation.has("template").is_empty() && simulation.has("spare").is_empty());
    assert_eq!(simulation.has("lent").len(), 2);
}

#[test]
fn ending_leaves_templates_and_what_is_kept() {
    let mut simulation = Simulation::new(Rules::default());
    simulation.lend(owned(1));
    let kept = simulation.lend(Wanted { keep: true, ..Wanted::default() });
    simulation.learn(Fact::Shutdown);
    simulation.settle();
    assert!(simulation.finished);
    assert_eq!(simulation.there.keys().collect::<Vec<_>>(), [&kept, TEMPLATE]);
    let late = simulation.ask(TEMPLATE, Wanted::default());
    assert!(matches!(simulation.answers.last(), Some((ticket, Err(_))) if *ticket == late));
}

#[test]
fn what_cannot_be_dropped_is_tried_again() {
    let mut simulation = Simulation::new(Rules { pool: 0, ..Rules::default() });
    let name = simulation.lend(Wanted::default());
    simulation.learn(Fact::Return { ticket: 1000, name: name.clone(), wait: true });
    simulation.todo.clear();
    simulation.learn(Fact::Dropped { name: name.clone(), dropped: Err(Refusal::failed("in use")) });
    let answer = simulation.answers.last();
    assert!(
        matches!(answer, Some((1000, Ok(Answer::Dropped(done)))) if done.failed.len() == 1),
        "{answer:?}"
    );
    simulation.pass(RETRY_INTERVAL);
    assert!(!simulation.there.contains_key(&name));
}

#[test]
fn a_template_that_nobody_waits_for_any_more_is_not_made() {
    let mut simulation = Simulation::new(Rules::default());
    let (first, second) =
        (simulation.ask(TEMPLATE, Wanted::default()), simulation.ask(TEMPLATE, Wanted::default()));
    let stops =
        |simulation: &Simulation| simulation.todo.iter().any(|action| matches!(action, Action::Stop { .. }));
    simulation.learn(Fact::Forgotten { ticket: first });
    assert!(!stops(&simulation));
    simulation.learn(Fact::Forgotten { ticket: second });
    assert!(stops(&simulation));
    // Somebody asks while it is being stopped: it is made anew.
    let third = simulation.ask(TEMPLATE, Wanted::default());
    simulation.todo.clear();
    simulation.learn(Fact::Made { template: TEMPLATE.to_owned(), made: Err(Refusal::failed("cancelled")) });
    simulation.settle();
    simulation.lent(third);

    let mut simulation = Simulation::new(Rules::default());
    simulation.ask(TEMPLATE, Wanted::default());
    simulation.learn(Fact::Shutdown);
    assert!(stops(&simulation));
}
