//! Migrations of tables that reference each other by columns of their keys, and may not be NULL.

use std::time::Duration;

use ddl::{Amount, Observer, Plan, Statement};
use testkit::{RELEASES, assert_says};

use crate::support::{left, measured, measured_by, request, server};

/// As in the schema of a chat server: a lock has a mode, and the mode names a lock.
const LOCKS: &str = "
    CREATE TABLE mode (name text NOT NULL, key text NOT NULL, is_write boolean NOT NULL, token text NOT NULL);
    CREATE UNIQUE INDEX ON mode (name, key);
    CREATE UNIQUE INDEX ON mode (name, key, is_write);
    CREATE TABLE locks (name text NOT NULL, key text NOT NULL, is_write boolean NOT NULL, token text NOT NULL,
        FOREIGN KEY (name, key, is_write) REFERENCES mode (name, key, is_write));
    CREATE UNIQUE INDEX ON locks (name, key, token);
    CREATE UNIQUE INDEX ON locks (name, key) WHERE is_write;
    ALTER TABLE mode ADD FOREIGN KEY (name, key, token) REFERENCES locks (name, key, token) DEFERRABLE INITIALLY DEFERRED;
    CREATE FUNCTION upsert() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO mode VALUES (NEW.name, NEW.key, NEW.is_write, NEW.token) ON CONFLICT (name, key) DO NOTHING;
        RETURN NEW;
    END $$;
    CREATE TRIGGER upsert BEFORE INSERT ON locks FOR EACH ROW EXECUTE FUNCTION upsert();
";

/// A CHECK of one table that its partner does not have.
const CHECKED: &str = "
    CREATE TABLE teams (tenant int CHECK (tenant > 5), id int, lead int NOT NULL, PRIMARY KEY (tenant, id));
    CREATE TABLE people (tenant int CHECK (tenant > 4), id int, team int NOT NULL, PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, team) REFERENCES teams);
    ALTER TABLE teams ADD FOREIGN KEY (tenant, lead) REFERENCES people;
";

/// Keeps the rows of the planned tables.
#[derive(Default)]
struct Rows(Vec<(String, u64)>);

impl Observer for Rows {
    fn planned(&mut self, plan: &Plan) {
        self.0.extend(plan.tables.iter().map(|table| (table.name.clone(), table.rows)));
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

#[test]
fn rows_that_reference_each_other_in_pairs_are_measured() {
    let migration = "ALTER TABLE locks ADD note text; CREATE INDEX ON mode (token)";
    for release in RELEASES {
        let server = server(release);
        let mut rows = Rows::default();
        let outcome = measured_by(&server, &request(LOCKS, migration, Amount::Rows(300)), &mut rows).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{failed:#?}");
        rows.0.sort();
        let counts: Vec<u64> = rows.0.iter().map(|(_, rows)| *rows).collect();
        assert_eq!(counts, [300, 300], "{:?}", rows.0);
        assert!(outcome.statements.iter().all(|one| one.largest().is_some()), "{:#?}", outcome.statements);
    }
}

#[test]
fn tables_that_cannot_be_filled_get_remedies_that_ddl_has() {
    let server = server(18);
    let of =
        |schema: &str| measured(&server, &request(schema, "ALTER TABLE teams ADD n int", Amount::Rows(50)));
    let error = of(CHECKED).unwrap_err().to_string();
    assert_says(
        &error,
        &[
            "--schema-file the test's schema: public.",
            "reference each other (foreign keys",
            "teams",
            "people",
        ],
    );
    assert!(!error.contains("--exclude-table"), "{error}");
    // Each of them is a statement that helps.
    let remedies = error.split("Add to the end of the file: ").nth(1).unwrap();
    let remedies: Vec<&str> = remedies.split("; or: ").collect();
    assert_says(remedies[0], &["ALTER TABLE public.", "DROP NOT NULL"]);
    assert_says(remedies[1], &["ALTER TABLE public.", "DROP CONSTRAINT"]);
    for remedy in remedies {
        let outcome = of(&format!("{CHECKED}{remedy};")).unwrap();
        assert!(outcome.statements[0].largest().is_some(), "{remedy}: {:#?}", outcome.statements);
    }
    assert_eq!(left(&server), Vec::<String>::new());
}
