//! Follows `standard_conforming_strings` through a dump.

use crate::Piece;
use crate::parse::Parser;
use crate::token::Backslash;

/// What a backslash means in a string, at some place of a dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strings {
    backslash: Backslash,
}

impl Default for Strings {
    /// The server's default since 9.1.
    fn default() -> Self {
        Self { backslash: Backslash::Plain }
    }
}

impl Strings {
    pub(crate) fn backslash(self) -> Backslash {
        self.backslash
    }

    /// What holds after this piece; whether it is the piece that says so.
    pub(crate) fn follow(&mut self, piece: Piece<'_>) -> bool {
        let backslash = match piece {
            Piece::Statement(statement) => set(statement, self.backslash),
            // Another session.
            Piece::Meta(line) if is_connect(line) => Some(Self::default().backslash),
            _ => None,
        };
        self.backslash = backslash.unwrap_or(self.backslash);
        backslash.is_some()
    }
}

/// Whether a line is psql's command `\connect`, or `\c`.
pub(crate) fn is_connect(line: &[u8]) -> bool {
    let command = line.split(u8::is_ascii_whitespace).next();
    matches!(command, Some(b"\\connect" | b"\\c"))
}

/// `SET standard_conforming_strings = off` and its other spellings.
fn set(statement: &[u8], backslash: Backslash) -> Option<Backslash> {
    if !statement[..statement.len().min(3)].eq_ignore_ascii_case(b"set") {
        return None;
    }
    let mut parser = Parser::new(statement, backslash);
    if !parser.word("set") {
        return None;
    }
    let _ = parser.word("session") || parser.word("local");
    if !(parser.word("standard_conforming_strings") && (parser.symbol(b'=') || parser.word("to"))) {
        return None;
    }
    let value = parser.next()?.bytes;
    let value = value.trim_ascii_start().strip_prefix(b"'").map_or(value, |value| &value[..value.len() - 1]);
    let is_off = [&b"off"[..], b"false", b"no", b"0"].iter().any(|off| value.eq_ignore_ascii_case(off));
    Some(if is_off { Backslash::Escapes } else { Backslash::Plain })
}
