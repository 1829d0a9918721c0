//! Hands a session over from the driver to a caller: tokio-postgres has begun it (TLS, authentication,
//! target_session_attrs), and it continues without the driver and without a runtime.
//!
//! The driver only borrows its stream ([`SharedStream`]). Taking the stream back ends the driver, which can then no longer
//! send Terminate, so the server sees one session that continues.

use futures_util::future::BoxFuture;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::connection::Canceller;
use super::error::ConnectError;
use super::socket::Checked;
use super::stream::Stream;
use super::target::Target;
use super::tls_stream::{Encrypted, Handshake};
use super::transport::Transport;

/// A session that is ready for its first query and whose protocol the caller speaks. The server
/// knows the encoding (UTF8) and the application's name, as in every connection of pgrig's.
pub struct RawConnection {
    /// The stream of the session. Dropping it ends the session.
    pub stream: Stream,
    /// Cancels the running statement.
    pub canceller: Canceller,
    /// Socket or TCP, with TLS or without.
    pub transport: Transport,
    /// The server's place, for errors.
    pub at: String,
}

impl Target {
    /// As [`Target::connect`], for callers that speak the protocol themselves, e.g. to measure it.
    /// It needs a tokio runtime with I/O and time; the returned connection needs none.
    ///
    /// # Errors
    ///
    /// As [`Target::connect`], or [`ConnectError::Lost`].
    pub fn connect_raw(&self) -> BoxFuture<'_, Result<RawConnection, ConnectError>> {
        Box::pin(async move { self.connect().await?.hand_over().await })
    }
}

/// A stream in the hands of the driver.
pub(super) struct SharedStream<S>(Arc<Mutex<Option<S>>>);

/// A weak reference to a lent stream, with which it is taken back. It does not keep the stream
/// open.
struct Owner<S>(Weak<Mutex<Option<S>>>);

/// A connection's [`Owner`].
pub(super) struct StreamHandle(Kind);

enum Kind {
    Plain(Owner<Checked>),
    Tls(Owner<Encrypted<Checked>>),
}

/// A handshake after which the driver shares the encrypted stream.
pub(super) struct DetachableHandshake {
    handshake: Handshake,
    lent: SharedStream<Encrypted<Checked>>,
}

/// A stream that knows where the current message ends.
pub(super) trait Followed: AsyncRead + Unpin {
    /// Least number of bytes that the current message lacks; 0 between two.
    fn missing(&self) -> usize;
}

impl StreamHandle {
    pub(super) fn plain(lent: &SharedStream<Checked>) -> Self {
        Self(Kind::Plain(lent.owner()))
    }

    pub(super) fn encrypted(lent: &SharedStream<Encrypted<Checked>>) -> Self {
        Self(Kind::Tls(lent.owner()))
    }

    /// Takes the stream back, positioned at the beginning of a message; none if the driver has
    /// ended. The driver has seen all earlier bytes. Errors among them have been observed, and
    /// nothing else in them matters.
    pub(super) async fn take_back(&self) -> Option<io::Result<Stream>> {
        match &self.0 {
            Kind::Plain(owner) => Some(finish(owner.take()?).await.and_then(Checked::into_stream)),
            Kind::Tls(owner) => Some(finish(owner.take()?).await.and_then(Encrypted::into_stream)),
        }
    }
}

/// Reads on to the end of the message that has begun.
async fn finish<S: Followed>(mut stream: S) -> io::Result<S> {
    let mut read = [0; 256];
    loop {
        let count = stream.missing().min(read.len());
        if count == 0 {
            return Ok(stream);
        }
        stream.read_exact(&mut read[..count]).await?;
    }
}

impl<S> SharedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Some(stream))))
    }

    /// Without a stream. The holder of a clone puts the stream in later.
    fn empty() -> Self {
        Self(Arc::default())
    }

    fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn owner(&self) -> Owner<S> {
        Owner(Arc::downgrade(&self.0))
    }

    fn slot(&self) -> MutexGuard<'_, Option<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the driver's wish on, unless the stream has been taken back.
    fn with<T>(&self, act: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>>
    where
        S: Unpin,
    {
        match self.slot().as_mut() {
            Some(stream) => act(Pin::new(stream)),
            None => Poll::Ready(Err(io::Error::new(io::ErrorKind::NotConnected, "handed over"))),
        }
    }
}

impl<S> Owner<S> {
    fn take(&self) -> Option<S> {
        SharedStream(self.0.upgrade()?).slot().take()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(cx, buf))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(cx))
    }
}

impl<S: TlsStream + Unpin> TlsStream for SharedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.slot().as_ref().map_or_else(ChannelBinding::none, TlsStream::channel_binding)
    }
}

impl DetachableHandshake {
    /// The handshake, and the stream that it will lend.
    pub(super) fn new(handshake: Handshake) -> (Self, SharedStream<Encrypted<Checked>>) {
        let lent = SharedStream::empty();
        (Self { handshake, lent: lent.share() }, lent)
    }
}

impl TlsConnect<Checked> for DetachableHandshake {
    type Stream = SharedStream<Encrypted<Checked>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Stream>> + Send>>;

    fn connect(self, stream: Checked) -> Self::Future {
        Box::pin(async move {
            *self.lent.slot() = Some(self.handshake.connect(stream).await?);
            Ok(self.lent)
        })
    }
}
