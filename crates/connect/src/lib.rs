//! Connections to PostgreSQL as libpq's tools make them: the same options, connection strings, environment, password and
//! service files, with the same precedence (PostgreSQL documentation, chapter "34. libpq").
//!
//! ```text
//! -d -h -p -U, URI ─┐
//! service file ─────┼─▶ params ─▶ Target ─▶ socket ─▶ TLS ─▶ startup ─▶ Connection
//! PG* environment ──┘   (resolve)           (Target::connect)
//! ```
//!
//! Start reading at [`resolve()`], which decides where to connect, and at [`Target::connect`]. This crate must not know the
//! work that a connection does: no catalogs, no settings, no tables. It needs no other crate of pgrig's but `failure`.
//!
//! # The driver, and the code around it
//!
//! tokio-postgres speaks the protocol. It does not check that a PostgreSQL answers, so `socket` checks the first byte of
//! the answer and recognises another protocol's port. It reports the error of a failed COPY only when the COPY ends, so
//! `observe` records errors as they arrive. While a write waits and the peer's machine still answers, `blocked` lifts
//! TCP_USER_TIMEOUT: the kernel would end the connection otherwise. `ready` waits for a server that starts or recovers.
//!
//! `open` lists the sessions of this process, and `traffic` follows their messages, so it knows the statement for which
//! each session waits. With these, [`cancel_everything`] cancels all statements without access to the sessions, and
//! [`silences`] names a server that does not answer.
//!
//! `Target::connect_raw` gives the same session without the driver. The driver only borrows the stream (`handover`); it is
//! taken back between two messages, so that the driver cannot send Terminate. The result is a non-blocking socket, perhaps
//! inside rustls (`stream`), that needs no runtime. `tps` uses it.
//!
//! The client encoding is always UTF8: the driver decodes text as UTF-8 and pgrig's COPY data is UTF-8.

mod blocked;
mod certificate;
mod connection;
mod conninfo;
mod dial;
mod environment;
mod error;
mod handover;
mod observe;
mod open;
mod params;
mod passfile;
mod ready;
mod rejection;
mod resolve;
mod route;
mod server_error;
mod service;
mod socket;
mod stream;
mod target;
mod tls;
mod tls_stream;
mod traffic;
mod transport;
mod verify;

pub use connection::{Canceller, Connection};
pub use error::{CLOSED_WITHOUT_A_WORD, ConnectError, why_lost};
pub use handover::RawConnection;
pub use open::{
    Ending, Silence, answers, cancel_everything, is_ending, silences, silent_for, stop_everything,
};
pub use server_error::{ServerError, described};
pub use socket::ResolvedAddress;
pub use stream::Stream;
pub use target::Target;
pub use tokio_postgres::error::SqlState;
pub use transport::{TlsInfo, Transport};

/// Shown in pg_stat_activity unless the user names another.
pub const APPLICATION_NAME: &str = "pgrig";

/// The variables that name a server (rather than say how to talk to one).
pub const SERVER_VARIABLES: [&str; 5] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"];

/// Looks up an environment variable.
type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// The connection options every verb has, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// `-d`: a database name, a URI or a keyword/value string.
    pub dbname: Option<String>,
    /// `-h`: host names, addresses or socket directories, separated by commas.
    pub host: Option<String>,
    /// `-p`: one port for all hosts or one for each, separated by commas.
    pub port: Option<String>,
    /// `-U`: the user.
    pub user: Option<String>,
}

impl ConnectOptions {
    /// Whether a server was named at all, by an option or by `PGHOST`, `PGHOSTADDR`, `PGPORT`,
    /// `PGDATABASE` or `PGSERVICE`. If not, pgrig uses its embedded server.
    pub fn names_a_server(&self, env: &dyn Fn(&str) -> Option<String>) -> bool {
        let typed = [&self.dbname, &self.host, &self.port, &self.user];
        typed.into_iter().any(Option::is_some)
            || SERVER_VARIABLES.iter().any(|name| env(name).is_some_and(|value| !value.is_empty()))
    }
}

/// Decides where and how to connect. Strongest source first: the connection string in `-d`; `-h -p -U`;
/// the service file; the `PG*` environment; the defaults (34.1.1, 34.1.2, 34.15 to 34.17).
///
/// # Errors
///
/// [`failure::Class::Request`] for a malformed string, an unknown parameter or service, an impossible value;
/// [`ConnectError::NoSocket`] if no host was named and no local server listens.
pub fn resolve(
    options: &ConnectOptions,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Target, ConnectError> {
    resolve::resolve(options, env, &resolve::Machine::here(env))
}

/// A connection string of either form without its password, in the form of keywords, and the password: for another program,
/// which gets the password in `PGPASSWORD`. None if the text is no connection string, or has no password.
///
/// # Errors
///
/// [`failure::Class::Request`] for a malformed string. The error does not quote the password.
pub fn split_password(text: &str) -> Result<Option<(String, String)>, ConnectError> {
    if !conninfo::is_connection_string(text) {
        return Ok(None);
    }
    let (secret, told): (Vec<_>, Vec<_>) =
        conninfo::parse(text)?.into_iter().partition(|(keyword, _)| keyword == "password");
    // As in `resolve`, the last one counts.
    let password = secret.into_iter().map(|(_, password)| password).next_back();
    let words = told.iter().map(|(keyword, value)| conninfo::pair(keyword, value));
    Ok(password
        .filter(|password| !password.is_empty())
        .map(|password| (words.collect::<Vec<_>>().join(" "), password)))
}

/// A connection string for `-d` that reaches the same server again. It holds the user's options, and the values
/// from the service file and the environment, but never a password: that is looked up again.
///
/// # Errors
///
/// As [`resolve`].
pub fn recipe(
    options: &ConnectOptions,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ConnectError> {
    resolve::recipe(options, env, &resolve::Machine::here(env))
}
