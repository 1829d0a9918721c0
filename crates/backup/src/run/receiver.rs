//! `pg_receivewal` in the background: the WAL of a server of pgrig's own, through a replication slot.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use pgserver::Program;
use server::Session;

use super::relay::Relay;
use super::step::{LOOK, STUCK, Trouble, Watch, client, patience, used};
use crate::check::format::wal::is_segment;
use crate::error::{BackupError, OnPath};
use crate::programs::Programs;

/// Time in which the program begins to receive, and in which its slot can be dropped.
const DEADLINE: Duration = Duration::from_mins(1);

/// A running `pg_receivewal`. It is killed when this value is dropped; [`drop_slot`] does the rest.
pub(super) struct Receiver<'a> {
    program: Program,
    directory: &'a Path,
    watch: Watch<'a>,
}

impl<'a> Receiver<'a> {
    /// Creates the slot, and begins to receive into an empty directory; through the relay, if there is one. Returns once the server sends.
    pub(super) async fn start(
        (programs, target): (&Programs, &Target),
        directory: &'a Path,
        watch: Watch<'a>,
        relay: Option<&Relay>,
    ) -> Result<Self, Trouble> {
        drop_slot(target).await?;
        let session = Session::open(target).await?;
        session.run(include_str!("../sql/slot.sql")).await?;
        let mut command = client(&programs.program("pg_receivewal"), target);
        command.arg("--directory").arg(directory).args(["--slot=pgrig", "--no-loop"]);
        command.arg(patience(target));
        command.envs(relay.map(Relay::variables).unwrap_or_default());
        let mut started = watch.start(vec![command])?;
        let program = started.pop().expect("one was started");
        let receiver = Self { program, directory, watch };
        let began = Instant::now();
        while !is_active(&session).await? {
            receiver.check()?;
            if began.elapsed() > DEADLINE {
                return Err(Trouble::Way(format!(
                    "pg_receivewal has not begun after {} s: {}",
                    DEADLINE.as_secs(),
                    receiver.watch.said()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
        session.close().await;
        Ok(receiver)
    }

    /// Fails if it has ended, if the disk gets full, or if the user wants the run to end.
    pub(super) fn check(&self) -> Result<(), Trouble> {
        if self.watch.stop.load(Ordering::Relaxed) {
            return Err(BackupError::Interrupted.into());
        }
        if self.program.has_ended() {
            return Err(Trouble::Way(format!("pg_receivewal has ended: {}", self.watch.said())));
        }
        self.watch.full().map_or(Ok(()), |full| Err(full.into()))
    }

    /// Ends the segment that is being written, waits until it is received, and ends the program. Returns the segment's name.
    pub(super) async fn complete(self, target: &Target) -> Result<String, Trouble> {
        let session = Session::open(target).await?;
        let last = switch(&session).await?;
        session.close().await;
        let path = self.directory.join(&last);
        let (mut before, mut since) = (used(self.directory), Instant::now());
        // It gets this name once it is whole and on disk.
        while !path.exists() {
            self.check()?;
            let now = used(self.directory);
            if now != before {
                (before, since) = (now, Instant::now());
            }
            if since.elapsed() > STUCK {
                return Err(Trouble::Way(format!(
                    "pg_receivewal has received nothing for {} s: {}",
                    STUCK.as_secs(),
                    self.watch.said()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
        self.program.terminate();
        while !self.program.has_ended() {
            if self.watch.stop.load(Ordering::Relaxed) {
                return Err(BackupError::Interrupted.into());
            }
            tokio::time::sleep(LOOK).await;
        }
        drop_slot(target).await?;
        // The beginning of a segment after the last one is no part of the archive.
        for file in files(self.directory)? {
            if !is_segment(&name(&file)) {
                fs::remove_file(&file).on("delete", &file)?;
            }
        }
        Ok(last)
    }
}

/// Ends the segment that is being written, which has at least one record. Returns its name.
pub(super) async fn switch(session: &Session) -> Result<String, ConnectError> {
    // Without a record since the last switch, there is nothing to end.
    emit(session).await?;
    Ok(session.row("SELECT pg_walfile_name(pg_switch_wal()) AS name", &[]).await?.get("name"))
}

/// Writes a small record of WAL.
pub(super) async fn emit(session: &Session) -> Result<(), ConnectError> {
    session.run("SELECT pg_logical_emit_message(false, 'pgrig', '')").await
}

async fn is_active(session: &Session) -> Result<bool, ConnectError> {
    let query = "SELECT coalesce(bool_or(active), false) AS active FROM pg_replication_slots WHERE slot_name = 'pgrig'";
    Ok(session.row(query, &[]).await?.get("active"))
}

/// Drops the slot, if there is one, so that the server keeps no more WAL for it. Ends the session that still uses it.
pub(super) async fn drop_slot(target: &Target) -> Result<(), Trouble> {
    let session = Session::open(target).await?;
    let began = Instant::now();
    let query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'pgrig'";
    while let Some(slot) = session.rows(query, &[]).await?.first() {
        match slot.get::<_, Option<i32>>("active_pid") {
            Some(pid) => session.run(&format!("SELECT pg_terminate_backend({pid})")).await?,
            None => session.run("SELECT pg_drop_replication_slot('pgrig')").await?,
        }
        if began.elapsed() > DEADLINE {
            return Err(Trouble::Way("its replication slot cannot be dropped".to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
    session.close().await;
    Ok(())
}

/// The files of a directory, by name.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let entries = fs::read_dir(directory).on("read", directory)?;
    let files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut files = files.on("read", directory)?;
    files.sort();
    Ok(files)
}

/// The name of a file.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
