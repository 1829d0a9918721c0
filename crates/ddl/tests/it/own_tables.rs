//! Tables that the migration makes itself, and temporary ones.

use ddl::find::Class;
use ddl::{Amount, Effects, Outcome, StatementOutcome, better_way};
use testkit::RELEASES;

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, n int);
    CREATE TABLE parted (at date, n int) PARTITION BY RANGE (at);
    CREATE TABLE parted_2025 PARTITION OF parted FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
";

/// Of each statement with effects these, and its better way.
fn found(outcome: &Outcome) -> Vec<(&Effects, Option<String>)> {
    let with_way = |one: &StatementOutcome| better_way(one.found.as_ref()?, &one.statement);
    outcome.statements.iter().filter_map(|one| Some((one.found.as_ref()?, with_way(one)))).collect()
}

/// There is nothing to read in them, whatever the size of the tables that were there.
#[test]
fn work_on_new_tables_counts_once_they_have_rows() {
    let migration = "
        CREATE TABLE audit (at timestamptz, token uuid);
        CREATE INDEX audit_at ON audit (at);
        ALTER TABLE audit ADD more uuid DEFAULT gen_random_uuid();
        BEGIN;
        CREATE TABLE refund (order_id int);
        ALTER TABLE refund ADD CONSTRAINT refund_order FOREIGN KEY (order_id) REFERENCES orders;
        COMMIT;
        CREATE TABLE parted_2026 (LIKE parted);
        ALTER TABLE parted ATTACH PARTITION parted_2026 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
        CREATE INDEX CONCURRENTLY audit_more ON audit (more);
        CREATE TABLE copied AS SELECT * FROM orders;
        CREATE INDEX copied_n ON copied (n);
        INSERT INTO audit (at) VALUES (now());
        CREATE INDEX audit_token ON audit (token);";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SCHEMA, migration, Amount::Rows(500))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = found(&outcome);
        let classes: Vec<Class> = found.iter().map(|(found, _)| found.class).collect();
        let wanted = [
            Class::CatalogOnly,
            Class::CatalogOnly, // the index
            Class::CatalogOnly, // the volatile default
            Class::CatalogOnly,
            Class::CatalogOnly, // the foreign key
            Class::CatalogOnly,
            Class::CatalogOnly, // the partition
            Class::Wait,
            Class::Scan,
            Class::IndexBuild, // it has rows by then
            Class::Rows,
            Class::IndexBuild,
        ];
        assert_eq!(classes, wanted, "{release}: {found:#?}");
        let with_ways: Vec<usize> = (0..found.len()).filter(|place| found[*place].1.is_some()).collect();
        assert_eq!(with_ways, [9, 11], "{release}: {found:#?}");
        // The foreign key still blocks writers of the other table.
        assert_eq!(found[4].0.blocks(), Some("writes"), "{release}: {:?}", found[4]);
    }
}

/// No other session can use them.
#[test]
fn temporary_tables_block_nobody() {
    let migration = "
        CREATE TEMP TABLE ids AS SELECT id FROM orders;
        CREATE INDEX ids_id ON ids (id);
        ALTER TABLE ids ADD CHECK (id > -1);
        BEGIN;
        ALTER TABLE ids ADD a int;
        CREATE INDEX ids_a ON ids (a);
        COMMIT;
        DROP TABLE ids;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SCHEMA, migration, Amount::Rows(500))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = found(&outcome);
        let classes: Vec<Class> = found.iter().map(|(found, _)| found.class).collect();
        let wanted = [
            Class::Scan,
            Class::IndexBuild,
            Class::Scan,
            Class::CatalogOnly,
            Class::IndexBuild,
            Class::CatalogOnly,
        ];
        assert_eq!(classes, wanted, "{release}: {found:#?}");
        for (place, (found, way)) in found.iter().enumerate() {
            assert_eq!((found.blocks(), way), (None, &None), "{release}: {place}: {found:#?}");
            assert!(place == 0 || found.strongest().is_none(), "{release}: {place}: {found:#?}");
        }
    }
}
