//! A parsed script: commands in the order of the file. Conditions (`\if`) are jumps.

use std::ops::Range;
use std::time::Duration;

use thiserror::Error;

use crate::expression::Expression;
use crate::number;
use crate::variables::{Slot, Variables};

/// A script, ready to be carried out.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) commands: Vec<Command>,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) action: Action,
    pub(crate) number: usize,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The action of a command. Indexes refer to [`Script::commands`]; the index after the last command
/// is the end of the script.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a statement.
    Sql(Sql),
    /// `\set`: evaluates an expression into a variable.
    Set {
        /// The variable that gets the value.
        slot: Slot,
        /// Value of the variable.
        expression: Expression,
    },
    /// `\if`, or `\elif` if no branch before it was taken. Continues with the next command if the
    /// condition is true.
    Test {
        /// The condition, as it is evaluated each time.
        condition: Expression,
        /// The command to continue with if it is not true.
        otherwise: usize,
    },
    /// `\elif` or `\else` after a branch that was taken: continues after the `\endif`.
    Jump(usize),
    /// `\endif`: continues with the next command.
    Nothing,
    /// `\sleep`: the client waits.
    Sleep(Sleep),
    /// `\shell`: runs a command.
    Shell(Shell),
    /// `\setshell`: runs a command whose output becomes a variable's value.
    SetShell {
        /// The variable that gets the command's output.
        slot: Slot,
        /// The command whose output is read.
        shell: Shell,
    },
    /// `\startpipeline`: statements are sent without waiting for results.
    StartPipeline,
    /// `\syncpipeline`: sends a Sync within the pipeline.
    SyncPipeline,
    /// `\endpipeline`: waits for all results of the pipeline.
    EndPipeline,
}

impl Script {
    /// The file's name, or pgbench's name of a built-in script.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its weight among the scripts.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// All commands; there is at least one.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Whether it has pipelines, which the simple query protocol cannot do.
    pub fn has_pipeline(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.action, Action::StartPipeline))
    }
}

impl Command {
    /// The action of the command.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Its number in the script as pgbench counts, from 1. Both steps of an `\elif` have the same.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The line it begins on, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Its text as in the file; it may have several lines.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A statement, or several with `\;` between them, in the two forms that pgbench sends.
///
/// As in pgbench, variables are replaced wherever `:name` stands, in quotes and comments too.
#[derive(Clone, Debug)]
pub struct Sql {
    text: String,
    references: Vec<(Range<usize>, Slot)>,
    parameterised: String,
    parameters: Vec<Slot>,
    pub(crate) receive: Option<Receive>,
}

/// `\gset` or `\aset` after a statement: the result's columns become variables
/// ([`Names::receiving`](crate::Names::receiving)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The prefix of the variables' names before the columns' names.
    pub prefix: String,
    /// `\aset`: takes the last row of each statement that returns rows. `\gset`: takes the row of
    /// the last statement, which must return exactly one.
    pub every: bool,
}

impl Sql {
    /// `references` has the places of `:name` in the text, in order.
    pub(crate) fn new(text: String, references: Vec<(Range<usize>, Slot)>) -> Self {
        let mut parameterised = String::with_capacity(text.len());
        let mut done = 0;
        for (number, (place, _)) in (1..).zip(&references) {
            parameterised.push_str(&text[done..place.start]);
            parameterised.push('$');
            parameterised.push_str(itoa::Buffer::new().format::<usize>(number));
            done = place.end;
        }
        parameterised.push_str(&text[done..]);
        let parameters = references.iter().map(|(_, slot)| *slot).collect();
        Self { text, references, parameterised, parameters, receive: None }
    }

    /// The text as in the script, with `:name` for variables.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends the text with the variables' values, for the simple query protocol. `:name` stays if
    /// the variable is not defined.
    pub fn write(&self, variables: &Variables, out: &mut Vec<u8>) {
        let mut done = 0;
        for (place, slot) in &self.references {
            out.extend_from_slice(&self.text.as_bytes()[done..place.start]);
            if !variables.write(*slot, out) {
                out.extend_from_slice(&self.text.as_bytes()[place.clone()]);
            }
            done = place.end;
        }
        out.extend_from_slice(&self.text.as_bytes()[done..]);
    }

    /// The first variable that is not defined, so that [`write`](Self::write) leaves `:name` in the text.
    pub fn undefined(&self, variables: &Variables) -> Option<&str> {
        let (place, _) = self.references.iter().find(|(_, slot)| variables.text(*slot).is_none())?;
        self.text[place.clone()].strip_prefix(':')
    }

    /// The text with `$1`, `$2` … for variables, for the extended query protocol.
    pub fn parameterised(&self) -> &str {
        &self.parameterised
    }

    /// The variables of `$1`, `$2` …, at most 65535. Each value is sent as text
    /// ([`Variables::write`]), or as NULL if the variable is not defined.
    pub fn parameters(&self) -> &[Slot] {
        &self.parameters
    }

    /// The use of its results; none if they are discarded.
    pub fn receive(&self) -> Option<&Receive> {
        self.receive.as_ref()
    }
}

/// Duration of a `\sleep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub(crate) amount: Amount,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Number(i64),
    Variable(Slot),
}

/// Unit of a `\sleep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `us`.
    Microseconds,
    /// `ms`.
    Milliseconds,
    /// `s`, and where none is given.
    Seconds,
}

/// Why the length of a sleep is not known. The messages are pgbench's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SleepError {
    /// The variable is not defined.
    #[error("sleep: undefined variable \"{0}\"")]
    Undefined(String),
    /// The variable's text begins with no number.
    #[error("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")]
    Invalid {
        /// Name of the variable.
        name: String,
        /// Text of the variable.
        text: String,
    },
}

/// Longest sleep; longer ones end after this time, because an `Instant` cannot hold every sum.
const LONGEST_SLEEP: Duration = Duration::from_hours(100 * 366 * 24);

impl Sleep {
    /// The time to sleep; zero if the number is negative, and a hundred years at most.
    ///
    /// # Errors
    ///
    /// If the variable is not defined, or is not a number.
    pub fn duration(self, variables: &Variables) -> Result<Duration, SleepError> {
        let number = match self.amount {
            Amount::Number(number) => number,
            Amount::Variable(slot) => {
                let name = || variables.names().name(slot).to_owned();
                let text = variables.text(slot).ok_or_else(|| SleepError::Undefined(name()))?;
                let number = number::leading_integer(&text);
                if number == 0 && !text.starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(SleepError::Invalid { name: name(), text });
                }
                number
            }
        };
        let number = u64::try_from(number).unwrap_or(0);
        let length = match self.unit {
            Unit::Microseconds => Duration::from_micros(number),
            Unit::Milliseconds => Duration::from_millis(number),
            Unit::Seconds => Duration::from_secs(number),
        };
        Ok(length.min(LONGEST_SLEEP))
    }
}

/// A shell command.
#[derive(Clone, Debug)]
pub struct Shell {
    pub(crate) words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Text(String),
    Variable(Slot),
}

impl Shell {
    /// The words with blanks between them, variables replaced.
    ///
    /// # Errors
    ///
    /// The name of a variable that is not defined.
    pub fn command(&self, variables: &Variables) -> Result<String, crate::EvaluationError> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            words.push(match word {
                Word::Text(text) => text.clone(),
                Word::Variable(slot) => variables.text(*slot).ok_or_else(|| {
                    crate::EvaluationError::Undefined(variables.names().name(*slot).to_owned())
                })?,
            });
        }
        Ok(words.join(" "))
    }

    /// The 32-bit integer in the first line that a `\setshell` command printed; none if it is
    /// something else.
    pub fn printed(output: &str) -> Option<i64> {
        let line = output.lines().next()?;
        number::integer(line.trim_ascii_end()).map(|number| {
            #[expect(clippy::cast_possible_truncation, reason = "pgbench keeps an int of strtol's long")]
            i64::from(number as i32)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_print_integers() {
        assert_eq!(Shell::printed(" 42 \nmore"), Some(42));
        assert_eq!(Shell::printed("-7"), Some(-7));
        assert_eq!(Shell::printed("4294967297"), Some(1));
        assert_eq!(Shell::printed("42 apples"), None);
        assert_eq!(Shell::printed(""), None);
    }
}
