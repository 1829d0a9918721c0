//! pgbench itself, on a real server, to compare with.

// Each test program uses its part.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pgserver::{Home, Instance, Running, Spec};
use tempfile::TempDir;

/// A finished pgbench.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) succeeded: bool,
    /// What it says while it runs.
    pub(crate) said: String,
}

/// pgbench without a server: enough to have it parse. None where it is not installed, which CI does not
/// accept.
pub(crate) fn pgbench(arguments: &[&str]) -> Option<Ran> {
    let mut command = Command::new("pgbench");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    match command.arg("-n").args(arguments).output() {
        Ok(output) => {
            let said = String::from_utf8(output.stderr).unwrap();
            Some(Ran { succeeded: output.status.success(), said })
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "pgbench must be installed in CI: {error}");
            None
        }
    }
}

/// A script's file, removed in the end.
pub(crate) struct File {
    directory: TempDir,
}

impl File {
    pub(crate) fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x.sql"), text).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self) -> String {
        self.directory.path().join("x.sql").to_str().unwrap().to_owned()
    }
}

/// A server that the tests of a program share.
pub(crate) struct Server {
    running: Option<Running>,
    _home: TempDir,
}

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

impl Server {
    /// The one that another test holds, or a new one.
    pub(crate) fn shared() -> Arc<Self> {
        let mut place = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        place.upgrade().unwrap_or_else(|| {
            let fresh = Arc::new(Self::start());
            *place = Arc::downgrade(&fresh);
            fresh
        })
    }

    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&cache());
        let set = vec![("shared_buffers".to_owned(), "16MB".to_owned())];
        let instance = Instance::open(&home, Spec { set, ..Spec::default() }).unwrap();
        Self { running: Some(instance.attach_or_start(&|_| ()).unwrap()), _home: directory }
    }

    /// pgbench on this server.
    pub(crate) fn pgbench(&self, arguments: &[&str]) -> Option<Ran> {
        let connection = self.running.as_ref().unwrap().connection();
        let (socket, port) = (connection.socket_dir.to_str().unwrap(), connection.port.to_string());
        let server = ["-h", socket, "-p", &port, "-U", "postgres"];
        pgbench(&[&server, arguments, &["postgres"]].concat())
    }

    /// What `debug()` says when pgbench runs this script: type and value.
    pub(crate) fn debugged(&self, script: &str, arguments: &[&str]) -> Option<Vec<String>> {
        let file = File::of(script);
        let ran = self.pgbench(&[&["-t", "1", "-f", &file.path()], arguments].concat())?;
        assert!(ran.succeeded, "{}\n{script}", ran.said);
        let values = ran.said.lines().filter_map(|line| {
            line.strip_prefix("debug(")
                .and_then(|rest| rest.split_once("): "))
                .map(|(_, value)| value.to_owned())
        });
        Some(values.collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().unwrap();
        }
    }
}

/// Where PostgreSQL is unpacked for all tests: below the target directory, or where a home there is relocated
/// to if the server's account cannot reach that.
fn cache() -> PathBuf {
    let home = Home::at(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("pgrig")).unwrap();
    home.server_root().join("postgresql")
}
