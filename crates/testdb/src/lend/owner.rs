//! The process that a database is lent to, if the caller names none. From proc(5).

use std::fs;
use std::path::PathBuf;

pub use server::process::Process as Owner;
use server::process::{Stat, command_line};

/// The process that called pgrig: in general, the parent process. For a shell's command
/// substitution, `$(…)`, the shell itself. For a shell or another program that was started only to
/// run pgrig (for example by Python's `shell=True`), the process that started that program.
pub fn caller() -> Option<Owner> {
    let mut child = std::process::id();
    let mut pid = std::os::unix::process::parent_id();
    while let Some(parent) = shell_of_substitution(pid).or_else(|| starter_of_go_between(pid, child)) {
        (child, pid) = (pid, parent);
    }
    Owner::of(pid)
}

/// The shell for which this process makes a command substitution. A process does so if it runs the
/// same command as its parent, and its output goes into a pipe that the parent's output does not go
/// to.
fn shell_of_substitution(pid: u32) -> Option<u32> {
    let stat = Stat::read(pid)?;
    let is_copy = is_shell(&stat.name) && command_line(pid)? == command_line(stat.parent)?;
    let (own, parents) = (output(pid)?, output(stat.parent)?);
    (is_copy && own != parents && own.to_string_lossy().starts_with("pipe:")).then_some(stat.parent)
}

/// The process that started this one, if this one only runs its child: it is a program that runs
/// another one, or a shell with a command (`sh -c`) whose output is read through a pipe that the
/// child shares.
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
