//! The tables that TRUNCATE has to name.

use catalog::TableInfo;
use connect::Connection;
use server::ask;
use server::quote::qualified;

use crate::error::FillError;

/// The error of a table that has rows, with the TRUNCATE that empties it and `all` tables with rows.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn has_rows(
    connection: &Connection,
    table: &TableInfo,
    all: &[&TableInfo],
) -> Result<FillError, FillError> {
    let names: Vec<String> = all.iter().map(|info| qualified(&info.schema, &info.name)).collect();
    let row = ask(connection, include_str!("emptied_together.sql"), &[&names]).await?;
    let (together, referencing): (Vec<String>, bool) = (row.get("tables"), row.get("referencing"));
    Ok(FillError::OwnTableHasRows { table: table.shown(), together: together.join(", "), referencing })
}
