//! Connecting: hosts in order, addresses of a host in order, one attempt at a time.

use futures_util::future::BoxFuture;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;

use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use super::connection::{Connection, Link};
use super::error::ConnectError;
use super::handover::{DetachableHandshake, SharedStream, StreamHandle};
use super::passfile::Secret;
use super::rejection::{Attempt, startup_error};
use super::route::{Encryption, Route};
use super::socket::{Checked, ResolvedAddress};
use super::target::{Address, Host, SessionAttributes, Target};
use super::tls;

impl Target {
    /// Connects: the hosts in order, for each its addresses in order, each within connect_timeout. The
    /// result is a live session whose driver runs on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// The failure and its remedy; [`ConnectError::AllFailed`] lists every address if several were tried.
    pub fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>> {
        Box::pin(async move {
            match self.session {
                SessionAttributes::PreferStandby => match self.connect_as(SessionAttributes::Standby).await {
                    Ok(connection) => Ok(connection),
                    Err(_) => self.connect_as(SessionAttributes::Any).await,
                },
                wanted => self.connect_as(wanted).await,
            }
        })
    }

    async fn connect_as(&self, wanted: SessionAttributes) -> Result<Connection, ConnectError> {
        let mut failures = Vec::new();
        for host in self.ordered_hosts() {
            match self.connect_host(host, wanted).await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    if !add(&mut failures, error) {
                        break;
                    }
                }
            }
        }
        Err(merge(failures))
    }

    fn ordered_hosts(&self) -> Vec<&Host> {
        let mut hosts: Vec<&Host> = self.hosts.iter().collect();
        if self.shuffle_hosts {
            // A fresh RandomState is the standard library's source of randomness.
            let random = std::hash::RandomState::new();
            let mut order: Vec<(u64, &Host)> =
                hosts.into_iter().enumerate().map(|(index, host)| (random.hash_one(index), host)).collect();
            order.sort_by_key(|(key, _)| *key);
            hosts = order.into_iter().map(|(_, host)| host).collect();
        }
        hosts
    }

    async fn connect_host(&self, host: &Host, wanted: SessionAttributes) -> Result<Connection, ConnectError> {
        let addresses = within(self.connect_timeout, &host.to_string(), addresses(host)).await?;
        let mut failures = Vec::new();
        for address in addresses {
            let at = address.to_string();
            let attempt = async {
                let connection = self.connect_address(host, address).await?;
                check_session(&connection, wanted, &at).await?;
                Ok(connection)
            };
            match within(self.connect_timeout, &at, attempt).await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    if !add(&mut failures, error) {
                        break;
                    }
                }
            }
        }
        Err(merge(failures))
    }

    /// One address, in the one or two ways that sslmode allows.
    async fn connect_address(
        &self,
        host: &Host,
        address: ResolvedAddress,
    ) -> Result<Connection, ConnectError> {
        let mut failures: Vec<ConnectError> = Vec::new();
        for &encryption in encryptions(self.tls.mode, &address) {
            match self.connect_route(host, Route::new(self, &address, encryption)?).await {
                Ok(connection) => return Ok(connection),
                // The second way is closed too: the first way's story is the one to tell.
                Err(ConnectError::TlsNotOffered { .. }) if !failures.is_empty() => break,
                Err(error) => {
                    let other_way_may_work = is_about_encryption(&error);
                    if failures.iter().all(|known| known.to_string() != error.to_string()) {
                        failures.push(error);
                    }
                    if !other_way_may_work {
                        break;
                    }
                }
            }
        }
        Err(merge(failures))
    }

    async fn connect_route(&self, host: &Host, route: Route) -> Result<Connection, ConnectError> {
        let password = self.password_for(host);
        let (socket, handshake) = route.open().await?;
        let config = self.config(password.as_ref(), handshake.is_some());
        let attempt = Attempt { target: self, address: &route.address, password: password.as_ref() };
        let failed = |error| startup_error(&attempt, error);
        let warnings = self.warnings.clone();
        if let Some(handshake) = handshake {
            let (lending, lent) = DetachableHandshake::new(handshake.clone());
            let (client, driver) =
                config.connect_raw(Checked::passed(socket), lending).await.map_err(failed)?;
            let link = Link {
                transport: route.transport(Some(&handshake)),
                observed: handshake.observed(),
                route: Arc::new(route),
                stream: StreamHandle::encrypted(&lent),
            };
            return Ok(Connection::start(client, driver, link, warnings));
        }
        let observed = Arc::default();
        let lent = SharedStream::new(Checked::new(socket, Arc::clone(&observed)));
        let stream = StreamHandle::plain(&lent);
        let (client, driver) = config.connect_raw(lent, NoTls).await.map_err(failed)?;
        let link = Link { transport: route.transport(None), observed, route: Arc::new(route), stream };
        Ok(Connection::start(client, driver, link, warnings))
    }

    fn config(&self, password: Option<&Secret>, encrypted: bool) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.user(&self.user).dbname(&self.dbname).application_name(&self.application_name);
        config.channel_binding(self.channel_binding);
        // "Direct": the server has been asked for TLS already.
        config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
        config.ssl_negotiation(SslNegotiation::Direct);
        if let Some(options) = &self.options {
            config.options(options);
        }
        if let Some(password) = password {
            config.password(&password.value);
        }
        config
    }
}

/// The attempts, in order ("34.19.3 Protection Provided in Different Modes"). A Unix socket needs no TLS.
fn encryptions(mode: tls::SslMode, address: &ResolvedAddress) -> &'static [Encryption] {
    match (address, mode) {
        (ResolvedAddress::Unix(_), _) | (_, tls::SslMode::Disable) => &[Encryption::Plain],
        (_, tls::SslMode::Allow) => &[Encryption::Plain, Encryption::Must],
        (_, tls::SslMode::Prefer) => &[Encryption::IfOffered, Encryption::Plain],
        _ => &[Encryption::Must],
    }
}

/// pg_hba.conf may refuse only the encrypted or only the plain (28000); a handshake may fail.
fn is_about_encryption(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Tls { .. } | ConnectError::Certificate { .. })
        || matches!(error, ConnectError::Rejected { error, .. } if error.code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// Adds a failed attempt. Returns whether another host or address may still work.
fn add(failures: &mut Vec<ConnectError>, error: ConnectError) -> bool {
    let allows_next = error.allows_next_host();
    failures.push(error);
    allows_next
}

/// One error as itself, several as a list.
fn merge(failures: Vec<ConnectError>) -> ConnectError {
    let mut flat = Vec::new();
    for failure in failures {
        match failure {
            ConnectError::AllFailed(inner) => flat.extend(inner),
            single => flat.push(single),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { ConnectError::AllFailed(flat) }
}

pub(super) async fn within<T>(
    limit: Option<Duration>,
    at: &str,
    work: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let Some(limit) = limit else { return work.await };
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(ConnectError::Timeout { at: at.to_owned(), seconds: limit.as_secs() }))
}

/// The addresses a host stands for: one socket, one IP address, or those that the DNS gives.
async fn addresses(host: &Host) -> Result<Vec<ResolvedAddress>, ConnectError> {
    let (name, address) = match &host.address {
        Address::Unix { directory, .. } => {
            return Ok(vec![ResolvedAddress::Unix(Host::socket(directory, host.port))]);
        }
        Address::Tcp { name, address } => (name, *address),
    };
    if let Some(address) = address {
        return Ok(vec![ResolvedAddress::Tcp { host: name.clone(), socket: (address, host.port).into() }]);
    }
    let failed = |source| ConnectError::Resolve { host: name.clone(), source };
    let found = tokio::net::lookup_host((name.as_str(), host.port)).await.map_err(failed)?;
    let found: Vec<ResolvedAddress> =
        found.map(|socket| ResolvedAddress::Tcp { host: name.clone(), socket }).collect();
    if found.is_empty() {
        return Err(failed(io::Error::other("the name has no address")));
    }
    Ok(found)
}

/// Checks target_session_attrs with one query. "read-only" and "read-write" concern the rights of the session, "primary" and
/// "standby" the role of the server.
async fn check_session(
    connection: &Connection,
    wanted: SessionAttributes,
    at: &str,
) -> Result<(), ConnectError> {
    if wanted == SessionAttributes::Any {
        return Ok(());
    }
    let sql =
        "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'";
    let rows = match connection.client.simple_query(sql).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await),
    };
    let row = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let is = |column| row.and_then(|row| row.get(column)) == Some("t");
    let (standby, read_only) = (is(0), is(1));
    let (wanted, fits, found) = match wanted {
        SessionAttributes::ReadWrite => ("read-write", !read_only, "is read-only"),
        SessionAttributes::ReadOnly => ("read-only", read_only, "accepts writes"),
        SessionAttributes::Primary => ("primary", !standby, "is a standby"),
        _ => ("standby", standby, "is a primary"),
    };
    if fits { Ok(()) } else { Err(ConnectError::SessionAttributes { at: at.to_owned(), wanted, found }) }
}
