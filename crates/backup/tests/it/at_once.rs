//! Two rehearsals of a home at the same time: the second one is refused, and deletes nothing.

use std::fs;

use backup::{BackupError, Request, Site};
use pgserver::{Home, LockFile};
use testkit::{Need, block_on, require, templates};

use crate::support::{Unwatched, assert_nothing_is_left, server, ways};

const RELEASE: u16 = 13;

#[test]
fn files_of_a_rehearsal_that_has_no_server_yet_stay_and_those_of_a_killed_one_go() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(RELEASE);
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 100) i");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let own = home.twin(&home.root().join("backup")).unwrap();
    own.create().unwrap();
    let lock = LockFile::open(&own.root().join("lock")).unwrap();
    assert!(lock.try_lock().unwrap());
    let file = own.root().join("work/backup");
    fs::create_dir(own.root().join("work")).unwrap();
    fs::write(&file, "rows").unwrap();

    let target = server.target("postgres");
    let version_num = u32::from(RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request =
        Request { ways: ways(&["custom:none"]), trials: 1, bin: None, probe: false, network: false };
    let mut observer = Unwatched;
    let mut rehearsed =
        || block_on(Box::pin(backup::rehearse(&site, &request, &mut observer, std::future::pending())));
    let refused = rehearsed().unwrap_err();
    assert!(matches!(refused, BackupError::Busy(Some(pid)) if pid == std::process::id()), "{refused}");
    assert!(file.is_file());
    drop(lock);
    let outcome = rehearsed().unwrap();
    assert_eq!(outcome.trials.len(), 1, "{outcome:#?}");
    assert_nothing_is_left(home.root());
}
