//! The keeper's clients: one connection to its own socket.

use failure::{Class, Classified};
use std::io;
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;

use super::api::{Dropped, ENDING, Lease, LendRequest, List, Refusal, Status, Which};
use super::socket;

/// A connection to a keeper.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    keeper: i32,
}

/// The reason for which a keeper did not carry out a request.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The keeper refused the request, with the reason.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The keeper has ended, or is about to end; another one will answer.
    #[error("the keeper closed the connection: {0}; repeat the command")]
    Gone(String),
    /// The keeper's answer cannot be understood.
    #[error(
        "unexpected answer of the keeper: {0}. If a keeper of another version of pgrig runs, wait until it ends, and repeat the command"
    )]
    Answer(String),
}

impl Classified for CallError {
    fn class(&self) -> Class {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Gone(_) | Self::Answer(_) => Class::Machine,
        }
    }
}

impl Client {
    /// Connects to the keeper that listens there.
    ///
    /// # Errors
    /// If none does.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let stream = socket::connect(path).await?;
        let keeper = stream.peer_cred()?.pid().unwrap_or_default();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Requests report the connection's errors.
        tokio::spawn(connection);
        Ok(Self { sender, keeper })
    }

    /// The keeper's process; 0 if it cannot be seen from here.
    pub fn keeper(&self) -> i32 {
        self.keeper
    }

    /// Asks for a database.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn lend(&mut self, request: &LendRequest) -> Result<Lease, CallError> {
        let body = serde_json::to_vec(request).map_err(|error| CallError::Answer(error.to_string()))?;
        self.call(Method::POST, "/databases", body).await
    }

    /// All databases of pgrig's.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn list(&mut self) -> Result<List, CallError> {
        self.call(Method::GET, "/databases", Vec::new()).await
    }

    /// State of the keeper and its server.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn status(&mut self) -> Result<Status, CallError> {
        self.call(Method::GET, "/status", Vec::new()).await
    }

    /// Drops one database, and returns when it is gone.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn drop(&mut self, name: &str) -> Result<(), CallError> {
        self.call_quietly(Method::DELETE, &format!("/databases/{}?wait", segment(name))).await
    }

    /// Drops many.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn drop_many(&mut self, which: Which) -> Result<Dropped, CallError> {
        let which = match which {
            Which::All => "all",
            Which::Templates => "templates",
            Which::Orphans => "orphans",
        };
        self.call(Method::DELETE, &format!("/databases?which={which}"), Vec::new()).await
    }

    /// Keeps a database beyond its owner and its time.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn keep(&mut self, name: &str) -> Result<Lease, CallError> {
        self.call(Method::POST, &format!("/databases/{}/keep", segment(name)), Vec::new()).await
    }

    /// Asks the keeper to end, because another one takes its place.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn retire(&mut self) -> Result<(), CallError> {
        self.call_quietly(Method::POST, "/retire").await
    }

    async fn call<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, CallError> {
        let body = self.send(method, path, body).await?;
        serde_json::from_slice(&body).map_err(|error| CallError::Answer(error.to_string()))
    }

    async fn call_quietly(&mut self, method: Method, path: &str) -> Result<(), CallError> {
        self.send(method, path, Vec::new()).await.map(drop)
    }

    async fn send(&mut self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        let gone = |error: hyper::Error| CallError::Gone(error.to_string());
        let request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body.into()));
        let request = request.map_err(|error| CallError::Answer(error.to_string()))?;
        let response = self.sender.send_request(request).await.map_err(gone)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(gone)?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let refusal: Refusal =
            serde_json::from_slice(&body).map_err(|error| CallError::Answer(error.to_string()))?;
        if status.as_u16() == ENDING {
            return Err(CallError::Gone(refusal.to_string()));
        }
        Err(Refusal { status: status.as_u16(), ..refusal }.into())
    }
}

/// A name, encoded as a part of a path.
fn segment(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}
