//! Strong locks for which no session waits.

use ddl::find::LockMode;
use ddl::Outcome;
use testkit::RELEASES;

use crate::support::{measured, of_shop, server};

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
