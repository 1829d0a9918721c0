//! `in-use.lock`: the right to start, stop or delete an instance.
//!
//! The flock counts; the kernel releases it however its holder dies. The content of the file only
//! names the holder. An owner holds the lock as long as its server runs, other processes only while
//! they act.

use crate::differences::start_of;
use crate::error::OnPath;
use crate::lock_file::{LockFile, TELL_AFTER};
use crate::{Error, Event, Events, Result, files, process};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The purpose for which the lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Purpose {
    /// To run a server that ends with the holder. Others do not wait for it.
    Owning,
    /// `start_detached`.
    Starting,
    /// `stop` and `destroy`.
    Stopping,
}

/// The process that holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) purpose: Purpose,
}

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct InUse(LockFile);

/// Time to wait for the lock: a first start fetches PostgreSQL while it holds the lock.
const PATIENCE: Duration = Duration::from_mins(11);
/// Time to wait for a holder that has not written its name yet, or that holds the lock only for a
/// check (`holder`).
const GRACE: Duration = Duration::from_millis(250);
const EVERY: Duration = Duration::from_millis(5);

impl InUse {
    /// Takes the lock: waits for processes that hold it for a moment; refuses if a live process
    /// owns the instance.
    pub(crate) fn acquire(dir: &Path, purpose: Purpose, events: Events) -> Result<Self> {
        let instance = files::name_of(dir);
        let path = dir.join("in-use.lock");
        let begin = Instant::now();
        let mut told = false;
        loop {
            let file = LockFile::open(&path).on("open", &path)?;
            if file.try_lock().on("lock", &path)? {
                if file.is_at(&path) {
                    return Self::sign(file, purpose, &path);
                }
                // Deleted with the instance while we waited: the next round makes a new one.
                continue;
            }
            let waited = begin.elapsed();
            match signed(&file) {
                Some(Holder { pid, purpose }) => {
                    let patience = if purpose == Purpose::Owning { GRACE } else { PATIENCE };
                    if waited > patience {
                        return Err(refusal(instance, pid));
                    }
                    if purpose != Purpose::Owning && !told {
                        told = true;
                        let doing = if purpose == Purpose::Starting { "starting" } else { "stopping" };
                        events(Event::Waiting(format!("process {pid} is {doing} instance {instance}")));
                    }
                }
                None if waited > PATIENCE => {
                    return Err(Error::Locked { path, holder: file.holder_text() });
                }
                None if waited > TELL_AFTER && !told => {
                    told = true;
                    let (holder, path) = (file.holder_text(), path.display());
                    events(Event::Waiting(format!("{holder} holds the lock {path}")));
                }
                None => {}
            }
            std::thread::sleep(EVERY);
        }
    }

    fn sign(file: LockFile, purpose: Purpose, path: &Path) -> Result<Self> {
        let text =
            serde_json::to_vec(&Holder { pid: std::process::id(), purpose }).expect("two plain fields");
        file.write(&text).on("write", path)?;
        Ok(Self(file))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // Only a courtesy to readers; the lock itself goes with the file.
        let _ = self.0.write(b"");
    }
}

/// The process that holds the lock at this moment.
pub(crate) fn holder(dir: &Path) -> Option<Holder> {
    let path = dir.join("in-use.lock");
    if !path.exists() {
        return None;
    }
    let file = LockFile::open(&path).ok()?;
    if file.is_held().ok()? { signed(&file) } else { None }
}

/// The error of a command that needs the instance of another pgrig process.
pub(crate) fn refusal(instance: String, pid: u32) -> Error {
    let start = start_of(&instance);
    Error::InUse { instance, pid, is_keeper: is_keeper(pid), start }
}

/// Whether the process is the keeper of `pgrig testdb` in the background, by its command line.
fn is_keeper(pid: u32) -> bool {
    let words = process::words(pid);
    ["testdb", "serve", "--background"].iter().all(|word| words.iter().any(|given| given == word))
}

/// The process named in the file, if it can be the lock's holder. (A killed process leaves its name
/// behind.)
fn signed(file: &LockFile) -> Option<Holder> {
    let holder: Holder = serde_json::from_str(&file.read().ok()?).ok()?;
    let is_it = process::exists(holder.pid) && file.holder().is_none_or(|pid| pid == holder.pid);
    is_it.then_some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn an_owner_is_named_and_a_dead_one_is_not_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()), None);
        let held = InUse::acquire(dir.path(), Purpose::Owning, &|_| ()).unwrap();
        let pid = std::process::id();
        assert_eq!(holder(dir.path()).map(|holder| holder.pid), Some(pid));
        let error = InUse::acquire(dir.path(), Purpose::Stopping, &|_| ()).unwrap_err();
        assert!(error.to_string().contains(&format!("process {pid} uses")), "{error}");
        drop(held);
        assert_eq!(holder(dir.path()), None);
        InUse::acquire(dir.path(), Purpose::Starting, &|_| ()).unwrap();
    }

    #[test]
    fn a_keeper_is_named_with_the_command_that_ends_it() {
        let words = ["-c", "read line", "testdb", "serve", "--background", "600s"];
        let mut keeper = Command::new("sh").args(words).stdin(Stdio::piped()).spawn().unwrap();
        // The new process has its own command line only once it runs sh.
        while !is_keeper(keeper.id()) {
            std::thread::yield_now();
        }
        assert!(!is_keeper(std::process::id()));
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        let in_use = |instance: &str| {
            let start = String::new();
            Error::InUse { instance: instance.to_owned(), pid: 7, is_keeper: true, start }.to_string()
        };
        let said = in_use("default");
        assert!(said.starts_with("the keeper of pgrig testdb (process 7) uses instance default"), "{said}");
        assert!(said.contains("run pgrig testdb drop --all,"), "{said}");
        assert!(in_use("other").contains("run pgrig testdb drop --all --instance other,"));
    }

    #[test]
    fn a_starter_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let held = InUse::acquire(dir.path(), Purpose::Starting, &|_| ()).unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let tell = |event: Event| told.send(event.to_string()).unwrap();
            scope.spawn(move || InUse::acquire(dir.path(), Purpose::Owning, &tell).unwrap());
            assert!(hears.recv().unwrap().contains("starting"));
            drop(held);
        });
    }

    #[test]
    fn a_holder_that_signed_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in-use.lock");
        let held = LockFile::open(&path).unwrap();
        assert!(held.try_lock().unwrap());
        // Of a pgrig that was killed, whose id another process has now.
        held.write(br#"{"pid":1,"purpose":"owning"}"#).unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let tell = |event: Event| told.send(event.to_string()).unwrap();
            scope.spawn(move || InUse::acquire(dir.path(), Purpose::Starting, &tell).unwrap());
            let said = hears.recv().unwrap();
            let expected = format!("process {} (", std::process::id());
            assert!(said.contains(&expected) && said.ends_with("in-use.lock"), "{said}");
            drop(held);
        });
    }
}
