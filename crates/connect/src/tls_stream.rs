//! The TLS session between driver and socket. pgrig has its own, because a run records the
//! negotiated cipher, and because pgrig asks for TLS itself (the driver takes any answer but `S`
//! for a no).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::certificate::Certificate;
use super::handover::Followed;
use super::observe::{Observed, StreamObserver};
use super::socket::Checked;
use super::stream::Stream;
use super::tls::ALPN;
use super::transport::TlsInfo;

/// Makes the handshake; `info` then has the negotiated parameters.
#[derive(Clone)]
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
    direct: bool,
    info: Arc<OnceLock<TlsInfo>>,
    observed: Arc<Observed>,
}

impl Handshake {
    pub(super) fn new(config: &Arc<ClientConfig>, name: ServerName<'static>, direct: bool) -> Self {
        let connector = TlsConnector::from(Arc::clone(config));
        Self { connector, name, direct, info: Arc::default(), observed: Arc::default() }
    }

    /// The errors that come through the session.
    pub(super) fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.observed)
    }

    /// Parameters that the last handshake negotiated.
    pub(super) fn info(&self) -> Option<TlsInfo> {
        self.info.get().cloned()
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            let (_, session) = stream.get_ref();
            // Without it another protocol's server could be made to talk to us (as libpq: required).
            if self.direct && session.alpn_protocol() != Some(ALPN) {
                return Err(io::Error::other(
                    "the server does not name its protocol (ALPN) as sslnegotiation=direct requires; PostgreSQL \
                     17 and later do; use sslnegotiation=postgres",
                ));
            }
            self.info.get_or_init(|| describe(session));
            Ok(Encrypted { stream, observer: StreamObserver::new(self.observed) })
        })
    }
}

fn describe(session: &ClientConnection) -> TlsInfo {
    let protocol = match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    let cipher = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    TlsInfo { protocol: protocol.to_owned(), cipher: cipher.unwrap_or("unknown").to_owned() }
}

/// A socket inside TLS.
pub(super) struct Encrypted<S> {
    stream: tokio_rustls::client::TlsStream<S>,
    observer: StreamObserver,
}

impl Encrypted<Checked> {
    /// The same session as a [`Stream`], whose messages are not followed any more.
    pub(super) fn into_stream(self) -> io::Result<Stream> {
        let (socket, session) = self.stream.into_inner();
        Stream::encrypted(socket.into_socket()?, session)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Followed for Encrypted<S> {
    fn missing(&self) -> usize {
        self.observer.missing()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.stream.get_ref().1.peer_certificates().unwrap_or_default();
        certificates
            .first()
            .and_then(|der| Certificate::parse(der))
            .and_then(|certificate| certificate.end_point())
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.observer.received(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.observer.sent(buf, &written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
