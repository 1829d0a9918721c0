//! A client's connection, with the known state of the server's session.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use script::{Action, Script, Sql, Variables};
use socket2::SockRef;

use crate::request::Protocol;
use crate::run::Run;
use crate::run::wire::{TransactionStatus, Wire};
use connect::{Canceller, RawConnection};

/// The connection of a client, and its state.
pub(crate) struct Session {
    pub(crate) wire: Wire,
    /// Transaction status of the last answer.
    pub(crate) status: TransactionStatus,
    pub(crate) prepared: Prepared,
    /// Whether the socket takes no more at the moment.
    pub(crate) is_full: bool,
}

/// A session's prepared statements, each named by its script and command.
pub(crate) struct Prepared {
    known: Vec<Vec<bool>>,
    /// Statements that the server has been asked to parse, in order.
    asked: VecDeque<(usize, usize)>,
}

/// Ends the work of a session from another thread: cancels its statement, or closes its connection.
pub(crate) struct AbortHandle {
    pub(crate) canceller: Canceller,
    socket: OwnedFd,
}

impl AbortHandle {
    /// Closes the connection for both sides.
    pub(crate) fn close(&self) {
        // If the connection is closed, there is nothing to do.
        let _ = SockRef::from(&self.socket).shutdown(Shutdown::Both);
    }
}

impl Session {
    pub(crate) fn new(connection: RawConnection, run: &Run) -> Self {
        let known = run.plan.scripts.iter().map(|script| vec![false; script.commands().len()]);
        Self {
            wire: Wire::new(connection),
            status: TransactionStatus::Idle,
            prepared: Prepared { known: known.collect(), asked: VecDeque::new() },
            is_full: false,
        }
    }

    pub(crate) fn abort_handle(&self) -> io::Result<AbortHandle> {
        let socket = self.wire.as_fd().try_clone_to_owned()?;
        Ok(AbortHandle { canceller: self.wire.canceller(), socket })
    }

    /// Composes a statement in the run's protocol, without the Sync that an extended one needs.
    pub(crate) fn compose(&mut self, run: &Run, at: (usize, usize), sql: &Sql, variables: &Variables) {
        match run.plan.request.protocol {
            Protocol::Simple => self.wire.query(|out| sql.write(variables, out)),
            Protocol::Extended => {
                self.wire.parse("", sql.parameterised());
                self.execute("", sql, variables);
            }
            Protocol::Prepared => {
                self.parse(run, at, sql);
                self.execute(run.statement(at), sql, variables);
            }
        }
    }

    /// Composes the same messages as libpq, so that the server does the same work as for pgbench.
    fn execute(&mut self, statement: &str, sql: &Sql, variables: &Variables) {
        self.wire.bind(statement, sql.parameters(), |slot, out| variables.write(*slot, out));
        self.wire.describe();
        self.wire.execute();
    }

    /// Composes a Parse, unless the server knows the statement.
    fn parse(&mut self, run: &Run, at: (usize, usize), sql: &Sql) {
        if self.prepared.ask(at) {
            self.wire.parse(run.statement(at), sql.parameterised());
        }
    }

    /// Composes Parse messages for the statements of the pipeline that begins at this command.
    /// Within the pipeline, a Parse would take a snapshot, and BEGIN ISOLATION LEVEL must come
    /// before any snapshot. False if the server knows all of them.
    pub(crate) fn parse_pipeline(&mut self, run: &Run, script: usize, start: usize) -> bool {
        let commands = Script::commands(&run.plan.scripts[script]).iter().enumerate().skip(start);
        for (command, action) in commands.map(|(index, command)| (index, command.action())) {
            match action {
                Action::EndPipeline => break,
                Action::Sql(sql) => self.parse(run, (script, command), sql),
                _ => {}
            }
        }
        !self.prepared.asked.is_empty()
    }
}

impl Prepared {
    /// Whether the server has to parse the statement; if so, takes note that it has been asked to.
    fn ask(&mut self, (script, command): (usize, usize)) -> bool {
        let is_new = !self.known[script][command] && !self.asked.contains(&(script, command));
        if is_new {
            self.asked.push_back((script, command));
        }
        is_new
    }

    /// Takes note that the server has parsed the next statement.
    pub(crate) fn parsed(&mut self) {
        if let Some((script, command)) = self.asked.pop_front() {
            self.known[script][command] = true;
        }
    }

    /// Forgets the statements that the server was asked to parse and has not parsed: it will not do
    /// so any more.
    pub(crate) fn answered(&mut self) {
        self.asked.clear();
    }
}
