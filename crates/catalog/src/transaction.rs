//! Transactions that leave nothing behind.

use tokio_postgres::Client;

use super::error::CatalogError;

/// The access of a transaction that is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The transaction only reads.
    ReadOnly,
    /// Temporary tables may be created.
    ReadWrite,
}

/// The state of the session when it looks at a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The session is in no transaction.
    Idle,
    /// A transaction, which may have created the table; it stays open.
    Transaction,
}

/// Does the work in a transaction with settings in which all texts have one spelling, and rolls it
/// back. If the future is dropped before its end, the session is still in the transaction.
pub(super) async fn rolled_back<T>(
    client: &Client,
    scope: Scope,
    access: Access,
    work: impl Future<Output = Result<T, CatalogError>>,
) -> Result<T, CatalogError> {
    let begin = match (scope, access) {
        (Scope::Idle, Access::ReadOnly) => "BEGIN READ ONLY",
        (Scope::Idle, Access::ReadWrite) => "BEGIN READ WRITE",
        (Scope::Transaction, Access::ReadOnly) => "SAVEPOINT pgrig_look; SET TRANSACTION READ ONLY",
        (Scope::Transaction, Access::ReadWrite) => "SAVEPOINT pgrig_look",
    };
    let end = match scope {
        Scope::Idle => "ROLLBACK",
        Scope::Transaction => "ROLLBACK TO SAVEPOINT pgrig_look; RELEASE SAVEPOINT pgrig_look",
    };
    client.batch_execute(&format!("{begin};\n{}", include_str!("sql/settings.sql"))).await?;
    let outcome = work.await;
    let ended = client.batch_execute(end).await;
    let value = outcome?;
    ended?;
    Ok(value)
}
