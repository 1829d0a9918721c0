//! Rehearsals on servers of the tests.

pub(crate) mod by_hand;
pub(crate) mod made;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backup::{BackupError, DataSize, Observer, Outcome, Plan, Programs, Request, Site, Trial, Way};
use connect::Target;
use pgserver::Home;
use testkit::{Server, spec, templates};

/// Ignores progress.
pub(crate) struct Unwatched;

impl Observer for Unwatched {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn begins(&mut self, _: &Way, _: u32, _: Option<DataSize>) {}
    fn done(&mut self, _: &Trial, _: Duration) {}
    fn failed(&mut self, _: &Way, _: &str) {}
}

/// A server from which base backups can be made.
pub(crate) fn server(release: u16) -> Server {
    Server::start(spec(release, &[("wal_level", "replica"), ("max_wal_senders", "4"), ("autovacuum", "off")]))
}

pub(crate) fn ways(names: &[&str]) -> Vec<Way> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Rehearses these ways once.
pub(crate) async fn rehearsed(
    server: &Server,
    target: &Target,
    names: &[&str],
) -> Result<Outcome, BackupError> {
    rehearsed_by(None, server, target, names).await
}

/// The same with the client programs in a directory; none for those of this machine.
pub(crate) async fn rehearsed_by(
    bin: Option<PathBuf>,
    server: &Server,
    target: &Target,
    names: &[&str],
) -> Result<Outcome, BackupError> {
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(server.major()) * 10_000;
    let site = Site { target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request { ways: ways(names), trials: 1, bin, probe: false, network: false };
    let outcome = Box::pin(backup::rehearse(&site, &request, &mut Unwatched, std::future::pending())).await;
    assert_nothing_is_left(home.root());
    outcome
}

/// The client programs of this machine in a new directory, with a shell script for one of them. In the script, `$REAL` is the directory of
/// the real ones.
pub(crate) fn programs_with(directory: &Path, release: u16, name: &str, script: &str) -> PathBuf {
    let real = Programs::find(None, release).unwrap().dir;
    let bin = directory.join("bin");
    fs::create_dir(&bin).unwrap();
    for entry in fs::read_dir(&real).unwrap().flatten() {
        symlink(entry.path(), bin.join(entry.file_name())).unwrap();
    }
    let program = bin.join(name);
    fs::remove_file(&program).unwrap();
    fs::write(&program, format!("#!/bin/sh\nREAL='{}'\n{script}", real.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    bin
}

/// No scratch server, no backup.
pub(crate) fn assert_nothing_is_left(home: &Path) {
    assert!(
        !home.join("backup").exists(),
        "{:?}",
        fs::read_dir(home.join("backup")).unwrap().collect::<Vec<_>>()
    );
}
