//! Strong locks for which no session waits, or only those behind an open transaction.

use std::time::Duration;

use ddl::find::LockMode;
use ddl::{Amount, Outcome, Probes, Probing, Request};
use testkit::RELEASES;

use crate::support::{measured, of_shop, request, server};

/// The strongest lock of the statement with this number, on relations that were there.
fn strongest(outcome: &Outcome, number: usize) -> Option<LockMode> {
    outcome.statements[number - 1].found.as_ref().unwrap().strongest()
}

/// index_drop (index.c) takes ACCESS EXCLUSIVE on the index in its last transaction, after its last wait. The server tells of it by sql_drop.
#[test]
fn the_last_lock_of_an_index_that_is_dropped_concurrently_is_read() {
    let migration = "CREATE INDEX orders_i ON orders (customer_id);
        DROP INDEX CONCURRENTLY orders_i;
        CREATE INDEX orders_i ON orders (customer_id);
        DROP INDEX orders_i;
        DROP INDEX CONCURRENTLY IF EXISTS orders_i;";
    let exclusive = |outcome: &Outcome, number: usize| -> Vec<(String, bool)> {
        let found = outcome.statements[number - 1].found.as_ref().unwrap();
        let strong = found.locks.iter().filter(|lock| lock.mode == LockMode::AccessExclusive);
        strong.map(|lock| (lock.relation.clone(), lock.is_dead)).collect()
    };
    for release in RELEASES {
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(exclusive(&outcome, 2), [("orders_i".to_owned(), true)], "{release}: {outcome:#?}");
        assert_eq!(outcome.statements[1].found.as_ref().unwrap().blocks(), None, "{release}");
        // Its locks block others, and it finds them in its transaction.
        let plain = [("orders".to_owned(), false), ("orders_i".to_owned(), false)];
        assert_eq!(exclusive(&outcome, 4), plain, "{release}: {outcome:#?}");
        assert!(exclusive(&outcome, 5).is_empty(), "{release}: {outcome:#?}");
    }
}

#[test]
fn an_index_that_is_dropped_concurrently_has_no_exclusive_lock_that_blocks() {
    for release in RELEASES {
        let server = server(release);
        // The moment of a reading decides whether it meets the last lock.
        for _ in 0..4 {
            let migration = "CREATE INDEX orders_i ON orders (customer_id);
                REINDEX INDEX CONCURRENTLY orders_i;
                DROP INDEX CONCURRENTLY orders_i;";
            let outcome = measured(&server, &of_shop(migration)).unwrap();
            for number in [2, 3] {
                let found = strongest(&outcome, number);
                assert_eq!(found, Some(LockMode::ShareUpdateExclusive), "{release}: {number}: {outcome:#?}");
            }
        }
    }
}

#[test]
fn a_materialized_view_that_is_refreshed_concurrently_blocks_nobody() {
    let schema = "
        CREATE TABLE t (id int PRIMARY KEY, n int);
        CREATE MATERIALIZED VIEW m AS SELECT id, n FROM t;
        CREATE UNIQUE INDEX m_id ON m (id);";
    let migration = "
        REFRESH MATERIALIZED VIEW CONCURRENTLY m;
        CREATE INDEX m_n ON m (n);
        BEGIN;
        REFRESH MATERIALIZED VIEW CONCURRENTLY m;
        SELECT 1;
        COMMIT;
        REFRESH MATERIALIZED VIEW m;";
    for release in RELEASES {
        let server = server(release);
        let plain = request(schema, migration, Amount::Rows(300));
        let outcome = measured(&server, &Request { probes: Some(Probes::default()), ..plain }).unwrap();
        let blocks = |number: usize| outcome.statements[number - 1].found.as_ref().unwrap().blocks();
        let unprobed = |number: usize| &outcome.statements[number - 1].stall.as_ref().unwrap().unprobed;
        assert_eq!(strongest(&outcome, 1), Some(LockMode::Exclusive), "{release}");
        for number in [1, 2, 4, 5] {
            assert_eq!((blocks(number), unprobed(number).len()), (None, 0), "{release}: {number}");
        }
        assert_eq!(blocks(7), Some("reads and writes"), "{release}");
        assert_eq!(*unprobed(7), ["public.m"], "{release}");
    }
}

/// The open transaction has read views and materialized views, too, also those without rows that can be read.
#[test]
fn readers_of_views_wait_behind_an_open_transaction() {
    let schema = "
        CREATE TABLE t (id int PRIMARY KEY, n int);
        CREATE MATERIALIZED VIEW m AS SELECT id, n FROM t;
        CREATE UNIQUE INDEX m_id ON m (id);
        CREATE MATERIALIZED VIEW unpopulated AS SELECT id FROM t WITH NO DATA;
        CREATE VIEW v AS SELECT id FROM t;";
    for release in RELEASES {
        let server = server(release);
        for (migration, read) in [
            ("DROP INDEX m_id", "SELECT n FROM m LIMIT 1"),
            ("ALTER VIEW v RENAME COLUMN id TO number", "SELECT count(*) FROM v WHERE false"),
            (
                "REFRESH MATERIALIZED VIEW unpopulated",
                "SELECT 'unpopulated'::regclass, count(*) FROM t WHERE id = 7",
            ),
        ] {
            let read = Some(Probing::Statement(read.to_owned()));
            let probes = Probes { read, blocker: Some(Duration::from_secs(2)), ..Probes::default() };
            let plain = request(schema, migration, Amount::Rows(300));
            let outcome = measured(&server, &Request { probes: Some(probes), ..plain }).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {failed:#?}");
            let queue = outcome.statements[0].blocked.as_ref().unwrap();
            let is_of_view = !migration.starts_with("REFRESH");
            // The statement itself waits.
            assert!(queue.seconds > 0.5, "{release}: {migration}: {queue:?}");
            let is_long = queue.read.as_ref().is_some_and(|wait| wait.lock > 0.5);
            assert_eq!(is_long, is_of_view, "{release}: {migration}: {queue:?}");
        }
    }
}

/// Each statement that waits for readers meets a transaction that is open for the whole time.
#[test]
fn the_open_transaction_begins_anew() {
    let server = server(18);
    let migration = "SELECT pg_sleep(2); ALTER TABLE orders ADD a int; BEGIN; SELECT 1; ALTER TABLE orders ADD b int; COMMIT; ALTER TABLE orders RENAME TO o2";
    let probes = Probes { blocker: Some(Duration::from_millis(1500)), ..Probes::default() };
    let outcome = measured(&server, &Request { probes: Some(probes), ..of_shop(migration) }).unwrap();
    for number in [2, 5, 7] {
        let queue = outcome.statements[number - 1].blocked.as_ref().unwrap();
        assert!(queue.longest().is_some_and(|wait| wait.lock > 0.5), "{number}: {queue:?}");
    }
}
