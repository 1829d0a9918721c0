//! Work of the server that can disturb a measurement.

use tokio_postgres::Client;

/// Number of checkpoints that the server has begun since its statistics were reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoints(i64);

impl Checkpoints {
    /// The number at this moment; none if the server does not tell it.
    pub async fn so_far(client: &Client) -> Option<Self> {
        // The counters moved in PostgreSQL 17.
        let new = "SELECT num_timed + num_requested FROM pg_stat_checkpointer";
        let old = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter";
        let moved = "SELECT to_regclass('pg_catalog.pg_stat_checkpointer') IS NOT NULL";
        let query = if client.query_one(moved, &[]).await.ok()?.get(0) { new } else { old };
        Some(Self(client.query_one(query, &[]).await.ok()?.get(0)))
    }

    /// Number of checkpoints that began since `earlier`.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0 - earlier.0).unwrap_or_default()
    }
}
