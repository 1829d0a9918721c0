//! The server process: spawn it, see it ready, stop it.

use crate::account::Account;
use crate::error::OnPath;
use crate::files::{free_bytes, name_of, poll};
use crate::initdb::clean_environment;
use crate::pidfile::PidFile;
use crate::spawn::{OnParentDeath, ParentThread, detach, spawn_with_parent_thread};
use crate::{Binaries, Error, Event, Events, Lifetime, Result, control, diagnose, process};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const START_DEADLINE: Duration = Duration::from_mins(1);
/// Time that a start may take while the log shows that crash recovery makes progress.
pub(crate) const RECOVERY_DEADLINE: Duration = Duration::from_hours(2);
/// Time for a fast shutdown, which writes a checkpoint: with gigabytes of shared buffers and a slow
/// disk that takes long. Stopping the server immediately would empty every unlogged table.
const FAST_DEADLINE: Duration = Duration::from_mins(10);
const IMMEDIATE_DEADLINE: Duration = Duration::from_mins(1);
/// Time after which pgrig prints the reason for which it waits.
const TELL_AFTER: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_millis(2);
/// Size from which a log is renamed before a start, bytes.
const LOG_LIMIT: u64 = 16 << 20;

/// A server process that this process started.
#[derive(Debug)]
pub(crate) struct Postmaster {
    child: Child,
    /// Set only if the server is to die with this process.
    _parent: Option<ParentThread>,
    log: Log,
}

/// The log, and the offset at which this server's part begins.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    path: PathBuf,
    begin: u64,
}

impl Log {
    pub(crate) fn open(instance: &Path) -> Result<(Self, File)> {
        let path = instance.join("log");
        if fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG_LIMIT) {
            fs::rename(&path, instance.join("log.1")).on("rename", &path)?;
        }
        let file = File::options().create(true).append(true).open(&path);
        let file = file.on("open", &path)?;
        let begin = file.metadata().on("read", &path)?.len();
        Ok((Self { path, begin }, file))
    }

    /// The output of this server; of a long text only the end.
    pub(crate) fn text(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.begin.max(length.saturating_sub(1 << 20))))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Why a start failed, for the caller to decide whether to try again.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Leftover processes of a killed server hold its shared memory: another attempt may succeed.
    SharedMemory(Error),
    /// The port is taken: another attempt may find a free one.
    Port(Error),
    /// A server is running that had not written its pid file when we checked.
    AlreadyRunning(Error),
    /// A file that crash recovery does not expect, below the data directory.
    FileExists(Box<Error>, Box<Path>),
    Other(Error),
}

impl Failure {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::SharedMemory(e) | Self::Port(e) | Self::AlreadyRunning(e) | Self::Other(e) => e,
            Self::FileExists(e, _) => *e,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Postmaster {
    /// Starts `postgres -D data`; no other options are on its command line.
    pub(crate) fn spawn(
        instance: &Path,
        binaries: &Binaries,
        account: &Account,
        lifetime: Lifetime,
    ) -> Result<Self> {
        let program = binaries.program("postgres");
        let (log, file) = Log::open(instance)?;
        let mut command = Command::new(&program);
        command.arg("-D").arg(instance.join("data"));
        clean_environment(&mut command);
        account.apply(&mut command);
        let stdout = file.try_clone().on("open", log.path())?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(file);
        let spawned = match lifetime {
            Lifetime::Owned => {
                // SIGINT is PostgreSQL's fast shutdown.
                detach(&mut command, OnParentDeath::Send(Signal::SIGINT));
                spawn_with_parent_thread(command).map(|(child, parent)| (child, Some(parent)))
            }
            Lifetime::Detached => {
                detach(&mut command, OnParentDeath::Nothing);
                command.spawn().map(|child| (child, None))
            }
        };
        let (child, parent) = spawned.map_err(|error| diagnose::not_run(&program, error))?;
        Ok(Self { child, _parent: parent, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server accepts connections. After a failure the server has ended.
    pub(crate) fn wait_ready(&mut self, instance: &Path, events: Events) -> Result<(), Failure> {
        let data = instance.join("data");
        let begin = Instant::now();
        let mut recovery = Recovery::default();
        loop {
            let ready = |file: PidFile| file.pid == self.pid() && file.is_ready();
            if PidFile::read(&data).is_some_and(ready) {
                return Ok(());
            }
            if let Some(status) = self.exited() {
                return Err(self.failure(instance, &status.to_string()));
            }
            let elapsed = begin.elapsed();
            recovery.look(&self.log, elapsed, events);
            if elapsed > recovery.deadline() {
                self.stop(instance, events)?;
                let late = format!("not ready after {} s", elapsed.as_secs());
                return Err(self.failure(instance, &late));
            }
            std::thread::sleep(EVERY);
        }
    }

    /// Its exit status, if it has ended.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops the server with a fast shutdown, and waits for its end: with success, unless it died
    /// before.
    pub(crate) fn stop(&mut self, instance: &Path, events: Events) -> Result<ExitStatus> {
        let pid = self.pid();
        if self.exited().is_none() {
            let gone = || self.exited().is_some();
            stop(instance, pid, gone, events)?;
        }
        let instance = name_of(instance);
        self.exited().ok_or(Error::Stop { instance, pid })
    }

    /// Stops the server with an immediate shutdown, and waits for its end.
    pub(crate) fn quit(&mut self, instance: &Path) -> Result<()> {
        let pid = self.pid();
        if self.exited().is_none() {
            process::signal(pid, Signal::SIGQUIT);
        }
        let ended = poll(IMMEDIATE_DEADLINE, EVERY, || self.exited());
        ended.map(drop).ok_or_else(|| Error::Stop { instance: name_of(instance), pid })
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    fn failure(&self, instance: &Path, how: &str) -> Failure {
        let text = self.log.text();
        let why = diagnose::explain(&text, free_bytes(instance));
        let name = name_of(instance);
        let error = Error::Start {
            remedy: why.remedy_of_start(&name),
            instance: name,
            cause: format!("{} ({how})", why.cause),
            log: self.log.path.clone(),
            by_request: false,
        };
        if diagnose::is_shared_memory_in_use(&text) {
            Failure::SharedMemory(error)
        } else if diagnose::is_port_in_use(&text) {
            Failure::Port(error)
        } else if diagnose::is_already_running(&text) {
            Failure::AlreadyRunning(error)
        } else if let Some(file) = diagnose::unexpected_file(&text) {
            Failure::FileExists(error.into(), Path::new(file).into())
        } else {
            Failure::Other(error)
        }
    }
}

/// Words of the log's lines about crash recovery. The first three come before a sync of the whole data
/// directory, which may take minutes.
const RECOVERING: [&str; 5] =
    ["was interrupted", "shut down in recovery", "syncing data directory", "recovery in progress", "redo "];

/// Follows the log of a slow start.
#[derive(Debug, Default)]
struct Recovery {
    looked: Duration,
    seen: bool,
    told: String,
}

impl Recovery {
    /// To be called once a second: a start that takes longer has a reason, which is reported.
    fn look(&mut self, log: &Log, elapsed: Duration, events: Events) {
        if elapsed < self.looked + Duration::from_secs(1) {
            return;
        }
        self.looked = elapsed;
        let text = log.text();
        if let Some(line) = text.lines().rfind(|line| RECOVERING.iter().any(|words| line.contains(words))) {
            self.seen = true;
            let line = line.split_once("LOG:").map_or(line, |(_, rest)| rest);
            if self.told != line.trim() {
                line.trim().clone_into(&mut self.told);
                events(Event::Recovering(self.told.clone()));
            }
        }
    }

    fn deadline(&self) -> Duration {
        if self.seen { RECOVERY_DEADLINE } else { START_DEADLINE }
    }
}

/// Stops a server with a fast shutdown; if that takes too long, with an immediate one. A server in
/// crash recovery is stopped immediately: the next start repeats recovery, and recovery empties
/// unlogged tables anyway.
pub(crate) fn stop(instance: &Path, pid: u32, mut gone: impl FnMut() -> bool, events: Events) -> Result<()> {
    let data = instance.join("data");
    let recovering = || control::is_recovering(&data);
    if !recovering() {
        process::signal(pid, Signal::SIGINT);
        // It may enter recovery after the signal, and then not end: see launch::settings.
        let mut settled_within =
            |time| poll(time, EVERY, || (gone() || recovering()).then_some(())).is_some();
        if !settled_within(TELL_AFTER) {
            events(Event::Waiting(format!("the server (process {pid}) writes its shutdown checkpoint")));
            settled_within(FAST_DEADLINE);
        }
    }
    if gone() {
        return Ok(());
    }
    events(Event::Recovering(if recovering() {
        format!(
            "stopping the server (process {pid}) during its crash recovery: the next start repeats the recovery"
        )
    } else {
        format!(
            "the server (process {pid}) does not stop: stopping it without a checkpoint; the next start recovers \
             it and empties unlogged tables"
        )
    }));
    process::signal(pid, Signal::SIGQUIT);
    if poll(IMMEDIATE_DEADLINE, EVERY, || gone().then_some(())).is_some() {
        return Ok(());
    }
    Err(Error::Stop { instance: name_of(instance), pid })
}
