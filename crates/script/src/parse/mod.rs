//! Reads scripts (`ParseScript` in `pgbench.c`): statements and meta commands alternately; then
//! [`link`] links the conditions.

mod expression;
mod fault;
mod link;
mod meta;
mod pipeline;
mod statement;
mod token;
mod words;

use fault::{Fault, Origin};
use link::{ReadCommand, What};
use meta::Meta;
use statement::{Ended, Statements};

use crate::command::{Action, Script, Sql};
use crate::error::{Problem, ScriptError};
use crate::source::Source;
use crate::variables::{Names, begins_name, is_in_name};

/// Most parameters that the protocol's Bind message can have.
const MOST_PARAMETERS: usize = u16::MAX as usize;

/// Parses a script, and adds the names of its variables to `names`.
pub(crate) fn script(source: &Source, names: &mut Names) -> Result<Script, ScriptError> {
    read(&source.text, names)
        .and_then(|parts| link::commands(parts, &source.text))
        .map(|commands| Script { name: source.name.clone(), weight: source.weight, commands })
        .map_err(|fault| fault.of(source))
}

/// Reads all commands. `\gset` and `\aset` are joined to their statements.
fn read(text: &str, names: &mut Names) -> Result<Vec<ReadCommand>, Fault> {
    let mut statements = Statements::of(text);
    let mut parts: Vec<ReadCommand> = Vec::new();
    loop {
        let (statement, ended) = statements.read()?;
        if let Some(statement) = statement {
            let what = What::Action(Action::Sql(sql(statement.text, statement.at, names)?));
            parts.push(ReadCommand { what, at: statement.at, end: statement.end });
        }
        match ended {
            Ended::Semicolon => {}
            Ended::Script if parts.is_empty() => return Err(Fault::new(Problem::Empty, Origin::Script)),
            Ended::Script => return Ok(parts),
            Ended::Backslash => {
                let at = statements.place();
                let (meta, end) = meta::read(text, at, names)?;
                statements.go_on(end);
                match meta {
                    None => {}
                    Some(Meta::What(what)) => parts.push(ReadCommand { what, at, end }),
                    Some(Meta::Receive(receive)) => {
                        let name = if receive.every { "aset" } else { "gset" };
                        let before = match parts.last_mut().map(|part| &mut part.what) {
                            Some(What::Action(Action::Sql(sql))) if sql.receive.is_none() => sql,
                            _ => {
                                return Err(Fault::new(
                                    Problem::NothingToReceive(name),
                                    Origin::Character(at),
                                ));
                            }
                        };
                        before.receive = Some(receive);
                    }
                }
            }
        }
    }
}

/// A statement with the places of `:name` in it (`parseVariable` and its callers). Quotes and
/// comments are not considered; a name after several colons is no variable.
fn sql(text: String, at: usize, names: &mut Names) -> Result<Sql, Fault> {
    let bytes = text.as_bytes();
    let mut references = Vec::new();
    let mut place = 0;
    while let Some(colon) = bytes[place..].iter().position(|byte| *byte == b':') {
        let start = place + colon;
        let count =
            |from: usize, is: fn(u8) -> bool| bytes[from..].iter().take_while(|byte| is(**byte)).count();
        place = start + 1;
        if bytes.get(place).copied().is_some_and(begins_name) {
            let end = place + count(place, is_in_name);
            references.push((start..end, names.intern(&text[place..end])));
            place = end;
        } else {
            place += count(place, |byte| byte == b':');
        }
    }
    if references.len() > MOST_PARAMETERS {
        return Err(Fault::new(Problem::TooManyParameters(MOST_PARAMETERS), Origin::Line(at)));
    }
    Ok(Sql::new(text, references))
}
