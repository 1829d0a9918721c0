//! Drops pgrig's databases. The server drops none that has a subscription, which the body of a DO may have made, or a prepared transaction, which
//! a probe may have left (dbcommands.c: dropdb).

use connect::{ConnectError, SqlState, Target};
use server::Session;
use server::marked::drop_database;
use server::quote::{identifier, literal};

/// Drops databases of pgrig's, and goes on past one that the server keeps. Returns those, each with the reason.
///
/// # Errors
/// If the work is cancelled.
pub(crate) async fn drop_all(
    session: &Session,
    target: &Target,
    names: Vec<String>,
) -> Result<Vec<(String, String)>, ConnectError> {
    let mut kept = Vec::new();
    for name in names {
        match drop_whole(session, target, &name).await {
            Ok(()) => {}
            Err(error) if error.sqlstate() == Some(&SqlState::QUERY_CANCELED) => return Err(error),
            Err(error) => kept.push((name, error.to_string())),
        }
    }
    Ok(kept)
}

/// Drops a database of pgrig's with its prepared transactions and subscriptions. Nothing changes on the servers with which these connect.
/// `target` is any database of the same server.
pub(crate) async fn drop_whole(session: &Session, target: &Target, name: &str) -> Result<(), ConnectError> {
    let prepared =
        "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database::text = $1::text ORDER BY prepared";
    let prepared = session.rows(prepared, &[&name]).await?;
    if !prepared.is_empty() {
        // The server ends such a transaction only in its own database.
        let within = Session::open(&target.clone().with_database(name)).await?;
        for row in &prepared {
            within.run(&format!("ROLLBACK PREPARED {}", literal(row.get("gid")))).await?;
        }
        within.close().await;
    }
    let query = "SELECT s.subname::text AS name FROM pg_catalog.pg_subscription s \
                 JOIN pg_catalog.pg_database d ON d.oid = s.subdbid WHERE d.datname = $1::text";
    let rows = session.rows(query, &[&name]).await?;
    if !rows.is_empty() {
        let within = Session::open(&target.clone().with_database(name)).await?;
        for row in &rows {
            drop_subscription(&within, row.get("name")).await?;
        }
        within.close().await;
    }
    drop_database(session, name).await
}

/// Without its slot, the server drops it alone.
async fn drop_subscription(session: &Session, name: &str) -> Result<(), ConnectError> {
    let name = identifier(name);
    session.run(&format!("ALTER SUBSCRIPTION {name} DISABLE")).await?;
    session.run(&format!("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)")).await?;
    session.run(&format!("DROP SUBSCRIPTION {name}")).await
}
