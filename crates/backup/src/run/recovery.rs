//! A server on restored files that replays WAL up to a point in time.

use std::time::Instant;

use connect::{ConnectError, Target};
use pgserver::Running;
use server::Session;

use super::point::{Point, compare};
use super::replay::{self, last_words};
use super::scratch::undisturbed;
use super::step::{LOOK, Measured, STUCK, Trouble, Watch, size};
use super::{Run, Subject, tablespaces};
use crate::error::BackupError;
use crate::verified::Verified;
use crate::way::Way;

impl Run<'_> {
    /// Starts a server on the restored files, waits until it has replayed WAL up to the point, and compares its content. Returns the
    /// seconds of the replay, too. `restore_command` fetches WAL that is not in `pg_wal`.
    pub(super) async fn recovered_to(
        &self,
        point: &Point,
        (way, subject): (&Way, &Subject),
        restore_command: &str,
        watch: Watch<'_>,
        restore: &mut Measured,
    ) -> Result<(Verified, f64), Trouble> {
        tablespaces::refuse_new(subject).await?;
        let facts = &subject.facts;
        let began = Instant::now();
        let running = match self.scratch.start_recovery(&settings(&point.time, restore_command)).await {
            Ok(running) => running,
            Err(error) => {
                self.scratch.end_base(None).await?;
                return Err(Trouble::Way(format!("its recovery failed: {}", error.of_restored())));
            }
        };
        let at = running.connection();
        let role = facts.superuser.as_deref().unwrap_or(at.user);
        let target = undisturbed(Target::embedded(&at.socket_dir, at.port, role, &facts.database));
        let data = running.data_dir();
        let watch = Watch { directories: vec![&self.scratch.work, &data], ..watch };
        let ended = self.wait_until_recovered(&watch, &target, &running).await;
        restore.seconds += began.elapsed().as_secs_f64();
        restore.add_server(running.server_pid());
        restore.peak = restore.peak.max(size(&self.scratch.work) + size(&data));
        let compared = match ended {
            Ok(replay) => self.compared((way, &target), point).await.map(|verified| (verified, replay)),
            Err(trouble) => Err(trouble),
        };
        let stopped = self.scratch.end_base(Some(running)).await;
        // A server that has ended by itself is not deleted yet.
        self.scratch.end_base(None).await?;
        let compared = compared?;
        stopped?;
        Ok(compared)
    }

    /// Compares the recovered database with the point, and reads the other databases.
    async fn compared(&self, (way, target): (&Way, &Target), point: &Point) -> Result<Verified, Trouble> {
        let verified = compare(target, point).await?;
        Box::pin(self.with_others(way, target, verified)).await
    }

    /// Waits until the server has replayed WAL up to its target, and accepts writes. Returns the seconds of the replay.
    async fn wait_until_recovered(
        &self,
        watch: &Watch<'_>,
        target: &Target,
        running: &Running,
    ) -> Result<f64, Trouble> {
        let log = running.log_path();
        let failed = |error: ConnectError| {
            let words = last_words(&log).unwrap_or_else(|| error.to_string());
            Trouble::Way(format!("its recovery failed: {words}"))
        };
        let session = Session::open(target).await.map_err(failed)?;
        let (mut last, mut since) = (String::new(), Instant::now());
        loop {
            if self.is_stopped() {
                return Err(BackupError::Interrupted.into());
            }
            let row = session.row(include_str!("../sql/replay.sql"), &[]).await.map_err(failed)?;
            if !row.get::<_, bool>("in_recovery") {
                break;
            }
            let place: String = row.get("place");
            if place != last {
                (last, since) = (place, Instant::now());
            }
            if since.elapsed() > STUCK {
                let words = last_words(&log).unwrap_or_default();
                return Err(Trouble::Way(format!(
                    "its recovery has replayed nothing for {} s: {words}",
                    STUCK.as_secs()
                )));
            }
            if let Some(full) = watch.full() {
                return Err(full.into());
            }
            tokio::time::sleep(LOOK).await;
        }
        session.close().await;
        replay::seconds(&log).ok_or_else(|| {
            Trouble::Way("the restored server's log does not say when it replayed WAL".to_owned())
        })
    }
}

/// Settings of the server that recovers. They come last, so that the user's do not replace them.
fn settings(time: &str, restore_command: &str) -> Vec<(String, String)> {
    [
        ("restore_command", restore_command),
        ("recovery_target_time", time),
        ("recovery_target_action", "promote"),
        ("hot_standby", "on"),
        ("archive_mode", "off"),
        ("lc_messages", "C"),
        ("log_min_messages", "warning"),
        ("log_line_prefix", replay::PREFIX),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
