//! Real servers, shared by the tests that run at the same time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use connect::Target;
use pgserver::{Home, Instance, Major, Running, Spec};
use tempfile::TempDir;

use super::certificates::{Authority, Identity, private_file};
use super::run;

/// A server in a home of its own.
pub(crate) struct Server {
    running: Option<Running>,
    home: TempDir,
}

/// A server with TLS, and who vouches for it.
pub(crate) struct TlsServer {
    pub(crate) server: Server,
    files: TempDir,
}

static OLDEST: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static PLAIN: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static TLS: Mutex<Weak<TlsServer>> = Mutex::new(Weak::new());

/// The server without TLS.
pub(crate) fn plain() -> Arc<Server> {
    shared(&PLAIN, || Server::of(Major::NEWEST))
}

/// The same, as old as can be.
pub(crate) fn oldest() -> Arc<Server> {
    shared(&OLDEST, || Server::of(Major::OLDEST))
}

/// A server of one's own, to be broken.
pub(crate) fn own() -> Server {
    Server::start(Major::NEWEST)
}

/// The server with TLS.
pub(crate) fn tls() -> Arc<TlsServer> {
    shared(&TLS, TlsServer::start)
}

/// The one that another test holds, or a new one.
fn shared<T>(place: &Mutex<Weak<T>>, make: impl FnOnce() -> T) -> Arc<T> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    place.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(make());
        *place = Arc::downgrade(&fresh);
        fresh
    })
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

impl Server {
    /// With roles.
    fn of(version: Major) -> Self {
        let server = Self::start(version);
        server.sql(ROLES);
        server
    }

    fn start(version: Major) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), version, &[])
    }

    fn start_in(home: TempDir, version: Major, set: &[(&str, &str)]) -> Self {
        let cache = Home::locate().unwrap().postgresql_dir();
        let pgrig_home = Home::at(home.path()).unwrap().with_postgresql_cache(&cache);
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = Spec { tcp: Some(true), version: Some(version), set, ..Spec::default() };
        let running = Instance::open(&pgrig_home, spec).unwrap().attach_or_start(&|_| ()).unwrap();
        Self { running: Some(running), home }
    }

    /// Ends it, as `pg_ctl stop` does.
    pub(crate) fn stop(mut self) {
        self.running.take().unwrap().stop().unwrap();
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// Over the Unix socket, as superuser.
    pub(crate) fn target(&self) -> Target {
        let connection = self.running().connection();
        Target::embedded(&connection.socket_dir, connection.port, connection.user, connection.database)
    }

    pub(crate) fn socket_dir(&self) -> String {
        self.running().connection().socket_dir.display().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.running().connection().port
    }

    /// `host=localhost hostaddr=127.0.0.1 port=… user=alice dbname=postgres`: SCRAM over TCP.
    pub(crate) fn tcp(&self) -> String {
        format!("host=localhost hostaddr=127.0.0.1 port={} user=alice dbname=postgres", self.port())
    }

    fn sql(&self, script: &str) {
        run(async {
            let connection = self.target().connect().await.unwrap();
            for statement in script.split("; ") {
                connection.client.batch_execute(statement).await.unwrap();
            }
            connection.close().await;
        });
    }

    /// Has the server write a file into its data directory: whichever account it runs as, that one owns
    /// the file.
    fn write(&self, name: &str, text: &str) {
        let text = text.trim_end().replace('\'', "''");
        self.sql(&format!(
            "COPY (SELECT unnest(string_to_array('{text}', E'\\n'))) TO PROGRAM 'umask 077 && cat >{name}'"
        ));
    }
}

impl TlsServer {
    /// Two starts: the first to let the server write its own files, the second to use them.
    fn start() -> Self {
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new("pgrig test authority");
        let Identity { certificate, key } = authority.sign("pgrig test server", &["localhost"]);
        let mut server = Server::of(Major::NEWEST);
        for (name, text) in [
            ("server.crt", certificate.as_str()),
            ("server.key", &key),
            ("root.crt", &authority.certificate),
            ("pg_hba.conf", HBA),
        ] {
            server.write(name, text);
        }
        server.running.take().unwrap().stop().unwrap();
        let server = Server::start_in(
            std::mem::replace(&mut server.home, tempfile::tempdir().unwrap()),
            Major::NEWEST,
            &[("ssl", "on"), ("ssl_ca_file", "root.crt")],
        );
        let client = authority.sign("certified", &[]);
        let stranger = Authority::new("pgrig test stranger");
        private_file(files.path(), "root.crt", &authority.certificate);
        private_file(files.path(), "client.crt", &client.certificate);
        private_file(files.path(), "client.key", &client.key);
        private_file(files.path(), "stranger.crt", &stranger.certificate);
        Self { server, files }
    }

    /// root.crt, stranger.crt (an authority that signed nothing), client.crt and client.key.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The server's TCP string with alice's password and these parameters.
    pub(crate) fn string(&self, more: &str) -> String {
        format!("{} password='wonder\\'land' {more}", self.server.tcp())
    }
}
