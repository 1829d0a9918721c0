//! A session's byte stream without a runtime: a non-blocking socket, with TLS in front of it or not.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustls::ClientConnection;

use super::open::Registered;

/// Reads and writes never wait: where they would, they fail with [`io::ErrorKind::WouldBlock`], and
/// [`AsFd`] gives the descriptor to wait for. Dropping it closes the socket.
pub struct Stream {
    socket: PlainSocket,
    tls: Option<Box<Tls>>,
    /// The session's place in the list of those that are open.
    registered: Option<Registered>,
}

/// A non-blocking socket.
pub(super) enum PlainSocket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The TLS session of a socket.
struct Tls {
    session: ClientConnection,
    /// Bytes that are decrypted and have not been read, so that no poll would tell of them.
    plaintext: usize,
}

impl Stream {
    pub(super) fn plain(socket: PlainSocket) -> Self {
        Self { socket, tls: None, registered: None }
    }

    /// # Errors
    ///
    /// If the bytes that the session has received so far are not valid TLS.
    pub(super) fn encrypted(socket: PlainSocket, session: ClientConnection) -> io::Result<Self> {
        let mut tls = Box::new(Tls { session, plaintext: 0 });
        tls.decrypt()?;
        Ok(Self { socket, tls: Some(tls), registered: None })
    }

    /// Keeps the session in the list of open ones until this stream is dropped.
    pub(super) fn hold(&mut self, registered: Registered) {
        self.registered = Some(registered);
    }

    /// Whether it is inside TLS.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether all that has left the socket has been read too. If not, read on: the socket need not become
    /// readable again.
    pub fn is_drained(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.plaintext == 0)
    }

    /// Whether something that was written waits to be flushed.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.wants_write())
    }

    /// Sends TLS's close_notify, as far as that is possible without waiting. Does nothing without
    /// TLS.
    pub fn bid_farewell(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.session.send_close_notify();
            // It hears it from the socket's end otherwise.
            let _ = tls.flush(&mut self.socket);
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            PlainSocket::Unix(socket) => socket.as_fd(),
            PlainSocket::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => tls.read(&mut self.socket, buffer),
        }
    }
}

impl Write for Stream {
    /// With TLS, a part of the accepted bytes may still have to be flushed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => tls.write(&mut self.socket, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.flush(&mut self.socket))
    }
}

impl Tls {
    fn read(&mut self, socket: &mut PlainSocket, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Ok(count) => {
                    self.plaintext -= count;
                    return Ok(count);
                }
                // A server that dies does not take leave of TLS first: an end like that of a plain socket.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) => {}
            }
            self.session.read_tls(socket)?;
            self.decrypt()?;
        }
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let state = self.session.process_new_packets();
        let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.plaintext = state.plaintext_bytes_to_read();
        Ok(())
    }

    fn write(&mut self, socket: &mut PlainSocket, bytes: &[u8]) -> io::Result<usize> {
        loop {
            // The session takes nothing when it has too much that is unsent.
            let taken = self.session.writer().write(bytes)?;
            match self.flush(socket) {
                Err(error) if taken == 0 || error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ if taken == 0 && !bytes.is_empty() => {}
                _ => return Ok(taken),
            }
        }
    }

    fn flush(&mut self, socket: &mut PlainSocket) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(socket)?;
        }
        Ok(())
    }
}

impl Read for PlainSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(buffer),
            Self::Tcp(socket) => socket.read(buffer),
        }
    }
}

impl Write for PlainSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(bytes),
            Self::Tcp(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
