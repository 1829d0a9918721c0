//! Reads a statement's words and names, as far as it takes to know which tables it is about.

use sql::{Kind, Syntax, Text};

use crate::TableName;

/// The tokens of one whole statement, without blanks and comments.
pub(crate) struct Parser<'a> {
    text: Text<'a>,
    /// Offset of the text in the statement.
    at: usize,
    /// The token that was read ahead.
    next: Option<Token<'a>>,
}

/// A token of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) bytes: &'a [u8],
    /// Its offset in the statement.
    pub(crate) at: usize,
}

impl Token<'_> {
    /// Whether it is this keyword.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.bytes.eq_ignore_ascii_case(keyword.as_bytes())
    }

    /// Whether it is this character by itself.
    pub(crate) fn is_symbol(&self, symbol: u8) -> bool {
        self.bytes == [symbol]
    }
}

impl<'a> Parser<'a> {
    pub(crate) fn new(statement: &'a [u8], syntax: Syntax) -> Self {
        let text = Text { bytes: statement, is_all: true, syntax };
        let mut parser = Self { text, at: 0, next: None };
        parser.next();
        parser
    }

    /// The next token, which is not consumed.
    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.next
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        let next = self.next;
        self.next = self.read();
        next
    }

    fn read(&mut self) -> Option<Token<'a>> {
        loop {
            // A reader has found its end, so no token is cut off.
            let (kind, length) = self.text.token().ok()??;
            let token = Token { kind, bytes: &self.text.bytes[..length], at: self.at };
            self.text = self.text.from(length);
            self.at += length;
            if !matches!(kind, Kind::Blank | Kind::Comment) {
                return Some(token);
            }
        }
    }

    /// Takes this keyword, if it comes next.
    pub(crate) fn word(&mut self, keyword: &str) -> bool {
        self.take_if(|token| token.is(keyword))
    }

    /// Takes these keywords if the first one comes next; the others are then expected to follow.
    pub(crate) fn words(&mut self, keywords: &[&str]) -> bool {
        let comes = self.next.is_some_and(|token| token.is(keywords[0]));
        comes && keywords.iter().all(|keyword| self.word(keyword))
    }

    /// Takes this character, if it comes next.
    pub(crate) fn symbol(&mut self, symbol: u8) -> bool {
        self.take_if(|token| token.is_symbol(symbol))
    }

    fn take_if(&mut self, is_it: impl Fn(&Token<'a>) -> bool) -> bool {
        let comes = self.next.as_ref().is_some_and(is_it);
        if comes {
            self.next();
        }
        comes
    }

    /// A table's name, qualified or not.
    pub(crate) fn table(&mut self) -> Option<TableName> {
        self.path().map(|mut path| {
            let table = path.pop().unwrap_or_default();
            TableName { schema: path.pop(), table }
        })
    }

    /// The table of a column's name: all parts but the last.
    pub(crate) fn table_of_column(&mut self) -> Option<TableName> {
        let mut path = self.path()?;
        path.pop();
        let table = path.pop()?;
        Some(TableName { schema: path.pop(), table })
    }

    /// `a.b.c`.
    fn path(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut path = vec![self.name()?];
        while self.symbol(b'.') {
            path.push(self.name()?);
        }
        Some(path)
    }

    /// One part of a name: folded to lower case unless quoted.
    pub(crate) fn name(&mut self) -> Option<Vec<u8>> {
        let name = self.next.and_then(|token| sql::name(token.kind, token.bytes))?;
        self.next();
        Some(name)
    }
}
