//! Rows that suit a migration, and remedies where no rows do.

use std::time::Duration;

use ddl::{Amount, Observer, Plan, Statement};
use testkit::{RELEASES, assert_says};

use crate::support::{measured, measured_by, of_shop, request, server};

/// The server names the column only for NOT NULL.
#[test]
fn the_remedy_names_the_columns_whose_values_do_not_suit() {
    let schema = "
        CREATE SCHEMA app;
        CREATE TABLE app.events (id int, at date, kind text, note text) PARTITION BY RANGE (at);
        CREATE TABLE app.events_2025 PARTITION OF app.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
        CREATE TABLE orders (id int PRIMARY KEY, state text, note text, at date);
        CREATE TABLE states (state text PRIMARY KEY);
    ";
    let server = server(18);
    // Rows that a migration changes itself do not suit.
    for (change, statement, says) in [
        (
            "UPDATE orders SET note = NULL",
            "ALTER TABLE orders ALTER note SET NOT NULL",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ADD CHECK (note <> 'x')",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ADD CHECK (note <> 'x' OR state = 'y')",
            "with --column 'orders.note=SPEC', or for orders.state",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "CREATE UNIQUE INDEX ON orders (note, upper(note))",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ALTER note TYPE int USING note::int",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET state = 'x'",
            "ALTER TABLE orders ADD FOREIGN KEY (state) REFERENCES states",
            "with --column 'orders.state=reference(states.state)'",
        ),
        (
            "UPDATE app.events SET note = 'x'",
            "ALTER TABLE app.events ADD CHECK (note <> 'x')",
            "with --column 'app.events.note=SPEC'",
        ),
        (
            "UPDATE app.events SET kind = NULL",
            "ALTER TABLE app.events_2025 ALTER kind SET NOT NULL",
            "with --column 'app.events.kind=SPEC'",
        ),
    ] {
        let request = request(schema, &format!("{change}; {statement}"), Amount::Rows(300));
        let outcome = measured(&server, &request).unwrap();
        let (_, failed) = outcome.failed().next().unwrap();
        let remedy = failed.remedy.as_deref().unwrap();
        assert!(remedy.ends_with(says), "{statement}: {remedy}");
    }
}

#[test]
fn an_insert_of_values_that_no_rows_help_gets_no_advice_on_rows() {
    let schema = "CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL, size int CHECK (size > 0));";
    let server = server(18);
    for statement in [
        "INSERT INTO city VALUES (1) ON CONFLICT DO NOTHING",
        "insert into city (id, name, size) values (1, 'x', -1)",
        "INSERT INTO city VALUES ('x'::text::int)",
    ] {
        let outcome = measured(&server, &request(schema, statement, Amount::Rows(300))).unwrap();
        let (_, failed) = outcome.failed().next().unwrap();
        assert_eq!(failed.remedy, None, "{statement}");
    }
}

/// The rows before the migration do not have it, so no values of theirs help.
#[test]
fn a_new_column_that_existing_rows_cannot_have_is_told() {
    for release in RELEASES {
        let server = server(release);
        for (migration, says) in [
            (
                "ALTER TABLE orders ADD a int NOT NULL",
                "fails on every table with rows: give the new column a DEFAULT, or add it without NOT NULL",
            ),
            (
                "ALTER TABLE orders ADD slug text UNIQUE DEFAULT ''",
                "fill it with different values, then add the constraint",
            ),
            (
                "ALTER TABLE orders ADD c int DEFAULT 0 CHECK (c > 0)",
                "a DEFAULT that satisfies the constraint",
            ),
            (
                "ALTER TABLE orders ADD r int DEFAULT -1 REFERENCES customers",
                "a value that the other table lacks: give the new column another DEFAULT",
            ),
            (
                "ALTER TABLE orders ADD a int; ALTER TABLE orders ALTER a SET NOT NULL",
                "the migration itself adds a, for which --column gives no values: give it a DEFAULT, or fill it",
            ),
        ] {
            let outcome = measured(&server, &of_shop(migration)).unwrap();
            let (_, failed) = outcome.failed().next().unwrap_or_else(|| panic!("{release}: {migration}"));
            let remedy = failed.remedy.as_deref().unwrap();
            assert_says(remedy, &[says]);
            assert!(!remedy.contains("=SPEC"), "{release}: {migration}: {remedy}");
        }
    }
}

#[test]
fn tables_that_the_migration_uses_get_rows_that_suit_it() {
    let server = server(18);
    let schema = "
        CREATE TABLE regions (id int PRIMARY KEY);
        CREATE TABLE customers (id int PRIMARY KEY, region_id int NOT NULL REFERENCES regions, email text, age text, code varchar(40));
        CREATE TABLE orders (id int PRIMARY KEY, customer_id int, state text);
        CREATE TABLE lines (order_id int NOT NULL REFERENCES orders ON DELETE CASCADE, n int);
        CREATE TABLE audit (id int, at timestamptz);
        CREATE TABLE xml_only (x xml NOT NULL CHECK (x IS DOCUMENT AND x::text ~ 'never'));
        CREATE TYPE mood AS ENUM ('good', 'bad');
        CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE audit SET at = now(); RETURN OLD; END';
        CREATE TRIGGER noted AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION noted();
    ";
    let migration = "
        ALTER TABLE customers ALTER email SET NOT NULL;
        ALTER TABLE customers ADD UNIQUE (email);
        ALTER TABLE customers ADD CHECK (length(code) > 0);
        ALTER TABLE customers ALTER age TYPE int USING age::int, ALTER code TYPE varchar(8);
        DELETE FROM orders WHERE id < 10;
        SET search_path = pg_catalog;
        ALTER TABLE public.customers ADD CONSTRAINT made CHECK (age >= 0);
    ";
    let outcome = measured(&server, &request(schema, migration, Amount::Rows(500))).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let rows = |number: usize| outcome.statements[number - 1].largest().unwrap().rows;
    assert_eq!((rows(1), rows(2)), (500, 500));
    // Deleting an order also deletes its lines; the trigger's table was found too late.
    assert!(
        outcome.statements[4].tables.contains(&"public.lines".to_owned()),
        "{:?}",
        outcome.statements[4].tables
    );
    assert_eq!(outcome.unfilled, [("public.audit".to_owned(), 5)]);
}

/// A loop over rows comes to its DELETE only if there are some, so that no lock tells of it, nor of the tables to which it cascades.
#[test]
fn tables_that_code_writes_only_with_rows_are_filled() {
    let body = "DECLARE one record; BEGIN FOR one IN SELECT id FROM queue LOOP DELETE FROM accounts WHERE id = one.id; END LOOP; END";
    let schema = format!(
        "CREATE TABLE queue (id int PRIMARY KEY);
        CREATE TABLE accounts (id int PRIMARY KEY);
        CREATE TABLE orders (id int PRIMARY KEY, account_id int NOT NULL REFERENCES accounts ON DELETE CASCADE);
        CREATE TABLE lines (order_id int NOT NULL REFERENCES orders ON DELETE CASCADE);
        CREATE TABLE others (id int);
        CREATE FUNCTION purge() RETURNS void LANGUAGE plpgsql AS '{body}';"
    );
    for release in RELEASES {
        let server = server(release);
        for migration in [format!("DO $$ {body} $$"), "SELECT purge()".to_owned()] {
            let outcome = measured(&server, &request(&schema, &migration, Amount::Rows(200))).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {failed:#?}");
            assert_eq!(outcome.unfilled, [], "{release}: {migration}");
            let tables = &outcome.statements[0].tables;
            for table in ["public.accounts", "public.orders", "public.lines"] {
                assert!(tables.iter().any(|one| one == table), "{release}: {migration}: {tables:?}");
            }
            assert!(!tables.iter().any(|one| one == "public.others"), "{release}: {migration}: {tables:?}");
        }
    }
}

/// Rules of columns that the migration renames, of domains, and with EXCLUDE.
#[test]
fn rows_suit_rules_of_renamed_columns_and_of_domains() {
    struct Suited(Vec<String>);
    impl Observer for Suited {
        fn planned(&mut self, plan: &Plan) {
            self.0.clone_from(&plan.suited);
        }
        fn stage(&mut self, _: &str) {}
        fn left(&mut self, _: Duration) {}
        fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    }
    let schema = "
        CREATE DOMAIN grade AS int;
        CREATE TABLE orders (id int PRIMARY KEY, amount int, note text, grade grade, code int, CHECK (amount < 1000000));";
    let migration = "
        ALTER TABLE orders RENAME amount TO total;
        ALTER TABLE orders ADD CHECK (total > 0);
        ALTER TABLE orders RENAME note TO remark;
        ALTER TABLE orders ALTER remark SET NOT NULL;
        ALTER TABLE orders ADD UNIQUE (remark);
        ALTER DOMAIN grade ADD CHECK (VALUE BETWEEN 1 AND 5);
        ALTER DOMAIN grade SET NOT NULL;
        ALTER TABLE orders ADD EXCLUDE USING btree (code WITH =);";
    for release in RELEASES {
        let server = server(release);
        let mut suited = Suited(Vec::new());
        let request = request(schema, migration, Amount::Rows(500));
        let outcome = measured_by(&server, &request, &mut suited).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        // Not the rule that the table had before.
        assert_eq!(suited.0.len(), 6, "{release}: {:#?}", suited.0);
        for part in
            ["(total > 0)", "remark SET NOT NULL", "UNIQUE (remark)", "ALTER DOMAIN public.grade", "EXCLUDE"]
        {
            assert!(suited.0.iter().any(|one| one.contains(part)), "{release}: {part}: {:#?}", suited.0);
        }
    }

    // A remedy has the name that --column takes.
    let migration = "
        UPDATE orders SET note = NULL;
        ALTER TABLE orders RENAME note TO remark;
        ALTER TABLE orders ALTER remark SET NOT NULL;";
    let outcome = measured(&server(18), &request(schema, migration, Amount::Rows(300))).unwrap();
    let (_, failed) = outcome.failed().next().unwrap();
    assert_says(failed.remedy.as_deref().unwrap(), &["with --column 'orders.note=SPEC'"]);
}
