//! Follows the settings that decide where tokens end: `standard_conforming_strings`,
//! `client_encoding`.

use sql::{Backslash, Characters, Syntax};

use crate::Piece;
use crate::parse::Parser;

/// Applies a piece to the settings; whether the piece sets any.
pub(crate) fn follow(syntax: &mut Syntax, piece: Piece<'_>) -> bool {
    let set = match piece {
        Piece::Statement(statement) => set(statement, *syntax),
        Piece::Meta(line) => command(line, *syntax),
        _ => None,
    };
    *syntax = set.unwrap_or(*syntax);
    set.is_some()
}

/// Whether a line is psql's command `\connect`, or `\c`.
pub(crate) fn is_connect(line: &[u8]) -> bool {
    matches!(words(line).next(), Some(b"\\connect" | b"\\c"))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn command(line: &[u8], now: Syntax) -> Option<Syntax> {
    let mut words = words(line);
    match words.next()? {
        // Another session.
        b"\\connect" | b"\\c" => Some(Syntax::default()),
        b"\\encoding" => Some(Syntax { characters: characters(words.next()?), ..now }),
        _ => None,
    }
}

/// `SET standard_conforming_strings = off`, `SET client_encoding = 'SJIS'`, their other spellings, and RESET.
fn set(statement: &[u8], now: Syntax) -> Option<Syntax> {
    // Rows as INSERT are most of some dumps.
    if !matches!(statement.first(), Some(b's' | b'S' | b'r' | b'R')) {
        return None;
    }
    let mut parser = Parser::new(statement, now);
    if !parser.word("set") {
        return reset(&mut parser, now);
    }
    let _ = parser.word("session") || parser.word("local");
    if parser.word("names") {
        return Some(Syntax { characters: characters(value(&mut parser)?), ..now });
    }
    let is_encoding = parser.word("client_encoding");
    if !(is_encoding || parser.word("standard_conforming_strings")) {
        return None;
    }
    if !(parser.symbol(b'=') || parser.word("to")) {
        return None;
    }
    let value = value(&mut parser)?;
    if is_encoding {
        return Some(Syntax { characters: characters(value), ..now });
    }
    // Any beginning of these will do that means no other (src/backend/utils/adt/bool.c).
    let begins = |word: &[u8], least| value.len() >= least && word.starts_with(&value.to_ascii_lowercase());
    let is_off = begins(b"off", 2) || begins(b"false", 1) || begins(b"no", 1) || value == b"0";
    let backslash = if is_off { Backslash::Escapes } else { Backslash::Plain };
    Some(Syntax { backslash, ..now })
}

fn reset(parser: &mut Parser<'_>, now: Syntax) -> Option<Syntax> {
    let default = Syntax::default();
    if !parser.word("reset") {
        None
    } else if parser.word("all") {
        Some(default)
    } else if parser.word("client_encoding") {
        Some(Syntax { characters: default.characters, ..now })
    } else {
        let is_strings = parser.word("standard_conforming_strings");
        is_strings.then_some(Syntax { backslash: default.backslash, ..now })
    }
}

/// The next token, without its quotes if it is a string.
fn value<'a>(parser: &mut Parser<'a>) -> Option<&'a [u8]> {
    let value = parser.next()?.bytes;
    Some(value.strip_prefix(b"'").map_or(value, |value| &value[..value.len() - 1]))
}

/// Characters of an encoding, by any of its names: letters and digits count, case does not (src/common/encnames.c).
fn characters(encoding: &[u8]) -> Characters {
    let name: Vec<u8> =
        encoding.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    match name.as_slice() {
        b"sjis" | b"shiftjis" | b"mskanji" | b"win932" | b"windows932" | b"shiftjis2004" => Characters::Sjis,
        b"big5" | b"win950" | b"windows950" | b"gbk" | b"win936" | b"windows936" | b"uhc" | b"win949"
        | b"windows949" => Characters::Double,
        b"gb18030" => Characters::Gb18030,
        b"johab" => Characters::Johab,
        _ => Characters::Safe,
    }
}
