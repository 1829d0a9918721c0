//! The types of all columns, and the constraints with indexes, before and after a statement: which of them it drops, and to which columns it
//! gives a type.

use std::collections::{BTreeMap, BTreeSet};

use connect::ConnectError;
use server::Session;
use tokio_postgres::Row;

use crate::outcome::StatementOutcome;
use crate::run::rehearse::words;
use crate::script::Statement;

/// A part of a table that a statement drops, or a column to which it gives a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// OID of its table.
    pub(crate) table: u32,
    pub(crate) part: Part,
    pub(crate) change: Change,
}

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The column of this number.
    Column(i16),
    /// The constraint of this OID.
    Constraint(u32),
}

/// A change of a part, in the order in which ALTER TABLE makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Its table is dropped.
    WithTable,
    /// It is dropped, and its table stays.
    Dropped,
    /// It gets a type, perhaps the same.
    Type,
    /// It is a constraint that is dropped and made anew, because a column of it gets a type.
    Rebuilt,
}

/// A column with its type, or a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Schema and name of its table.
    pub(crate) table: (String, String),
    pub(crate) name: String,
    /// OID of the type, its modifier, and OID of the collation; of a constraint always the same.
    kind: (u32, i32, u32),
}

/// The parts of all tables, by the OID of the table.
#[derive(Debug, Default)]
pub(crate) struct Types(BTreeMap<(u32, Part), Known>);

impl Types {
    pub(crate) async fn read(session: &Session) -> Result<Self, ConnectError> {
        let rows = session.rows(include_str!("../sql/types.sql"), &[]).await?;
        let part = |row: &Row| {
            let table = (row.get("schema"), row.get("name"));
            let kind = (row.get("type"), row.get("modifier"), row.get("collation"));
            let number: Option<i16> = row.get("number");
            let part = number.map_or_else(|| Part::Constraint(row.get("rule")), Part::Column);
            ((row.get("oid"), part), Known { table, name: row.get("part"), kind })
        };
        Ok(Self(rows.iter().map(part).collect()))
    }

    /// The same, if the statement can drop a part of a table or give a column a type; else none.
    pub(crate) async fn around(session: &Session, statement: &Statement) -> Result<Self, ConnectError> {
        if can_change(statement) { Self::read(session).await } else { Ok(Self::default()) }
    }

    pub(crate) fn get(&self, changed: Changed) -> Option<&Known> {
        self.0.get(&(changed.table, changed.part))
    }

    /// The parts that are not there afterwards, and the columns that have another type then. Also columns of the names `typed` in tables that are
    /// altered: the server refuses their own type as any other.
    pub(crate) fn changed(
        &self,
        after: &Self,
        (typed, is_altered): (&[String], impl Fn(u32) -> bool),
    ) -> Vec<Changed> {
        let tables: BTreeSet<u32> = after.0.keys().map(|(table, _)| *table).collect();
        let is_typed = |table: u32, part: Part, known: &Known| {
            matches!(part, Part::Column(_)) && typed.contains(&known.name) && is_altered(table)
        };
        let changed = |(&(table, part), known): (&(u32, Part), &Known)| {
            let change = match after.0.get(&(table, part)) {
                Some(now) if now.kind == known.kind && !is_typed(table, part, known) => return None,
                Some(_) => Change::Type,
                None if after.has_again(table, part, known) => Change::Rebuilt,
                None if tables.contains(&table) => Change::Dropped,
                None => Change::WithTable,
            };
            Some(Changed { table, part, change })
        };
        self.0.iter().filter_map(changed).collect()
    }

    /// Whether there is a constraint with the name of one that was there before.
    fn has_again(&self, table: u32, part: Part, known: &Known) -> bool {
        let is_constraint = |part: &Part| matches!(part, Part::Constraint(_));
        let mut parts = self.0.iter().filter(|((of, part), _)| *of == table && is_constraint(part));
        is_constraint(&part) && parts.any(|(_, now)| now.name == known.name)
    }
}

/// The last statement that gives a column a type, by the OID of the table and the number of the column.
pub(crate) fn places(statements: &[StatementOutcome]) -> BTreeMap<(u32, i16), usize> {
    let mut places = BTreeMap::new();
    for (place, one) in statements.iter().enumerate() {
        for changed in one.found.iter().flat_map(|found| &found.changed) {
            if let (Part::Column(number), Change::Type) = (changed.part, changed.change) {
                places.insert((changed.table, number), place);
            }
        }
    }
    places
}

/// Whether a statement has a word without which it drops no part of a table and gives no column a type, or calls code that may have it.
fn can_change(statement: &Statement) -> bool {
    let words = words(&statement.sql);
    statement.is_code() || ["drop", "type"].iter().any(|word| words.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(parts: &[(u32, Part, &str, u32)]) -> Types {
        let part = |(table, part, name, kind): &(u32, Part, &str, u32)| {
            let of = ("public".to_owned(), format!("t{table}"));
            ((*table, *part), Known { table: of, name: (*name).to_owned(), kind: (*kind, -1, 0) })
        };
        Types(parts.iter().map(part).collect())
    }

    fn changed(before: &Types, after: &Types, typed: &[String]) -> Vec<(u32, Part, Change)> {
        let changed = before.changed(after, (typed, |table| table == 1));
        changed.iter().map(|one| (one.table, one.part, one.change)).collect()
    }

    #[test]
    fn columns_that_are_dropped_or_get_a_type_are_found() {
        let column = Part::Column;
        let before = types(&[
            (1, column(1), "a", 23),
            (1, column(2), "b", 23),
            (1, column(3), "c", 25),
            (2, column(1), "a", 23),
            (3, column(1), "a", 23),
        ]);
        let after = types(&[
            (1, column(1), "a", 23),
            (1, column(2), "renamed", 20),
            (1, column(4), "new", 25),
            (3, column(1), "a", 23),
        ]);
        let of_type = [(1, column(2), Change::Type), (1, column(3), Change::Dropped)];
        let with_table = (2, column(1), Change::WithTable);
        assert_eq!(changed(&before, &after, &[]), [of_type[0], of_type[1], with_table]);
        // Its own type, in the table that the statement names.
        assert_eq!(changed(&before, &after, &["a".to_owned()])[0], (1, column(1), Change::Type));
        assert_eq!(changed(&before, &after, &["a".to_owned()]).len(), 4);
        assert!(changed(&Types::default(), &after, &[]).is_empty());
    }

    #[test]
    fn constraints_that_are_dropped_or_made_anew_are_found() {
        let (column, constraint) = (Part::Column(1), Part::Constraint);
        let of = |number: u32, name: &'static str| (1, constraint(number), name, 0);
        let before = types(&[(1, column, "a", 23), of(11, "t_pkey"), of(12, "t_a_key"), of(13, "t_b_key")]);
        let after = types(&[(1, column, "a", 20), of(21, "t_pkey"), of(12, "renamed")]);
        let wanted = [
            (1, column, Change::Type),
            (1, constraint(11), Change::Rebuilt),
            (1, constraint(13), Change::Dropped),
        ];
        assert_eq!(changed(&before, &after, &[]), wanted);
    }
}
