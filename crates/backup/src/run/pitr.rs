//! Recovery to a point in time: a base backup, the WAL of a load, and its replay up to a time between two transactions.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use pgserver::Running;
use server::Session;

use super::receiver::{Receiver, drop_slot};
use super::replay::{self, last_words};
use super::step::{LOOK, Measured, STUCK, Trouble, Watch, size};
use super::{Restored, Run, SMALL, Subject, base, incremental, of_restore, transactions, verify, wal};
use crate::error::{BackupError, OnPath};
use crate::load::Load;
use crate::outcome::{Recovery, Verified};
use crate::programs::Programs;
use crate::run::source::{Content, Source};
use crate::way::Way;

/// The archive of WAL, below the data directory of the restored server: its account can read it there.
const ARCHIVE: &str = "pgrig_archive";
/// Part of the load that comes after the target time, and its limits in seconds.
const AFTER: f64 = 0.1;
const LEAST: f64 = 1.0;
const MOST: f64 = 10.0;
/// Time in which the server's clock passes the target time.
const PASSES: Duration = Duration::from_secs(30);

/// Why no recovery to a point in time can be rehearsed, with the remedy.
pub(crate) fn hindrance(programs: &Programs, load: Option<&Load>) -> Option<String> {
    if load.is_none() {
        return Some(
            "WAL is replayed of a load that pgrig puts on databases of its own: give a size and a load, for example --size 5TB --load FILE -R 500"
                .to_owned(),
        );
    }
    (!programs.has("pg_receivewal"))
        .then(|| format!("there is no pg_receivewal in {}: give --bin DIR", programs.dir.display()))
}

/// A table that gets a row every few milliseconds: rows with higher numbers are committed later.
pub(super) struct Witness {
    session: Session,
    committed: i64,
}

impl Witness {
    async fn create(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        session.run(include_str!("../sql/witness.sql")).await?;
        Ok(Self { session, committed: 0 })
    }

    /// Commits a row.
    pub(super) async fn write(&mut self) -> Result<(), ConnectError> {
        let row = self.committed + 1;
        let insert = format!("INSERT INTO pgrig_pitr.witness VALUES ({row}, clock_timestamp())");
        self.session.run(&insert).await?;
        self.committed = row;
        Ok(())
    }
}

/// The moment to which the server is recovered. Nothing ran then.
struct Point {
    /// By the server's clock, with the offset from UTC.
    time: String,
    /// Rows of the witness that were committed before.
    before: i64,
    /// Those that were committed after, once the load is over.
    after: i64,
    /// Bytes of WAL since the end of the base backup.
    wal: u64,
    /// The content of all tables.
    content: Content,
}

impl Run<'_> {
    pub(super) async fn pitr(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        let Some(load) = &self.plan.load else { return Err(Trouble::Way("it has no load".to_owned())) };
        subject.source.release().await?;
        let [files, archive] = ["base", "wal"].map(|name| directory.join(name));
        fs::create_dir_all(&archive).on("create", &archive)?;
        let made = self.back_up_with_wal((way, load), subject, &files, &archive).await;
        if self.is_stopped() {
            // The server is removed, with all of it.
            return Err(BackupError::Interrupted.into());
        }
        let cleared = clear(&subject.target).await;
        let (backup, point) = made?;
        cleared?;
        self.recovered(way, subject, (&files, &archive, backup), &point).await
    }

    /// Makes the base backup, and receives the WAL of the load, of which a part comes after the point.
    async fn back_up_with_wal(
        &self,
        (way, load): (&Way, &Load),
        subject: &Subject,
        files: &Path,
        archive: &Path,
    ) -> Result<(Measured, Point), Trouble> {
        let (target, programs) = (&subject.target, &self.plan.programs);
        incremental::vacuum(target).await?;
        transactions::prepare(load, target).await?;
        let mut witness = Witness::create(target).await?;
        let watch = self.watch(format!("the backup by {way}"), vec![&self.scratch.work], Some(STUCK));
        watch.check_room(&self.scratch.work, subject.facts.server_bytes + wal::room_for(load) + SMALL)?;
        let receiver = Receiver::start(programs, target, archive, self.watch_receiver(archive)).await?;
        let backup = watch.run(vec![base::back_up(way, programs, target, files)]).await?;

        let run = async |time, witness: &mut Witness| {
            transactions::run(load, time, target, || receiver.check(), Some(witness), self.stop)
                .await
                .map(drop)
        };
        let (_, begin) = wal::position(target).await?;
        run(load.time(), &mut witness).await?;
        witness.write().await?;
        let mut point = pause(target, &witness).await?;
        point.wal = wal::position(target).await?.1.saturating_sub(begin);
        let more = (load.time().as_secs_f64() * AFTER).clamp(LEAST, MOST);
        run(Duration::from_secs_f64(more), &mut witness).await?;
        witness.write().await?;
        point.after = witness.committed - point.before;
        witness.session.close().await;
        receiver.complete(target).await?;
        Ok((backup, point))
    }

    /// Restores the base backup, replays WAL up to the point, and compares.
    async fn recovered(
        &self,
        way: &Way,
        subject: &Subject,
        (files, archive, backup): (&Path, &Path, Measured),
        point: &Point,
    ) -> Result<Restored, Trouble> {
        let (programs, facts) = (&self.plan.programs, &subject.facts);
        let (base_size, wal_size) = (size(files), size(archive));
        let place = self.scratch.base.place_for_restored()?;
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &place], None);
        watch.check_room(&place, facts.server_bytes + wal_size + SMALL)?;
        base::prepare(&place).on("create", &place)?;
        let mut restore = Measured::default();
        for commands in base::unpack(way, files, &place) {
            restore.add(watch.run(commands).await.map_err(of_restore)?);
        }
        watch.run(vec![base::verify(programs, facts.major, files, &place)]).await?;
        fs::rename(archive, place.join(ARCHIVE)).on("move", archive)?;

        let began = Instant::now();
        let running = match self.scratch.start_recovery(&settings(&point.time)).await {
            Ok(running) => running,
            Err(error) => {
                self.scratch.end_base(None).await?;
                return Err(Trouble::Way(format!("its recovery failed: {error}")));
            }
        };
        let at = running.connection();
        let role = facts.superuser.as_deref().unwrap_or(at.user);
        let target = Target::embedded(&at.socket_dir, at.port, role, &facts.database);
        let data = running.data_dir();
        let watch = Watch { directories: vec![&self.scratch.work, &data], ..watch };
        let ended = self.wait_until_recovered(&watch, &target, &running).await;
        restore.seconds += began.elapsed().as_secs_f64();
        restore.peak = restore.peak.max(size(&self.scratch.work) + size(&data));
        let compared = match ended {
            Ok(replay) => compare(&target, point).await.map(|verified| (verified, replay)),
            Err(trouble) => Err(trouble),
        };
        let stopped = self.scratch.end_base(Some(running)).await;
        // A server that has ended by itself is not deleted yet.
        self.scratch.end_base(None).await?;
        let (verified, replay) = compared?;
        stopped?;
        let [before, after] = [point.before, point.after].map(|rows| u64::try_from(rows).unwrap_or_default());
        let recovery = Recovery {
            base_size,
            wal_size,
            files: (restore.seconds - replay).max(0.0),
            replay,
            replayed: point.wal,
            target: point.time.clone(),
            before,
            after,
        };
        let size = base_size + wal_size;
        let recovery = Some(recovery);
        Ok(Restored { backup, restore, size, verified, increment: None, recovery, beside: None })
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

/// Removes slot and witness. The server would keep its WAL for the slot.
async fn clear(target: &Target) -> Result<(), Trouble> {
    drop_slot(target).await?;
    let session = Session::open(target).await?;
    session.run("DROP SCHEMA IF EXISTS pgrig_pitr CASCADE").await?;
    session.close().await;
    Ok(())
}

/// Reads the time and the content of the database, in which nothing runs, and waits until the server's clock has passed that time.
async fn pause(target: &Target, witness: &Witness) -> Result<Point, Trouble> {
    let session = Session::open(target).await?;
    let time: String = session.row(include_str!("../sql/now.sql"), &[]).await?.get("time");
    // Without its locks, which the rest of the load could need.
    let content = Source::read(target).await?.into_content().await;
    let began = Instant::now();
    let query = include_str!("../sql/passed.sql");
    loop {
        let row = session.row(query, &[&time]).await?;
        if !row.get::<_, bool>("is_after_witness") || began.elapsed() > PASSES {
            return Err(Trouble::Way(
                "the server's clock was set back during the load, so no point in time can be named"
                    .to_owned(),
            ));
        }
        if row.get("has_passed") {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    session.close().await;
    Ok(Point { time, before: witness.committed, after: 0, wal: 0, content })
}

/// Settings of the server that recovers. They come last, so that the user's do not replace them.
fn settings(time: &str) -> Vec<(String, String)> {
    let copy = format!("cp \"{ARCHIVE}/%f\" \"%p\"");
    [
        // Relative to the data directory.
        ("restore_command", copy.as_str()),
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

/// Compares the recovered database with the point: first the rows of the witness, which tell more of an error.
async fn compare(target: &Target, point: &Point) -> Result<Verified, Trouble> {
    let session = Session::open(target).await?;
    let query = "SELECT count(*) FILTER (WHERE id <= $1) AS before, count(*) FILTER (WHERE id > $1) AS after FROM pgrig_pitr.witness";
    let row = session.row(query, &[&point.before]).await;
    session.close().await;
    let row = row.map_err(|error| Trouble::Way(format!("the recovered database cannot be read: {error}")))?;
    let (before, after): (i64, i64) = (row.get("before"), row.get("after"));
    if let Some(why) = wrong_rows((before, after), point.before) {
        return Err(Trouble::Way(format!("recovered to {}: {why}", point.time)));
    }
    verify::verify(target, &point.content, crate::Witness::PointInTime, true).await
}

/// Describes rows of the witness that are missing, or that should not be there; none if all are right.
fn wrong_rows((before, after): (i64, i64), committed: i64) -> Option<String> {
    if before < committed {
        let missing = committed - before;
        let are = if missing == 1 { "is" } else { "are" };
        return Some(format!("{missing} of the {committed} rows committed before that time {are} missing"));
    }
    match after {
        ..1 => None,
        1 => Some("1 row committed after that time is present".to_owned()),
        _ => Some(format!("{after} rows committed after that time are present")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_on_the_wrong_side_of_the_target_are_counted() {
        assert_eq!(wrong_rows((7, 0), 7), None);
        assert_eq!(wrong_rows((5, 0), 7).unwrap(), "2 of the 7 rows committed before that time are missing");
        assert_eq!(wrong_rows((6, 0), 7).unwrap(), "1 of the 7 rows committed before that time is missing");
        assert_eq!(wrong_rows((7, 3), 7).unwrap(), "3 rows committed after that time are present");
    }
}
