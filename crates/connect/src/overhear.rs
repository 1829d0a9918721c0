//! Errors noticed as they arrive. The driver hands a failed COPY's error over only when the COPY is
//! ended, so a sender would push gigabytes at a server that has long given up; and a session's last
//! words ("terminating connection …") are lost if the driver meets the closed socket in the same turn.
//! So the incoming stream is followed message by message ("54.7 Message Formats"), read-only. The process that the other
//! side says it is (`BackendKeyData`), which the driver keeps for itself, is noticed, too.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use super::error::ServerError;
use super::open::note_heard;
use super::traffic::{Speech, Traffic};

/// A message's type and length.
const HEADER: usize = 5;
/// More of an error than this is not kept: no server says as much.
const MOST_KEPT: usize = 64 << 10;

/// The last error that the server sent on a connection, and the connection's traffic.
#[derive(Debug, Default)]
pub(super) struct Overheard {
    any: AtomicBool,
    last: Mutex<Option<ServerError>>,
    /// The process ID in `BackendKeyData`; 0 before that message.
    process: AtomicI32,
    pub(super) traffic: Traffic,
}

impl Overheard {
    /// Whether an error came since the last [`Self::forget`].
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Forgets earlier messages before the next one is sent.
    pub(super) fn forget(&self) {
        self.any.store(false, Ordering::Release);
    }

    /// The last error, if it is one that ends the session.
    pub(super) fn last_words(&self) -> Option<ServerError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|error| error.severity != "ERROR").cloned()
    }

    /// The process ID that the other side has sent in `BackendKeyData`.
    pub(super) fn process(&self) -> Option<i32> {
        Some(self.process.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    fn tell(&self, error: ServerError) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.any.store(true, Ordering::Release);
    }
}

/// Follows one stream in both directions.
#[derive(Debug)]
pub(super) struct Ear {
    overheard: Arc<Overheard>,
    speech: Speech,
    header: [u8; HEADER],
    header_length: usize,
    /// Bytes of the current message that are still to come.
    left: usize,
    /// The type of the current message and what came of it so far, if it is an error or `BackendKeyData`.
    kept: Option<(u8, Vec<u8>)>,
}

impl Ear {
    pub(super) fn new(overheard: Arc<Overheard>) -> Self {
        Self {
            overheard,
            speech: Speech::default(),
            header: [0; HEADER],
            header_length: 0,
            left: 0,
            kept: None,
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn hear(&mut self, mut bytes: &[u8]) {
        note_heard();
        self.overheard.traffic.received();
        while !bytes.is_empty() {
            bytes = if self.header_length < HEADER { self.hear_header(bytes) } else { self.hear_body(bytes) };
            if self.header_length == HEADER && self.left == 0 {
                self.finish();
            }
        }
    }

    /// Takes note of an attempt to send these bytes; `written` is its outcome.
    pub(super) fn spoke(&mut self, bytes: &[u8], written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(count)) => self.speech.say(&bytes[..*count], &self.overheard.traffic),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.overheard.traffic.held_up(),
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

    fn hear_header<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let count = bytes.len().min(HEADER - self.header_length);
        let (taken, rest) = bytes.split_at(count);
        self.header[self.header_length..][..count].copy_from_slice(taken);
        self.header_length += count;
        if let (HEADER, [kind, length @ ..]) = (self.header_length, &self.header) {
            // The length counts itself.
            self.left = (u32::from_be_bytes(*length) as usize).saturating_sub(4);
            self.kept = matches!(*kind, b'E' | b'K').then(|| (*kind, Vec::new()));
            self.overheard.traffic.heard(*kind);
        }
        rest
    }

    fn hear_body<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
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
            Some((b'E', body)) => self.overheard.tell(ServerError::parse(&body)),
            Some((_, body)) => {
                if let Some(process) = body.first_chunk() {
                    self.overheard.process.store(i32::from_be_bytes(*process), Ordering::Release);
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
        for heard in 1..notice.len() {
            let mut ear = Ear::new(Arc::default());
            ear.hear(&message(b'Z', b"I"));
            assert_eq!(ear.missing(), 0);
            ear.hear(&notice[..heard]);
            let missing = if heard < HEADER { HEADER - heard } else { notice.len() - heard };
            assert_eq!(ear.missing(), missing, "{heard}");
            ear.hear(&notice[heard..]);
            assert_eq!(ear.missing(), 0);
        }
    }

    #[test]
    fn the_process_is_heard_however_the_bytes_are_cut() {
        let key = [0, 0, 0x12, 0x34, 9, 9, 9, 9];
        let stream = [message(b'R', &[0; 4]), message(b'K', &key), message(b'Z', b"I")].concat();
        for size in 1..stream.len() {
            let overheard = Arc::new(Overheard::default());
            let mut ear = Ear::new(Arc::clone(&overheard));
            assert_eq!(overheard.process(), None);
            stream.chunks(size).for_each(|bytes| ear.hear(bytes));
            assert_eq!(overheard.process(), Some(0x1234), "{size}");
        }
    }

    #[test]
    fn errors_are_heard_however_the_bytes_are_cut() {
        let error = b"SFEHLER\0VERROR\0C53100\0Mcould not extend file\0HCheck free disk space.\0\0";
        let stream =
            [message(b'Z', b"I"), message(b'n', b""), message(b'E', error), message(b'Z', b"I")].concat();
        for size in 1..stream.len() {
            let overheard = Arc::new(Overheard::default());
            let mut ear = Ear::new(Arc::clone(&overheard));
            stream.chunks(size).for_each(|bytes| ear.hear(bytes));
            assert_eq!(ear.missing(), 0);
            assert!(overheard.any());
            assert_eq!(overheard.last_words(), None, "an ERROR does not end the session");
            overheard.forget();
            assert!(!overheard.any());
            ear.hear(&message(b'E', b"VFATAL\0C57P01\0Mterminating\0\0"));
            let last = overheard.last_words().unwrap();
            assert_eq!((last.code.code(), last.message.as_str(), last.hint), ("57P01", "terminating", None));
        }
    }
}
