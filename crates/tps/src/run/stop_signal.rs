//! Tells all jobs to stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::Notify;

/// A signal that is raised once and stays raised. It can be checked, awaited in a runtime, and
/// waited for as a file descriptor.
pub(crate) struct StopSignal {
    raised: AtomicBool,
    event: OwnedFd,
    notify: Notify,
}

impl StopSignal {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { raised: AtomicBool::new(false), event, notify: Notify::new() })
    }

    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        // It can only fail where it is raised already, 2^64 times.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        self.notify.notify_waiters();
    }

    /// Waits until it is raised.
    pub(crate) async fn wait(&self) {
        let notified = self.notify.notified();
        if !self.is_raised() {
            notified.await;
        }
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
