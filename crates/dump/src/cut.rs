//! Finds the end of the next piece of a dump.

use memchr::{memchr, memmem, memrchr};
use sql::{Characters, Kind, Text, Unterminated, is_blank};

use crate::error::Within;

/// The piece that a text begins with, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Between(usize),
    Statement {
        length: usize,
        /// Whether it is COPY … FROM stdin.
        is_before_data: bool,
    },
    Meta(usize),
    CopyData(usize),
    CopyEnd(usize),
}

/// Why no piece can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncut {
    /// The text ends too early.
    Within(Within),
    /// A command of psql's stands within a statement, after this many bytes.
    MetaWithinStatement(usize),
    /// It is psql's `\copy … from stdin`: data follow.
    DataOfCommand,
    /// More text follows COPY … FROM stdin on its line, after this many bytes.
    AfterCopy(usize),
}

impl From<Unterminated> for Uncut {
    fn from(unterminated: Unterminated) -> Self {
        Self::Within(unterminated.into())
    }
}

impl From<Within> for Uncut {
    fn from(within: Within) -> Self {
        Self::Within(within)
    }
}

/// The next piece outside COPY data; none at the end.
pub(crate) fn sql(text: Text<'_>) -> Result<Option<Cut>, Uncut> {
    let mut length = 0;
    let next = loop {
        match text.from(length).token() {
            Ok(Some((Kind::Blank | Kind::Comment, more))) => length += more,
            next => break next,
        }
    };
    if length > 0 {
        return Ok(Some(Cut::Between(length)));
    }
    match next? {
        None => Ok(None),
        Some((Kind::Backslash, _)) => command(text).map(Some),
        Some(_) => statement(text, 0, Opening::Start).map(Some),
    }
}

/// A command of psql's, on its line.
fn command(text: Text<'_>) -> Result<Cut, Uncut> {
    let length = line(text)?;
    let words = text.bytes[..length].split(|byte| !byte.is_ascii_alphanumeric());
    let mut words = words.map(<[u8]>::to_ascii_lowercase);
    // psql's words are not read as psql reads them, so a file of that name is refused as well.
    let reads_data = text.bytes.starts_with(b"\\copy")
        && words.any(|word| word == b"from")
        && words.any(|word| word == b"stdin" || word == b"pstdin");
    if reads_data { Err(Uncut::DataOfCommand) } else { Ok(Cut::Meta(length)) }
}

/// First words of rows as INSERT in pg_dump's output.
const INSERT: &[u8] = b"INSERT INTO ";

/// Length of the whole statements INSERT that come next, with the blanks before each.
pub(crate) fn rows(text: Text<'_>) -> usize {
    let mut end = 0;
    loop {
        let begin = text.run(end, is_blank);
        let rest = text.from(begin);
        if !rest.bytes.starts_with(INSERT) {
            return end;
        }
        match statement(rest, INSERT.len(), Opening::Other) {
            Ok(Cut::Statement { length, .. }) => end = begin + length,
            _ => return end,
        }
    }
}

/// Length of the line with its end.
fn line(text: Text<'_>) -> Result<usize, Within> {
    match memchr(b'\n', text.bytes) {
        Some(end) => Ok(end + 1),
        None if text.is_all => Ok(text.bytes.len()),
        None => Err(Within::Token),
    }
}

/// The statement at the beginning of the text. The first `known` bytes are known to be an opening
/// of this kind.
fn statement(text: Text<'_>, known: usize, opening: Opening) -> Result<Cut, Uncut> {
    let mut progress = Progress { opening, ..Progress::default() };
    let mut at = known;
    loop {
        let next = match progress.opening {
            Opening::Other if text.syntax.characters == Characters::Safe => text.special(at)?,
            _ => text.from(at).token()?.map(|(kind, length)| (kind, at..at + length)),
        };
        let Some((kind, token)) = next else { break };
        at = token.end;
        match kind {
            Kind::Semicolon if progress.parentheses == 0 && progress.blocks == 0 => {
                let is_before_data = progress.opening == Opening::CopyFromStdin;
                let rest = if is_before_data { rest_of_line(text.from(at), at)? } else { 0 };
                return Ok(Cut::Statement { length: at + rest, is_before_data });
            }
            Kind::Backslash => return Err(Uncut::MetaWithinStatement(token.start)),
            Kind::Blank | Kind::Comment => {}
            _ => progress.take(kind, &text.bytes[token]),
        }
    }
    if progress.blocks > 0 {
        Err(Uncut::Within(Within::Body))
    } else if progress.parentheses > 0 {
        Err(Uncut::Within(Within::Parentheses))
    } else {
        Ok(Cut::Statement {
            length: text.bytes.len(),
            is_before_data: progress.opening == Opening::CopyFromStdin,
        })
    }
}

/// Checks the rest of the line of COPY … FROM stdin: nothing but a comment, as pg_dump writes it.
fn rest_of_line(text: Text<'_>, at: usize) -> Result<usize, Uncut> {
    let length = line(text)?;
    let rest = text.bytes[..length].trim_ascii();
    if rest.is_empty() || rest.starts_with(b"--") { Ok(length) } else { Err(Uncut::AfterCopy(at)) }
}

/// The state of a statement that decides where it ends.
#[derive(Default)]
struct Progress<'a> {
    opening: Opening,
    parentheses: u32,
    /// BEGIN ATOMIC, and each CASE in it.
    blocks: u32,
    /// The token before, if it was a word.
    last_word: &'a [u8],
}

impl<'a> Progress<'a> {
    fn take(&mut self, kind: Kind, token: &'a [u8]) {
        match kind {
            Kind::Open => self.parentheses += 1,
            Kind::Close => self.parentheses = self.parentheses.saturating_sub(1),
            Kind::Word if self.parentheses == 0 => self.word(token),
            Kind::QuotedName | Kind::Literal if self.opening == Opening::Start => {
                self.opening = Opening::Other;
            }
            _ => {}
        }
        self.last_word = if kind == Kind::Word { token } else { b"" };
    }

    fn word(&mut self, word: &[u8]) {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        let follows = |keyword: &str| self.last_word.eq_ignore_ascii_case(keyword.as_bytes());
        self.opening = match self.opening {
            Opening::Other | Opening::CopyFromStdin => return,
            Opening::Start if is("create") => Opening::Create,
            Opening::Start if is("copy") => Opening::Copy,
            Opening::Create if is("or") => Opening::Create,
            Opening::Create if is("replace") => Opening::Create,
            Opening::Create if is("function") || is("procedure") => Opening::Routine,
            Opening::Start | Opening::Create => Opening::Other,
            Opening::Copy if is("stdin") && follows("from") => Opening::CopyFromStdin,
            Opening::Copy => Opening::Copy,
            Opening::Routine => {
                match self.blocks {
                    0 if is("atomic") && follows("begin") => self.blocks = 1,
                    0 => {}
                    _ if is("case") => self.blocks += 1,
                    _ if is("end") => self.blocks -= 1,
                    _ => {}
                }
                Opening::Routine
            }
        };
    }
}

/// First words of a statement, as far as they decide where it ends.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Opening {
    #[default]
    Start,
    /// CREATE, CREATE OR REPLACE.
    Create,
    /// CREATE FUNCTION or PROCEDURE: may have a body from BEGIN ATOMIC, with semicolons in it.
    Routine,
    Copy,
    CopyFromStdin,
    Other,
}

/// The next piece of COPY data: lines up to the mark of their end; or the mark itself. None if the text is part of a
/// line whose end is not there yet.
pub(crate) fn copy_data(text: Text<'_>, is_at_line_start: bool) -> Result<Option<Cut>, Within> {
    if is_at_line_start && let Some(length) = end_mark(text)? {
        return Ok(Some(Cut::CopyEnd(length)));
    }
    if text.is_all && text.bytes.is_empty() {
        return Err(Within::CopyData);
    }
    let mut from = 0;
    while let Some(found) = memmem::find(&text.bytes[from..], b"\n\\.") {
        let after_line = from + found + 1;
        match end_mark(text.from(after_line)) {
            Ok(None) => from = after_line,
            Ok(Some(_)) | Err(_) => return Ok(Some(Cut::CopyData(after_line))),
        }
    }
    let lines = memrchr(b'\n', text.bytes).map(|newline| newline + 1);
    Ok(lines.or(text.is_all.then_some(text.bytes.len())).map(Cut::CopyData))
}

/// Length of the line `\.` with its end, if the text begins with it.
fn end_mark(text: Text<'_>) -> Result<Option<usize>, Within> {
    match text.bytes {
        [b'\\', b'.', b'\n', ..] => Ok(Some(3)),
        [b'\\', b'.', b'\r', b'\n', ..] => Ok(Some(4)),
        [] | [b'\\'] | [b'\\', b'.'] | [b'\\', b'.', b'\r'] if !text.is_all => Err(Within::Token),
        [b'\\', b'.'] | [b'\\', b'.', b'\r'] => Ok(Some(text.bytes.len())),
        _ => Ok(None),
    }
}
