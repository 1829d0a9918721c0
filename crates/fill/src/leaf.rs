//! The leaf of a table that represents the whole table where only one part is examined.

use tokio_postgres::{Client, Error};

/// A table, or the largest leaf of a partitioned one.
pub(super) struct Leaf {
    /// Quoted, and with its schema where that is needed.
    pub(super) name: String,
    /// Blocks of its main fork.
    pub(super) blocks: u64,
}

impl Leaf {
    /// Asks for the table of this quoted name.
    pub(super) async fn largest(client: &Client, table: &str) -> Result<Self, Error> {
        let row = client.query_one(include_str!("sql/largest_leaf.sql"), &[&table]).await?;
        let blocks = u64::try_from(row.get::<_, i64>("blocks")).unwrap_or_default();
        Ok(Self { name: row.get("name"), blocks })
    }
}
