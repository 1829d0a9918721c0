//! The work of statements with rows, as it is assumed after they ran without rows and before any table is filled.

use std::collections::{BTreeMap, BTreeSet};

use super::cascades::Cascades;
use super::changes::Changes;
use super::clock::class_of;
use super::rehearse::{Table, Tables};
use crate::find::Class;
use crate::outcome::{ByText, StatementOutcome};
use crate::transaction;

/// The work of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Assumed {
    pub(crate) class: Class,
    /// The names of its tables, each with the number of times that the statement writes it anew, if it does.
    pub(crate) tables: BTreeMap<String, u64>,
    /// The number of its transaction.
    pub(crate) transaction: usize,
}

/// Of each statement that ran without rows its class with them, and its tables: also those whose rows foreign keys change, and those that its code writes or
/// copies only if there are rows.
pub(super) fn works(
    statements: &[StatementOutcome],
    (changes, tables): (&Changes, &Tables),
    cascades: &Cascades,
) -> Vec<Assumed> {
    let name = |oid: &u32| tables.get(tables.get(*oid)?.root()).map(Table::shown);
    let work = |(place, (one, transaction)): (usize, (&StatementOutcome, usize))| {
        let found = one.found.as_ref()?;
        let by_keys = cascades.of(&one.statement, &changes.with_code(place, one), tables);
        let ByText { written, copied, rewritten } = &found.by_text;
        let mut oids: BTreeSet<u32> = found.tables.union(written).chain(copied).copied().collect();
        oids.extend(by_keys.into_iter().map(|(table, _)| table));
        let by_text = [(written, Class::Rows), (copied, Class::Copy)];
        let classes = by_text.into_iter().filter(|(tables, _)| !tables.is_empty()).map(|(_, class)| class);
        let class = classes.fold(class_of(found), Class::max);
        let mut named: BTreeMap<String, u64> = BTreeMap::new();
        for (oid, name) in oids.iter().filter_map(|oid| Some((oid, name(oid)?))) {
            // Code that commits has removed the old files before it writes the table once more.
            let times = if found.is_alone { 1 } else { rewritten.get(oid).copied().unwrap_or(1) };
            let most = named.entry(name).or_default();
            *most = times.max(*most);
        }
        Some(Assumed { class, tables: named, transaction })
    };
    let numbers = transaction::numbers(statements.iter().map(|one| &one.statement));
    statements.iter().zip(numbers).enumerate().filter_map(work).collect()
}
