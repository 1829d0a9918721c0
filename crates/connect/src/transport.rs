//! Transport of the bytes: part of every run document, because a Unix socket and TLS over TCP are different
//! experiments.

use std::fmt;
use std::path::PathBuf;

/// The way a connection goes to its server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transport {
    /// A Unix-domain socket, at this path.
    UnixSocket {
        /// The socket's file, `…/.s.PGSQL.<port>`.
        path: PathBuf,
    },
    /// TCP.
    Tcp {
        /// The host of the options: a name or an address.
        host: String,
        /// Port that the server listens on.
        port: u16,
        /// Encryption, if any.
        tls: Option<TlsInfo>,
    },
}

/// The TLS session that encrypts a connection, as negotiated.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TlsInfo {
    /// `TLS 1.2` or `TLS 1.3`.
    pub protocol: String,
    /// The cipher suite by its IANA name, e.g. `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnixSocket { path } => write!(f, "unix socket {}", path.display()),
            Self::Tcp { host, port, tls } => {
                write!(f, "tcp {}", host_port(host, *port))?;
                tls.iter().try_for_each(|tls| write!(f, ", {}", tls.protocol))
            }
        }
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(super) fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_people_say_it() {
        let tls = Some(TlsInfo { protocol: "TLS 1.3".into(), cipher: "TLS13_AES_256_GCM_SHA384".into() });
        let cases = [
            (Transport::UnixSocket { path: "/tmp/.s.PGSQL.1".into() }, "unix socket /tmp/.s.PGSQL.1"),
            (Transport::Tcp { host: "db".into(), port: 5432, tls: None }, "tcp db:5432"),
            (Transport::Tcp { host: "::1".into(), port: 1, tls }, "tcp [::1]:1, TLS 1.3"),
        ];
        for (transport, expected) in cases {
            assert_eq!(transport.to_string(), expected);
        }
    }
}
