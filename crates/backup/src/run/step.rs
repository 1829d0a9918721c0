//! A step: programs that are joined by pipes, run to their end, watched and measured.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use connect::Target;
use measure::human::counted;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use pgserver::{GroupGuard, Program};
use server::process::cpu_with_children;

use super::room::{self, Room, ServerSpace};
use crate::check::restore::messages;
use crate::error::{BackupError, OnPath};

/// Interval of checks whether a program has ended. The time of its end does not depend on it.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// Interval of readings of files and volumes.
const READ: Duration = Duration::from_millis(500);
/// Time without progress after which a backup counts as stuck.
pub(crate) const STUCK: Duration = Duration::from_mins(10);
/// Time that programs have to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(700);
/// Most bytes of a program's messages that an error shows.
const TAIL: usize = 600;
/// Most bytes that are read for it.
const MOST_READ: u64 = 1 << 16;

/// Exit status of pg_restore if it has ignored errors.
pub(crate) const IGNORED: Option<i32> = Some(1);

/// A step that was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Seconds until the last program ended.
    pub(crate) seconds: f64,
    /// CPU seconds of the programs and of the processes that they waited for.
    pub(crate) cpu: f64,
    /// CPU seconds of the server meanwhile; none if they were not measured.
    pub(crate) server_cpu: Option<f64>,
    /// Most bytes in the watched directories.
    pub(crate) peak: u64,
}

impl Measured {
    /// Adds a step that came after it.
    pub(crate) fn add(&mut self, next: Self) {
        self.seconds += next.seconds;
        self.cpu += next.cpu;
        self.add_server_cpu(next.server_cpu);
        self.peak = self.peak.max(next.peak);
    }

    /// Adds all CPU time of a server that was started in this step.
    pub(crate) fn add_server(&mut self, pid: u32) {
        self.add_server_cpu(cpu_with_children(pid));
    }

    fn add_server_cpu(&mut self, seconds: Option<f64>) {
        self.server_cpu =
            self.server_cpu.map_or(seconds, |before| Some(before + seconds.unwrap_or_default()));
    }
}

/// A running command of another tool. The processes of its group end with it, and with this process, even after kill -9.
pub(crate) struct Group {
    programs: Vec<Program>,
    guards: Vec<GroupGuard>,
    name: String,
    before: Before,
}

/// The clocks at the start of a step.
struct Before {
    began: Instant,
    /// CPU seconds of all children that had ended.
    cpu: f64,
    /// CPU seconds of the server, if they are measured.
    server: Option<f64>,
}

impl Group {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.programs.iter().all(Program::has_ended)
    }
}

/// A program that failed.
pub(crate) struct Failed {
    /// Its name, and how it ended.
    pub(crate) how: String,
    /// Its exit status, if no signal ended it.
    pub(crate) code: Option<i32>,
}

/// Why a step was not done.
pub(crate) enum Trouble {
    /// The way is at fault: it has no results.
    Way(String),
    /// The whole run ends.
    Run(BackupError),
}

impl Trouble {
    /// The reason in words.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Way(why) => why,
            Self::Run(error) => error.to_string(),
        }
    }
}

impl<E: Into<BackupError>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

/// A running step, and the limits that end it.
pub(crate) struct Watch<'a> {
    /// The name of the step, for errors.
    pub(crate) doing: String,
    /// Directories whose files grow; all are on the first one's volume or on the second one's.
    pub(crate) directories: Vec<&'a Path>,
    /// Messages of the programs.
    pub(crate) log: PathBuf,
    /// Whether the user wants the run to end.
    pub(crate) stop: &'a AtomicBool,
    /// Time without growth of files after which the step has failed; none if the server is pgrig's own.
    pub(crate) stuck: Option<Duration>,
    /// Process id of the server whose CPU time is measured, if that is measured.
    pub(crate) server: Option<u32>,
    /// The server that is backed up, if it may write to the same disks.
    pub(crate) space: Option<&'a ServerSpace>,
}

impl Watch<'_> {
    /// Refuses the step if it needs more space than there is.
    pub(crate) fn check_room(&self, directory: &Path, needs: u64) -> Result<(), BackupError> {
        room::check(&self.doing, directory, needs, self.space)
    }

    /// Runs the programs.
    pub(crate) async fn run(&self, commands: Vec<Command>) -> Result<Measured, Trouble> {
        match self.run_to_end(commands).await? {
            (_, Some(failed)) => Err(Trouble::Way(format!("{}: {}", failed.how, self.said()))),
            (measured, None) => Ok(measured),
        }
    }

    /// Runs psql or pg_restore, which go on after an error of the server. They fail at the first error that counts.
    pub(crate) async fn run_unless(
        &self,
        commands: Vec<Command>,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Measured, Trouble> {
        let (measured, failed) = self.run_to_end(commands).await?;
        let log = File::open(&self.log).on("read", &self.log)?;
        let (mut read, mut ignored) = (0, 0);
        for line in BufReader::new(log).split(b'\n') {
            let line = line.on("read", &self.log)?;
            let text = String::from_utf8_lossy(&line);
            ignored = messages::ignored(&text).unwrap_or(ignored);
            let Some(error) = messages::error(&text) else { continue };
            if counts(error) {
                return Err(Trouble::Way(error.to_owned()));
            }
            read += 1;
        }
        if read < ignored {
            let all = counted(ignored, "error");
            return Err(Trouble::Way(format!(
                "pg_restore ignored {all}, of which pgrig could read only {read}: {}",
                self.said()
            )));
        }
        match failed.filter(|failed| failed.code != IGNORED) {
            Some(failed) => Err(Trouble::Way(format!("{}: {}", failed.how, self.said()))),
            None => Ok(measured),
        }
    }

    /// Runs the programs, and returns the first one that failed, too.
    pub(crate) async fn run_to_end(
        &self,
        commands: Vec<Command>,
    ) -> Result<(Measured, Option<Failed>), Trouble> {
        let names: Vec<String> =
            commands.iter().map(|command| command.get_program().to_string_lossy().into_owned()).collect();
        let before = self.before();
        let programs = self.start(commands)?;
        self.finish(programs, names, before).await
    }

    /// Runs a command of another tool.
    pub(crate) async fn run_group(&self, command: Command) -> Result<Measured, Trouble> {
        self.finish_group(self.start_group(command, Stdio::null())?).await
    }

    /// Starts a command of another tool.
    pub(crate) fn start_group(&self, command: Command, input: Stdio) -> Result<Group, BackupError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let before = self.before();
        let programs = self.start_with(vec![command], input)?;
        let guards = programs.iter().map(GroupGuard::of).collect::<Result<Vec<_>, _>>();
        let guards = guards.on("run", Path::new(&name))?;
        Ok(Group { programs, guards, name, before })
    }

    /// Waits until the command of another tool has ended, and ends the processes that it has left.
    pub(crate) async fn finish_group(&self, group: Group) -> Result<Measured, Trouble> {
        let Group { programs, guards, name, before } = group;
        let ended = self.finish(programs, vec![name], before).await;
        drop(guards);
        match ended? {
            (_, Some(Failed { code: Some(code), .. })) => {
                Err(Trouble::Way(format!("it ended with exit status {code}: {}", self.said())))
            }
            (_, Some(failed)) => Err(Trouble::Way(format!("{}: {}", failed.how, self.said()))),
            (measured, None) => Ok(measured),
        }
    }

    async fn finish(
        &self,
        mut programs: Vec<Program>,
        names: Vec<String>,
        before: Before,
    ) -> Result<(Measured, Option<Failed>), Trouble> {
        let peak = self.watch(&mut programs).await?;
        let mut last = before.began;
        let mut failed = None;
        for (program, name) in programs.into_iter().zip(names) {
            let ended = program.wait().on("run", Path::new(&name))?;
            last = last.max(ended.at);
            if !ended.status.success() {
                let how = format!("{} ended with {}", base_name(&name), ended.status);
                failed.get_or_insert(Failed { how, code: ended.status.code() });
            }
        }
        let seconds = last.duration_since(before.began).as_secs_f64();
        let server_cpu = before.server.zip(self.server_cpu()).map(|(before, now)| (now - before).max(0.0));
        let peak = peak.max(self.used());
        Ok((Measured { seconds, cpu: (cpu() - before.cpu).max(0.0), server_cpu, peak }, failed))
    }

    /// Reads the CPU times first, because that takes a while.
    fn before(&self) -> Before {
        let (cpu, server) = (cpu(), self.server_cpu());
        Before { began: Instant::now(), cpu, server }
    }

    fn server_cpu(&self) -> Option<f64> {
        self.server.and_then(cpu_with_children)
    }

    /// Each program reads the output of the one before it.
    pub(crate) fn start(&self, commands: Vec<Command>) -> Result<Vec<Program>, BackupError> {
        self.start_with(commands, Stdio::null())
    }

    /// The same; the first one reads this input.
    fn start_with(&self, commands: Vec<Command>, input: Stdio) -> Result<Vec<Program>, BackupError> {
        let log = File::create(&self.log).on("create", &self.log)?;
        let mut programs: Vec<Program> = Vec::new();
        let last = commands.len() - 1;
        let mut first = Some(input);
        for (number, mut command) in commands.into_iter().enumerate() {
            let name = PathBuf::from(command.get_program());
            let piped = programs.last_mut().and_then(Program::take_stdout).map(Stdio::from);
            command.stdin(piped.or_else(|| first.take()).unwrap_or_else(Stdio::null));
            command.stdout(if number < last { Stdio::piped() } else { Stdio::null() });
            command.stderr(log.try_clone().on("open", &self.log)?);
            programs.push(Program::start(command).on("run", &name)?);
        }
        Ok(programs)
    }

    /// Waits until all have ended. Returns the most bytes that the directories held.
    async fn watch(&self, programs: &mut Vec<Program>) -> Result<u64, Trouble> {
        let (mut peak, mut read) = (0, Instant::now());
        let mut progress = (0, Instant::now());
        while !programs.iter().all(Program::has_ended) {
            if self.stop.load(Ordering::Relaxed) {
                end(programs).await;
                return Err(BackupError::Interrupted.into());
            }
            tokio::time::sleep(LOOK).await;
            if read.elapsed() < READ {
                continue;
            }
            read = Instant::now();
            let used = self.used();
            peak = peak.max(used);
            if used != progress.0 {
                progress = (used, Instant::now());
            }
            if let Some(stuck) = self.stuck.filter(|stuck| progress.1.elapsed() > *stuck) {
                end(programs).await;
                return Err(Trouble::Way(format!(
                    "its files have not grown for {} s: {}",
                    stuck.as_secs(),
                    self.said()
                )));
            }
            if let Some(full) = self.full() {
                end(programs).await;
                return Err(full.into());
            }
        }
        Ok(peak)
    }

    /// The error if one of the volumes gets full.
    pub(crate) fn full(&self) -> Option<BackupError> {
        self.directories.iter().find_map(|directory| {
            let room = Room::of(directory, self.space)?;
            let path = directory.display().to_string();
            let full = || BackupError::Full {
                step: self.doing.clone(),
                path,
                free: room.free,
                because: room.because(),
            };
            room.is_used_up().then(full)
        })
    }

    fn used(&self) -> u64 {
        self.directories.iter().map(|directory| used(directory)).sum()
    }

    /// The last messages of the programs, in one line.
    pub(crate) fn said(&self) -> String {
        said_in(&self.log)
    }
}

/// The last lines of a log.
pub(crate) fn said_in(log: &Path) -> String {
    let bytes = last_bytes(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut said = String::new();
    for line in lines.iter().rev() {
        if !said.is_empty() && said.len() + line.len() > TAIL {
            break;
        }
        said = if said.is_empty() { (*line).to_owned() } else { format!("{line}; {said}") };
    }
    if said.is_empty() { "it printed nothing".to_owned() } else { said }
}

/// A program that connects to this target, with English messages.
pub(crate) fn client(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    connected(&mut command, target, Target::is_of_libpq);
    command.arg("--no-password");
    command
}

/// Sets libpq's environment variables for this target, and messages in English. Removes those that could lead to another server.
pub(crate) fn connected(command: &mut Command, target: &Target, is_removed: impl Fn(&str) -> bool) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(&is_removed) {
            command.env_remove(name);
        }
    }
    command.envs(target.client_variables()).env("LC_ALL", "C");
}

/// The option with a connection string that ends a dead connection as soon as pgrig ends its own; all else comes from the environment.
pub(crate) fn patience(target: &Target) -> String {
    format!("--dbname={}", target.tcp_parameters())
}

/// Ends the programs, first with SIGTERM, so that queries are cancelled.
async fn end(programs: &mut Vec<Program>) {
    programs.iter().for_each(Program::terminate);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && !programs.iter().all(Program::has_ended) {
        tokio::time::sleep(LOOK).await;
    }
    programs.clear();
}

/// The end of a file, more than an error shows.
fn last_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(MOST_READ);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MOST_READ).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn base_name(program: &str) -> String {
    Path::new(program)
        .file_name()
        .map_or_else(|| program.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// CPU seconds of all children that have ended.
fn cpu() -> f64 {
    let seconds = |usage: Usage| {
        let [user, system] = [usage.user_time(), usage.system_time()]
            .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6);
        user + system
    };
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, seconds)
}

/// Bytes that a file or directory takes on disk.
pub(crate) fn used(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let below = if metadata.is_dir() {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| used(&entry.path())).sum()
    } else {
        0
    };
    metadata.blocks() * 512 + below
}

/// Bytes in a file or in the files of a directory.
pub(crate) fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_password_is_in_the_environment_only() {
        let target = Target::tcp("192.0.2.1", 5432, "alice", "shop").with_password("s3cret");
        let mut command = client(Path::new("pg_dump"), &target);
        command.arg(patience(&target));
        let arguments: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(
            arguments,
            [
                "--no-password",
                "--dbname=keepalives=1 keepalives_idle=10 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=25000"
            ]
        );
        let value = |name: &str| {
            let found = command.get_envs().find(|(known, _)| known.to_str() == Some(name));
            found.and_then(|(_, value)| value).and_then(OsStr::to_str)
        };
        let names = ["PGPASSWORD", "PGHOST", "PGHOSTADDR", "PGSSLMODE", "PGSERVICE"];
        let expected = [Some("s3cret"), Some("192.0.2.1"), Some("192.0.2.1"), Some("disable"), None];
        assert_eq!(names.map(value), expected);
    }
}
