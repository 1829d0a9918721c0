//! Where the catalog's looks and trials happen: in a transaction that leaves nothing behind.

use tokio_postgres::{Client, Error};

/// What the session is in when it is asked to look at a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// No transaction.
    Idle,
    /// A transaction, which may have made the table; it goes on unchanged.
    Transaction,
}

impl Scope {
    /// Begins what [`Self::leave`] rolls back.
    pub(super) async fn enter(self, client: &Client) -> Result<(), Error> {
        client
            .batch_execute(match self {
                Self::Idle => "BEGIN",
                Self::Transaction => "SAVEPOINT pgrig_look",
            })
            .await
    }

    /// Rolls back what was done since.
    pub(super) async fn leave(self, client: &Client) -> Result<(), Error> {
        client
            .batch_execute(match self {
                Self::Idle => "ROLLBACK",
                Self::Transaction => "ROLLBACK TO SAVEPOINT pgrig_look; RELEASE SAVEPOINT pgrig_look",
            })
            .await
    }
}
