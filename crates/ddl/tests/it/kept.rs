//! Locks that a transaction keeps: they block others while its later statements run, whatever these do.

use ddl::find::LockMode;
use ddl::{Amount, Probes, Request, keepers};
use testkit::RELEASES;

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE SCHEMA app;
    CREATE TABLE app.orders (id int PRIMARY KEY, n int);
    CREATE TABLE app.others (id int PRIMARY KEY, n int);
    CREATE TABLE app.log (id int PRIMARY KEY, n int);
";

#[test]
fn each_statement_shows_the_locks_that_its_transaction_keeps() {
    let migration = "
        BEGIN;
        ALTER TABLE app.orders ADD COLUMN a1 int;
        COMMENT ON COLUMN app.orders.a1 IS 'x';
        GRANT SELECT ON app.orders TO PUBLIC;
        CREATE INDEX ON app.orders (n);
        CREATE POLICY p ON app.orders USING (true);
        UPDATE app.orders SET n = n;
        SELECT count(*) FROM app.others;
        CREATE TABLE app.fresh (id int);
        CREATE TEMP TABLE gone (id int);
        DO $$ BEGIN PERFORM 1; END $$;
        COMMIT;
        SELECT count(*) FROM app.orders;
        BEGIN;
        CREATE INDEX ON app.log (n);
        COMMENT ON TABLE app.others IS 'x';
        ROLLBACK;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SCHEMA, migration, Amount::Rows(500))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |number: usize| outcome.statements[number - 1].found.as_ref().unwrap();
        let kept = |number: usize| -> Vec<(&str, LockMode)> {
            found(number).inherited.iter().map(|lock| (lock.relation.as_str(), lock.mode)).collect()
        };
        for number in [2, 13, 15] {
            assert_eq!(kept(number), [], "{release}: {number}");
        }
        for number in 3..=11 {
            assert_eq!(kept(number), [("app.orders", LockMode::AccessExclusive)], "{release}: {number}");
            assert_eq!(found(number).blocks(), Some("reads and writes"), "{release}: {number}");
        }
        assert_eq!(kept(16), [("app.log", LockMode::Share)], "{release}");
        assert_eq!((found(13).blocks(), found(16).blocks()), (None, Some("writes")), "{release}");
    }
}

/// A reader that waits for the lock of statement 2 gets its answer after COMMIT: the wait counts once.
#[test]
fn a_statement_behind_a_kept_lock_names_the_statement_for_which_the_waits_count() {
    for release in RELEASES {
        let migration = "
            BEGIN;
            ALTER TABLE app.orders ADD COLUMN a1 int;
            SELECT pg_sleep(1);
            COMMIT;
            ALTER TABLE app.others ADD COLUMN a1 int;";
        let request =
            Request { probes: Some(Probes::default()), ..request(SCHEMA, migration, Amount::Rows(500)) };
        let outcome = measured(&server(release), &request).unwrap();
        let stall = |number: usize| outcome.statements[number - 1].stall.as_ref().unwrap();
        let longest = |number: usize| stall(number).longest().map_or(0.0, |wait| wait.seconds);
        assert!(longest(2) > 0.5 && longest(3) < longest(2), "{release}: {:#?}", outcome.statements);
        let counts: Vec<Option<usize>> = [2, 3, 5].map(|number| stall(number).counts_for).to_vec();
        assert_eq!(counts, [None, Some(2), None], "{release}");
    }
}

/// Partitions that are dropped with their table are no tables that stay.
#[test]
fn a_dropped_table_blocks_those_that_its_foreign_keys_reference() {
    let schema = format!(
        "{SCHEMA}
        CREATE TABLE app.lines (id int PRIMARY KEY, order_id int REFERENCES app.orders);
        CREATE TABLE app.parted (id int) PARTITION BY RANGE (id);
        CREATE TABLE app.parted_1 PARTITION OF app.parted DEFAULT;"
    );
    let migration = "
        BEGIN;
        DROP TABLE app.lines;
        SELECT pg_sleep(0.5);
        COMMIT;
        BEGIN;
        DROP TABLE app.parted;
        SELECT pg_sleep(0.5);
        COMMIT;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(&schema, migration, Amount::Rows(500))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = keepers(&outcome.statements).into_iter().map(|one| (one.numbers, one.tables));
        let wanted = [(vec![2], vec!["app.orders".to_owned()])];
        assert_eq!(found.collect::<Vec<_>>(), wanted, "{release}");
    }
}

/// Names that SQL reads only in quotes have quotes in each line, also in the reason for which a table has no reader.
#[test]
fn tables_that_are_not_probed_have_quotes_where_sql_needs_them() {
    let schema = "
        CREATE SCHEMA \"Übung\";
        CREATE TABLE \"Übung\".\"Größe x\" (n int);
        CREATE TABLE \"Übung\".\"Mit x\" (id int PRIMARY KEY, n int);";
    let migration = "
        ALTER TABLE \"Übung\".\"Größe x\" ADD COLUMN a int;
        ALTER TABLE \"Übung\".\"Mit x\" ADD COLUMN a int;";
    let request =
        Request { probes: Some(Probes::default()), ..request(schema, migration, Amount::Rows(500)) };
    let outcome = measured(&server(18), &request).unwrap();
    let probed = outcome.probed.as_ref().unwrap();
    assert!(probed.unprobed[0].starts_with("\"Übung\".\"Größe x\": it has no key"), "{probed:?}");
    assert_eq!(probed.names, ["reader \"Übung\".\"Mit x\"", "writer \"Übung\".\"Mit x\""]);
    let stall = |place: usize| outcome.statements[place].stall.as_ref().unwrap();
    assert_eq!(stall(0).unprobed, ["\"Übung\".\"Größe x\""]);
    assert_eq!(stall(1).unprobed, Vec::<String>::new());
}
