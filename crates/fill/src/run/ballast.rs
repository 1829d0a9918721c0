//! A table that pgrig can drop to give the server room when a disk is completely full.
//!
//! A checkpoint writes a few small files. If it cannot, the server ends with a PANIC, and recovery
//! empties every unlogged table (see [`crate::limits::Headroom`]). Dropping this table gives the
//! checkpoint the room that it needs, even if other programs have filled the disk.

use tokio::sync::Mutex;

use crate::ledger;
use crate::plan::Plan;
use crate::run::filler::Filler;
use connect::ConnectError;
use server::Session;
use server::marked;
use server::quote::{literal, qualified};

/// Comment of the table that holds the space.
const MARK: &str = "room that pgrig fill keeps for the server; its next run drops it";
/// Its size, bytes.
pub(crate) const BALLAST: u64 = 16 << 20;

/// An unlogged table beside the filled ones, as long as rows are generated.
#[derive(Debug)]
pub(crate) struct Ballast {
    schema: String,
    table: String,
    name: String,
    blocks: u64,
    held: Mutex<bool>,
}

impl Ballast {
    pub(crate) fn of(plan: &Plan, bulk: &str) -> Self {
        let (schema, table) = (plan.schema.clone(), ledger::name_beside("pgrig_ballast", bulk));
        let name = qualified(&schema, &table);
        let blocks = BALLAST / u64::from(plan.geometry.block_size());
        Self { schema, table, name, blocks, held: Mutex::new(false) }
    }

    /// Creates it, unless it is there.
    ///
    /// # Errors
    /// For example, if there is no room for the table. Then nothing of it is left.
    pub(crate) async fn hold(&self, session: &Session) -> Result<(), ConnectError> {
        let mut held = self.held.lock().await;
        if !*held {
            // At this fillfactor a row of a kilobyte has its block to itself.
            let create = format!(
                "CREATE UNLOGGED TABLE {} WITH (fillfactor = 10, autovacuum_enabled = off) AS \
                 SELECT repeat('x', 1000) AS x FROM generate_series(1, {})",
                self.name, self.blocks
            );
            self.remove(session).await?;
            let mark = format!("COMMENT ON TABLE {} IS {}", self.name, literal(MARK));
            session.run_all(&[create, mark]).await?;
            *held = true;
        }
        Ok(())
    }

    /// Drops it: a commit gives its blocks back at once.
    pub(crate) async fn give_up(&self, session: &Session) -> Result<(), ConnectError> {
        let mut held = self.held.lock().await;
        if *held {
            session.run(&format!("DROP TABLE IF EXISTS {}", self.name)).await?;
            *held = false;
        }
        Ok(())
    }

    /// Removes the leftovers of a killed run.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn remove(&self, session: &Session) -> Result<(), ConnectError> {
        session.run("BEGIN").await?;
        marked::drop_table(session, &self.schema, &self.table, MARK).await?;
        session.run("COMMIT").await
    }
}

impl Filler<'_> {
    pub(crate) async fn hold_ballast(&self, session: &Session) -> Result<(), ConnectError> {
        let Some(ballast) = &self.ballast else { return Ok(()) };
        ballast.hold(session).await?;
        self.control.iter().for_each(|control| control.hold_ballast(BALLAST));
        Ok(())
    }

    pub(crate) async fn give_up_ballast(&self, session: &Session) -> Result<(), ConnectError> {
        let Some(ballast) = &self.ballast else { return Ok(()) };
        self.control.iter().for_each(|control| control.hold_ballast(0));
        ballast.give_up(session).await
    }
}
