//! Sizes of rows and index entries, measured on rows in a temporary table.

use std::ops::Range;

use super::sizes::Sizes;
use crate::error::FillError;
use catalog::{TableInfo, temporary};
use connect::Connection;
use rowgen::Table;
use server::ask;
use server::quote::qualified;

/// The temporary table.
const SAMPLE: &str = "pgrig_sizes";

/// Rows of a table that are loaded into a temporary one.
pub(crate) struct Sample<'a> {
    /// The table.
    pub(crate) info: &'a TableInfo,
    /// Description of its rows.
    pub(crate) table: &'a Table,
    /// Numbers of the rows.
    pub(crate) rows: Vec<Range<u64>>,
    /// Percent of a page that is filled.
    pub(crate) fillfactor: u8,
    /// Whether indexes are built after the rows, rather than grow with them.
    pub(crate) builds_indexes: bool,
}

impl Sample<'_> {
    /// Sizes of the rows with all indexes of their table. Needs a transaction; leaves nothing in it.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn sizes(&self, connection: &Connection, block_size: u32) -> Result<Sizes, FillError> {
        let table = qualified(&self.info.schema, &self.info.name);
        let create = temporary::create(self.info, SAMPLE, &[]);
        let set = format!("ALTER TABLE pg_temp.{SAMPLE} SET (fillfactor = {})", self.fillfactor);
        run(connection, &format!("SAVEPOINT pgrig_sizes; {create}; {set}")).await?;
        let indexes = indexes(connection, &table).await?;
        let build = indexes.join("; ");
        if !self.builds_indexes {
            run(connection, &build).await?;
        }
        self.copy(connection).await?;
        if self.builds_indexes {
            run(connection, &build).await?;
        }
        // A COPY extends a table by many pages at once, the last of which stay empty; and the last page that is used
        // is half full, on average. A BRIN index takes some pages, almost regardless of the number of rows.
        let query = format!(
            "SELECT pg_table_size('pg_temp.{SAMPLE}'::regclass) - pg_relation_size('pg_temp.{SAMPLE}'::regclass) AS beside, \
                    (SELECT coalesce(sum(pg_relation_size(c.oid)), 0)::bigint \
                       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam \
                      WHERE i.indrelid = 'pg_temp.{SAMPLE}'::regclass AND m.amname <> 'brin') AS index, \
                    coalesce((max((ctid::text::point)[0]) + 0.5) * current_setting('block_size')::int, 0)::bigint AS heap \
               FROM pg_temp.{SAMPLE}"
        );
        let row = ask(connection, &query, &[]).await?;
        run(connection, "ROLLBACK TO SAVEPOINT pgrig_sizes; RELEASE SAVEPOINT pgrig_sizes").await?;
        let bytes = |name| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
        let metapages = u64::from(block_size) * indexes.len() as u64;
        Ok(Sizes { heap: bytes("heap") + bytes("beside"), index: bytes("index").saturating_sub(metapages) })
    }

    async fn copy(&self, connection: &Connection) -> Result<(), FillError> {
        match temporary::copy(&connection.client, SAMPLE, self.table, self.rows.iter().cloned()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(connection.explain(error).await.into()),
        }
    }
}

/// The statements that give the sample the table's indexes.
async fn indexes(connection: &Connection, table: &str) -> Result<Vec<String>, FillError> {
    let query = include_str!("../sql/schema_indexes.sql");
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

async fn run(connection: &Connection, sql: &str) -> Result<(), FillError> {
    match connection.client.batch_execute(sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
