//! Observes the messages of a connection, and records errors as they arrive. The driver returns the error of a failed COPY
//! only at the end of the COPY, so a sender would send gigabytes to a server that no longer reads them; and the driver loses
//! the message that ends a session ("terminating connection …") if it finds the socket closed in the same turn.
//! So [`StreamObserver`] parses the incoming stream message by message ("54.7 Message Formats"), without changing it. It also
//! records the process ID of the server process (`BackendKeyData`), which the driver does not expose.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use super::open::note_received;
use super::server_error::ServerError;
use super::traffic::{Outgoing, Traffic};

/// A message's type and length.
const HEADER: usize = 5;
/// More of an error than this is not kept: no server says as much.
const MOST_KEPT: usize = 64 << 10;

/// The last error that the server sent on a connection, and the connection's traffic.
#[derive(Debug, Default)]
pub(super) struct Observed {
    any: AtomicBool,
    last: Mutex<Option<ServerError>>,
    /// The process ID in `BackendKeyData`; 0 before that message.
    process: AtomicI32,
    pub(super) traffic: Traffic,
}

impl Observed {
    /// Whether an error came since the last [`Self::forget`].
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Forgets earlier messages before the next one is sent.
    pub(super) fn forget(&self) {
        self.any.store(false, Ordering::Release);
    }

    /// The last error, if it is one that ends the session.
    pub(super) fn fatal_error(&self) -> Option<ServerError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|error| error.severity != "ERROR").cloned()
    }

    /// The process ID that the other side has sent in `BackendKeyData`.
    pub(super) fn process(&self) -> Option<i32> {
        Some(self.process.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    fn record(&self, error: ServerError) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.any.store(true, Ordering::Release);
    }
}

/// Parses the traffic of one stream in both directions.
#[derive(Debug)]
pub(super) struct StreamObserver {
    observed: Arc<Observed>,
    outgoing: Outgoing,
    header: [u8; HEADER],
    header_length: usize,
    /// Bytes of the current message that are still to come.
    left: usize,
    /// The type of the current message and its bytes so far, if it is an error or `BackendKeyData`.
    kept: Option<(u8, Vec<u8>)>,
}

impl StreamObserver {
    pub(super) fn new(observed: Arc<Observed>) -> Self {
        Self {
            observed,
            outgoing: Outgoing::default(),
            header: [0; HEADER],
            header_length: 0,
            left: 0,
            kept: None,
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn received(&mut self, mut bytes: &[u8]) {
        note_received();
        self.observed.traffic.received();
        while !bytes.is_empty() {
            bytes = if self.header_length < HEADER { self.take_header(bytes) } else { self.take_body(bytes) };
            if self.header_length == HEADER && self.left == 0 {
                self.finish();
            }
        }
    }

    /// Takes note of an attempt to send these bytes; `written` is its outcome.
    pub(super) fn sent(&mut self, bytes: &[u8], written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(count)) => self.outgoing.sent(&bytes[..*count], &self.observed.traffic),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.observed.traffic.held_up(),
        }
    }

    /// Least number of bytes that the current message lacks; 0 between two.
    pub(super) fn missing(&self) -> usize {
        match self.header_length {
            0 => 0,
            HEADER => self.left,
            length => HEADER - length,
        }
    }

    fn take_header<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let count = bytes.len().min(HEADER - self.header_length);
        let (taken, rest) = bytes.split_at(count);
        self.header[self.header_length..][..count].copy_from_slice(taken);
        self.header_length += count;
        if let (HEADER, [kind, length @ ..]) = (self.header_length, &self.header) {
            // The length counts itself.
            self.left = (u32::from_be_bytes(*length) as usize).saturating_sub(4);
            self.kept = matches!(*kind, b'E' | b'K').then(|| (*kind, Vec::new()));
            self.observed.traffic.message_received(*kind);
        }
        rest
    }

    fn take_body<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= taken.len();
        if let Some((_, kept)) = self.kept.as_mut().filter(|(_, kept)| kept.len() < MOST_KEPT) {
            kept.extend_from_slice(taken);
        }
        rest
    }

    fn finish(&mut self) {
        self.header_length = 0;
        match self.kept.take() {
            Some((b'E', body)) => self.observed.record(ServerError::parse(&body)),
            Some((_, body)) => {
                if let Some(process) = body.first_chunk() {
                    self.observed.process.store(i32::from_be_bytes(*process), Ordering::Release);
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind][..], &length, body].concat()
    }

    #[test]
    fn where_a_message_ends() {
        let notice = message(b'N', &[1; 300]);
        for received in 1..notice.len() {
            let mut observer = StreamObserver::new(Arc::default());
            observer.received(&message(b'Z', b"I"));
            assert_eq!(observer.missing(), 0);
            observer.received(&notice[..received]);
            let missing = if received < HEADER { HEADER - received } else { notice.len() - received };
            assert_eq!(observer.missing(), missing, "{received}");
            observer.received(&notice[received..]);
            assert_eq!(observer.missing(), 0);
        }
    }

    #[test]
    fn the_process_is_read_however_the_bytes_are_cut() {
        let key = [0, 0, 0x12, 0x34, 9, 9, 9, 9];
        let stream = [message(b'R', &[0; 4]), message(b'K', &key), message(b'Z', b"I")].concat();
        for size in 1..stream.len() {
            let observed = Arc::new(Observed::default());
            let mut reader = StreamObserver::new(Arc::clone(&observed));
            assert_eq!(observed.process(), None);
            stream.chunks(size).for_each(|bytes| reader.received(bytes));
            assert_eq!(observed.process(), Some(0x1234), "{size}");
        }
    }

    #[test]
    fn errors_are_read_however_the_bytes_are_cut() {
        let error = b"SFEHLER\0VERROR\0C53100\0Mcould not extend file\0HCheck free disk space.\0\0";
        let stream =
            [message(b'Z', b"I"), message(b'n', b""), message(b'E', error), message(b'Z', b"I")].concat();
        for size in 1..stream.len() {
            let observed = Arc::new(Observed::default());
            let mut reader = StreamObserver::new(Arc::clone(&observed));
            stream.chunks(size).for_each(|bytes| reader.received(bytes));
            assert_eq!(reader.missing(), 0);
            assert!(observed.any());
            assert_eq!(observed.fatal_error(), None, "an ERROR does not end the session");
            observed.forget();
            assert!(!observed.any());
            reader.received(&message(b'E', b"VFATAL\0C57P01\0Mterminating\0\0"));
            let last = observed.fatal_error().unwrap();
            assert_eq!((last.code.code(), last.message.as_str(), last.hint), ("57P01", "terminating", None));
        }
    }
}
