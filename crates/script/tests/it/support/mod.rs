//! pgbench itself, on a real server, to compare with.

use std::process::Command;

use tempfile::TempDir;
use testkit::{Need, require};

/// A finished pgbench.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) succeeded: bool,
    /// Its messages.
    pub(crate) said: String,
}

/// pgbench without a server: enough to have it parse. None where the test that needs it is skipped.
pub(crate) fn pgbench(arguments: &[&str]) -> Option<Ran> {
    if !require(Need::Pgbench) {
        return None;
    }
    let mut command = Command::new("pgbench");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    let output = command.arg("-n").args(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    Some(Ran { succeeded: output.status.success(), said })
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

/// pgbench on the server that the tests share.
pub(crate) fn pgbench_on_server(arguments: &[&str]) -> Option<Ran> {
    let server = testkit::shared(18);
    let (socket, port) = (server.socket_dir(), server.port().to_string());
    let server = ["-h", &socket, "-p", &port, "-U", "postgres"];
    pgbench(&[&server, arguments, &["postgres"]].concat())
}

/// The output of `debug()` when pgbench runs this script: type and value.
pub(crate) fn debugged(script: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let file = File::of(script);
    let ran = pgbench_on_server(&[&["-t", "1", "-f", &file.path()], arguments].concat())?;
    assert!(ran.succeeded, "{}\n{script}", ran.said);
    let values = ran.said.lines().filter_map(|line| {
        line.strip_prefix("debug(").and_then(|rest| rest.split_once("): ")).map(|(_, value)| value.to_owned())
    });
    Some(values.collect())
}
