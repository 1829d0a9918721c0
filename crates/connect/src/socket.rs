//! The socket under a connection: opening it, and noticing that the other end is no PostgreSQL.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::blocked::{BlockedWrites, set_user_timeout};
use super::error::ConnectError;
use super::handover::Followed;
use super::observe::{Observed, StreamObserver};
use super::stream::{PlainSocket, Stream};
use super::target::{Keepalives, TcpOptions};
use super::transport::host_port;

/// Address of a socket, with the name resolved.
#[derive(Debug, Clone)]
pub enum ResolvedAddress {
    /// A Unix-domain socket, at this path.
    Unix(PathBuf),
    /// TCP.
    Tcp {
        /// The host of the options: a name or an address.
        host: String,
        /// The address of the host, and the port.
        socket: SocketAddr,
    },
}

impl std::fmt::Display for ResolvedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "socket {}", path.display()),
            Self::Tcp { host, socket } => {
                f.write_str(&host_port(host, socket.port()))?;
                if *host == socket.ip().to_string() { Ok(()) } else { write!(f, " ({})", socket.ip()) }
            }
        }
    }
}

/// An open socket.
pub(super) enum Socket {
    Unix(UnixStream),
    /// With a guard for writes that wait, unless the user has set tcp_user_timeout.
    Tcp(TcpStream, Option<BlockedWrites>),
}

impl Socket {
    pub(super) async fn open(address: &ResolvedAddress, options: &TcpOptions) -> Result<Self, ConnectError> {
        let opened = match address {
            ResolvedAddress::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
            ResolvedAddress::Tcp { socket, .. } => open_tcp(*socket, options).await.map(|stream| {
                let timeout = options.user_timeout.filter(|_| options.is_default);
                Self::Tcp(stream, timeout.map(|timeout| BlockedWrites::new(*socket, timeout)))
            }),
        };
        opened.map_err(|source| unreachable_at(address, source))
    }

    /// Takes the socket from the tokio runtime; it stays non-blocking.
    fn into_std(self) -> io::Result<PlainSocket> {
        match self {
            Self::Unix(stream) => stream.into_std().map(PlainSocket::Unix),
            Self::Tcp(stream, _) => stream.into_std().map(PlainSocket::Tcp),
        }
    }
}

async fn open_tcp(address: SocketAddr, options: &TcpOptions) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    set_user_timeout(&stream, options.user_timeout)?;
    let socket = SockRef::from(&stream);
    if let Some(Keepalives { idle, interval, count }) = options.keepalives {
        let mut keepalive = TcpKeepalive::new();
        keepalive = idle.into_iter().fold(keepalive, TcpKeepalive::with_time);
        keepalive = interval.into_iter().fold(keepalive, TcpKeepalive::with_interval);
        keepalive = count.into_iter().fold(keepalive, TcpKeepalive::with_retries);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(stream)
}

fn unreachable_at(address: &ResolvedAddress, source: io::Error) -> ConnectError {
    let at = address.to_string();
    match (source.kind(), address) {
        (io::ErrorKind::ConnectionRefused, ResolvedAddress::Tcp { .. }) => {
            let remedy = "check host and port, that the server runs, and its listen_addresses";
            ConnectError::Refused { at, remedy }
        }
        (io::ErrorKind::ConnectionRefused, ResolvedAddress::Unix(_)) => ConnectError::Refused {
            at,
            remedy: "check that the server runs: the socket file may be from a server that has ended",
        },
        (kind, address) => {
            let remedy = match (kind, address) {
                (io::ErrorKind::NotFound, ResolvedAddress::Unix(socket)) => without_socket(socket),
                (io::ErrorKind::PermissionDenied, ResolvedAddress::Unix(_)) => {
                    "the permissions of the socket (unix_socket_permissions) or of its directory deny access to \
                     this account"
                        .into()
                }
                _ => "check host, network and firewall".into(),
            };
            ConnectError::Unreachable { at, source, remedy }
        }
    }
}

/// Beginning of the name of a socket; the port follows.
const SOCKET_PREFIX: &str = ".s.PGSQL.";

/// The remedy for a socket that does not exist: the ports of those in its directory.
fn without_socket(socket: &Path) -> Cow<'static, str> {
    let files = socket.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    let names = files.into_iter().flatten().filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut ports: Vec<u16> =
        names.filter_map(|name| name.strip_prefix(SOCKET_PREFIX)?.parse().ok()).collect();
    ports.sort_unstable();
    match &ports[..] {
        [] => "is the server running there and using that socket? Check the directory (-h) and the port (-p)"
            .into(),
        [port] => format!("this directory has the socket of port {port}: give -p {port}").into(),
        several => {
            let several: Vec<String> = several.iter().map(u16::to_string).collect();
            format!("this directory has the sockets of ports {}: give one with -p", several.join(", ")).into()
        }
    }
}

/// A socket whose first byte from the server is checked: PostgreSQL answers a startup packet with
/// Authentication (R), ErrorResponse (E), NegotiateProtocolVersion (v) or a notice (N). Another protocol's
/// bytes would be taken for the length of a message that never ends.
pub(super) struct Checked {
    socket: Socket,
    pending: bool,
    observer: Option<StreamObserver>,
}

impl Checked {
    /// Checks the first byte read, and notices errors.
    pub(super) fn new(socket: Socket, observed: Arc<Observed>) -> Self {
        Self { socket, pending: true, observer: Some(StreamObserver::new(observed)) }
    }

    /// A socket that is not checked and whose messages are not followed: the TLS stream around it
    /// does both.
    pub(super) fn passed(socket: Socket) -> Self {
        Self { socket, pending: false, observer: None }
    }

    /// The bare socket: neither check nor observer.
    pub(super) fn into_socket(self) -> io::Result<PlainSocket> {
        self.socket.into_std()
    }

    pub(super) fn into_stream(self) -> io::Result<Stream> {
        self.into_socket().map(Stream::plain)
    }
}

impl Followed for Checked {
    fn missing(&self) -> usize {
        self.observer.as_ref().map_or(0, StreamObserver::missing)
    }
}

/// The beginning of an answer that is not PostgreSQL's.
#[derive(Debug, thiserror::Error)]
#[error("not a PostgreSQL server{0}")]
pub(super) struct Foreign(pub(super) String);

impl Foreign {
    /// Shows the first line as far as it is plain text.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let text = bytes
            .iter()
            .take(40)
            .map_while(|&b| (b == b' ' || b.is_ascii_graphic()).then_some(char::from(b)));
        let text: String = text.collect();
        Self(if text.len() < 4 { String::new() } else { format!(" (it said \"{}\")", text.trim_end()) })
    }
}

/// libpq's limit for answers to a startup packet: "ERROR" has a length of 1.4 GB.
fn has_absurd_length(message: &[u8]) -> bool {
    let length = message.get(1..5).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(u32::from_be_bytes);
    length.is_some_and(|length| !(4..=30_000).contains(&length))
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tcp(stream, _) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    /// Writes to a server that has hung up go nowhere and count as done, as in libpq: the reading
    /// side then finds the server's last words ("terminating connection …"), and after them the end.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tcp(stream, guard) => {
                let written = Pin::new(&mut *stream).poll_write(cx, buf);
                if let Some(guard) = guard {
                    match &written {
                        Poll::Pending => guard.waits(stream, cx),
                        Poll::Ready(_) => guard.went_out(stream),
                    }
                }
                written
            }
        };
        let hung_up = |kind| matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        match written {
            Poll::Ready(Err(error)) if hung_up(error.kind()) => Poll::Ready(Ok(buf.len())),
            written => written,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tcp(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tcp(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Checked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        if let (true, [first, ..]) = (self.pending, &buf.filled()[before..]) {
            let bytes = &buf.filled()[before..];
            if !b"REvN".contains(first) || has_absurd_length(bytes) {
                let foreign = Foreign::new(bytes);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, foreign)));
            }
            self.pending = false;
        }
        if let Some(observer) = &mut self.observer {
            observer.received(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Checked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        if let Some(observer) = &mut self.observer {
            observer.sent(buf, &written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
