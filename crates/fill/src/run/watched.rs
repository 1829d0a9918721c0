//! Reports the progress of long statements.

use std::convert::Infallible;
use std::time::Duration;

use super::filler::Filler;
use connect::ConnectError;
use server::Session;

/// Interval between queries for the progress of a vacuum or an index build.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

impl Filler<'_> {
    /// Runs a long statement while another session asks for its progress. If asking fails (e.g. no
    /// connection is left), only the progress display is missing.
    pub(crate) async fn watched(&self, session: &Session, sql: &str) -> Result<(), ConnectError> {
        let pid = session.pid().await?;
        tokio::select! {
            result = session.run(sql) => result,
            never = self.report_progress(pid) => match never {},
        }
    }

    async fn report_progress(&self, pid: i32) -> Infallible {
        let mut every = tokio::time::interval(PROGRESS_INTERVAL);
        every.tick().await;
        every.tick().await;
        if let Ok(watcher) = self.sessions.open().await {
            loop {
                let query = include_str!("../sql/step_progress.sql");
                let Ok(row) = watcher.connection.client.query_opt(query, &[&pid]).await else { break };
                if let Some(fraction) = row.and_then(|row| row.get("fraction")) {
                    self.observer.fraction_done(fraction);
                }
                let Ok(holder) = watcher.lock_holder(pid).await else { break };
                if let Some(holder) = holder {
                    self.observer.waiting(&format!("for a lock that {holder} holds"));
                }
                every.tick().await;
            }
        }
        std::future::pending().await
    }
}
