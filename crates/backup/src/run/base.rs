//! Base backups: pg_basebackup, unpacking, pg_verifybackup.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use connect::Target;
use pgserver::{Program, Running};

use super::probe::beside;
use super::scratch::undisturbed;
use super::sequences::{self, Sequence};
use super::source::{Facts, Source};
use super::{Restored, Run, SMALL, Subject, of_restore, tablespaces};
use crate::error::{BackupError, OnPath};
use crate::programs::Programs;
use crate::run::dump::unpacker;
use crate::run::step::{LOOK, Measured, Trouble, client, patience};
use crate::verified::{Verified, Witness};
use crate::way::{CompressedBy, Compression, Format, Method, Way};

/// Time in which a server answers a replication connection.
const ANSWER: Duration = Duration::from_secs(20);
const NO_ANSWER: &str = "no answer";

impl Run<'_> {
    pub(super) async fn base(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        let programs = &self.plan.programs;
        let Subject { target: original, facts, source, .. } = subject;
        let watch = self.watch_backup(way, subject);
        watch.check_room(&self.scratch.work, facts.server_bytes + SMALL)?;
        let work = watch.run(vec![back_up(way, programs, subject, directory)]);
        let (backup, beside) = match beside(self.prober.as_ref(), original, source, work).await {
            Ok(made) => made,
            Err(trouble) => return Err(subject.of_backup(way, trouble).await),
        };
        tablespaces::refuse_new(subject).await?;
        let is_unchanged = source.is_unchanged(original).await?;
        let witness = if is_unchanged { Witness::Unchanged } else { Witness::Changed };
        let later = sequences::later(original).await?;
        let size = tablespaces::size_with(directory);

        let place = self.scratch.base.place_for_restored()?;
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &place], None);
        watch.check_room(&place, facts.server_bytes + SMALL)?;
        prepare(&place).on("create", &place)?;
        tablespaces::prepare(&facts.tablespaces, &place)?;
        let mut restore = Measured::default();
        let of_tablespaces = tablespaces::unpack(way, &facts.tablespaces, directory, &place);
        for commands in unpack(way, directory, &place).into_iter().chain(of_tablespaces) {
            restore.add(watch.run(commands).await.map_err(of_restore)?);
        }
        tablespaces::link(&facts.tablespaces, &place)?;
        watch.run(vec![verify(programs, facts.major, directory, &place)]).await?;
        tablespaces::forget_places(&place)?;
        let verified = self.start_and_verify((way, facts), (source, &later), witness, &mut restore).await?;
        Ok(Restored { backup, restore, size, verified, increment: None, recovery: None, beside })
    }

    /// Starts a server on the restored files, which is part of the restore.
    pub(super) async fn start_restored(
        &self,
        facts: &Facts,
        restore: &mut Measured,
    ) -> Result<(Running, Target), Trouble> {
        let began = Instant::now();
        let started = self.scratch.start_base().await;
        restore.seconds += began.elapsed().as_secs_f64();
        let running = match started {
            Ok(running) => running,
            Err(error) => {
                self.scratch.end_base(None).await?;
                return Err(Trouble::Way(format!("its restore failed: {}", error.of_restored())));
            }
        };
        restore.add_server(running.server_pid());
        let at = running.connection();
        let role = facts.superuser.as_deref().unwrap_or(at.user);
        let target = undisturbed(Target::embedded(&at.socket_dir, at.port, role, &facts.database));
        Ok((running, target))
    }

    /// Starts a server on the unpacked base backup, which is part of the restore, compares its content, and reads its other databases.
    pub(super) async fn start_and_verify(
        &self,
        (way, facts): (&Way, &Facts),
        (source, later): (&Source, &[Sequence]),
        witness: Witness,
        restore: &mut Measured,
    ) -> Result<Verified, Trouble> {
        let (running, target) = self.start_restored(facts, restore).await?;
        let verified = match super::verify::verify(&target, (&source.content, later), witness, true).await {
            Ok(verified) => Box::pin(self.with_others(way, &target, verified)).await,
            Err(trouble) => Err(self.of_reading(trouble)),
        };
        self.end_restored(running, verified).await
    }

    /// Stops the server and deletes its data. After a failure, it may have ended by itself.
    pub(super) async fn end_restored(
        &self,
        running: Running,
        verified: Result<Verified, Trouble>,
    ) -> Result<Verified, Trouble> {
        let stopped = self.scratch.end_base(Some(running)).await;
        if verified.is_err() && stopped.is_err() {
            self.scratch.end_base(None).await?;
            return verified;
        }
        stopped?;
        verified
    }
}

/// The command that backs up the whole server. It asks for a fast checkpoint, so that it does not wait for the next one.
pub(super) fn back_up(way: &Way, programs: &Programs, subject: &Subject, directory: &Path) -> Command {
    let Subject { target, facts, .. } = subject;
    let mut command = client(&programs.program("pg_basebackup"), target);
    command.arg("--pgdata").arg(directory).args(["--checkpoint=fast", "--wal-method=stream"]);
    command.arg(format!("--format={}", if way.format == Format::BaseTar { "tar" } else { "plain" }));
    command.args(compression(way.compression, programs.major));
    command.args(tablespaces::of_backup(way, &facts.tablespaces, directory));
    command.arg(patience(target));
    command
}

/// Why the server refuses a replication connection, which pg_basebackup needs; none if it accepts one. Only pg_hba.conf decides that, so it
/// has to be tried.
pub(super) async fn refused_replication(
    programs: &Programs,
    target: &Target,
) -> Result<Option<String>, BackupError> {
    let program = programs.program("psql");
    let mut command = client(&program, target);
    command.args(["--no-psqlrc", "--quiet", "--command=IDENTIFY_SYSTEM"]);
    command.arg(format!("{} replication=true", patience(target)));
    let (mut messages, stderr) = io::pipe().on("run", &program)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    // It is killed with this value: a server that does not answer would keep it for ever.
    let running = Program::start(command).on("run", &program)?;
    let began = Instant::now();
    while !running.has_ended() {
        if began.elapsed() > ANSWER {
            return Ok(Some(NO_ANSWER.to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
    if running.wait().on("run", &program)?.status.success() {
        return Ok(None);
    }
    let mut said = Vec::new();
    messages.read_to_end(&mut said).on("run", &program)?;
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().next().unwrap_or(NO_ANSWER);
    let why = line.rsplit_once("FATAL:  ").map_or(line, |(_, why)| why);
    Ok(Some(why.trim().to_owned()))
}

/// pg_basebackup's options: until version 14 only levels of gzip.
fn compression(Compression { method, level, place }: Compression, major: u16) -> Vec<String> {
    match (method, level) {
        (Method::None, _) => Vec::new(),
        (_, level) if major < 15 => {
            vec![level.map_or("--gzip".to_owned(), |level| format!("--compress={level}"))]
        }
        (method, level) => {
            let place = if place == CompressedBy::Server { "server" } else { "client" };
            let level = level.map_or(String::new(), |level| format!(":{level}"));
            vec![format!("--compress={place}-{}{level}", method.name())]
        }
    }
}

/// The commands that unpack the backup into the place; each inner list is joined by pipes.
pub(crate) fn unpack(way: &Way, directory: &Path, place: &Path) -> Vec<Vec<Command>> {
    if way.format != Format::BaseTar {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(directory.join(".")).arg(place);
        return vec![vec![copy]];
    }
    let archives = [("base", place.to_owned()), ("pg_wal", place.join("pg_wal"))];
    archives.into_iter().filter_map(|(name, place)| unpack_tar(directory, name, &place)).collect()
}

/// WAL may be compressed in another way than the data, or not at all.
pub(super) fn unpack_tar(directory: &Path, name: &str, place: &Path) -> Option<Vec<Command>> {
    let (method, file) = [Method::None, Method::Gzip, Method::Lz4, Method::Zstd]
        .map(|method| (method, directory.join(format!("{name}.tar{}", method.suffix()))))
        .into_iter()
        .find(|(_, file)| file.is_file())?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", "--directory"]).arg(place).arg("--file");
    Some(match unpacker(method) {
        None => {
            tar.arg(file);
            vec![tar]
        }
        Some(mut unpack) => {
            unpack.arg(file);
            tar.arg("-");
            vec![unpack, tar]
        }
    })
}

/// The command that checks unpacked files against the backup's manifest. WAL can only be parsed by programs of the server's own version.
pub(super) fn verify(programs: &Programs, server: u16, directory: &Path, place: &Path) -> Command {
    let mut command = Command::new(programs.program("pg_verifybackup"));
    let manifest: PathBuf = directory.join("backup_manifest");
    // The manifest has the files of tablespaces by the paths of the links to them.
    command.arg(format!("--ignore={}", tablespaces::OWN));
    command.arg("--quiet").arg("--manifest-path").arg(manifest).arg(place).env("LC_ALL", "C");
    if programs.major != server {
        command.arg("--no-parse-wal");
    }
    command
}

/// The directory for WAL must be there before its archive is unpacked.
pub(crate) fn prepare(place: &Path) -> std::io::Result<()> {
    fs::create_dir_all(place.join("pg_wal"))
}
