//! A connection whose peer takes nothing for a while.
//!
//! TCP_USER_TIMEOUT ends a connection of a dead network. But it also ends one whose peer is alive and keeps its
//! receive window shut (Linux, `tcp_probe_timer`): a server whose COPY waits for a lock or for its disk. So while
//! a write waits, the peer's machine is asked by other means, and the time-out is lifted as long as it answers.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;

/// Time between a write that starts to wait, or an answer of the peer's machine, and the next
/// question to that machine. Question and answer together must take less than the time-out.
const INTERVAL: Duration = Duration::from_secs(5);

/// Watches one socket's writes.
pub(super) struct BlockedWrites {
    peer: SocketAddr,
    user_timeout: Duration,
    question: Option<Question>,
    is_lifted: bool,
}

type Question = Pin<Box<dyn Future<Output = bool> + Send>>;

impl BlockedWrites {
    /// Watches the writes of a connection to `peer` that has this TCP_USER_TIMEOUT.
    pub(super) fn new(peer: SocketAddr, user_timeout: Duration) -> Self {
        Self { peer, user_timeout, question: None, is_lifted: false }
    }

    /// To be called when a write waits. Asks whether the peer's machine is reachable, wakes the
    /// task when the answer is there, and lifts or restores the time-out accordingly.
    pub(super) fn waits(&mut self, socket: &TcpStream, cx: &mut Context<'_>) {
        loop {
            let peer = self.peer;
            let question = self.question.get_or_insert_with(|| Box::pin(is_reachable(peer)));
            let Poll::Ready(is_reachable) = question.as_mut().poll(cx) else { return };
            self.question = None;
            self.lift(socket, is_reachable);
        }
    }

    /// To be called when a write succeeded. Restores the time-out.
    pub(super) fn went_out(&mut self, socket: &TcpStream) {
        self.question = None;
        self.lift(socket, false);
    }

    fn lift(&mut self, socket: &TcpStream, lift: bool) {
        if self.is_lifted != lift {
            let timeout = if lift { None } else { Some(self.user_timeout) };
            // If it fails, the connection has ended.
            let _ = set_user_timeout(socket, timeout);
            self.is_lifted = lift;
        }
    }
}

/// Whether the machine answers: it accepts or refuses a connection.
async fn is_reachable(peer: SocketAddr) -> bool {
    tokio::time::sleep(INTERVAL).await;
    match tokio::time::timeout(INTERVAL, TcpStream::connect(peer)).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

/// Sets TCP_USER_TIMEOUT on systems that have it.
pub(super) fn set_user_timeout(socket: &TcpStream, timeout: Option<Duration>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    SockRef::from(socket).set_tcp_user_timeout(timeout)?;
    Ok(())
}
