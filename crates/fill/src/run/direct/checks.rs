//! CHECKs of a table and of its columns' domains, which the server keeps while rows go through it: of pages
//! that were written past it, it is asked before the commit.

use super::Failure;
use super::relation::Relation;
use server::Session;
use server::quote::{identifier, literal};

/// Has the server look for a row that breaks a CHECK.
///
/// # Errors
/// Which CHECK, and the row. A domain's are told by the server itself.
pub(super) async fn kept(session: &Session, name: &str, relation: &Relation) -> Result<(), Failure> {
    let Some(query) = query(name, relation) else { return Ok(()) };
    let Some(row) = session.rows(&query, &[]).await?.pop() else { return Ok(()) };
    let names: Vec<String> = row.get("names");
    Err(Failure::Broken { table: name.to_owned(), constraints: names.join(", "), row: row.get("row") })
}

/// None if there is nothing to ask for.
fn query(name: &str, relation: &Relation) -> Option<String> {
    let broken = relation.checks.iter().map(|check| format!("({}) IS FALSE", check.expression));
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
    let conditions: Vec<String> = broken.chain(of_domains).collect();
    let names = relation
        .checks
        .iter()
        .map(|check| format!("CASE WHEN ({}) IS FALSE THEN {} END", check.expression, literal(&check.name)));
    let names: Vec<String> = names.collect();
    (!conditions.is_empty()).then(|| {
        format!(
            "SELECT ROW({name}.*)::text AS row, array_remove(ARRAY[{}]::text[], NULL) AS names \
             FROM {name} WHERE {} LIMIT 1",
            names.join(", "),
            conditions.join(" OR ")
        )
    })
}
