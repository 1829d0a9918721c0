//! Tables that the migration makes itself, and temporary ones.

use ddl::find::Class;
use ddl::{Amount, Effects, Outcome, Request, StatementOutcome, better_way, is_in_transaction};
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
        assert_eq!(found[2].0.works[0].relation, "pg_temp.ids", "{release}");
        assert_eq!(classes, wanted, "{release}: {found:#?}");
        for (place, (found, way)) in found.iter().enumerate() {
            assert_eq!((found.blocks(), way), (None, &None), "{release}: {place}: {found:#?}");
            assert!(place == 0 || found.strongest().is_none(), "{release}: {place}: {found:#?}");
        }
    }
}

/// Its keys and indexes block nobody, beside a foreign key, too, which blocks writers of the other table.
#[test]
fn a_table_of_the_transaction_has_only_the_way_of_its_foreign_key() {
    let schema = "
        CREATE TABLE person (id int PRIMARY KEY, name text);
        CREATE TABLE liked (person_id int NOT NULL REFERENCES person, post_id int NOT NULL);";
    let migration = "
        BEGIN;
        CREATE TABLE actions AS SELECT DISTINCT person_id, post_id FROM liked;
        DROP TABLE liked;
        ALTER TABLE actions ALTER person_id SET NOT NULL, ADD PRIMARY KEY (person_id, post_id),
            ADD CONSTRAINT a_fk FOREIGN KEY (person_id) REFERENCES person;
        CREATE INDEX actions_post ON actions (post_id);
        COMMIT;";
    for release in RELEASES {
        let request = Request { alternatives: true, ..request(schema, migration, Amount::Rows(500)) };
        let outcome = measured(&server(release), &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let ways: Vec<Option<String>> = found(&outcome).into_iter().map(|(_, way)| way).collect();
        let key = ways[2].as_deref().unwrap();
        assert!(key.starts_with("add the foreign key NOT VALID"), "{release}: {key}");
        assert!(!key.contains("SET NOT NULL") && !key.contains("CONCURRENTLY"), "{release}: {key}");
        assert_eq!([&ways[0], &ways[1], &ways[3]], [&None; 3], "{release}");
        assert!(!is_in_transaction(&outcome.statements, 4), "{release}");
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [4], "{release}");
        let steps = &outcome.alternatives[0].statements;
        let written: Vec<String> = steps.iter().map(|step| step.statement.in_one_line()).collect();
        let wanted = [
            "ALTER TABLE actions ALTER person_id SET NOT NULL, ADD PRIMARY KEY (person_id, post_id)",
            "ALTER TABLE actions ADD CONSTRAINT a_fk FOREIGN KEY (person_id) REFERENCES person NOT VALID",
            "ALTER TABLE actions VALIDATE CONSTRAINT a_fk",
        ];
        assert_eq!(written, wanted, "{release}");
        let effects: Vec<&Effects> = steps.iter().filter_map(|step| step.found.as_ref()).collect();
        assert_eq!((effects.len(), effects[1].class), (3, Class::CatalogOnly), "{release}: {steps:#?}");
        assert_eq!(effects[2].blocks(), None, "{release}: {:#?}", effects[2]);
    }
}
