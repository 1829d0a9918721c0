//! What rows and index entries take: measured on rows in a temporary table.

use super::design::Designed;
use crate::error::FillError;
use crate::plan::sizes::Sizes;
use catalog::temporary;
use connect::Connection;
use server::ask;
use server::quote::qualified;

/// The temporary table.
const SAMPLE: &str = "pgrig_sizes";

/// What the described rows take with all indexes of their table, which are built afterwards or grow row by row.
///
/// # Errors
/// If the server refuses.
pub(super) async fn sizes(
    connection: &Connection,
    designed: &Designed<'_>,
    are_built: bool,
    block_size: u32,
) -> Result<Sizes, FillError> {
    let table = qualified(&designed.info.schema, &designed.info.name);
    let create = temporary::create(designed.info, SAMPLE, &[]);
    run(connection, &format!("SAVEPOINT pgrig_sizes; {create}")).await?;
    let indexes = indexes(connection, &table).await?;
    let build = indexes.join("; ");
    if !are_built {
        run(connection, &build).await?;
    }
    copy(connection, designed).await?;
    if are_built {
        run(connection, &build).await?;
    }
    // A COPY extends a table by many pages at once, the last of which stay empty; and the last page that is used is
    // half full, on average.
    let query = format!(
        "SELECT pg_table_size('pg_temp.{SAMPLE}'::regclass) - pg_relation_size('pg_temp.{SAMPLE}'::regclass) AS beside, \
                pg_indexes_size('pg_temp.{SAMPLE}'::regclass) AS index, \
                coalesce((max((ctid::text::point)[0]) + 0.5) * current_setting('block_size')::int, 0)::bigint AS heap \
           FROM pg_temp.{SAMPLE}"
    );
    let row = ask(connection, &query, &[]).await?;
    run(connection, "ROLLBACK TO SAVEPOINT pgrig_sizes; RELEASE SAVEPOINT pgrig_sizes").await?;
    let bytes = |name| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
    let metapages = u64::from(block_size) * indexes.len() as u64;
    Ok(Sizes { heap: bytes("heap") + bytes("beside"), index: bytes("index").saturating_sub(metapages) })
}

/// The statements that give the sample the table's indexes.
async fn indexes(connection: &Connection, table: &str) -> Result<Vec<String>, FillError> {
    let query = include_str!("../../sql/schema_indexes.sql");
    match connection.client.query(query, &[&table]).await {
        Ok(rows) => Ok(rows
            .iter()
            .map(|row| {
                let (unique, definition): (bool, String) = (row.get("is_unique"), row.get("definition"));
                let unique = if unique { "UNIQUE " } else { "" };
                format!("CREATE {unique}INDEX ON pg_temp.{SAMPLE} {definition}")
            })
            .collect()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

async fn copy(connection: &Connection, designed: &Designed<'_>) -> Result<(), FillError> {
    let described = &designed.described;
    let rows = described.first_row..described.first_row + designed.rows;
    match temporary::copy(&connection.client, SAMPLE, &described.table, [rows]).await {
        Ok(_) => Ok(()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

async fn run(connection: &Connection, sql: &str) -> Result<(), FillError> {
    match connection.client.batch_execute(sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
