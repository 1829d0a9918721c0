//! A statement that fails because of the generated rows: the columns that need other values.
//!
//! The server names the column only for NOT NULL. For a constraint it names the table, and for a duplicate or missing key the
//! columns too; for a value that cannot be cast it names nothing. The text of the statement then tells the columns, or a constraint
//! that it names.
//!
//! No values of the rows help a column that the migration adds itself: the rows do not have it.

use std::collections::BTreeSet;

use connect::{ServerError, SqlState};
use fill::is_name_of;

use crate::find::shown_relation;
use crate::outcome::StatementOutcome;
use crate::parts::Parts;
use crate::run::rehearse::{Table, Tables, words};
use crate::run::rules::Rules;
use crate::run::suit::Casts;
use crate::script::Statement;

/// The table and the columns that the server names in its error, and the kind of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsuited {
    /// Schema and name.
    table: Option<(String, String)>,
    /// Empty if the server names none.
    columns: Vec<String>,
    /// The constraint that the server names.
    constraint: Option<String>,
    code: SqlState,
    /// Whether rows of the table reference the rows that the statement deletes or changes: the columns are those of the other table.
    is_of_referenced: bool,
}

impl Unsuited {
    pub(crate) fn of(error: &ServerError) -> Self {
        let keys = || error.detail.as_deref().map_or_else(Vec::new, key_columns);
        let columns = error.column.clone().map_or_else(keys, |column| vec![column]);
        let (table, constraint, code) = (error.table.clone(), error.constraint.clone(), error.code.clone());
        // ri_triggers.c: ri_ReportViolation.
        let is_of_referenced = code == SqlState::RESTRICT_VIOLATION
            || code == SqlState::FOREIGN_KEY_VIOLATION
                && error.message.starts_with("update or delete on table ");
        Self { table, columns, constraint, code, is_of_referenced }
    }

    /// Advice for a column that the statement adds; none if the error may have another reason.
    fn of_new_column(&self) -> Option<&'static str> {
        let is = |states: &[SqlState]| states.contains(&self.code);
        if is(&[SqlState::NOT_NULL_VIOLATION]) {
            Some(
                "the statement fails on every table with rows: give the new column a DEFAULT, or add it without NOT NULL, fill it, \
                 then SET NOT NULL",
            )
        } else if is(&[SqlState::UNIQUE_VIOLATION, SqlState::EXCLUSION_VIOLATION]) {
            Some(
                "the statement fails on every table with two rows or more, which get the same value: add the new column without \
                 the constraint, fill it with different values, then add the constraint",
            )
        } else if is(&[SqlState::CHECK_VIOLATION]) {
            Some(
                "the statement fails on every table with rows: give the new column a DEFAULT that satisfies the constraint, or \
                 add it without the constraint, fill it, then add the constraint",
            )
        } else if is(&[SqlState::FOREIGN_KEY_VIOLATION]) {
            Some(
                "the rows get a value that the other table lacks: give the new column another DEFAULT, or add it without the \
                 constraint, fill it, then add the constraint",
            )
        } else {
            None
        }
    }

    /// Whether the values that an INSERT itself has are the reason, whatever rows there are. A duplicate may be that of a row.
    fn is_of_own_values(&self, statement: &Statement) -> bool {
        let of_rows = [SqlState::UNIQUE_VIOLATION, SqlState::EXCLUSION_VIOLATION];
        let words = words(&statement.sql);
        !of_rows.contains(&self.code)
            && statement.in_one_line().to_ascii_lowercase().starts_with("insert into ")
            && words.contains("values")
            && !words.contains("select")
    }

    /// Advice if rows of this table reference those that the statement deletes or changes, by columns that `--column` names so.
    fn of_referenced(table: &str, columns: &[String]) -> String {
        format!(
            "rows of {table} reference the rows that the statement deletes or changes: delete those of {table} before it, or write ON DELETE or ON \
             UPDATE with CASCADE or SET NULL into the foreign key. If no rows of the original reference them, give other values with {}",
            options(columns, "SPEC")
        )
    }

    /// Advice that names these columns, each `TABLE.COLUMN`. The server does not tell whether the values come from the rows or the statement.
    pub(crate) fn remedy(columns: &[String], spec: &str) -> String {
        let options = options(columns, spec);
        format!(
            "perhaps the statement fails because of the generated rows: then give other values with {options}"
        )
    }
}

/// `--column` for these columns, each `TABLE.COLUMN`.
fn options(columns: &[String], spec: &str) -> String {
    let option = |column: &str| format!("--column '{}={spec}'", column.replace('\'', r"'\''"));
    match columns {
        [] => option("TABLE.COLUMN"),
        [column] => option(column),
        [first, others @ ..] => format!("{}, or for {}", option(first), others.join(", ")),
    }
}

/// The columns of `Key (a, b)=(1, 2) is duplicated.` in any language. An expression, `lower(a)`, is none.
fn key_columns(detail: &str) -> Vec<String> {
    let keys = detail.split_once(")=(").and_then(|(before, _)| Some(before.split_once('(')?.1));
    let column = |key: &str| key.trim().trim_matches('"').to_owned();
    let is_column = |key: &String| !key.contains(['(', ')']);
    keys.map_or_else(Vec::new, |keys| keys.split(',').map(column).filter(is_column).collect())
}

/// The columns that pgrig fills, by table.
pub(crate) struct Columns(Vec<TableColumns>);

struct TableColumns {
    schema: String,
    name: String,
    /// The table as `--column` names it: that of which this one is a partition, or itself.
    option: String,
    /// Names of columns, each with the one before the migration.
    columns: Vec<[String; 2]>,
    /// Names of its constraints, in lower case, each with its columns.
    constraints: Vec<(String, Vec<String>)>,
    /// Its foreign keys with one column, and the specifications of their values.
    references: Vec<(String, String)>,
    /// Columns of the keys of the table of which it is the default partition, or becomes one.
    keys: Vec<String>,
}

impl TableColumns {
    /// The columns of the constraints that a statement names, or of the bounds that it checks; none if neither is known.
    fn ruled(&self, unsuited: &Unsuited, words: &BTreeSet<String>) -> Vec<String> {
        if !unsuited.columns.is_empty() || unsuited.code != SqlState::CHECK_VIOLATION {
            return Vec::new();
        }
        let named = self.constraints.iter().filter(|(name, _)| words.contains(name));
        let columns: Vec<String> = named.flat_map(|(_, columns)| columns.iter().cloned()).collect();
        if columns.is_empty() && words.contains("partition") { self.keys.clone() } else { columns }
    }
}

impl Columns {
    /// `rules` are those after each statement.
    pub(crate) fn of(tables: &Tables, [before, after]: [&Casts; 2], rules: &Rules) -> Self {
        let of_table = |(oid, table): (u32, &Table)| {
            let root = tables.get(table.root())?;
            let option = if root.schema == "public" { root.name.clone() } else { root.plain_name() };
            let columns = before.names(after, table.root());
            let constraints = rules.constraints(oid).into_iter();
            let constraints = constraints.map(|(name, columns)| (name.to_lowercase(), columns)).collect();
            // The server names the partition that has the row.
            let keys =
                [oid, table.root()].into_iter().map(|oid| rules.keys(oid)).find(|keys| !keys.is_empty());
            let keys = keys.map_or_else(Vec::new, <[String]>::to_vec);
            let (schema, name) = (table.schema.clone(), table.name.clone());
            let references = rules.references(oid);
            Some(TableColumns { schema, name, option, columns, constraints, references, keys })
        };
        Self(tables.all().filter_map(of_table).collect())
    }

    /// The columns of a default partition's keys, each `TABLE.COLUMN` as `--column` names it; none for another table.
    pub(crate) fn keys(&self, schema: &str, name: &str) -> Option<Vec<String>> {
        let is_meant = |one: &&TableColumns| (one.schema.as_str(), one.name.as_str()) == (schema, name);
        let one = self.0.iter().find(is_meant).filter(|one| !one.keys.is_empty())?;
        let of_key = one.columns.iter().filter(|[name, _]| one.keys.contains(name));
        let mut keys: Vec<String> = of_key.map(|[_, before]| format!("{}.{before}", one.option)).collect();
        keys.sort();
        keys.dedup();
        Some(keys)
    }

    /// Completes the remedies of statements that fail because of rows.
    pub(crate) fn name_in(&self, statements: &mut [StatementOutcome]) {
        for one in statements {
            let Some(failed) = &mut one.failed else { continue };
            let Some(unsuited) = failed.unsuited.as_ref().filter(|_| failed.remedy.is_some()) else {
                continue;
            };
            let is_of_own_values = unsuited.is_of_own_values(&one.statement);
            failed.remedy = (!is_of_own_values).then(|| self.remedy(unsuited, &one.statement));
        }
    }

    fn remedy(&self, unsuited: &Unsuited, statement: &Statement) -> String {
        if let Some((schema, name)) = unsuited.table.as_ref().filter(|_| unsuited.is_of_referenced) {
            let columns = self.of_constraint((schema, name), unsuited.constraint.as_deref());
            return Unsuited::of_referenced(&shown_relation(schema, name), &columns);
        }
        let filled = self.concerned(unsuited, statement);
        if !filled.is_empty() {
            let spec = self.reference(unsuited).unwrap_or("SPEC");
            return Unsuited::remedy(&filled, spec);
        }
        let added = Parts::of(&statement.sql).added_columns();
        let is_of_added = !added.is_empty() && unsuited.columns.iter().all(|column| added.contains(column));
        if let Some(remedy) = unsuited.of_new_column().filter(|_| is_of_added) {
            return remedy.to_owned();
        }
        // An earlier statement adds it, or the body of a function.
        let is_of_table = |(schema, name): &(String, String)| {
            self.0.iter().any(|one| (schema, name) == (&one.schema, &one.name))
        };
        if !unsuited.columns.is_empty() && unsuited.table.as_ref().is_some_and(is_of_table) {
            return format!(
                "the migration itself adds {}, for which --column gives no values: give it a DEFAULT, or fill it before the constraint",
                unsuited.columns.join(", ")
            );
        }
        Unsuited::remedy(&[], "SPEC")
    }

    /// The columns of a constraint of this table, as `--column` names them. A partition has its own, of the same name.
    fn of_constraint(&self, (schema, name): (&String, &String), constraint: Option<&str>) -> Vec<String> {
        let one = self.0.iter().find(|one| (schema, name) == (&one.schema, &one.name));
        let (Some(one), Some(constraint)) = (one, constraint.map(str::to_lowercase)) else {
            return Vec::new();
        };
        let of_root = self.0.iter().filter(|other| other.option == one.option);
        let mut all = of_root.flat_map(|other| &other.constraints);
        let Some((_, columns)) = all.find(|(name, _)| *name == constraint) else {
            return Vec::new();
        };
        let named = one.columns.iter().filter(|[name, _]| columns.contains(name));
        let mut named: Vec<String> = named.map(|[_, before]| format!("{}.{before}", one.option)).collect();
        named.sort();
        named.dedup();
        named
    }

    /// The specification of the values of a foreign key with one column, if rows lack its key.
    fn reference(&self, unsuited: &Unsuited) -> Option<&str> {
        let [column] = &unsuited.columns[..] else { return None };
        let (schema, name) =
            unsuited.table.as_ref().filter(|_| unsuited.code == SqlState::FOREIGN_KEY_VIOLATION)?;
        let one = self.0.iter().find(|one| (schema, name) == (&one.schema, &one.name))?;
        let (_, spec) = one.references.iter().find(|(of, _)| of == column)?;
        Some(spec)
    }

    /// The columns, as `--column` names them.
    fn concerned(&self, unsuited: &Unsuited, statement: &Statement) -> Vec<String> {
        let words = words(&statement.sql);
        let target = statement.target();
        let is_meant = |one: &&TableColumns| match (&unsuited.table, &target) {
            (Some((schema, name)), _) => (schema, name) == (&one.schema, &one.name),
            (None, Some(target)) => is_name_of((&one.schema, &one.name), target),
            (None, None) => words.contains(&one.name.to_lowercase()),
        };
        let is_named = |column: &String| match &unsuited.columns[..] {
            [] => words.contains(&column.to_lowercase()),
            columns => columns.contains(column),
        };
        let of_table = |one: &TableColumns| -> Vec<String> {
            let ruled = one.ruled(unsuited, &words);
            let is_its = |name: &String| if ruled.is_empty() { is_named(name) } else { ruled.contains(name) };
            let named = one.columns.iter().filter(|[name, _]| is_its(name));
            named.map(|[_, before]| format!("{}.{before}", one.option)).collect()
        };
        let mut found: Vec<String> = self.0.iter().filter(is_meant).flat_map(of_table).collect();
        found.sort();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An UPDATE that sets a constant in a unique column fails with any rows.
    #[test]
    fn the_generated_rows_may_not_be_the_reason() {
        let remedy = Unsuited::remedy(&["t.a".to_owned(), "t.b".to_owned()], "SPEC");
        assert_eq!(
            remedy,
            "perhaps the statement fails because of the generated rows: then give other values with --column 't.a=SPEC', or for t.b"
        );
        assert!(Unsuited::remedy(&[], "SPEC").ends_with("--column 'TABLE.COLUMN=SPEC'"));
    }

    #[test]
    fn the_detail_names_the_columns_of_a_key() {
        assert_eq!(key_columns("Key (a, \"B c\")=(1, 2) is duplicated."), ["a", "B c"]);
        assert_eq!(key_columns("Key (lower(a))=(x) is duplicated."), [""; 0]);
        assert_eq!(key_columns("Failing row contains (1, 2)."), [""; 0]);
    }
}
