//! Better ways, measured beside the statements that they replace.

use ddl::find::{Class, LockMode};
use ddl::{Amount, Request, better_way};
use testkit::RELEASES;

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE u (id int PRIMARY KEY);
    CREATE TABLE t (id int PRIMARY KEY, n int, u_id int);
";
const MIGRATION: &str = "
    CREATE INDEX i ON t (n);
    ALTER TABLE t ALTER n SET NOT NULL;
    BEGIN;
    ALTER TABLE t ADD FOREIGN KEY (u_id) REFERENCES u;
    COMMIT;
    ALTER TABLE t ADD UNIQUE (id, n);
    ALTER TABLE t ADD made uuid NOT NULL DEFAULT gen_random_uuid();
    REINDEX TABLE t;
    BEGIN;
    CREATE INDEX rolled_back ON t (u_id);
    ROLLBACK;
    ALTER TABLE t ADD a int;
";

#[test]
fn better_ways_take_weaker_locks_for_the_long_part() {
    for release in RELEASES {
        let server = server(release);
        let request = Request { alternatives: true, ..request(SCHEMA, MIGRATION, Amount::Rows(2000)) };
        let outcome = measured(&server, &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        // PostgreSQL 13 would read the whole table for each batch of the new column.
        let wanted: &[usize] = if release == 13 { &[1, 2, 4, 6, 8] } else { &[1, 2, 4, 6, 7, 8] };
        assert_eq!(numbers, wanted, "{release}");
        for alternative in &outcome.alternatives {
            let number = alternative.number;
            for step in &alternative.statements {
                let found = step.found.as_ref().unwrap_or_else(|| panic!("{release}: {number}: {step:#?}"));
                assert!(step.failed.is_none() && step.largest().is_some(), "{release}: {step:#?}");
                // Whatever reads or writes the table lets readers go on, and what blocks them is catalog only.
                let blocks_readers = found.strongest() == Some(LockMode::AccessExclusive);
                assert!(
                    !blocks_readers || found.class == Class::CatalogOnly,
                    "{release}: {number}: {}: {found:?}",
                    step.statement.sql
                );
                assert_eq!(better_way(found, &step.statement), None, "{release}: {}", step.statement.sql);
            }
        }
        // The rows of the new column were all updated, batch by batch.
        if release > 13 {
            let column = &outcome.alternatives[4];
            let updated = column.statements.iter().filter_map(|step| step.found.as_ref());
            let updated = updated.flat_map(|found| &found.works).filter_map(|work| work.proof.read);
            assert_eq!(updated.map(|read| read.updated).sum::<i64>(), 2000, "{release}");
        }
    }
}
