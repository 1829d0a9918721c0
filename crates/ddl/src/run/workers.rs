//! Rows and blocks that parallel workers read: the counters of the migration's own transaction are those of its own process.
//!
//! A worker reports its counters to the server when it exits (pgstat.c: `pgstat_shutdown_hook`), and the statement waits for that (parallel.c:
//! `WaitForParallelWorkersToExit`). The migration's own process reports nothing while its transaction is open. So what the server counts
//! between two readings within the transaction is the work of the workers: nobody else uses the tables of the database.
//! Before PostgreSQL 15, a process of its own collects the counters, up to a second late.

use std::collections::BTreeMap;

use connect::{ConnectError, Target};

use crate::find::{Read, Relations};
use crate::run::watch::Watcher;

/// The first release whose processes count in shared memory.
const SHARED: u32 = 150_000;
/// Settings with which a statement has no workers.
const NONE: [(&str, &str); 2] =
    [("max_parallel_workers_per_gather", "0"), ("max_parallel_maintenance_workers", "0")];

/// Sessions of the target in which all that a statement reads is counted in time: before PostgreSQL 15, its statements have no workers,
/// unless the migration asks for them.
pub(crate) fn counted(target: Target, version: u32) -> Target {
    if version >= SHARED {
        return target;
    }
    NONE.iter().fold(target, |target, (name, value)| target.with_setting(name, value))
}

/// The server's counters before a statement; none if they would come too late.
pub(crate) struct Workers(Option<BTreeMap<u32, Read>>);

impl Workers {
    /// Within the transaction of the statement, before it.
    pub(crate) async fn begin(watcher: &Watcher) -> Result<Self, ConnectError> {
        let is_shared = watcher.version().await? >= SHARED;
        Ok(Self(if is_shared { Some(watcher.counters().await?) } else { None }))
    }

    /// Adds what workers have read to the reading after the statement. Together with the statement's own process, they do one scan.
    pub(crate) async fn add(
        self,
        watcher: &Watcher,
        before: &Relations,
        after: &mut Relations,
    ) -> Result<(), ConnectError> {
        let Some(earlier) = self.0 else { return Ok(()) };
        let now = watcher.counters().await?;
        for (oid, relation) in &mut after.0 {
            let of = |counters: &BTreeMap<u32, Read>| counters.get(oid).copied().unwrap_or_default();
            let workers = of(&now).since(of(&earlier));
            let own = before.get(*oid).map_or(0, |before| relation.read.scans - before.read.scans);
            let scans = if own == 0 { workers.scans.min(1) } else { 0 };
            relation.read = relation.read.and(Read { scans, ..workers });
        }
        Ok(())
    }
}
