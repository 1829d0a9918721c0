//! Waiting for servers' answers, many at once.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Wire;

/// Waits until one of many wires has something to receive, or can send what it could not send before. It
/// keeps its lists from one wait to the next: nothing is allocated.
#[derive(Default)]
pub struct Waiter {
    fds: Vec<PollFd<'static>>,
    keys: Vec<usize>,
    ready: Vec<usize>,
}

impl Waiter {
    /// The keys of those wires that are ready, to [`Wire::receive`]. None if the time is over, or a signal
    /// came. Without any wire it sleeps; without a timeout it waits as long as it takes.
    ///
    /// # Errors
    ///
    /// The operating system's: it has no memory for so many.
    pub fn wait<'w>(
        &mut self,
        wires: impl IntoIterator<Item = (usize, &'w Wire)>,
        timeout: Option<Duration>,
    ) -> io::Result<&[usize]> {
        let mut fds: Vec<PollFd<'w>> = std::mem::take(&mut self.fds);
        self.keys.clear();
        self.ready.clear();
        for (key, wire) in wires {
            let flags = if wire.has_unsent() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(wire.as_fd(), flags));
            self.keys.push(key);
        }
        // More than the platform's longest time is not to be told from it.
        let timeout =
            timeout.map(|time| Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }));
        let found = poll(&mut fds, timeout.as_ref());
        let answered = fds.iter().zip(&self.keys).filter(|(fd, _)| !fd.revents().is_empty());
        self.ready.extend(answered.map(|(_, key)| *key));
        self.fds = emptied(fds);
        match found {
            Ok(_) | Err(Errno::INTR) => Ok(&self.ready),
            Err(error) => Err(error.into()),
        }
    }
}

/// The list's memory, for another list.
fn emptied(mut fds: Vec<PollFd<'_>>) -> Vec<PollFd<'static>> {
    fds.clear();
    // A collection in place, as the element's size is the same.
    fds.into_iter().map(|_| unreachable!("it is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_used_again() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let fds: Vec<PollFd<'_>> = (0..100).map(|_| PollFd::new(&socket, PollFlags::IN)).collect();
        let (place, capacity) = (fds.as_ptr().addr(), fds.capacity());
        let again = emptied(fds);
        assert_eq!((again.as_ptr().addr(), again.capacity()), (place, capacity));
    }

    #[test]
    fn time_passes_without_wires() {
        let mut waiter = Waiter::default();
        let no_wires = std::iter::empty();
        assert!(waiter.wait(no_wires, Some(Duration::from_millis(1))).unwrap().is_empty());
    }
}
