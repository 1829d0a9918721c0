//! Recovery to a point in time by another tool: its backup, a command that stores the WAL of a load, and a restore to the target time.

use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use connect::Target;
use server::Session;

use super::point::{Point, clear, prepare};
use super::receiver::{drop_slot, switch};
use super::step::{Group, Measured, STUCK, Trouble, Watch};
use super::tool::Commands;
use super::{Restored, Run, SMALL, Subject, wal};
use crate::error::{BackupError, OnPath};
use crate::load::Load;
use crate::outcome::Recovery;
use crate::way::Way;

/// The restored server finds all WAL in `pg_wal`. PostgreSQL demands a command nevertheless: this one finds nothing.
const NOTHING: &str = "false";

/// The command that stores WAL, in the background. It is killed when this value is dropped.
struct Archiver<'a> {
    group: Group,
    /// Its standard input. The command reads it to the end, which comes after the load.
    input: PipeWriter,
    watch: Watch<'a>,
}

impl<'a> Archiver<'a> {
    fn start(command: Command, watch: Watch<'a>) -> Result<Self, Trouble> {
        let (reader, input) = io::pipe().on("run", Path::new("sh"))?;
        let group = watch.start_group(command, Stdio::from(reader))?;
        Ok(Self { group, input, watch })
    }

    /// Fails if it has ended, if the disk gets full, or if the user wants the run to end.
    fn check(&self) -> Result<(), Trouble> {
        if self.watch.stop.load(Ordering::Relaxed) {
            return Err(BackupError::Interrupted.into());
        }
        if self.group.has_ended() {
            let said = self.watch.said();
            return Err(Trouble::Way(format!("its WAL command ended before the end of the load: {said}")));
        }
        self.watch.full().map_or(Ok(()), |full| Err(full.into()))
    }

    /// Ends the segment that is being written, and waits until the command has stored it.
    async fn complete(self, target: &Target) -> Result<(), Trouble> {
        self.check()?;
        let session = Session::open(target).await?;
        switch(&session).await?;
        session.close().await;
        drop(self.input);
        let ended = self.watch.finish_group(self.group).await;
        ended.map(drop).map_err(|trouble| match trouble {
            Trouble::Way(why) => Trouble::Way(format!("its WAL command failed: {why}")),
            run @ Trouble::Run(_) => run,
        })
    }
}

/// A backup with the WAL of a load.
pub(super) struct Made {
    backup: Measured,
    base_size: u64,
    /// Bytes of the backup with the WAL. The tool may have deleted files meanwhile.
    pub(super) size: u64,
    point: Point,
}

impl Run<'_> {
    pub(super) async fn tool_to_point(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        let commands = Commands::prepare(self, way, subject, directory, None)?;
        let restored = match self.tool_stored(way, subject, &commands).await {
            Ok(made) => self.tool_restored(way, subject, &commands, made).await,
            Err(trouble) => Err(trouble),
        };
        commands.clean()?;
        restored.map_err(|trouble| commands.hidden(trouble))
    }

    /// The backup and the WAL of the load, after which the database has neither slot nor witness.
    pub(super) async fn tool_stored(
        &self,
        way: &Way,
        subject: &Subject,
        commands: &Commands<'_>,
    ) -> Result<Made, Trouble> {
        let Some(load) = &self.plan.load else { return Err(Trouble::Way("it has no load".to_owned())) };
        subject.source.release().await?;
        let made = self.tool_with_wal((way, load), subject, commands).await;
        if self.is_stopped() {
            // The server is removed, with all of it.
            return Err(BackupError::Interrupted.into());
        }
        let cleared = clear(&subject.target).await;
        let made = made?;
        cleared?;
        Ok(made)
    }

    /// Backs up, and stores the WAL of the load, of which a part comes after the point. A slot keeps the WAL in `pg_wal` meanwhile.
    async fn tool_with_wal(
        &self,
        (way, load): (&Way, &Load),
        subject: &Subject,
        commands: &Commands<'_>,
    ) -> Result<Made, Trouble> {
        let target = &subject.target;
        let prepared = prepare(load, target).await?;
        keep_wal(target).await?;
        let watch = self.watch_backup(way, subject);
        let needs = subject.server_bytes(prepared.data) + 2 * wal::room_for(load) + SMALL;
        watch.check_room(&self.scratch.work, needs)?;
        self.check_room_for_load(load, subject)?;
        let backup = watch.run_group(commands.back_up()).await?;
        let base_size = commands.size()?;
        let Some(command) = commands.store_wal() else {
            return Err(Trouble::Way("it has no WAL command".to_owned()));
        };
        let log = self.scratch.work.join("messages of the WAL command");
        let directories = subject.with_data(&self.scratch.work);
        let watch = Watch { log, ..self.watch("the load".to_owned(), directories, Some(STUCK)) };
        let archiver = Archiver::start(command, watch)?;
        let point = self.load_around_point(load, target, prepared, &|| archiver.check()).await?;
        archiver.complete(target).await?;
        let size = commands.size()?;
        Ok(Made { backup, base_size, size, point })
    }

    /// Restores to the point, and compares.
    async fn tool_restored(
        &self,
        way: &Way,
        subject: &Subject,
        commands: &Commands<'_>,
        made: Made,
    ) -> Result<Restored, Trouble> {
        let Made { backup, base_size, size, point } = made;
        let wal_size = size.saturating_sub(base_size);
        let needs = subject.server_bytes(point.data) + point.wal + wal_size;
        let time = Some(point.time.as_str());
        let mut restore = self.restored_by(way, commands, (time, needs)).await?;
        let watch = self.watch(format!("the restore of {way}"), Vec::new(), None);
        let (verified, replay) =
            self.recovered_to(&point, (way, subject), NOTHING, watch, &mut restore).await?;
        let recovery = Recovery::of((base_size, wal_size), (restore.seconds, replay), &point);
        let recovery = Some(recovery);
        Ok(Restored { backup, restore, size, verified, increment: None, recovery, beside: None })
    }
}

/// Creates a slot, for which the server keeps its WAL from now on.
async fn keep_wal(target: &Target) -> Result<(), Trouble> {
    drop_slot(target).await?;
    let session = Session::open(target).await?;
    session.run(include_str!("../sql/slot.sql")).await?;
    session.close().await;
    Ok(())
}
