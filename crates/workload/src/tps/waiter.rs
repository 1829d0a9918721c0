//! Waits until one of a job's clients can go on.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Instead of a client's number: the timer, or the [`Alarm`](super::alarm::Alarm).
const NO_CLIENT: u64 = u64::MAX;
/// How many clients are told of at once.
const AT_ONCE: usize = 64;

/// Sockets, a timer, and a way to be woken up. Each event is told once: what made it must be dealt with, or
/// remembered.
pub(super) struct Waiter {
    epoll: Epoll,
    timer: TimerFd,
    armed: Option<Instant>,
    events: Vec<EpollEvent>,
}

impl Waiter {
    /// Waits for nothing yet but for `alarm`.
    pub(super) fn new(alarm: impl AsFd) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        epoll.add(timer.as_fd(), Self::event(EpollFlags::EPOLLIN, NO_CLIENT))?;
        epoll.add(alarm, Self::event(EpollFlags::EPOLLIN, NO_CLIENT))?;
        Ok(Self { epoll, timer, armed: None, events: vec![EpollEvent::empty(); AT_ONCE] })
    }

    fn event(wanted: EpollFlags, data: u64) -> EpollEvent {
        EpollEvent::new(wanted | EpollFlags::EPOLLET, data)
    }

    /// From now on tells when this client's socket has something to read or takes more, until it is closed.
    pub(super) fn add(&self, client: usize, socket: impl AsFd) -> io::Result<()> {
        let wanted = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
        Ok(self.epoll.add(socket, Self::event(wanted, client as u64))?)
    }

    /// Waits for a client, or until then; does not wait if `until` is past. `ready` gets clients' numbers.
    pub(super) fn wait(&mut self, until: Option<Instant>, mut ready: impl FnMut(usize)) -> io::Result<()> {
        let timeout = match until {
            Some(until) if !self.arm(until)? => EpollTimeout::ZERO,
            _ => EpollTimeout::NONE,
        };
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Err(Errno::EINTR) => 0,
            count => count?,
        };
        for event in &self.events[..count] {
            if let Ok(client) = usize::try_from(event.data())
                && event.data() != NO_CLIENT
            {
                ready(client);
            }
        }
        Ok(())
    }

    /// Sets the timer; false if it is past.
    fn arm(&mut self, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        if self.armed != Some(until) {
            let expiration = Expiration::OneShot(TimeSpec::from_duration(left));
            self.timer.set(expiration, TimerSetTimeFlags::empty())?;
            self.armed = Some(until);
        }
        Ok(true)
    }
}
