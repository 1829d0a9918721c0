//! Databases that are lent: a server, its keeper, `pgrig testdb serve` and its clients.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Rig, Server};
use testkit::until_some as until;

pub const SCHEMA: &str = "CREATE TABLE item (id int PRIMARY KEY, name text);\n\
                      COPY item FROM stdin;\n1\tone\n2\ttwo\n\\.\n";

/// The mark of a database that a keeper has not finished.
pub const MAKING: &str = "CONNECTION LIMIT 1885827689";

/// The socket's directory of a server.
pub fn socket(server: &Server) -> String {
    let pairs = server.row("SELECT current_setting('unix_socket_directories')");
    pairs.get(0)
}

/// A rig whose instance runs for itself, and a script to make templates from.
pub struct Lending<'a> {
    pub rig: &'a Rig,
    pub server: Server<'a>,
    pub schema: PathBuf,
}

impl<'a> Lending<'a> {
    pub fn new(rig: &'a Rig, version: &str) -> Self {
        let server = rig.server(&format!("--set max_connections=300 --pg-version {version}"));
        let schema = rig.home.path().join("schema.sql");
        std::fs::write(&schema, SCHEMA).unwrap();
        Self { rig, server, schema }
    }

    /// `testdb new` for this process, which lives as long as the test.
    pub fn new_database(&self, arguments: &str) -> Value {
        let from = self.schema.display();
        let owner = std::process::id();
        let ran =
            self.rig.done(&format!("testdb new --from {from} --owner {owner} --format json {arguments}"));
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The databases that `testdb list` tells, by state.
    pub fn list(&self, state: &str) -> BTreeSet<String> {
        let ran = self.rig.done("testdb list --json");
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        let databases = list["databases"].as_array().unwrap().iter();
        let those = databases.filter(|database| database["state"] == state && database["own"] == true);
        those.map(name).collect()
    }

    /// Databases that the server has of pgrig's.
    pub fn there(&self) -> BTreeSet<String> {
        let rows = self.server.rows("SELECT datname::text FROM pg_database WHERE datname LIKE 'pgrig%'");
        rows.iter().map(|row| row.get(0)).collect()
    }

    pub fn is_there(&self, name: &str) -> bool {
        self.there().contains(name)
    }

    pub fn gone(&self, name: &str) {
        until("the database is dropped", || (!self.is_there(name)).then_some(()));
    }

    /// How one of its databases is reached, as its superuser.
    pub fn url(&self, database: &str) -> String {
        format!("host={} port=5432 user=postgres dbname={database}", socket(&self.server))
    }

    /// Number of rows in the table of a lent database.
    pub fn items(&self, lease: &Value) -> i64 {
        let url = self.url(&name(lease));
        let client = self.rig.connect(&url);
        self.rig.block_on(client.query_one("SELECT count(*) FROM item", &[])).unwrap().get(0)
    }

    /// The keeper's process.
    pub fn keeper(&self) -> Pid {
        keeper(self.rig)
    }

    pub fn kill_keeper(&self) {
        kill_keeper(self.rig);
    }
}

/// The only keeper of a home.
pub fn keeper(rig: &Rig) -> Pid {
    let directory = std::fs::read_dir(rig.home.path().join("testdb")).unwrap();
    let socket = directory.flatten().map(|entry| entry.path().join("socket")).find(|path| path.exists());
    let status = Http::Unix(socket.expect("a keeper listens")).get("/status");
    Pid::from_raw(i32::try_from(status.json()["pid"].as_i64().unwrap()).unwrap())
}

/// The id of the only keeper of a home.
pub fn keeper_id(rig: &Rig) -> String {
    let mut entries = std::fs::read_dir(rig.home.path().join("testdb")).unwrap().flatten();
    entries.next().unwrap().file_name().into_string().unwrap()
}

/// Gives a command the environment of another one.
pub fn inherit(command: &mut Command, from: &Command) {
    for (key, value) in from.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
}

pub fn kill_keeper(rig: &Rig) {
    let keeper = keeper(rig);
    kill(keeper, Signal::SIGKILL).unwrap();
    until("the keeper is gone", || kill(keeper, None).is_err().then_some(()));
}

impl Drop for Lending<'_> {
    /// A failed test leaves no keeper.
    fn drop(&mut self) {
        let _ = self.rig.run("testdb drop --all");
    }
}

pub fn name(lease: &Value) -> String {
    lease["name"].as_str().unwrap().to_owned()
}

/// `pgrig testdb serve`, ended with the test.
pub struct Service {
    pub child: Child,
    pub url: String,
}

impl Service {
    pub fn start(rig: &Rig, arguments: &str) -> Self {
        let mut command = rig.command(&format!("testdb serve {arguments}"));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        if url.is_empty() {
            let output = child.wait_with_output().unwrap();
            panic!("it did not start: {}", String::from_utf8_lossy(&output.stderr));
        }
        Self { child, url: url.trim().to_owned() }
    }

    pub fn http(&self) -> Http {
        match self.url.strip_prefix("unix:") {
            Some(path) => Http::Unix(path.into()),
            None => Http::Tcp(self.url.strip_prefix("http://").unwrap().to_owned()),
        }
    }

    /// Ctrl-C.
    pub fn interrupt(mut self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        let mut told = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut told).unwrap();
        assert!(
            told.contains("interrupted: pgrig dropped the lent databases") && !told.contains("error"),
            "{told}"
        );
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A bare HTTP/1.1 client: it sends exactly this text.
pub enum Http {
    Tcp(String),
    Unix(PathBuf),
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    pub fn get(&self, path: &str) -> Answer {
        let answer = self.request("GET", path, &[], "");
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, &[], body)
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = if headers.iter().any(|(name, _)| *name == "Host") { "" } else { "Host: localhost\r\n" };
        let more: String =
            headers.iter().fold(String::new(), |text, (name, value)| text + &format!("{name}: {value}\r\n"));
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut answer = String::new();
        match self {
            Self::Tcp(at) => exchange(TcpStream::connect(at).unwrap(), &request, &mut answer),
            Self::Unix(path) => {
                exchange(std::os::unix::net::UnixStream::connect(path).unwrap(), &request, &mut answer);
            }
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, body: body.to_owned() }
    }
}

pub fn exchange(mut stream: impl Read + Write, request: &str, answer: &mut String) {
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(answer).unwrap();
}
