//! The process that a database is lent to: which one it is, and when it exits. From proc(5) and pidfd_open(2).

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use crate::process::Process as Owner;
use crate::process::{Stat, command_line};

impl Owner {
    /// The process that started this one. Of a shell's command substitution, `$(…)`, the shell itself; of a shell or
    /// another program that was only started to run this one, for example by Python's `shell=True`, who started that.
    pub fn caller() -> Option<Self> {
        let mut child = std::process::id();
        let mut pid = std::os::unix::process::parent_id();
        while let Some(parent) = shell_of_substitution(pid).or_else(|| starter_of_go_between(pid, child)) {
            (child, pid) = (pid, parent);
        }
        Self::of(pid)
    }

    /// Whether it may still run, for all that can be told from here: of processes in another namespace, nothing can.
    /// Those of an earlier start of this machine do not run.
    pub(super) fn may_be_alive(&self) -> bool {
        !self.is_here() || self.is_alive()
    }

    /// Returns once it has exited; never, if that cannot be told from here.
    ///
    /// # Errors
    /// If it cannot be watched: descriptors are used up, or the kernel is older than 5.3.
    pub(super) async fn exit(&self) -> io::Result<()> {
        if !self.is_here() {
            return std::future::pending().await;
        }
        let Some(process) = self.open()? else { return Ok(()) };
        let watched = watch(process)?;
        watched.readable().await?.retain_ready();
        Ok(())
    }

    /// None if it is gone. Opened first and looked at then: the id may have gone to another in between.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => Ok(self.is_alive().then_some(process)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for types that let go of their descriptor; this one does not"
)]
fn watch(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

/// The shell whose copy, made for a command substitution, this process is. It is one if it runs the same command as
/// its parent, and its output goes into a pipe that its parent's does not go to.
fn shell_of_substitution(pid: u32) -> Option<u32> {
    let stat = Stat::read(pid)?;
    let is_copy = is_shell(&stat.name) && command_line(pid)? == command_line(stat.parent)?;
    let (own, parents) = (output(pid)?, output(stat.parent)?);
    (is_copy && own != parents && own.to_string_lossy().starts_with("pipe:")).then_some(stat.parent)
}

/// Who started this process, if it is only there to run its child: a program that runs another one, or a shell that was
/// given a command (`sh -c`) and has its output read, which the child shares.
fn starter_of_go_between(pid: u32, child: u32) -> Option<u32> {
    const RUN_ANOTHER: [&str; 8] = ["env", "ionice", "nice", "nohup", "setsid", "stdbuf", "time", "timeout"];
    let stat = Stat::read(pid)?;
    let is_read = || {
        let own = output(pid)?;
        Some(own.to_string_lossy().starts_with("pipe:") && output(child)? == own)
    };
    let runs_command = || command_line(pid).is_some_and(|line| line.split(' ').nth(1) == Some("-c"));
    let is_between = RUN_ANOTHER.contains(&stat.name.as_str())
        || is_shell(&stat.name) && runs_command() && is_read().unwrap_or(false);
    is_between.then_some(stat.parent)
}

fn is_shell(name: &str) -> bool {
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "fish", "yash"].contains(&name)
}

fn output(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/1")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_start_of_the_machine_ends_all_and_other_namespaces_cannot_be_told() {
        let own = Owner::of(std::process::id()).unwrap();
        assert!(own.may_be_alive());
        let (boot, space) = own.machine.split_once(' ').unwrap();
        let before_the_start = Owner { machine: format!("earlier {space}"), ..own.clone() };
        let in_a_container = Owner { machine: format!("{boot} pid:[1]"), ..own.clone() };
        let earlier = Owner { start: own.start - 1, ..own.clone() };
        assert!(!before_the_start.may_be_alive() && !earlier.may_be_alive());
        assert!(in_a_container.may_be_alive() && !in_a_container.is_alive());
    }

    #[tokio::test]
    async fn an_exit_is_noticed_though_nobody_reaps_it() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let owner = Owner::of(child.id()).unwrap();
        let mut exit = Box::pin(owner.exit());
        let early = tokio::time::timeout(std::time::Duration::from_millis(1), &mut exit).await;
        assert!(early.is_err(), "it lives");
        child.kill().unwrap();
        exit.await.unwrap();
        assert!(!owner.is_alive(), "it is a zombie");
        owner.exit().await.unwrap();
        child.wait().unwrap();
        owner.exit().await.unwrap();
    }
}
