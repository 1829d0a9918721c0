//! Tables of which statements of the migration remove most rows by conditions: the times of later statements are those of the rows that are
//! left. In the original, the same conditions may leave more.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::edge::Edge;
use crate::find::{Work, WorkKind};
use crate::outcome::{StatementOutcome, TableAt};
use crate::parts::Write;
use crate::script::Statement;
use crate::triggers::DELETE;

/// A table of which earlier statements have removed more than half of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thinned {
    /// Name of the table for people.
    pub table: String,
    /// The number of the last statement that removed some.
    pub by: usize,
    /// Percent of its rows that were removed, rounded down.
    pub percent: u64,
}

/// Rows that were removed from a table, without those that were inserted meanwhile.
#[derive(Clone, Debug)]
struct Removal {
    table: String,
    rows: i64,
    by: usize,
}

/// Removals by the OID of the table.
type Removals = BTreeMap<u32, Removal>;

/// The removals of a migration so far.
#[derive(Debug, Default)]
struct Removed {
    now: Removals,
    /// As they were before the transaction that is open.
    before: Option<Removals>,
    /// As they were at its savepoints.
    savepoints: Vec<(String, Removals)>,
}

/// Notes such tables at the later statements that work on them. `filled` are the tables before the migration.
pub(crate) fn note(filled: &[TableAt], statements: &mut [StatementOutcome]) {
    let rows: BTreeMap<u32, u64> = filled.iter().map(|table| (table.oid, table.rows)).collect();
    let mut removed = Removed::default();
    for one in statements {
        if let Some(edge) = Edge::of(&one.statement) {
            removed.pass(edge, &one.statement);
        }
        let Some(found) = &one.found else { continue };
        // One that changes no row has a warning of its own.
        if found.unmatched.is_empty() {
            one.thinned = removed.thinned(&found.works, &rows);
        }
        if one.statement.is_truncate() {
            removed.now.retain(|oid, _| !found.held.contains_key(oid));
        }
        removed.add(one.number, &one.statement, &found.works);
    }
}

/// Whether a statement removes all rows of each table of which it removes any: of the original, too.
fn is_whole(statement: &Statement) -> bool {
    let writes = Write::all_of(&statement.sql);
    let mut removing = writes.iter().filter(|write| write.events & DELETE != 0).peekable();
    removing.peek().is_some() && removing.all(|write| write.is_whole && !write.is_optional)
}

impl Removed {
    /// The tables on which a statement works, and of which most rows were removed.
    fn thinned(&self, works: &[Work], rows: &BTreeMap<u32, u64>) -> Vec<Thinned> {
        let mut thinned: Vec<Thinned> = Vec::new();
        for work in works {
            let (Some(removal), Some(rows)) = (self.now.get(&work.table), rows.get(&work.table)) else {
                continue;
            };
            let removed = u64::try_from(removal.rows).unwrap_or_default().min(*rows);
            let is_known = thinned.iter().any(|known| known.table == removal.table);
            if removed * 2 > *rows && !is_known {
                let (table, by) = (removal.table.clone(), removal.by);
                thinned.push(Thinned { table, by, percent: removed * 100 / *rows });
            }
        }
        thinned
    }

    /// Adds the rows that a statement removes and inserts.
    fn add(&mut self, number: usize, statement: &Statement, works: &[Work]) {
        let is_whole = is_whole(statement);
        for work in works.iter().filter(|work| work.kind == WorkKind::Rows) {
            let Some(read) = work.proof.read else { continue };
            if read.deleted > 0 && is_whole {
                self.now.remove(&work.table);
                continue;
            }
            let none = || Removal { table: work.relation.clone(), rows: 0, by: number };
            let removal = self.now.entry(work.table).or_insert_with(none);
            removal.rows += read.deleted - read.inserted;
            if read.deleted > 0 {
                removal.by = number;
            }
        }
    }

    /// A statement that begins, ends or divides a transaction: what is rolled back was not removed.
    fn pass(&mut self, edge: Edge, statement: &Statement) {
        match edge {
            Edge::Begins => {
                self.before.get_or_insert_with(|| self.now.clone());
            }
            Edge::Ends | Edge::Chains => {
                let line = statement.in_one_line().to_ascii_lowercase();
                let is_undone = ["rollback", "abort"].iter().any(|word| line.starts_with(word));
                if let Some(before) = self.before.take().filter(|_| is_undone) {
                    self.now = before;
                }
                self.before = (edge == Edge::Chains).then(|| self.now.clone());
                self.savepoints.clear();
            }
            Edge::Saves(name) => self.savepoints.push((name, self.now.clone())),
            Edge::Returns(name) => {
                if let Some((_, saved)) = self.savepoints.iter().rfind(|(saved, _)| *saved == name) {
                    self.now = saved.clone();
                }
            }
            Edge::Releases(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::{Proof, Read};
    use crate::script::Script;

    /// Work that removes so many rows, and inserts so many.
    fn work(deleted: i64, inserted: i64) -> Work {
        let read = Some(Read { inserted, deleted, ..Read::default() });
        let proof = Proof { file: None, read, is_event: false, is_vacuumed: false };
        Work { oid: 7, table: 7, relation: "posts".to_owned(), kind: WorkKind::Rows, proof }
    }

    /// Percent that were removed of 1,000 rows, for a statement after this migration, each of whose DELETEs removes 600 rows, and each INSERT
    /// inserts 200.
    fn percent(migration: &str) -> Option<u64> {
        let mut removed = Removed::default();
        for (statement, number) in Script::read(migration, None).unwrap().statements.iter().zip(1..) {
            if let Some(edge) = Edge::of(statement) {
                removed.pass(edge, statement);
            } else {
                let is_insert = statement.sql.contains("INSERT");
                let work = if is_insert { work(0, 200) } else { work(600, 0) };
                removed.add(number, statement, &[work]);
            }
        }
        removed.thinned(&[work(0, 0)], &BTreeMap::from([(7, 1000)])).first().map(|one| one.percent)
    }

    #[test]
    fn rows_that_conditions_remove_are_counted_until_others_come_or_they_return() {
        for (migration, wanted) in [
            ("DELETE FROM posts WHERE n > 1", Some(60)),
            ("DELETE FROM posts WHERE n > 1; DELETE FROM posts WHERE n > 0", Some(100)),
            ("DELETE FROM posts WHERE n > 1; INSERT INTO posts VALUES (1)", None),
            ("DELETE FROM posts", None),
            ("DELETE FROM posts WHERE n > 1; DELETE FROM posts", None),
            ("BEGIN; DELETE FROM posts WHERE n > 1; COMMIT", Some(60)),
            ("BEGIN; DELETE FROM posts WHERE n > 1; ROLLBACK", None),
            ("BEGIN; SAVEPOINT a; DELETE FROM posts WHERE n > 1; ROLLBACK TO a; COMMIT", None),
            ("BEGIN; DELETE FROM posts WHERE n > 1; COMMIT AND CHAIN; ROLLBACK", Some(60)),
        ] {
            assert_eq!(percent(migration), wanted, "{migration}");
        }
    }

    #[test]
    fn rows_that_move_to_another_table_are_removed_as_those_of_a_delete() {
        let moved = |delete: &str| {
            format!("WITH gone AS ({delete} RETURNING *) INSERT INTO archive SELECT * FROM gone WHERE n > 1")
        };
        for (sql, wanted) in [
            (moved("DELETE FROM posts"), true),
            (moved("DELETE FROM posts WHERE n > 1"), false),
            ("INSERT INTO posts VALUES (1)".to_owned(), false),
            ("DO $$ BEGIN DELETE FROM posts; END $$".to_owned(), false),
        ] {
            let script = Script::read(&sql, None).unwrap();
            assert_eq!(is_whole(&script.statements[0]), wanted, "{sql}");
        }
    }
}
