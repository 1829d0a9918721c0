//! Carries out the commands that need neither server nor clock.

use thiserror::Error;

use crate::command::{Action, Script};
use crate::evaluate::EvaluationError;
use crate::random::Random;
use crate::value::Value;
use crate::variables::Variables;

/// The state that one client's scripts work on.
#[derive(Clone, Debug)]
pub struct Client {
    /// Variables of the client.
    pub variables: Variables,
    /// The random numbers of its `random…()`. pgbench restores them before it tries a transaction
    /// again.
    pub random: Random,
    pub(crate) debugged: Vec<Value>,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The command is done; continue with this one.
    Next(usize),
    /// The command must be carried out by the caller.
    Yours,
}

/// A command that failed: pgbench then ends the client.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{error}")]
pub struct Failure {
    /// Index of the command in the script, from 0.
    pub command: usize,
    /// Why the command failed.
    pub error: EvaluationError,
}

impl Client {
    /// A client with variables and random numbers of its own.
    pub fn new(variables: Variables, random: Random) -> Self {
        Self { variables, random, debugged: Vec::new() }
    }

    /// The values of `debug()` since the last call.
    pub fn debugged(&mut self) -> impl Iterator<Item = Value> {
        self.debugged.drain(..)
    }
}

impl Script {
    /// Carries out a command if it is `\set`, `\if`, `\elif`, `\else` or `\endif`.
    ///
    /// # Errors
    ///
    /// If its expression has no value.
    ///
    /// # Panics
    ///
    /// If there is no such command.
    pub fn execute(&self, command: usize, client: &mut Client) -> Result<Step, EvaluationError> {
        Ok(match &self.commands[command].action {
            Action::Set { slot, expression } => {
                let value = client.evaluate(expression)?;
                client.variables.set(*slot, value);
                Step::Next(command + 1)
            }
            Action::Test { condition, otherwise } => {
                let taken = client.evaluate(condition)?.is_true();
                Step::Next(if taken { command + 1 } else { *otherwise })
            }
            Action::Jump(target) => Step::Next(*target),
            Action::Nothing => Step::Next(command + 1),
            _ => Step::Yours,
        })
    }

    /// Carries out commands from this one on. Returns the index of the first one that is left to
    /// the caller; none at the end of the script.
    ///
    /// # Errors
    ///
    /// If the expression of a command has no value.
    pub fn proceed(&self, mut command: usize, client: &mut Client) -> Result<Option<usize>, Failure> {
        while command < self.commands.len() {
            match self.execute(command, client).map_err(|error| Failure { command, error })? {
                Step::Next(next) => command = next,
                Step::Yours => return Ok(Some(command)),
            }
        }
        Ok(None)
    }
}
