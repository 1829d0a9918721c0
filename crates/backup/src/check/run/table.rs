//! Data of one entry of a dump.

use std::io::{self, Read};

use crate::check::format::archive::{Contents, Entry};
use crate::check::format::rows::Rows;
use crate::check::outcome::Outcome;
use crate::check::run::{BUFFER, drain};

/// Reads a table's data to their end. The outer error is one of the stream, the inner one of the rows in it.
pub(super) fn read(
    content: &mut (impl Read + ?Sized),
    entry: &Entry,
    contents: &Contents,
    outcome: &mut Outcome,
) -> io::Result<io::Result<()>> {
    *outcome.tables.get_or_insert_default() += 1;
    let Some(copy) = &entry.copy else {
        outcome.has_inserts = true;
        drain(content)?;
        return Ok(Ok(()));
    };
    let mut rows = Rows::new(copy, contents.encoding == "UTF8");
    let mut piece = vec![0; BUFFER];
    let mut found = Ok(());
    loop {
        let read = content.read(&mut piece)?;
        if read == 0 {
            break;
        }
        if found.is_ok() {
            found = rows.feed(&piece[..read]);
        }
    }
    let ended = found.and_then(|()| rows.end());
    Ok(ended.map(|rows| *outcome.rows.get_or_insert_default() += rows))
}
