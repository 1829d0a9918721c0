//! Rows and blocks that parallel workers read: the counters of the migration's own transaction are those of its own process.
//!
//! A worker reports its counters to the server when it exits (pgstat.c: `pgstat_shutdown_hook`), and the statement waits for that (parallel.c:
//! `WaitForParallelWorkersToExit`). The migration's own process reports nothing while its transaction is open. So what the server counts
//! between two readings within the transaction is the work of the workers: nobody else uses the tables of the database.
//! Before PostgreSQL 15, a process of its own collects the counters, up to a second late.

use std::collections::BTreeMap;

use connect::{ConnectError, Target};
use server::Session;

use crate::find::{Counted, Read, Relations};
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

/// Whether a statement of the session may have workers.
const MAY_HAVE: &str = "SELECT pg_catalog.current_setting('max_parallel_workers_per_gather') <> '0' \
                        OR pg_catalog.current_setting('max_parallel_maintenance_workers') <> '0' AS may_have";

/// Reads of workers, from before a statement on.
pub(crate) struct Workers {
    /// The server's counters before it; none if they would come too late.
    earlier: Option<BTreeMap<u32, Read>>,
    /// Part of its reads that is counted.
    pub(crate) counted: Counted,
}

impl Workers {
    /// Within the transaction of the statement, before it.
    pub(crate) async fn begin(watcher: &Watcher, session: &Session) -> Result<Self, ConnectError> {
        if watcher.version().await? >= SHARED {
            return Ok(Self { earlier: Some(watcher.counters().await?), counted: Counted::All });
        }
        let may_have: bool = session.row(MAY_HAVE, &[]).await?.get("may_have");
        let counted = if may_have { Counted::WithoutWorkers } else { Counted::All };
        Ok(Self { earlier: None, counted })
    }

    /// Adds what workers have read to the reading after the statement. Together with the statement's own process, they do one scan.
    pub(crate) async fn add(
        self,
        watcher: &Watcher,
        before: &Relations,
        after: &mut Relations,
    ) -> Result<(), ConnectError> {
        let Some(earlier) = self.earlier else { return Ok(()) };
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
