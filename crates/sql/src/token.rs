//! Splits SQL into tokens as psql does, as far as is necessary to find the end of a statement
//! (PostgreSQL's src/fe_utils/psqlscan.l).

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use crate::syntax::{Backslash, Characters, Syntax};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Spaces, tabs and line ends.
    Blank,
    /// `-- …` without its line end, or `/* … */`.
    Comment,
    /// A keyword or a name without quotes.
    Word,
    /// A name in double quotes; `U&"…"` too.
    QuotedName,
    /// A string in quotes of any kind.
    Literal,
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// `;`.
    Semicolon,
    /// `\` outside of quotes: psql reads a command of its own here.
    Backslash,
    /// A run of digits, or any other single character.
    Other,
}

/// The construct in which a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unterminated {
    /// A comment from `/*`.
    Comment,
    /// A string in single quotes.
    Literal,
    /// A name in double quotes.
    QuotedName,
    /// A string in dollar quotes.
    DollarQuotes,
    /// A token that more text could still change; never at the end of all text.
    Token,
}

/// SQL text from some position on.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The bytes of the SQL.
    pub bytes: &'a [u8],
    /// Whether no more text follows.
    pub is_all: bool,
    /// The settings that decide where tokens end.
    pub syntax: Syntax,
}

impl<'a> Text<'a> {
    /// A whole text in the syntax of a server's defaults.
    pub fn whole(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), is_all: true, syntax: Syntax::default() }
    }

    /// The text after so many bytes.
    #[inline]
    #[must_use]
    pub fn from(self, at: usize) -> Self {
        Self { bytes: &self.bytes[at..], ..self }
    }

    /// Kind and length in bytes of the token that the text begins with; none at the end.
    ///
    /// # Errors
    /// If the text ends within a token.
    pub fn token(self) -> Result<Option<(Kind, usize)>, Unterminated> {
        let Some(&first) = self.bytes.first() else {
            return if self.is_all { Ok(None) } else { Err(Unterminated::Token) };
        };
        let token = match first {
            byte if is_blank(byte) => (Kind::Blank, self.run(1, is_blank)),
            byte if starts_word(byte) => self.word()?,
            b'0'..=b'9' => (Kind::Other, self.run(1, |byte| byte.is_ascii_digit())),
            b'\'' => self.literal(0, self.syntax.backslash)?,
            b'"' => self.quoted_name(0)?,
            b'$' => self.dollar()?,
            b'-' if self.is_followed_by(b'-')? => self.line_comment()?,
            b'/' if self.is_followed_by(b'*')? => self.block_comment()?,
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b';' => (Kind::Semicolon, 1),
            b'\\' => (Kind::Backslash, 1),
            _ => (Kind::Other, 1),
        };
        Ok(Some(token))
    }

    /// Kind and place of the next token that can end a statement or hide its end. `from` must be
    /// the beginning of a token. Words are skipped, which makes reading rows as INSERT fast.
    ///
    /// # Errors
    /// If the text ends within a token.
    #[inline] // A quarter more of rows a second.
    pub fn special(self, from: usize) -> Result<Option<(Kind, Range<usize>)>, Unterminated> {
        let at = self.run(from, |byte| !is(byte, SPECIAL));
        let (kind, length) = match self.bytes.get(at) {
            Some(b'(') => (Kind::Open, 1),
            Some(b')') => (Kind::Close, 1),
            Some(b';') => (Kind::Semicolon, 1),
            Some(b'\'') if at == from || is(self.bytes[at - 1], BLANK) => {
                self.from(at).literal(0, self.syntax.backslash)?
            }
            Some(_) => return self.special_with_word(from, at),
            None if self.is_all => return Ok(None),
            None => return Err(Unterminated::Token),
        };
        Ok(Some((kind, at..at + length)))
    }

    /// As [`Self::special`], but with the token at `special`, which a word before it may belong to.
    fn special_with_word(
        self,
        from: usize,
        special: usize,
    ) -> Result<Option<(Kind, Range<usize>)>, Unterminated> {
        let mut special = special;
        let at = loop {
            match self.bytes.get(special) {
                // `E'`, `U&"`.
                Some(b'\'' | b'"') => {
                    let end = special - usize::from(self.bytes[from..special].ends_with(b"&"));
                    let start = self.word_before(from, end);
                    break if start < end { start } else { special };
                }
                // Unterminated a word it is a letter like any other.
                Some(b'$') => match self.word_before(from, special) {
                    start if start < special && starts_word(self.bytes[start]) => {
                        special = self.run(special + 1, |byte| !is(byte, SPECIAL));
                    }
                    start => break start,
                },
                _ => break special,
            }
        };
        Ok(self.from(at).token()?.map(|(kind, length)| (kind, at..at + length)))
    }

    /// Start of the letters and digits that end at `end`.
    fn word_before(self, from: usize, end: usize) -> usize {
        let before = self.bytes[from..end].iter().rev();
        end - before.take_while(|&&byte| continues_word(byte)).count()
    }

    /// End of the run of such bytes from a place on.
    pub fn run(self, from: usize, is_such: impl Fn(u8) -> bool) -> usize {
        let rest = &self.bytes[from..];
        from + rest.iter().position(|&byte| !is_such(byte)).unwrap_or(rest.len())
    }

    fn is_followed_by(self, byte: u8) -> Result<bool, Unterminated> {
        match self.bytes.get(1) {
            None if !self.is_all => Err(Unterminated::Token),
            next => Ok(next == Some(&byte)),
        }
    }

    /// A word, or another token that begins like one: `E'…'`, `U&"…"`.
    fn word(self) -> Result<(Kind, usize), Unterminated> {
        let mut end = match self.syntax.characters {
            Characters::Safe => self.run(1, continues_word),
            _ => 0,
        };
        while let Some(&byte) = self.bytes.get(end)
            && continues_word(byte)
        {
            end += self.syntax.characters.length(&self.bytes[end..]);
        }
        if end >= self.bytes.len() && !self.is_all {
            return Err(Unterminated::Token);
        }
        let end = end.min(self.bytes.len());
        match (self.bytes, end) {
            ([b'e' | b'E', b'\'', ..], 1) => self.literal(1, Backslash::Escapes),
            ([b'b' | b'B' | b'x' | b'X', b'\'', ..], 1) => self.literal(1, Backslash::Plain),
            ([b'u' | b'U', b'&', b'\'', ..], 1) => self.literal(2, Backslash::Plain),
            ([b'u' | b'U', b'&', b'"', ..], 1) => self.quoted_name(2),
            ([b'u' | b'U', b'&'], 1) if !self.is_all => Err(Unterminated::Token),
            _ => Ok((Kind::Word, end)),
        }
    }

    /// A string whose quote is at `open`.
    fn literal(self, open: usize, backslash: Backslash) -> Result<(Kind, usize), Unterminated> {
        let mut at = open + 1;
        loop {
            let rest = self.bytes.get(at..).ok_or(Unterminated::Literal)?;
            let found = match backslash {
                Backslash::Plain => memchr(b'\'', rest),
                Backslash::Escapes => self.quote_or_backslash(rest),
            };
            at += found.ok_or(Unterminated::Literal)?;
            if self.bytes[at] == b'\\' {
                at += 1 + self.syntax.characters.length(self.bytes.get(at + 1..).unwrap_or_default());
                continue;
            }
            at += 1;
            match self.bytes.get(at) {
                Some(b'\'') => at += 1,
                None if !self.is_all => return Err(Unterminated::Literal),
                // Its continuation on the next line is that of any string.
                _ if backslash == self.syntax.backslash => return Ok((Kind::Literal, at)),
                _ => match self.continuation(at)? {
                    Some(continued) => at = continued,
                    None => return Ok((Kind::Literal, at)),
                },
            }
        }
    }

    fn quote_or_backslash(self, bytes: &[u8]) -> Option<usize> {
        if self.syntax.characters == Characters::Safe {
            return memchr2(b'\'', b'\\', bytes);
        }
        let mut at = 0;
        while !matches!(bytes.get(at)?, b'\'' | b'\\') {
            at += self.syntax.characters.length(&bytes[at..]);
        }
        Some(at)
    }

    /// Offset after the quote that continues a string that ended at `end`. The quote must be at
    /// least one line further down, with only blanks and comments in between.
    fn continuation(self, end: usize) -> Result<Option<usize>, Unterminated> {
        let mut at = end;
        let mut is_on_next_line = false;
        loop {
            match self.bytes.get(at) {
                Some(b'\'') => return Ok(is_on_next_line.then_some(at + 1)),
                Some(b'-') if self.from(at).is_followed_by(b'-')? => at += self.from(at).line_comment()?.1,
                Some(&byte) if is_blank(byte) => {
                    is_on_next_line |= is_line_end(byte);
                    at += 1;
                }
                None if !self.is_all => return Err(Unterminated::Literal),
                _ => return Ok(None),
            }
        }
    }

    /// A name whose quote is at `open`.
    fn quoted_name(self, open: usize) -> Result<(Kind, usize), Unterminated> {
        let mut at = open + 1;
        loop {
            at += memchr(b'"', &self.bytes[at..]).ok_or(Unterminated::QuotedName)? + 1;
            match self.bytes.get(at) {
                Some(b'"') => at += 1,
                None if !self.is_all => return Err(Unterminated::QuotedName),
                _ => return Ok((Kind::QuotedName, at)),
            }
        }
    }

    /// `$$…$$`, `$tag$…$tag$`, or just a dollar.
    fn dollar(self) -> Result<(Kind, usize), Unterminated> {
        let tag = match self.bytes.get(1) {
            Some(&byte) if starts_word(byte) => {
                self.run(2, |byte| starts_word(byte) || byte.is_ascii_digit())
            }
            _ => 1,
        };
        match self.bytes.get(tag) {
            Some(b'$') => {
                let (delimiter, body) = self.bytes.split_at(tag + 1);
                let length = memmem::find(body, delimiter).ok_or(Unterminated::DollarQuotes)?;
                Ok((Kind::Literal, length + 2 * delimiter.len()))
            }
            None if !self.is_all => Err(Unterminated::Token),
            _ => Ok((Kind::Other, 1)),
        }
    }

    /// The comment up to the end of the line, without the line end.
    fn line_comment(self) -> Result<(Kind, usize), Unterminated> {
        match memchr2(b'\n', b'\r', self.bytes) {
            Some(end) => Ok((Kind::Comment, end)),
            None if self.is_all => Ok((Kind::Comment, self.bytes.len())),
            None => Err(Unterminated::Token),
        }
    }

    fn block_comment(self) -> Result<(Kind, usize), Unterminated> {
        let mut at = 2;
        let mut depth = 1;
        while depth > 0 {
            at += memchr2(b'*', b'/', &self.bytes[at..]).ok_or(Unterminated::Comment)?;
            let step = match &self.bytes[at..] {
                [b'/', b'*', ..] => 1,
                [b'*', b'/', ..] => -1,
                _ => 0,
            };
            depth += step;
            at += if step == 0 { 1 } else { 2 };
        }
        Ok((Kind::Comment, at))
    }
}

/// The class of each byte: a table is several times as fast as comparisons, and rows as INSERT are most of some
/// dumps.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let starts_word = byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        let continues_word = starts_word || byte.is_ascii_digit() || byte == b'$';
        // The vertical tab is a blank from PostgreSQL 16 on, and can be nothing else before.
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
        let is_special = matches!(byte, b'\'' | b'"' | b'$' | b'-' | b'/' | b'(' | b')' | b';' | b'\\');
        classes[byte as usize] = if starts_word { STARTS_WORD } else { 0 }
            | if continues_word { CONTINUES_WORD } else { 0 }
            | if is_blank { BLANK } else { 0 }
            | if is_special { SPECIAL } else { 0 };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};
const STARTS_WORD: u8 = 1;
const CONTINUES_WORD: u8 = 2;
const BLANK: u8 = 4;
/// See [`Text::special`].
const SPECIAL: u8 = 8;

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether the byte is a blank: space, tab, line end, form feed or vertical tab.
#[inline]
pub fn is_blank(byte: u8) -> bool {
    is(byte, BLANK)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn starts_word(byte: u8) -> bool {
    is(byte, STARTS_WORD)
}

fn continues_word(byte: u8) -> bool {
    is(byte, CONTINUES_WORD)
}
