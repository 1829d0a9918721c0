//! The look at statements: the locks, waits and changed rows that it finds, and the statements that it disturbs.

use std::time::Duration;

use ddl::find::{Class, Kind, LockMode, Work, WorkKind};
use ddl::{Amount, Effects, Observer, Plan, Site, Statement};
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

/// The strongest lock on each table that was there.
fn of_tables(found: &Effects) -> Vec<(&str, LockMode)> {
    let is_meant = |kind: Kind| matches!(kind, Kind::Table | Kind::Partitioned);
    let locks = found.locks.iter().filter(|lock| is_meant(lock.kind) && !lock.is_new);
    locks.map(|lock| (lock.relation.as_str(), lock.mode)).collect()
}

/// ATExecDetachPartition (tablecmds.c) locks the tables that reference the partition with SHARE, and reads them; it waits for the lockers of the parent.
/// Then DetachPartitionFinalize makes triggers on the tables that the partition references (CreateTrigger in trigger.c), and drops the foreign keys
/// that reference the partition (RemoveConstraintById in pg_constraint.c). PostgreSQL 13 has no CONCURRENTLY there.
#[test]
fn a_partition_that_is_detached_concurrently_locks_the_tables_of_its_foreign_keys() {
    let schema = "
        CREATE TABLE owners (id int PRIMARY KEY);
        CREATE TABLE parted (k int PRIMARY KEY, owner_id int REFERENCES owners) PARTITION BY RANGE (k);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
        CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (1000);
        CREATE TABLE visits (id int PRIMARY KEY, k int REFERENCES parted);
        CREATE TABLE others (id int PRIMARY KEY);";
    let detach = "ALTER TABLE parted DETACH PARTITION parted_1";
    let migration = format!(
        "UPDATE visits SET k = NULL; BEGIN; {detach}; ROLLBACK; {detach} CONCURRENTLY; ALTER TABLE others ADD a int;"
    );
    for release in [14, 18] {
        let outcome = measured(&server(release), &request(schema, &migration, Amount::Rows(300))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |number: usize| outcome.statements[number - 1].found.as_ref().unwrap();
        let (plain, concurrent) = (found(3), found(5));
        let of_keys = [
            ("parted_1", LockMode::AccessExclusive),
            ("visits", LockMode::AccessExclusive),
            ("owners", LockMode::ShareRowExclusive),
        ];
        let of_parent = |mode: LockMode| [("parted", mode)];
        let wanted = [&of_parent(LockMode::AccessExclusive)[..], &of_keys].concat();
        assert_eq!(of_tables(plain), wanted, "{release}: {plain:#?}");
        let wanted = [&of_keys[..], &of_parent(LockMode::ShareUpdateExclusive)].concat();
        assert_eq!(of_tables(concurrent), wanted, "{release}: {concurrent:#?}");
        assert_eq!((concurrent.is_alone, concurrent.waits), (true, 1), "{release}: {concurrent:#?}");
        for found in [plain, concurrent] {
            let read = found.works.iter().filter(|work| work.kind == WorkKind::Scan);
            let read: Vec<&str> = read.map(|work| work.relation.as_str()).collect();
            assert!(read.contains(&"visits"), "{release}: {found:#?}");
            let classes = [Class::ScanOfAnother, Class::SeveralTables];
            assert!(classes.contains(&found.class), "{release}: {found:#?}");
        }
    }
}

/// The default partition would get another constraint.
#[test]
fn a_partition_beside_a_default_partition_is_not_detached_concurrently() {
    let schema = "
        CREATE TABLE parted (k int NOT NULL) PARTITION BY LIST (k);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
        CREATE TABLE parted_default PARTITION OF parted DEFAULT;";
    let migration = "ALTER TABLE parted DETACH PARTITION parted_1 CONCURRENTLY;";
    let error = measured(&server(18), &request(schema, migration, Amount::Rows(300))).unwrap_err();
    assert_says(
        &error.to_string(),
        &["cannot detach partitions concurrently when a default partition exists"],
    );
}

/// While code waits for one table, the others are locked for its next transaction.
#[test]
fn each_transaction_of_code_shows_its_locks() {
    let migration = "DO $$ BEGIN
        ALTER TABLE orders ADD a int; COMMIT;
        ALTER TABLE customers ADD a int; COMMIT;
        DROP TABLE orders_log; COMMIT;
        CREATE INDEX ON customers (name); COMMIT;
    END $$;";
    for release in RELEASES {
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = outcome.statements[0].found.as_ref().unwrap();
        let all = ["customers", "orders", "orders_log"];
        assert_eq!(
            of_tables(found),
            all.map(|table| (table, LockMode::AccessExclusive)),
            "{release}: {found:#?}"
        );
        assert_eq!(found.unknown_locks, None, "{release}");
    }
}

/// Another session with a lock would let it fail, or try for ever.
#[test]
fn code_that_does_not_wait_for_locks_goes_on_alone() {
    let migration = "DO $$ BEGIN
        LOOP
            BEGIN
                LOCK TABLE orders NOWAIT;
                ALTER TABLE orders ADD a int;
                EXIT;
            EXCEPTION WHEN lock_not_available THEN PERFORM pg_sleep(0.1);
            END;
        END LOOP;
        COMMIT;
    END $$;";
    let outcome = measured(&server(18), &of_shop(migration)).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let found = outcome.statements[0].found.as_ref().unwrap();
    assert!(found.unknown_locks.as_ref().is_some_and(|why| why.contains("NOWAIT")), "{found:#?}");
}

/// A check that was deferred locks rows, and reads them, before the end of the transaction.
#[test]
fn constraints_that_become_immediate_are_checked_by_a_statement_of_its_own() {
    let schema = "
        CREATE TABLE owners (id int PRIMARY KEY);
        CREATE TABLE jobs (id int PRIMARY KEY, owner_id int REFERENCES owners DEFERRABLE INITIALLY DEFERRED);";
    let migration = "BEGIN; UPDATE jobs SET owner_id = (SELECT min(id) FROM owners); SET CONSTRAINTS ALL IMMEDIATE; COMMIT;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(schema, migration, Amount::Rows(300))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = outcome.statements[2].found.as_ref().unwrap();
        assert!(of_tables(found).contains(&("owners", LockMode::RowShare)), "{release}: {found:#?}");
        assert_eq!((found.blocks(), found.is_alone), (None, false), "{release}: {found:#?}");
    }
}

/// Rows that move from one table to another.
#[test]
fn a_write_within_another_is_found_with_its_locks() {
    let schema = "
        CREATE TABLE owners (id int PRIMARY KEY);
        CREATE TABLE jobs (id int PRIMARY KEY, owner_id int REFERENCES owners, n int);
        CREATE TABLE lines (id int PRIMARY KEY, job_id int REFERENCES jobs ON DELETE CASCADE);
        CREATE TABLE done (id int PRIMARY KEY, owner_id int REFERENCES owners, n int);";
    let migration = "WITH gone AS (DELETE FROM jobs WHERE id <= 100 RETURNING *)
        INSERT INTO done SELECT id + 100000, owner_id, n FROM gone;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(schema, migration, Amount::Rows(300))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = outcome.statements[0].found.as_ref().unwrap();
        assert_eq!((found.class, found.blocks()), (Class::Rows, None), "{release}: {found:#?}");
        let rows = |table: &str| {
            let of = |work: &&Work| work.kind == WorkKind::Rows && work.relation == table;
            found
                .works
                .iter()
                .find(of)
                .and_then(|work| work.proof.read)
                .map(|read| (read.inserted, read.deleted))
        };
        let (deleted, inserted) = (rows("jobs").unwrap().1, rows("done").unwrap().0);
        assert!(deleted > 0 && deleted == inserted, "{release}: {found:#?}");
        // The foreign key removes the rows that reference those that are gone.
        assert!(rows("lines").is_some_and(|(_, deleted)| deleted > 0), "{release}: {found:#?}");
        let mode = |table: &str| of_tables(found).into_iter().find(|lock| lock.0 == table).map(|lock| lock.1);
        for table in ["jobs", "done", "lines"] {
            assert_eq!(mode(table), Some(LockMode::RowExclusive), "{release}: {found:#?}");
        }
        assert_eq!(mode("owners"), Some(LockMode::RowShare), "{release}: {found:#?}");
        assert!(found.unmatched.is_empty(), "{release}: {found:#?}");
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
