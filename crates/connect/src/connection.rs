//! An established connection: the client, the server's notices, cancelling, and the cause of its end.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, CancelToken, Client};

use super::error::{CLOSED_WITHOUT_A_WORD, ConnectError, why_lost};
use super::handover::{RawConnection, StreamHandle};
use super::observe::Observed;
use super::open::Registered;
use super::rejection::cause;
use super::route::Route;
use super::server_error::ServerError;
use super::socket::ResolvedAddress;
use super::transport::Transport;

/// Notices kept if nobody takes them; then the oldest go.
const MAX_NOTICES: usize = 1000;

/// A live connection. Dropping it (or its client) ends the session; a task drives it until then.
pub struct Connection {
    /// The client, for queries.
    pub client: Client,
    /// Socket or TCP, with TLS or without.
    pub transport: Transport,
    notices: Notices,
    notifications: Notifications,
    observed: Arc<Observed>,
    ended: watch::Receiver<Option<Ending>>,
    route: Arc<Route>,
    stream: StreamHandle,
    warnings: Vec<String>,
}

/// Facts about the path of a connection to its server.
pub(super) struct Link {
    pub(super) transport: Transport,
    pub(super) observed: Arc<Observed>,
    pub(super) route: Arc<Route>,
    pub(super) stream: StreamHandle,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.transport)
    }
}

type Notices = Arc<Mutex<VecDeque<DbError>>>;
/// Payloads of NOTIFY, oldest first.
type Notifications = Arc<Mutex<Vec<String>>>;

/// End of the driver, once it is known.
#[derive(Debug, Clone)]
struct Ending {
    error: Option<Box<ServerError>>,
    why: String,
}

impl Connection {
    /// Spawns the driver of a connection that has just been made.
    pub(super) fn start<S, T>(
        client: Client,
        driver: tokio_postgres::Connection<S, T>,
        link: Link,
        warnings: Vec<String>,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: TlsStream + Unpin + Send + 'static,
    {
        let notices = Notices::default();
        let (report, ended) = watch::channel(None);
        let notifications = Notifications::default();
        let (kept, payloads) = (Arc::clone(&notices), Arc::clone(&notifications));
        let Link { transport, observed, route, stream } = link;
        let canceller = Canceller { token: client.cancel_token(), route: Arc::clone(&route) };
        let registered = Registered::new(canceller, Some(Arc::clone(&observed)));
        tokio::spawn(async move {
            let _until_its_end = registered;
            let ending = drive(driver, &kept, &payloads).await;
            report.send_replace(Some(ending));
        });
        Self { client, transport, notices, notifications, observed, ended, route, stream, warnings }
    }

    /// The notices and warnings the server sent since the last call, oldest first (the newest thousand).
    pub fn take_notices(&self) -> Vec<DbError> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// The payloads of NOTIFY since the last call, oldest first, on the channels to which this connection listens.
    pub fn take_notifications(&self) -> Vec<String> {
        std::mem::take(&mut *self.notifications.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The process ID that the other side has sent in `BackendKeyData`. A pooler sends a number of
    /// its own, which differs from `pg_backend_pid()`.
    pub fn process_id(&self) -> Option<i32> {
        self.observed.process()
    }

    /// Whether the server has sent an error since [`Self::forget_errors`]. True even while a COPY is
    /// being sent, whose error the driver tells only at its end.
    pub fn heard_an_error(&self) -> bool {
        self.observed.any()
    }

    /// Makes [`Self::heard_an_error`] false until the next one.
    pub fn forget_errors(&self) {
        self.observed.forget();
    }

    /// Warnings from the setup of this connection, e.g. an ignored password file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The address of its server: of several hosts and addresses, the one that it is connected to.
    pub fn address(&self) -> &ResolvedAddress {
        &self.route.address
    }

    /// Asks the server to cancel this connection's statement, which then fails with SQLSTATE 57014.
    /// The request travels on a connection of its own, encrypted like this one.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached. The server does not tell whether it has cancelled anything.
    pub async fn cancel(&self) -> Result<(), ConnectError> {
        self.canceller().cancel().await
    }

    /// [`Self::cancel`] as a value that can be moved elsewhere, e.g. to the handler of Ctrl-C.
    pub fn canceller(&self) -> Canceller {
        Canceller { token: self.client.cancel_token(), route: Arc::clone(&self.route) }
    }

    /// The best account of a failed query: the server's error, or, if the connection is gone, why (a
    /// server that shuts down tells its idle connections 57P01 before the next query fails as merely
    /// "connection closed").
    pub async fn explain(&self, error: tokio_postgres::Error) -> ConnectError {
        let at = self.route.address.to_string();
        if let Some(db) = error.as_db_error() {
            let error: Box<ServerError> = db.into();
            // FATAL and PANIC end the session, ERROR only the query.
            return match error.severity.as_str() {
                "ERROR" => ConnectError::Query { at, error },
                _ => ConnectError::Lost { at, why: error.to_string(), error: Some(error) },
            };
        }
        if error.is_closed() {
            return self.ending().await;
        }
        if is_nul(&error) {
            return ConnectError::Nul;
        }
        match std::error::Error::source(&error) {
            Some(why) => match why.downcast_ref() {
                Some(why) => ConnectError::Lost { at, error: None, why: why_lost(why) },
                None => ConnectError::Protocol { at, why: format!("{error}: {why}") },
            },
            None => ConnectError::Protocol { at, why: error.to_string() },
        }
    }

    /// Waits until the connection ends, and says how. Never resolves before.
    pub async fn ending(&self) -> ConnectError {
        let mut ended = self.ended.clone();
        let ending = match ended.wait_for(Option::is_some).await {
            Ok(ending) => ending.clone(),
            Err(_) => None,
        };
        let at = self.route.address.to_string();
        let (error, why) = ending
            .map_or_else(|| (None, "its task was stopped".to_owned()), |ending| (ending.error, ending.why));
        match (error, self.observed.fatal_error()) {
            (None, Some(last)) => ConnectError::Lost { at, why: last.to_string(), error: Some(last.into()) },
            (error, _) => ConnectError::Lost { at, error, why },
        }
    }

    /// Goes on with the session without the driver, which ends. No query may be under way.
    pub(super) async fn hand_over(self) -> Result<RawConnection, ConnectError> {
        let Some(taken) = self.stream.take_back().await else {
            return Err(self.ending().await);
        };
        let at = self.route.address.to_string();
        match (taken, self.observed.fatal_error()) {
            (_, Some(last)) => {
                Err(ConnectError::Lost { at, why: last.to_string(), error: Some(last.into()) })
            }
            (Err(error), None) => Err(ConnectError::Lost { at, error: None, why: error.to_string() }),
            (Ok(mut stream), None) => {
                let canceller = self.canceller();
                stream.hold(Registered::new(canceller.clone(), None));
                Ok(RawConnection { stream, canceller, transport: self.transport, at })
            }
        }
    }

    /// Ends the session, and returns once the server has been told and the socket is closed.
    pub async fn close(self) {
        let Self { client, mut ended, .. } = self;
        drop(client);
        // The sender gone means the same: the driver's task is over.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

/// Whether the driver refused to send a text because it has a NUL byte.
pub(super) fn is_nul(error: &tokio_postgres::Error) -> bool {
    cause::<std::io::Error>(error).is_some_and(|error| error.kind() == std::io::ErrorKind::InvalidInput)
}

/// Cancels the running query of the [`Connection`] it came from.
#[derive(Clone)]
pub struct Canceller {
    token: CancelToken,
    pub(super) route: Arc<Route>,
}

impl Canceller {
    /// See [`Connection::cancel`].
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn cancel(&self) -> Result<(), ConnectError> {
        self.route.cancel(&self.token).await
    }
}

/// Polls the connection until it ends.
async fn drive<S, T>(
    mut driver: tokio_postgres::Connection<S, T>,
    notices: &Notices,
    notifications: &Notifications,
) -> Ending
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: TlsStream + Unpin,
{
    let mut farewell = None;
    loop {
        match poll_fn(|cx| driver.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                // When another backend crashed, the server takes leave with a mere warning.
                if *notice.code() == SqlState::CRASH_SHUTDOWN {
                    farewell = Some(Box::<ServerError>::from(&notice));
                }
                keep(notices, notice);
            }
            Some(Ok(AsyncMessage::Notification(notification))) => {
                let mut payloads = notifications.lock().unwrap_or_else(PoisonError::into_inner);
                payloads.push(notification.payload().to_owned());
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let ending = Ending::from(&error);
                let error = ending.error.or(farewell);
                return Ending { why: error.as_ref().map_or(ending.why, ToString::to_string), error };
            }
            None => return Ending { error: None, why: "it was closed here".to_owned() },
        }
    }
}

fn keep(notices: &Notices, notice: DbError) {
    let mut kept = notices.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == MAX_NOTICES {
        kept.pop_front();
    }
    kept.push_back(notice);
}

impl From<&tokio_postgres::Error> for Ending {
    fn from(error: &tokio_postgres::Error) -> Self {
        if let Some(db) = error.as_db_error() {
            let error: Box<ServerError> = db.into();
            return Self { why: error.to_string(), error: Some(error) };
        }
        let why = match std::error::Error::source(error) {
            _ if error.is_closed() => CLOSED_WITHOUT_A_WORD.to_owned(),
            Some(source) => source.downcast_ref().map_or_else(|| source.to_string(), why_lost),
            None => error.to_string(),
        };
        Self { error: None, why }
    }
}
