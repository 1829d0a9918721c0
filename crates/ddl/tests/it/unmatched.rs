//! Writes whose conditions no generated row satisfies.

use ddl::{Amount, Outcome, Request, StatementOutcome, Unmatched};
use testkit::RELEASES;

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE posts (id int PRIMARY KEY, root text, n int);
    CREATE INDEX posts_root ON posts (root);
    CREATE TABLE users (id int PRIMARY KEY, theme text);
    CREATE TABLE settings (id int PRIMARY KEY, v text);
    CREATE TABLE parted (k int NOT NULL, v text) PARTITION BY LIST (k);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
    CREATE VIEW shown AS SELECT id, v FROM settings;
    CREATE FUNCTION migrate() RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''UPDATE users SET theme = NULL WHERE id < 0''; END';
    CREATE PROCEDURE batches() LANGUAGE plpgsql AS 'BEGIN UPDATE users SET theme = NULL WHERE id < 0; COMMIT; END';
";

/// `INSERT INTO`, or the name with `TABLE` if the advice names none, of each statement.
fn unmatched(outcome: &Outcome) -> Vec<Vec<String>> {
    let shown = |one: &Unmatched| {
        let words = if one.is_insert { "INSERT INTO " } else { "" };
        format!("{words}{}{}", one.table, if one.is_plain { "" } else { " TABLE" })
    };
    let of = |one: &StatementOutcome| {
        one.found.iter().flat_map(|found| &found.unmatched).map(shown).collect::<Vec<_>>()
    };
    outcome.statements.iter().map(of).collect()
}

fn assert_found(release: u16, cases: &[(&str, &[&str])]) {
    assert_found_in(release, SCHEMA, cases);
}

fn assert_found_in(release: u16, schema: &str, cases: &[(&str, &[&str])]) {
    let migration: Vec<&str> = cases.iter().map(|(sql, _)| *sql).collect();
    let outcome =
        measured(&server(release), &request(schema, &migration.join(";\n"), Amount::Rows(200))).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{release}: {failed:#?}");
    for ((sql, wanted), (found, one)) in cases.iter().zip(unmatched(&outcome).iter().zip(&outcome.statements))
    {
        assert_eq!(found, wanted, "{release}: {sql}");
        assert_eq!(one.untimed().is_some(), !wanted.is_empty(), "{release}: {sql}");
        assert!(one.forecast.is_none() || wanted.is_empty(), "{release}: {sql}");
    }
}

#[test]
fn a_write_that_finds_no_row_is_told() {
    for release in RELEASES {
        assert_found(
            release,
            &[
                ("UPDATE posts SET n = 1 WHERE root = ''", &["posts"]),
                (
                    "DO $$ BEGIN IF NOT EXISTS (SELECT FROM posts WHERE id > 0) THEN UPDATE posts SET n = 1 WHERE id > 0; END IF; END $$",
                    &["posts"],
                ),
                (
                    "DO $$ BEGIN IF EXISTS (SELECT FROM posts) THEN UPDATE posts SET n = 1; END IF; END $$",
                    &[],
                ),
                (
                    "DELETE FROM posts USING users WHERE posts.id = users.id AND users.id < 0",
                    &["posts TABLE"],
                ),
                (
                    "INSERT INTO settings SELECT id, theme FROM users WHERE id < 0",
                    &["INSERT INTO settings TABLE"],
                ),
                (
                    "WITH gone AS (DELETE FROM posts WHERE id < 0 RETURNING id) UPDATE users SET theme = 'x' WHERE id > 0",
                    &["posts"],
                ),
                (
                    "DO $$ BEGIN UPDATE users SET theme = NULL WHERE id < 0; ALTER TABLE users ADD a int; END $$",
                    &["users"],
                ),
                ("SELECT migrate()", &["users TABLE"]),
                ("CALL batches()", &["users"]),
                ("UPDATE shown SET v = 'x' WHERE id < 0", &["settings TABLE"]),
                ("UPDATE parted SET v = 'x' WHERE v = ''", &["parted"]),
                // The statement before has the lock already.
                ("BEGIN", &[]),
                ("UPDATE posts SET n = 2", &[]),
                ("UPDATE posts SET n = 1 WHERE root = ''", &["posts"]),
                ("COMMIT", &[]),
                // It has rows by then.
                ("CREATE TABLE made AS SELECT * FROM users", &[]),
                ("DELETE FROM made WHERE id < 0", &["made"]),
            ],
        );
    }
}

#[test]
fn other_statements_have_changed_all_that_they_would() {
    for release in RELEASES {
        assert_found(
            release,
            &[
                ("UPDATE posts SET n = 1 WHERE id = 7", &[]),
                // It changes nothing anywhere.
                ("EXPLAIN UPDATE posts SET n = 1 WHERE root = ''", &[]),
                // In one partition.
                ("UPDATE parted SET v = 'x' WHERE k + 0 = 2", &[]),
                ("INSERT INTO settings VALUES (-1, 'x') ON CONFLICT DO NOTHING", &[]),
                ("INSERT INTO settings VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET v = 'x'", &[]),
                (
                    "INSERT INTO settings SELECT -2, 'x' WHERE NOT EXISTS (SELECT FROM settings WHERE id = -2)",
                    &[],
                ),
                ("INSERT INTO settings SELECT 1, 'x' WHERE false", &[]),
                ("SELECT FROM posts WHERE id = 7 FOR UPDATE", &[]),
                ("ALTER TABLE posts ADD CHECK (n IS NOT NULL OR n IS NULL)", &[]),
                ("CREATE TABLE made (id int)", &[]),
                // The original has the row by then, too.
                ("CREATE TABLE seeds (id int PRIMARY KEY)", &[]),
                ("INSERT INTO seeds VALUES (1)", &[]),
                ("INSERT INTO seeds VALUES (1) ON CONFLICT DO NOTHING", &[]),
                // Nobody has rows there.
                ("UPDATE made SET id = 1", &[]),
                ("CREATE TEMP TABLE own AS SELECT 1 AS a", &[]),
                ("DELETE FROM own WHERE a = 2", &[]),
                ("BEGIN", &[]),
                ("LOCK TABLE users IN ROW EXCLUSIVE MODE", &[]),
                ("COMMIT", &[]),
            ],
        );
    }
}

/// A table whose rows the schema inserts gets no generated rows.
#[test]
fn rows_that_the_schema_inserts_are_named() {
    let schema = "CREATE TABLE settings (id int PRIMARY KEY, key text, value text); \
                  CREATE TABLE users (id int PRIMARY KEY, theme text);";
    let inserted =
        format!("{schema} INSERT INTO settings VALUES (1, 'app.lang', 'en'), (2, 'app.logo', '');");
    let update = "UPDATE settings SET value = '1' WHERE key = 'app.new'";
    let insert = "INSERT INTO users SELECT -id, value FROM settings WHERE key = 'app.new'";
    let of_users = "UPDATE users SET theme = 'x' WHERE id < 0";
    let server = server(18);
    let migration = format!("{update}; {insert}; {of_users}");
    let outcome = measured(&server, &request(&inserted, &migration, Amount::Rows(200))).unwrap();
    let reasons: Vec<String> = outcome.statements.iter().map(|one| one.untimed().unwrap().reason()).collect();
    let none = "because no row that the schema inserts into settings satisfies its conditions";
    let wanted = [
        format!("it changes no row of settings, {none}"),
        format!("it inserts no row into users, {none}"),
        "it changes no row of users, because no generated row satisfies its conditions".to_owned(),
    ];
    assert_eq!(reasons, wanted);
    let remedy = outcome.statements[0].untimed().unwrap().remedy();
    assert!(remedy.ends_with("give values that do with --column 'settings.COLUMN=SPEC'"), "{remedy}");
    // Both parts of the remedy work.
    let with_row = format!("{inserted} INSERT INTO settings VALUES (3, 'app.new', '2');");
    let with_row = request(&with_row, update, Amount::Rows(200));
    let columns = vec!["settings.key=list(app.new,app.lang)".to_owned()];
    let generated = Request { columns, ..request(schema, update, Amount::Rows(200)) };
    for request in [with_row, generated] {
        let outcome = measured(&server, &request).unwrap();
        assert!(unmatched(&outcome).iter().all(Vec::is_empty), "{outcome:#?}");
    }
}

#[test]
fn rows_that_conflict_with_those_of_the_copy_are_told() {
    let conflict = ", because each of its rows conflicts with an existing row";
    let conditions = ", because no generated row satisfies its conditions";
    let cases = [
        ("INSERT INTO users VALUES (1, 'x'), (2, 'y') ON CONFLICT DO NOTHING", Some(conflict)),
        (
            "INSERT INTO users VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET theme = 'x' WHERE users.id < 0",
            Some(conflict),
        ),
        ("INSERT INTO users SELECT id, theme FROM users ON CONFLICT DO NOTHING", Some(conflict)),
        ("DO $$ BEGIN INSERT INTO users VALUES (1, 'x') ON CONFLICT DO NOTHING; END $$", Some(conflict)),
        (
            "INSERT INTO parted SELECT -id, '' FROM users WHERE id < 0 ON CONFLICT DO NOTHING",
            Some(conditions),
        ),
        (
            "INSERT INTO users SELECT id, root FROM posts WHERE root = '' ON CONFLICT DO NOTHING",
            Some(conditions),
        ),
        (
            "INSERT INTO users SELECT 1, 'x' WHERE NOT EXISTS (SELECT FROM users WHERE id = 1)",
            Some(conditions),
        ),
        ("INSERT INTO users VALUES (1, 'x'), (-1, 'y') ON CONFLICT DO NOTHING", None),
    ];
    let migration = cases.map(|(sql, _)| sql).join(";\n");
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SCHEMA, &migration, Amount::Rows(200))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        for ((sql, wanted), one) in cases.iter().zip(&outcome.statements) {
            let reason = one.untimed().map(|untimed| untimed.reason());
            let is_wanted = match (wanted, &reason) {
                (Some(end), Some(reason)) => reason.ends_with(end),
                (wanted, reason) => wanted.is_none() && reason.is_none(),
            };
            assert!(is_wanted, "{release}: {sql}: {reason:?}");
        }
    }
}

/// Their own text tells the writes of functions: locks of the transaction, and other writes, do not hide them.
#[test]
fn the_writes_of_functions_are_found() {
    let functions = "
        CREATE FUNCTION misses() RETURNS void LANGUAGE sql AS 'UPDATE users SET theme = NULL WHERE id < 0';
        CREATE FUNCTION branch() RETURNS void LANGUAGE plpgsql AS
            'BEGIN IF EXISTS (SELECT FROM users WHERE id < 0) THEN UPDATE users SET theme = NULL; END IF; END';
        CREATE SCHEMA app;
        CREATE FUNCTION app.several() RETURNS int LANGUAGE plpgsql AS
            'BEGIN PERFORM misses(); UPDATE posts SET n = 1; RETURN 1; END';
        CREATE FUNCTION hits() RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE users SET theme = ''x''; END';
        CREATE FUNCTION seed() RETURNS void LANGUAGE sql AS
            'INSERT INTO settings VALUES (1, ''x'') ON CONFLICT DO NOTHING';
        CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN UPDATE users SET theme = NULL WHERE id < 0; RETURN NEW; END';
        CREATE PROCEDURE mixed() LANGUAGE plpgsql AS
            'BEGIN UPDATE posts SET n = 2; UPDATE users SET theme = NULL WHERE id < 0; END';
        CREATE TRIGGER posts_audit AFTER UPDATE ON posts FOR EACH STATEMENT EXECUTE FUNCTION audit();
    ";
    let cases: [(&str, &[&str]); 15] = [
        // Beside other writes.
        ("DO $$ BEGIN UPDATE posts SET n = 1; PERFORM misses(); END $$", &["users"]),
        ("SELECT app.several()", &["users"]),
        ("CALL mixed()", &["users"]),
        ("WITH done AS (UPDATE posts SET n = 3 RETURNING id) SELECT misses() FROM done LIMIT 1", &["users"]),
        ("SELECT branch()", &["users"]),
        ("SELECT seed()", &["INSERT INTO settings TABLE"]),
        // The transaction has the lock already.
        ("BEGIN", &[]),
        ("UPDATE users SET theme = 'y'", &[]),
        ("SELECT misses()", &["users"]),
        ("SELECT public.misses()", &["users"]),
        ("SELECT count(*) FROM users", &[]),
        ("COMMIT", &[]),
        ("SELECT hits()", &[]),
        // A trigger.
        ("UPDATE posts SET n = 4", &[]),
        ("DO $$ BEGIN UPDATE posts SET n = 5; PERFORM hits(); END $$", &[]),
    ];
    for release in RELEASES {
        assert_found_in(release, &format!("{SCHEMA}{functions}"), &cases);
    }
}

/// Their bodies have no text of their own.
#[test]
fn the_writes_of_functions_in_standard_sql_are_found() {
    let function =
        "CREATE FUNCTION misses() RETURNS void BEGIN ATOMIC UPDATE users SET theme = NULL WHERE id < 0; END;";
    let cases: [(&str, &[&str]); 1] =
        [("DO $$ BEGIN UPDATE posts SET n = 1; PERFORM misses(); END $$", &["users"])];
    for release in RELEASES.into_iter().filter(|release| *release >= 14) {
        assert_found_in(release, &format!("{SCHEMA}{function}"), &cases);
    }
}

/// A DELETE without conditions removes all rows of the original, too; another one may leave some there.
#[test]
fn rows_that_earlier_statements_have_removed_are_told() {
    for release in RELEASES {
        let migration = "
            DELETE FROM posts WHERE n IS NULL OR n IS NOT NULL;
            UPDATE posts SET n = 1 WHERE id > 0;
            BEGIN;
            DELETE FROM users WHERE id IS NOT NULL;
            INSERT INTO settings SELECT -id, theme FROM users;
            ROLLBACK;
            UPDATE users SET theme = 'x' WHERE id < 0;
            DELETE FROM users;
            UPDATE users SET theme = 'x';
            TRUNCATE settings;
            UPDATE settings SET v = 'x';";
        let outcome = measured(&server(release), &request(SCHEMA, migration, Amount::Rows(200))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let reasons: Vec<_> =
            outcome.statements.iter().filter_map(|one| Some((one.number, one.untimed()?.reason()))).collect();
        let wanted = [
            (2, "it changes no row of posts, because earlier statements have removed all rows of posts"),
            (5, "it inserts no row into settings, because earlier statements have removed all rows of users"),
            (7, "it changes no row of users, because no generated row satisfies its conditions"),
        ];
        assert_eq!(reasons, wanted.map(|(number, reason)| (number, reason.to_owned())), "{release}");
    }
}

/// The time of an index is that of the rows which the DELETE before it leaves.
#[test]
fn a_table_of_which_most_rows_were_removed_is_told() {
    for release in RELEASES {
        let migration = "
            DELETE FROM posts WHERE id NOT IN (SELECT id FROM posts ORDER BY id LIMIT 20);
            CREATE INDEX ON posts (n);
            DELETE FROM users WHERE id IN (SELECT id FROM users ORDER BY id LIMIT 20);
            CREATE INDEX ON users (theme);
            DELETE FROM posts;
            CREATE INDEX ON posts (n, root);
            DELETE FROM parted_1;
            CREATE INDEX ON parted (v);";
        let outcome = measured(&server(release), &request(SCHEMA, migration, Amount::Rows(200))).unwrap();
        let thinned: Vec<_> = outcome
            .statements
            .iter()
            .flat_map(|one| one.thinned.iter().map(|of| (one.number, of.table.as_str(), of.by, of.percent)))
            .collect();
        assert_eq!(thinned, [(2, "posts", 1, 90), (5, "posts", 1, 90)], "{release}");
    }
}

#[test]
fn values_that_satisfy_the_conditions_are_measured() {
    let server = server(18);
    let columns = vec!["posts.root=list(x,a,b)".to_owned()];
    let request = request(SCHEMA, "UPDATE posts SET n = 1 WHERE root = 'x'", Amount::Rows(200));
    let outcome = measured(&server, &Request { columns, ..request }).unwrap();
    assert!(unmatched(&outcome).iter().all(Vec::is_empty), "{outcome:#?}");
}
