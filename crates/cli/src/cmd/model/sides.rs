//! Original and copy before they are compared: each has tables and statistics, and they are two databases of one schema.

use catalog::CatalogError;
use connect::{Connection, Target};
use model::Facts;
use server::Steps;

use super::check::explained;
use crate::app::failure::{Failure, Usage};

/// Refuses an original that is also the copy, however the user names it.
pub(super) async fn refuse_same(
    original: &Connection,
    copy: &Connection,
    database: &str,
) -> Result<(), Failure> {
    if identity(original).await? != identity(copy).await? {
        return Ok(());
    }
    let name = server::quote::shell_word(database);
    let other = server::quote::shell_word(&format!("{database}_copy"));
    let text = format!(
        "ORIGINAL and COPY are the same database, {database}: name the original first, then the copy, for example pgrig model \
         check {name} {other}"
    );
    Err(Usage(text).into())
}

/// The start of the server, and the database in it.
async fn identity(connection: &Connection) -> Result<(f64, u32), Failure> {
    let query = "SELECT extract(epoch FROM pg_postmaster_start_time())::float8, oid \
                   FROM pg_database WHERE datname = current_database()";
    match connection.client.query_one(query, &[]).await {
        Ok(row) => Ok((row.get(0), row.get(1))),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

/// Facts of a database that has tables, some of which the role may read.
///
/// # Errors
/// If there is no table, or the role sees no statistics of them.
pub(super) async fn checked(
    connection: &Connection,
    target: &Target,
    schema: Option<&str>,
    name: &str,
    steps: Steps<'_>,
) -> Result<Facts, Failure> {
    let database = target.dbname();
    let facts = match catalog::capture(&connection.client, schema, None, catalog::TIMEOUT, steps).await {
        Err(CatalogError::NothingToModel { .. }) => {
            let within = schema.map_or(String::new(), |schema| format!(" in schema {schema}"));
            let remedy = match name {
                "copy" => format!(
                    "fill it first (pgrig fill --model FILE, or --ddl FILE, into {database}), or name another COPY"
                ),
                _ => "name another ORIGINAL".to_owned(),
            };
            let schema = if schema.is_some() { ", or give another --schema" } else { "" };
            let text = format!("the {name} (database {database}) has no table{within}: {remedy}{schema}");
            return Err(Usage(text).into());
        }
        // The names are the server's own: the role may not use the schema.
        Err(CatalogError::SchemaPrivilege { .. } | CatalogError::SchemaPrivileges { .. }) => {
            return Err(unseen(connection, name, database).await?.into());
        }
        facts => explained(connection, facts).await?,
    };
    let names: Vec<String> = facts.tables.iter().map(|table| table.sql_name.clone()).collect();
    let query = "SELECT coalesce(bool_or(has_any_column_privilege(name, 'SELECT')), true) \
                   FROM unnest($1::text[]) AS t (name)";
    let row = match connection.client.query_one(query, &[&names]).await {
        Ok(row) => row,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    if row.get(0) { Ok(facts) } else { Err(unseen(connection, name, database).await?.into()) }
}

/// The role of the connection, quoted where SQL needs it.
pub(super) async fn role(connection: &Connection) -> Result<String, Failure> {
    match connection.client.query_one("SELECT quote_ident(current_user)", &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

/// The error of a role that sees no statistics of a database.
async fn unseen(connection: &Connection, name: &str, database: &str) -> Result<Usage, Failure> {
    let role = role(connection).await?;
    Ok(Usage(format!(
        "role {role} sees no statistics of the {name} (database {database}): connect as a role that may SELECT from its \
         tables and ANALYZE them"
    )))
}

/// Refuses a copy that has none of the original's tables.
pub(super) fn refuse_unrelated(original: &Facts, copy: &Facts) -> Result<(), Usage> {
    let has = |name: &str| copy.tables.iter().any(|table| table.name == name);
    let names: Vec<&str> = original.tables.iter().map(|table| table.name.as_str()).collect();
    if names.iter().any(|name| has(name)) {
        return Ok(());
    }
    let more = names.len().saturating_sub(10);
    let listed = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Usage(format!("the copy has none of the original's tables ({listed}{more}): name another COPY")))
}
