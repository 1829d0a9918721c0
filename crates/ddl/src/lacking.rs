//! Objects of an original that the copy of its tables lacks.

use connect::{ConnectError, Connection};
use server::quote::shown;

use crate::find::shown_relation;

/// Objects that are named.
const NAMED: usize = 8;
/// Kinds of objects, one and several of each, in the order of the warning.
const KINDS: [(&str, &str); 6] = [
    ("view", "views"),
    ("materialized view", "materialized views"),
    ("foreign table", "foreign tables"),
    ("trigger", "triggers"),
    ("rule", "rules"),
    ("policy", "policies"),
];
/// The consequence, and the remedy.
const REMEDY: &str = "statements that concern them fail, or cost less than in the original. To measure these, give \
                      --schema-file with the output of pg_dump --schema-only";

/// Of each model.
pub(crate) fn of_model() -> String {
    format!("a model has no views, triggers, rules and policies: {REMEDY}")
}

/// Of a database; none if its tables are all that it has.
pub(crate) async fn of_database(
    connection: &Connection,
    database: &str,
) -> Result<Option<String>, ConnectError> {
    let rows = match connection.client.query(include_str!("sql/lacking.sql"), &[]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await),
    };
    let object = |row: &tokio_postgres::Row| {
        let relation = shown_relation(row.get("schema"), row.get("name"));
        let own: Option<&str> = row.get("own");
        let name = own.map_or_else(|| relation.clone(), |own| format!("{} on {relation}", shown(own)));
        (row.get("kind"), name)
    };
    let mut objects: Vec<(String, String)> = rows.iter().map(object).collect();
    objects.sort();
    Ok(warning_of(&objects, database))
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
