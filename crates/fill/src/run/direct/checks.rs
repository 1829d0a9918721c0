//! Checks CHECK constraints of a table and of its columns' domains, bounds of a partition, and
//! generated columns. The server checks them for rows that it inserts itself. For pages that were
//! written directly, pgrig asks it before the commit.

use super::Failure;
use super::relation::{Attribute, Relation};
use server::Session;
use server::quote::{identifier, literal};

/// Has the server look for a row that breaks a CHECK.
///
/// # Errors
/// Names the CHECK and the row. For a domain the server itself reports both.
pub(super) async fn kept(session: &Session, name: &str, relation: &Relation) -> Result<(), Failure> {
    let Some(Query { broken, names }) = query(relation) else { return Ok(()) };
    // A count, unlike a search for one row, is what the server divides among processes.
    let count = format!("SELECT count(*) AS broken FROM {name} WHERE {broken}");
    if session.row(&count, &[]).await?.get::<_, i64>("broken") == 0 {
        return Ok(());
    }
    let one =
        format!("SELECT ROW({name}.*)::text AS row, {names} AS names FROM {name} WHERE {broken} LIMIT 1");
    let Some(row) = session.rows(&one, &[]).await?.pop() else { return Ok(()) };
    let names: Vec<String> = row.get("names");
    Err(Failure::Broken { table: name.to_owned(), constraints: names.join(", "), row: row.get("row") })
}

/// A search for rows that break a rule.
struct Query {
    /// The condition under which a row breaks a rule.
    broken: String,
    /// Names of the rules that it breaks, an array of texts.
    names: String,
}

/// The query; none if there is nothing to check.
fn query(relation: &Relation) -> Option<Query> {
    // A cast from the type below makes the server judge the value, and whatever is made of it is never below 0.
    let of_domains =
        relation.attributes.iter().filter(|attribute| attribute.has_domain_checks).map(|attribute| {
            format!(
                "num_nulls({}::{}::{}) < 0",
                identifier(&attribute.name),
                attribute.base_sql,
                attribute.type_sql
            )
        });
    let of_checks = relation.checks.iter();
    let of_checks = of_checks.map(|check| (check.name.clone(), format!("({}) IS FALSE", check.expression)));
    let rules: Vec<(String, String)> =
        of_checks.chain(relation.attributes.iter().filter_map(generated)).collect();
    let conditions: Vec<String> =
        rules.iter().map(|(_, condition)| condition.clone()).chain(of_domains).collect();
    let case =
        |(name, condition): &(String, String)| format!("CASE WHEN {condition} THEN {} END", literal(name));
    let names: Vec<String> = rules.iter().map(case).collect();
    (!conditions.is_empty()).then(|| Query {
        broken: conditions.join(" OR "),
        names: format!("array_remove(ARRAY[{}]::text[], NULL)", names.join(", ")),
    })
}

/// A name for a generated column's expression, and the condition of rows whose value differs from
/// the server's.
fn generated(attribute: &Attribute) -> Option<(String, String)> {
    let column = identifier(&attribute.name);
    let differs = attribute.stored_generation().map(|expression| {
        // The bytes are compared, and a numeric's decimals with them.
        let made = format!("(({expression})::{})::text COLLATE \"C\"", attribute.type_sql);
        format!("{made} IS DISTINCT FROM {column}::text")
    });
    let is_null = attribute.is_generated_not_null().then(|| format!("{column} IS NULL"));
    let conditions: Vec<String> = differs.into_iter().chain(is_null).collect();
    let name = format!("the expression of {}", attribute.name);
    (!conditions.is_empty()).then(|| (name, format!("({})", conditions.join(" OR "))))
}
