//! The meaning of a failed startup, from the driver's error: the driver knows the protocol, this module the remedies.

use std::error::Error;
use std::io;
use tokio_postgres::error::SqlState;

use rustls::{AlertDescription, CertificateError, OtherError};

use super::connection::is_nul;
use super::conninfo;
use super::error::ConnectError;
use super::passfile::Secret;
use super::server_error::ServerError;
use super::socket::{Foreign, ResolvedAddress};
use super::target::Target;
use super::verify::NameMismatch;

/// How a command names another database, in remedies.
pub(super) const ANOTHER_DATABASE: &str = "give another database with -d";

/// The template that must stay as initdb made it.
const TEMPLATE: &str = "template0";

/// One attempt's circumstances.
pub(super) struct Attempt<'a> {
    pub(super) target: &'a Target,
    pub(super) address: &'a ResolvedAddress,
    pub(super) password: Option<&'a Secret>,
}

/// Translates the driver's error.
#[expect(clippy::needless_pass_by_value, reason = "it ends here")]
pub(super) fn startup_error(attempt: &Attempt<'_>, error: tokio_postgres::Error) -> ConnectError {
    let at = attempt.address.to_string();
    if let Some(db) = error.as_db_error() {
        let error: Box<ServerError> = db.into();
        let remedy = remedy(attempt, &error);
        return ConnectError::Rejected { at, error, remedy };
    }
    if let Some(Foreign(answer)) = cause(&error) {
        return ConnectError::NotPostgres { at, answer: answer.clone() };
    }
    if let Some(tls) = cause::<rustls::Error>(&error) {
        return tls_error(attempt, at, tls);
    }
    if is_nul(&error) {
        return ConnectError::Nul;
    }
    if error.is_closed() {
        return ConnectError::ClosedEarly { at, why: String::new() };
    }
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    // The driver's kinds are private; their names are its Display.
    match (error.to_string().as_str(), source) {
        ("invalid configuration", _) => ConnectError::PasswordMissing {
            at,
            user: attempt.target.user.clone(),
            remedy: attempt.target.password_remedy(),
        },
        ("error performing TLS handshake", why) => ConnectError::Tls { at, why },
        ("authentication error", why) => ConnectError::Authentication { at, why: authentication(&why) },
        ("error communicating with the server", why) => {
            ConnectError::ClosedEarly { at, why: format!(": {why}") }
        }
        ("unexpected message from server" | "error parsing response from server", _) => {
            ConnectError::NotPostgres { at, answer: String::new() }
        }
        (kind, why) => ConnectError::Protocol { at, why: format!("{kind}: {why}") },
    }
}

fn tls_error(attempt: &Attempt<'_>, at: String, error: &rustls::Error) -> ConnectError {
    let tls = &attempt.target.tls;
    let sslmode = tls.mode.name();
    let why = match error {
        // The peer announced TLS and sent something else: its `S` had another meaning, or it is not PostgreSQL.
        rustls::Error::InvalidMessage(_) => return ConnectError::NotPostgres { at, answer: String::new() },
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
            let remedy = "; connect with a name in the certificate (-h; hostaddr= keeps the address), or check \
                          only its signature with sslmode=verify-ca";
            format!("{other}{}", if other.is::<NameMismatch>() { remedy } else { "" })
        }
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => format!(
            "no certificate in {} signed it; give the certificate of the right authority with sslrootcert=FILE",
            tls.roots
        ),
        rustls::Error::InvalidCertificate(reason) => {
            format!("{reason}; the server needs another certificate (trusted: {})", tls.roots)
        }
        rustls::Error::AlertReceived(alert) => {
            let remedy = match alert {
                AlertDescription::CertificateRequired => {
                    ": give a client certificate with sslcert=FILE and sslkey=FILE"
                }
                AlertDescription::UnknownCA | AlertDescription::BadCertificate => {
                    ", because it does not accept the client certificate: check sslcert, and the server's ssl_ca_file"
                }
                AlertDescription::ProtocolVersion => {
                    ", because it supports no TLS version that pgrig allows (1.2 and 1.3): raise ssl_max_protocol_version in \
                     the server"
                }
                _ => "",
            };
            return ConnectError::Tls {
                at,
                why: format!("the server refused TLS (alert {alert:?}){remedy}"),
            };
        }
        other => return ConnectError::Tls { at, why: other.to_string() },
    };
    ConnectError::Certificate { at, sslmode, why }
}

/// The cause of type `E`, also inside an [`io::Error`] (whose `source` skips the wrapped error).
pub(super) fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

fn authentication(why: &str) -> String {
    let remedy = match why {
        "server did not use channel binding" => "; channel_binding=require needs TLS and a SCRAM password",
        "unsupported authentication method" | "unsupported SASL mechanism" => {
            "; pgrig supports trust, password, md5, scram-sha-256 and cert: change the method in pg_hba.conf"
        }
        _ => "",
    };
    format!("{why}{remedy}")
}

/// The arguments with which createdb reaches the same server, quoted for a shell.
fn createdb(attempt: &Attempt<'_>) -> String {
    let Target { user, dbname, .. } = attempt.target;
    let (host, port) = match attempt.address {
        // …/.s.PGSQL.5432
        ResolvedAddress::Unix(path) => (
            path.parent().unwrap_or(path).display().to_string(),
            path.extension().unwrap_or_default().display().to_string(),
        ),
        ResolvedAddress::Tcp { host, socket } => (host.clone(), socket.port().to_string()),
    };
    format!("-h {} -p {port} -U {} {}", quoted(&host), quoted(user), quoted(dbname))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The environment variable of the setting that the server names, before the other sources.
fn variable(message: &str) -> &'static str {
    let variables =
        [("\"TimeZone\"", "PGTZ, "), ("\"DateStyle\"", "PGDATESTYLE, "), ("\"geqo\"", "PGGEQO, ")];
    variables.iter().find(|(setting, _)| message.contains(*setting)).map_or("", |(_, variable)| *variable)
}

/// The remedy for the server's refusal. The server never tells more than it must; this may.
fn remedy(attempt: &Attempt<'_>, error: &ServerError) -> String {
    let Target { user, dbname, .. } = attempt.target;
    match error.code {
        SqlState::INVALID_PASSWORD => match attempt.password {
            Some(secret) => format!("; the password for user \"{user}\" comes from {}: correct it there", secret.source),
            None => format!("; no password for user \"{user}\" was given: set PGPASSWORD"),
        },
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if error.message.contains("pg_hba.conf") => {
            "; add an entry for this host, user and database to the server's pg_hba.conf, or connect another way \
             (-h, -U, sslmode)"
                .to_owned()
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if error.message.starts_with("Peer authentication") => format!(
            "; become the operating-system user \"{user}\", or connect over TCP with a password: -h localhost"
        ),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if error.message.contains("valid client certificate") => {
            "; give a client certificate with sslcert=FILE and sslkey=FILE".to_owned()
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if error.message.contains("authentication failed") => {
            "; check the line for this user in pg_hba.conf and the map in pg_ident.conf, or give another user with -U"
                .to_owned()
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            let exists = error.message.contains("is not permitted to log in");
            let run = if exists { "ALTER ROLE" } else { "CREATE ROLE" };
            format!("; give another user with -U, or run {run} \"{}\" LOGIN", user.replace('"', "\"\""))
        }
        SqlState::UNDEFINED_DATABASE => {
            let host = conninfo::host_in_place_of_name(dbname);
            let host =
                host.map_or_else(String::new, |uri| format!("; to name a host, give -d {}; otherwise", quoted(&uri)));
            let or = if host.is_empty() { ";" } else { "" };
            format!("{host}{or} run createdb {}, or {ANOTHER_DATABASE}", createdb(attempt))
        }
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE if dbname == TEMPLATE => {
            format!("; this is PostgreSQL's own template, which must not change: {ANOTHER_DATABASE}")
        }
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE if error.message.contains("not currently accepting") => format!(
            "; run ALTER DATABASE \"{}\" ALLOW_CONNECTIONS true, or {ANOTHER_DATABASE}",
            dbname.replace('"', "\"\"")
        ),
        SqlState::UNDEFINED_OBJECT | SqlState::INVALID_PARAMETER_VALUE | SqlState::CANT_CHANGE_RUNTIME_PARAM => format!(
            "; the setting comes from {}the options of the connection string, PGOPTIONS, ALTER ROLE or ALTER DATABASE: correct it there",
            variable(&error.message)
        ),
        // postgres.c: `process_postgres_switches`.
        SqlState::SYNTAX_ERROR if error.message.contains("command-line argument") => {
            let argument = error.message.rsplit_once(": ").map_or("", |(_, argument)| argument);
            let example = if argument.contains('=') { argument } else { "work_mem=64MB" };
            format!(
                "; in PGOPTIONS and in the options of the connection string, write -c before each setting: {}",
                quoted(&format!("-c {example}"))
            )
        }
        SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "; have its owner run GRANT CONNECT ON DATABASE \"{}\" TO \"{}\", or {ANOTHER_DATABASE}",
            dbname.replace('"', "\"\""),
            user.replace('"', "\"\"")
        ),
        SqlState::TOO_MANY_CONNECTIONS => {
            let raise = if error.message.contains("for role") {
                format!("run ALTER ROLE \"{}\" CONNECTION LIMIT -1", user.replace('"', "\"\""))
            } else if error.message.contains("for database") {
                format!("run ALTER DATABASE \"{}\" CONNECTION LIMIT -1", dbname.replace('"', "\"\""))
            } else {
                "raise the server's max_connections".to_owned()
            };
            format!("; close other sessions, or {raise}")
        }
        SqlState::CANNOT_CONNECT_NOW => "; wait a moment and try again".to_owned(),
        _ => String::new(),
    }
}
