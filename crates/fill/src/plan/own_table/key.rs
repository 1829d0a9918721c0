//! The column by which probes can look up rows.

use rowgen::{Kind, Table, Values};

use crate::error::FillError;
use crate::plan::RowKey;
use catalog::TableInfo;
use connect::Connection;
use server::quote::qualified;

/// The primary key, or else a unique one, that is a single integer column and ascends by one from row to
/// row: by pgrig's doing, or by the column's sequence. `first_row` is the number of the first row,
/// `rows_done` how many an interrupted run has loaded.
pub(super) async fn row_key(
    connection: &Connection,
    info: &TableInfo,
    table: &Table,
    first_row: u64,
    rows_done: u64,
) -> Result<Option<RowKey>, FillError> {
    let single = info.keys.iter().filter(|key| !key.exclusion && key.elements.len() == 1);
    for name in single.filter_map(|key| key.elements[0].column.as_ref()) {
        let Some(column) = table.columns.iter().find(|column| column.name == *name) else { continue };
        if !matches!(column.kind, Kind::Int2 | Kind::Int4 | Kind::Int8) {
            continue;
        }
        let first = match column.values {
            Values::Serial { start, step: 1 } => Some(start.saturating_add_unsigned(first_row)),
            Values::Server => {
                let next = next_key(connection, info, name).await?;
                next.map(|next| next.saturating_sub_unsigned(rows_done))
            }
            _ => None,
        };
        if let Some(first) = first {
            return Ok(Some(RowKey { column: name.clone(), first }));
        }
    }
    Ok(None)
}

async fn next_key(
    connection: &Connection,
    info: &TableInfo,
    column: &String,
) -> Result<Option<i64>, FillError> {
    let table = qualified(&info.schema, &info.name);
    let query = include_str!("../../sql/next_key.sql");
    match connection.client.query_opt(query, &[&table, column]).await {
        Ok(row) => Ok(row.map(|row| row.get("next_key"))),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
