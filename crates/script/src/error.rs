//! Errors in a script, with their place.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use crate::expression::{MOST_ARGUMENTS, MOST_LEVELS, MOST_OPERATIONS};

/// An error in a script, shown as pgbench does: place, problem, the line, and a caret below it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ScriptError {
    /// The script's name.
    pub script: String,
    /// Where: the line, from 1; 0 if it is the whole script.
    pub line: usize,
    /// Column in the line, in characters from 1, if known.
    pub column: Option<usize>,
    /// The problem.
    pub problem: Problem,
    /// The meta command that it is in, as written.
    pub command: Option<Box<str>>,
    /// The line.
    pub text: Box<str>,
}

/// An error in a script. The words are pgbench's where it finds the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// No commands at all.
    #[error("empty command list")]
    Empty,
    /// An unknown meta command.
    #[error("invalid command")]
    UnknownCommand,
    /// A meta command needs more.
    #[error("missing argument")]
    MissingArgument,
    /// `\shell` with nothing to run.
    #[error("missing command")]
    MissingCommand,
    /// A meta command takes less.
    #[error("too many arguments")]
    TooManyArguments,
    /// A meta command takes none.
    #[error("unexpected argument")]
    UnexpectedArgument,
    /// No variable can have this name, or no name begin so.
    #[error("invalid variable name ({0})")]
    VariableName(String),
    /// Of `\sleep`.
    #[error("invalid sleep time, must be an integer ({0})")]
    SleepTime(String),
    /// Of `\sleep`.
    #[error("unrecognized time unit, must be us, ms or s ({0})")]
    SleepUnit(String),
    /// An expression breaks off here, or cannot go on like this.
    #[error("syntax error")]
    Syntax,
    /// A character that expressions do not have.
    #[error("unexpected character ({0})")]
    Character(char),
    /// An integer of more than 64 bits.
    #[error("bigint constant overflow ({0})")]
    IntegerOverflow(String),
    /// Too large, or too small, for a double.
    #[error("double constant overflow ({0})")]
    DoubleOverflow(String),
    /// There is no such function.
    #[error("unexpected function name ({0})")]
    FunctionName(String),
    /// Too many or too few for this function.
    #[error("unexpected number of arguments ({0})")]
    ArgumentCount(&'static str),
    /// Of `least` and `greatest`.
    #[error("at least one argument expected ({0})")]
    NoArguments(&'static str),
    /// Of `least` and `greatest`.
    #[error("too many function arguments, maximum is {MOST_ARGUMENTS}")]
    TooManyFunctionArguments,
    /// More than is evaluated.
    #[error("expression is too long, maximum is {MOST_OPERATIONS} operations in {MOST_LEVELS} levels")]
    TooLong,
    /// `\gset` or `\aset` with nothing before, or again.
    #[error("\\{0} must follow an SQL command")]
    NothingToReceive(&'static str),
    /// `\if` is never ended.
    #[error("\\if without matching \\endif")]
    IfOpen,
    /// `\elif`, `\else` or `\endif` alone.
    #[error("\\{0} without matching \\if")]
    NoIf(&'static str),
    /// `\elif` or `\else` after `\else`.
    #[error("\\{0} after \\else")]
    AfterElse(&'static str),
    /// A quote, comment or parenthesis that is never closed.
    #[error("unterminated {0}")]
    Unterminated(&'static str),
    /// More variables than the protocol has parameters.
    #[error("statement has too many arguments (maximum is {0})")]
    TooManyParameters(usize),
    /// `\gset` or `\aset` of a statement whose result comes later.
    #[error("\\{0} is not allowed in pipeline mode")]
    ReceiveInPipeline(&'static str),
    /// `\startpipeline` again.
    #[error("already in pipeline mode")]
    InPipeline,
    /// `\syncpipeline` or `\endpipeline` before `\startpipeline`.
    #[error("not in pipeline mode")]
    NotInPipeline,
    /// `\endpipeline` is missing.
    #[error("end of script reached with pipeline open")]
    PipelineOpen,
}

impl Display for ScriptError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "{} for script \"{}\"", self.problem, self.script);
        }
        write!(f, "{}:{}: {}", self.script, self.line, self.problem)?;
        if let Some(command) = &self.command {
            write!(f, " in command \"{command}\"")?;
        }
        write!(f, "\n{}", self.text)?;
        if let Some(column) = self.column {
            // Tabs stay, so that the caret is below its character.
            let before = self.text.chars().take(column - 1).map(|c| if c == '\t' { c } else { ' ' });
            let indent: String = before.chain(std::iter::repeat(' ')).take(column - 1).collect();
            write!(f, "\n{indent}^ error found here")?;
        }
        Ok(())
    }
}
