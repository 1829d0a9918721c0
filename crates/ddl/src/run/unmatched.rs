//! Finds tables of which a statement writes rows, but changed none, because no generated row satisfies its conditions. Such a statement takes the lock
//! of writes (ROW EXCLUSIVE) on its table all the same.

use std::collections::BTreeSet;

use crate::find::{Held, Kind, LockMode, Relations, Work, WorkKind};
use crate::parts::Write;
use crate::rowless::Unmatched;

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

impl Readings<'_> {
    /// The tables. `writes` are those that the text of the statement names, each with the OID of its table. If it is a DO (`has_branches`), a
    /// write without its lock did not run, because the rows did not lead there.
    pub(super) fn unmatched(&self, writes: &[(Option<u32>, Write)], has_branches: bool) -> Vec<Unmatched> {
        let [before, _] = self.relations;
        let written = self.written();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        let locked: BTreeSet<u32> = self.locks[1].with(LockMode::RowExclusive).collect();
        let skipped = writes.iter().filter_map(|(of, _)| *of).filter(|_| has_branches);
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
            if is_own && !written.contains(&root) && self.could_match(root, &named) && seen.insert(root) {
                let table = before.get(root).map_or_else(String::new, |root| root.name.clone());
                let is_insert = is_insert(&named);
                let is_plain = !named.is_empty() && named.iter().all(|write| write.is_plain);
                found.push(Unmatched { table, is_insert, is_plain });
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

    /// Whether other rows could satisfy its conditions: there are rows, of the table itself, or to be inserted into it.
    fn could_match(&self, root: u32, named: &[&Write]) -> bool {
        let [before, _] = self.relations;
        let has_rows = |oid: u32| before.get(oid).is_some_and(|one| one.kind.has_rows() && one.bytes > 0);
        if is_insert(named) {
            let mut read = self.locks[1].with(LockMode::AccessShare);
            return named.iter().any(|write| write.has_query) && read.any(has_rows);
        }
        before.0.keys().any(|oid| has_rows(*oid) && before.root(*oid) == root)
    }
}

/// Whether only INSERT writes it.
fn is_insert(named: &[&Write]) -> bool {
    !named.is_empty() && named.iter().all(|write| write.is_insert)
}
