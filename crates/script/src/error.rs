//! Errors in a script, with their place.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use crate::expression::{MOST_ARGUMENTS, MOST_LEVELS, MOST_OPERATIONS};

/// An error in a script, shown as pgbench does: place, problem, the line, and a caret below it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ScriptError {
    /// The script's name.
    pub script: String,
    /// The line, from 1; 0 if the error is about the whole script.
    pub line: usize,
    /// Column in the line, in characters from 1, if known.
    pub column: Option<usize>,
    /// The problem that was found.
    pub problem: Problem,
    /// The meta command that it is in, as written.
    pub command: Option<Box<str>>,
    /// The text of the line.
    pub text: Box<str>,
}

/// An error in a script. The words are pgbench's where it finds the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The script has no commands.
    #[error("empty command list")]
    Empty,
    /// An unknown meta command.
    #[error("invalid command")]
    UnknownCommand,
    /// A meta command has too few arguments.
    #[error("missing argument")]
    MissingArgument,
    /// `\shell` with nothing to run.
    #[error("missing command")]
    MissingCommand,
    /// A meta command has too many arguments.
    #[error("too many arguments")]
    TooManyArguments,
    /// A meta command takes no arguments.
    #[error("unexpected argument")]
    UnexpectedArgument,
    /// Not a valid name of a variable, or the beginning of one.
    #[error("invalid variable name ({0})")]
    VariableName(String),
    /// An invalid time of `\sleep`.
    #[error("invalid sleep time, must be an integer ({0})")]
    SleepTime(String),
    /// An invalid unit of `\sleep`.
    #[error("unrecognized time unit, must be us, ms or s ({0})")]
    SleepUnit(String),
    /// The expression ends here, or cannot continue like this.
    #[error("syntax error")]
    Syntax,
    /// A character that expressions do not have.
    #[error("unexpected character ({0})")]
    Character(char),
    /// An integer of more than 64 bits.
    #[error("bigint constant overflow ({0})")]
    IntegerOverflow(String),
    /// A number that is too large or too small for a double.
    #[error("double constant overflow ({0})")]
    DoubleOverflow(String),
    /// There is no such function.
    #[error("unexpected function name ({0})")]
    FunctionName(String),
    /// A function has too many or too few arguments.
    #[error("unexpected number of arguments ({0})")]
    ArgumentCount(&'static str),
    /// `least` or `greatest` without arguments.
    #[error("at least one argument expected ({0})")]
    NoArguments(&'static str),
    /// `least` or `greatest` with too many arguments.
    #[error("too many function arguments, maximum is {MOST_ARGUMENTS}")]
    TooManyFunctionArguments,
    /// The expression has too many operations.
    #[error("expression is too long, maximum is {MOST_OPERATIONS} operations in {MOST_LEVELS} levels")]
    TooLong,
    /// `\gset` or `\aset` without a statement before it, or twice.
    #[error("\\{0} must follow an SQL command")]
    NothingToReceive(&'static str),
    /// `\if` without `\endif`.
    #[error("\\if without matching \\endif")]
    IfOpen,
    /// `\elif`, `\else` or `\endif` without `\if`.
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
    /// `\gset` or `\aset` in a pipeline, where the result comes later.
    #[error("\\{0} is not allowed in pipeline mode")]
    ReceiveInPipeline(&'static str),
    /// `\startpipeline` within a pipeline.
    #[error("already in pipeline mode")]
    InPipeline,
    /// `\syncpipeline` or `\endpipeline` outside of a pipeline.
    #[error("not in pipeline mode")]
    NotInPipeline,
    /// `\endpipeline` is missing.
    #[error("end of script reached with pipeline open")]
    PipelineOpen,
}

impl Display for ScriptError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            let remedy = if self.problem == Problem::Empty { ": write an SQL command into it" } else { "" };
            return write!(f, "{} for script \"{}\"{remedy}", self.problem, self.script);
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
