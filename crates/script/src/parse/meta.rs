//! Meta commands (`process_backslash_command` in `pgbench.c`).

use super::expression;
use super::fault::{Fault, Origin};
use super::link::What;
use super::words::{Word, Words};
use crate::command::{self, Action, Amount, Receive, Shell, Sleep, Unit};
use crate::error::Problem;
use crate::number;
use crate::variables::{Names, is_valid};

/// A meta command.
pub(super) enum Meta {
    What(What),
    /// `\gset` or `\aset`, which belongs to the statement before.
    Receive(Receive),
}

/// Reads the meta command whose backslash is at this offset. Returns also the offset after it. A
/// lone backslash is no command.
pub(super) fn read(text: &str, at: usize, names: &mut Names) -> Result<(Option<Meta>, usize), Fault> {
    let mut words = Words::from(text, at + 1);
    let Some(name) = words.next() else {
        return Ok((None, words.place()));
    };
    Command { text, at, words, names }
        .read(&name.text.to_ascii_lowercase())
        .map(|(meta, end)| (Some(meta), end))
        .map_err(|fault| fault.within(name.text))
}

struct Command<'a, 'n> {
    text: &'a str,
    at: usize,
    words: Words<'a>,
    names: &'n mut Names,
}

impl<'a> Command<'a, '_> {
    fn read(mut self, name: &str) -> Result<(Meta, usize), Fault> {
        if let "set" | "if" | "elif" = name {
            let (what, end) = self.expression(name)?;
            return Ok((Meta::What(what), end));
        }
        let arguments: Vec<Word<'a>> = self.words.by_ref().collect();
        let action = |action| Ok(Meta::What(What::Action(action)));
        let meta = match name {
            "sleep" => action(Action::Sleep(self.sleep(&arguments)?)),
            "setshell" => action(self.set_shell(&arguments)?),
            "shell" if arguments.is_empty() => Err(self.fault(Problem::MissingCommand)),
            "shell" => action(Action::Shell(self.shell(&arguments))),
            "gset" | "aset" => self.receive(name == "aset", &arguments).map(Meta::Receive),
            "else" => Ok(Meta::What(What::Else)),
            "endif" => Ok(Meta::What(What::Endif)),
            "startpipeline" => action(Action::StartPipeline),
            "syncpipeline" => action(Action::SyncPipeline),
            "endpipeline" => action(Action::EndPipeline),
            _ => Err(self.fault(Problem::UnknownCommand)),
        }?;
        if let ("else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline", [first, ..]) =
            (name, arguments.as_slice())
        {
            return Err(Fault::new(Problem::UnexpectedArgument, Origin::Character(first.at)));
        }
        Ok((meta, self.words.place()))
    }

    /// An error in the command as a whole.
    fn fault(&self, problem: Problem) -> Fault {
        Fault::new(problem, Origin::Line(self.at))
    }

    fn expression(&mut self, name: &str) -> Result<(What, usize), Fault> {
        let variable = match name {
            "set" => {
                let word = self.words.next().ok_or_else(|| self.fault(Problem::MissingArgument))?;
                check_name(word)?;
                Some(self.names.intern(word.text))
            }
            _ => None,
        };
        let (expression, end) = expression::read(self.text, self.words.place(), self.names)?;
        let what = match variable {
            Some(slot) => What::Action(Action::Set { slot, expression }),
            None if name == "if" => What::If(expression),
            None => What::Elif(expression),
        };
        Ok((what, end))
    }

    /// `5 ms`, `5ms`, `5`, `:variable` or `:variable ms`.
    fn sleep(&mut self, arguments: &[Word<'a>]) -> Result<Sleep, Fault> {
        let (time, unit) = match arguments {
            [] => return Err(self.fault(Problem::MissingArgument)),
            [time] => (*time, None),
            [time, unit] => (*time, Some(*unit)),
            [_, _, third, ..] => {
                return Err(Fault::new(Problem::TooManyArguments, Origin::Character(third.at)));
            }
        };
        if let Some(name) = time.text.strip_prefix(':') {
            let amount = Amount::Variable(self.names.intern(name));
            return Ok(Sleep { amount, unit: unit.map_or(Ok(Unit::Seconds), sleep_unit)? });
        }
        let sign = usize::from(time.text.starts_with(['+', '-']));
        let digits = time.text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        let (number, rest) = time.text.split_at(sign + digits);
        let unit = match (rest, unit) {
            ("", unit) => unit,
            (_, None) => Some(Word { text: rest, at: time.at + number.len() }),
            (_, Some(_)) => return Err(sleep_time(time)),
        };
        if digits == 0 {
            return Err(sleep_time(time));
        }
        let amount = Amount::Number(number::leading_integer(number));
        Ok(Sleep { amount, unit: unit.map_or(Ok(Unit::Seconds), sleep_unit)? })
    }

    fn set_shell(&mut self, arguments: &[Word<'a>]) -> Result<Action, Fault> {
        let [variable, command @ ..] = arguments else {
            return Err(self.fault(Problem::MissingArgument));
        };
        if command.is_empty() {
            return Err(self.fault(Problem::MissingArgument));
        }
        check_name(*variable)?;
        Ok(Action::SetShell { slot: self.names.intern(variable.text), shell: self.shell(command) })
    }

    /// A word that begins with one colon is a variable; of a word that begins with two colons, one
    /// is removed.
    fn shell(&mut self, arguments: &[Word<'a>]) -> Shell {
        let words = arguments.iter().map(|word| match word.text.strip_prefix(':') {
            None => command::Word::Text(word.text.to_owned()),
            Some(rest) if rest.starts_with(':') => command::Word::Text(rest.to_owned()),
            Some(name) => command::Word::Variable(self.names.intern(name)),
        });
        Shell { words: words.collect() }
    }

    fn receive(&self, every: bool, arguments: &[Word<'a>]) -> Result<Receive, Fault> {
        match arguments {
            [] => Ok(Receive { prefix: String::new(), every }),
            [prefix] => {
                check_name(*prefix)?;
                Ok(Receive { prefix: prefix.text.to_owned(), every })
            }
            _ => Err(self.fault(Problem::TooManyArguments)),
        }
    }
}

fn check_name(word: Word<'_>) -> Result<(), Fault> {
    if is_valid(word.text) {
        return Ok(());
    }
    Err(Fault::new(Problem::VariableName(word.text.to_owned()), Origin::Character(word.at)))
}

fn sleep_time(word: Word<'_>) -> Fault {
    Fault::new(Problem::SleepTime(word.text.to_owned()), Origin::Character(word.at))
}

fn sleep_unit(word: Word<'_>) -> Result<Unit, Fault> {
    match word.text.to_ascii_lowercase().as_str() {
        "us" => Ok(Unit::Microseconds),
        "ms" => Ok(Unit::Milliseconds),
        "s" => Ok(Unit::Seconds),
        _ => Err(Fault::new(Problem::SleepUnit(word.text.to_owned()), Origin::Character(word.at))),
    }
}
