//! State of a session, from its traffic: the request that the server has not answered yet, and since when
//! nothing has moved. The driver tells none of this.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A message's type and length.
const HEADER: usize = 5;
/// Number of characters of a statement's text that are shown.
const SHOWN: usize = 70;
/// Number of bytes of a message that are kept, to find a statement's text in them.
const KEPT: usize = 512;

/// A session's traffic in both directions.
#[derive(Debug, Default)]
pub(super) struct Traffic(Mutex<Exchange>);

#[derive(Debug, Default)]
struct Exchange {
    /// Requests without the ReadyForQuery that ends their answer.
    unanswered: u32,
    /// Whether the last request was a Sync. The server ignores a Sync that arrives while it reads
    /// COPY data.
    last_was_sync: bool,
    /// Whether the server waits for COPY data. The client may have none at the moment.
    in_copy: bool,
    /// Whether the socket takes no more.
    is_full: bool,
    /// Time of the last byte sent or received.
    moved: Option<Instant>,
    /// The beginning of the last statement.
    statement: String,
    /// Statements that are prepared, by name.
    prepared: HashMap<String, String>,
}

impl Traffic {
    /// Whether the server has something to do.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state();
        state.unanswered > 0 || state.in_copy
    }

    /// Whether the server waits for the data of a COPY from this session. A cancel request does not
    /// end such a COPY; the end of the session does.
    pub(super) fn is_in_copy(&self) -> bool {
        self.state().in_copy
    }

    /// Time that the server has been silent, and the statement that it has not answered; none if
    /// the server has nothing to answer.
    pub(super) fn silence(&self, now: Instant) -> Option<(Duration, String)> {
        let state = self.state();
        let is_its_turn = if state.in_copy { state.is_full } else { state.unanswered > 0 };
        let since = state.moved.filter(|_| is_its_turn)?;
        Some((now.saturating_duration_since(since), state.statement.clone()))
    }

    /// Something came in.
    pub(super) fn received(&self) {
        self.state().moved = Some(Instant::now());
    }

    /// A message of this type came in.
    pub(super) fn message_received(&self, kind: u8) {
        let mut state = self.state();
        match kind {
            // ReadyForQuery
            b'Z' => {
                state.unanswered = state.unanswered.saturating_sub(1);
                state.in_copy = false;
            }
            // CopyInResponse. From now on the server ignores a Sync.
            b'G' => {
                state.in_copy = true;
                if state.last_was_sync {
                    state.unanswered = state.unanswered.saturating_sub(1);
                }
            }
            // ErrorResponse
            b'E' => state.in_copy = false,
            _ => {}
        }
    }

    /// The socket took something.
    fn sent(&self) {
        let mut state = self.state();
        state.is_full = false;
        state.moved = Some(Instant::now());
    }

    /// The socket takes nothing at the moment.
    pub(super) fn held_up(&self) {
        self.state().is_full = true;
    }

    /// Takes note of a sent message of this type whose body begins with these bytes.
    fn message_sent(&self, kind: u8, body: &[u8]) {
        let mut state = self.state();
        let mut texts = body.split(|byte| *byte == 0).map(excerpt);
        let (first, second) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        match kind {
            // Query
            b'Q' => {
                state.unanswered += 1;
                state.last_was_sync = false;
                state.statement = first;
            }
            // Sync
            b'S' => {
                state.unanswered += 1;
                state.last_was_sync = true;
            }
            // Parse: name, text
            b'P' => {
                state.statement.clone_from(&second);
                state.prepared.insert(first, second);
            }
            // Bind: portal, name
            b'B' => {
                if let Some(statement) = state.prepared.get(&second).cloned() {
                    state.statement = statement;
                }
            }
            // Close: S for a statement, name
            b'C' => {
                if let Some(name) = first.strip_prefix('S') {
                    state.prepared.remove(name);
                }
            }
            // CopyDone, CopyFail
            b'c' | b'f' => state.in_copy = false,
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a statement, on one line, without the lines of comments before it.
fn excerpt(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown = String::new();
    let lines = text.lines().skip_while(|line| line.is_empty() || line.starts_with("--"));
    for word in lines.flat_map(str::split_whitespace) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
        if shown.chars().count() > SHOWN {
            let cut: String = shown.chars().take(SHOWN).collect();
            return cut + "…";
        }
    }
    shown
}

/// Follows one outgoing stream, which begins with a startup message.
#[derive(Debug)]
pub(super) struct Outgoing {
    header: Vec<u8>,
    /// Bytes of the current message that are still to come.
    left: usize,
    /// The current message so far, as much as is of interest.
    body: Vec<u8>,
    /// The startup message has no type.
    has_begun: bool,
}

impl Default for Outgoing {
    fn default() -> Self {
        // As if it had a type.
        Self { header: vec![0], left: 0, body: Vec::new(), has_begun: false }
    }
}

impl Outgoing {
    /// The next bytes went out.
    pub(super) fn sent(&mut self, mut bytes: &[u8], traffic: &Traffic) {
        traffic.sent();
        while !bytes.is_empty() {
            if self.header.len() < HEADER {
                let (taken, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(taken);
                bytes = rest;
                if let [_, length @ ..] = self.header.as_slice()
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    // The length counts itself.
                    self.left = (u32::from_be_bytes(length) as usize).saturating_sub(4);
                    self.body.clear();
                }
            } else {
                let (taken, rest) = bytes.split_at(bytes.len().min(self.left));
                let kept = taken.len().min(KEPT.saturating_sub(self.body.len()));
                // Of COPY data nothing is of interest.
                if self.header[0] != b'd' {
                    self.body.extend_from_slice(&taken[..kept]);
                }
                self.left -= taken.len();
                bytes = rest;
            }
            if self.header.len() == HEADER && self.left == 0 {
                if self.has_begun {
                    traffic.message_sent(self.header[0], &self.body);
                }
                self.has_begun = true;
                self.header.clear();
            }
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

    fn startup() -> Vec<u8> {
        message(0, b"\0\x03\0\0user\0me\0\0")[1..].to_vec()
    }

    /// Sends it in pieces of every size.
    fn each_way(bytes: &[u8], check: impl Fn(&Traffic)) {
        for size in 1..=bytes.len() {
            let (traffic, mut outgoing) = (Traffic::default(), Outgoing::default());
            bytes.chunks(size).for_each(|bytes| outgoing.sent(bytes, &traffic));
            check(&traffic);
        }
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(31)
    }

    #[test]
    fn a_statement_is_waited_for_until_the_server_is_ready() {
        each_way(&[startup(), message(b'Q', b"CREATE INDEX\n  ON t (a)\0")].concat(), |traffic| {
            let (silent, statement) = traffic.silence(later()).unwrap();
            assert!(silent > Duration::from_secs(30));
            assert_eq!(statement, "CREATE INDEX ON t (a)");
            traffic.message_received(b'Z');
            assert!(!traffic.is_busy() && traffic.silence(later()).is_none());
        });
        let commented = b"-- All tables\n-- of it.\nSELECT 1 -- one\n\0";
        each_way(&[startup(), message(b'Q', commented)].concat(), |traffic| {
            assert_eq!(traffic.silence(later()).unwrap().1, "SELECT 1 -- one");
        });
        let long = [&b"SELECT "[..], &[b'x'; 900], &[0]].concat();
        each_way(&[startup(), message(b'Q', &long)].concat(), |traffic| {
            let (_, statement) = traffic.silence(later()).unwrap();
            assert!(statement.starts_with("SELECT xxx") && statement.ends_with('…'), "{statement}");
        });
    }

    #[test]
    fn prepared_statements_are_known_by_name() {
        let parse = |name: &str, text: &str| message(b'P', format!("{name}\0{text}\0\0\0").as_bytes());
        let bind = message(b'B', b"\0s0\0\0\0\0\0\0\0");
        let sync = || message(b'S', b"");
        let all = [startup(), parse("s0", "SELECT 1"), sync(), parse("s1", "SELECT 2"), sync(), bind, sync()];
        each_way(&all.concat(), |traffic| {
            assert_eq!(traffic.silence(later()).unwrap().1, "SELECT 1");
            (0..3).for_each(|_| {
                assert!(traffic.is_busy());
                traffic.message_received(b'Z');
            });
            assert!(!traffic.is_busy());
        });
    }

    #[test]
    fn a_copy_waits_for_the_server_only_while_it_takes_nothing() {
        let begin = [startup(), message(b'P', b"s0\0COPY t FROM STDIN\0\0\0"), message(b'S', b"")].concat();
        let (traffic, mut outgoing) = (Traffic::default(), Outgoing::default());
        outgoing.sent(&begin, &traffic);
        traffic.message_received(b'Z');
        outgoing.sent(&[message(b'B', b"\0s0\0"), message(b'E', b""), message(b'S', b"")].concat(), &traffic);
        traffic.message_received(b'G');
        outgoing.sent(&message(b'd', &[b'x'; 5000]), &traffic);
        assert!(traffic.is_busy() && traffic.is_in_copy());
        assert_eq!(traffic.silence(later()), None);
        traffic.held_up();
        assert_eq!(traffic.silence(later()).unwrap().1, "COPY t FROM STDIN");
        outgoing.sent(&[message(b'c', b""), message(b'S', b"")].concat(), &traffic);
        assert!(traffic.is_busy() && !traffic.is_in_copy());
        assert!(traffic.silence(later()).is_some());
        traffic.message_received(b'Z');
        assert!(!traffic.is_busy());
    }
}
