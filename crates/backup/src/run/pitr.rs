//! Recovery to a point in time: a base backup, the WAL of a load, and its replay up to a time between two transactions.

use std::fs;
use std::path::{Path, PathBuf};

use super::point::{Point, clear, prepare};
use super::receiver::Receiver;
use super::relay::Relay;
use super::step::{Measured, Trouble, size};
use super::{Restored, Run, SMALL, Subject, base, move_files, of_restore, wal};
use crate::error::{BackupError, OnPath};
use crate::load::Load;
use crate::outcome::Recovery;
use crate::programs::Programs;
use crate::way::Way;

/// The archive of WAL, below the data directory of the restored server: its account can read it there.
const ARCHIVE: &str = "pgrig_archive";

/// Why a recovery needs a load, with the remedy.
const NO_LOAD: &str = "this way replays the WAL of a load. pgrig runs loads only on databases that it fills itself: give a size and a \
    load, for example --size 5TB --load FILE -R 500";

/// Why no WAL can be replayed, with the remedy.
pub(super) fn no_load(load: Option<&Load>) -> Option<String> {
    load.is_none().then(|| NO_LOAD.to_owned())
}

/// Why no recovery to a point in time can be rehearsed, with the remedy.
pub(crate) fn hindrance(programs: &Programs, load: Option<&Load>) -> Option<String> {
    let missing = || {
        (!programs.has("pg_receivewal"))
            .then(|| format!("there is no pg_receivewal in {}: give --bin DIR", programs.dir.display()))
    };
    no_load(load).or_else(missing)
}

impl Recovery {
    /// Its parts: bytes of the base backup and of WAL, and seconds of the whole restore and of the replay.
    pub(super) fn of(
        (base_size, wal_size): (u64, u64),
        (restore, replay): (f64, f64),
        point: &Point,
    ) -> Self {
        let [before, after] = [point.before, point.after].map(|rows| u64::try_from(rows).unwrap_or_default());
        Self {
            base_size,
            wal_size,
            files: (restore - replay).max(0.0),
            replay,
            replayed: point.wal,
            written: point.written,
            data: point.data,
            target: point.time.clone(),
            before,
            after,
        }
    }
}

impl Run<'_> {
    pub(super) async fn pitr(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        let [files, archive] = parts(directory)?;
        let (backup, point) = self.backed_up_with_wal(way, subject, (&files, &archive), None).await?;
        self.recovered(way, subject, (&files, &archive, backup), &point).await
    }

    /// Makes the base backup, and receives the WAL of one more load, both through the relay.
    pub(super) async fn back_up_with_wal_through(
        &self,
        relay: &Relay,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<(), Trouble> {
        let [files, archive] = parts(directory)?;
        self.backed_up_with_wal(way, subject, (&files, &archive), Some(relay)).await.map(drop)
    }

    /// The base backup and the WAL of the load, after which the database has neither slot nor witness; through the relay, if there is one.
    async fn backed_up_with_wal(
        &self,
        way: &Way,
        subject: &Subject,
        places: (&Path, &Path),
        relay: Option<&Relay>,
    ) -> Result<(Measured, Point), Trouble> {
        let Some(load) = &self.plan.load else { return Err(Trouble::Way("it has no load".to_owned())) };
        subject.source.release().await?;
        let made = self.back_up_with_wal((way, load), subject, places, relay).await;
        if self.is_stopped() {
            // The server is removed, with all of it.
            return Err(BackupError::Interrupted.into());
        }
        let cleared = clear(&subject.target).await;
        let made = made?;
        cleared?;
        Ok(made)
    }

    /// Makes the base backup, and receives the WAL of the load, of which a part comes after the point.
    async fn back_up_with_wal(
        &self,
        (way, load): (&Way, &Load),
        subject: &Subject,
        (files, archive): (&Path, &Path),
        relay: Option<&Relay>,
    ) -> Result<(Measured, Point), Trouble> {
        let (target, programs) = (&subject.target, &self.plan.programs);
        let prepared = prepare(load, target).await?;
        let watch = self.watch_backup(way, subject);
        let needs = subject.server_bytes(prepared.data) + wal::room_for(load) + SMALL;
        watch.check_room(&self.scratch.work, needs)?;
        self.check_room_for_load(load, subject)?;
        let watch_receiver = self.watch_receiver(archive, subject);
        let receiver = Receiver::start((programs, target), archive, watch_receiver, relay).await?;
        let mut command = base::back_up(way, programs, subject, files);
        command.envs(relay.map(Relay::variables).unwrap_or_default());
        let backup = watch.run(vec![command]).await?;
        let point = self.load_around_point(load, target, prepared, &|| receiver.check()).await?;
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
        watch.check_room(&place, subject.server_bytes(point.data) + wal_size + SMALL)?;
        base::prepare(&place).on("create", &place)?;
        let mut restore = Measured::default();
        for commands in base::unpack(way, files, &place) {
            restore.add(watch.run(commands).await.map_err(of_restore)?);
        }
        watch.run(vec![base::verify(programs, facts.major, files, &place)]).await?;
        move_files(archive, &place.join(ARCHIVE))?;
        // Relative to the data directory.
        let copy = format!("cp \"{ARCHIVE}/%f\" \"%p\"");
        let watch = self.watch(format!("the restore of {way}"), Vec::new(), None);
        let (verified, replay) = self.recovered_to(point, (way, subject), &copy, watch, &mut restore).await?;
        let recovery = Some(Recovery::of((base_size, wal_size), (restore.seconds, replay), point));
        let size = base_size + wal_size;
        Ok(Restored { backup, restore, size, verified, increment: None, recovery, beside: None })
    }
}

/// Creates the directory, and returns those of the base backup, which is not there yet, and of its WAL.
fn parts(directory: &Path) -> Result<[PathBuf; 2], BackupError> {
    let parts = ["base", "wal"].map(|name| directory.join(name));
    fs::create_dir_all(&parts[1]).on("create", &parts[1])?;
    Ok(parts)
}
