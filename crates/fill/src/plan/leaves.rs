//! How full the leaves of existing B-trees are, read with the extension pageinspect.
//!
//! Leaves that have split at the same time take many keys before they split again, and their number and size alone do not
//! tell them from others. Only a superuser may read pages. If the database lacks the extension, it is created in a
//! savepoint, which is rolled back.

use connect::Connection;
use server::{ask, run_sql};

use crate::error::FillError;

/// Leaves of an index that are read, about.
const LEAVES: i64 = 400;

/// Leaves of an index.
#[derive(Clone, Debug, Default)]
pub(super) struct Filled {
    /// The share of each leaf that its entries take, 0 to 1.
    pub(super) shares: Vec<f64>,
    /// Bytes of an entry with its line pointer, on average.
    pub(super) entry: Option<f64>,
}

/// How full leaves are that are evenly spread over each index. `indexes` are OIDs. Nothing is known of an index whose leaves cannot
/// be read.
///
/// # Errors
/// If the connection fails.
pub(super) async fn filled(connection: &Connection, indexes: &[u32]) -> Result<Vec<Filled>, FillError> {
    let mut all = vec![Filled::default(); indexes.len()];
    let facts = ask(connection, include_str!("../sql/leaves_readable.sql"), &[]).await?;
    let (is_possible, installed): (bool, Option<String>) = (facts.get("is_possible"), facts.get("function"));
    if !is_possible {
        return Ok(all);
    }
    run_sql(connection, "SAVEPOINT pgrig_leaves").await?;
    let create = "CREATE EXTENSION pageinspect SCHEMA pg_catalog";
    let is_there = installed.is_some() || connection.client.batch_execute(create).await.is_ok();
    let function = installed.unwrap_or_else(|| "pg_catalog.bt_page_stats".to_owned());
    for (leaves, index) in all.iter_mut().zip(indexes).filter(|_| is_there) {
        run_sql(connection, "SAVEPOINT pgrig_leaf").await?;
        let query = include_str!("../sql/leaves.sql").replace("bt_page_stats", &function);
        match connection.client.query_one(&query, &[index, &LEAVES]).await {
            Ok(row) => *leaves = Filled { shares: row.get("shares"), entry: row.get("entry") },
            Err(error) if error.is_closed() => return Err(connection.explain(error).await.into()),
            Err(_) => run_sql(connection, "ROLLBACK TO SAVEPOINT pgrig_leaf").await?,
        }
    }
    run_sql(connection, "ROLLBACK TO SAVEPOINT pgrig_leaves; RELEASE SAVEPOINT pgrig_leaves").await?;
    Ok(all)
}
