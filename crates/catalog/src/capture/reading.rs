//! The transaction in which facts are read, the error of a table that another transaction has locked, and rows by relation.

use std::collections::BTreeMap;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use crate::error::CatalogError;
use crate::read;

/// Begins a transaction with one snapshot for all tables, qualified names, and times in UTC.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = ''; \
                     SET LOCAL TimeZone = 'UTC'";
/// Most milliseconds that a statement waits for a lock.
const MOST_WAIT: u64 = 5_000;

/// The result of work in a transaction that changes nothing. A statement may take `timeout` seconds, and half of them wait for a lock: so
/// the error names the lock.
pub(super) async fn in_transaction<T>(
    client: &Client,
    timeout: u64,
    work: impl Future<Output = Result<T, CatalogError>>,
) -> Result<T, CatalogError> {
    // The server's limit is an int of milliseconds.
    let timeout = timeout.min(2_000_000);
    let wait = (500 * timeout).min(MOST_WAIT);
    let limits = format!("SET LOCAL statement_timeout = '{timeout}s'; SET LOCAL lock_timeout = {wait}");
    client.batch_execute(&format!("{BEGIN}; {limits}")).await?;
    client.batch_execute(include_str!("../sql/settings.sql")).await?;
    let result = work.await;
    let ended = client.batch_execute("ROLLBACK").await;
    let result = match result {
        Err(CatalogError::Server(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            return Err(locked(client, error).await);
        }
        result => result?,
    };
    ended?;
    Ok(result)
}

/// The error of a lock that another transaction has, with this transaction and the tables that it locks.
async fn locked(client: &Client, error: tokio_postgres::Error) -> CatalogError {
    let Ok(rows) = client.query(include_str!("locks.sql"), &[]).await else { return error.into() };
    let holders: Vec<String> = rows.iter().map(|row| row.get("holder")).collect();
    CatalogError::Locked(if holders.is_empty() {
        "the transaction that had locked it has ended meanwhile: try again".to_owned()
    } else {
        format!("{}: try again when this transaction has ended, or end it", holders.join("; "))
    })
}

/// The rows of a query on these relations, by relation. Texts of a database without an encoding that are no UTF-8 are read byte by byte.
pub(super) async fn by_relation(
    client: &Client,
    query: &str,
    oids: &[u32],
) -> Result<BTreeMap<u32, Vec<Row>>, CatalogError> {
    client.batch_execute("SAVEPOINT read").await?;
    let plain = query.replace("{read}", "(").replace("{as}", ")");
    let found = grouped(client, &plain, oids).await;
    let Err(CatalogError::Server(error)) = &found else { return found };
    if error.code() != Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE) {
        return found;
    }
    client.batch_execute("ROLLBACK TO SAVEPOINT read").await?;
    let bytes = query
        .replace("{read}", "convert_from(convert(convert_to(")
        .replace("{as}", ", 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')");
    grouped(client, &bytes, oids).await
}

async fn grouped(
    client: &Client,
    query: &str,
    oids: &[u32],
) -> Result<BTreeMap<u32, Vec<Row>>, CatalogError> {
    let mut found: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for oids in oids.chunks(read::TOGETHER) {
        for row in client.query(query, &[&oids]).await? {
            found.entry(row.get("relation")).or_default().push(row);
        }
    }
    Ok(found)
}

impl CatalogError {
    /// Whether a statement took longer than it may.
    pub fn is_statement_timeout(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.as_db_error().is_some_and(|why| why.message().contains("statement timeout"))
    }
}
