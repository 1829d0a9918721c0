//! Room for the server to go on when a disk is full to the last byte.
//!
//! A checkpoint writes a few small files; if it cannot, that is a PANIC, and recovery empties every
//! unlogged table (see [`super::limits::Headroom`]). A table that can be dropped gives it that room,
//! whoever took the rest.

use tokio::sync::Mutex;

use super::ledger;
use super::plan::Plan;
use super::session::Session;
use super::steps::Filler;
use crate::connect::ConnectError;
use crate::quote::qualified;

/// What it takes, bytes.
pub(super) const BALLAST: u64 = 16 << 20;

/// An unlogged table beside the filled ones, as long as rows are generated.
#[derive(Debug)]
pub(super) struct Ballast {
    name: String,
    blocks: u64,
    held: Mutex<bool>,
}

impl Ballast {
    pub(super) fn of(plan: &Plan, bulk: &str) -> Self {
        let name = qualified(&plan.schema, &ledger::name_beside("pgrig_ballast", bulk));
        Self { name, blocks: BALLAST / u64::from(plan.geometry.block_size()), held: Mutex::new(false) }
    }

    /// Creates it, unless it is there.
    ///
    /// # Errors
    /// If there is no room for it, for example: then nothing of it is left.
    pub(super) async fn hold(&self, session: &Session) -> Result<(), ConnectError> {
        let mut held = self.held.lock().await;
        if !*held {
            // At this fillfactor a row of a kilobyte has its block to itself.
            let create = format!(
                "CREATE UNLOGGED TABLE {} WITH (fillfactor = 10, autovacuum_enabled = off) AS \
                 SELECT repeat('x', 1000) AS x FROM generate_series(1, {})",
                self.name, self.blocks
            );
            session.run_all(&[self.remove(), create]).await?;
            *held = true;
        }
        Ok(())
    }

    /// Drops it: a commit gives its blocks back at once.
    pub(super) async fn give_up(&self, session: &Session) -> Result<(), ConnectError> {
        let mut held = self.held.lock().await;
        if *held {
            session.run(&self.remove()).await?;
            *held = false;
        }
        Ok(())
    }

    /// The statement that removes what a killed run may have left.
    pub(super) fn remove(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name)
    }
}

impl Filler<'_> {
    pub(super) async fn hold_ballast(&self, session: &Session) -> Result<(), ConnectError> {
        let Some(ballast) = &self.ballast else { return Ok(()) };
        ballast.hold(session).await?;
        self.governor.iter().for_each(|governor| governor.hold_ballast(BALLAST));
        Ok(())
    }

    pub(super) async fn give_up_ballast(&self, session: &Session) -> Result<(), ConnectError> {
        let Some(ballast) = &self.ballast else { return Ok(()) };
        self.governor.iter().for_each(|governor| governor.hold_ballast(0));
        ballast.give_up(session).await
    }
}
