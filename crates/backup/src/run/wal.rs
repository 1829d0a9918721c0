//! The WAL that a load writes: how much, and how well it is compressed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use connect::{ConnectError, Target};
use measure::human::bytes;
use server::Session;

use super::receiver::{Receiver, drop_slot, emit, files, name, switch};
use super::step::{STUCK, Trouble, Watch, size};
use super::{Run, SMALL, Subject, WAL, bytes_of_tables, remove, transactions};
use crate::check::format::wal::is_segment;
use crate::error::{BackupError, OnPath};
use crate::load::{Compressed, Load, WalOfLoad};
use crate::programs::on_path;
use crate::way::Method;

/// Most segments that are compressed.
const SAMPLE: usize = 64;
/// Bytes of WAL of a transaction, at a guess; and the same in the server and received.
const OF_TRANSACTION: f64 = 20e3;

impl Run<'_> {
    /// Puts the load on a database, and measures the WAL that is received meanwhile.
    pub(super) async fn measure_wal(&self, load: &Load, subject: &Subject) -> Result<WalOfLoad, Trouble> {
        let directory = self.scratch.work.join("wal");
        let measured = self.receive_wal(load, subject, &directory).await;
        if self.is_stopped() {
            // The server is removed, with all of it.
            return Err(BackupError::Interrupted.into());
        }
        let dropped = drop_slot(&subject.target).await;
        remove(&directory)?;
        let measured = measured?;
        dropped?;
        Ok(measured)
    }

    async fn receive_wal(
        &self,
        load: &Load,
        subject: &Subject,
        directory: &Path,
    ) -> Result<WalOfLoad, Trouble> {
        let target = &subject.target;
        subject.source.release().await?;
        fs::create_dir_all(directory).on("create", directory)?;
        self.check_room_for_load(load, subject)?;
        transactions::prepare(load, target).await?;
        let data = bytes_of_tables(target).await?;
        let watch = self.watch_receiver(directory, subject);
        let receiver = Receiver::start((&self.plan.programs, target), directory, watch, None).await?;
        let (first, before) = begin(target).await?;
        let outcome = transactions::run(
            &self.next_load(load),
            load.time(),
            target,
            || receiver.check(),
            None,
            self.stop,
        )
        .await?;
        let (end, after) = position(target).await?;
        let bytes = after.saturating_sub(before);
        let last = receiver.complete(target).await?;
        cut(&directory.join(end), after)?;
        let segments: Vec<PathBuf> = files(directory)?
            .into_iter()
            .filter(|file| (first.as_str()..=last.as_str()).contains(&name(file).as_str()))
            .filter(|file| is_segment(&name(file)))
            .take(SAMPLE)
            .collect();
        let sample = segments.iter().map(|file| size(file)).sum::<u64>().min(bytes);
        let compressed = self.compress(&segments).await?;
        let (seconds, counts) = (outcome.elapsed.as_secs_f64(), outcome.all.counts);
        Ok(WalOfLoad { data, seconds, transactions: counts.succeeded, bytes, sample, compressed })
    }

    /// The limits of a receiver.
    pub(super) fn watch_receiver<'a>(&'a self, directory: &'a Path, subject: &'a Subject) -> Watch<'a> {
        let log = self.scratch.work.join("messages of pg_receivewal");
        Watch { log, ..self.watch("the load".to_owned(), subject.with_data(directory), None) }
    }

    /// Refuses the load if there is no room for its WAL, in the server or where it is received.
    pub(super) fn check_room_for_load(&self, load: &Load, subject: &Subject) -> Result<(), BackupError> {
        let watch = self.watch("the load".to_owned(), Vec::new(), None);
        let directories = subject.with_data(&self.scratch.work);
        directories.into_iter().try_for_each(|place| watch.check_room(place, room_for(load) + SMALL))
    }

    /// Compresses the segments by each program that is installed.
    async fn compress(&self, segments: &[PathBuf]) -> Result<Vec<Compressed>, Trouble> {
        let mut all = Vec::new();
        for method in [Method::Gzip, Method::Lz4, Method::Zstd] {
            if !on_path(method.name()) {
                continue;
            }
            let watch = self.watch(
                format!("compressing WAL with {}", method.name()),
                vec![&self.scratch.work],
                Some(STUCK),
            );
            let needs: u64 = segments.iter().map(|segment| size(segment)).sum();
            watch.check_room(&self.scratch.work, needs + SMALL)?;
            let measured = watch.run(vec![compressor(method, segments)]).await?;
            let mut bytes = 0;
            for segment in segments {
                let mut file = segment.clone().into_os_string();
                file.push(method.suffix());
                let file = PathBuf::from(file);
                bytes += size(&file);
                remove(&file)?;
            }
            all.push(Compressed { method, bytes, seconds: measured.seconds });
        }
        Ok(all)
    }
}

/// Bytes of the disk that the WAL of a load may take, at a guess; the step is watched.
pub(super) fn room_for(load: &Load) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and limited")]
    let bytes = (load.rate() * load.time().as_secs_f64() * 2.0 * OF_TRANSACTION).min(WAL as f64) as u64;
    bytes
}

/// The command that writes a compressed file beside each file.
fn compressor(method: Method, files: &[PathBuf]) -> Command {
    let mut command = Command::new(method.name());
    command.args(["-q", "-k"]);
    if method == Method::Lz4 {
        command.arg("-m");
    }
    command.arg("--").args(files);
    command
}

/// Begins a new segment after a checkpoint, so that each measurement begins in the same state. Returns the segment's name, and the place
/// at which WAL is written next.
async fn begin(target: &Target) -> Result<(String, u64), BackupError> {
    let session = Session::open(target).await?;
    session.run("CHECKPOINT").await?;
    switch(&session).await?;
    emit(&session).await?;
    session.close().await;
    Ok(position(target).await?)
}

/// The segment to which WAL is written next, and the place.
pub(super) async fn position(target: &Target) -> Result<(String, u64), ConnectError> {
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/position.sql"), &[]).await?;
    session.close().await;
    Ok((row.get("segment"), u64::try_from(row.get::<_, i64>("position")).unwrap_or_default()))
}

/// Cuts off the rest of a received segment from this place in WAL on: it was ended early, and its zeros compress to almost nothing.
fn cut(segment: &Path, place: u64) -> Result<(), BackupError> {
    let length = size(segment);
    if length.is_power_of_two() && !place.is_multiple_of(length) {
        let file = File::options().write(true).open(segment).on("open", segment)?;
        file.set_len(place % length).on("cut", segment)?;
    }
    Ok(())
}

/// Tells if the load did not reach its rate, and the consequence.
pub(super) fn lag(load: &Load, tps: f64, meaning: &str) -> Option<String> {
    (tps < load.rate() * 0.95).then(|| {
        format!(
            "the load reached only {tps:.0} of {:.0} transactions a second {meaning}: give more clients (-c), or a lower rate (-R)",
            load.rate()
        )
    })
}

/// The limits of the measurement.
pub(super) fn notes(load: &Load, all: &[WalOfLoad], checkpoint_timeout: f64) -> Vec<String> {
    let slowest = all.iter().map(WalOfLoad::tps).min_by(f64::total_cmp);
    let lagged =
        slowest.and_then(|slowest| lag(load, slowest, "meanwhile, so its WAL is that of fewer transactions"));
    let mut notes: Vec<String> = lagged.into_iter().collect();
    if load.time().as_secs_f64() < checkpoint_timeout
        && let Some(one) = all.first()
    {
        notes.push(format!(
            "each load began with a checkpoint and ended before the next one (checkpoint_timeout is {checkpoint_timeout:.0} s), so most of the \
             measured WAL is whole pages. A day of this load writes less WAL than shown. WAL also depends on the size of the data ({} here). For a \
             better figure, give a longer -T and a larger --up-to",
            bytes(one.data)
        ));
    }
    notes
}
