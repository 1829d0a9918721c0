//! The types of all columns before and after a statement: which columns it drops, and of which it changes the type.

use std::collections::{BTreeMap, BTreeSet};

use connect::ConnectError;
use server::Session;
use tokio_postgres::Row;

use crate::run::rehearse::words;
use crate::script::Statement;

/// A column that a statement drops, or whose type it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// OID of its table.
    pub(crate) table: u32,
    /// Its number in the table.
    pub(crate) number: i16,
    pub(crate) change: Change,
}

/// A change of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has another type.
    Type,
    /// It is dropped, and its table stays.
    Dropped,
    /// Its table is dropped.
    WithTable,
}

/// A column, with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Schema and name of its table.
    pub(crate) table: (String, String),
    pub(crate) name: String,
    /// OID of the type, its modifier, and OID of the collation.
    kind: (u32, i32, u32),
}

/// The columns of all tables, by the OID of the table and their numbers in it.
#[derive(Debug, Default)]
pub(crate) struct Types(BTreeMap<(u32, i16), Column>);

impl Types {
    pub(crate) async fn read(session: &Session) -> Result<Self, ConnectError> {
        let rows = session.rows(include_str!("../sql/types.sql"), &[]).await?;
        let column = |row: &Row| {
            let table = (row.get("schema"), row.get("name"));
            let kind = (row.get("type"), row.get("modifier"), row.get("collation"));
            ((row.get("oid"), row.get("number")), Column { table, name: row.get("column_name"), kind })
        };
        Ok(Self(rows.iter().map(column).collect()))
    }

    /// The same, if the statement can drop a column or change its type; else none.
    pub(crate) async fn around(session: &Session, statement: &Statement) -> Result<Self, ConnectError> {
        if can_change(statement) { Self::read(session).await } else { Ok(Self::default()) }
    }

    pub(crate) fn get(&self, column: Changed) -> Option<&Column> {
        self.0.get(&(column.table, column.number))
    }

    /// The columns that are not there afterwards, or have another type then.
    pub(crate) fn changed(&self, after: &Self) -> Vec<Changed> {
        let tables: BTreeSet<u32> = after.0.keys().map(|(table, _)| *table).collect();
        let changed = |(&(table, number), column): (&(u32, i16), &Column)| {
            let change = match after.0.get(&(table, number)) {
                Some(now) if now.kind == column.kind => return None,
                Some(_) => Change::Type,
                None if tables.contains(&table) => Change::Dropped,
                None => Change::WithTable,
            };
            Some(Changed { table, number, change })
        };
        self.0.iter().filter_map(changed).collect()
    }
}

/// Whether a statement has a word without which it drops no column and changes no type, or calls code that may have it.
fn can_change(statement: &Statement) -> bool {
    let words = words(&statement.sql);
    statement.is_code() || ["drop", "type"].iter().any(|word| words.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_dropped_or_have_another_type_are_found() {
        let columns = |columns: &[(u32, i16, &str, u32)]| {
            let column = |(table, number, name, kind): &(u32, i16, &str, u32)| {
                let of = ("public".to_owned(), format!("t{table}"));
                ((*table, *number), Column { table: of, name: (*name).to_owned(), kind: (*kind, -1, 0) })
            };
            Types(columns.iter().map(column).collect())
        };
        let before = columns(&[(1, 1, "a", 23), (1, 2, "b", 23), (1, 3, "c", 25), (2, 1, "a", 23)]);
        let after = columns(&[(1, 1, "renamed", 23), (1, 2, "b", 20), (1, 4, "new", 25)]);
        let changed: Vec<(u32, i16, Change)> =
            before.changed(&after).iter().map(|one| (one.table, one.number, one.change)).collect();
        assert_eq!(changed, [(1, 2, Change::Type), (1, 3, Change::Dropped), (2, 1, Change::WithTable)]);
        assert!(Types::default().changed(&after).is_empty());
    }
}
