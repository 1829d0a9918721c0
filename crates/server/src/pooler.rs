//! Poolers between pgrig and the server: PgBouncer and others that may run each transaction of a connection in another
//! session of the server. Settings, temporary tables, advisory locks and prepared statements are then lost.

use std::time::Duration;

use connect::{ConnectError, Connection, Target};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Time to wait for a pool with too few sessions.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether there is a pooler, and a transaction of another connection moves this connection to
/// another session.
///
/// # Errors
/// If the connection is lost.
pub async fn changes_sessions(target: &Target, connection: &Connection) -> Result<bool, ConnectError> {
    let changes = match announced_another(connection).await {
        Ok(true) => beside_another(target, connection).await,
        other => other,
    };
    match changes {
        Ok(changes) => Ok(changes),
        Err(error) => Err(connection.explain(error).await),
    }
}

/// Whether the process ID that the other side announced differs from the process that runs
/// statements.
async fn announced_another(connection: &Connection) -> Result<bool, Error> {
    let announced = connection.process_id();
    Ok(announced.is_some() && announced != process(&connection.client).await?)
}

/// Whether a transaction of another connection moves this one to another session.
async fn beside_another(target: &Target, connection: &Connection) -> Result<bool, Error> {
    let client = &connection.client;
    if client.batch_execute("BEGIN").await.is_err() {
        // Statement by statement: there is no transaction at all.
        return Ok(true);
    }
    let first = process(client).await?;
    let other = tokio::time::timeout(PATIENCE, async {
        let other = target.connect_when_ready(&|_| ()).await.ok()?;
        other.client.batch_execute("BEGIN").await.ok()?;
        Some(other)
    });
    // With a session for each connection, or with one session for all, nothing changes.
    let other = other.await.ok().flatten();
    client.batch_execute("COMMIT").await?;
    let Some(other) = other else { return Ok(false) };
    other.client.batch_execute("COMMIT").await?;
    // Whichever session the pool hands out first, that of the other transaction comes within two turns.
    for _ in 0..2 {
        if process(client).await? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The process that runs this statement. Sent as one simple-protocol message, because a pooler may
/// already have lost a prepared statement.
async fn process(client: &Client) -> Result<Option<i32>, Error> {
    let messages = client.simple_query("SELECT pg_backend_pid()").await?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    }))
}
