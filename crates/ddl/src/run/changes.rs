//! Changes of rows by the statements of a migration, as far as they decide which rules the rows before it keep: a backfill is there because they
//! do not keep the rule that follows.

use std::collections::BTreeSet;

use crate::find::LockMode;
use crate::outcome::StatementOutcome;
use crate::parts::Write;
use crate::run::rehearse::Tables;
use crate::run::rules::Rule;
use crate::run::suit::Casts;
use crate::script::{Statement, StatementKind};
use crate::transaction::{Transaction, transaction};
use crate::triggers::events;

/// A change of a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// The place of the statement.
    place: usize,
    /// OID of the table.
    table: u32,
    /// The columns of existing rows that it sets, as they are called at that moment; none if they are not known, or rows are removed.
    columns: Option<Vec<String>>,
}

/// See the module.
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    /// Those of statements that ran on empty tables: they took the lock of writes on the tables.
    pub(crate) fn of(statements: &[StatementOutcome], tables: &Tables) -> Self {
        let (mut changes, mut kept) = (Vec::new(), BTreeSet::new());
        for (place, one) in statements.iter().enumerate() {
            if one.statement.kind == StatementKind::Transaction
                || transaction(statements, place) == Transaction::None
            {
                kept.clear();
            }
            let Some(found) = &one.found else { continue };
            let locked = found.held.iter().filter(|(_, modes)| modes.contains(&LockMode::RowExclusive));
            let locked: Vec<u32> = locked.map(|(oid, _)| *oid).collect();
            let writes = Write::all_of(&one.statement.sql);
            for &table in &locked {
                let named = writes.iter().filter(|write| concerns(write, table, tables)).collect::<Vec<_>>();
                // Its transaction has the lock from an earlier statement.
                if named.is_empty() && kept.contains(&table) && !one.statement.is_code() {
                    continue;
                }
                let columns = if one.statement.is_code() { None } else { columns(&named) };
                changes.push(Change { place, table, columns });
            }
            kept.extend(locked);
        }
        Self(changes)
    }

    /// The tables whose rows the statement at this place changes.
    pub(crate) fn tables_of(&self, place: usize) -> BTreeSet<u32> {
        self.0.iter().filter(|change| change.place == place).map(|change| change.table).collect()
    }

    /// The same, with those that the statement writes only if there are rows.
    pub(crate) fn with_code(&self, place: usize, one: &StatementOutcome) -> BTreeSet<u32> {
        let mut changed = self.tables_of(place);
        changed.extend(one.found.iter().flat_map(|found| &found.by_text.written));
        changed
    }

    /// Whether the rows of a rule's table may keep it only because of changes before it. `casts` are the columns before and after the migration, `with_domain` the
    /// tables with columns of the rule's domain.
    pub(crate) fn are_for(
        &self,
        rule: &Rule,
        [before, after]: [&Casts; 2],
        with_domain: Option<&BTreeSet<u32>>,
    ) -> bool {
        let names = before.names(after, rule.table);
        let first = |name: &String| {
            names.iter().find(|[known, _]| known == name).map_or(name.clone(), |[_, first]| first.clone())
        };
        let of_rule: BTreeSet<String> = rule.columns.iter().map(first).collect();
        let sets = |columns: &Vec<String>| columns.iter().any(|column| of_rule.contains(&first(column)));
        let is_before = |change: &&Change| rule.since.is_none_or(|since| change.place <= since);
        let concerns = |change: &Change| match with_domain {
            Some(tables) => tables.contains(&change.table),
            None => {
                change.table == rule.table && (of_rule.is_empty() || change.columns.as_ref().is_none_or(sets))
            }
        };
        self.0.iter().filter(is_before).any(concerns)
    }

    /// Whether rows have their values of a column only because of changes before the statement at this place; of any, if the place is not known. `names` are
    /// those that the migration gives the column.
    pub(crate) fn are_for_column(&self, table: u32, names: &[&str], place: Option<usize>) -> bool {
        let is_before = |change: &&Change| place.is_none_or(|place| change.place <= place);
        let sets = |columns: &Vec<String>| columns.iter().any(|column| names.contains(&column.as_str()));
        let concerns = |change: &Change| change.table == table && change.columns.as_ref().is_none_or(sets);
        self.0.iter().filter(is_before).any(concerns)
    }
}

/// Whether a write names a table, or one of which it is a partition or an INHERITS child.
pub(super) fn concerns(write: &Write, table: u32, tables: &Tables) -> bool {
    let mut named = tables.all().filter(|(_, one)| one.is_named(&write.table));
    named.any(|(oid, _)| oid == table || tables.is_below(table, oid))
}

/// The bits of the events of a table's rows that a statement causes, as far as its text tells: those of its writes of this table; of code, and of
/// writes that name another object, all that the text names.
pub(super) fn events_on(statement: &Statement, table: u32, tables: &Tables) -> i32 {
    let writes = if statement.is_code() { Vec::new() } else { Write::all_of(&statement.sql) };
    let own = writes.iter().filter(|write| concerns(write, table, tables));
    match own.fold(0, |events, write| events | write.events) {
        0 => events(statement),
        own => own,
    }
}

/// The columns of existing rows that these writes of a table set; none if that is not known. INSERT leaves these rows as they are.
fn columns(writes: &[&Write]) -> Option<Vec<String>> {
    if writes.is_empty() {
        return None;
    }
    let sets = |write: &&Write| {
        let adds_only = write.is_insert && !write.has_conflict;
        if adds_only { Some(Vec::new()) } else { write.sets.clone() }
    };
    let columns: Option<Vec<Vec<String>>> = writes.iter().map(sets).collect();
    Some(columns?.concat())
}
