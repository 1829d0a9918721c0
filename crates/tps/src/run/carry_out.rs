//! Carries a transaction through the commands of its script.

use failure::Class;
use script::{Action, Client as Memory, Command, Sql, Step};
use tokio_postgres::error::SqlState;

use crate::request::Protocol;
use crate::run::answer::{CompleteAnswer, Problem};
use crate::run::client::{At, Client, ClientState, Lost, Need, Next, Stepped};
use crate::run::clock::Clock;
use crate::run::job::Common;
use crate::run::session::Session;
use crate::run::shell;
use crate::run::tally::TransactionOutcome;
use crate::run::wire::TransactionStatus;

use Next::{On, Wait};

impl Client {
    pub(crate) fn carry_out(&mut self, common: &mut Common<'_>, clock: &mut Clock, at: At) -> Stepped {
        match at {
            At::Command(command) => self.start_command(common, clock, command),
            At::Asleep { until, .. } if clock.now() < until => {
                Ok(Wait(ClientState::Busy(at), Need::Time(until)))
            }
            At::Asleep { command, .. } => Ok(self.end_command(common, clock, command, command + 1)),
            At::Answer(command) | At::Parsing(command) | At::RollingBack(command, _) => {
                match self.read_answer(common, command)? {
                    None => Ok(Wait(ClientState::Busy(at), Need::Answer)),
                    Some(CompleteAnswer { status, problem }) => {
                        self.session()?.status = status;
                        self.answered(common, clock, at, problem)
                    }
                }
            }
        }
    }

    fn session(&mut self) -> Result<&mut Session, Lost> {
        self.session.as_mut().ok_or_else(|| Lost::by_machine("the client has no connection to the server"))
    }

    fn start_command(&mut self, common: &mut Common<'_>, clock: &mut Clock, command: usize) -> Stepped {
        let run = common.run;
        let script = &run.plan.scripts[self.transaction.script];
        let Some(next) = script.commands().get(command) else {
            return self.end_of_script(common, clock);
        };
        if run.stop_signal.is_raised() {
            return Ok(On(ClientState::Over));
        }
        if run.plan.request.statements {
            self.transaction.command_began = clock.now();
        }
        match next.action() {
            Action::Sql(sql) => self.send(common, clock, command, sql),
            Action::Sleep(sleep) => {
                let until = clock.now() + sleep.duration(&self.memory.variables)?;
                Ok(On(ClientState::Busy(At::Asleep { command, until })))
            }
            action @ (Action::Shell(_) | Action::SetShell { .. }) => {
                run_shell(action, &mut self.memory)?;
                clock.forget();
                Ok(self.end_command(common, clock, command, command + 1))
            }
            Action::StartPipeline => self.start_pipeline(common, clock, command),
            Action::SyncPipeline => self.sync_pipeline(common, clock, command),
            Action::EndPipeline => self.end_pipeline(common, command),
            Action::Set { .. } | Action::Test { .. } | Action::Jump(_) | Action::Nothing => {
                let step = script.execute(command, &mut self.memory);
                common.tell_debugged(self.number, (self.transaction.script, command), &mut self.memory);
                clock.forget();
                match step? {
                    Step::Next(next) => Ok(self.end_command(common, clock, command, next)),
                    Step::Yours => Err(Lost::by_script("a command that pgrig cannot run")),
                }
            }
        }
    }

    /// Sends a statement, or adds it to the pipeline.
    fn send(&mut self, common: &mut Common<'_>, clock: &mut Clock, command: usize, sql: &Sql) -> Stepped {
        let (run, script, in_pipeline) =
            (common.run, self.transaction.script, self.transaction.pipeline.is_some());
        if in_pipeline && sql.receive().is_some() {
            return Err(Lost::by_script("\\gset and \\aset are not allowed in a pipeline"));
        }
        let Self { session: Some(session), memory, .. } = self else {
            return self.session().map(|_| On(ClientState::Over));
        };
        session.compose(run, (script, command), sql, &memory.variables);
        if in_pipeline {
            return Ok(self.end_command(common, clock, command, command + 1));
        }
        if run.plan.request.protocol != Protocol::Simple {
            session.wire.sync();
        }
        self.wait_for_answer(common, 1, At::Answer(command))
    }

    /// Sends the composed messages, and waits for the answer to `ready` Query or Sync messages.
    fn wait_for_answer(&mut self, common: &Common<'_>, ready: u32, at: At) -> Stepped {
        let number = self.number;
        let session = self.session()?;
        session.wire.send()?;
        common.watch_for_room(number, session)?;
        self.answer.expect(ready);
        Ok(Wait(ClientState::Busy(at), Need::Answer))
    }

    fn start_pipeline(&mut self, common: &mut Common<'_>, clock: &mut Clock, command: usize) -> Stepped {
        if self.transaction.pipeline.is_some() {
            return Err(Lost::by_script("already in a pipeline: end it first with \\endpipeline"));
        }
        let (run, script) = (common.run, self.transaction.script);
        if run.plan.request.protocol == Protocol::Prepared {
            let session = self.session()?;
            if session.parse_pipeline(run, script, command + 1) {
                session.wire.sync();
                return self.wait_for_answer(common, 1, At::Parsing(command));
            }
        }
        self.transaction.pipeline = Some(0);
        Ok(self.end_command(common, clock, command, command + 1))
    }

    /// Adds a Sync to the pipeline, and returns the number of Syncs.
    fn add_sync(&mut self) -> Result<u32, Lost> {
        let syncs = self
            .transaction
            .pipeline
            .ok_or_else(|| Lost::by_script("not in a pipeline: begin one with \\startpipeline"))?
            + 1;
        self.transaction.pipeline = Some(syncs);
        self.session()?.wire.sync();
        Ok(syncs)
    }

    fn sync_pipeline(&mut self, common: &Common<'_>, clock: &mut Clock, command: usize) -> Stepped {
        self.add_sync()?;
        Ok(self.end_command(common, clock, command, command + 1))
    }

    fn end_pipeline(&mut self, common: &Common<'_>, command: usize) -> Stepped {
        let syncs = self.add_sync()?;
        self.transaction.pipeline = None;
        self.wait_for_answer(common, syncs, At::Answer(command))
    }

    /// Reads the part of the answer that has arrived. None as long as it is incomplete.
    fn read_answer(&mut self, common: &Common<'_>, command: usize) -> Result<Option<CompleteAnswer>, Lost> {
        let Self { session: Some(session), answer, memory, transaction, .. } = self else {
            return Err(Lost::by_machine("the client has no connection to the server"));
        };
        let commands = common.run.plan.scripts[transaction.script].commands();
        let receive = match commands[command].action() {
            Action::Sql(sql) => sql.receive(),
            _ => None,
        };
        let prepared = &mut session.prepared;
        let complete =
            answer.read(&mut session.wire, receive, &mut memory.variables, || prepared.parsed())?;
        if complete.is_some() {
            prepared.answered();
        }
        Ok(complete)
    }

    /// Handles a complete answer.
    fn answered(
        &mut self,
        common: &mut Common<'_>,
        clock: &mut Clock,
        at: At,
        problem: Option<Problem>,
    ) -> Stepped {
        match (at, problem) {
            (At::Parsing(command), None) => {
                self.transaction.pipeline = Some(0);
                Ok(self.end_command(common, clock, command, command + 1))
            }
            (At::RollingBack(command, outcome), None) => {
                Ok(self.retry_or_give_up(common, clock, command, outcome))
            }
            (At::RollingBack(..), Some(problem)) => {
                Err(Lost::by_machine(format!("could not roll back after an error: {problem}")))
            }
            (At::Answer(command), None) => Ok(self.end_command(common, clock, command, command + 1)),
            (At::Answer(command) | At::Parsing(command), Some(problem)) => {
                self.failed(common, clock, command, &problem)
            }
            (At::Command(_) | At::Asleep { .. }, _) => Err(Lost::by_script("an answer without a query")),
        }
    }

    fn end_command(&mut self, common: &Common<'_>, clock: &mut Clock, command: usize, next: usize) -> Next {
        if common.run.plan.request.statements {
            let took = clock.now().saturating_duration_since(self.transaction.command_began);
            let at = (self.transaction.script, command);
            common.tally().command(at, |command| command.latency.record(took));
        }
        On(ClientState::Busy(At::Command(next)))
    }

    /// Handles a failed statement.
    fn failed(
        &mut self,
        common: &mut Common<'_>,
        clock: &mut Clock,
        command: usize,
        problem: &Problem,
    ) -> Stepped {
        if common.run.stop_signal.is_raised() {
            return Ok(On(ClientState::Over));
        }
        let Some(outcome) = problem.outcome() else { return Err(self.lost_by(common, command, problem)) };
        let session = self.session()?;
        if session.status == TransactionStatus::Idle {
            return Ok(self.retry_or_give_up(common, clock, command, outcome));
        }
        session.wire.query(|out| out.extend_from_slice(b"ROLLBACK"));
        self.wait_for_answer(common, 1, At::RollingBack(command, outcome))
    }

    /// The end of a client because of a statement that failed. If a variable of the statement is not defined, the server reads `:name`.
    fn lost_by(&self, common: &Common<'_>, command: usize, problem: &Problem) -> Lost {
        let run = common.run;
        let script = &run.plan.scripts[self.transaction.script];
        let action = script.commands().get(command).map(Command::action);
        match action {
            Some(Action::Sql(sql))
                if run.plan.request.protocol == Protocol::Simple && problem.is_at_a_colon() =>
            {
                let name = sql.undefined(&self.memory.variables);
                name.map_or_else(|| Lost::by(problem), |name| Lost::by_undefined(problem, name))
            }
            _ => Lost::by(problem),
        }
    }

    fn retry_or_give_up(
        &mut self,
        common: &mut Common<'_>,
        clock: &mut Clock,
        command: usize,
        outcome: TransactionOutcome,
    ) -> Next {
        let at = (self.transaction.script, command);
        if self.may_retry(common, clock) {
            common.tally().command(at, |command| command.retries += 1);
            self.transaction.tries += 1;
            self.rewind();
            return On(ClientState::Busy(At::Command(0)));
        }
        common.tally().command(at, |command| command.failures += 1);
        self.finish(common, outcome)
    }

    /// Whether the transaction may be tried again: tries are left, it can still meet the latency
    /// limit, and the time is not over.
    fn may_retry(&self, common: &Common<'_>, clock: &mut Clock) -> bool {
        let request = &common.run.plan.request;
        let is_last = request.max_tries != 0 && self.transaction.tries >= request.max_tries;
        let is_late = |limit, clock: &mut Clock| clock.now() > self.transaction.scheduled + limit;
        !is_last
            && !request.latency_limit.is_some_and(|limit| is_late(limit, clock))
            && !common.timetable.is_over(clock.now())
            && !common.run.stop_signal.is_raised()
    }

    fn end_of_script(&mut self, common: &Common<'_>, clock: &mut Clock) -> Stepped {
        if self.transaction.pipeline.is_some() {
            return Err(Lost::by_script("the script ended with a pipeline open: end it with \\endpipeline"));
        }
        if self.session()?.status != TransactionStatus::Idle {
            let why = "the script ended within a transaction block: end it with COMMIT or ROLLBACK";
            return Err(Lost::by_script(why));
        }
        let took = clock.now().saturating_duration_since(self.transaction.scheduled);
        Ok(self.finish(common, TransactionOutcome::Succeeded(took)))
    }
}

impl Problem {
    /// Whether the script has parameters (`$1`), for which there are no values. pgrig's own messages give none, so an ERROR
    /// about the protocol has no other cause.
    pub(crate) fn lacks_parameters(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.code == SqlState::UNDEFINED_PARAMETER
            || error.code == SqlState::PROTOCOL_VIOLATION && error.severity == "ERROR"
    }

    /// Whether the script or the server is the cause.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Server(_) if self.lacks_parameters() => Class::Request,
            Self::Server(error) => error.class(),
            Self::Results(_) => Class::Request,
        }
    }

    /// The outcome of the transaction if it is not tried again; none if the client cannot continue.
    fn outcome(&self) -> Option<TransactionOutcome> {
        let Self::Server(error) = self else { return None };
        match error.code {
            SqlState::T_R_SERIALIZATION_FAILURE => Some(TransactionOutcome::Serialization),
            SqlState::T_R_DEADLOCK_DETECTED => Some(TransactionOutcome::Deadlock),
            _ => None,
        }
    }
}

fn run_shell(action: &Action, memory: &mut Memory) -> Result<(), Lost> {
    match action {
        Action::Shell(command) => {
            shell::carry_out(&command.command(&memory.variables)?).map_err(Lost::by_script)
        }
        Action::SetShell { slot, shell: command } => {
            let number = shell::ask(&command.command(&memory.variables)?).map_err(Lost::by_script)?;
            memory.variables.set(*slot, script::Value::Integer(number));
            Ok(())
        }
        _ => Ok(()),
    }
}
