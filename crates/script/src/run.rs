//! Carrying out what needs neither server nor clock.

use thiserror::Error;

use crate::command::{Action, Script};
use crate::evaluate::EvaluationError;
use crate::random::Random;
use crate::value::Value;
use crate::variables::Variables;

/// The state that one client's scripts work on.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its variables.
    pub variables: Variables,
    /// The numbers of its `random…()`. pgbench puts them back before it tries a transaction again.
    pub random: Random,
    pub(crate) debugged: Vec<Value>,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is done; the next command is this one.
    Next(usize),
    /// It is not one that can be carried out here.
    Yours,
}

/// A command that failed: pgbench then ends the client.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{error}")]
pub struct Failure {
    /// Index of the command.
    pub command: usize,
    /// The error.
    pub error: EvaluationError,
}

impl Client {
    /// With variables and random numbers of its own.
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
    /// Its expression has no value.
    ///
    /// # Panics
    ///
    /// There is no such command.
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

    /// Carries out commands from this one on until one comes that is left to the caller, whose index is
    /// returned; none at the script's end.
    ///
    /// # Errors
    ///
    /// A command's expression has no value.
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
