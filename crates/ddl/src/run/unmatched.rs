//! Finds tables of which a statement writes rows, but changed none: no generated row satisfies its conditions, earlier statements have removed
//! all rows, or each row of INSERT … ON CONFLICT conflicts. Such a statement takes the lock of writes (ROW EXCLUSIVE) on its table all the same.

use std::collections::BTreeSet;

use connect::ConnectError;
use server::Session;

use crate::find::{Held, Kind, LockMode, Relation, Relations, Work, WorkKind};
use crate::outcome::StatementOutcome;
use crate::parts::Write;
use crate::rowless::{Unchanged, Unmatched};

/// Two readings around a statement.
#[derive(Clone, Copy)]
pub(super) struct Readings<'a> {
    /// The locks before and after.
    pub(super) locks: [&'a Held; 2],
    /// The relations before and after, with counters.
    pub(super) relations: [&'a Relations; 2],
    /// The work of the statement on relations.
    pub(super) works: &'a [Work],
}

/// The statements of a migration so far, as far as they tell why a later one changes no row.
pub(super) struct Earlier {
    /// Tables that had rows before the migration; of a partition, the partition.
    had_rows: BTreeSet<u32>,
    /// Tables of which DELETE without conditions has removed all rows, in the original, too.
    cleared: BTreeSet<u32>,
}

impl Earlier {
    /// None yet. `had_rows` are the tables with rows; of a partition, the partition.
    pub(super) fn new(had_rows: BTreeSet<u32>) -> Self {
        Self { had_rows, cleared: BTreeSet::new() }
    }

    /// The tables of which a statement writes rows, but changed none. `writes` are those that its text or its functions name, each with the
    /// OID of its table. In code, a write without its lock did not run, because the rows did not lead there. The session is that of the migration.
    pub(super) async fn unmatched(
        &mut self,
        (session, is_in_transaction): (&Session, bool),
        writes: &[(Option<u32>, Write)],
        readings: Readings<'_>,
    ) -> Result<Vec<Unmatched>, ConnectError> {
        let [before, _] = readings.relations;
        let mut found = Vec::new();
        for (sources, mut one) in readings.unmatched(writes) {
            if one.why == Unchanged::Conflict {
                // Rows that the migration itself has inserted are those of the original, too.
                let had_rows = self.had_rows.iter().any(|oid| sources.contains(&before.root(*oid)));
                found.extend(had_rows.then_some(one));
                continue;
            }
            let mut has_any = false;
            for table in sources.iter().filter_map(|oid| before.get(*oid)) {
                has_any = has_any || has_rows(session, is_in_transaction, &table.sql).await?;
            }
            if !has_any {
                one.why = Unchanged::Removed;
            }
            if has_any || !sources.is_subset(&self.cleared) {
                found.push(one);
            }
        }
        self.add(writes, readings);
        Ok(found)
    }

    /// Adds a statement.
    fn add(&mut self, writes: &[(Option<u32>, Write)], readings: Readings<'_>) {
        for written in readings.written() {
            self.cleared.remove(&written);
        }
        let [before, _] = readings.relations;
        let is_whole = |(oid, write): &(Option<u32>, Write)| {
            oid.filter(|oid| write.is_whole && !write.is_optional && before.root(*oid) == *oid)
        };
        self.cleared.extend(writes.iter().filter_map(is_whole));
    }
}

/// Whether the session sees rows of a table. It keeps no lock on it.
async fn has_rows(session: &Session, is_in_transaction: bool, table: &str) -> Result<bool, ConnectError> {
    let (begin, end) = if is_in_transaction {
        ("SAVEPOINT pgrig_rows", "ROLLBACK TO SAVEPOINT pgrig_rows; RELEASE SAVEPOINT pgrig_rows")
    } else {
        ("BEGIN", "ROLLBACK")
    };
    session.run(begin).await?;
    let found = session.row(&format!("SELECT EXISTS (SELECT FROM {table}) AS found"), &[]).await;
    session.run(end).await?;
    match found {
        Ok(row) => Ok(row.get("found")),
        // A role of the migration may not read it.
        Err(_) => Ok(true),
    }
}

impl Readings<'_> {
    /// The tables, each with those on whose rows that depends.
    fn unmatched(&self, writes: &[(Option<u32>, Write)]) -> Vec<(BTreeSet<u32>, Unmatched)> {
        let [before, _] = self.relations;
        let written = self.written();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        let locked: BTreeSet<u32> = self.locks[1].with(LockMode::RowExclusive).collect();
        let skipped = writes.iter().filter(|(_, write)| write.is_optional).filter_map(|(of, _)| *of);
        for oid in locked.iter().copied().chain(skipped) {
            let relation = before.get(oid).filter(|one| !one.is_temporary);
            if relation.is_none_or(|one| !matches!(one.kind, Kind::Table | Kind::Partitioned)) {
                continue;
            }
            let root = before.root(oid);
            let is_of_root = |of: Option<u32>| of.is_some_and(|of| before.root(of) == root);
            let named: Vec<&Write> =
                writes.iter().filter(|(of, _)| is_of_root(*of)).map(|(_, write)| write).collect();
            // Of a statement that wrote other rows, a trigger or a foreign key may have taken it.
            let is_own =
                !named.is_empty() || (written.is_empty() && !self.locks[0].has(oid, LockMode::RowExclusive));
            if !is_own || written.contains(&root) {
                continue;
            }
            let (why, sources) = self.cause(root, &named);
            if !sources.is_empty() && seen.insert(root) {
                let name = |oid: u32| before.get(oid).map_or_else(String::new, |table| table.name.clone());
                let one = Unmatched {
                    table: name(root),
                    is_insert: is_insert(&named),
                    is_plain: !named.is_empty() && named.iter().all(|write| write.is_plain),
                    why,
                    sources: sources.iter().copied().map(name).collect(),
                    is_of_schema: false,
                };
                found.push((sources, one));
            }
        }
        found
    }

    /// The tables whose rows it changed; those of which this is not known, too. Of a partition, the table.
    fn written(&self) -> BTreeSet<u32> {
        let [before, after] = self.relations;
        let is_written = |oid: &u32| match (before.get(*oid), after.get(*oid)) {
            (Some(before), Some(after)) => after.read.since(before.read).written() > 0,
            _ => true,
        };
        let tables = before.0.iter().filter(|(_, one)| one.kind == Kind::Table);
        let counted = tables.map(|(oid, _)| *oid).filter(is_written);
        let uncounted = self.works.iter().filter(|work| work.kind == WorkKind::Rows).map(|work| work.table);
        counted.chain(uncounted).map(|oid| before.root(oid)).collect()
    }

    /// Why it changed no row, and the tables on whose rows that depends; without any, it would change none in the original either.
    fn cause(&self, root: u32, named: &[&Write]) -> (Unchanged, BTreeSet<u32>) {
        let has_conflict = is_insert(named) && named.iter().any(|write| write.has_conflict);
        if has_conflict && self.looks_for_conflicts(root) {
            (Unchanged::Conflict, BTreeSet::from([root]))
        } else {
            (Unchanged::Conditions, self.sources(root, named))
        }
    }

    /// Whether it looked into an index of the table. INSERT … ON CONFLICT does so for each row, before it inserts the row (execIndexing.c:
    /// `ExecCheckIndexConstraints`).
    fn looks_for_conflicts(&self, root: u32) -> bool {
        let [before, after] = self.relations;
        let is_of_root = |index: &Relation| {
            let is_of_table = before.get(index.owner).is_some_and(|owner| owner.kind == Kind::Table);
            index.kind == Kind::Index && is_of_table && before.root(index.owner) == root
        };
        let mut indexes = before.0.iter().filter(|(_, index)| is_of_root(index));
        indexes.any(|(oid, index)| after.get(*oid).is_some_and(|now| now.read.since(index.read).scans > 0))
    }

    /// The tables whose rows could satisfy its conditions, if they were others: the table itself, or those that a query of INSERT reads. They
    /// have rows.
    fn sources(&self, root: u32, named: &[&Write]) -> BTreeSet<u32> {
        let [before, _] = self.relations;
        let has_rows = |oid: &u32| before.get(*oid).is_some_and(|one| one.kind.has_rows() && one.bytes > 0);
        if is_insert(named) {
            let read = self.locks[1].with(LockMode::AccessShare).filter(has_rows);
            let has_query = named.iter().any(|write| write.has_query);
            return read.filter(|_| has_query).map(|oid| before.root(oid)).collect();
        }
        let has_own = before.0.keys().any(|oid| has_rows(oid) && before.root(*oid) == root);
        if has_own { BTreeSet::from([root]) } else { BTreeSet::new() }
    }
}

/// Marks the writes whose conditions depend only on rows that the schema inserts. `inserted` are its tables, by their names for people.
pub(super) fn mark_rows_of_schema(inserted: &BTreeSet<String>, statements: &mut [StatementOutcome]) {
    let founds = statements.iter_mut().filter_map(|one| one.found.as_mut());
    for one in founds.flat_map(|found| &mut found.unmatched) {
        one.is_of_schema = one.sources.iter().all(|source| inserted.contains(source));
    }
}

/// Whether only INSERT writes it.
fn is_insert(named: &[&Write]) -> bool {
    !named.is_empty() && named.iter().all(|write| write.is_insert)
}
