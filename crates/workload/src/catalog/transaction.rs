//! Transactions that leave nothing behind.

use tokio_postgres::Client;

use super::error::CatalogError;

/// What a transaction may do before it is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Look.
    ReadOnly,
    /// Have temporary tables.
    ReadWrite,
}

/// Does the work in a transaction with settings in which all texts have one spelling, and rolls it
/// back. If the future is dropped before its end, the session is still in the transaction.
pub(super) async fn rolled_back<T>(
    client: &Client,
    access: Access,
    work: impl Future<Output = Result<T, CatalogError>>,
) -> Result<T, CatalogError> {
    let begin = match access {
        Access::ReadOnly => "BEGIN READ ONLY",
        Access::ReadWrite => "BEGIN READ WRITE",
    };
    client.batch_execute(begin).await?;
    client.batch_execute(include_str!("../sql/catalog_settings.sql")).await?;
    let outcome = work.await;
    let ended = client.batch_execute("ROLLBACK").await;
    let value = outcome?;
    ended?;
    Ok(value)
}
