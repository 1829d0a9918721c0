//! Code that the tests share: a home of their own, one cache of binaries, SQL, and other processes.

#![allow(unreachable_pub, clippy::print_stdout, reason = "the tests read the output of other processes")]

use pgserver::{Connection, Event, Home, Instance, Profile, Running, Spec};
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use testkit::{cache, directory, open_to_all};

/// A home in a temporary directory; the binaries are fetched once for all tests.
pub struct Rig {
    pub dir: tempfile::TempDir,
    pub home: Home,
    pub cache: PathBuf,
}

impl Rig {
    pub fn new() -> Self {
        Self::at("home")
    }

    /// With the home at this path below the temporary directory.
    pub fn at(below: &str) -> Self {
        let dir = directory();
        let cache = cache();
        // The home itself is opened to the server's account by pgserver, what is above is not.
        open_to_all(dir.path());
        let home = Home::at(&dir.path().join(below)).unwrap();
        let home = home.with_postgresql_cache(&cache);
        Self { dir, home, cache }
    }

    pub fn instance(&self, spec: Spec) -> Instance {
        Instance::open(&self.home, spec).unwrap()
    }

    pub fn start(&self, spec: Spec) -> Running {
        let events = |event: Event| println!("{event}");
        self.instance(spec).attach_or_start(&events).unwrap()
    }

    pub fn start_detached(&self, spec: Spec) -> Running {
        self.instance(spec).start_detached(&|_| ()).unwrap()
    }

    /// This test program again, as another pgrig.
    pub fn process(&self, what: &str, spec: &Spec) -> Other {
        self.process_with(what, spec, &[])
    }

    pub fn process_with(&self, what: &str, spec: &Spec, env: &[(&str, &str)]) -> Other {
        let mut command = Command::new("sh");
        // A careless umask of root's must not matter.
        command.args(["-c", "umask 077; exec \"$0\" \"$@\""]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["other_process", "--exact", "--ignored", "--nocapture"]);
        command.env("PGRIG_HOME", self.home.root());
        command.env("PGRIG_POSTGRESQL_CACHE", &self.cache);
        command.env("OTHER_DOES", what).env("OTHER_NAME", &spec.name);
        if let Some(version) = spec.version {
            command.env("OTHER_VERSION", version.to_string());
        }
        command.envs(env.iter().copied());
        Other::spawn(command)
    }
}

impl Drop for Rig {
    /// A failed test leaves no server.
    fn drop(&mut self) {
        for instance in Instance::list(&self.home).unwrap_or_default() {
            let _ = instance.destroy(&|_| ());
        }
        if let Some(elsewhere) = self.home.relocated() {
            let _ = std::fs::remove_dir_all(elsewhere);
        }
    }
}

pub fn named(name: &str) -> Spec {
    Spec { name: name.to_owned(), ..Spec::default() }
}

pub fn versioned(major: u16) -> Spec {
    Spec {
        version: pgserver::Major::from_number(major),
        // Tests run beside each other: no quarter of the memory for each.
        set: small(),
        ..Spec::default()
    }
}

pub fn small() -> Vec<(String, String)> {
    vec![("shared_buffers".to_owned(), "16MB".to_owned())]
}

pub fn stock() -> Spec {
    Spec { profile: Some(Profile::Stock), ..Spec::default() }
}

pub fn exists(pid: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Somebody's zombie is dead.
    nix::sys::signal::kill(pid, None).is_ok() && !stat.contains(") Z ")
}

pub fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// The first column of the first row.
pub fn sql(connection: &Connection, query: &str) -> String {
    try_sql(&connection.url(), query).unwrap()
}

pub fn try_sql(url: &str, query: &str) -> Result<String, tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let _driver = tokio::spawn(connection);
        let mut first = String::new();
        for message in client.simple_query(query).await? {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                row.get(0).unwrap_or_default().clone_into(&mut first);
            }
        }
        Ok(first)
    })
}

/// Another process. Killed with the test.
pub struct Other {
    pub child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    errors: ChildStderr,
    pub events: Vec<String>,
}

impl Other {
    fn spawn(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn().unwrap();
        Self {
            input: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            errors: child.stderr.take().unwrap(),
            child,
            events: Vec::new(),
        }
    }

    /// The next `@word` that is no event, and the rest of its line. Collects the events before it.
    pub fn next(&mut self) -> (String, String) {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            let Some((_, said)) = line.split_once('@') else {
                continue;
            };
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            if word != "event" {
                return (word.to_owned(), rest.to_owned());
            }
            self.events.push(rest.to_owned());
        }
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        panic!("the other process ended: {errors}");
    }

    /// The server's pid.
    pub fn ready(&mut self) -> u32 {
        let (word, rest) = self.next();
        assert_eq!(word, "ready", "{rest}");
        rest.parse().unwrap()
    }

    /// Its error.
    pub fn error(&mut self) -> String {
        let (word, rest) = self.next();
        assert_eq!(word, "error", "{rest}");
        rest
    }

    /// Reads until this event.
    pub fn until_event(&mut self, wanted: &str) {
        for line in self.lines.by_ref() {
            if line.unwrap().contains(wanted) {
                return;
            }
        }
        panic!("no event {wanted:?}");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end, and waits for that.
    pub fn finish(&mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process: starts a server as its environment says, reports it, and holds it until its stdin is closed.
pub fn other_process() {
    let Ok(what) = std::env::var("OTHER_DOES") else {
        return;
    };
    let spec = Spec {
        name: std::env::var("OTHER_NAME").unwrap(),
        version: std::env::var("OTHER_VERSION").ok().map(|v| v.parse().unwrap()),
        set: small(),
        ..Spec::default()
    };
    let say = |event: Event| println!("@event {event}");
    let start = || {
        let instance = Instance::open(&Home::locate()?, spec)?;
        match what.as_str() {
            "detached" => instance.start_detached(&say),
            _ => instance.attach_or_start(&say),
        }
    };
    match start() {
        Ok(running) => {
            println!("@ready {}", running.server_pid());
            let mut nothing = String::new();
            std::io::stdin().read_line(&mut nothing).unwrap();
            running.stop().unwrap();
        }
        Err(error) => println!("@error {error}"),
    }
}
