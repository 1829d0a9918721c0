//! Detection of server processes from outside.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;

/// Whether a process with this id lives. Zombies do not count: in containers they may never be
/// reaped.
pub(crate) fn exists(pid: u32) -> bool {
    // EPERM: it exists and is somebody else's.
    let known = pid_of(pid).is_some_and(|pid| kill(pid, None) != Err(Errno::ESRCH));
    known && !is_zombie(pid)
}

/// Reads the state from proc(5): it follows the name, which is in parentheses and may contain
/// parentheses.
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// The words of its command line; none if they cannot be seen.
pub(crate) fn words(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Sends a signal. It is no error if the process has ended.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = pid_of(pid) {
        let _ = kill(pid, signal);
    }
}

/// The id as a type of the system; none for 0, which would mean a process group.
fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 0).map(Pid::from_raw)
}

/// Whether the process is a PostgreSQL server on this data directory (canonical). All its processes
/// work in that directory. Where that cannot be seen (root without CAP_SYS_PTRACE, as in containers),
/// the command line decides.
#[cfg(target_os = "linux")]
pub(crate) fn serves(pid: u32, data: &Path) -> bool {
    use std::io::ErrorKind::PermissionDenied;
    use std::os::unix::ffi::OsStrExt;
    let proc = Path::new("/proc").join(pid.to_string());
    match fs::read_link(proc.join("cwd")) {
        Ok(dir) => dir == data && is_postgres(&proc),
        Err(error) if error.kind() == PermissionDenied => {
            let command = fs::read(proc.join("cmdline")).unwrap_or_default();
            let mut words = command.split(|byte| *byte == 0);
            words.any(|word| word == data.as_os_str().as_bytes())
        }
        Err(_) => false,
    }
}

/// Whether the server on this data directory has ended: neither does the process serve it, nor is the process
/// still ending.
pub(crate) fn has_ended(pid: u32, data: &Path) -> bool {
    !serves(pid, data) && !is_ending(pid)
}

/// Whether the process has let go of its files and is no zombie yet: Linux takes its working directory away
/// before it reports the end.
#[cfg(target_os = "linux")]
fn is_ending(pid: u32) -> bool {
    let directory = fs::read_link(Path::new("/proc").join(pid.to_string()).join("cwd"));
    directory.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) && exists(pid)
}

/// Systems without /proc: `serves` already means that the process exists.
#[cfg(not(target_os = "linux"))]
fn is_ending(_pid: u32) -> bool {
    false
}

/// Whether the program is postgres: an operator's shell may have the data directory as its working
/// directory too.
#[cfg(target_os = "linux")]
fn is_postgres(proc: &Path) -> bool {
    let name = fs::read_to_string(proc.join("comm")).unwrap_or_default();
    matches!(name.trim(), "postgres" | "postmaster")
}

/// Systems without /proc: pgrig believes the pid file about a live process, as PostgreSQL does.
#[cfg(not(target_os = "linux"))]
pub(crate) fn serves(pid: u32, _data: &Path) -> bool {
    exists(pid)
}

/// The parent of a process; none if it cannot be seen.
#[cfg(target_os = "linux")]
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The parent of a process; none if it cannot be seen.
#[cfg(not(target_os = "linux"))]
pub(crate) fn parent(_pid: u32) -> Option<u32> {
    None
}

/// All server processes on this data directory, as far as they can be seen.
pub(crate) fn all_on(data: &Path) -> Vec<u32> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| serves(*pid, data))
        .collect()
}
