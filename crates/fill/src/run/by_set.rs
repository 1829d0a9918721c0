//! Loads rows by COPY and checks their foreign keys with one query for each key. The server would
//! look up the references of each row, which takes several times as long as loading the rows.
//!
//! A chunk is loaded with triggers off (`session_replication_role`) and proved before its commit. Until then nobody changes
//! the referenced rows: SHARE locks keep writers out of the referenced tables.

use super::filler::Filler;
use super::foreign_keys::{Broken, ForeignKey, RowsToCheck, broken};
use crate::cause::Cause;
use crate::run::direct::{self, Relation};
use server::Session;

/// A chunk whose rows come without triggers.
pub(super) struct BySet {
    keys: Vec<ForeignKey>,
    /// Number of the table's first block after the existing rows.
    block: i64,
}

impl BySet {
    /// Turns triggers off in the session's transaction, and locks the tables that the table
    /// references. None if the table has changed so that it needs its triggers, and the request
    /// allows triggers.
    pub(super) async fn begin(
        filler: &Filler<'_>,
        session: &Session,
        table: &str,
    ) -> Result<Option<Self>, Cause> {
        // A session that adds a foreign key or a trigger waits for this lock.
        filler.watched(session, &format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE")).await?;
        let found = Relation::of(&session.row(Relation::QUERY, &[&table, &Relation::NOTHING]).await?);
        if let Err(why) =
            found.loads_without_triggers(filler.plan.triggers(), filler.plan.request.is_in_cycle())
        {
            let is_asked = !filler.plan.silenced.is_empty();
            direct::refuse(table, is_asked.then_some(&why))?;
            return Ok(None);
        }
        let keys = found.foreign_keys;
        let referenced: Vec<&str> = keys.iter().map(|key| key.referenced.as_str()).collect();
        if !referenced.is_empty() {
            filler.watched(session, &format!("LOCK TABLE {} IN SHARE MODE", referenced.join(", "))).await?;
        }
        session.run("SET LOCAL session_replication_role = replica").await?;
        let block = found.bytes / u64::from(filler.plan.geometry.block_size());
        Ok(Some(Self { keys, block: i64::try_from(block).unwrap_or(i64::MAX) }))
    }

    /// Checks all foreign keys of the rows that were loaded since [`Self::begin`].
    pub(super) async fn prove(self, session: &Session, table: &str, rows: u64) -> Result<(), Cause> {
        session.run("SET LOCAL session_replication_role = origin").await?;
        let own = "f.xmin = pg_current_xact_id()::xid";
        let behind = format!("f.ctid >= '({},0)' AND {own}", self.block);
        let count = format!("SELECT count(*) FROM {table} f WHERE {behind}");
        let found: i64 = session.row(&count, &[]).await?.get(0);
        // Some may have found room further ahead.
        let condition = if found.unsigned_abs() == rows { behind.as_str() } else { own };
        match broken(session, &RowsToCheck { table, condition, count: rows }, &self.keys).await? {
            Some(Broken { constraint, row }) => {
                Err(Cause::Broken { table: table.to_owned(), constraint, row })
            }
            None => Ok(()),
        }
    }
}
