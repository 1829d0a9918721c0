//! Dumps in custom format: blocks of data in one file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use crate::check::error::CheckError;
use crate::check::format::archive::{Archive, Contents, DataLocation, Entry};
use crate::check::format::compression::{Frames, Method};
use crate::check::format::wrong;
use crate::check::outcome::Outcome;
use crate::check::run::{DUMP_REMEDY, Run, drain, table};

/// A part without a checksum.
const TOC: &str = "the table of contents, with the definitions of all objects";

pub(super) fn check(
    run: &Run<'_>,
    content: &mut dyn Read,
    name: &str,
    at: &Cell<u64>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    let mut archive = Archive::new(content);
    let read = archive.contents();
    let Some(contents) = run.watch.settle(outcome, name, Some(at.get()), read)? else { return Ok(()) };
    if !contents.is_custom {
        outcome.damage(name, Some(0), "it is only the table of contents of a dump in another format");
        return Ok(());
    }
    outcome.server = Some(contents.server.clone());
    gaps(outcome, &contents);
    outcome.tables.get_or_insert_default();
    outcome.rows.get_or_insert_default();
    let mut left: BTreeMap<i64, &Entry> = contents
        .entries
        .iter()
        .filter(|entry| entry.place != DataLocation::Nowhere)
        .map(|entry| (entry.id, entry))
        .collect();
    let mut blocks = Blocks { archive: &mut archive, contents: &contents, name, outcome };
    let read = blocks.read(&mut left);
    let is_read = run.watch.settle(outcome, name, Some(at.get()), read)?.is_some();
    if !is_read && left.len() > 1 {
        outcome.damage(name, None, format!("the data of {} entries were not reached", left.len()));
    } else if is_read {
        for entry in left.values() {
            outcome.damage(name, None, format!("the data of {} are missing", entry.label()));
        }
    }
    Ok(())
}

/// The parts without a checksum.
pub(super) fn gaps(outcome: &mut Outcome, contents: &Contents) {
    if contents.method != Method::None {
        outcome.kind = format!("{}, compressed with {}", outcome.kind, contents.method.name());
    }
    outcome.recipe.encoding = Some(contents.encoding.clone());
    outcome.gap(TOC, DUMP_REMEDY);
    match contents.method {
        Method::Zlib | Method::Gzip => {}
        Method::None => {
            outcome.gap("the data of all tables and large objects, which are not compressed", DUMP_REMEDY);
        }
        method => {
            let part = format!(
                "the data of all tables and large objects: pg_dump compresses with {} without checksums",
                method.name()
            );
            outcome.gap(part, DUMP_REMEDY);
        }
    }
}

struct Blocks<'a, R> {
    archive: &'a mut Archive<R>,
    contents: &'a Contents,
    name: &'a str,
    outcome: &'a mut Outcome,
}

impl<R: Read> Blocks<'_, R> {
    /// Reads all blocks, and takes their entries from those that are left.
    fn read(&mut self, left: &mut BTreeMap<i64, &Entry>) -> io::Result<()> {
        loop {
            let begin = self.archive.position;
            let Some((is_large_objects, id)) = self.archive.block()? else { return Ok(()) };
            let Some(entry) = left.get(&id).copied() else {
                return Err(wrong(format!(
                    "a block of data has number {id}, which the table of contents does not expect here"
                )));
            };
            if let DataLocation::At(Some(place)) = entry.place
                && place != begin
            {
                return Err(wrong(format!("the data of {} begin at {begin}, not at {place}", entry.label())));
            }
            if is_large_objects != entry.is_large_objects() {
                return Err(wrong(format!("the block of {} has the wrong kind", entry.label())));
            }
            if is_large_objects {
                self.large_objects()?;
            } else {
                self.table(entry)?;
            }
            left.remove(&id);
        }
    }

    fn table(&mut self, entry: &Entry) -> io::Result<()> {
        let mut content = Frames::new(self.contents.method, BufReader::new(self.archive.stream()));
        let read = table::read(&mut content, entry, self.contents, self.outcome);
        drop(content);
        let read = read.and_then(|rows| rows).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong(format!("{}: {error}", entry.label())),
            _ => error,
        });
        self.go_on(read)
    }

    fn large_objects(&mut self) -> io::Result<()> {
        loop {
            let oid = self.archive.int()?;
            if oid == 0 {
                return Ok(());
            }
            let mut content = Frames::new(self.contents.method, BufReader::new(self.archive.stream()));
            let read = drain(&mut content).map(drop);
            drop(content);
            self.outcome.large_objects += 1;
            let read = read.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => wrong(format!("large object {oid}: {error}")),
                _ => error,
            });
            self.go_on(read)?;
        }
    }

    /// After damage within a stream, the next stream can still be read.
    fn go_on(&mut self, read: io::Result<()>) -> io::Result<()> {
        let Err(error) = read else { return Ok(()) };
        if matches!(error.kind(), io::ErrorKind::Other) {
            return Err(error);
        }
        let position = self.archive.position;
        self.archive.skip_stream()?;
        let text = super::text(&error);
        self.outcome.damage(self.name, Some(position), text);
        Ok(())
    }
}
