//! The protocol of a session, without a runtime and without waiting: messages are composed in one
//! buffer and read from another, and both are reused. A statement costs one system call to send,
//! one to receive, and no allocation.
//!
//! ```text
//! query, parse, bind, …  ─▶ [outgoing] ─send()──▶ server
//!                 next() ◀─ [incoming] ◀─receive()─ server
//! ```
//!
//! ("54. Frontend/Backend Protocol" in PostgreSQL's documentation; "54.7 Message Formats".)

mod incoming;
mod message;
mod outgoing;

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use connect::{
    CLOSED_WITHOUT_A_WORD, Canceller, ConnectError, RawConnection, ServerError, Stream, Transport, why_lost,
};
use incoming::Incoming;
pub use message::{Columns, Copied, Message, Row, TransactionStatus};
use outgoing::Outgoing;

/// A session. Compose messages, [`send`](Self::send) them, and whenever its socket is readable
/// [`receive`](Self::receive) and take the messages with [`next`](Self::next). Dropping it ends the session.
///
/// Errors are [`ConnectError::Lost`] with the server's last message, or [`ConnectError::Protocol`];
/// after either, the session can only be dropped. An error of a statement is a [`Message`].
pub struct Wire {
    stream: Stream,
    outgoing: Outgoing,
    incoming: Incoming,
    canceller: Canceller,
    transport: Transport,
    at: String,
    /// The server's last notice: when another backend has crashed, the server ends sessions with a
    /// warning only.
    farewell: Option<Box<ServerError>>,
}

impl Wire {
    /// Takes over a session that is ready for its first query.
    pub fn new(connection: RawConnection) -> Self {
        let RawConnection { stream, canceller, transport, at } = connection;
        let (outgoing, incoming) = (Outgoing::default(), Incoming::default());
        Self { stream, outgoing, incoming, canceller, transport, at, farewell: None }
    }

    /// Composes a Query: one or several statements without parameters, which `write` appends.
    pub fn query(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.outgoing.query(write);
    }

    /// Composes a Parse; the statement named "" lasts until the next one of that name.
    pub fn parse(&mut self, statement: &str, sql: &str) {
        self.outgoing.parse(statement, sql);
    }

    /// Composes a Bind of a statement to the unnamed portal. For each parameter `write` appends its
    /// value as text, or returns false for NULL. Results come as text.
    ///
    /// # Panics
    ///
    /// There are more than the protocol's 65535 parameters.
    pub fn bind<P>(
        &mut self,
        statement: &str,
        parameters: &[P],
        write: impl FnMut(&P, &mut Vec<u8>) -> bool,
    ) {
        self.outgoing.bind(statement, parameters, write);
    }

    /// Composes a Describe of the unnamed portal: a [`Message::RowDescription`] or [`Message::NoData`] comes.
    pub fn describe(&mut self) {
        self.outgoing.describe();
    }

    /// Composes an Execute of the unnamed portal, for all its rows.
    pub fn execute(&mut self) {
        self.outgoing.execute();
    }

    /// Composes a Sync: after an error the server continues here. It answers with
    /// [`Message::ReadyForQuery`].
    pub fn sync(&mut self) {
        self.outgoing.sync();
    }

    /// Composes a Flush: the server sends its results so far.
    pub fn flush(&mut self) {
        self.outgoing.flush();
    }

    /// Sends the composed messages as far as the socket takes them; [`Self::receive`] sends the
    /// rest when the server has read more.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    #[inline]
    pub fn send(&mut self) -> Result<(), ConnectError> {
        while self.has_unsent() {
            let sent = match self.outgoing.unsent() {
                [] => self.stream.flush().map(|()| 0),
                bytes => self.stream.write(bytes),
            };
            match sent {
                Ok(count) => self.outgoing.sent(count),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return Err(self.last_words()),
                    _ => return Err(self.lost(&error)),
                },
            }
        }
        Ok(())
    }

    /// Whether a part of the composed messages has not been sent yet.
    pub fn has_unsent(&self) -> bool {
        !self.outgoing.unsent().is_empty() || self.stream.has_unsent()
    }

    /// Receives bytes without waiting, and sends the unsent rest. Then take all
    /// messages with [`Self::next`]. False if no more bytes can have arrived meanwhile. Otherwise a
    /// caller that epoll notifies only once (edge-triggered) has to call it again.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    #[inline]
    pub fn receive(&mut self) -> Result<bool, ConnectError> {
        if self.has_unsent() {
            self.send()?;
        }
        let room = self.incoming.space().len();
        let count = self.read()?;
        Ok(count == room || (count > 0 && self.stream.is_encrypted()))
    }

    /// Reads, and returns the number of bytes.
    #[inline]
    fn read(&mut self) -> Result<usize, ConnectError> {
        let mut total = 0;
        loop {
            match self.stream.read(self.incoming.space()) {
                Ok(0) => return Err(self.closed()),
                Ok(count) => {
                    total += count;
                    self.incoming.filled(count);
                    if self.stream.is_drained() {
                        return Ok(total);
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(total),
                    _ => return Err(self.lost(&error)),
                },
            }
        }
    }

    /// The error for a failed write, with the message that the server sent before it closed the
    /// connection.
    fn last_words(&mut self) -> ConnectError {
        loop {
            let end = match self.read() {
                Ok(0) => Some(self.closed()),
                Ok(_) => None,
                Err(end) => Some(end),
            };
            match (self.pass_over(), end) {
                (Err(words), _) => return words,
                (Ok(()), Some(end)) => return end,
                (Ok(()), None) => {}
            }
        }
    }

    /// Takes all messages and discards them.
    fn pass_over(&mut self) -> Result<(), ConnectError> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// The next message, if it has arrived completely. Skips notices and the like.
    ///
    /// # Errors
    ///
    /// The server ends the session (an error of severity FATAL or PANIC), or its message is not
    /// understood.
    #[expect(clippy::should_implement_trait, reason = "no iterator's: a message borrows the wire")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Message<'_>>, ConnectError> {
        loop {
            let (kind, body) = match self.incoming.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(None),
                Err(why) => return Err(self.misunderstood(why)),
            };
            match kind {
                b'N' => {
                    if let Some(farewell) = message::farewell(self.incoming.bytes(body)) {
                        self.farewell = Some(farewell);
                    }
                }
                // ParameterStatus, NotificationResponse, ParameterDescription, CopyData, CopyDone.
                b'S' | b'A' | b't' | b'd' | b'c' => {}
                b'E' => {
                    let error = Box::new(ServerError::parse(self.incoming.bytes(body)));
                    return match error.severity.as_str() {
                        "ERROR" => Ok(Some(Message::Error(error))),
                        _ => Err(self.ended_by(error)),
                    };
                }
                kind => {
                    return match Message::parse(kind, self.incoming.bytes(body)) {
                        Ok(message) => Ok(Some(message)),
                        Err(why) => Err(self.misunderstood(why)),
                    };
                }
            }
        }
    }

    /// Cancels the session's statement.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Socket or TCP, with TLS or without.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    fn ended_by(&self, error: Box<ServerError>) -> ConnectError {
        ConnectError::Lost { at: self.at.clone(), why: error.to_string(), error: Some(error) }
    }

    fn closed(&mut self) -> ConnectError {
        match self.farewell.take() {
            Some(farewell) => self.ended_by(farewell),
            None => {
                ConnectError::Lost { at: self.at.clone(), error: None, why: CLOSED_WITHOUT_A_WORD.to_owned() }
            }
        }
    }

    fn lost(&self, error: &io::Error) -> ConnectError {
        ConnectError::Lost { at: self.at.clone(), error: None, why: why_lost(error) }
    }

    fn misunderstood(&self, why: String) -> ConnectError {
        ConnectError::Protocol { at: self.at.clone(), why }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Drop for Wire {
    /// Sends Terminate, if that is possible without waiting and no other message is half sent.
    fn drop(&mut self) {
        if !self.has_unsent() {
            self.outgoing.terminate();
            // A server that cannot be told finds the socket closed.
            let _ = self.send();
            self.stream.bid_farewell();
        }
    }
}
