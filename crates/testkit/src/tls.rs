//! Servers with TLS, and certificates made for one test run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pgserver::Spec;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::RELEASES;
use crate::server::{Server, spec};

const OLDEST: u16 = RELEASES[0];
const NEWEST: u16 = RELEASES[1];

/// Signs certificates; knows its own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, PEM.
    pub certificate: String,
}

/// A certificate and its key, PEM.
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new one of this name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// A certificate for `common`, and for `names` (may be none).
    pub fn sign(&self, common: &str, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }
}

/// Writes a file that only its owner can read.
pub fn private_file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// Roles by the way they log in; pg_hba.conf (below) knows some of them.
const ROLES: &str = "CREATE ROLE alice LOGIN PASSWORD 'wonder''land'; \
                     SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'md5 secret'; \
                     CREATE ROLE clear LOGIN PASSWORD 'clear secret'; \
                     CREATE ROLE certified LOGIN; CREATE ROLE plainonly LOGIN; CREATE ROLE tlsonly LOGIN; \
                     CREATE DATABASE closed; REVOKE CONNECT ON DATABASE closed FROM PUBLIC";

const HBA: &str = "local all all trust\n\
                   hostssl all certified 127.0.0.1/32 cert\n\
                   hostnossl all plainonly 127.0.0.1/32 trust\n\
                   hostssl all tlsonly 127.0.0.1/32 trust\n\
                   host all plainonly,tlsonly 127.0.0.1/32 reject\n\
                   host all clear 127.0.0.1/32 password\n\
                   host all old 127.0.0.1/32 md5\n\
                   host all all 127.0.0.1/32 scram-sha-256\n";

/// The server without TLS that the tests of a program share, with TCP and roles.
pub fn plain() -> &'static Server {
    static PLAIN: OnceLock<Server> = OnceLock::new();
    PLAIN.get_or_init(|| with_roles(NEWEST).into_lasting())
}

/// The same, as old as can be.
pub fn oldest() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| with_roles(OLDEST).into_lasting())
}

/// The server with TLS that the tests of a program share.
pub fn tls() -> &'static TlsServer {
    static TLS: OnceLock<TlsServer> = OnceLock::new();
    TLS.get_or_init(TlsServer::start)
}

/// An instance that is reached over TCP too.
fn tcp_spec(major: u16) -> Spec {
    Spec { tcp: Some(true), ..spec(major, &[]) }
}

/// A server of a test's own with TCP, to be broken.
pub fn own() -> Server {
    Server::start(tcp_spec(NEWEST))
}

fn with_roles(major: u16) -> Server {
    let server = Server::start(tcp_spec(major));
    server.sql(ROLES);
    server
}

/// A server with TLS, and its certificate authority.
pub struct TlsServer {
    /// It runs.
    pub server: Server,
    files: PathBuf,
}

impl TlsServer {
    fn start() -> Self {
        let tls = Self::on(with_roles(NEWEST), HBA);
        Self { server: tls.server.into_lasting(), files: tls.files }
    }

    /// A server of a test's own that listens for TCP, started again with TLS and with this pg_hba.conf. Its certificate is for localhost. The first
    /// start lets the server write its own files, the second one uses them.
    pub fn on(mut server: Server, hba: &str) -> Self {
        let authority = Authority::new("pgrig test authority");
        let Identity { certificate, key } = authority.sign("pgrig test server", &["localhost"]);
        for (name, text) in [
            ("server.crt", certificate.as_str()),
            ("server.key", &key),
            ("root.crt", &authority.certificate),
            ("pg_hba.conf", hba),
        ] {
            write(&server, name, text);
        }
        server.restart_with(&[("ssl", "on"), ("ssl_ca_file", "root.crt")]);
        let files = server.home().join("client");
        fs::create_dir(&files).unwrap();
        let client = authority.sign("certified", &[]);
        let stranger = Authority::new("pgrig test stranger");
        private_file(&files, "root.crt", &authority.certificate);
        private_file(&files, "client.crt", &client.certificate);
        private_file(&files, "client.key", &client.key);
        private_file(&files, "stranger.crt", &stranger.certificate);
        Self { server, files }
    }

    /// root.crt, stranger.crt (an authority that signed nothing), client.crt and client.key.
    pub fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    /// The server's TCP string with alice's password and these parameters.
    pub fn string(&self, more: &str) -> String {
        format!("{} password='wonder\\'land' {more}", self.server.tcp())
    }
}

/// Has the server write a file into its data directory: whichever account it runs as, that one owns the file.
fn write(server: &Server, name: &str, text: &str) {
    let text = text.trim_end().replace('\'', "''");
    server.sql(&format!(
        "COPY (SELECT unnest(string_to_array('{text}', E'\\n'))) TO PROGRAM 'umask 077 && cat >{name}'"
    ));
}
