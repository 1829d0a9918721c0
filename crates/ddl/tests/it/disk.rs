//! Measurements for which the disk has no room.

use ddl::{Amount, DdlError, Request};
use testkit::{Mount, Need, Server, disk_directory, require, spec};

use crate::support::{left, measured, request};

const SCHEMA: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, note text);";

/// Calls this with a server on a disk of its own.
fn on_small_disk(test: impl Fn(&Server)) {
    if !require(Need::Mounts) {
        return;
    }
    let place = disk_directory();
    let disk = Mount::tmpfs(place.path(), 400);
    let server = Server::start_in(disk.path(), spec(18, &[("wal_level", "replica"), ("autovacuum", "off")]));
    test(&server);
}

/// One database alone would fit.
#[test]
fn a_measurement_without_room_is_refused_with_a_size_that_fits() {
    on_small_disk(|server| {
        let of = |up_to: u64| {
            let migration = "ALTER TABLE t ALTER id TYPE bigint";
            Request { up_to, ..request(SCHEMA, migration, Amount::Size(110_000_000)) }
        };
        let refused = measured(server, &of(110_000_000)).unwrap_err();
        let text = refused.to_string();
        let DdlError::Disk { filled, copy, new, free, up_to: Some(up_to), .. } = refused else {
            panic!("{text}");
        };
        assert!(filled < free && filled == copy && new > 0, "{text}");
        assert!(text.contains("a copy of the largest ") && text.contains("MB, or free some space"), "{text}");
        assert_eq!(left(server), Vec::<String>::new());
        assert!(up_to < 110_000_000, "{text}");
        let outcome = measured(server, &of(up_to)).unwrap();
        assert!(outcome.failed().next().is_none(), "{:#?}", outcome.statements);
    });
}

/// A sort for which there is no room.
#[test]
fn a_full_disk_gets_a_remedy() {
    on_small_disk(|server| {
        let migration =
            "SELECT i FROM generate_series(1, 200000000) i ORDER BY i DESC LIMIT 1 OFFSET 190000000";
        let failed = measured(server, &request(SCHEMA, migration, Amount::Rows(10))).unwrap_err();
        assert!(matches!(failed, DdlError::DiskFull(_)), "{failed}");
        let text = failed.to_string();
        assert!(
            text.starts_with("the disk of the server is full: give a smaller --up-to, or free some space: "),
            "{text}"
        );
        assert_eq!(left(server), Vec::<String>::new());
    });
}
