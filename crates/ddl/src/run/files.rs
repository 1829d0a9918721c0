//! The least space of a statement outside of transactions that replaces files: VACUUM FULL, CLUSTER of all tables, REINDEX CONCURRENTLY; and code
//! that writes tables anew and commits.
//!
//! For each table, the server writes the new files of the table, its indexes and its TOAST table, and removes the old ones at the commit
//! (cluster.c: `finish_heap_swap`). So old and new files are there together just before the commit, whether or not a reading meets this moment.

use std::collections::{BTreeMap, BTreeSet};

use connect::ConnectError;

use crate::find::{Work, WorkKind};
use crate::outcome::{Effects, Space};
use crate::run::watch::Watcher;
use crate::script::Statement;

/// A file of a table, of an index or of a TOAST table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// `relfilenode`.
    pub(crate) number: u32,
    /// OID of the table to which it belongs.
    pub(crate) table: u32,
    pub(crate) bytes: i64,
}

/// The files before a statement.
pub(crate) struct Before {
    files: Vec<File>,
    /// OIDs of the tables whose new files were there together with the old ones; none for all.
    anew: Option<BTreeSet<u32>>,
}

/// Bytes of a table's files.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    /// New files.
    new: i64,
    /// All files, less those before.
    grown: i64,
}

impl Change {
    /// Bytes by which it is smaller, as a negative number; else 0.
    fn shrunk(self) -> i64 {
        self.grown.min(0)
    }
}

/// The files before a statement outside of transactions. Code may remove the old files in a transaction before it makes the new ones (TRUNCATE): of
/// it, only tables count that it is known to write anew, and none if its effects are not `found` yet.
pub(crate) async fn before(
    watcher: &Watcher,
    statement: &Statement,
    found: Option<&Effects>,
) -> Result<Option<Before>, ConnectError> {
    let anew = statement.is_code().then(|| found.map_or_else(BTreeSet::new, written_anew));
    if anew.as_ref().is_some_and(BTreeSet::is_empty) {
        return Ok(None);
    }
    Ok(Some(Before { files: watcher.files().await?, anew }))
}

/// The tables for which the server raised `table_rewrite`. Rows that were inserted in another transaction would make a new file larger than it was
/// beside the old one.
fn written_anew(found: &Effects) -> BTreeSet<u32> {
    let is_anew = |work: &&Work| {
        let is_unchanged = work.proof.read.is_some_and(|read| read.written() == 0);
        work.kind == WorkKind::Rewrite && work.proof.is_event && is_unchanged
    };
    found.works.iter().filter(is_anew).map(|work| work.table).collect()
}

/// The space of a statement that has ended, at least that of its new files.
pub(crate) async fn at_least(
    watcher: &Watcher,
    before: Option<Before>,
    space: Space,
) -> Result<Space, ConnectError> {
    let Some(Before { files, anew }) = before else { return Ok(space) };
    let least = least(&files, &watcher.files().await?, anew.as_ref());
    Ok(Space { files: space.files.max(least), ..space })
}

/// The new files of one table, the largest, less the bytes that all others have lost: each table may have a transaction of its own, and the
/// others may have lost theirs before. Only these tables count, if they are given.
fn least(before: &[File], after: &[File], of: Option<&BTreeSet<u32>>) -> u64 {
    let were_there: BTreeSet<u32> = before.iter().map(|file| file.number).collect();
    let mut tables: BTreeMap<u32, Change> = BTreeMap::new();
    for file in before {
        tables.entry(file.table).or_default().grown -= file.bytes;
    }
    for file in after {
        let change = tables.entry(file.table).or_default();
        change.grown += file.bytes;
        if !were_there.contains(&file.number) {
            change.new += file.bytes;
        }
    }
    let shrunk: i64 = tables.values().copied().map(Change::shrunk).sum();
    let at_its_commit = |change: &Change| change.new + shrunk - change.shrunk();
    let counted = tables.iter().filter(|(table, _)| of.is_none_or(|of| of.contains(table)));
    let most = counted.map(|(_, change)| at_its_commit(change)).max();
    u64::try_from(most.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(u32, u32, i64)]) -> Vec<File> {
        files.iter().map(|&(number, table, bytes)| File { number, table, bytes }).collect()
    }

    #[test]
    fn new_files_of_one_table_are_there_together_with_the_old_ones() {
        let before = files(&[(1, 10, 100), (2, 10, 30), (3, 20, 50)]);
        let least = |before: &[File], after: &[File]| super::least(before, after, None);
        assert_eq!(least(&before, &before), 0);
        // A table and its index; the one of the other table that becomes smaller may have gone first.
        assert_eq!(least(&before, &files(&[(4, 10, 90), (5, 10, 20), (3, 20, 50)])), 110);
        assert_eq!(least(&before, &files(&[(4, 10, 90), (5, 10, 20), (6, 20, 45)])), 105);
        // Only an index, or a table without one.
        assert_eq!(least(&before, &files(&[(1, 10, 100), (4, 10, 25), (3, 20, 50)])), 25);
        assert_eq!(least(&before, &files(&[(1, 10, 100), (2, 10, 30), (4, 20, 50)])), 50);
        // VACUUM has truncated a table.
        assert_eq!(least(&before, &files(&[(1, 10, 10), (2, 10, 30), (3, 20, 50)])), 0);
        // Code has truncated one table, and filled it later; the other is written anew.
        let after = files(&[(4, 10, 90), (5, 10, 20), (6, 20, 45)]);
        assert_eq!(super::least(&before, &after, Some(&BTreeSet::from([20]))), 25);
    }
}
