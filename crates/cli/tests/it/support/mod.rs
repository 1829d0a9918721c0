//! Code that the tests share: a PGRIG_HOME of their own, the program itself, and SQL to check its results.

#![allow(unreachable_pub)]

pub mod bench;
pub mod lending;
pub mod proof;
pub mod victims;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::pty::openpty;
use serde_json::Value;
use tempfile::TempDir;
use testkit::{Mount, Need, directory, disk_directory, require, templates};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Row};

/// The newest release, as an option of pgrig.
pub const NEWEST: &str = "--pg-version 18";
/// The oldest release that pgrig supports, as an option of pgrig.
pub const OLDEST: &str = "--pg-version 13";

/// A PGRIG_HOME in a temporary directory; PostgreSQL itself is fetched once for all tests.
pub struct Rig {
    /// A small file system that is the home. Before it, so that it is unmounted first.
    pub disk: Option<Mount>,
    pub home: TempDir,
    pub runtime: Runtime,
    /// Whether its server is somebody else's: it belongs to another home.
    of_others: bool,
}

/// A finished pgrig.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Rig {
    pub fn new() -> Self {
        Self::of(directory())
    }

    /// With a home that is not in memory: for tests of what is in memory and what is not. On a file system of its own
    /// where one can be mounted: an ext4 without a journal takes seconds of CPU time to create the files of an
    /// instance after those of another were deleted.
    pub fn not_in_memory() -> Self {
        let mut rig = Self::of(disk_directory());
        rig.disk = Mount::try_ext4(rig.home.path(), 4096);
        rig
    }

    fn of(home: TempDir) -> Self {
        // Its thread closes connections that are dropped outside of `block_on`.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { disk: None, home, runtime, of_others: false }
    }

    /// With a server that is not its own pgrig's: `server` commands go to another home, but for a plain `server status`.
    pub fn of_others(mut self) -> Self {
        self.of_others = true;
        self
    }

    /// With a tmpfs of so many megabytes as its home. None where the test is skipped.
    pub fn on_small_disk(megabytes: u32) -> Option<Self> {
        Self::on_disk(|home| Mount::tmpfs(home, megabytes))
    }

    /// With a file system of its own as its home. None where the test is skipped.
    pub fn on_disk(mount: impl FnOnce(&Path) -> Mount) -> Option<Self> {
        require(Need::Mounts).then(|| {
            let mut rig = Self::new();
            rig.disk = Some(mount(rig.home.path()));
            rig
        })
    }

    /// pgrig with these arguments, split at blanks.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
        command.args(arguments.split_whitespace());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        let is_of_others = self.of_others && arguments.starts_with("server ") && arguments != "server status";
        let home = if is_of_others { self.home.path().join("others") } else { self.home.path().to_owned() };
        command.env("PGRIG_HOME", home).env("PGRIG_POSTGRESQL_CACHE", templates());
        command
    }

    /// Runs pgrig to its end.
    pub fn run(&self, arguments: &str) -> Ran {
        Ran::from(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs pgrig, which panics at a point of its tests: asserts one line about it, and exit status 1.
    #[track_caller]
    pub fn panics(&self, point: &str, arguments: &[&str]) {
        let mut command = self.command("");
        command
            .args(arguments)
            .env("PGRIG_TEST_PANIC", point)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("error")).collect();
        assert_eq!(errors.len(), 1, "{ran:#?}");
        let place = format!("stopped because of a bug: PGRIG_TEST_PANIC={point} (crates/");
        assert!(errors[0].contains(&place) && !ran.stderr.contains("panicked at"), "{ran:#?}");
    }

    /// Runs pgrig, which must succeed.
    pub fn done(&self, arguments: &str) -> Ran {
        let ran = self.run(arguments);
        // The reason comes last: a log may be cut off above.
        let is_done = ran.code == Some(0);
        assert!(is_done, "pgrig {arguments}: {:?}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
        ran
    }

    /// Runs pgrig with --json - and returns the document.
    pub fn document(&self, arguments: &str) -> Value {
        let ran = self.done(&format!("{arguments} --json -"));
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
    }

    /// Starts the instance for the length of a test, small enough to have many beside each other.
    pub fn server(&self, arguments: &str) -> Server<'_> {
        let settings = "--set shared_buffers=128MB --set max_wal_size=1GB";
        self.done(&format!("server start {settings} {arguments}"));
        let url = self.done("server url").stdout.trim().to_owned();
        Server { rig: self, url }
    }

    /// How the default instance is reached whenever it runs.
    pub fn url(&self) -> String {
        let directory = self.status()["directory"].as_str().map(str::to_owned);
        let directory =
            directory.unwrap_or_else(|| format!("{}/instances/default", self.home.path().display()));
        format!("host={directory}/socket port=5432 user=postgres dbname=postgres")
    }

    /// Starts pgrig and does not wait for its end.
    pub fn spawn(&self, arguments: &str) -> Running {
        Running::start(self.command(arguments))
    }

    /// Starts pgrig, which tells its progress to a file.
    pub fn spawn_telling(&self, arguments: &str, file: &Path) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(file).unwrap());
        Running(Some(command.spawn().unwrap()))
    }

    /// The default instance's data directory.
    pub fn data(&self) -> PathBuf {
        Path::new(self.status()["directory"].as_str().unwrap()).join("data")
    }

    /// The default instance's status, as JSON.
    pub fn status(&self) -> Value {
        let ran = self.done("server status --instance default --json");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()[0].clone()
    }

    pub fn connect(&self, url: &str) -> Client {
        self.runtime.block_on(connect(url)).unwrap()
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

impl Drop for Rig {
    /// A failed test leaves no server.
    fn drop(&mut self) {
        let _ = self
            .command("server destroy --instance default")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// The default instance, running.
pub struct Server<'a> {
    rig: &'a Rig,
    pub url: String,
}

impl<'a> Server<'a> {
    /// Another database of it.
    pub fn database(&self, name: &str) -> Server<'a> {
        Server { rig: self.rig, url: format!("{} dbname={name}", self.rig.url()) }
    }

    /// One row of one query.
    pub fn row(&self, query: &str) -> Row {
        let client = self.rig.connect(&self.url);
        self.rig.block_on(client.query_one(query, &[])).unwrap()
    }

    /// All rows of one query.
    pub fn rows(&self, query: &str) -> Vec<Row> {
        let client = self.rig.connect(&self.url);
        self.rig.block_on(client.query(query, &[])).unwrap()
    }

    /// A single number.
    pub fn number(&self, query: &str) -> i64 {
        self.row(query).get(0)
    }

    /// Number and checksum of the rows of each of pgbench's tables in a schema, whatever their order.
    pub fn pgbench_rows(&self, schema: &str) -> [(i64, String); 4] {
        ["accounts", "branches", "tellers", "history"].map(|table| {
            let query = format!(
                "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text \
                   FROM {schema}.pgbench_{table} t"
            );
            let row = self.row(&query);
            (row.get(0), row.get(1))
        })
    }

    pub fn execute(&self, sql: &str) {
        let client = self.rig.connect(&self.url);
        self.rig.block_on(client.batch_execute(sql)).unwrap();
    }
}

/// Starts pgrig with a terminal for its standard error. Returns the texts that it shows there, too.
pub fn on_terminal(mut command: Command) -> (Running, Receiver<String>) {
    let terminal = openpty(None, None).unwrap();
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal.slave);
    let running = Running(Some(command.spawn().unwrap()));
    // Its end of the terminal is closed with the program.
    drop(command);
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let (mut screen, mut buffer) = (File::from(terminal.master), [0; 4096]);
        // Reading fails once the program has ended.
        while let Ok(read) = screen.read(&mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        }
    });
    (running, receive)
}

/// A pgrig that runs; killed if the test ends before it.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// Starts it; what it tells goes where the command says.
    pub fn start_quietly(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    pub fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.0.as_ref().unwrap().id()).unwrap())
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(self.pid(), signal).unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        Ran::from(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The value observed under `name` in a document's only trial.
pub fn observed(document: &Value, name: &str) -> f64 {
    let observations = document["trials"][0]["observations"].as_array().unwrap();
    let found = observations.iter().find(|observation| observation["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {document:#}"))["value"].as_f64().unwrap()
}

/// Names of the configurations of a document's trials, in the order of the trials.
pub fn configs_in_order(document: &Value) -> Vec<String> {
    let trials = document["trials"].as_array().unwrap();
    trials.iter().map(|trial| trial["config"].as_str().unwrap().to_owned()).collect()
}

pub async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
