//! The schema that a verb makes its tables in.

use std::time::{Duration, Instant};

use connect::Connection;

use crate::error::SurveyError;
use crate::session::{Session, ask};

/// Time to wait for another session at the same schema: one that a killed pgrig left behind ends by itself.
const IN_HAND_DEADLINE: Duration = Duration::from_secs(20);
/// Time between two attempts.
const IN_HAND_INTERVAL: Duration = Duration::from_millis(200);

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

/// Takes the advisory locks by which runs of a verb exclude each other in a schema. Waits while another session holds one of
/// them.
///
/// # Errors
/// [`SurveyError::InHand`] if the other session does not end in time, or if the server cannot be asked.
pub async fn take_in_hand(
    session: &Session,
    verb: &'static str,
    schema: &str,
    locks: &[String],
) -> Result<(), SurveyError> {
    let started = Instant::now();
    for lock in locks {
        while let Some(pid) = session.try_lock(lock).await? {
            if started.elapsed() > IN_HAND_DEADLINE {
                return Err(SurveyError::InHand { verb, schema: schema.to_owned(), pid });
            }
            tokio::time::sleep(IN_HAND_INTERVAL).await;
        }
    }
    Ok(())
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
