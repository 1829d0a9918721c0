//! Rows that suit what the migration adds, and remedies where they do not.

use std::collections::BTreeSet;

use ddl::find::Class;
use ddl::{Amount, Effort, Outcome, Request};
use testkit::{RELEASES, Server, assert_says};

use crate::support::{Warned, classes, measured, measured_by, request, server};

const SCHEMA: &str = "
    CREATE TABLE parent (id int PRIMARY KEY, n int);
    CREATE TABLE big (id int PRIMARY KEY, v int, w int, note text);
    CREATE TABLE parted (k int NOT NULL, v int) PARTITION BY RANGE (k);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000000);
";

const PARTITIONED: &str = "
    CREATE TABLE ev (id int, at date NOT NULL) PARTITION BY RANGE (at);
    CREATE TABLE ev_2024 PARTITION OF ev FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE \"ev_New\" (id int, at date NOT NULL);
    CREATE TABLE listed (id int, state text) PARTITION BY LIST (state);
    CREATE TABLE listed_new (id int, state text);
    CREATE TABLE hashed (id int, other int) PARTITION BY HASH (id);
    CREATE TABLE hashed_0 (id int, other int);
";

fn outcome(server: &Server, schema: &str, migration: &str) -> Outcome {
    measured(server, &request(schema, migration, Amount::Rows(300))).unwrap()
}

/// All statements are measured.
fn assert_suited(server: &Server, schema: &str, migration: &str) {
    let outcome = outcome(server, schema, migration);
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{migration}: {failed:#?}");
}

/// The remedy of the statement with this number.
fn remedy(outcome: &Outcome, number: usize) -> String {
    let failed = outcome.failed().find(|(one, _)| one.number == number);
    failed.and_then(|(_, failed)| failed.remedy.clone()).unwrap_or_else(|| panic!("{number}: {outcome:#?}"))
}

#[test]
fn rows_suit_a_key_and_a_foreign_key_to_it() {
    for release in RELEASES {
        let server = server(release);
        for migration in [
            "CREATE UNIQUE INDEX pn ON parent (n);
             ALTER TABLE big ADD CONSTRAINT fn FOREIGN KEY (v) REFERENCES parent (n);",
            "ALTER TABLE parent ADD CONSTRAINT pn UNIQUE (n);
             ALTER TABLE big ADD CONSTRAINT fn FOREIGN KEY (v) REFERENCES parent (n);",
            "CREATE UNIQUE INDEX pn ON parent (n);
             ALTER TABLE parent ADD CONSTRAINT pn UNIQUE USING INDEX pn;
             ALTER TABLE big ADD CONSTRAINT fn FOREIGN KEY (v) REFERENCES parent (n);",
            "ALTER TABLE parted ADD PRIMARY KEY (k);
             ALTER TABLE big ADD CONSTRAINT fk FOREIGN KEY (v) REFERENCES parted (k);",
            "ALTER TABLE big ADD CONSTRAINT bw UNIQUE (w);
             ALTER TABLE big ADD CONSTRAINT fw FOREIGN KEY (v) REFERENCES big (w);",
        ] {
            assert_suited(&server, SCHEMA, migration);
        }
    }
}

#[test]
fn rows_suit_a_constraint_that_the_migration_removes_later() {
    for release in RELEASES {
        let server = server(release);
        for removal in ["ALTER TABLE big DROP CONSTRAINT q", "DROP TABLE big", "SELECT 1"] {
            let migration = format!("ALTER TABLE big ADD CONSTRAINT q CHECK (v < 10); {removal}");
            assert_suited(&server, SCHEMA, &migration);
        }
        let migration = "BEGIN; SET LOCAL search_path = public, pg_catalog; ALTER TABLE big ADD CHECK (v < 10); \
                         ALTER TABLE big ADD CHECK (w > 5); ROLLBACK; ALTER TABLE big ADD a int";
        assert_suited(&server, SCHEMA, migration);
    }
}

#[test]
fn rows_keep_a_new_rule_unless_an_earlier_statement_sets_its_columns() {
    for release in RELEASES {
        let server = server(release);
        for migration in [
            "ALTER TABLE big ADD FOREIGN KEY (v) REFERENCES parent; UPDATE big SET note = 'x'",
            "UPDATE big SET note = 'x'; ALTER TABLE big ADD FOREIGN KEY (v) REFERENCES parent",
            "ALTER TABLE big ADD CHECK (v < 10); UPDATE big SET v = 5",
            "BEGIN; UPDATE big AS b SET note = 'x', w = 1; ALTER TABLE big ADD CHECK (v < 10); COMMIT",
        ] {
            assert_suited(&server, SCHEMA, migration);
        }
        for (migration, number) in [
            ("UPDATE big SET v = -1 WHERE v >= 0; ALTER TABLE big ADD CHECK (v < 0)", 1),
            ("DELETE FROM big WHERE v >= 0; ALTER TABLE big ADD CHECK (v < 0)", 1),
            (
                "ALTER TABLE big ADD CONSTRAINT q CHECK (v < 0) NOT VALID; UPDATE big SET v = -1 WHERE v >= 0; \
                 ALTER TABLE big VALIDATE CONSTRAINT q",
                2,
            ),
        ] {
            let outcome = outcome(&server, SCHEMA, migration);
            assert_eq!(outcome.failed().count(), 0, "{release}: {outcome:#?}");
            assert_eq!(classes(&outcome)[number - 1], Some(Class::Rows), "{release}: {migration}");
        }
    }
}

#[test]
fn values_suit_a_cast_unless_an_earlier_statement_sets_the_column() {
    const ITEMS: &str = "CREATE TABLE items (id int PRIMARY KEY, s text NOT NULL, k int)";
    const CAST: &str = "ALTER TABLE items ALTER s TYPE int USING s::int";
    for release in RELEASES {
        let server = server(release);
        for migration in [
            format!("UPDATE items SET k = 1; {CAST}"),
            format!("{CAST}; UPDATE items SET k = 1"),
            format!("{CAST}; UPDATE items SET s = 1"),
            format!("{CAST}; INSERT INTO items VALUES (-1, 2, 3); DELETE FROM items WHERE k > 1"),
            format!("INSERT INTO items VALUES (-1, '2', 3); {CAST}"),
            format!("BEGIN; UPDATE items SET k = 1; {CAST}; UPDATE items SET s = 1; COMMIT"),
            "UPDATE items SET k = 1; ALTER TABLE items RENAME s TO t; \
             ALTER TABLE items ALTER t TYPE int USING t::int; UPDATE items SET t = 1"
                .to_owned(),
        ] {
            assert_suited(&server, ITEMS, &migration);
        }
        for change in ["UPDATE items SET s = '5' WHERE s ~ '[^0-9]'", "DELETE FROM items WHERE s ~ '[^0-9]'"]
        {
            let outcome = outcome(&server, ITEMS, &format!("{change}; {CAST}"));
            assert_eq!(outcome.failed().count(), 0, "{release}: {outcome:#?}");
            assert_eq!(classes(&outcome)[0], Some(Class::Rows), "{release}: {change}");
        }
    }
}

#[test]
fn the_remedy_of_a_foreign_key_names_values_that_suit_every_size() {
    let migration =
        "UPDATE big SET v = -5 WHERE id > 0; ALTER TABLE big ADD FOREIGN KEY (v) REFERENCES parent";
    let outcome = outcome(&server(18), SCHEMA, migration);
    assert_says(&remedy(&outcome, 2), &["--column 'big.v=reference(parent.id)'"]);
}

/// The schema has no foreign key from which pgrig knew the order of the tables.
#[test]
fn columns_get_values_of_tables_that_are_filled_in_the_same_run() {
    let schema = "CREATE TABLE \"A\" (id int PRIMARY KEY, u int NOT NULL, w text);
        CREATE TABLE z (id serial PRIMARY KEY, \"Word\" text UNIQUE);";
    let migration = "ALTER TABLE \"A\" ADD FOREIGN KEY (u) REFERENCES z; ALTER TABLE \"A\" ADD FOREIGN KEY (w) REFERENCES z (\"Word\")";
    let columns = ["A.u=reference(z.id)", "A.w=reference(public.z.\"Word\")"].map(str::to_owned);
    for release in RELEASES {
        let request = request(schema, migration, Amount::Rows(300));
        let request = Request { columns: columns.to_vec(), effort: Effort::Full, ..request };
        let outcome = measured(&server(release), &request).unwrap();
        assert_eq!(outcome.failed().count(), 0, "{release}: {outcome:#?}");
    }
    let unknown = Request {
        columns: vec!["A.u=reference(gone.id)".to_owned()],
        ..request(schema, migration, Amount::Rows(30))
    };
    let refused = measured(&server(18), &unknown).unwrap_err().to_string();
    assert_says(&refused, &["--column A.u: ", "\"gone\" does not exist"]);
}

/// The key in the server's detail is that of the table whose rows are deleted.
#[test]
fn the_remedy_of_rows_that_are_referenced_names_the_columns_that_reference_them() {
    let schema = "
        CREATE TABLE customers (id int PRIMARY KEY);
        CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers ON DELETE CASCADE);
        CREATE TABLE audit_log (id int PRIMARY KEY, \"Row\" int NOT NULL CONSTRAINT audit_order REFERENCES orders);
    ";
    for release in RELEASES {
        let server = server(release);
        for schema in
            [schema.to_owned(), schema.replace("REFERENCES orders", "REFERENCES orders ON DELETE RESTRICT")]
        {
            let outcome = outcome(&server, &schema, "DELETE FROM customers WHERE id > 0");
            let remedy = remedy(&outcome, 1);
            let parts = [
                "rows of audit_log reference the rows that the statement deletes or changes",
                "--column 'audit_log.Row=SPEC'",
            ];
            assert_says(&remedy, &parts);
            assert!(!remedy.contains("audit_log.id"), "{release}: {remedy}");
        }
    }
}

#[test]
fn a_failure_that_follows_from_an_earlier_one_is_told() {
    let server = server(18);
    for (first, second) in [
        ("ALTER TABLE big ADD CONSTRAINT q CHECK (note <> 'x')", "ALTER TABLE big DROP CONSTRAINT q"),
        ("CREATE UNIQUE INDEX CONCURRENTLY cn ON big (note)", "DROP INDEX CONCURRENTLY cn"),
    ] {
        // Rows that a migration changes itself do not suit.
        let migration = format!("UPDATE big SET note = 'x'; {first}; {second}");
        let outcome = outcome(&server, SCHEMA, &migration);
        assert_says(&remedy(&outcome, 2), &["--column 'big.note=SPEC'"]);
        assert_says(&remedy(&outcome, 3), &["may follow from the failure of statement 2"]);
    }
}

#[test]
fn rows_suit_the_bounds_of_a_partition_that_is_attached() {
    for release in RELEASES {
        let server = server(release);
        for migration in [
            "ALTER TABLE ev ATTACH PARTITION \"ev_New\" FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
            "BEGIN; ALTER TABLE ev ATTACH PARTITION \"ev_New\" FOR VALUES FROM ('2025-01-01') TO ('2026-01-01'); ROLLBACK",
            "ALTER TABLE listed ATTACH PARTITION listed_new FOR VALUES IN ('new', 'paid')",
        ] {
            assert_suited(&server, PARTITIONED, migration);
        }
        // No rows are made for a partition by hash.
        let migration =
            "ALTER TABLE hashed ATTACH PARTITION hashed_0 FOR VALUES WITH (MODULUS 2, REMAINDER 0)";
        let remedy = remedy(&outcome(&server, PARTITIONED, migration), 1);
        assert!(remedy.ends_with("with --column 'hashed_0.id=SPEC'"), "{release}: {remedy}");
    }
}

#[test]
fn the_remedy_of_validate_names_the_columns_of_the_constraint() {
    let migration = "
        UPDATE big SET note = 'x';
        ALTER TABLE big ADD CONSTRAINT \"Own\" CHECK (note <> 'x' OR v IS NULL) NOT VALID;
        ALTER TABLE big VALIDATE CONSTRAINT \"Own\";";
    let remedy = remedy(&outcome(&server(18), SCHEMA, migration), 3);
    assert!(remedy.ends_with("with --column 'big.note=SPEC', or for big.v"), "{remedy}");
}

#[test]
fn a_rule_that_the_tables_do_not_take_is_told() {
    let server = server(18);
    for (migration, is_told) in [
        ("CREATE TABLE made (id int PRIMARY KEY); ALTER TABLE big ADD FOREIGN KEY (v) REFERENCES made", true),
        ("ALTER TABLE big ADD extra int; ALTER TABLE big ADD CHECK (extra > 0)", false),
        ("CREATE TABLE made (id int PRIMARY KEY, CHECK (id > 0))", false),
    ] {
        let mut warned = Warned::default();
        measured_by(&server, &request(SCHEMA, migration, Amount::Rows(300)), &mut warned).unwrap();
        let says =
            "may not satisfy FOREIGN KEY (v) REFERENCES public.made(id) of big, which the migration adds";
        let warnings = warned.0.join("\n");
        assert_eq!(warnings.contains(says), is_told, "{migration}: {warnings}");
        assert_eq!(warnings.contains("may not satisfy"), is_told, "{migration}: {warnings}");
    }
}

#[test]
fn the_remedy_of_a_column_without_values_names_its_table() {
    const PATHS: &str =
        "CREATE TABLE paths (id int PRIMARY KEY, path jsonpath); CREATE TABLE others (id int PRIMARY KEY)";
    let server = server(18);
    let migration = "ALTER TABLE paths ADD a int; ALTER TABLE others ADD a int";
    let mut warned = Warned::default();
    let asked = request(PATHS, migration, Amount::Rows(100));
    measured_by(&server, &asked, &mut warned).unwrap();
    assert_says(&warned.0.join("\n"), &["column path is NULL", "--column 'paths.path=constant(VALUE)'"]);
    let columns = vec!["paths.path=constant($.a)".to_owned()];
    let mut warned = Warned::default();
    measured_by(&server, &Request { columns, ..asked }, &mut warned).unwrap();
    assert!(!warned.0.join("\n").contains("is NULL"), "{warned:?}");
}

#[test]
fn a_materialized_view_that_fails_on_the_rows_stays_unpopulated() {
    const VIEWS: &str = "
        CREATE TABLE codes (id int PRIMARY KEY, code text NOT NULL, total int);
        CREATE MATERIALIZED VIEW totals AS SELECT id, code::int AS c FROM codes;
        CREATE MATERIALIZED VIEW above AS SELECT c FROM totals;
        CREATE MATERIALIZED VIEW same AS SELECT id - id AS id FROM codes;
        CREATE UNIQUE INDEX same_id ON same (id);
        CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM codes;
    ";
    for release in RELEASES {
        let server = server(release);
        let migration = "ALTER TABLE codes ADD x int; SELECT count FROM counted; SELECT c FROM above";
        let mut warned = Warned::default();
        let asked = request(VIEWS, migration, Amount::Rows(300));
        let outcome = measured_by(&server, &asked, &mut warned).unwrap();
        let failed: Vec<usize> = outcome.failed().map(|(one, _)| one.number).collect();
        assert_eq!(failed, [3], "{release}: {outcome:#?}");
        let warnings = warned.0.join("\n");
        for view in ["totals", "above", "same"] {
            assert_says(&warnings, &[&format!("materialized view public.{view} stays unpopulated")]);
        }
        assert_says(&warnings, &["invalid input syntax for type integer", "--column TABLE.COLUMN=SPEC"]);
        assert!(!warnings.contains("public.counted"), "{release}: {warnings}");
    }
}

/// The rows are made under NOT NULL of the whole table, which DROP NOT NULL then takes from the partition, too.
#[test]
fn a_partition_keeps_its_own_not_null() {
    const SALES: &str = "
        CREATE TABLE sales (at date NOT NULL, v int) PARTITION BY RANGE (at);
        CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
        CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
        ALTER TABLE sales_1 ALTER v SET NOT NULL;
    ";
    for release in RELEASES {
        let found = outcome(&server(release), SALES, "ALTER TABLE sales ALTER v SET NOT NULL");
        let works = &found.statements[0].found.as_ref().unwrap().works;
        let read: Vec<&str> = works.iter().map(|work| work.relation.as_str()).collect();
        assert_eq!(read, ["sales_2"], "{release}");
    }
}

#[test]
fn a_child_keeps_its_own_not_null_and_check() {
    const FAMILY: &str = "
        CREATE TABLE base (id int, v int);
        CREATE TABLE child (CHECK (id > 5000000)) INHERITS (base);
        CREATE TABLE grandchild () INHERITS (child);
        ALTER TABLE grandchild ALTER v SET NOT NULL;
    ";
    for release in RELEASES {
        let found = outcome(&server(release), FAMILY, "ALTER TABLE base ALTER v SET NOT NULL");
        let works = &found.statements[0].found.as_ref().unwrap().works;
        let read: BTreeSet<&str> = works.iter().map(|work| work.relation.as_str()).collect();
        assert_eq!(read, BTreeSet::from(["base", "child"]), "{release}");
    }
}

/// A child keeps NOT NULL as long as its parent has it, so the fill drops the rules of the parent first.
#[test]
fn rows_suit_rules_of_a_parent_whose_child_leaves_it() {
    const FAMILY: &str = "
        CREATE TABLE base (id int, v int);
        CREATE TABLE child () INHERITS (base);
        CREATE TABLE older (at date NOT NULL, v int);
        CREATE TABLE sales (at date NOT NULL, v int) PARTITION BY RANGE (at);
        CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
        ALTER TABLE sales ATTACH PARTITION older FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
    ";
    for release in RELEASES {
        let server = server(release);
        for migration in [
            "ALTER TABLE sales ALTER v SET NOT NULL; ALTER TABLE sales DETACH PARTITION sales_1",
            "ALTER TABLE sales ALTER v SET NOT NULL; ALTER TABLE sales DETACH PARTITION older",
            "ALTER TABLE sales ADD PRIMARY KEY (at, v); ALTER TABLE sales DETACH PARTITION sales_1",
            "ALTER TABLE base ALTER v SET NOT NULL; ALTER TABLE child NO INHERIT base",
            "ALTER TABLE base ADD PRIMARY KEY (id); ALTER TABLE child NO INHERIT base",
        ] {
            assert_suited(&server, FAMILY, migration);
        }
    }
}
