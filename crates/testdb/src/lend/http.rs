//! The keeper's HTTP server and its listeners.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::api::Refusal;
use super::keeper::KeeperHandle;
use super::routes;

/// Longest body of a request, bytes; bodies contain only names and numbers.
const LONGEST: usize = 64 << 10;
/// Longest first line and headers, bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// Time for the headers of a connection's next request to arrive.
const HEAD: Duration = Duration::from_secs(10);
/// Time for the body of a request to arrive after its headers.
const BODY: Duration = Duration::from_secs(10);
/// Most connections of one endpoint at the same time; further ones wait in the kernel.
const MOST: usize = 500;
/// Time for answers to be sent when the keeper ends.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// An address that accepts requests.
pub enum Endpoint {
    /// A Unix socket, which only the keeper's own user and root can reach.
    Unix(UnixListener),
    /// A TCP address of this machine, which any user on it can reach.
    Tcp(TcpListener),
}

/// Rights of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// May name any file, and gets passwords.
    Trusted,
    /// May only have the sources that `serve` offers.
    Untrusted,
}

/// The HTTP server: its endpoints and their connections.
pub(super) struct HttpServer {
    handle: Arc<KeeperHandle>,
    closing: watch::Sender<bool>,
    listeners: std::sync::Mutex<JoinSet<()>>,
}

impl HttpServer {
    pub(super) fn new(handle: KeeperHandle) -> Self {
        Self {
            handle: Arc::new(handle),
            closing: watch::Sender::new(false),
            listeners: std::sync::Mutex::default(),
        }
    }

    /// Accepts connections from an endpoint.
    pub(super) fn open(&self, endpoint: Endpoint) {
        let (handle, closing) = (Arc::clone(&self.handle), self.closing.subscribe());
        let mut listeners = self.listeners.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match endpoint {
            Endpoint::Unix(listener) => listeners.spawn(admit(listener, Access::Trusted, handle, closing)),
            Endpoint::Tcp(listener) => listeners.spawn(admit(listener, Access::Untrusted, handle, closing)),
        };
    }

    /// Accepts no more connections, and waits until answers are sent.
    pub(super) async fn close(self) {
        self.closing.send_replace(true);
        let mut listeners = self.listeners.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let all = async { while listeners.join_next().await.is_some() {} };
        // Those who never read theirs do not keep the keeper.
        let _ = tokio::time::timeout(CLOSE_DEADLINE, all).await;
    }
}

/// A listener of either kind.
trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Accepts connections until the endpoint is closed.
async fn admit(
    listener: impl Listener,
    access: Access,
    handle: Arc<KeeperHandle>,
    mut closing: watch::Receiver<bool>,
) {
    let mut inside = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.next(), if inside.len() < MOST => match accepted {
                Ok(stream) => {
                    inside.spawn(attend(stream, access, Arc::clone(&handle), closing.clone()));
                }
                // Descriptors are used up: those inside must leave first.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = inside.join_next(), if !inside.is_empty() => {}
            _ = closing.changed() => break,
        }
    }
    while inside.join_next().await.is_some() {}
}

/// Answers the requests of one connection.
async fn attend<S>(stream: S, access: Access, handle: Arc<KeeperHandle>, mut closing: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let handle = Arc::clone(&handle);
        async move { Ok::<_, Infallible>(answer(request, access, &handle).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = closing.changed() => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        // How it ends is the client's affair.
        let _ = connection.await;
    }
}

async fn answer(request: Request<Incoming>, access: Access, handle: &KeeperHandle) -> Response<Full<Bytes>> {
    let answered = match read(request, access).await {
        Ok((parts, body)) => routes::answer(&parts, &body, access, handle).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| {
        let body = serde_json::to_string(&refusal).expect("plain fields");
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        respond(status, "application/json", body)
    })
}

/// A response with this status and body.
pub(super) fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, kind);
    response.body(Full::new(body.into())).expect("a valid header")
}

async fn read(
    request: Request<Incoming>,
    access: Access,
) -> Result<(hyper::http::request::Parts, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    if access == Access::Untrusted {
        refuse_browsers(&parts.headers)?;
    }
    let unreadable =
        |error| Refusal::new(413, format!("cannot read the request: {error}"), "send a small JSON object");
    let body = tokio::time::timeout(BODY, Limited::new(body, LONGEST).collect());
    let late = |_| {
        let error = format!("the request's body did not come within {} s", BODY.as_secs());
        Refusal::new(408, error, "send it with the headers")
    };
    Ok((parts, body.await.map_err(late)?.map_err(unreadable)?.to_bytes()))
}

/// Refuses requests of browsers: any web page can make a browser send requests to this machine,
/// under a host name of its choice. Such requests have one of these headers, or a foreign Host.
fn refuse_browsers(headers: &HeaderMap) -> Result<(), Refusal> {
    let from_page =
        headers.contains_key(ORIGIN) || headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if from_page || !host.is_some_and(is_here) {
        return Err(Refusal::new(
            403,
            "the keeper does not answer requests of web pages",
            "send Host: localhost or 127.0.0.1, and no Origin or Sec-Fetch-* header",
        ));
    }
    Ok(())
}

fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_s_names_are_answered_and_no_browser() {
        let headers = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            headers
        };
        for host in ["localhost", "127.0.0.1:7432", "[::1]:80", "[::1]"] {
            assert!(refuse_browsers(&headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in
            ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost:80.evil.example", ""]
        {
            assert!(refuse_browsers(&headers(&[("host", host)])).is_err(), "{host}");
        }
        assert!(refuse_browsers(&headers(&[])).is_err());
        for (name, value) in [("origin", "http://localhost"), ("sec-fetch-site", "cross-site")] {
            assert!(refuse_browsers(&headers(&[("host", "localhost"), (name, value)])).is_err(), "{name}");
        }
    }
}
