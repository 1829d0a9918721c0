//! Better ways, measured beside the statements that they replace.

use ddl::find::{Class, LockMode};
use ddl::{Amount, Request, better_statements, better_way};
use testkit::{RELEASES, block_on};

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
            // The last batch reads the whole table, too: two works with the same proof.
            let updated = updated.filter_map(|found| found.works.first()?.proof.read);
            assert_eq!(updated.map(|read| read.updated).sum::<i64>(), 2000, "{release}");
        }
    }
}

/// Autovacuum may analyze the table, which grows, between two batches.
#[test]
fn the_batches_of_a_new_column_leave_no_row_out() {
    let column = "ALTER TABLE t ADD made uuid NOT NULL DEFAULT gen_random_uuid()";
    for release in RELEASES.into_iter().filter(|release| *release > 13) {
        let server = server(release);
        let outcome = measured(&server, &request(SCHEMA, column, Amount::Rows(2000))).unwrap();
        let ways = better_statements(&outcome.statements[0], u32::from(release) * 10_000);
        assert!(ways.len() > 4, "{release}: {ways:?}");
        block_on(async {
            let postgres = server.connect("postgres").await;
            let rows = "INSERT INTO t SELECT i, i, i FROM generate_series(1, 20000) i";
            for sql in [SCHEMA, rows, "VACUUM ANALYZE t"] {
                postgres.client.batch_execute(sql).await.unwrap();
            }
            for sql in &ways {
                let done = postgres.client.batch_execute(sql).await;
                done.unwrap_or_else(|error| panic!("{release}: {sql}: {error:?}"));
                postgres.client.batch_execute("ANALYZE t").await.unwrap();
            }
            let query = "SELECT count(*) FROM t WHERE made IS NULL";
            let left: i64 = postgres.client.query_one(query, &[]).await.unwrap().get(0);
            assert_eq!(left, 0, "{release}: {ways:?}");
        });
    }
}

/// A transaction keeps its locks: what works after them blocks others, though it takes no new one.
#[test]
fn a_scan_behind_a_lock_of_its_transaction_blocks_and_has_a_better_way() {
    let migration = "
        BEGIN;
        ALTER TABLE t ADD a int;
        ALTER TABLE t ADD CHECK (n > 0);
        ALTER TABLE t ADD CONSTRAINT c CHECK (id > -1) NOT VALID;
        ALTER TABLE t VALIDATE CONSTRAINT c;
        CREATE TABLE fresh (a int);
        ALTER TABLE fresh ADD CHECK (a > 0);
        CREATE INDEX ON fresh (a);
        SELECT count(*) FROM u;
        COMMIT;
        ALTER TABLE t ADD CONSTRAINT d CHECK (id > -2) NOT VALID;
        ALTER TABLE t VALIDATE CONSTRAINT d;";
    for release in RELEASES {
        let request = Request { alternatives: true, ..request(SCHEMA, migration, Amount::Rows(2000)) };
        let outcome = measured(&server(release), &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |number: usize| outcome.statements[number - 1].found.as_ref().unwrap();
        let way = |number: usize| {
            better_way(found(number), &outcome.statements[number - 1].statement).unwrap_or_default()
        };
        let inherited = |number: usize| -> Vec<(&str, LockMode)> {
            found(number).inherited.iter().map(|lock| (lock.relation.as_str(), lock.mode)).collect()
        };
        assert_eq!((inherited(2), found(2).strongest()), (vec![], Some(LockMode::AccessExclusive)));
        for number in [3, 4, 5] {
            assert_eq!(inherited(number), [("t", LockMode::AccessExclusive)], "{release}: {number}");
            assert_eq!(found(number).blocks(), Some("reads and writes"), "{release}: {number}");
        }
        assert_eq!((found(3).class, found(3).strongest()), (Class::Scan, None), "{release}");
        assert!(way(3).contains("NOT VALID"), "{release}: {}", way(3));
        assert!(way(5).contains("in a later transaction"), "{release}: {}", way(5));
        // Others wait for the lock on t whatever the statement does; a better way of work on other tables does not end that.
        for number in [6, 7, 8, 9] {
            assert_eq!(inherited(number), [("t", LockMode::AccessExclusive)], "{release}: {number}");
            assert_eq!(found(number).blocks(), Some("reads and writes"), "{release}: {number}");
            assert_eq!(way(number), "", "{release}: {number}");
        }
        // Nobody waits for these locks.
        assert_eq!((inherited(12), found(12).blocks(), way(12)), (vec![], None, String::new()), "{release}");
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [3], "{release}");
    }
}

const PARTITIONED: &str = "
    CREATE TABLE u (id int PRIMARY KEY);
    CREATE TABLE parted (id int NOT NULL, n int, u_id int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
    CREATE TABLE parted_2 PARTITION OF parted DEFAULT;
";

/// A partition that has partitions itself, in a schema that is not in the search path.
const DEEPER: &str = "
    CREATE SCHEMA \"far away\";
    CREATE TABLE \"far away\".parted_3 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
    CREATE TABLE \"far away\".parted_3_all PARTITION OF \"far away\".parted_3 DEFAULT;
";

/// The ways that the hints name are written and measured, and block nobody while they work.
#[test]
fn ways_of_partitioned_tables_are_their_own() {
    let schema = format!("{PARTITIONED}{DEEPER}");
    for release in RELEASES {
        let server = server(release);
        let migration = "
            CREATE INDEX i ON parted (n);
            BEGIN; ALTER TABLE parted ADD a int; CREATE UNIQUE INDEX ii ON parted (id); COMMIT;
            ALTER TABLE parted ADD UNIQUE (id, n);
            ALTER TABLE parted ADD FOREIGN KEY (u_id) REFERENCES u;
            ALTER TABLE parted ADD CHECK (n > -1000000000);
            CREATE INDEX ON parted_1 (n);
            ALTER TABLE parted ALTER n SET NOT NULL;";
        let request = Request { alternatives: true, ..request(&schema, migration, Amount::Rows(2000)) };
        let outcome = measured(&server, &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let way = |number: usize| {
            let one = &outcome.statements[number - 1];
            better_way(one.found.as_ref().unwrap(), &one.statement).unwrap_or_default()
        };
        for number in [1, 4, 6] {
            assert!(way(number).contains("index on each partition"), "{release}: {}", way(number));
        }
        assert!(way(7).contains("on each partition"), "{release}: {}", way(7));
        assert!(way(8).contains("NOT VALID"), "{release}: {}", way(8));
        assert!(way(9).starts_with("CREATE INDEX CONCURRENTLY"), "{release}: {}", way(9));
        // A hint prints the statements that are measured.
        for alternative in &outcome.alternatives {
            let one = &outcome.statements[alternative.number - 1];
            let measured = alternative.statements.iter().map(|step| step.statement.in_one_line());
            let printed = better_statements(one, u32::from(release) * 10_000);
            assert_eq!(measured.collect::<Vec<_>>(), printed, "{release}");
        }
        // Each succeeds, and what blocks anybody is catalog only.
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [1, 4, 6, 7, 8, 9, 10], "{release}");
        for step in outcome.alternatives.iter().flat_map(|one| &one.statements) {
            assert!(step.failed.is_none() && step.largest().is_some(), "{release}: {step:#?}");
            let found = step.found.as_ref().unwrap();
            let blocks = found.strongest().is_some_and(|mode| mode.blocks().is_some());
            assert!(
                !blocks || found.class == Class::CatalogOnly,
                "{release}: {}: {found:?}",
                step.statement.sql
            );
        }
        // The index of the partitioned table, that of each of three partitions in two levels, and what joins them.
        assert_eq!(outcome.alternatives[0].statements.len(), 2 + 3 + 4, "{release}");
    }
}

/// ADD PRIMARY KEY USING INDEX scans a table whose column may be NULL, with the lock that blocks readers.
#[test]
fn a_primary_key_of_columns_that_may_be_null_has_a_way_without_a_scan() {
    let schema = "
        CREATE TABLE keyless (a int, b int NOT NULL, n int);
        CREATE TABLE \"Other\" (\"Id\" int, n int);
        CREATE TABLE parted (id int, n int) PARTITION BY RANGE (id);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
        CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
        CREATE TABLE parted_2_all PARTITION OF parted_2 DEFAULT;
        CREATE TABLE parted_3 PARTITION OF parted DEFAULT;
    ";
    let migration = "
        ALTER TABLE ONLY keyless ADD CONSTRAINT keyless_pkey PRIMARY KEY (a, b);
        ALTER TABLE \"Other\" ADD PRIMARY KEY (\"Id\");
        ALTER TABLE parted ADD PRIMARY KEY (id);";
    for release in RELEASES {
        let server = server(release);
        let request = Request { alternatives: true, ..request(schema, migration, Amount::Rows(2000)) };
        let outcome = measured(&server, &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [1, 2, 3], "{release}");
        for alternative in &outcome.alternatives {
            for step in &alternative.statements {
                assert!(step.failed.is_none() && step.largest().is_some(), "{release}: {step:#?}");
                let (found, sql) = (step.found.as_ref().unwrap(), &step.statement.sql);
                let blocks = found.strongest().is_some_and(|mode| mode.blocks().is_some());
                assert!(!blocks || found.class == Class::CatalogOnly, "{release}: {sql}: {found:?}");
            }
        }
        // PostgreSQL 18 has NOT NULL that is NOT VALID.
        let steps: Vec<usize> = outcome.alternatives.iter().map(|one| one.statements.len()).collect();
        let of_plain = if release < 18 { 4 + 2 } else { 2 + 2 };
        assert_eq!(steps[..2], [of_plain, of_plain], "{release}");
        let of_leaves = if release < 18 { 3 * 4 } else { 3 * 2 + 1 };
        assert_eq!(steps[2], of_leaves + 3 + 3 + 2 + 4, "{release}");
    }
}

/// A better way does to tables that inherit what the statement does: nothing, if it says ONLY.
#[test]
fn a_better_way_keeps_only() {
    for release in RELEASES {
        let server = server(release);
        let schema =
            "CREATE TABLE parent (id int PRIMARY KEY, n int); CREATE TABLE child () INHERITS (parent);";
        let migration = "
            ALTER TABLE ONLY parent ALTER n SET NOT NULL;
            ALTER TABLE ONLY parent ADD UNIQUE (id, n);
            ALTER TABLE child ADD a int;";
        let request = Request { alternatives: true, ..request(schema, migration, Amount::Rows(2000)) };
        let outcome = measured(&server, &request).unwrap();
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [1, 2], "{release}");
        for step in outcome.alternatives.iter().flat_map(|one| &one.statements) {
            assert!(step.failed.is_none(), "{release}: {step:#?}");
            let (found, sql) = (step.found.as_ref().unwrap(), &step.statement.sql);
            assert!(
                !found.locks.iter().any(|lock| lock.relation == "child"),
                "{release}: {sql}: {:?}",
                found.locks
            );
            assert!(
                !sql.contains("SET NOT NULL") || found.class == Class::CatalogOnly,
                "{release}: {sql}: {found:?}"
            );
        }
    }
}

#[test]
fn the_ways_that_hints_name_for_partitioned_tables_work() {
    for release in RELEASES {
        let server = server(release);
        let migration = "
            CREATE INDEX i ON ONLY parted (n);
            CREATE INDEX CONCURRENTLY i_1 ON parted_1 (n);
            CREATE INDEX CONCURRENTLY i_2 ON parted_2 (n);
            ALTER INDEX i ATTACH PARTITION i_1;
            ALTER INDEX i ATTACH PARTITION i_2;
            CREATE UNIQUE INDEX CONCURRENTLY k_1 ON parted_1 (id);
            CREATE UNIQUE INDEX CONCURRENTLY k_2 ON parted_2 (id);
            ALTER TABLE parted_1 ADD CONSTRAINT k_1 UNIQUE USING INDEX k_1;
            ALTER TABLE parted_2 ADD CONSTRAINT k_2 UNIQUE USING INDEX k_2;
            ALTER TABLE ONLY parted ADD CONSTRAINT k UNIQUE (id);
            ALTER INDEX k ATTACH PARTITION k_1;
            ALTER INDEX k ATTACH PARTITION k_2;
            ALTER TABLE parted_1 ADD CONSTRAINT f FOREIGN KEY (u_id) REFERENCES u NOT VALID;
            ALTER TABLE parted_2 ADD CONSTRAINT f FOREIGN KEY (u_id) REFERENCES u NOT VALID;
            ALTER TABLE parted_1 VALIDATE CONSTRAINT f;
            ALTER TABLE parted_2 VALIDATE CONSTRAINT f;
            ALTER TABLE parted ADD CONSTRAINT f FOREIGN KEY (u_id) REFERENCES u;";
        let outcome = measured(&server, &request(PARTITIONED, migration, Amount::Rows(2000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        for one in &outcome.statements {
            let found = one.found.as_ref().unwrap();
            let writers = found.strongest().is_some_and(|mode| mode.blocks().is_some());
            assert!(
                !writers || found.class == Class::CatalogOnly,
                "{release}: {}: {found:?}",
                one.statement.sql
            );
        }
    }
}

/// Hints whose statements would block others as long, or that belong to another action.
#[test]
fn no_way_is_named_that_is_no_better() {
    let schema = "
        CREATE DOMAIN positive AS int CHECK (VALUE > 0);
        CREATE TABLE orders (id int PRIMARY KEY, amount int, qty positive);
        CREATE TABLE parted (id int NOT NULL, n int) PARTITION BY RANGE (id);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);";
    let migration = "
        ALTER DOMAIN positive ADD CONSTRAINT small CHECK (VALUE < 2000000000);
        ALTER TABLE orders ADD more positive DEFAULT 1;
        ALTER TABLE orders ADD state int DEFAULT 0 NOT NULL, ALTER COLUMN amount TYPE bigint;
        CREATE TABLE late (id int NOT NULL, n int) PARTITION BY RANGE (id);
        CREATE TABLE late_1 PARTITION OF late FOR VALUES FROM (5000) TO (6000);
        CREATE TABLE late_2 PARTITION OF late FOR VALUES FROM (6000) TO (7000);
        INSERT INTO late SELECT i, 0 FROM generate_series(5000, 6999) i;
        ALTER TABLE parted ATTACH PARTITION late DEFAULT;";
    for release in RELEASES {
        let outcome = measured(&server(release), &request(schema, migration, Amount::Rows(500))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |number: usize| outcome.statements[number - 1].found.as_ref().unwrap();
        let way = |number: usize| better_way(found(number), &outcome.statements[number - 1].statement);
        assert_eq!((found(1).blocks(), way(1)), (Some("writes"), None), "{release}: {:#?}", found(1));
        assert_eq!((found(2).class, way(2)), (Class::Rewrite, None), "{release}: {:#?}", found(2));
        let typed = way(3).unwrap();
        assert!(typed.contains("new type") && !typed.contains("default"), "{release}: {typed}");
        let attached = way(8).unwrap();
        assert!(
            attached.contains("to late, one that only rows within the new bounds"),
            "{release}: {attached}"
        );
        assert!(!attached.contains("outside"), "{release}: {attached}");
    }
}
