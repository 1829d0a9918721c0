//! pg_dump's archives, which pg_restore turns into SQL.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Most bytes of pg_restore's messages that are shown.
const TOLD: u64 = 4096;
/// Bytes of an archive that are passed on to pg_restore at a time.
const PASSED_ON: usize = 256 << 10;

/// The process IDs of all running pg_restore.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends every pg_restore, for a caller that exits while other threads still read from one.
pub fn end_pg_restores() {
    for pid in running().iter() {
        // It may have ended by itself; its number is not given anew before it is waited for.
        let _ = kill(*pid, Signal::SIGKILL);
    }
}

fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Location of an archive.
pub(crate) enum Archive {
    /// A file or directory.
    Named(PathBuf),
    /// An open file, at the archive's beginning.
    Open(File),
    /// A stream, because the archive is not a file by itself.
    Streamed(Box<dyn Read + Send>),
}

/// Why pg_restore does not give the SQL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// pg_restore is not installed.
    #[error(
        "pgrig needs pg_restore to read it ({0}): install PostgreSQL's client programs (Debian: postgresql-client), or make a \
         plain dump with pg_dump --format plain"
    )]
    Missing(#[source] io::Error),
    /// pg_restore cannot be run.
    #[error(
        "pg_restore cannot be run: {0}; install PostgreSQL's client programs, or make a plain dump with pg_dump --format plain"
    )]
    Run(#[source] io::Error),
    /// It failed, or was killed.
    #[error("{program} failed ({status}): {told}{remedy}")]
    Failed {
        /// Its name and version.
        program: String,
        /// Exit status or signal.
        status: ExitStatus,
        /// Messages of the program.
        told: String,
        /// The remedy, if there is one.
        remedy: &'static str,
    },
}

/// Runs pg_restore, which writes the archive's SQL.
pub(crate) fn restore(archive: Archive) -> Result<Restoring, ArchiveError> {
    let program = version()?;
    let mut command = Command::new("pg_restore");
    command.arg("--file=-").stdout(Stdio::piped()).stderr(Stdio::piped());
    let input = match archive {
        Archive::Named(path) => {
            command.arg("--").arg(path).stdin(Stdio::null());
            None
        }
        Archive::Open(file) => {
            command.stdin(file);
            None
        }
        Archive::Streamed(input) => {
            command.stdin(Stdio::piped());
            Some(input)
        }
    };
    let mut restorer = Restorer::start(&mut command).map_err(ArchiveError::Run)?;
    let child = &mut restorer.child;
    let feeder =
        input.zip(child.stdin.take()).map(|(input, stdin)| std::thread::spawn(|| feed(input, stdin)));
    let stderr = child.stderr.take();
    let told = std::thread::spawn(|| stderr.map(listen).unwrap_or_default());
    let Some(sql) = child.stdout.take() else {
        return Err(ArchiveError::Run(io::ErrorKind::BrokenPipe.into()));
    };
    Ok(Restoring { program, sql, running: Some(Running { restorer, feeder, told }) })
}

/// pg_restore's name and version. Before 12 `--file=-` was a file of that name.
fn version() -> Result<String, ArchiveError> {
    let output = Command::new("pg_restore").arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::Missing(error),
        _ => ArchiveError::Run(error),
    })?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = text
        .split(|character: char| !character.is_ascii_digit())
        .find_map(|digits| digits.parse::<u32>().ok());
    if !output.status.success() || major.is_none_or(|major| major < 12) {
        let error = format!("{text}: version 12 or later is needed");
        return Err(ArchiveError::Run(io::Error::new(io::ErrorKind::Unsupported, error)));
    }
    Ok(text)
}

fn feed(mut input: Box<dyn Read + Send>, mut stdin: std::process::ChildStdin) -> io::Result<()> {
    let mut buffer = vec![0; PASSED_ON];
    loop {
        let bytes = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match io::Write::write_all(&mut stdin, &buffer[..bytes]) {
            // It has ended, and will say why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

/// The program's messages, up to a limit. All output is read, so that the program never blocks.
fn listen(mut stderr: impl Read) -> String {
    let mut told = Vec::new();
    // After a read error the message holds the part read so far.
    let _ = stderr.by_ref().take(TOLD).read_to_end(&mut told);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&told).trim().to_owned()
}

/// The SQL that pg_restore writes. The reader learns at the end whether it is complete.
pub(crate) struct Restoring {
    program: String,
    sql: ChildStdout,
    /// None once the program's end is known.
    running: Option<Running>,
}

struct Running {
    restorer: Restorer,
    /// Thread that passes the archive on.
    feeder: Option<JoinHandle<io::Result<()>>>,
    told: JoinHandle<String>,
}

impl Read for Restoring {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.sql.read(buffer)?;
        if bytes == 0 && !buffer.is_empty() {
            self.end()?;
        }
        Ok(bytes)
    }
}

impl Restoring {
    fn end(&mut self) -> io::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let status = running.restorer.wait()?;
        let fed = running.feeder.map_or(Ok(()), |feeder| feeder.join().unwrap_or(Ok(())));
        let told = running.told.join().unwrap_or_default();
        fed?;
        if status.success() {
            return Ok(());
        }
        let remedy = if told.contains("unsupported version") {
            "; a newer pg_dump wrote the archive: put client programs of that version first in PATH"
        } else if told.contains("end of file") {
            "; the archive is truncated: make it again"
        } else {
            ""
        };
        Err(io::Error::other(ArchiveError::Failed { program: self.program.clone(), status, told, remedy }))
    }
}

/// A pg_restore, which ends when nobody reads it any more.
struct Restorer {
    child: Child,
}

impl Restorer {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut running = running();
        let child = command.spawn()?;
        running.push(pid(&child));
        Ok(Self { child })
    }

    /// Waits for the program, after the end of its output.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let own = pid(&self.child);
        running().retain(|pid| *pid != own);
        self.child.wait()
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        // Nothing is done to a process that was waited for.
        let _ = self.child.kill();
        let _ = self.wait();
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}
