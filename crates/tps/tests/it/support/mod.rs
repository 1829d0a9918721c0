//! Servers with pgbench's tables, and runs on them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use connect::{Connection, Target};
use script::Source;
use tps::{Length, Observer, Outcome, Plan, Protocol, Request, Second, TpsError, run};

/// The oldest release and the newest.
pub(crate) const MAJORS: [u16; 2] = [13, 18];
pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

/// A server with a database that has pgbench's tables, to be copied.
pub(crate) struct Server {
    running: testkit::Server,
    databases: AtomicU32,
}

/// A database of a test's own, with pgbench's tables at scale 1.
pub(crate) struct Database {
    pub(crate) server: Arc<Server>,
    pub(crate) target: Target,
    name: String,
}

static SHARED: [OnceLock<Arc<Server>>; 2] = [const { OnceLock::new() }; 2];

/// The tables of `pgbench -i`.
const TABLES: [&str; 7] = [
    "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))",
    "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))",
    "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
    "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "INSERT INTO pgbench_branches VALUES (1, 0)",
    "INSERT INTO pgbench_tellers SELECT i, 1, 0 FROM generate_series(1, 10) i",
    "INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 100000) i",
];

fn spec(major: u16) -> pgserver::Spec {
    testkit::spec(
        major,
        &[("shared_buffers", "64MB"), ("deadlock_timeout", "100ms"), ("max_connections", "200")],
    )
}

impl Server {
    /// One of a test's own, to be broken.
    pub(crate) fn own(major: u16) -> Arc<Self> {
        Self::with_tables(testkit::Server::start(spec(major)))
    }

    fn with_tables(running: testkit::Server) -> Arc<Self> {
        runtime().block_on(async {
            running.connect("postgres").await.client.batch_execute("CREATE DATABASE bench").await.unwrap();
            let connection = running.connect("bench").await;
            for statement in TABLES {
                connection.client.batch_execute(statement).await.unwrap();
            }
            connection.close().await;
        });
        Arc::new(Self { running, databases: AtomicU32::new(0) })
    }

    fn shared(place: &OnceLock<Arc<Self>>, major: u16) -> Arc<Self> {
        let start = || Self::with_tables(testkit::Server::lasting(spec(major)));
        Arc::clone(place.get_or_init(start))
    }

    /// The postmaster.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(crate) fn database(self: &Arc<Self>) -> Database {
        let name = format!("bench_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        runtime().block_on(async {
            let connection = self.running.connect("postgres").await;
            let create = format!("CREATE DATABASE {name} TEMPLATE bench");
            // Another test may be copying it.
            let lock = "SELECT pg_advisory_lock(1)";
            connection.client.batch_execute(lock).await.unwrap();
            connection.client.batch_execute(&create).await.unwrap();
            connection.close().await;
        });
        Database { server: Arc::clone(self), target: self.running.target(&name), name }
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs a test on either server.
pub(crate) fn on_servers(test: impl Fn(&Database)) {
    for (place, major) in SHARED.iter().zip(MAJORS) {
        test(&Server::shared(place, major).database());
    }
}

/// Runs a test on the newest server.
pub(crate) fn on_newest(test: impl Fn(&Database)) {
    test(&Server::shared(&SHARED[1], MAJORS[1]).database());
}

/// Ten transactions of one client, of this script.
pub(crate) fn request(script: &str) -> Request {
    let source = match Source::builtin(script) {
        Ok(source) => source,
        Err(_) => Source::file("test.sql", script, 1),
    };
    Request { seed: 42, ..Request::of(source, Length::Transactions(10)) }
}

/// Notes the seconds of a run.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) seconds: Mutex<Vec<Second>>,
    pub(crate) debugged: Mutex<Vec<tps::Debugged>>,
}

impl Observer for Notes {
    fn second(&self, second: &Second) {
        self.seconds.lock().unwrap().push(second.clone());
    }

    fn debugged(&self, debugged: &tps::Debugged) {
        self.debugged.lock().unwrap().push(debugged.clone());
    }
}

impl Database {
    pub(crate) async fn connect(&self) -> Connection {
        self.target.connect().await.unwrap()
    }

    /// Carries a request out, and checks what holds of every outcome.
    pub(crate) fn run(&self, request: Request) -> Outcome {
        self.run_until(request, std::future::pending()).unwrap()
    }

    pub(crate) fn run_until(
        &self,
        request: Request,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Outcome, TpsError> {
        let notes = Notes::default();
        let outcome = self.run_noting(request, &notes, interrupt)?;
        check(&outcome, &notes.seconds.into_inner().unwrap());
        Ok(outcome)
    }

    /// The same with sessions that have this name.
    pub(crate) fn run_as(&self, name: &str, request: Request) -> Outcome {
        let target = self.target.clone().with_application_name(name);
        let named = Self { server: Arc::clone(&self.server), target, name: self.name.clone() };
        named.run(request)
    }

    pub(crate) fn run_noting(
        &self,
        request: Request,
        notes: &Notes,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Outcome, TpsError> {
        runtime().block_on(async {
            let connection = self.connect().await;
            let plan = Plan::new(&connection, request).await?;
            assert_eq!(plan.prepare(&connection).await?, Vec::<String>::new());
            run(std::slice::from_ref(&self.target), &plan, notes, Box::pin(interrupt)).await
        })
    }

    /// A query's first column, as text.
    pub(crate) fn column(&self, query: &str) -> Vec<String> {
        runtime().block_on(async {
            let messages = self.connect().await.client.simple_query(query).await.unwrap();
            let value = |message: &tokio_postgres::SimpleQueryMessage| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            };
            messages.iter().filter_map(value).collect()
        })
    }

    /// A query's only value.
    pub(crate) fn value(&self, query: &str) -> String {
        self.column(query).pop().unwrap()
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.column(sql);
    }

    /// pgbench's run on this database.
    /// False where the test that needs it is skipped.
    pub(crate) fn pgbench(&self, arguments: &[&str]) -> bool {
        if !testkit::require(testkit::Need::Pgbench) {
            return false;
        }
        let place = self.server.running.running().connection();
        let mut command = Command::new("pgbench");
        command.arg("-h").arg(&place.socket_dir).args(["-p", &place.port.to_string(), "-U", place.user]);
        let output = command.args(arguments).arg(&self.name).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    }
}

/// Asserts the invariants of every outcome: all figures add up.
#[track_caller]
fn check(outcome: &Outcome, told: &[Second]) {
    let mut counts = tps::Counts::default();
    outcome.scripts.iter().for_each(|script| counts += script.measured.counts);
    assert_eq!(counts, outcome.all.counts);
    assert_eq!(outcome.all.latency.count(), counts.succeeded);
    assert_eq!(counts.due(), counts.succeeded + counts.all_failed() + counts.skipped);
    let mut counts = tps::Counts::default();
    let (mut length, mut at) = (0.0, 0.0);
    for second in &outcome.seconds {
        assert!((second.at - second.length - at).abs() < 1e-6, "seconds follow each other");
        at = second.at;
        if second.phase == tps::Phase::Measured {
            counts += second.counts;
            length += second.length;
        }
    }
    assert_eq!(counts, outcome.all.counts);
    assert!((length - outcome.elapsed.as_secs_f64()).abs() < 1e-6);
    assert_eq!(told.len(), outcome.seconds.len());
    for (told, kept) in told.iter().zip(&outcome.seconds) {
        assert_eq!((told.at, told.phase, told.counts), (kept.at, kept.phase, kept.counts));
    }
}
