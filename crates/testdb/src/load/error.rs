//! Why a script was not run to its end.

use failure::{Class, Classified};
use std::io;
use tokio_postgres::error::SqlState;

use dump::DumpError;

use super::parts::Text;
use crate::source::SourceError;
use connect::{ConnectError, ServerError};

/// Why a script was not run to its end. The statements before the error have been run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The script cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The script cannot be read, or its tables cannot be made unlogged.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// A command that only psql can run.
    #[error("line {line}: {command} is a psql command, which pgrig does not run: {remedy}", remedy = remedy_for_command(.command))]
    Command {
        /// With its backslash.
        command: String,
        /// On which line of the script, from 1.
        line: u64,
    },
    /// A statement that is not UTF-8.
    #[error("line {line}: the statement is not in UTF-8: make the dump with pg_dump --encoding=UTF8")]
    NotUtf8 {
        /// On which line of the script it begins, from 1.
        line: u64,
    },
    /// A statement failed.
    #[error("line {line}: {error}{remedy}{}", beginning(error, statement))]
    Statement {
        /// On which line of the script, from 1: the one that the server points at, or else the statement's first.
        line: u64,
        /// The statement's beginning, on one line.
        statement: String,
        /// The server's words.
        error: Box<ConnectError>,
        /// The remedy, as `; do this`, or nothing.
        remedy: &'static str,
    },
    /// The script ends within a transaction, which would be lost.
    #[error("the script ends within a transaction: add the COMMIT that belongs to its BEGIN")]
    InTransaction,
    /// The operating system cannot start a thread to read with.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Classified for LoadError {
    fn class(&self) -> Class {
        match self {
            Self::Source(error) => error.class(),
            Self::Dump(error) => error.class(),
            Self::Connect(error) => error.class(),
            Self::Command { .. } | Self::NotUtf8 { .. } | Self::InTransaction => Class::Request,
            Self::Statement { .. } | Self::Thread(_) => Class::Machine,
        }
    }
}

impl LoadError {
    pub(super) fn statement(text: &Text, error: ConnectError) -> Self {
        let server = match &error {
            ConnectError::Query { error, .. } => Some(&**error),
            _ => None,
        };
        Self::Statement {
            line: text.line + server.map_or(0, |server| lines_in(text, server)),
            remedy: server.map_or("", |error| remedy(error, &text.excerpt())),
            statement: text.excerpt(),
            error: Box::new(error),
        }
    }
}

/// Number of lines from the statement's first one to the error.
fn lines_in(text: &Text, error: &ServerError) -> u64 {
    if let Some(row) = error.row.as_deref().and_then(copy_line) {
        return text.sql.matches('\n').count() as u64 + row - 1;
    }
    let position = error.position.map_or(0, |position| position.saturating_sub(1) as usize);
    text.sql.chars().take(position).filter(|c| *c == '\n').count() as u64
}

/// The line in `COPY orders, line 84, column id: "x"`: 84. A table's name may contain anything, so
/// the last match counts.
fn copy_line(context: &str) -> Option<u64> {
    let (_, after) = context.rsplit_once(", line ")?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|line| *line > 0)
}

fn remedy_for_command(command: &str) -> &'static str {
    match command {
        "\\connect" | "\\c" => {
            "dump one database with pg_dump, without --create (pg_dumpall dumps several databases)"
        }
        _ => "give only SQL",
    }
}

/// The remedy by SQLSTATE ("Appendix A. PostgreSQL Error Codes"), as a further clause.
fn remedy(error: &ServerError, statement: &str) -> &'static str {
    match error.code {
        SqlState::DUPLICATE_OBJECT if makes_what_outlives_a_database(statement) => {
            "; roles and tablespaces belong to the cluster, so a second load finds them: create them once outside of \
             the script (psql -f FILE), and leave them out of it"
        }
        SqlState::DUPLICATE_TABLE
        | SqlState::DUPLICATE_OBJECT
        | SqlState::DUPLICATE_FUNCTION
        | SqlState::DUPLICATE_SCHEMA
        | SqlState::DUPLICATE_DATABASE
        | SqlState::DUPLICATE_COLUMN => "; load into an empty database",
        SqlState::UNDEFINED_OBJECT if error.message.starts_with("role ") => {
            "; create that role, or make the dump with --no-owner --no-privileges"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "; connect as a superuser, or make the dump with --no-owner --no-privileges"
        }
        SqlState::FEATURE_NOT_SUPPORTED | SqlState::UNDEFINED_FILE if error.message.contains("extension") => {
            "; install the extension for this server, or leave it out of the dump (--exclude-extension of pg_dump 17 and \
             later)"
        }
        SqlState::DISK_FULL => "; make room on the server's disk",
        _ => "",
    }
}

/// Whether it is CREATE ROLE, USER, GROUP or TABLESPACE, whose objects outlive the database. (A
/// user mapping does not.)
fn makes_what_outlives_a_database(statement: &str) -> bool {
    let words: Vec<String> = statement.split(' ').take(3).map(str::to_ascii_uppercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["CREATE", "USER", next] => next != "MAPPING",
        ["CREATE", kind, _] => ["ROLE", "GROUP", "TABLESPACE"].contains(&kind),
        _ => false,
    }
}

/// The statement's beginning as a sentence, unless the error has it already.
fn beginning(error: &ConnectError, statement: &str) -> String {
    match error {
        ConnectError::Query { error, .. } if error.statement.is_some() => String::new(),
        _ => format!(". The statement begins: {statement}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_whole_cluster() {
        for statement in
            ["create role app;", "CREATE USER app LOGIN;", "CREATE TABLESPACE fast LOCATION '/x';"]
        {
            assert!(makes_what_outlives_a_database(statement), "{statement}");
        }
        for statement in ["CREATE USER MAPPING FOR app SERVER s;", "CREATE TYPE role AS ENUM ();", "CREATE"] {
            assert!(!makes_what_outlives_a_database(statement), "{statement}");
        }
    }

    #[test]
    fn the_line_of_a_row() {
        assert_eq!(copy_line("COPY orders, line 84, column id: \"x\""), Some(84));
        assert_eq!(copy_line("COPY \", line 1\", line 3"), Some(3));
        assert_eq!(copy_line("COPY orders"), None);
    }
}
