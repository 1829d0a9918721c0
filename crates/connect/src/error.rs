//! Errors of connecting to a server, in the words of the command line.

use failure::{Class, Classified};
use std::borrow::Cow;
use std::path::PathBuf;

use tokio_postgres::error::SqlState;

use super::rejection::ANOTHER_DATABASE;
use super::server_error::ServerError;

/// Characters of a statement that an error shows.
const STATEMENT: usize = 160;

/// Why there is no connection. No variant holds a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connection string cannot be split into keywords and values.
    #[error("the connection string is malformed: {what}")]
    Syntax {
        /// The problem, and the correct form.
        what: String,
    },
    /// A keyword that libpq does not know either.
    #[error("unknown connection parameter \"{keyword}\" in {origin}: check its spelling")]
    UnknownKeyword {
        /// The keyword that libpq does not know.
        keyword: String,
        /// Option, file or variable that has it.
        origin: String,
    },
    /// A value that the parameter cannot have.
    #[error("{keyword} (from {origin}) cannot be \"{value}\": give {expected}")]
    InvalidValue {
        /// Name of the parameter.
        keyword: &'static str,
        /// Source of the value.
        origin: String,
        /// The value that is not possible.
        value: String,
        /// Values that are possible.
        expected: String,
    },
    /// Something that libpq can do and pgrig cannot, and that is not safe to ignore.
    #[error("{keyword} (from {origin}) is not supported: {remedy}")]
    Unsupported {
        /// The parameter, with its value where that matters.
        keyword: String,
        /// Option, file or variable that has it.
        origin: String,
        /// The alternative, as an imperative.
        remedy: String,
    },
    /// Lists of hosts, addresses and ports that do not go together.
    #[error("{0}")]
    Mismatch(String),
    /// No service file defines the service.
    #[error("service \"{service}\" (from {origin}) is not defined in {}; add a section [{service}] to one of them", searched(.files))]
    UnknownService {
        /// The service's name.
        service: String,
        /// Source of the name.
        origin: String,
        /// The files searched.
        files: Vec<PathBuf>,
    },
    /// A service file that cannot be read or understood.
    #[error("service file {}{}: {what}", .file.display(), line_number(*.line))]
    ServiceFile {
        /// Path of the service file.
        file: PathBuf,
        /// Line number from 1, where there is one.
        line: Option<usize>,
        /// Why the file cannot be used.
        what: String,
    },
    /// A certificate or key file that cannot be used.
    #[error("{keyword}: {} {what}", .file.display())]
    CertificateFile {
        /// The parameter that names the file.
        keyword: &'static str,
        /// Path of the certificate or key file.
        file: PathBuf,
        /// The problem, and the remedy.
        what: String,
    },
    /// `sslrootcert=system`, and the system has no certificates.
    #[error(
        "sslrootcert=system, but the system's certificate store is empty or unreadable{0}; name a file: sslrootcert=FILE"
    )]
    NoSystemRoots(String),
    /// No host was named, and no local server listens.
    #[error("no PostgreSQL socket .s.PGSQL.{port} in {}. Start a local server on that port, or name a server with -h HOST and -p PORT. To use pgrig's own PostgreSQL, {own}", searched(.directories))]
    NoSocket {
        /// The port looked for.
        port: u16,
        /// The directories searched.
        directories: Vec<PathBuf>,
        /// How to use pgrig's own PostgreSQL instead.
        own: String,
    },
    /// The operating system does not know the name of the current user.
    #[error(
        "no user name to connect as: the operating-system user has no name; give one with -U USER or PGUSER"
    )]
    NoUser,
    /// The name does not resolve.
    #[error(
        "cannot resolve host name \"{host}\": {source}; check the spelling of the host (-h, the connection string or PGHOST), and the DNS"
    )]
    Resolve {
        /// Host name that does not resolve.
        host: String,
        /// The resolver's answer.
        source: std::io::Error,
    },
    /// No server listens there.
    #[error("connection to {at} refused; {remedy}")]
    Refused {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The things to check.
        remedy: &'static str,
    },
    /// The operating system cannot get there.
    #[error("cannot reach {at}: {source}; {remedy}")]
    Unreachable {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The operating system's reason.
        source: std::io::Error,
        /// The things to check.
        remedy: Cow<'static, str>,
    },
    /// No complete answer within connect_timeout.
    #[error(
        "{at} did not complete the connection within {seconds} s (connect_timeout); check for a firewall and for an overloaded server, or raise connect_timeout"
    )]
    Timeout {
        /// Address of the server: host and port, or socket.
        at: String,
        /// connect_timeout.
        seconds: u64,
    },
    /// Something answered in another protocol.
    #[error("{at} answered, but not as a PostgreSQL server{answer}; check the port")]
    NotPostgres {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The beginning of its answer, as ` ("HTTP/1.1")`, or nothing.
        answer: String,
    },
    /// The connection ended before it was ready.
    #[error(
        "{at} closed the connection before it was ready{why}; the server may be stopping, or a proxy may have no \
         server behind it: read the logs of both"
    )]
    ClosedEarly {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The operating system's reason as `: reason`, or nothing.
        why: String,
    },
    /// sslmode demands TLS, the server has none.
    #[error(
        "{at} does not support TLS, but sslmode={sslmode} requires it; set ssl=on in the server, or connect with \
         sslmode=prefer"
    )]
    TlsNotOffered {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The mode asked for.
        sslmode: &'static str,
    },
    /// The server's certificate does not satisfy sslmode.
    #[error("the TLS certificate of {at} failed sslmode={sslmode}: {why}")]
    Certificate {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The mode asked for.
        sslmode: &'static str,
        /// The failed check, and the remedy.
        why: String,
    },
    /// The TLS handshake failed for another reason.
    #[error("TLS with {at} failed: {why}")]
    Tls {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The TLS library's reason.
        why: String,
    },
    /// The server wants a password and there is none.
    #[error("{at} asks for a password for user \"{user}\", but none was given; {remedy}")]
    PasswordMissing {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The user name of the connection.
        user: String,
        /// The ways to give one.
        remedy: String,
    },
    /// Authentication ended without the server's verdict.
    #[error("authentication with {at} failed: {why}")]
    Authentication {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The reason, and the remedy.
        why: String,
    },
    /// The server refused the connection.
    #[error("{at}: {error}{remedy}")]
    Rejected {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The server's words.
        error: Box<ServerError>,
        /// The remedy, as `; do this`, or nothing.
        remedy: String,
    },
    /// The server is not of the kind that target_session_attrs asks for.
    #[error(
        "{at} does not match target_session_attrs={wanted}: it {found}. Name another host, or change target_session_attrs"
    )]
    SessionAttributes {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The value asked for.
        wanted: &'static str,
        /// Property of the server that does not fit.
        found: &'static str,
    },
    /// Several places were tried.
    #[error("all {} attempts to connect failed:{}", .0.len(), listed(.0))]
    AllFailed(Vec<ConnectError>),
    /// A query failed with the server's error.
    #[error("{at}: {error}{}", time_out(.error))]
    Query {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The server's words.
        error: Box<ServerError>,
    },
    /// An established connection ended.
    #[error("the connection to {at} was lost: {why}")]
    Lost {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The server's last words, if it had any.
        error: Option<Box<ServerError>>,
        /// The same, or the operating system's reason.
        why: String,
    },
    /// The text for the server has a NUL byte.
    #[error("a statement, name or value has a NUL byte, which PostgreSQL does not accept: remove it")]
    Nul,
    /// The server or the driver broke the protocol.
    #[error(
        "protocol error with {at}: {why}. Check that {at} is PostgreSQL 13 or later, and not another service"
    )]
    Protocol {
        /// Address of the server: host and port, or socket.
        at: String,
        /// The driver's reason.
        why: String,
    },
}

impl Classified for ConnectError {
    fn class(&self) -> Class {
        match self {
            Self::Syntax { .. }
            | Self::UnknownKeyword { .. }
            | Self::InvalidValue { .. }
            | Self::Unsupported { .. }
            | Self::Mismatch(_)
            | Self::UnknownService { .. }
            | Self::ServiceFile { .. }
            | Self::CertificateFile { .. }
            | Self::NoUser
            | Self::Nul => Class::Request,
            Self::NoSystemRoots(_)
            | Self::NoSocket { .. }
            | Self::Resolve { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::NotPostgres { .. }
            | Self::ClosedEarly { .. }
            | Self::TlsNotOffered { .. }
            | Self::Certificate { .. }
            | Self::Tls { .. }
            | Self::PasswordMissing { .. }
            | Self::Authentication { .. }
            | Self::Rejected { .. }
            | Self::SessionAttributes { .. }
            | Self::AllFailed(_)
            | Self::Query { .. }
            | Self::Lost { .. }
            | Self::Protocol { .. } => Class::Machine,
        }
    }

    fn is_lost_server(&self) -> bool {
        match self {
            Self::NoSocket { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::ClosedEarly { .. }
            | Self::Lost { .. } => true,
            Self::AllFailed(errors) => errors.iter().all(Self::is_lost_server),
            _ => false,
        }
    }
}

impl ConnectError {
    /// With the way in which this command uses pgrig's own PostgreSQL, if no local server listens.
    #[must_use]
    pub fn with_own(mut self, remedy: impl Into<String>) -> Self {
        if let Self::NoSocket { own, .. } = &mut self {
            *own = remedy.into();
        }
        self
    }

    /// With the command that creates a missing database, where createdb would not reach the server.
    #[must_use]
    pub fn with_creation(mut self, command: &str) -> Self {
        if let Self::Rejected { error, remedy, .. } = &mut self
            && error.code == SqlState::UNDEFINED_DATABASE
        {
            *remedy = format!("; run {command}, or {ANOTHER_DATABASE}");
        }
        self
    }

    /// With databases that exist, whose names are like that of the missing one.
    #[must_use]
    pub fn with_alike(mut self, alike: &str) -> Self {
        if let Self::Rejected { error, remedy, .. } = &mut self
            && error.code == SqlState::UNDEFINED_DATABASE
        {
            *remedy = format!("; did you mean {alike}? Otherwise, {}", remedy.trim_start_matches("; "));
        }
        self
    }

    /// With the name of a missing database as it has to be given, if its name was quoted as in SQL.
    #[must_use]
    pub fn with_plain_name(mut self, name: &str) -> Self {
        if let Self::Rejected { error, remedy, .. } = &mut self
            && error.code == SqlState::UNDEFINED_DATABASE
        {
            *remedy = format!("; give the name without the quotes of SQL: {name}");
        }
        self
    }

    /// With the way in which this command names another database, where that is not -d.
    #[must_use]
    pub fn with_another_database(mut self, instead: &str) -> Self {
        if let Self::Rejected { remedy, .. } = &mut self {
            *remedy = remedy.replace(ANOTHER_DATABASE, instead);
        }
        self
    }

    /// With the statement that the server refused.
    #[must_use]
    pub fn of_statement(mut self, sql: &str) -> Self {
        if let Self::Query { error, .. } = &mut self {
            error.statement = Some(beginning(sql));
        }
        self
    }

    /// The class where the statement is the user's own: see [`ServerError::class`].
    pub fn class_of_own_sql(&self) -> Class {
        match self {
            Self::Query { error, .. } => error.class(),
            error => error.class(),
        }
    }

    /// The server's SQLSTATE, where the server spoke (of several places: the first that did).
    pub fn sqlstate(&self) -> Option<&SqlState> {
        match self {
            Self::Rejected { error, .. }
            | Self::Query { error, .. }
            | Self::Lost { error: Some(error), .. } => Some(&error.code),
            Self::AllFailed(errors) => errors.iter().find_map(Self::sqlstate),
            _ => None,
        }
    }

    /// Whether the next host of a list may still work. As in libpq, a host that cannot be reached,
    /// or is not ready, leads to the next one; an authentication error does not.
    pub(super) fn allows_next_host(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::NotPostgres { .. }
            | Self::ClosedEarly { .. }
            | Self::SessionAttributes { .. } => true,
            // Starting, stopping or recovering.
            Self::Rejected { error, .. } => error.code == SqlState::CANNOT_CONNECT_NOW,
            Self::AllFailed(errors) => errors.iter().all(Self::allows_next_host),
            _ => false,
        }
    }
}

/// The remedy for a statement that `statement_timeout` ended.
fn time_out(error: &ServerError) -> &'static str {
    if error.code == SqlState::QUERY_CANCELED && error.message.contains("statement timeout") {
        "; raise statement_timeout where it is set: in PGOPTIONS, the options of the connection string, ALTER ROLE or ALTER DATABASE, or by \
         the command's own --timeout"
    } else {
        ""
    }
}

/// As much of a statement as people read, in one line.
fn beginning(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(STATEMENT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The reason that is shown for a connection that ended without any other known reason.
pub const CLOSED_WITHOUT_A_WORD: &str =
    "the server closed it without a message (killed or crashed? see its log)";

/// Why a connection ended with this error of its socket. A server that is killed resets connections on which it
/// has not read everything, and closes the others.
pub fn why_lost(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
            CLOSED_WITHOUT_A_WORD.to_owned()
        }
        _ => error.to_string(),
    }
}

fn searched(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(" or ")
}

fn line_number(number: Option<usize>) -> String {
    number.map(|n| format!(" line {n}")).unwrap_or_default()
}

fn listed(errors: &[ConnectError]) -> String {
    errors.iter().fold(String::new(), |text, error| text + "\n  " + &error.to_string())
}
