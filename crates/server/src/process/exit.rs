//! Waits for the exit of a process, by pidfd_open(2).

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Process;

impl Process {
    /// Whether the process may still run, as far as this process can tell. It can tell nothing of
    /// processes in another namespace. Processes from before the last boot do not run.
    pub fn may_be_alive(&self) -> bool {
        !self.is_here() || self.is_alive()
    }

    /// Returns once the process has exited; never, if that cannot be told from here.
    ///
    /// # Errors
    /// If the process cannot be watched: descriptors are used up, or the kernel is older than 5.3.
    pub async fn exit(&self) -> io::Result<()> {
        if !self.is_here() {
            return std::future::pending().await;
        }
        let Some(process) = self.open()? else { return Ok(()) };
        let watched = watch(process)?;
        watched.readable().await?.retain_ready();
        Ok(())
    }

    /// A descriptor of the process; none if it is gone. The descriptor is opened before the process
    /// is checked, because its id may have been reused in between.
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
    reason = "the replacement is unsafe, for types that close their descriptor; this type keeps it open"
)]
fn watch(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_start_of_the_machine_ends_all_and_other_namespaces_cannot_be_told() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.may_be_alive());
        let (boot, space) = own.machine.split_once(' ').unwrap();
        let before_the_start = Process { machine: format!("earlier {space}"), ..own.clone() };
        let in_a_container = Process { machine: format!("{boot} pid:[1]"), ..own.clone() };
        let earlier = Process { start: own.start - 1, ..own.clone() };
        assert!(!before_the_start.may_be_alive() && !earlier.may_be_alive());
        assert!(in_a_container.may_be_alive() && !in_a_container.is_alive());
    }

    #[tokio::test]
    async fn an_exit_is_noticed_though_nobody_reaps_it() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        let mut exit = Box::pin(process.exit());
        let early = tokio::time::timeout(std::time::Duration::from_millis(1), &mut exit).await;
        assert!(early.is_err(), "it lives");
        child.kill().unwrap();
        exit.await.unwrap();
        assert!(!process.is_alive(), "it is a zombie");
        process.exit().await.unwrap();
        child.wait().unwrap();
        process.exit().await.unwrap();
    }
}
