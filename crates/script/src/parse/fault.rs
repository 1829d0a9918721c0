//! Errors before their script and line are known.

use crate::error::{Problem, ScriptError};
use crate::source::Source;

/// An error, at an offset into the script.
#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    place: Origin,
    command: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// At this character.
    Character(usize),
    /// In the line of this character.
    Line(usize),
    /// In the script as a whole.
    Script,
}

impl Fault {
    pub(super) fn new(problem: Problem, place: Origin) -> Self {
        Self { problem, place, command: None }
    }

    /// Adds the meta command that the error is in.
    pub(super) fn within(self, command: &str) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    pub(super) fn of(self, source: &Source) -> ScriptError {
        let text = source.text.as_str();
        let (line, column, shown) = match self.place {
            Origin::Script => (0, None, ""),
            Origin::Line(at) => (line(text, at), None, line_around(text, at).1),
            Origin::Character(at) => {
                let (start, shown) = line_around(text, text.floor_char_boundary(at));
                let before = shown.floor_char_boundary(at - start);
                (line(text, start), Some(shown[..before].chars().count() + 1), shown)
            }
        };
        ScriptError {
            script: source.name.clone(),
            line,
            column,
            problem: self.problem,
            command: self.command,
            text: shown.into(),
        }
    }
}

/// The number of the line that this offset is in, from 1.
fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Start of that line, and the line without its end.
fn line_around(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    (start, text[start..end].trim_end_matches('\r'))
}
