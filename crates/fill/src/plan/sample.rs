//! Sizes of rows and index entries, measured on rows in a temporary table.

use std::ops::Range;

use super::leaves;
use super::sizes::Sizes;
use crate::error::FillError;
use catalog::{TableInfo, temporary};
use connect::Connection;
use rowgen::Table;
use server::quote::qualified;
use server::{ask, run_sql};

/// The temporary table.
const SAMPLE: &str = "pgrig_sizes";

/// Rows of a table that are loaded into a temporary one.
pub(crate) struct Sample<'a> {
    /// Facts of the table.
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
        let indexes = self.load(connection).await?;
        let sizes = measured(connection, block_size, indexes.len()).await?;
        run_sql(connection, "ROLLBACK TO SAVEPOINT pgrig_sizes; RELEASE SAVEPOINT pgrig_sizes").await?;
        Ok(sizes)
    }

    /// Rows in each page of the heap that is full; none if the rows do not fill a page. Needs a transaction; leaves nothing
    /// in it.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn rows_per_page(&self, connection: &Connection) -> Result<Option<f64>, FillError> {
        self.create(connection).await?;
        self.copy(connection).await?;
        // The last page is not full.
        let query = format!(
            "SELECT (SELECT count(*) FROM pg_temp.{SAMPLE} WHERE (ctid::text::point)[0] < last)::float8 / nullif(last, 0) \
               FROM (SELECT max((ctid::text::point)[0]) AS last FROM pg_temp.{SAMPLE}) AS pages"
        );
        let rows = ask(connection, &query, &[]).await?.get(0);
        run_sql(connection, "ROLLBACK TO SAVEPOINT pgrig_sizes; RELEASE SAVEPOINT pgrig_sizes").await?;
        Ok(rows)
    }

    /// Sizes of rows that come to others, and how each index grows by them: those that are there keep their place.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn growth(
        &self,
        connection: &Connection,
        block_size: u32,
    ) -> Result<(Sizes, Vec<IndexGrowth>), FillError> {
        let indexes = self.load(connection).await?;
        let sizes = measured(connection, block_size, indexes.len()).await?;
        let grown = index_sizes(connection).await?;
        let mut places = Vec::with_capacity(indexes.len());
        for index in &indexes {
            let comes_after = match &index.first_key {
                Some(key) if index.entries > 0.0 && self.info.may_select => {
                    self.comes_after(connection, key).await?
                }
                _ => true,
            };
            places.push(comes_after);
        }
        run_sql(connection, &format!("REINDEX TABLE pg_temp.{SAMPLE}")).await?;
        let packed = index_sizes(connection).await?;
        run_sql(connection, "ROLLBACK TO SAVEPOINT pgrig_sizes; RELEASE SAVEPOINT pgrig_sizes").await?;
        let btrees: Vec<u32> = indexes.iter().filter(|index| index.is_btree).map(|index| index.oid).collect();
        let mut leaves = leaves::filled(connection, &btrees).await?.into_iter();
        let without_metapage = |bytes: &u64| bytes.saturating_sub(u64::from(block_size));
        let growths = indexes.into_iter().zip(places).enumerate().map(|(at, (index, comes_after))| {
            let leaves =
                if index.is_btree { leaves.next().unwrap_or_default() } else { leaves::Filled::default() };
            IndexGrowth {
                is_unique: index.is_unique,
                is_btree: index.is_btree,
                keys: index.keys,
                bytes: index.bytes,
                entries: index.entries,
                comes_after,
                grown: grown.get(at).map_or(0, without_metapage),
                packed: packed.get(at).map_or(0, without_metapage),
                leaves: leaves.shares,
                entry: leaves.entry,
            }
        });
        Ok((sizes, growths.collect()))
    }

    /// Whether all new keys of an index are greater than those present, or all less.
    async fn comes_after(&self, connection: &Connection, key: &str) -> Result<bool, FillError> {
        let table = qualified(&self.info.schema, &self.info.name);
        let end = |of: &str, order: &str| {
            format!("(SELECT {key} FROM {of} WHERE {key} IS NOT NULL ORDER BY {key} {order} LIMIT 1)")
        };
        let sample = format!("pg_temp.{SAMPLE}");
        let query = format!(
            "SELECT coalesce({} > {} OR {} < {}, true)",
            end(&sample, ""),
            end(&table, "DESC"),
            end(&sample, "DESC"),
            end(&table, "")
        );
        Ok(ask(connection, &query, &[]).await?.get(0))
    }

    /// Loads the rows into the temporary table, in a savepoint, with its indexes.
    async fn load(&self, connection: &Connection) -> Result<Vec<Index>, FillError> {
        self.create(connection).await?;
        let table = qualified(&self.info.schema, &self.info.name);
        let indexes = indexes(connection, &table).await?;
        let build = indexes.iter().map(|index| index.create.as_str()).collect::<Vec<_>>().join("; ");
        if !self.builds_indexes {
            run_sql(connection, &build).await?;
        }
        self.copy(connection).await?;
        if self.builds_indexes {
            run_sql(connection, &build).await?;
        }
        Ok(indexes)
    }

    /// Creates the temporary table, in a savepoint.
    async fn create(&self, connection: &Connection) -> Result<(), FillError> {
        let create = temporary::create(self.info, SAMPLE, &[]);
        let set = format!("ALTER TABLE pg_temp.{SAMPLE} SET (fillfactor = {})", self.fillfactor);
        Ok(run_sql(connection, &format!("SAVEPOINT pgrig_sizes; {create}; {set}")).await?)
    }

    async fn copy(&self, connection: &Connection) -> Result<(), FillError> {
        match temporary::copy(&connection.client, SAMPLE, self.table, self.rows.iter().cloned()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(connection.explain(error).await.into()),
        }
    }
}

/// Sizes of the temporary table, without metapages.
async fn measured(connection: &Connection, block_size: u32, indexes: usize) -> Result<Sizes, FillError> {
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
    let bytes = |name| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
    let metapages = u64::from(block_size) * indexes as u64;
    Ok(Sizes { heap: bytes("heap") + bytes("beside"), index: bytes("index").saturating_sub(metapages) })
}

/// Sizes of the temporary table's indexes, in the order in which they were created.
async fn index_sizes(connection: &Connection) -> Result<Vec<u64>, FillError> {
    let query = format!(
        "SELECT coalesce(array_agg(pg_relation_size(indexrelid) ORDER BY indexrelid), '{{}}') \
           FROM pg_index WHERE indrelid = 'pg_temp.{SAMPLE}'::regclass"
    );
    let sizes: Vec<i64> = ask(connection, &query, &[]).await?.get(0);
    Ok(sizes.into_iter().map(|bytes| u64::try_from(bytes).unwrap_or_default()).collect())
}

/// An index of the table.
struct Index {
    /// The statement that gives it to the sample.
    create: String,
    oid: u32,
    is_unique: bool,
    is_btree: bool,
    keys: i32,
    /// Its bytes and entries now.
    bytes: u64,
    entries: f64,
    /// Its first key, if it holds all rows in order.
    first_key: Option<String>,
}

/// How an index grows by the rows of a sample.
#[derive(Clone, Debug)]
pub(crate) struct IndexGrowth {
    pub(crate) is_unique: bool,
    pub(crate) is_btree: bool,
    /// Number of its keys.
    pub(crate) keys: i32,
    /// Bytes and entries of the table's index now.
    pub(crate) bytes: u64,
    pub(crate) entries: f64,
    /// Whether new keys do not come between those present.
    pub(crate) comes_after: bool,
    /// Bytes of the sample's index that has grown with the rows, and of the one that CREATE INDEX builds.
    pub(crate) grown: u64,
    pub(crate) packed: u64,
    /// Shares of leaves of the table's index that entries take; none if they cannot be read.
    pub(crate) leaves: Vec<f64>,
    /// Bytes of an entry in these leaves, with its line pointer.
    pub(crate) entry: Option<f64>,
}

/// The table's indexes.
async fn indexes(connection: &Connection, table: &str) -> Result<Vec<Index>, FillError> {
    let query = include_str!("../sql/schema_indexes.sql");
    match connection.client.query(query, &[&table]).await {
        Ok(rows) => Ok(rows
            .iter()
            .map(|row| {
                let (unique, definition): (bool, String) = (row.get("is_unique"), row.get("definition"));
                let is_unique = unique;
                let unique = if unique { "UNIQUE " } else { "" };
                Index {
                    create: format!("CREATE {unique}INDEX ON pg_temp.{SAMPLE} {definition}"),
                    oid: row.get("oid"),
                    is_unique,
                    is_btree: row.get("is_btree"),
                    keys: row.get("keys"),
                    bytes: u64::try_from(row.get::<_, i64>("bytes")).unwrap_or_default(),
                    entries: row.get("entries"),
                    first_key: row.get("first_key"),
                }
            })
            .collect()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
