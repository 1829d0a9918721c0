//! A program that works for this process and ends with it: pg_dump, pg_restore, tar …

use crate::spawn::{OnParentDeath, detach};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{self, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

/// The end of a program.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Exit status, or the signal that ended it.
    pub status: ExitStatus,
    /// Time of the end.
    pub at: Instant,
}

/// A program that runs. It is in a session of its own, so that Ctrl-C of a terminal reaches only this process. The kernel kills
/// it when this process dies in any way. It is killed when this value is dropped. Processes that it leaves in its group are killed after
/// its end.
#[derive(Debug)]
pub struct Program {
    group: Pid,
    stdout: Option<ChildStdout>,
    thread: Option<JoinHandle<io::Result<Ended>>>,
}

impl Program {
    /// Starts it. The thread that forks it waits for its end: the kernel's signal is bound to that thread.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn start(mut command: Command) -> io::Result<Self> {
        detach(&mut command, OnParentDeath::Send(Signal::SIGKILL));
        let (started, starts) = mpsc::channel();
        let keep = move || {
            let spawned = command.spawn();
            // Closes this process's ends of pipes.
            drop(command);
            let mut child = match spawned {
                Ok(child) => child,
                Err(error) => {
                    let kind = error.kind();
                    let _ = started.send(Err(error));
                    return Err(kind.into());
                }
            };
            let _ = started.send(Ok((child.id(), child.stdout.take())));
            let status = child.wait()?;
            Ok(Ended { status, at: Instant::now() })
        };
        let thread = std::thread::Builder::new().name("program-keeper".to_owned()).spawn(keep)?;
        let (pid, stdout) = starts.recv().map_err(io::Error::other)??;
        let group = Pid::from_raw(i32::try_from(pid).map_err(io::Error::other)?);
        Ok(Self { group, stdout, thread: Some(thread) })
    }

    /// Its standard output, if that is a pipe and was not taken before.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks it to end (SIGTERM); pg_dump then cancels its query.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn wait(mut self) -> io::Result<Ended> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Ended> {
        let thread = self.thread.take().ok_or(io::ErrorKind::NotFound)?;
        let ended = thread.join();
        // What it has left in its group. An error means that there is nothing.
        let _ = killpg(self.group, Signal::SIGKILL);
        ended.map_err(|_| io::Error::other("the thread of a program has panicked"))?
    }

    fn signal(&self, signal: Signal) {
        if !self.has_ended() {
            // An error means that it is gone.
            let _ = killpg(self.group, signal);
        }
    }
}

/// Kills the processes of a program's group when this process dies in any way. The kernel does so only for the program itself, not for
/// the processes that it has started.
#[derive(Debug)]
pub struct GroupGuard(Child);

impl GroupGuard {
    /// The shell reads a line: it kills the group if there is none at the end.
    const SCRIPT: &str = "read -r ended || kill -s KILL -- \"-$0\"";

    /// That of a program that was just started.
    ///
    /// # Errors
    /// If no shell can be run.
    pub fn of(program: &Program) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", Self::SCRIPT, &program.group.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        detach(&mut command, OnParentDeath::Nothing);
        command.spawn().map(Self)
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        // Not its end of file: the number of the group may be another one's by now.
        let told = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"ended\n"));
        if !matches!(told, Some(Ok(()))) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.signal(Signal::SIGKILL);
            let _ = self.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_of_two_ends_and_a_dropped_program_is_killed() {
        let mut one = Command::new("echo");
        one.arg("text").stdout(Stdio::piped());
        let mut one = Program::start(one).unwrap();
        let mut two = Command::new("grep");
        two.args(["-q", "text"]).stdin(one.take_stdout().unwrap());
        let two = Program::start(two).unwrap();
        assert!(one.wait().unwrap().status.success() && two.wait().unwrap().status.success());

        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let sleep = Program::start(sleep).unwrap();
        let group = sleep.group;
        drop(sleep);
        assert!(killpg(group, None).is_err());
        assert_eq!(Program::start(Command::new("/no/such")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
