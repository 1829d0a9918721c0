//! Waits until one of a job's clients can go on.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::alarm::Alarm;

/// Instead of a client's number.
const ALARM: u64 = u64::MAX;
/// How many clients are told of at once.
const AT_ONCE: usize = 64;

/// The sockets of a job's clients, and the [`Alarm`].
pub(super) struct Waiter {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Waiter {
    /// For no client yet.
    pub(super) fn new(alarm: &Alarm) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Once is enough, and it stays raised.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, alarm, epoll::EventData::new_u64(ALARM), flags)?;
        Ok(Self { epoll, events: Vec::with_capacity(AT_ONCE) })
    }

    /// From now on until it is closed, tells when this client's socket has something to read.
    pub(super) fn add(&self, client: usize, socket: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(client as u64);
        Ok(epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN)?)
    }

    /// Tells, or tells no more, when the socket takes more.
    pub(super) fn watch_for_room(&self, client: usize, socket: impl AsFd, watch: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(client as u64);
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, watch);
        Ok(epoll::modify(&self.epoll, socket, data, flags)?)
    }

    /// Waits for a client or the alarm, until then at the latest. `ready` gets clients' numbers.
    pub(super) fn wait(&mut self, until: Until, mut ready: impl FnMut(usize)) -> io::Result<()> {
        let timeout = match until {
            Until::Now => Some(Duration::ZERO),
            Until::Then(then) => Some(then.saturating_duration_since(Instant::now())),
            Until::Something => None,
        };
        self.events.clear();
        match self.wait_for(timeout) {
            // Before Linux 5.11 there are only milliseconds.
            Err(Errno::NOSYS) => {
                let rounded = |time: Duration| {
                    Duration::from_secs(time.as_secs())
                        + Duration::from_millis(u64::from(time.subsec_millis()) + 1)
                };
                self.wait_for(timeout.map(rounded))?;
            }
            Err(Errno::INTR) => {}
            waited => waited?,
        }
        for event in &self.events {
            let client = event.data.u64();
            if client != ALARM {
                ready(usize::try_from(client).expect("it was a usize"));
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, timeout: Option<Duration>) -> Result<(), Errno> {
        let forever = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
        let timeout = timeout.map(|time| Timespec::try_from(time).unwrap_or(forever));
        epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref())?;
        Ok(())
    }
}

/// How long to wait at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Not at all.
    Now,
    /// Until this time.
    Then(Instant),
    /// As long as it takes.
    Something,
}
