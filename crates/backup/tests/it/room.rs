//! The space that stays free for the server of the original, if backups are written to its disk; and a disk that gets full while pgrig makes data.

use std::time::Duration;

use backup::{
    BackupError, DataSize, Observer, Outcome, Plan, Request, Shape, Site, SizesRequest, SizesSite, Trial, Way,
};
use pgserver::Home;
use testkit::{Mount, Need, Server, assert_says, block_on, disk_directory, require, spec, templates};

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

/// Takes most of the disk when the fill of the largest database begins.
struct Taking<'a> {
    disk: &'a Mount,
    fills: usize,
}

impl Observer for Taking<'_> {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn step(&mut self, text: &str) {
        if text.starts_with("filling public.a, ") {
            self.fills += 1;
            if self.fills == 3 {
                self.disk.take("other", self.disk.free() - (100 << 20));
            }
        }
    }
    fn begins(&mut self, _: &Way, _: u32, _: Option<DataSize>) {}
    fn done(&mut self, _: &Trial, _: Duration) {}
    fn failed(&mut self, _: &Way, _: &str) {}
}

/// The options of `fill` would not help.
#[test]
fn a_disk_that_gets_full_while_pgrig_makes_data_gets_the_remedies_of_a_rehearsal() {
    if ![Need::Clients, Need::Mounts].map(require).iter().all(|is_met| *is_met) {
        return;
    }
    let place = disk_directory();
    let disk = Mount::tmpfs(place.path(), 700);
    let home = Home::at(disk.path()).unwrap().with_postgresql_cache(&templates());
    let site = SizesSite { home: &home, pg_bin: None, major: Some(13), set: &[], cores: 2, pgrig: "test" };
    let shape =
        Shape::of_script("CREATE TABLE a (id bigint PRIMARY KEY, t text)", "a.sql".to_owned()).unwrap();
    let request = Request { ways: ways(&["base"]), trials: 1, bin: None, probe: false, network: false };
    let asked = SizesRequest {
        request,
        shape,
        size: 1_000_000_000,
        up_to: 90_000_000,
        price: None,
        rto: None,
        changes: 0.05,
        load: None,
    };
    let mut taking = Taking { disk: &disk, fills: 0 };
    let rehearsed = Box::pin(backup::rehearse_sizes(&site, &asked, &mut taking, std::future::pending()));
    let failed = block_on(rehearsed).unwrap_err();
    let text = failed.to_string();
    assert!(taking.fills == 3 && matches!(failed, BackupError::Fill { .. }), "{text}");
    assert!(text.starts_with("cannot fill a database of 90.0 MB with a.sql: public.a: "), "{text}");
    assert!(
        text.ends_with(
            ". Give a smaller --up-to, free some space, or set PGRIG_HOME to a directory on another disk"
        ),
        "{text}"
    );
    for option in ["SIZE", "--brim", "--wait-for-space", "--unlogged"] {
        assert!(!text.contains(option), "{text}");
    }
    assert_nothing_is_left(home.root());
}
