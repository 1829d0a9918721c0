//! Subscriptions in pgrig's databases, which the body of a DO may have made: the server drops no database that has one (dbcommands.c: dropdb).

use connect::{ConnectError, Target};
use server::Session;
use server::marked::drop_database;
use server::quote::identifier;

/// Drops a database of pgrig's with its subscriptions. Nothing changes on the servers with which these connect. `target` is any database
/// of the same server.
pub(crate) async fn drop_with_subscriptions(
    session: &Session,
    target: &Target,
    name: &str,
) -> Result<(), ConnectError> {
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
