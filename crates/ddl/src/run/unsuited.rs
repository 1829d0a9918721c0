//! A statement that fails because of the generated rows: the columns that need other values.
//!
//! The server names the column only for NOT NULL. For a constraint it names the table, and for a duplicate or missing key the
//! columns too; for a value that cannot be cast it names nothing. The text of the statement then tells the columns.

use connect::ServerError;
use fill::is_name_of;

use crate::outcome::StatementOutcome;
use crate::run::rehearse::{Table, Tables, words};
use crate::run::suit::Casts;
use crate::script::Statement;

/// The table and the columns that the server names in its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsuited {
    /// Schema and name.
    table: Option<(String, String)>,
    /// Empty if the server names none.
    columns: Vec<String>,
}

impl Unsuited {
    pub(crate) fn of(error: &ServerError) -> Self {
        let keys = || error.detail.as_deref().map_or_else(Vec::new, key_columns);
        let columns = error.column.clone().map_or_else(keys, |column| vec![column]);
        Self { table: error.table.clone(), columns }
    }

    /// Advice that names these columns, each `TABLE.COLUMN`.
    pub(crate) fn remedy(columns: &[String]) -> String {
        let option = |column: &str| format!("--column '{}=SPEC'", column.replace('\'', r"'\''"));
        let values = match columns {
            [] => format!("give other values with {}", option("TABLE.COLUMN")),
            [column] => format!("give other values with {}", option(column)),
            [first, others @ ..] => {
                format!("give other values with {}, or for {}", option(first), others.join(", "))
            }
        };
        format!("the statement fails because of the generated rows: {values}")
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
    columns: Vec<String>,
}

impl Columns {
    pub(crate) fn of(tables: &Tables, casts: &Casts) -> Self {
        let of_table = |table: &Table| {
            let root = tables.get(table.root())?;
            let option = if root.schema == "public" { root.name.clone() } else { root.plain_name() };
            let columns = casts.columns(table.root()).map(str::to_owned).collect();
            Some(TableColumns { schema: table.schema.clone(), name: table.name.clone(), option, columns })
        };
        Self(tables.all().filter_map(of_table).collect())
    }

    /// Completes the remedies of statements that fail because of rows.
    pub(crate) fn name_in(&self, statements: &mut [StatementOutcome]) {
        for one in statements {
            let Some(failed) = &mut one.failed else { continue };
            let Some(unsuited) = failed.unsuited.as_ref().filter(|_| failed.remedy.is_some()) else {
                continue;
            };
            failed.remedy = Some(Unsuited::remedy(&self.concerned(unsuited, &one.statement)));
        }
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
        let is_named = |column: &&String| match &unsuited.columns[..] {
            [] => words.contains(&column.to_lowercase()),
            columns => columns.contains(column),
        };
        let of_table = |one: &TableColumns| -> Vec<String> {
            one.columns.iter().filter(is_named).map(|column| format!("{}.{column}", one.option)).collect()
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

    #[test]
    fn the_detail_names_the_columns_of_a_key() {
        assert_eq!(key_columns("Key (a, \"B c\")=(1, 2) is duplicated."), ["a", "B c"]);
        assert_eq!(key_columns("Key (lower(a))=(x) is duplicated."), [""; 0]);
        assert_eq!(key_columns("Failing row contains (1, 2)."), [""; 0]);
    }
}
