//! Finds partitions without generated rows on which statements work.

use std::collections::BTreeSet;

use super::fill::Filled;
use super::unsuited::Columns;
use crate::find::{Work, WorkKind, shown_relation};
use crate::outcome::{Effects, StatementOutcome, TableAt};
use crate::rowless::Rowless;
use crate::schema::Schema;

/// The partitions of a migration's tables, at the largest size.
pub(super) struct Partitions<'a> {
    /// The tables as they were filled.
    filled: &'a [TableAt],
    columns: &'a Columns,
    schema: &'a Schema,
}

impl<'a> Partitions<'a> {
    pub(super) fn of(filled: &'a [Filled], columns: &'a Columns, schema: &'a Schema) -> Self {
        let filled = filled.last().map_or(&[][..], |largest| largest.tables.as_slice());
        Self { filled, columns, schema }
    }

    /// The tables as they were filled.
    pub(super) fn filled(&self) -> &'a [TableAt] {
        self.filled
    }

    /// Notes them at the statements. What earlier statements have inserted are rows, too.
    pub(super) fn note(&self, statements: &mut [StatementOutcome]) {
        let mut inserted = BTreeSet::new();
        for one in statements {
            let Some(found) = &one.found else { continue };
            let writes = found.works.iter().filter(|work| work.kind == WorkKind::Rows);
            inserted.extend(writes.map(|work| work.table));
            one.rowless = self.rowless(found, &inserted);
        }
    }

    fn rowless(&self, found: &Effects, inserted: &BTreeSet<u32>) -> Vec<Rowless> {
        let mut worked: Vec<&TableAt> = Vec::new();
        for table in found.works.iter().filter_map(|work| self.table(work)) {
            if !worked.iter().any(|known| known.oid == table.oid) {
                worked.push(table);
            }
        }
        let is_rowless = |table: &&&TableAt| {
            self.is_rowless(table, &worked)
                && !inserted.contains(&table.oid)
                && !self.schema.bare.contains(&table.name)
        };
        worked.iter().filter(is_rowless).map(|table| self.of_table(table)).collect()
    }

    fn table(&self, work: &Work) -> Option<&'a TableAt> {
        self.filled.iter().find(|table| table.oid == work.table)
    }

    /// Whether a partition has no rows, but its table does. If the statement works on other partitions of the table, all of the table's
    /// rows are in these, so its time is that of so many rows.
    fn is_rowless(&self, table: &TableAt, worked: &[&TableAt]) -> bool {
        let is_filled = |other: &TableAt| other.root == table.root && other.rows > 0;
        let is_partition = table.oid != table.root;
        is_partition
            && table.rows == 0
            && self.filled.iter().any(is_filled)
            && !worked.iter().any(|other| is_filled(other))
    }

    fn of_table(&self, table: &TableAt) -> Rowless {
        let (schema, name) = table.name.split_once('.').unwrap_or(("public", table.name.as_str()));
        // Its OID is that of the filled database.
        let keys = self.columns.keys(schema, name);
        let partition = shown_relation(schema, name);
        Rowless { partition, is_default: keys.is_some(), columns: keys.unwrap_or_default() }
    }
}
