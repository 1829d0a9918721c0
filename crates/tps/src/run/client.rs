//! A client: chooses transactions, begins them when they are due, and counts their outcomes.
//! [`carry_out`](crate::carry_out) carries out the commands of one.

use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use connect::{CLOSED_WITHOUT_A_WORD, ConnectError};
use failure::{Class, Classified};
use script::{EvaluationError, Random, SleepError, Variables};

use crate::outcome::{LostClient, Phase};
use crate::request::{Connecting, Length};
use crate::run::Moved;
use crate::run::answer::{Answer, Problem};
use crate::run::clock::Clock;
use crate::run::job::Common;
use crate::run::session::Session;
use crate::run::tally::TransactionOutcome;
use crate::run::targets::Attempt;

/// Time between two looks whether a client is connected to another target.
const LOOK: Duration = Duration::from_millis(5);

/// The event that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Data on its socket.
    Answer,
    /// This point in time.
    Time(Instant),
    /// The turn of other clients.
    Turn,
    /// Nothing: the client has ended.
    Nothing,
}

/// A client of the run: one connection that carries out scripts.
pub(crate) struct Client {
    pub(crate) number: usize,
    /// Variables and random numbers.
    pub(crate) memory: script::Client,
    /// None before it connects.
    pub(crate) session: Option<Session>,
    /// Number of its target, from 0.
    target: usize,
    /// Its way to another target, if it is on one.
    leaving: Option<Leaving>,
    /// Whether it has moved to another target, and no transaction has succeeded since.
    has_moved_in_vain: bool,
    state: ClientState,
    /// The current transaction; meaningful only in some states.
    pub(crate) transaction: Transaction,
    pub(crate) answer: Answer,
    /// Number of its transactions in the measured part.
    counted: u64,
}

/// A client's way to another target.
struct Leaving {
    attempt: Attempt,
    /// Why it lost its session.
    why: String,
}

/// State of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientState {
    /// It has no transaction.
    Free,
    /// It will begin the chosen script: at this time, or at once.
    Due(Option<Instant>),
    /// It carries out a transaction, and is at this point of it.
    Busy(At),
    /// It connects to another target; then it begins the transaction that was scheduled for this time.
    Moving(Option<Instant>),
    Over,
}

/// The state of a transaction, by the script's commands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Command(usize),
    Asleep {
        command: usize,
        until: Instant,
    },
    /// Waits for the answer to all that was sent.
    Answer(usize),
    /// Waits until a pipeline's statements are parsed, before it begins.
    Parsing(usize),
    /// Waits for a ROLLBACK after an error here.
    RollingBack(usize, TransactionOutcome),
}

/// A transaction: a script that is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) script: usize,
    /// Start by the schedule; latency counts from it.
    pub(crate) scheduled: Instant,
    pub(crate) tries: u32,
    /// Number of Sync messages of the pipeline so far; none outside of a pipeline.
    pub(crate) pipeline: Option<u32>,
    /// Start of the current command, if commands are timed.
    pub(crate) command_began: Instant,
    /// The random numbers at the beginning of the transaction, to try it again.
    random: Random,
    /// The variables at the beginning of the transaction, if it may be tried again.
    variables: Option<Variables>,
}

/// Result of one step of a client.
pub(crate) enum Next {
    On(ClientState),
    Wait(ClientState, Need),
}

use Next::{On, Wait};

/// The cause and the remedy for a script with parameters.
const PARAMETERS: &str = "; the script has parameters ($1): use :NAME and \\set, or -D NAME=VALUE";

/// The reason for which a client cannot continue.
pub(crate) struct Lost {
    why: String,
    class: Class,
    /// The remedy that follows the reason if no other target helps; empty if the reason contains it.
    remedy: &'static str,
    /// Whether the session is gone, so that another target may help.
    has_no_session: bool,
}

pub(crate) type Stepped = Result<Next, Lost>;

impl Lost {
    /// Because of its script.
    pub(crate) fn by_script(why: impl Into<String>) -> Self {
        Self { why: why.into(), class: Class::Request, remedy: "", has_no_session: false }
    }

    /// Because of the server or the machine.
    pub(crate) fn by_machine(why: impl Into<String>) -> Self {
        Self { why: why.into(), class: Class::Machine, remedy: "", has_no_session: false }
    }

    /// Because of an answer that is not as it should be.
    pub(crate) fn by(problem: &Problem) -> Self {
        let remedy = if problem.lacks_parameters() { PARAMETERS } else { "" };
        let why = format!("{problem}{remedy}");
        Self { why, class: problem.class(), remedy: "", has_no_session: false }
    }

    /// Because of a statement with a variable that is not defined.
    pub(crate) fn by_undefined(problem: &Problem, name: &str) -> Self {
        let why = undefined(&format_args!("{problem}; the script sets no variable {name}"), name);
        Self { why, ..Self::by(problem) }
    }
}

impl From<ConnectError> for Lost {
    fn from(error: ConnectError) -> Self {
        let remedy = match &error {
            // It names the log itself.
            ConnectError::Lost { why, .. } if why == CLOSED_WITHOUT_A_WORD => "; then repeat the command",
            ConnectError::Lost { .. } => "; read the server's log, then repeat the command",
            _ => "",
        };
        Self { class: error.class(), why: error.to_string(), remedy, has_no_session: true }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self { has_no_session: true, ..Self::by_machine(error.to_string()) }
    }
}

impl From<EvaluationError> for Lost {
    fn from(error: EvaluationError) -> Self {
        Self::by_script(match &error {
            EvaluationError::Undefined(name) => undefined(&error, name),
            EvaluationError::Malformed { name, .. } => {
                format!("{error}: in an expression, {name} must be a number, a boolean or null")
            }
            _ => error.to_string(),
        })
    }
}

impl From<SleepError> for Lost {
    fn from(error: SleepError) -> Self {
        Self::by_script(match &error {
            SleepError::Undefined(name) => undefined(&error, name),
            SleepError::Invalid { .. } => format!("{error}: give it a number"),
        })
    }
}

/// The error that a variable is not defined, with the remedy.
fn undefined(error: &impl Display, name: &str) -> String {
    format!("{error}: give -D {name}=VALUE, or set it earlier in the script, for example by \\set")
}

impl At {
    fn command(self) -> usize {
        match self {
            Self::Command(command)
            | Self::Asleep { command, .. }
            | Self::Answer(command)
            | Self::Parsing(command)
            | Self::RollingBack(command, _) => command,
        }
    }
}

impl Client {
    /// A client that begins when its turn comes. Without a session, it connects for each
    /// transaction.
    pub(crate) fn new(
        number: usize,
        memory: script::Client,
        session: Option<Session>,
        common: &Common<'_>,
    ) -> Self {
        let turn = common.timetable.turn(number);
        let may_retry = common.run.plan.request.max_tries != 1;
        let transaction = Transaction {
            script: 0,
            scheduled: turn,
            tries: 1,
            pipeline: None,
            command_began: turn,
            random: memory.random,
            variables: may_retry.then(|| memory.variables.clone()),
        };
        let answer = Answer::default();
        Self {
            number,
            memory,
            session,
            target: common.run.targets.of_client(number),
            leaving: None,
            has_moved_in_vain: false,
            state: ClientState::Free,
            transaction,
            answer,
            counted: 0,
        }
    }

    /// Continues as far as possible without waiting.
    pub(crate) fn advance(&mut self, common: &mut Common<'_>, is_readable: bool) -> Need {
        if is_readable && let Err(lost) = self.receive(common) {
            return self.lose(common, lost);
        }
        let mut clock = Clock::default();
        let mut has_begun = false;
        loop {
            let stepped = match self.state {
                // Others get their turn even if a script never waits for anything.
                ClientState::Free if has_begun => return Need::Turn,
                ClientState::Free => Ok(self.choose(common, &mut clock)),
                ClientState::Due(at) => {
                    has_begun = true;
                    self.begin(common, &mut clock, at)
                }
                ClientState::Busy(at) => self.carry_out(common, &mut clock, at),
                ClientState::Moving(due) => self.move_on(common, &mut clock, due),
                ClientState::Over => return self.end(common),
            };
            match stepped {
                Ok(On(state)) => self.state = state,
                Ok(Wait(state, need)) => {
                    self.state = state;
                    return need;
                }
                Err(lost) => return self.lose(common, lost),
            }
        }
    }

    fn receive(&mut self, common: &Common<'_>) -> Result<(), Lost> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.wire.receive()?;
        common.watch_for_room(self.number, session)?;
        if !self.is_waiting_for_server() {
            // Nobody asked: it can only be the session's end, or nothing that matters.
            let session = self.session.as_mut();
            if let Some(session) = session {
                while session.wire.next()?.is_some() {}
            }
        }
        Ok(())
    }

    fn is_waiting_for_server(&self) -> bool {
        matches!(self.state, ClientState::Busy(At::Answer(_) | At::Parsing(_) | At::RollingBack(..)))
    }

    /// Ends the client. If it waits for the server, it ends as soon as the server answers.
    pub(crate) fn stop(&mut self, common: &Common<'_>) -> Need {
        if self.is_waiting_for_server() { Need::Answer } else { self.end(common) }
    }

    fn end(&mut self, common: &Common<'_>) -> Need {
        self.state = ClientState::Over;
        self.leaving = None;
        self.disconnect(common);
        Need::Nothing
    }

    fn disconnect(&mut self, common: &Common<'_>) {
        common.run.unregister(self.number);
        self.session = None;
    }

    /// Ends the client early because of an error, or has it connect to another target.
    fn lose(&mut self, common: &Common<'_>, Lost { why, class, remedy, has_no_session }: Lost) -> Need {
        // After an interruption nobody is interested any more.
        if !common.run.stop_signal.is_raised() {
            let at = match self.state {
                ClientState::Busy(at) => {
                    let script = self.transaction.script;
                    let last = common.run.plan.scripts[script].commands().len() - 1;
                    Some((script, at.command().min(last)))
                }
                _ => None,
            };
            if let Some((script, command)) = at {
                common.tally().command((script, command), |command| command.failures += 1);
                let at = (script, self.target);
                let phase =
                    common.tally().ended(at, TransactionOutcome::Other, self.transaction.tries - 1, None);
                self.count(phase);
            }
            if has_no_session
                && let Some(attempt) = common.run.targets.leave(self.target, self.has_moved_in_vain)
            {
                let due = match self.state {
                    ClientState::Due(due) => due,
                    _ => None,
                };
                self.disconnect(common);
                self.leaving = Some(Leaving { attempt, why });
                self.state = ClientState::Moving(due);
                return Need::Time(Instant::now() + LOOK);
            }
            let why = why + remedy;
            common.tell_lost(LostClient { client: self.number, at, why, class });
        }
        self.end(common)
    }

    /// Continues on another target as soon as it is connected there.
    fn move_on(&mut self, common: &Common<'_>, clock: &mut Clock, due: Option<Instant>) -> Stepped {
        let mut due = due;
        if due.is_some_and(|due| self.is_too_late(common, clock, due)) {
            self.count(common.tally().skipped(self.transaction.script, 1));
            due = None;
        }
        if self.is_over(common, clock) {
            // The rest of the schedule is counted there.
            return Ok(On(ClientState::Free));
        }
        let Some(Leaving { attempt, why }) = &mut self.leaving else { return Ok(On(ClientState::Free)) };
        let (target, connection) = match attempt.take() {
            None => return Ok(Wait(ClientState::Moving(due), Need::Time(clock.now() + LOOK))),
            Some(Ok(connected)) => connected,
            Some(Err(error)) => {
                return Err(Lost::by_machine(format!("{why}; no other target takes it: {error}")));
            }
        };
        let session = Session::new(connection, common.run);
        common.enlist(self.number, &session)?;
        let why = std::mem::take(why);
        common.tell_moved(Moved { at: clock.now(), from: self.target, to: target, why });
        self.leaving = None;
        self.has_moved_in_vain = true;
        self.session = Some(session);
        self.target = target;
        Ok(On(due.map_or(ClientState::Free, |due| ClientState::Due(Some(due)))))
    }

    fn is_over(&self, common: &Common<'_>, clock: &mut Clock) -> bool {
        self.has_enough(common) || common.timetable.is_over(clock.now())
    }

    /// Whether it is too late to begin a transaction that was scheduled for this time.
    fn is_too_late(&self, common: &Common<'_>, clock: &mut Clock, scheduled: Instant) -> bool {
        let patience = common.run.plan.request.patience(self.is_over(common, clock));
        patience.is_some_and(|patience| scheduled + patience < clock.now())
    }

    /// Whether it has no more transactions to count, or is to stop at once.
    fn has_enough(&self, common: &Common<'_>) -> bool {
        let enough = match common.run.plan.request.length {
            Length::Transactions(most) => self.counted >= most,
            Length::Time(_) => false,
        };
        enough || common.run.stop_signal.is_raised()
    }

    /// Chooses the next transaction, and when it begins.
    fn choose(&mut self, common: &mut Common<'_>, clock: &mut Clock) -> Next {
        let turn = common.timetable.turn(self.number);
        if clock.now() < turn {
            return Wait(ClientState::Free, Need::Time(turn));
        }
        if self.has_enough(common) {
            return On(ClientState::Over);
        }
        self.transaction.script = common.run.plan.scripts.choose(&mut common.choose);
        // Also after the end: transactions that were due before it count as skipped.
        while let Some(at) = common.next_start(clock) {
            let is_within = common.timetable.end().is_none_or(|end| at <= end);
            let is_over = self.is_over(common, clock);
            let is_too_late = self.is_too_late(common, clock, at);
            if !is_within || (!is_too_late && is_over) {
                return On(ClientState::Over);
            }
            if !is_too_late {
                return On(ClientState::Due(Some(at)));
            }
            self.count(common.tally().skipped(self.transaction.script, 1));
            if self.has_enough(common) {
                return On(ClientState::Over);
            }
            common.skip_late(clock, is_over, self.transaction.script);
        }
        On(if self.is_over(common, clock) { ClientState::Over } else { ClientState::Due(None) })
    }

    fn count(&mut self, phase: Phase) {
        self.counted += u64::from(phase == Phase::Measured);
    }

    /// Begins the transaction when it is due.
    fn begin(&mut self, common: &mut Common<'_>, clock: &mut Clock, at: Option<Instant>) -> Stepped {
        if let Some(due) = at {
            if clock.now() < due {
                return Ok(Wait(ClientState::Due(at), Need::Time(due)));
            }
            if self.is_over(common, clock) {
                return Ok(On(ClientState::Over));
            }
        }
        if self.session.is_none() {
            self.session = Some(common.connect(self.number, self.target)?);
            clock.forget();
        }
        let now = clock.now();
        let transaction = &mut self.transaction;
        transaction.scheduled = at.unwrap_or(now);
        transaction.tries = 1;
        transaction.pipeline = None;
        transaction.random = self.memory.random;
        if let Some(variables) = &mut transaction.variables {
            variables.clone_from(&self.memory.variables);
        }
        if let Some(due) = at {
            common.tally().began(transaction.script, now.saturating_duration_since(due));
        }
        Ok(On(ClientState::Busy(At::Command(0))))
    }

    /// Restores random numbers and variables to their state at the beginning of the transaction.
    pub(crate) fn rewind(&mut self) {
        self.memory.random = self.transaction.random;
        if let Some(variables) = &self.transaction.variables {
            self.memory.variables.clone_from(variables);
        }
    }

    /// Ends the transaction with this outcome.
    pub(crate) fn finish(&mut self, common: &Common<'_>, outcome: TransactionOutcome) -> Next {
        let Transaction { script, tries, .. } = self.transaction;
        self.has_moved_in_vain &= !matches!(outcome, TransactionOutcome::Succeeded(_));
        let phase = common.tally().ended(
            (script, self.target),
            outcome,
            tries - 1,
            common.run.plan.request.latency_limit,
        );
        self.count(phase);
        if common.run.plan.request.connecting == Connecting::EachTransaction {
            let began = Instant::now();
            self.disconnect(common);
            common.run.connecting_took(began.elapsed());
        }
        On(ClientState::Free)
    }
}
