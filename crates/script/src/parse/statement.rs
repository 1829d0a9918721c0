//! Splits SQL into statements, as psql's lexer does (`src/fe_utils/psqlscan.l`): at semicolons that are
//! in no quotes, comments, parentheses or function bodies.

use super::fault::{Fault, Origin};
use crate::error::Problem;
use crate::variables::{begins_name, is_in_name};

/// A statement, its semicolon included.
pub(super) struct Statement {
    /// Text of the statement, without blanks and `--` comments before it; `\;` has become a
    /// semicolon.
    pub(super) text: String,
    /// Offset of the first byte.
    pub(super) at: usize,
    /// Offset after the last byte.
    pub(super) end: usize,
}

/// End of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Semicolon,
    /// The backslash of a meta command, which comes next.
    Backslash,
    Script,
}

/// The statements of a script.
pub(super) struct Statements<'a> {
    text: &'a str,
    at: usize,
    /// Offsets of open parentheses.
    parentheses: Vec<usize>,
    body: FunctionBody,
}

impl<'a> Statements<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0, parentheses: Vec::new(), body: FunctionBody::default() }
    }

    /// Offset of the next byte to read.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Continues after a meta command.
    pub(super) fn go_on(&mut self, at: usize) {
        self.at = at;
    }

    /// The next statement (none if there is nothing), and its end.
    pub(super) fn read(&mut self) -> Result<(Option<Statement>, Ended), Fault> {
        let mut text = String::new();
        let mut start = self.at;
        let ended = loop {
            if text.is_empty() {
                self.skip_blank();
                start = self.at;
            }
            match &self.text.as_bytes()[self.at..] {
                [] => break Ended::Script,
                [b'\\', forced @ (b';' | b':'), ..] => {
                    text.push(char::from(*forced));
                    if *forced == b';' {
                        self.body.next_statement();
                    }
                    self.at += 2;
                    continue;
                }
                [b'\\', ..] => break Ended::Backslash,
                _ => {}
            }
            let token = self.at;
            self.at = self.token_end()?;
            text.push_str(&self.text[token..self.at]);
            if &self.text[token..self.at] == ";" && self.parentheses.is_empty() && self.body.depth == 0 {
                self.body.next_statement();
                break Ended::Semicolon;
            }
        };
        // A meta command cannot be within parentheses either: the statement is sent before it.
        match self.parentheses.first() {
            Some(open) if ended != Ended::Semicolon => {
                Err(Fault::new(Problem::Unterminated("parenthesis"), Origin::Character(*open)))
            }
            _ if text.is_empty() => Ok((None, ended)),
            _ => Ok((Some(Statement { text, at: start, end: self.at }), ended)),
        }
    }

    /// Skips blanks and `--` comments.
    fn skip_blank(&mut self) {
        self.at = blank_end(self.text, self.at);
    }

    /// End of the token that begins here. Keeps track of parentheses and function bodies.
    fn token_end(&mut self) -> Result<usize, Fault> {
        let (text, at) = (self.text, self.at);
        match &text.as_bytes()[at..] {
            [b'-', b'-', ..] => Ok(line_end(text, at)),
            [b'/', b'*', ..] => comment_end(text, at),
            [b'\'', ..] => quote_end(text, at, b'\'', "quoted string"),
            [b'"', ..] => quote_end(text, at, b'"', "quoted identifier"),
            [b'e' | b'E', b'\'', ..] => escape_string_end(text, at),
            [b'$', ..] => dollar_end(text, at),
            [b'(', ..] => {
                self.parentheses.push(at);
                Ok(at + 1)
            }
            [b')', ..] => {
                self.parentheses.pop();
                Ok(at + 1)
            }
            [first, ..] if begins_name(*first) => {
                let end = identifier_end(text, at);
                self.body.word(&text[at..end], self.parentheses.is_empty());
                Ok(end)
            }
            // A name right after a number belongs to it, dollars and all.
            [b'0'..=b'9', ..] => Ok(identifier_end(text, at)),
            _ => Ok(at + 1),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

/// End of blanks and `--` comments.
fn blank_end(text: &str, mut at: usize) -> usize {
    loop {
        match &text.as_bytes()[at..] {
            [blank, ..] if is_blank(*blank) => at += 1,
            [b'-', b'-', ..] => at = line_end(text, at),
            _ => return at,
        }
    }
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find(['\n', '\r']).map_or(text.len(), |end| at + end)
}

fn identifier_end(text: &str, at: usize) -> usize {
    let more = text.as_bytes()[at..].iter().take_while(|byte| is_in_name(**byte) || **byte == b'$');
    at + more.count()
}

/// End of a comment; comments can be nested.
fn comment_end(text: &str, start: usize) -> Result<usize, Fault> {
    let mut depth = 0;
    let mut at = start;
    loop {
        match &text.as_bytes()[at..] {
            [] => return Err(unterminated("comment", start)),
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            return Ok(at);
        }
    }
}

/// End of a quoted text; two quotes stand for one. A string that continues on the next line counts
/// as two strings, which makes no difference here.
fn quote_end(text: &str, start: usize, quote: u8, what: &'static str) -> Result<usize, Fault> {
    let mut at = start + 1;
    loop {
        match &text.as_bytes()[at..] {
            [] => return Err(unterminated(what, start)),
            [first, second, ..] if *first == quote && *second == quote => at += 2,
            [first, ..] if *first == quote => return Ok(at + 1),
            _ => at += 1,
        }
    }
}

/// End of a string with escapes. It can continue on the next line, there without the E.
fn escape_string_end(text: &str, start: usize) -> Result<usize, Fault> {
    let mut at = start + 2;
    loop {
        match &text.as_bytes()[at..] {
            [] => return Err(unterminated("quoted string", start)),
            [b'\\', _, ..] | [b'\'', b'\'', ..] => at += 2,
            [b'\'', ..] => {
                let next = blank_end(text, at + 1);
                let goes_on = text[next..].starts_with('\'') && text[at..next].contains(['\n', '\r']);
                if !goes_on {
                    return Ok(at + 1);
                }
                at = next + 1;
            }
            _ => at += 1,
        }
    }
}

/// `$tag$…$tag$`, or a lone dollar, or a parameter.
fn dollar_end(text: &str, start: usize) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let first = bytes.get(start + 1).copied().unwrap_or(b' ');
    if first.is_ascii_digit() {
        return Ok(identifier_end(text, start + 1));
    }
    let tag = bytes[start + 1..].iter().take_while(|byte| is_in_name(**byte)).count();
    let opened = start + 1 + tag;
    if bytes.get(opened) != Some(&b'$') {
        return Ok(start + 1);
    }
    let tag = &text[start..=opened];
    match text[opened + 1..].find(tag) {
        Some(inside) => Ok(opened + 1 + inside + tag.len()),
        None => Err(unterminated("dollar-quoted string", start)),
    }
}

fn unterminated(what: &'static str, at: usize) -> Fault {
    Fault::new(Problem::Unterminated(what), Origin::Character(at))
}

/// Tracks whether a statement is within the `BEGIN … END` of a function's SQL body, by psql's
/// heuristic: the statement begins with CREATE [OR REPLACE] {FUNCTION | PROCEDURE}, and each CASE
/// has an END too.
#[derive(Default)]
struct FunctionBody {
    /// The first letters of the first words, if they are some of these.
    words: [u8; 4],
    count: usize,
    depth: usize,
}

impl FunctionBody {
    fn next_statement(&mut self) {
        self.count = 0;
    }

    /// Takes note of the next word. Words within parentheses neither begin nor end a body.
    fn word(&mut self, word: &str, outside: bool) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if self.count == 0 {
            self.words = [0; 4];
        }
        if ["create", "or", "replace", "function", "procedure"].into_iter().any(is)
            && let Some(place) = self.words.get_mut(self.count)
        {
            *place = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.count += 1;
        let routine = |letter: u8| matches!(letter, b'f' | b'p');
        let created = match self.words {
            [b'c', b'o', b'r', what] | [b'c', what, ..] => routine(what),
            _ => false,
        };
        if created && outside {
            if is("begin") || self.depth > 0 && is("case") {
                self.depth += 1;
            } else if is("end") {
                self.depth = self.depth.saturating_sub(1);
            }
        }
    }
}
