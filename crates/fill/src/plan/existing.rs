//! Storage properties of a bulk table that exists. They replace those of the request.

use crate::error::FillError;
use crate::request::{Persistence, Request};
use connect::Connection;
use server::ask;

/// Properties of the bulk table that exists, which decide instead of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Existing {
    /// Whether its ids are bigint.
    pub(super) wide_ids: bool,
    /// Whether it has a B-tree, so that keys grow with the rows.
    pub(super) indexed: bool,
    /// Tablespace of the B-tree; none: the database's default.
    pub(super) index_tablespace: Option<String>,
}

/// The request with the persistence, fillfactor and tablespace that the bulk table has.
pub(super) async fn adjusted(
    connection: &Connection,
    request: &Request,
    schema: &str,
    bulk: &str,
) -> Result<(Request, Existing), FillError> {
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
    Ok((request, Existing { wide_ids, indexed, index_tablespace: row.get("index_tablespace") }))
}
