//! Dumps: pg_dump, and pg_restore or psql.

use std::path::Path;
use std::process::Command;

use connect::Target;

use super::probe::beside;
use super::scratch::RESTORED;
use super::step::{Trouble, Watch, client, patience, size, used};
use super::{Restored, Run, SMALL, Subject, WAL, of_restore, sequences, sized, verify, wal};
use crate::programs::Programs;
use crate::verified::Witness;
use crate::way::{Compression, Format, Method, Way};

/// Level of gzip where none is given, as of zlib.
const GZIP_LEVEL: u8 = 6;
/// Time that pg_dump waits for the lock of a table that somebody else has locked.
const LOCK_TIMEOUT: &str = "60s";

impl Run<'_> {
    /// A trial of a dump.
    pub(super) async fn dump(&self, way: &Way, subject: &Subject, file: &Path) -> Result<Restored, Trouble> {
        let programs = &self.plan.programs;
        let Subject { target, facts, source, .. } = subject;
        let watch = self.watch_backup(way, subject);
        watch.check_room(&self.scratch.work, facts.bytes + SMALL)?;
        let command = back_up(way, programs, target, &source.snapshot, file);
        let work = watch.run(vec![command]);
        let (backup, beside) = match beside(self.prober.as_ref(), target, source, work).await {
            Ok(made) => made,
            Err(trouble) => return Err(subject.of_backup(way, trouble).await),
        };
        let later = sequences::later(target).await?;
        let size = size(file);

        self.scratch.drop_database().await?;
        if !self.scratch.create_database(facts).await? {
            self.has_other_locale.set(true);
        }
        let (restored, server) = (self.scratch.target(RESTORED), self.scratch.target("postgres"));
        // Without WAL: earlier restores have left files that this one writes to again.
        let data = self.scratch.data_dir().join("base");
        let (before, (_, begin)) = (used(&data), wal::position(&server).await?);
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &data], None);
        let watch = Watch { server: Some(self.scratch.server_pid()), ..watch };
        watch.check_room(&data, facts.bytes + facts.bytes / 5 + WAL.min(facts.bytes) + SMALL)?;
        let after_error = AfterError::of(programs, facts.major);
        let commands = restore(way, programs, &restored, file, after_error);
        let restore = match after_error {
            AfterError::Stop => watch.run(commands).await,
            AfterError::GoOn => watch.run_unless(commands, |error| error != LATER_SETTING).await,
        };
        let mut restore = match restore {
            Err(Trouble::Way(why)) => return Err(self.of_failed_restore(&why).await),
            restored => restored?,
        };
        let written = wal::position(&server).await?.1.saturating_sub(begin);
        let kept = written.min(sized::memory(&server).await?.max_wal_size);
        restore.peak = restore.peak.saturating_sub(before) + kept;
        let verified =
            verify::verify(&restored, (&source.content, &later), Witness::SameSnapshot, false).await?;
        self.scratch.drop_database().await?;
        Ok(Restored { backup, restore, size, verified, increment: None, recovery: None, beside })
    }

    /// The reason of a failed restore. If the scratch server has ended, it is started again: the next dump needs it.
    async fn of_failed_restore(&self, why: &str) -> Trouble {
        match self.scratch.revive().await {
            Ok(None) => of_restore(Trouble::Way(why.to_owned())),
            Ok(Some(end)) => {
                Trouble::Way(format!("its restore failed, because the scratch server ended: {end}"))
            }
            Err(error) => error.into(),
        }
    }
}

/// The command that dumps the snapshot.
pub(super) fn back_up(
    way: &Way,
    programs: &Programs,
    target: &Target,
    snapshot: &str,
    file: &Path,
) -> Command {
    let mut command = client(&programs.program("pg_dump"), target);
    command.arg(format!("--format={}", way.format.name())).arg("--file").arg(file);
    command.arg(format!("--snapshot={snapshot}")).arg(format!("--lock-wait-timeout={LOCK_TIMEOUT}"));
    command.arg(format!("--compress={}", compression(way.compression, programs.major)));
    // A database with a subscription cannot be dropped.
    command.arg("--no-subscriptions");
    if way.format == Format::Plain {
        command.arg("--no-tablespaces");
    }
    if way.format == Format::Directory {
        command.arg(format!("--jobs={}", way.jobs));
    }
    command.arg(patience(target));
    command
}

/// The value of pg_dump's --compress: until version 15 only a level.
fn compression(Compression { method, level, .. }: Compression, major: u16) -> String {
    match (method, level) {
        (Method::None, _) => "0".to_owned(),
        (Method::Gzip, level) if major < 16 => level.unwrap_or(GZIP_LEVEL).to_string(),
        (method, Some(level)) => format!("{}:{level}", method.name()),
        (method, None) => method.name().to_owned(),
    }
}

/// How a restore reacts to an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterError {
    Stop,
    /// It goes on: the server does not know [`LATER_SETTING`], which the programs set.
    GoOn,
}

/// The error of a server before version 17 at `SET transaction_timeout = 0`, which pg_dump and pg_restore write from version 17 on for every
/// server (pg_backup_archiver.c: `_doSetFixedOutputState`).
pub(crate) const LATER_SETTING: &str = "unrecognized configuration parameter \"transaction_timeout\"";
/// The first version with this setting.
const LATER: u16 = 17;

impl AfterError {
    pub(super) fn of(programs: &Programs, server: u16) -> Self {
        if programs.major >= LATER && server < LATER { Self::GoOn } else { Self::Stop }
    }
}

/// The commands, joined by pipes, that restore the file into an empty database.
pub(super) fn restore(
    way: &Way,
    programs: &Programs,
    target: &Target,
    file: &Path,
    after_error: AfterError,
) -> Vec<Command> {
    if way.format == Format::Plain {
        return restore_plain(way, programs, target, file, after_error);
    }
    let mut command = client(&programs.program("pg_restore"), target);
    command.arg("--no-tablespaces").arg(format!("--jobs={}", way.jobs));
    if after_error == AfterError::Stop {
        command.arg("--exit-on-error");
    }
    command.arg(format!("--dbname={}", target.dbname())).arg(file);
    vec![command]
}

fn restore_plain(
    way: &Way,
    programs: &Programs,
    target: &Target,
    file: &Path,
    after_error: AfterError,
) -> Vec<Command> {
    let mut psql = client(&programs.program("psql"), target);
    psql.args(["--no-psqlrc", "--quiet"]);
    if after_error == AfterError::Stop {
        psql.arg("--set=ON_ERROR_STOP=1");
    }
    match unpacker(way.compression.method) {
        None => {
            psql.arg("--file").arg(file);
            vec![psql]
        }
        Some(mut unpack) => {
            unpack.arg(file);
            psql.arg("--file=-");
            vec![unpack, psql]
        }
    }
}

/// The program that decompresses a file to its standard output.
pub(crate) fn unpacker(method: Method) -> Option<Command> {
    let program = match method {
        Method::None => return None,
        Method::Gzip => "gzip",
        Method::Lz4 => "lz4",
        Method::Zstd => "zstd",
    };
    let mut command = Command::new(program);
    command.args(["-d", "-c", "-q"]);
    Some(command)
}
