//! Event triggers that note facts about a statement while it runs, each in a setting of its session. Only a superuser may make them, and
//! DISCARD drops them: without them, the facts are missing.
//!
//! `table_rewrite` corroborates the proof by files. `sql_drop` shows the last lock of DROP INDEX CONCURRENTLY, for which nothing waits, so that no
//! other session can hold it up to read it. REINDEX CONCURRENTLY has no such event for its old index (dependency.c: `deleteObjectsInList`
//! leaves out deletions with `PERFORM_DELETION_INTERNAL`).

use std::collections::BTreeMap;

use connect::ConnectError;
use server::Session;

use crate::find::{Held, LockMode};
use crate::run::failure;

/// Empties the settings.
const FORGET: &str = "SELECT pg_catalog.set_config('pgrig.rewritten', '', false), \
                      pg_catalog.set_config('pgrig.dropped', '', false)";

/// Makes the triggers in the session's database, as far as its role may.
pub(crate) async fn begin(session: &Session) -> Result<(), ConnectError> {
    for sql in [include_str!("../sql/rewritten.sql"), include_str!("../sql/dropped.sql")] {
        let _ = failure::refused(session.run(sql).await)?;
    }
    Ok(())
}

/// Forgets the facts about the statement before.
pub(crate) async fn forget(session: &Session) -> Result<(), ConnectError> {
    session.run(FORGET).await
}

/// The tables that the statement has written anew, each with the number of times; nothing if its events were not noted.
pub(crate) async fn rewritten(session: &Session) -> Result<BTreeMap<u32, u64>, ConnectError> {
    let query = "SELECT coalesce(pg_catalog.current_setting('pgrig.rewritten', true), '') AS oids";
    let oids: String = session.row(query, &[]).await?.get("oids");
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    for oid in oids.split(' ').filter_map(|oid| oid.parse().ok()) {
        *times.entry(oid).or_default() += 1;
    }
    Ok(times)
}

/// The locks on relations that a DROP INDEX had at its end; none if its event was not noted.
pub(crate) async fn dropped(session: &Session) -> Result<Held, ConnectError> {
    let rows = session.rows(include_str!("../sql/dropped_locks.sql"), &[]).await?;
    let mut held = Held::default();
    for row in &rows {
        if let Some(mode) = LockMode::of_pg_locks(row.get("mode")) {
            held.add(row.get("relation"), mode);
        }
    }
    Ok(held)
}
