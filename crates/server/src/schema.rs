//! The schema that a verb makes its tables in.

use connect::Connection;

use crate::error::SurveyError;
use crate::session::ask;

/// A schema in which the role may create tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSchema {
    /// Name of the schema.
    pub name: String,
    /// Whether it exists; if not, the role may create it.
    pub exists: bool,
}

/// The schema for new tables, the current one if none is named; refuses one that the role may not create or use.
///
/// # Errors
/// If there is none, a privilege is missing, or the server cannot be asked.
pub async fn schema_for_tables(
    connection: &Connection,
    schema: Option<&str>,
) -> Result<FoundSchema, SurveyError> {
    let row = ask(connection, include_str!("sql/schema.sql"), &[&schema]).await?;
    let role: String = row.get("role");
    let Some(name) = row.get::<_, Option<String>>("schema") else {
        return Err(SurveyError::NoSchema);
    };
    let exists: bool = row.get("schema_exists");
    if !exists && !row.get::<_, bool>("may_create_schema") {
        let database = row.get("database");
        return Err(SurveyError::CreateSchemaPrivilege { role, schema: name, database });
    }
    if exists && !row.get::<_, bool>("may_create_tables") {
        return Err(SurveyError::SchemaPrivilege { role, schema: name });
    }
    Ok(FoundSchema { name, exists })
}

/// Refuses names that CREATE SCHEMA would refuse, or cut short.
///
/// # Errors
/// [`SurveyError::SchemaName`].
pub fn refuse_odd_name(schema: &str) -> Result<(), SurveyError> {
    // NAMEDATALEN less the final zero byte.
    let fits = (1..=63).contains(&schema.len());
    if fits && !schema.starts_with("pg_") && schema != "information_schema" {
        return Ok(());
    }
    Err(SurveyError::SchemaName { schema: schema.to_owned() })
}
