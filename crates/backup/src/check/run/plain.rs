//! Dumps as SQL, of pg_dump and pg_dumpall.

use std::cell::Cell;
use std::io::{self, Read};

use dump::{DumpError, Piece, Reader};

use crate::check::error::CheckError;
use crate::check::format::rows::Rows;
use crate::check::format::wrong;
use crate::check::outcome::Outcome;
use crate::check::run::Run;

const DATABASE: &str = "-- PostgreSQL database dump";
const CLUSTER: &str = "-- PostgreSQL database cluster dump";
const COMPLETE: &str = " complete";
const SERVER: &str = "-- Dumped from database version ";
/// Begins the data of each large object.
const LARGE_OBJECT: &[u8] = b"SELECT pg_catalog.lo_open('";

/// The state of a dump as far as it was read.
#[derive(Default)]
struct Script {
    /// Dumps that began and have not ended.
    databases: u64,
    clusters: u64,
    ended: u64,
    /// Whether a statement came after the last end.
    goes_on: bool,
    server: Option<String>,
    is_utf8: bool,
    /// The first one that is set.
    encoding: Option<String>,
    has_tablespaces: bool,
    copy: Option<Rows>,
    table: String,
    tables: u64,
    rows: u64,
    inserts: u64,
    large_objects: u64,
    /// The key of `\restrict`, until `\unrestrict`.
    key: Option<Vec<u8>>,
}

pub(super) fn check(
    run: &Run<'_>,
    content: &mut dyn Read,
    name: &str,
    at: &Cell<u64>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    outcome.gap(
        "all of its text",
        "compress the next dump with a program that adds a checksum: pg_dump DBNAME | zstd > FILE",
    );
    let mut script = Script::default();
    let mut reader = Reader::new(content);
    let read = loop {
        let piece = match reader.next() {
            Ok(Some(piece)) => piece,
            Ok(None) => break Ok(()),
            Err(DumpError::Read(error)) => break Err(error),
            Err(error) => break Err(wrong(error.to_string())),
        };
        if let Err(error) = script.piece(piece) {
            break Err(wrong(format!("line {} or later: {error}", reader.line())));
        }
    };
    let read = read.and_then(|()| script.end());
    outcome.server = script.server;
    outcome.recipe.encoding = script.encoding;
    outcome.recipe.has_tablespaces = script.has_tablespaces;
    outcome.tables = Some(script.tables);
    outcome.rows = Some(script.rows);
    outcome.has_inserts = script.inserts > 0;
    outcome.large_objects = script.large_objects;
    run.watch.settle(outcome, name, Some(at.get()), read)?;
    Ok(())
}

impl Script {
    fn piece(&mut self, piece: Piece<'_>) -> io::Result<()> {
        match piece {
            Piece::Between(text) | Piece::Meta(text) if text.contains(&0) => {
                // psql leaves out the statement after it, without an error.
                return Err(wrong("a comment has a byte that is not text"));
            }
            Piece::Between(text) => {
                for line in text.split(|byte| *byte == b'\n') {
                    self.comment(&String::from_utf8_lossy(line))?;
                }
            }
            Piece::Statement(text) => self.statement(text)?,
            Piece::CopyData(text) => {
                if let Some(rows) = &mut self.copy {
                    rows.feed(text).map_err(|error| wrong(format!("{}: {error}", self.table)))?;
                }
            }
            Piece::CopyEnd(text) => {
                if let Some(mut rows) = self.copy.take() {
                    let ended = rows.feed(text).and_then(|()| rows.end());
                    self.rows += ended.map_err(|error| wrong(format!("{}: {error}", self.table)))?;
                    self.tables += 1;
                }
            }
            Piece::Meta(text) => self.meta(text)?,
        }
        Ok(())
    }

    /// A line between statements.
    fn comment(&mut self, line: &str) -> io::Result<()> {
        let line = line.trim_end();
        if let Some(version) = line.strip_prefix(SERVER) {
            self.server.get_or_insert_with(|| version.to_owned());
        }
        for (title, begun) in [(CLUSTER, &mut self.clusters), (DATABASE, &mut self.databases)] {
            match line.strip_prefix(title) {
                Some("") => *begun += 1,
                Some(COMPLETE) => {
                    *begun =
                        begun.checked_sub(1).ok_or_else(|| wrong("the end of a dump that did not begin"))?;
                    self.ended += 1;
                    self.goes_on = false;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn statement(&mut self, text: &[u8]) -> io::Result<()> {
        self.goes_on = true;
        let is_copy = text.starts_with(b"COPY ");
        if is_copy {
            self.copy = Some(Rows::new(text, self.is_utf8));
            let name = text[5..].split(|byte| matches!(byte, b'(' | b'\n')).next().unwrap_or_default();
            self.table = format!("table {}", String::from_utf8_lossy(name).trim());
        } else if text.starts_with(b"SET client_encoding = ") {
            let encoding = text.split(|byte| *byte == b'\'').nth(1).unwrap_or_default();
            self.is_utf8 = encoding == b"UTF8";
            self.encoding.get_or_insert_with(|| String::from_utf8_lossy(encoding).into_owned());
        } else if text.starts_with(b"CREATE TABLESPACE ") {
            self.has_tablespaces = true;
        } else if text.starts_with(b"INSERT INTO ") {
            self.inserts += 1;
        } else if text.starts_with(LARGE_OBJECT) {
            self.large_objects += 1;
        }
        if text.contains(&0) || self.is_utf8 && std::str::from_utf8(text).is_err() {
            return Err(wrong("a statement has bytes that are not text"));
        }
        if !is_copy && !text.trim_ascii_end().ends_with(b";") {
            return Err(wrong("the last statement has no end"));
        }
        Ok(())
    }

    fn meta(&mut self, text: &[u8]) -> io::Result<()> {
        let text = text.trim_ascii();
        if let Some(key) = text.strip_prefix(b"\\restrict ") {
            self.key = Some(key.to_owned());
        } else if let Some(key) = text.strip_prefix(b"\\unrestrict ")
            && self.key.take().as_deref() != Some(key)
        {
            return Err(wrong("\\unrestrict has another key than \\restrict"));
        }
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        if self.clusters > 0 {
            return Err(wrong(format!(
                "it lacks the line \"{CLUSTER}{COMPLETE}\" at its end: it is cut off"
            )));
        }
        if self.databases > 0 || self.ended == 0 {
            return Err(wrong(format!(
                "it lacks the line \"{DATABASE}{COMPLETE}\" at its end: it is cut off"
            )));
        }
        if self.key.is_some() {
            return Err(wrong("it lacks \\unrestrict at its end: it is cut off"));
        }
        if self.goes_on {
            return Err(wrong("statements follow the end of the dump"));
        }
        Ok(())
    }
}
