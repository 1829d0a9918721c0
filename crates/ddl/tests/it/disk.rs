//! Measurements for which the disk has no room.

use std::time::Duration;

use ddl::{Amount, DdlError, Observer, Plan, Request, Statement};
use testkit::{Mount, Need, Server, disk_directory, require, spec};

use crate::support::{left, measured, measured_by, request};

const SCHEMA: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, note text);";

/// Calls this with a server on a disk of its own, and the disk.
fn on_small_disk(test: impl Fn(&Server, &Mount)) {
    if !require(Need::Mounts) {
        return;
    }
    let place = disk_directory();
    let disk = Mount::tmpfs(place.path(), 400);
    let server = Server::start_in(disk.path(), spec(18, &[("wal_level", "replica"), ("autovacuum", "off")]));
    test(&server, &disk);
}

/// One database alone would fit.
#[test]
fn a_measurement_without_room_is_refused_with_a_size_that_fits() {
    on_small_disk(|server, _| {
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

/// Until it commits, a transaction keeps the files of all its rewrites.
#[test]
fn the_rewrites_of_one_transaction_count_together() {
    on_small_disk(|server, _| {
        let [id, n] = ["id", "n"].map(|column| format!("ALTER TABLE t ALTER {column} TYPE bigint;"));
        for (migration, times) in [
            (format!("{id} {n}"), 1),
            (format!("BEGIN; {id} {n} COMMIT"), 2),
            (format!("DO $$ BEGIN {id} {n} END $$"), 2),
        ] {
            let request = request(SCHEMA, &migration, Amount::Size(110_000_000));
            let refused = measured(server, &Request { up_to: 110_000_000, ..request }).unwrap_err();
            let DdlError::Disk { copy, new, .. } = refused else { panic!("{migration}: {refused}") };
            assert_eq!(new, times * copy, "{migration}");
        }
    });
}

/// Code comes to the copy only if there are rows, so that none is seen without them.
#[test]
fn a_copy_in_code_that_needs_rows_counts() {
    on_small_disk(|server, _| {
        let clusters = "IF EXISTS (SELECT FROM t) THEN CLUSTER t USING t_pkey; END IF;";
        let schema = format!(
            "{SCHEMA} CREATE FUNCTION ordered() RETURNS void LANGUAGE plpgsql AS 'BEGIN {clusters} END';"
        );
        let of = |migration: &str| {
            let request = request(&schema, migration, Amount::Size(110_000_000));
            let refused = measured(server, &Request { up_to: 110_000_000, ..request }).unwrap_err();
            let DdlError::Disk { copy, new, .. } = refused else { panic!("{migration}: {refused}") };
            (copy, new)
        };
        for migration in [format!("DO $$ BEGIN {clusters} END $$"), "SELECT ordered()".to_owned()] {
            let (copy, new) = of(&migration);
            // Not half, as for changed rows.
            assert!(new > copy / 4 * 3, "{migration}: {new} of {copy}");
        }
    });
}

/// A sort for which there is no room.
#[test]
fn a_full_disk_gets_a_remedy() {
    on_small_disk(|server, _| {
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

/// Takes most of the disk when the fill of the table begins.
struct Taking<'a> {
    disk: &'a Mount,
    is_done: bool,
}

impl Observer for Taking<'_> {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn step(&mut self, text: &str) {
        if text == "filling public.t, table 1 of 1" && !self.is_done {
            self.disk.take("other", self.disk.free() - (100 << 20));
            self.is_done = true;
        }
    }
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

/// Other programs take the space that was there before.
#[test]
fn a_disk_that_gets_full_during_the_fill_gets_the_remedies_of_ddl() {
    on_small_disk(|server, disk| {
        let mut taking = Taking { disk, is_done: false };
        let request = request(SCHEMA, "ALTER TABLE t ADD a int", Amount::Size(70_000_000));
        let failed = measured_by(server, &request, &mut taking).unwrap_err();
        let text = failed.to_string();
        assert!(taking.is_done && matches!(failed, DdlError::FillFull { .. }), "{text}");
        assert!(text.starts_with("pgrig cannot fill public.t for the measurement: "), "{text}");
        assert!(text.ends_with(". Give a smaller --up-to, or free some space"), "{text}");
        for option in ["SIZE", "--brim", "--wait-for-space", "--unlogged"] {
            assert!(!text.contains(option), "{text}");
        }
        assert_eq!(left(server), Vec::<String>::new());
    });
}
