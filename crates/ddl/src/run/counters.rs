//! The server's counters of reads and writes, for a statement that commits on its way: the counters of a transaction end with it.
//!
//! The database is pgrig's own, so the difference of two readings is the work of the migration's session. A server process reports its
//! counters when it waits for the next command, but not each time: at most once in 0.5 s before PostgreSQL 15, once in 1 s from then on
//! (pgstat.c). So the session leaves a mark: a scan of a catalog. Once the server has counted the mark, it has all that came before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use connect::ConnectError;
use server::Session;

use crate::find::Read;
use crate::run::failure;
use crate::run::watch::Watcher;

/// A scan of a catalog that nothing else in the database scans.
const MARK: &str = "SELECT count(*) FROM pg_catalog.pg_language";
/// From PostgreSQL 15 on, the report comes with the end of the command.
const REPORT: &str = "SELECT pg_catalog.pg_stat_force_next_flush()";
/// The first release with this function.
const REPORTS: u32 = 150_000;
/// Longest wait for the counters: before PostgreSQL 15, the session reports 0.5 s late, and the collector writes 0.5 s late.
const LATE: Duration = Duration::from_secs(4);
/// Time between two marks.
const POLL: Duration = Duration::from_millis(50);

/// Marks of one session.
#[derive(Default)]
pub(crate) struct Counters {
    /// Marks that the session has left.
    marks: i64,
}

impl Counters {
    /// Waits until the server has counted all that the session has done, and reads its counters, by OID. None if they do not come: the
    /// server does not count (`track_counts`), or a report was lost.
    pub(crate) async fn read(
        &mut self,
        session: &Session,
        watcher: &Watcher,
    ) -> Result<Option<BTreeMap<u32, Read>>, ConnectError> {
        let wanted = self.marks + 1;
        let mark =
            if watcher.version().await? < REPORTS { MARK.to_owned() } else { format!("{MARK}; {REPORT}") };
        let began = Instant::now();
        loop {
            // The migration may have set a limit on the time of a statement.
            if failure::refused(session.run(&mark).await)?.is_ok() {
                self.marks += 1;
            }
            if watcher.marks().await? >= wanted {
                return Ok(Some(watcher.counters().await?));
            }
            if began.elapsed() > LATE {
                return Ok(None);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
