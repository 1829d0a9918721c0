//! What is there already, where steps work on existing tables.

use super::error::FillError;
use super::request::{Persistence, Request, Subject};
use super::survey::ask;
use super::tables::{Tables, key};
use crate::connect::Connection;
use crate::quote::{identifier, qualified};

/// What follows from the bulk table that is there, rather than from the request.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// Whether its ids are bigint.
    pub wide_ids: bool,
    /// Whether it has a B-tree: keys then grow with the rows.
    pub indexed: bool,
    /// Tablespace of that; none: the database's own.
    pub index_tablespace: Option<String>,
}

/// The request with the persistence, fillfactor and tablespace that the bulk table has.
pub(super) async fn adjusted(
    connection: &Connection,
    request: &Request,
    schema: &str,
    bulk: &str,
) -> Result<(Request, Present), FillError> {
    let row = ask(connection, include_str!("../sql/present.sql"), &[&schema, &bulk]).await?;
    let unlogged: bool = row.get("unlogged");
    let fillfactor: i32 = row.get("fillfactor");
    let request = Request {
        persistence: if unlogged { Persistence::Unlogged } else { Persistence::Logged },
        fillfactor: u8::try_from(fillfactor).unwrap_or(100),
        tablespace: row.get("tablespace"),
        ..request.clone()
    };
    let (wide_ids, indexed) = (row.get("wide_ids"), row.get("indexed"));
    Ok((request, Present { wide_ids, indexed, index_tablespace: row.get("index_tablespace") }))
}

/// Rows of the bulk table by its largest id, and of pgbench_branches. Without an index on the id the
/// whole table is read.
///
/// # Errors
/// If the table has rows that the request does not want to add to.
pub(super) async fn rows(
    connection: &Connection,
    request: &Request,
    schema: &str,
    tables: &Tables,
) -> Result<(u64, u64), FillError> {
    use super::request::InitStep::Generate;
    if !request.steps.include(Generate) || request.subject == Subject::Series {
        return Ok((0, 0));
    }
    let bulk = qualified(schema, &tables.bulk.name);
    if !request.append {
        let query = format!("SELECT EXISTS (SELECT FROM {bulk})");
        if ask(connection, &query, &[]).await?.get(0) {
            let table = tables.bulk.name.clone();
            return Err(FillError::HasRows { schema: schema.to_owned(), table });
        }
        return Ok((0, 0));
    }
    let key = identifier(key(&tables.bulk).map_or("", |key| &key.name));
    let branches = qualified(schema, "pgbench_branches");
    let query = format!(
        "SELECT (SELECT coalesce(max({key}), 0)::bigint FROM {bulk}), (SELECT count(*) FROM {branches})"
    );
    let row = ask(connection, &query, &[]).await?;
    let number = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
    Ok((number(0), number(1)))
}

/// Refuses a tablespace that is not there or that the role may not use.
pub(super) async fn refuse_tablespace(connection: &Connection, name: &str) -> Result<(), FillError> {
    let row = ask(connection, include_str!("../sql/tablespace.sql"), &[&name]).await?;
    let problem = match (row.get("exists"), row.get("allowed")) {
        (true, true) => return Ok(()),
        (true, false) => {
            let role: String = row.get("role");
            format!("may not be used by role {role}: GRANT CREATE ON TABLESPACE {name} TO {role}")
        }
        (false, _) => format!("does not exist: CREATE TABLESPACE {name} LOCATION '…', or name another one"),
    };
    Err(FillError::Tablespace { name: name.to_owned(), problem })
}
