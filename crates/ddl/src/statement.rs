//! A statement of a migration, and the facts that its text alone gives.

use serde::Serialize;
use sql::{Kind, Text};

/// A statement of a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Its text, with its semicolon.
    pub sql: String,
    /// File that it is from; none for text of the command line.
    pub file: Option<String>,
    /// Line on which it begins, from 1.
    pub line: u64,
    /// Way in which pgrig runs it.
    pub kind: StatementKind,
}

/// Way in which pgrig runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementKind {
    /// It begins, ends or divides a transaction.
    Transaction,
    /// It concerns only the session: SET, RESET, SHOW.
    Session,
    /// It is observed and measured, in a transaction if it can run in one.
    Measured,
    /// As [`Self::Measured`], but it means nothing in a transaction of its own.
    MeasuredAlone,
}

/// A place for people: `orders.sql, line 3`, or `line 3`.
pub(crate) fn place(file: Option<&str>, line: u64) -> String {
    file.map_or_else(|| format!("line {line}"), |file| format!("{file}, line {line}"))
}

impl Statement {
    /// Its place: `orders.sql, line 3`, or `line 3`.
    pub fn place(&self) -> String {
        place(self.file.as_deref(), self.line)
    }

    /// The text in one line, without comments.
    pub fn in_one_line(&self) -> String {
        let text = self.sql.trim_end_matches(';').trim_end();
        let mut line = String::with_capacity(text.len());
        for (kind, token) in tokens(text) {
            match kind {
                Kind::Blank | Kind::Comment if line.ends_with(' ') || line.is_empty() => {}
                Kind::Blank | Kind::Comment => line.push(' '),
                _ => line.push_str(&token.replace(['\n', '\r', '\t'], " ")),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// The first variable of psql's that it names: `:name`, `:'name'` or `:"name"`. In brackets, a colon is part of a slice.
    pub(crate) fn variable(&self) -> Option<String> {
        let tokens = tokens(&self.sql);
        let mut depth = 0_usize;
        // Of `::` neither colon, and of `:=` none.
        let mut is_after_colon = false;
        for (place, (_, token)) in tokens.iter().enumerate() {
            match *token {
                "[" => depth += 1,
                "]" => depth = depth.saturating_sub(1),
                ":" if depth == 0 && !is_after_colon => {
                    let is_name = |(kind, name): &&(Kind, &str)| match kind {
                        Kind::Word => true,
                        Kind::QuotedName | Kind::Literal => name.starts_with(['"', '\'']),
                        _ => false,
                    };
                    if let Some((_, name)) = tokens.get(place + 1).filter(is_name) {
                        return Some(format!(":{name}"));
                    }
                }
                _ => {}
            }
            is_after_colon = *token == ":";
        }
        None
    }

    /// Whether it ends a transaction.
    pub(crate) fn ends_transaction(&self) -> bool {
        let line = self.in_one_line().to_ascii_lowercase();
        let mut words = line.split(' ');
        let ends =
            ["commit", "end", "abort", "rollback", "prepare"].contains(&words.next().unwrap_or_default());
        self.kind == StatementKind::Transaction && ends && !words.any(|word| word == "to")
    }

    /// Whether it is VACUUM or ANALYZE, which leave out tables with locks (SKIP_LOCKED).
    pub(crate) fn skips_locked(&self) -> bool {
        self.is_vacuum() && self.has_option("skip_locked")
    }

    /// Whether it has this word, and does not turn this option off.
    fn has_option(&self, option: &str) -> bool {
        let tokens = tokens(&self.sql);
        let words = tokens.iter().filter(|(kind, _)| !matches!(kind, Kind::Blank | Kind::Comment));
        let words: Vec<String> = words.map(|(_, token)| token.to_ascii_lowercase()).collect();
        let is_off = |value: Option<&String>| {
            value.is_some_and(|value| ["off", "false", "0"].contains(&value.trim_matches('\'')))
        };
        let place = words.iter().position(|word| word == option);
        place.is_some_and(|at| !is_off(words.get(at + 1)))
    }

    /// Whether it is VACUUM or ANALYZE.
    pub(crate) fn is_vacuum(&self) -> bool {
        ["vacuum", "analyze", "analyse"].contains(&self.first_word().as_str())
    }

    /// Whether it is VACUUM FULL.
    pub(crate) fn is_full_vacuum(&self) -> bool {
        self.first_word() == "vacuum" && self.has_option("full")
    }

    /// Whether it is REINDEX.
    pub(crate) fn is_reindex(&self) -> bool {
        self.first_word() == "reindex"
    }

    /// Whether it is TRUNCATE.
    pub(crate) fn is_truncate(&self) -> bool {
        self.first_word() == "truncate"
    }

    fn first_word(&self) -> String {
        self.in_one_line().split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether it may run functions and triggers. EXPLAIN without ANALYZE runs nothing.
    pub(crate) fn runs_code(&self) -> bool {
        let definitions = [
            "alter", "cluster", "comment", "create", "drop", "grant", "lock", "reindex", "revoke",
            "truncate", "vacuum",
        ];
        let first = self.first_word();
        let is_run = || first != "explain" || self.has_option("analyze") || self.has_option("analyse");
        !definitions.contains(&first.as_str()) && is_run()
    }

    /// Whether it may be the call of code that defines objects: DO, CALL, or SELECT with a function.
    pub fn is_code(&self) -> bool {
        ["do", "call", "select"].contains(&self.first_word().as_str())
    }

    /// The table that ALTER TABLE names, as it stands there; none for other statements.
    pub(crate) fn target(&self) -> Option<String> {
        let mut tokens = tokens(&self.sql)
            .into_iter()
            .filter(|(kind, _)| !matches!(kind, Kind::Blank | Kind::Comment))
            .peekable();
        let is = |(kind, token): &(Kind, &str), word: &str| {
            *kind == Kind::Word && token.eq_ignore_ascii_case(word)
        };
        tokens.next().filter(|token| is(token, "alter"))?;
        tokens.next().filter(|token| is(token, "table"))?;
        for optional in ["if", "exists", "only"] {
            tokens.next_if(|token| is(token, optional));
        }
        let is_name = |kind: Kind| matches!(kind, Kind::Word | Kind::QuotedName);
        let mut name = tokens.next().filter(|(kind, _)| is_name(*kind))?.1.to_owned();
        while tokens.next_if(|(_, token)| *token == ".").is_some() {
            name.push('.');
            name.push_str(tokens.next().filter(|(kind, _)| is_name(*kind))?.1);
        }
        Some(name)
    }
}

/// The tokens of a text, as far as it can be read.
pub(crate) fn tokens(text: &str) -> Vec<(Kind, &str)> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Ok(Some((kind, length))) = Text::whole(text).from(at).token() {
        tokens.push((kind, &text[at..at + length]));
        at += length;
    }
    tokens
}

/// The kind by the first words; none for an empty statement.
pub(crate) fn kind(sql: &str) -> Option<StatementKind> {
    let tokens = tokens(sql);
    let mut meant = tokens.iter().filter(|(kind, _)| !matches!(kind, Kind::Blank | Kind::Comment));
    let (first, word) = meant.next()?;
    if *first == Kind::Semicolon {
        return None;
    }
    let second = meant.next().map(|(_, token)| token.to_ascii_lowercase()).unwrap_or_default();
    Some(match (word.to_ascii_lowercase().as_str(), second.as_str()) {
        ("prepare", "transaction") => StatementKind::Transaction,
        ("begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release", _) => {
            StatementKind::Transaction
        }
        // It may check constraints, and run triggers.
        ("set", "constraints") => StatementKind::Measured,
        ("set" | "reset" | "show" | "discard" | "listen" | "unlisten" | "deallocate" | "prepare", _) => {
            StatementKind::Session
        }
        // In a transaction of pgrig's own they would succeed, and without one the server refuses them.
        ("lock", _) => StatementKind::MeasuredAlone,
        ("declare", _) if !is_held(&tokens) => StatementKind::MeasuredAlone,
        _ => StatementKind::Measured,
    })
}

/// Whether DECLARE makes a cursor that outlives its transaction.
fn is_held(tokens: &[(Kind, &str)]) -> bool {
    let words = tokens.iter().filter(|(kind, _)| *kind == Kind::Word);
    let words: Vec<String> = words.map(|(_, token)| token.to_ascii_lowercase()).collect();
    let query = words.iter().position(|word| word == "for").unwrap_or(words.len());
    words[..query].windows(2).any(|pair| pair[0] == "with" && pair[1] == "hold")
}
