//! A real server in a home of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use connect::{ConnectError, ConnectOptions, Connection, Target};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pgserver::{Home, Instance, Major, Running, Spec};
use tempfile::TempDir;

use crate::directory::directory;
use crate::templates::{templates, templates_of};

/// Settings of all servers, unless a test has its own: small, for tests run beside each other; and without
/// forcing anything to disk, because no test can observe the loss of a failing power supply.
const SETTINGS: [(&str, &str); 3] = [("shared_buffers", "16MB"), ("fsync", "off"), ("max_wal_size", "1GB")];

/// An instance of this release with these settings beside the usual ones of tests.
pub fn spec(major: u16, set: &[(&str, &str)]) -> Spec {
    let usual = SETTINGS.iter().filter(|(name, _)| set.iter().all(|(own, _)| own != name));
    let set = usual.chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Spec { version: Some(Major::from_number(major).unwrap()), set, ..Spec::default() }
}

/// A server in a throw-away home. Stopped and removed in the end.
pub struct Server {
    running: Option<Running>,
    home: Home,
    spec: Spec,
    databases: AtomicU32,
    /// Removed after the server has stopped.
    directory: Option<TempDir>,
}

/// An empty database of a test's own.
pub struct Database {
    /// Its address.
    pub target: Target,
    /// Its server's major version.
    pub major: u16,
}

impl Server {
    /// One of a test's own.
    pub fn start(spec: Spec) -> Self {
        let directory = directory();
        let mut server = Self::start_in(directory.path(), spec);
        server.directory = Some(directory);
        server
    }

    /// With this directory as its home, which stays.
    pub fn start_in(directory: &Path, spec: Spec) -> Self {
        let _ = templates_of(spec.version.unwrap_or_default().number());
        let home = Home::at(directory).unwrap().with_postgresql_cache(&templates());
        let mut server = Self { running: None, home, spec, databases: AtomicU32::new(1), directory: None };
        server.run();
        server
    }

    fn run(&mut self) {
        let instance = Instance::open(&self.home, self.spec.clone()).unwrap();
        self.running = Some(instance.attach_or_start(&|_| ()).unwrap());
    }

    /// Stops it, as `pg_ctl stop` does; its home stays until it is dropped.
    pub fn stop(&mut self) {
        self.running.take().unwrap().stop().unwrap();
    }

    /// Stops it, and starts it with these settings in addition.
    pub fn restart_with(&mut self, set: &[(&str, &str)]) {
        self.stop();
        self.spec.set.extend(set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.run();
    }

    /// Kills the postmaster and starts the server again.
    pub fn crash(&mut self) {
        kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGKILL).unwrap();
        drop(self.running.take());
        self.run();
    }

    /// The server itself, which runs.
    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("the server runs")
    }

    /// Its major version.
    pub fn major(&self) -> u16 {
        self.running().version().major()
    }

    /// The postmaster.
    pub fn pid(&self) -> u32 {
        self.running().server_pid()
    }

    /// The throw-away home.
    pub fn home(&self) -> &Path {
        self.home.root()
    }

    /// PGDATA.
    pub fn data_dir(&self) -> PathBuf {
        self.running().data_dir()
    }

    /// Directory of its Unix socket.
    pub fn socket_dir(&self) -> String {
        self.running().connection().socket_dir.display().to_string()
    }

    /// Its port, over TCP too if it has that.
    pub fn port(&self) -> u16 {
        self.running().connection().port
    }

    /// A database, over the Unix socket, as superuser.
    pub fn target(&self, database: &str) -> Target {
        let at = self.running().connection();
        Target::embedded(&at.socket_dir, at.port, at.user, database)
    }

    /// The same for psql and pg_dump.
    pub fn conninfo(&self, database: &str) -> String {
        let at = self.running().connection();
        format!("host={} port={} user={} dbname={database}", at.socket_dir.display(), at.port, at.user)
    }

    /// `host=localhost hostaddr=127.0.0.1 port=… user=alice dbname=postgres`: SCRAM over TCP, for the role of
    /// [`tls`](crate::tls)'s servers.
    pub fn tcp(&self) -> String {
        format!("host=localhost hostaddr=127.0.0.1 port={} user=alice dbname=postgres", self.port())
    }

    /// Connects to a database.
    pub async fn connect(&self, database: &str) -> Connection {
        self.target(database).connect().await.unwrap()
    }

    /// Creates an empty database.
    pub async fn database(&self) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let connection = self.connect("postgres").await;
        connection.client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        connection.close().await;
        Database { target: self.target(&name), major: self.major() }
    }

    /// Runs statements, separated by `; `, each in a transaction of its own.
    pub fn sql(&self, script: &str) {
        block_on(async {
            let connection = self.connect("postgres").await;
            for statement in script.split("; ") {
                let done = connection.client.batch_execute(statement).await;
                done.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
            }
            connection.close().await;
        });
    }

    /// Lets it run, and its home stay, as long as this process lives. A shell removes the home then: nothing in
    /// this process runs after the last test.
    #[expect(clippy::zombie_processes, reason = "it outlives this process")]
    pub(crate) fn leave_to_process_end(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let script = "cat >/dev/null; n=0; while kill -0 \"$1\" 2>/dev/null && [ $n -lt 100 ]; \
                      do sleep 0.1; n=$((n + 1)); done; rm -rf -- \"$0\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(directory.keep()).arg(self.pid().to_string());
        let quiet = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = quiet.stdin(std::process::Stdio::piped()).spawn().unwrap();
        // Closed by the end of this process, however it ends.
        std::mem::forget(child.stdin.take());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // A test may have killed it.
            let _ = running.stop();
        }
    }
}

/// Resolves a connection string in an environment of these variables only.
///
/// # Errors
/// Those of [`connect::resolve`].
pub fn target(string: &str, env: &[(&str, &str)]) -> Result<Target, ConnectError> {
    let options = ConnectOptions { dbname: Some(string.to_owned()), ..ConnectOptions::default() };
    connect::resolve(&options, &|name| {
        // A home without files: the developer's own must not matter.
        let env = env.iter().chain(&[("HOME", "/nonexistent")]);
        env.into_iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Runs a test's async part.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// An identifier as SQL has it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL has it.
pub fn quoted_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
