//! Waits until one of a job's clients can continue.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::run::stop_signal::StopSignal;

/// Token of the stop signal, instead of a client's number.
const STOP_SIGNAL: u64 = u64::MAX;
/// Token of the timer.
const TIMER: u64 = u64::MAX - 1;
/// Maximum number of events that one wait returns.
const AT_ONCE: usize = 64;

/// The sockets of a job's clients, the [`StopSignal`], and a timer.
///
/// `epoll_wait` counts milliseconds, which is as long as a fast transaction takes. A timerfd counts nanoseconds on
/// every kernel, and the kernel does not delay it by the thread's timer slack (50 µs), as it delays the timeouts of
/// `epoll_pwait2` and `ppoll`: see `timerfd_setup` in Linux's fs/timerfd.c.
pub(crate) struct Waiter {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The time that the timer is set for.
    set_for: Option<Instant>,
    events: Vec<epoll::Event>,
}

impl Waiter {
    /// A waiter without clients.
    pub(crate) fn new(stop_signal: &StopSignal) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        // One event is enough: the stop signal stays raised, and the timer is never read.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, stop_signal, epoll::EventData::new_u64(STOP_SIGNAL), flags)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), flags)?;
        Ok(Self { epoll, timer, set_for: None, events: Vec::with_capacity(AT_ONCE) })
    }

    /// Watches this client's socket for data, until it is closed.
    pub(crate) fn add(&self, client: usize, socket: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(client as u64);
        Ok(epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN)?)
    }

    /// Starts or stops watching for room in the socket.
    pub(crate) fn watch_for_room(&self, client: usize, socket: impl AsFd, watch: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(client as u64);
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, watch);
        Ok(epoll::modify(&self.epoll, socket, data, flags)?)
    }

    /// Waits for a client or the stop signal, at most until `until`. `ready` is called with clients'
    /// numbers. It may return early without any.
    pub(crate) fn wait(&mut self, until: Until, mut ready: impl FnMut(usize)) -> io::Result<()> {
        let may_block = match until {
            Until::Now => false,
            Until::Then(then) => self.set_timer(then)?,
            Until::Something => true,
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), (!may_block).then_some(&at_once)) {
            Err(Errno::INTR) => {}
            waited => {
                waited?;
            }
        }
        for event in &self.events {
            let client = event.data.u64();
            if client != STOP_SIGNAL && client != TIMER {
                ready(usize::try_from(client).expect("it was a usize"));
            }
        }
        Ok(())
    }

    /// Sets the timer. False if the time has already passed.
    fn set_timer(&mut self, then: Instant) -> io::Result<bool> {
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() || self.set_for == Some(then) {
            return Ok(!left.is_zero());
        }
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let forever = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: once, it_value: Timespec::try_from(left).unwrap_or(forever) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        self.set_for = Some(then);
        Ok(true)
    }
}

/// Limit of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Do not wait.
    Now,
    /// Wait until this time.
    Then(Instant),
    /// Wait without limit.
    Something,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// Long enough for the slowest machine.
    const DEADLINE: Duration = Duration::from_mins(1);

    fn waiter() -> (Waiter, StopSignal) {
        let stop_signal = StopSignal::new().unwrap();
        (Waiter::new(&stop_signal).unwrap(), stop_signal)
    }

    /// Waits again and again until that time, as a job does. Returns the clients that became ready.
    fn wait_until(waiter: &mut Waiter, then: Instant) -> Vec<usize> {
        let mut clients = Vec::new();
        while Instant::now() < then {
            waiter.wait(Until::Then(then), |client| clients.push(client)).unwrap();
        }
        clients
    }

    #[test]
    fn a_wait_ends_at_its_time_and_not_before() {
        let (mut waiter, _alarm) = waiter();
        for microseconds in [0, 1, 30, 300, 999, 1000, 1001, 2500] {
            let then = Instant::now() + Duration::from_micros(microseconds);
            // Nothing else can end it.
            waiter.wait(Until::Then(then), |_| panic!("there is no client")).unwrap();
            assert!(Instant::now() >= then, "{microseconds} us");
        }
    }

    #[test]
    fn a_wait_is_finer_than_a_millisecond() {
        let (mut waiter, _alarm) = waiter();
        let given_up = Instant::now() + DEADLINE;
        loop {
            let began = Instant::now();
            wait_until(&mut waiter, began + Duration::from_micros(100));
            // A machine that is busy with other work needs more than one attempt.
            if began.elapsed() < Duration::from_millis(1) {
                break;
            }
            assert!(Instant::now() < given_up, "no wait of 100 us ended within 1 ms");
        }
    }

    #[test]
    fn a_client_ends_a_wait_and_the_timer_still_ends_the_next() {
        let (mut waiter, _alarm) = waiter();
        let socket = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        waiter.add(7, &socket).unwrap();
        let mut clients = Vec::new();
        let then = Instant::now() + DEADLINE;
        waiter.wait(Until::Then(then), |client| clients.push(client)).unwrap();
        assert_eq!(clients, [7]);
        assert!(Instant::now() < then);
        rustix::io::read(&socket, &mut [0; 8]).unwrap();
        // An earlier time, a later one, and the same one again.
        let soon = Instant::now() + Duration::from_millis(1);
        assert!(wait_until(&mut waiter, soon).is_empty());
        let later = soon + Duration::from_millis(5);
        waiter.set_timer(later).unwrap();
        assert!(wait_until(&mut waiter, later).is_empty());
    }

    #[test]
    fn a_time_that_has_passed_does_not_hide_clients_that_are_ready() {
        let (mut waiter, _alarm) = waiter();
        let socket = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        waiter.add(3, &socket).unwrap();
        let past = Instant::now();
        for until in [Until::Then(past), Until::Now, Until::Something] {
            let mut clients = Vec::new();
            waiter.wait(until, |client| clients.push(client)).unwrap();
            assert_eq!(clients, [3], "{until:?}");
        }
    }

    #[test]
    fn the_alarm_ends_a_wait() {
        let (mut waiter, stop_signal) = waiter();
        let then = Instant::now() + DEADLINE;
        stop_signal.raise();
        waiter.wait(Until::Then(then), |_| panic!("there is no client")).unwrap();
        assert!(Instant::now() < then);
    }
}
