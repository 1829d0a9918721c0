//! `in-use.lock`: who may start, stop or delete an instance.
//!
//! The flock is the truth, and vanishes with its holder in whatever way that dies. The content only
//! says who it is. An owner holds it as long as its server runs; others only while they act.

use crate::error::OnPath;
use crate::{Error, Event, Events, Result, files, process};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Why the lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Purpose {
    /// A server that ends with the holder: do not wait for it.
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
pub(crate) struct InUse(File);

/// A first start fetches PostgreSQL under the lock.
const PATIENCE: Duration = Duration::from_mins(11);
/// A holder that has not written who it is yet, or that only looks (`holder`), is gone by then.
const GRACE: Duration = Duration::from_millis(250);
const EVERY: Duration = Duration::from_millis(5);

impl InUse {
    /// Waits for those that only act for a moment; refuses if a live process owns the instance.
    pub(crate) fn acquire(dir: &Path, purpose: Purpose, events: Events) -> Result<Self> {
        let instance = files::name_of(dir);
        let path = dir.join("in-use.lock");
        let begin = Instant::now();
        let mut told = false;
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .on("open", &path)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Self::sign(file, purpose, &path),
                // Deleted with the instance while we waited: the next round makes a new one.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error).on("lock", &path),
            }
            let holder = read(&path).filter(|holder| process::exists(holder.pid));
            let waited = begin.elapsed();
            match holder {
                Some(Holder { pid, purpose }) => {
                    let patience = if purpose == Purpose::Owning { GRACE } else { PATIENCE };
                    if waited > patience {
                        return Err(Error::InUse { instance, pid });
                    }
                    if purpose != Purpose::Owning && !told {
                        told = true;
                        let doing = if purpose == Purpose::Starting { "starting" } else { "stopping" };
                        events(Event::Waiting(format!("process {pid} is {doing} instance {instance}")));
                    }
                }
                None if waited > PATIENCE => return Err(Error::InUse { instance, pid: 0 }),
                None => {}
            }
            std::thread::sleep(EVERY);
        }
    }

    fn sign(mut file: File, purpose: Purpose, path: &Path) -> Result<Self> {
        let pid = std::process::id();
        let text = serde_json::to_vec(&Holder { pid, purpose }).expect("two plain fields");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&text))
            .on("write", path)?;
        Ok(Self(file))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // Only a courtesy to readers; the lock itself goes with the file.
        let _ = self.0.set_len(0);
    }
}

/// Who holds the lock at this moment.
pub(crate) fn holder(dir: &Path) -> Option<Holder> {
    let path = dir.join("in-use.lock");
    let file = File::open(&path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read(&path),
        _ => None,
    }
}

fn read(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_named_and_a_dead_one_is_not_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()), None);
        let held = InUse::acquire(dir.path(), Purpose::Owning, &|_| ()).unwrap();
        let pid = std::process::id();
        assert_eq!(holder(dir.path()).map(|holder| holder.pid), Some(pid));
        let error = InUse::acquire(dir.path(), Purpose::Stopping, &|_| ()).unwrap_err();
        assert!(error.to_string().contains(&format!("process {pid},")), "{error}");
        drop(held);
        assert_eq!(holder(dir.path()), None);
        InUse::acquire(dir.path(), Purpose::Starting, &|_| ()).unwrap();
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
}
