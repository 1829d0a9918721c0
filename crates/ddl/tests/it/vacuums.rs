//! The locks of VACUUM on indexes and TOAST tables.

use ddl::find::LockMode;
use testkit::RELEASES;

use crate::support::{measured, of_shop, server};

/// heap_vacuum_rel (vacuumlazy.c) opens all indexes with ROW EXCLUSIVE, and vacuum_rel (vacuum.c) goes on with the TOAST table.
#[test]
fn a_vacuum_locks_indexes_and_toast_tables() {
    let orders = [
        (LockMode::ShareUpdateExclusive, "orders"),
        (LockMode::ShareUpdateExclusive, "TOAST of orders"),
        (LockMode::RowExclusive, "orders_pkey"),
        (LockMode::RowExclusive, "TOAST index of orders"),
    ];
    // No column of it can be long, so it has no TOAST table; and it has no index.
    let log = [(LockMode::ShareUpdateExclusive, "orders_log")];
    for release in RELEASES {
        let migration =
            "VACUUM orders; VACUUM (SKIP_LOCKED) orders; VACUUM (ANALYZE) orders; VACUUM orders_log;";
        let outcome = measured(&server(release), &of_shop(migration)).unwrap();
        let wanted = [&orders[..], &orders, &orders, &log];
        for (one, wanted) in outcome.statements.iter().zip(wanted) {
            let found = one.found.as_ref().unwrap();
            let locks: Vec<_> = found.locks.iter().map(|lock| (lock.mode, lock.relation.as_str())).collect();
            assert_eq!(locks, wanted, "{release}: {}", one.statement.sql);
            assert_eq!((found.unknown_locks.as_ref(), found.blocks()), (None, None), "{release}");
        }
    }
}
