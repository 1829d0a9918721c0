//! The space that stays free for the server of the original, if backups are written to its disk.

use backup::{BackupError, Outcome, Request, Site};
use pgserver::Home;
use testkit::{Need, Server, assert_says, block_on, require, spec, templates};

use crate::support::{Unwatched, assert_nothing_is_left, ways};

const RELEASE: u16 = 13;

/// Rehearses a dump on the disk of the server, whose WAL may grow to this size.
fn rehearsed(max_wal_size: &str) -> Result<Outcome, BackupError> {
    let server = Server::start(spec(RELEASE, &[("max_wal_size", max_wal_size), ("autovacuum", "off")]));
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 100) i");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let target = server.target("postgres");
    let version_num = u32::from(RELEASE) * 10_000;
    let data = Some(server.data_dir());
    let site = Site { target: &target, version_num, home: &home, pg_bin: None, data, own: false, cores: 2 };
    let request =
        Request { ways: ways(&["custom:none"]), trials: 1, bin: None, probe: false, network: false };
    let mut observer = Unwatched;
    let rehearsed = Box::pin(backup::rehearse(&site, &request, &mut observer, std::future::pending()));
    let outcome = block_on(rehearsed);
    assert_nothing_is_left(home.root());
    outcome
}

#[test]
fn backups_leave_the_space_that_the_server_needs() {
    if !require(Need::Clients) {
        return;
    }
    let outcome = rehearsed("64MB").unwrap();
    assert!(outcome.failed.is_empty() && outcome.trials.len() == 1, "{outcome:#?}");
    // More than any disk has.
    let refused = rehearsed("1000TB").unwrap_err();
    assert!(matches!(refused, BackupError::NoRoom { .. }), "{refused}");
    assert_says(
        &refused.to_string(),
        &[
            "the start of a scratch server needs about ",
            "the server of the database writes to this disk, too",
            "max_wal_size is ",
            "PGRIG_HOME",
        ],
    );
}
