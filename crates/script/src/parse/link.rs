//! Links `\if`, `\elif`, `\else` and `\endif` by jumps (`CheckConditional` in `pgbench.c`).

use super::fault::{Fault, Origin};
use super::pipeline;
use crate::command::{Action, Command};
use crate::error::Problem;
use crate::expression::Expression;

/// A command as it was read.
pub(super) struct ReadCommand {
    pub(super) what: What,
    /// Offset of the first byte.
    pub(super) at: usize,
    /// Offset after the last byte.
    pub(super) end: usize,
}

/// A command, before the targets of conditions are known.
pub(super) enum What {
    Action(Action),
    If(Expression),
    Elif(Expression),
    Else,
    Endif,
}

/// An `\if` that is not ended.
struct Open {
    at: usize,
    /// Index of the last condition, if there was no `\else` after it.
    test: Option<usize>,
    /// Indexes of the jumps at the ends of branches.
    jumps: Vec<usize>,
}

/// The commands with their jumps.
pub(super) fn commands(parts: Vec<ReadCommand>, text: &str) -> Result<Vec<Command>, Fault> {
    let mut linker =
        Linker { text, places: Vec::new(), commands: Vec::new(), open: Vec::new(), counted: 0, line: 1 };
    for (number, part) in (1..).zip(parts) {
        linker.part(number, part)?;
    }
    if let Some(open) = linker.open.last() {
        return Err(Fault::new(Problem::IfOpen, Origin::Character(open.at)));
    }
    pipeline::check(&linker.commands, &linker.places)?;
    Ok(linker.commands)
}

struct Linker<'a> {
    text: &'a str,
    /// Offsets of the commands in the script.
    places: Vec<usize>,
    commands: Vec<Command>,
    open: Vec<Open>,
    /// Offset up to which lines have been counted, and the number of the line there.
    counted: usize,
    line: usize,
}

impl Linker<'_> {
    fn part(&mut self, number: usize, ReadCommand { what, at, end }: ReadCommand) -> Result<(), Fault> {
        let next = self.commands.len();
        // Parts come in order: a long script is counted once.
        self.line += self.text[self.counted..at].matches('\n').count();
        self.counted = at;
        let line = self.line;
        let mut push = |action: Action| {
            let text = self.text[at..end].trim_end().to_owned();
            self.places.push(at);
            self.commands.push(Command { action, number, line, text });
        };
        match what {
            What::Action(action) => push(action),
            What::If(condition) => {
                push(Action::Test { condition, otherwise: 0 });
                self.open.push(Open { at, test: Some(next), jumps: Vec::new() });
            }
            What::Elif(condition) => {
                push(Action::Jump(0));
                push(Action::Test { condition, otherwise: 0 });
                let failed = self.branch("elif", at, next)?;
                self.lead(failed, next + 1);
                self.open.last_mut().expect("there is one").test = Some(next + 1);
            }
            What::Else => {
                push(Action::Jump(0));
                let failed = self.branch("else", at, next)?;
                self.lead(failed, next + 1);
            }
            What::Endif => {
                push(Action::Nothing);
                let open = self.open.pop().ok_or_else(|| no_if("endif", at))?;
                for from in open.jumps.into_iter().chain(open.test) {
                    self.lead(from, next);
                }
            }
        }
        Ok(())
    }

    /// Ends a branch of the innermost `\if` with the jump at `end`. Returns the test that leads to
    /// the next branch.
    fn branch(&mut self, name: &'static str, at: usize, end: usize) -> Result<usize, Fault> {
        let open = self.open.last_mut().ok_or_else(|| no_if(name, at))?;
        open.jumps.push(end);
        let after_else = || Fault::new(Problem::AfterElse(name), Origin::Character(at));
        open.test.take().ok_or_else(after_else)
    }

    /// Sets the target of a jump or of a failed test.
    fn lead(&mut self, from: usize, to: usize) {
        match &mut self.commands[from].action {
            Action::Jump(target) | Action::Test { otherwise: target, .. } => *target = to,
            _ => unreachable!("only these have a target"),
        }
    }
}

fn no_if(name: &'static str, at: usize) -> Fault {
    Fault::new(Problem::NoIf(name), Origin::Character(at))
}
