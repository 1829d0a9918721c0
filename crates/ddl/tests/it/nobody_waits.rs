//! Strong locks for which no session waits.

use ddl::find::LockMode;
use ddl::{Amount, Outcome, Probes, Request};
use testkit::RELEASES;

use crate::support::{measured, of_shop, request, server};

/// The strongest lock of the statement with this number, on relations that were there.
fn strongest(outcome: &Outcome, number: usize) -> Option<LockMode> {
    outcome.statements[number - 1].found.as_ref().unwrap().strongest()
}

#[test]
fn an_index_that_is_dropped_concurrently_has_no_exclusive_lock() {
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
