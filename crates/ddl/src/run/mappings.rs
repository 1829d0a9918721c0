//! User mappings, with which foreign tables connect: a schema leaves none, so that no run of the migration changes a foreign server.

use connect::ConnectError;
use server::Session;

/// The warning about a schema whose user mappings were dropped.
pub(crate) const WARNING: &str = "pgrig dropped the user mappings, so that the migration cannot change data on other servers: statements on \
                                  foreign tables are not measurable";

/// Whether [`crate::schema::Schema`]'s SQL, which the session has run, has dropped any.
pub(crate) async fn were_dropped(session: &Session) -> Result<bool, ConnectError> {
    let query =
        "SELECT coalesce(pg_catalog.current_setting('pgrig.user_mappings', true), '') = 'dropped' AS were";
    Ok(session.row(query, &[]).await?.get("were"))
}
