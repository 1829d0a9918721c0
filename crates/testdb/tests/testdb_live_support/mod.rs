//! Databases with a rich schema, on the oldest and the newest release, and what their catalogs say.

#![allow(dead_code, reason = "each test program uses its part")]
#![allow(clippy::print_stderr, reason = "says what is skipped")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use connect::{Connection, Target};
use pgserver::{Home, Instance, Running, Spec};
use tempfile::TempDir;

/// A schema with everything that a change of persistence could trip over.
pub(crate) const RICH: &str = include_str!("rich.sql");

static SHARED: [(u32, Mutex<Weak<Server>>); 2] =
    [(13, Mutex::new(Weak::new())), (18, Mutex::new(Weak::new()))];

/// A server for the tests of one program. Dropped with the last of its databases.
pub(crate) struct Server {
    /// None only between a crash and the next start.
    running: Option<Running>,
    home: TempDir,
    databases: AtomicU32,
    pub(crate) release: u32,
}

/// An empty database of a test's own.
pub(crate) struct Database {
    pub(crate) server: Arc<Server>,
    pub(crate) target: Target,
}

fn start(release: u32, home: &Path) -> Running {
    let cache = Home::locate().unwrap().postgresql_dir();
    let home = Home::at(home).unwrap().with_postgresql_cache(&cache);
    let set = [("shared_buffers", "64MB"), ("fsync", "off"), ("max_connections", "100")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let spec = Spec { version: Some(release.to_string().parse().unwrap()), set, ..Spec::default() };
    Instance::open(&home, spec).unwrap().attach_or_start(&|_| ()).unwrap()
}

impl Server {
    /// One of a test's own, to be broken.
    pub(crate) fn start(release: u32) -> Self {
        let home = tempfile::tempdir().unwrap();
        let running = start(release, home.path());
        Self { running: Some(running), home, databases: AtomicU32::new(0), release }
    }

    pub(crate) fn target(&self, database: &str) -> Target {
        let at = self.running.as_ref().unwrap().connection();
        Target::embedded(&at.socket_dir, at.port, at.user, database)
    }

    /// How psql and pg_dump get to the database.
    pub(crate) fn url(&self, database: &str) -> String {
        let at = self.running.as_ref().unwrap().connection();
        format!("host={} port={} user={} dbname={database}", at.socket_dir.display(), at.port, at.user)
    }

    /// Kills the postmaster and starts the server again.
    pub(crate) fn crash(&mut self) {
        let running = self.running.take().unwrap();
        let pid = nix::unistd::Pid::from_raw(running.server_pid().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        drop(running);
        self.running = Some(start(self.release, self.home.path()));
    }

    pub(crate) async fn database(self: &Arc<Self>) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let connection = self.target("postgres").connect().await.unwrap();
        connection.client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        connection.close().await;
        Database { target: self.target(&name), server: Arc::clone(self) }
    }
}

/// The server of this release that the tests share.
pub(crate) fn server(release: u32) -> Arc<Server> {
    let (_, shared) = SHARED.iter().find(|(shared, _)| *shared == release).unwrap();
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(Server::start(release));
        *shared = Arc::downgrade(&fresh);
        fresh
    })
}

/// Runs a test on the oldest and on the newest release that pgrig works with.
pub(crate) fn on_each_release<F: Future<Output = ()>>(test: impl Fn(Database) -> F) {
    for (release, _) in &SHARED {
        let server = server(*release);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let database = server.database().await;
            test(database).await;
        });
    }
}

/// Whether PostgreSQL's client programs are there; in CI they must be.
pub(crate) fn have_clients() -> bool {
    let there = std::process::Command::new("pg_dump").arg("--version").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "psql and pg_dump are needed in CI");
    if !there {
        eprintln!("skipped: no psql and pg_dump");
    }
    there
}

/// Runs psql or pg_dump, which must succeed, and returns what it printed.
pub(crate) fn client(program: &str, arguments: &[&str]) -> Vec<u8> {
    let ran = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

impl Database {
    /// With the rich schema in it.
    pub(crate) async fn rich(self) -> Self {
        self.sql(RICH).await;
        self
    }

    pub(crate) fn has_unlogged_sequences(&self) -> bool {
        self.server.release >= 15
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.target.connect().await.unwrap()
    }

    pub(crate) async fn sql(&self, script: &str) {
        let connection = self.connect().await;
        let done = connection.client.batch_execute(script).await;
        done.unwrap_or_else(|error| panic!("{error:?}: {script}"));
        connection.close().await;
    }

    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        let connection = self.connect().await;
        let rows = connection.client.query(query, &[]).await.unwrap();
        connection.close().await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// All that is in the catalogs, and a checksum of each table's rows.
    pub(crate) async fn everything(&self) -> BTreeMap<String, Vec<String>> {
        let connection = self.connect().await;
        let mut everything: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in connection.client.query(include_str!("catalogs.sql"), &[]).await.unwrap() {
            let value: Option<String> = row.get("value");
            everything.entry(row.get("what")).or_default().push(value.unwrap_or_default());
        }
        let tables = "SELECT format('%I.%I', n.nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                      WHERE relkind = 'r' AND relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";
        for row in connection.client.query(tables, &[]).await.unwrap() {
            let table: String = row.get(0);
            let query = format!(
                "SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM ONLY {table} t"
            );
            let sum: String = connection.client.query_one(&query, &[]).await.unwrap().get(0);
            everything.insert(format!("rows of {table}"), vec![sum]);
        }
        connection.close().await;
        everything
    }

    /// Tables and sequences of this persistence, `schema.name`; those of indexes and TOAST do not count.
    pub(crate) async fn of_persistence(&self, persistence: char) -> Vec<String> {
        let query = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE c.relkind IN ('r', 'S') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
                     AND c.relpersistence =";
        self.texts(&format!("{query} '{persistence}' ORDER BY 1")).await
    }
}

/// Nothing differs; if something does, it is told.
pub(crate) fn assert_same(one: &BTreeMap<String, Vec<String>>, other: &BTreeMap<String, Vec<String>>) {
    let whats: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = whats.into_iter().filter(|what| one.get(*what) != other.get(*what));
    let told: Vec<String> =
        differing.map(|what| format!("{what}: {:?}, {:?}", one.get(what), other.get(what))).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Without the lines that say which persistence something has.
pub(crate) fn but_persistence(everything: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let kept = everything.iter().filter(|(what, _)| !what.starts_with("persistence "));
    kept.map(|(what, values)| (what.clone(), values.clone())).collect()
}
