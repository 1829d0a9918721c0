//! The look at statements: the locks, waits and changed rows that it finds, and the statements that it disturbs.

use std::time::Duration;

use ddl::find::{Class, Kind, LockMode};
use ddl::{Amount, Observer, Plan, Site, Statement};
use server::DataDirectory;
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{SHOP, Unwatched, classes, measured, measured_by, of_shop, request, server};

/// The look runs the body of a DO that commits twice, and its open transactions keep rows that UPDATE could replace, and VACUUM from
/// truncating a table for 5 s.
#[test]
fn what_the_look_disturbs_is_measured_apart() {
    let server = server(18);
    let costs = |migration: &str| {
        let outcome = measured(&server, &request(SHOP, migration, Amount::Rows(3000))).unwrap();
        let last = outcome.statements.last().unwrap();
        assert!(last.failed.is_none(), "{last:#?}");
        last.largest().unwrap().runs[0]
    };
    // A page that was written since the checkpoint needs no full image.
    let plain = costs("UPDATE orders SET note = 'new'").wal;
    let committing = costs("DO $$ BEGIN UPDATE orders SET note = 'new'; COMMIT; END $$").wal;
    assert!(committing * 10 > plain * 9, "{committing} B of {plain} B");
    // Each UPDATE puts its rows where those of the one before were: their page has space, and no snapshot is older.
    let space = |migration: &str| {
        let schema = "CREATE TABLE wide (id int, note text) WITH (fillfactor = 40)";
        let outcome = measured(&server, &request(schema, migration, Amount::Rows(20_000))).unwrap();
        outcome.statements[0].found.as_ref().unwrap().space.files
    };
    let once = space("DO $$ BEGIN UPDATE wide SET note = 'a'; COMMIT; END $$");
    let often =
        space("DO $$ BEGIN FOR i IN 1..8 LOOP UPDATE wide SET note = i::text; COMMIT; END LOOP; END $$");
    assert!(often < once + (1 << 20), "{often} B of eight transactions, {once} B of one");
    let vacuum = costs("DELETE FROM orders_log; VACUUM orders_log");
    assert!(vacuum.seconds < 5.0, "{vacuum:?}");
}

/// With a lock of somebody else on the table, it would wait for 5 s to truncate it.
#[test]
fn a_vacuum_with_a_limit_of_its_time_is_measured() {
    for release in RELEASES {
        let migration = "SET statement_timeout = '3s'; DELETE FROM orders_log; VACUUM orders_log";
        let outcome = measured(&server(release), &request(SHOP, migration, Amount::Rows(20_000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = outcome.statements[2].found.as_ref().unwrap();
        let of_vacuum = (Class::Scan, Some(LockMode::ShareUpdateExclusive));
        assert_eq!((found.class, found.strongest()), of_vacuum, "{release}: {found:?}");
    }
}

/// Its transactions end with their own counters; the server's have the same work.
#[test]
fn what_a_statement_that_commits_does_to_rows_is_counted() {
    let of = |body: &str| format!("DO $$ BEGIN {body}; COMMIT; END $$;");
    let migration = [
        "UPDATE orders SET note = 'old';".to_owned(),
        of("CREATE TABLE made (a int)"),
        of("UPDATE orders SET note = 'new'"),
        of("PERFORM count(note) FROM orders"),
        of("UPDATE orders SET note = 'one' WHERE id = (SELECT min(id) FROM orders)"),
        of("ALTER TABLE made ADD b int"),
        "SET track_counts = off;".to_owned(),
        of("UPDATE orders SET note = 'newest'"),
        of("DROP TABLE made"),
    ]
    .concat();
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SHOP, &migration, Amount::Rows(3000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found: Vec<_> = outcome.statements.iter().filter_map(|one| one.found.as_ref()).collect();
        let classes: Vec<Class> = found.iter().map(|found| found.class).collect();
        let wanted = [
            Class::Rows,
            Class::CatalogOnly,
            Class::Rows,
            Class::Scan,
            Class::Rows,
            Class::CatalogOnly,
            // Not counted, but it took the lock.
            Class::Rows,
            Class::CatalogOnly,
        ];
        assert_eq!(classes, wanted, "{release}: {found:#?}");
        let updated = |place: usize| {
            let read = found[place].works[0].proof.read;
            read.map(|read| (read.inserted, read.updated, read.deleted))
        };
        assert_eq!(updated(2), Some((0, 3000, 0)), "{release}");
        assert_eq!(updated(4), Some((0, 1, 0)), "{release}");
        assert_eq!(updated(6), None, "{release}");
        // Its cost is that of the table's rows.
        assert_eq!(outcome.statements[2].tables, ["public.orders"], "{release}");
    }
}

/// pgrig's own locks, with which it sees those of others, would make it do nothing.
#[test]
fn a_vacuum_that_skips_locked_tables_finds_none() {
    for release in RELEASES {
        let migration =
            "DELETE FROM orders_log; VACUUM (SKIP_LOCKED) orders_log; VACUUM(SKIP_LOCKED,ANALYZE) orders;";
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        let wanted = [Class::Rows, Class::Scan, Class::Scan].map(Some);
        assert_eq!(classes(&outcome), wanted, "{release}: {:#?}", outcome.statements);
    }
}

/// VACUUM goes from table to table, each in a transaction of its own.
#[test]
fn a_vacuum_of_several_tables_locks_each() {
    let several = ["orders", "orders_log"];
    let all = ["customers", "orders", "orders_log"];
    for release in RELEASES {
        let migration = "
            VACUUM orders, orders_log;
            VACUUM (SKIP_LOCKED) orders, orders_log;
            VACUUM;
            VACUUM FULL orders, orders_log;";
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        for (place, mode, wanted) in [
            (0, LockMode::ShareUpdateExclusive, &several[..]),
            (1, LockMode::ShareUpdateExclusive, &several),
            (2, LockMode::ShareUpdateExclusive, &all),
            (3, LockMode::AccessExclusive, &several),
        ] {
            let found = outcome.statements[place].found.as_ref().unwrap();
            let locks = found.locks.iter().filter(|lock| lock.kind == Kind::Table && lock.mode == mode);
            let mut names: Vec<&str> = locks.map(|lock| lock.relation.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, wanted, "{release}, {place}: {found:#?}");
            assert_eq!(found.unknown_locks, None, "{release}, {place}");
        }
    }
}

/// DefineIndex (indexcmds.c) waits twice for lockers and once for older snapshots; ReindexRelationConcurrently (indexcmds.c) twice for lockers,
/// once for older snapshots, and twice before it drops the old index; index_drop (index.c) twice for lockers.
#[test]
fn each_phase_of_a_concurrent_statement_waits() {
    for release in RELEASES {
        let migration = "
            CREATE INDEX CONCURRENTLY i ON orders (note);
            REINDEX INDEX CONCURRENTLY i;
            DROP INDEX CONCURRENTLY i;";
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        let waits = outcome.statements.iter().map(|one| one.found.as_ref().unwrap().waits);
        assert_eq!(waits.collect::<Vec<_>>(), [3, 5, 2], "{release}: {:#?}", outcome.statements);
    }
}

/// The role may not lock one of the tables. What names its own table does not need that one.
#[test]
fn locks_that_pgrig_cannot_see_are_not_known() {
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE ROLE creator LOGIN CREATEDB");
        let schema = format!(
            "{SHOP} CREATE TABLE secret (id int); REVOKE ALL ON secret FROM creator; GRANT INSERT ON secret TO creator;"
        );
        let migration = "
            CREATE INDEX CONCURRENTLY i ON orders (note);
            DO $$ BEGIN UPDATE orders_log SET at = now(); COMMIT; END $$;";
        let outcome = block_on(async {
            let target = server.target("postgres").with_user("creator");
            let directory = &DataDirectory::Asked;
            let site = Site { target: &target, directory, restarter: None, pgrig: "test" };
            let request = request(&schema, migration, Amount::Rows(300));
            let interrupt = Box::pin(std::future::pending());
            ddl::run(&site, &request, &mut Unwatched, interrupt).await.unwrap()
        });
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |place: usize| outcome.statements[place].found.as_ref().unwrap();
        assert_eq!(found(0).unknown_locks, None, "{release}");
        assert_eq!(found(0).strongest(), Some(LockMode::ShareUpdateExclusive), "{release}");
        assert_eq!(found(0).waits, 3, "{release}");
        let why = found(1).unknown_locks.as_deref().unwrap();
        assert_says(why, &["permission denied for table secret", "as a role that may lock all tables"]);
        // Its text names the table, which has rows therefore.
        assert_eq!(found(1).class, Class::Rows, "{release}");
        assert_eq!(outcome.statements[1].tables, ["public.orders_log"], "{release}");
    }
}

/// The run for what the look disturbs has a stage of its own.
#[test]
fn a_run_that_the_look_needs_has_a_stage() {
    struct Stages(Vec<String>);
    impl Observer for Stages {
        fn planned(&mut self, _: &Plan) {}
        fn stage(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn left(&mut self, _: Duration) {}
        fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    }
    let server = server(18);
    for (migration, is_disturbed) in
        [("VACUUM orders_log", true), ("ALTER TABLE orders_log ADD a int", false)]
    {
        let mut stages = Stages(Vec::new());
        measured_by(&server, &of_shop(migration), &mut stages).unwrap();
        let is_told = stages.0.iter().any(|stage| stage == "timing the statements that the look disturbed");
        assert_eq!(is_told, is_disturbed, "{migration}: {:?}", stages.0);
    }
}
