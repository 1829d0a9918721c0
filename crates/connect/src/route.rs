//! One way to one address: socket, the question for TLS, handshake. A connection keeps its route, to send a
//! cancel request the same way.

use std::time::Duration;

use futures_util::FutureExt;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::{CancelToken, NoTls};

use super::dial::within;
use super::error::ConnectError;
use super::socket::{Foreign, ResolvedAddress, Socket};
use super::target::{Target, TcpOptions};
use super::tls::SslMode;
use super::tls_stream::Handshake;
use super::transport::Transport;

/// An SSLRequest message ("54.7 Message Formats"): its length, and the code 1234 · 65536 + 5679.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Time-out of a cancel request. It is short because the user waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Use of TLS in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// No TLS, even if the server offers it.
    Plain,
    /// TLS if the server offers it, else none.
    IfOffered,
    /// TLS, or no connection.
    Must,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) address: ResolvedAddress,
    pub(super) encryption: Encryption,
    /// The target's family number; see [`super::Target`].
    pub(super) family: u64,
    tcp: TcpOptions,
    sslmode: SslMode,
    direct: bool,
    handshake: Option<Handshake>,
}

impl Route {
    pub(super) fn new(
        target: &Target,
        address: &ResolvedAddress,
        encryption: Encryption,
    ) -> Result<Self, ConnectError> {
        let handshake = match (address, &target.tls.config, encryption) {
            (_, _, Encryption::Plain) | (ResolvedAddress::Unix(_), ..) | (_, None, _) => None,
            (ResolvedAddress::Tcp { host, socket }, Some(config), _) => {
                let name = ServerName::try_from(host.clone()).or_else(|_| match target.tls.mode {
                    SslMode::VerifyFull => Err(ConnectError::Tls {
                        at: address.to_string(),
                        why: format!("\"{host}\" is not a valid name for a certificate"),
                    }),
                    // Not checked: anything will do.
                    _ => Ok(ServerName::from(socket.ip())),
                })?;
                Some(Handshake::new(config, name, target.tls.direct))
            }
        };
        Ok(Self {
            address: address.clone(),
            encryption,
            family: target.family,
            tcp: target.tcp.clone(),
            sslmode: target.tls.mode,
            direct: target.tls.direct,
            handshake,
        })
    }

    /// Opens the socket, and asks for TLS if the route wants it. Returns the socket, and the TLS
    /// handshake to make, if any.
    pub(super) async fn open(&self) -> Result<(Socket, Option<Handshake>), ConnectError> {
        let mut socket = Socket::open(&self.address, &self.tcp).await?;
        let Some(handshake) = &self.handshake else {
            return Ok((socket, None));
        };
        if self.direct || self.ask_for_tls(&mut socket).await? {
            return Ok((socket, Some(handshake.clone())));
        }
        if self.encryption == Encryption::Must {
            return Err(ConnectError::TlsNotOffered {
                at: self.address.to_string(),
                sslmode: self.sslmode.name(),
            });
        }
        Ok((socket, None))
    }

    /// "54.2.9 SSL Session Encryption": one byte comes back. Exactly one is read, so that whatever a
    /// man in the middle might append is taken for TLS and fails as such.
    async fn ask_for_tls(&self, socket: &mut Socket) -> Result<bool, ConnectError> {
        let at = self.address.to_string();
        let closed = |why: String| ConnectError::ClosedEarly { at: at.clone(), why };
        let mut answer = [0; 64];
        socket.write_all(&SSL_REQUEST).await.map_err(|error| closed(format!(": {error}")))?;
        match socket.read(&mut answer[..1]).await {
            Err(error) => return Err(closed(format!(": {error}"))),
            Ok(0) => return Err(closed(String::new())),
            Ok(_) => {}
        }
        match answer[0] {
            b'S' => Ok(true),
            b'N' => Ok(false),
            // Not shown: the sender of this text is not authenticated.
            b'E' => Err(closed(
                ": the server answered the request for TLS with an error; give sslmode=disable to see the error"
                    .into(),
            )),
            _ => {
                let more = socket.read(&mut answer[1..]).now_or_never();
                let length = 1 + more.and_then(Result::ok).unwrap_or(0);
                Err(ConnectError::NotPostgres { at: at.clone(), answer: Foreign::new(&answer[..length]).0 })
            }
        }
    }

    /// Whether the server answers the question for TLS: its main process lives.
    pub(super) async fn is_answered(&self) -> bool {
        let Ok(mut socket) = Socket::open(&self.address, &self.tcp).await else { return false };
        let asked = socket.write_all(&SSL_REQUEST).await;
        asked.is_ok() && matches!(socket.read(&mut [0]).await, Ok(1))
    }

    /// Transport of a connection over this route.
    pub(super) fn transport(&self, handshake: Option<&Handshake>) -> Transport {
        match &self.address {
            ResolvedAddress::Unix(path) => Transport::UnixSocket { path: path.clone() },
            ResolvedAddress::Tcp { host, socket } => Transport::Tcp {
                host: host.clone(),
                port: socket.port(),
                tls: handshake.and_then(Handshake::info),
            },
        }
    }

    /// Sends a cancel request.
    pub(super) async fn cancel(&self, token: &CancelToken) -> Result<(), ConnectError> {
        let at = self.address.to_string();
        let request = async {
            let (socket, handshake) = self.open().await?;
            let sent = match handshake {
                Some(handshake) => token.cancel_query_raw(socket, handshake).await,
                None => token.cancel_query_raw(socket, NoTls).await,
            };
            sent.map_err(|error| {
                let why =
                    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                ConnectError::Protocol { at: at.clone(), why }
            })
        };
        within(Some(CANCEL_TIMEOUT), &at, request).await
    }
}
