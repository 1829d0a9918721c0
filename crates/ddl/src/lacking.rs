//! Objects of an original that the copy of its tables lacks.

use connect::{ConnectError, Connection};
use server::quote::shown;
use tokio_postgres::Row;

use crate::find::shown_relation;

/// Objects that are named.
const NAMED: usize = 8;
/// Kinds of objects, one and several of each, in the order of the warning.
const KINDS: [(&str, &str); 20] = [
    ("view", "views"),
    ("materialized view", "materialized views"),
    ("foreign table", "foreign tables"),
    ("trigger", "triggers"),
    ("rule", "rules"),
    ("policy", "policies"),
    ("function", "functions"),
    ("procedure", "procedures"),
    ("aggregate", "aggregates"),
    ("type", "types"),
    ("sequence", "sequences"),
    ("operator", "operators"),
    ("operator class", "operator classes"),
    ("collation", "collations"),
    ("text search configuration", "text search configurations"),
    ("text search dictionary", "text search dictionaries"),
    ("extension", "extensions"),
    ("foreign server", "foreign servers"),
    ("publication", "publications"),
    ("event trigger", "event triggers"),
];
/// The consequence, and the remedy.
const REMEDY: &str = "statements that use them fail here, cost less than in the original, or succeed although they fail in the original. \
    To measure such statements, give --schema-file with the output of pg_dump --schema-only";

/// Of each model.
pub(crate) fn of_model() -> String {
    format!(
        "a model has only tables and the objects that they use, no views, triggers, rules, policies or publications: {REMEDY}"
    )
}

/// Of a database whose tables this SQL makes; none if it makes all that the database has.
pub(crate) async fn of_database(
    connection: &Connection,
    database: &str,
    sql: &str,
) -> Result<Option<String>, ConnectError> {
    let rows = rows(connection, include_str!("sql/lacking.sql")).await?;
    let is_lacking = |row: &&Row| row.get::<_, Option<&str>>("made").is_none_or(|made| !sql.contains(made));
    let object = |row: &Row| {
        let schema: Option<&str> = row.get("schema");
        let name: &str = row.get("name");
        let name = schema.map_or_else(|| shown(name), |schema| shown_relation(schema, name));
        let own: Option<&str> = row.get("own");
        let name = own.map_or_else(|| name.clone(), |own| format!("{} on {name}", shown(own)));
        (row.get("kind"), name)
    };
    let mut objects: Vec<(String, String)> = rows.iter().filter(is_lacking).map(object).collect();
    objects.sort();
    Ok(warning_of(&objects, database))
}

/// SQL that makes the schemas of a database, those without tables too.
pub(crate) async fn schemas(connection: &Connection) -> Result<String, ConnectError> {
    let rows = rows(connection, include_str!("sql/schemas.sql")).await?;
    Ok(rows.iter().map(|row| row.get::<_, String>("sql") + "\n").collect())
}

/// The sentence for columns whose values are shorter in the copy; none without such columns.
pub(crate) fn of_short_values(columns: &[String]) -> Option<String> {
    (!columns.is_empty()).then(|| {
        format!(
            "these columns have shorter values in the copy, because pgrig makes none so long of their types, or under their constraints: {}. Sizes, \
             WAL and times of their tables are too small. To measure with longer values, give --column SCHEMA.TABLE.COLUMN=SPEC",
            columns.join(", ")
        )
    })
}

async fn rows(connection: &Connection, query: &str) -> Result<Vec<Row>, ConnectError> {
    match connection.client.query(query, &[]).await {
        Ok(rows) => Ok(rows),
        Err(error) => Err(connection.explain(error).await),
    }
}

/// The sentence for objects, each with its kind and its name.
fn warning_of(objects: &[(String, String)], database: &str) -> Option<String> {
    let of_kind = |kind: &'static str| objects.iter().filter(move |(of, _)| of == kind);
    let numbers: Vec<String> = KINDS
        .iter()
        .map(|(one, several)| (of_kind(one).count(), one, several))
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, several)| format!("{number} {}", if number == 1 { one } else { several }))
        .collect();
    let (last, others) = numbers.split_last()?;
    let numbers = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    let names = KINDS.iter().flat_map(|(kind, _)| of_kind(kind)).map(|(_, name)| name.as_str());
    let first: Vec<&str> = names.take(NAMED).collect();
    let more = objects.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("the copy lacks {numbers} of database {database} ({}{more}): {REMEDY}", first.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_and_the_first_named() {
        let object = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        assert_eq!(warning_of(&[], "shop"), None);
        let one = warning_of(&[object("policy", "own on orders")], "shop").unwrap();
        assert!(one.starts_with("the copy lacks 1 policy of database shop (own on orders): "), "{one}");
        let triggers = (1..=9).map(|number| object("trigger", &format!("t{number} on orders")));
        let mut objects: Vec<_> = triggers.collect();
        objects.push(object("view", "open_orders"));
        objects.push(object("rule", "quiet on orders"));
        let several = warning_of(&objects, "shop").unwrap();
        let begins =
            "the copy lacks 1 view, 9 triggers and 1 rule of database shop (open_orders, t1 on orders, ";
        assert!(several.starts_with(begins), "{several}");
        assert!(several.contains("t7 on orders and 3 more): statements"), "{several}");
    }
}
