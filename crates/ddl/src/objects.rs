//! The constraints and indexes of a table and of its partitions after a statement, with the names that the server gave them. A better way
//! uses these names, so that it leaves the same schema as the statement.

use server::quote;

use crate::parted::Node;
use crate::parts::{RuleKind, names};

/// Kinds of constraints and indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Check,
    /// A foreign key.
    Reference,
    /// NOT NULL: a constraint from PostgreSQL 18 on.
    NotNull,
    /// UNIQUE or PRIMARY KEY.
    Key,
    /// An index, also that of a constraint.
    Index,
}

impl ObjectKind {
    /// By the letter in `pg_constraint.contype`, or `i` for an index; none for other constraints.
    pub(crate) fn of(letter: &str) -> Option<Self> {
        Some(match letter {
            "c" => Self::Check,
            "f" => Self::Reference,
            "n" => Self::NotNull,
            "p" | "u" => Self::Key,
            "i" => Self::Index,
            _ => return None,
        })
    }
}

/// A constraint or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    pub(crate) oid: u32,
    /// OID of its table.
    pub(crate) table: u32,
    /// Its name as the server has it.
    pub(crate) name: String,
    /// OID of the constraint or index of the same kind, on the partitioned table, of which it is a part; 0 for others.
    pub(crate) parent: u32,
    /// The column of NOT NULL, by its name as the server has it.
    pub(crate) column: Option<String>,
    /// Whether the statement has made it.
    pub(crate) is_new: bool,
}

impl Object {
    /// Its name as SQL.
    pub(crate) fn sql(&self) -> String {
        quote::shown(&self.name)
    }
}

/// The name of a constraint as SQL: that of the text if it has one, else that of the object.
pub(crate) fn name(text: Option<&str>, object: Option<&Object>) -> Option<String> {
    text.map(str::to_owned).or_else(|| Some(object?.sql()))
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// OID of the table that the statement names; 0 if it names none.
    pub(crate) table: u32,
    /// In the order in which the server made them.
    pub(crate) all: Vec<Object>,
}

impl Objects {
    /// With a mark on those that were not there before.
    #[must_use]
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for one in &mut self.all {
            one.is_new = !before.all.iter().any(|old| (old.kind, old.oid) == (one.kind, one.oid));
        }
        self
    }

    /// The last ones of a kind that the statement has made on the table that it names; none if it has made fewer. ALTER TABLE makes the foreign
    /// keys of new columns first, and then those of the table, in the order of the text (tablecmds.c: `ATParseTransformCmd`).
    pub(crate) fn last(&self, kind: ObjectKind, number: usize) -> Option<Vec<&Object>> {
        let of_kind = self.all.iter().filter(|one| one.kind == kind && one.is_new);
        let mut made: Vec<&Object> =
            of_kind.filter(|one| one.table == self.table && one.parent == 0).collect();
        let first = made.len().checked_sub(number)?;
        Some(made.split_off(first))
    }

    /// That of a statement that makes a single one of this kind.
    pub(crate) fn single(&self, kind: ObjectKind) -> Option<&Object> {
        self.last(kind, 1)?.pop()
    }

    /// The constraint of a statement that makes a single one of this kind.
    pub(crate) fn of_rule(&self, kind: RuleKind<'_>) -> Option<&Object> {
        match kind {
            RuleKind::Check => self.single(ObjectKind::Check),
            RuleKind::Reference => self.single(ObjectKind::Reference),
            RuleKind::NotNull(column) => self.not_null(self.table, column),
        }
    }

    /// The NOT NULL constraint of a column of a table. `column` is its name as SQL.
    pub(crate) fn not_null(&self, table: u32, column: &str) -> Option<&Object> {
        let column = names(column).next()?;
        let is_it = |one: &&Object| one.table == table && one.column.as_ref() == Some(&column);
        self.all.iter().filter(|one| one.kind == ObjectKind::NotNull).find(is_it)
    }

    /// The object that a statement made on a partitioned table, and the part of it on each partition, in the order of
    /// `tree`; none if one is missing.
    pub(crate) fn of_tree(&self, kind: ObjectKind, tree: &[Node]) -> Option<Vec<&Object>> {
        let mut found: Vec<&Object> = Vec::new();
        for node in tree {
            let object = match node.parent {
                None => self.single(kind)?,
                Some(place) => {
                    let parent = found.get(place)?.oid;
                    let is_part = |one: &&Object| one.parent == parent && one.table == node.oid;
                    self.all.iter().filter(|one| one.kind == kind).find(is_part)?
                }
            };
            found.push(object);
        }
        Some(found)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A constraint or index that a statement has made.
    pub(crate) fn made(kind: ObjectKind, oid: u32, table: u32, name: &str) -> Object {
        Object { kind, oid, table, name: name.to_owned(), parent: 0, column: None, is_new: true }
    }

    /// NOT NULL that a statement has made.
    pub(crate) fn not_null(oid: u32, table: u32, column: &str, name: &str) -> Object {
        Object { column: Some(column.to_owned()), ..made(ObjectKind::NotNull, oid, table, name) }
    }

    /// Those of table 1.
    pub(crate) fn of_table(all: &[Object]) -> Objects {
        Objects { table: 1, all: all.to_vec() }
    }

    #[test]
    fn the_last_of_a_kind_are_those_of_the_table_s_own_actions() {
        let objects = of_table(&[
            made(ObjectKind::Reference, 11, 1, "of_column"),
            made(ObjectKind::Reference, 12, 1, "T_first"),
            Object { parent: 12, ..made(ObjectKind::Reference, 13, 1, "of_referenced_partition") },
            made(ObjectKind::Reference, 14, 2, "of_partition"),
            Object { is_new: false, ..made(ObjectKind::Reference, 15, 1, "old") },
            made(ObjectKind::Reference, 16, 1, "second"),
            made(ObjectKind::Check, 17, 1, "check"),
        ]);
        let last = |number| {
            let found = objects.last(ObjectKind::Reference, number)?;
            Some(found.into_iter().map(Object::sql).collect::<Vec<_>>())
        };
        assert_eq!(last(2).unwrap(), ["\"T_first\"", "second"]);
        assert_eq!(last(4), None);
        assert_eq!(objects.of_rule(RuleKind::Check).unwrap().name, "check");
        assert_eq!(objects.single(ObjectKind::Key), None);
    }

    #[test]
    fn what_was_there_before_is_not_new() {
        let before = of_table(&[made(ObjectKind::Check, 11, 1, "a"), made(ObjectKind::Index, 12, 1, "b")]);
        let after = of_table(&[
            made(ObjectKind::Check, 11, 1, "a"),
            made(ObjectKind::Check, 12, 1, "c"),
            made(ObjectKind::Index, 12, 1, "b"),
        ]);
        let is_new: Vec<bool> = after.since(&before).all.iter().map(|one| one.is_new).collect();
        assert_eq!(is_new, [false, true, false]);
    }

    #[test]
    fn not_null_is_found_by_its_column() {
        let objects = of_table(&[not_null(11, 1, "a", "t_a_not_null"), not_null(12, 2, "B c", "other")]);
        assert_eq!(objects.of_rule(RuleKind::NotNull("A")).unwrap().name, "t_a_not_null");
        assert_eq!(objects.not_null(2, "\"B c\"").unwrap().name, "other");
        assert_eq!(objects.not_null(1, "\"B c\""), None);
    }
}
