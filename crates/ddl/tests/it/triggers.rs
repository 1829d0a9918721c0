//! Triggers of the schema: they run in the migration, not while the tables are filled. Those of an original do not run at all.

use ddl::find::WorkKind;
use ddl::{Amount, Outcome, Request, Schema, better_way};
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Warned, measured, measured_by, request, server};

const SCHEMA: &str = "
    CREATE TABLE post (id int PRIMARY KEY, title text);
    CREATE TABLE post_agg (post_id int PRIMARY KEY REFERENCES post, comments bigint NOT NULL DEFAULT 0);
    CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO post_agg (post_id) VALUES (NEW.id); RETURN NULL; END';
    CREATE TRIGGER \"Is counted\" AFTER INSERT ON post FOR EACH ROW EXECUTE FUNCTION counted();
    ALTER TABLE post ENABLE ALWAYS TRIGGER \"Is counted\";
    CREATE TABLE parted (id int NOT NULL, at date NOT NULL) PARTITION BY RANGE (at);
    CREATE TABLE parted_2025 PARTITION OF parted FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE noted (id int);
    CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO noted VALUES (NEW.id); RETURN NULL; END';
    CREATE TRIGGER noted AFTER INSERT ON parted FOR EACH ROW EXECUTE FUNCTION noted();
    CREATE TRIGGER off BEFORE INSERT ON noted FOR EACH ROW EXECUTE FUNCTION noted();
    ALTER TABLE noted DISABLE TRIGGER off;
";

/// Fails if a trigger is not as the schema has it.
const MIGRATION: &str = "
    ALTER TABLE post_agg ADD COLUMN y int;
    ALTER TABLE parted ADD COLUMN y int;
    ALTER TABLE noted ADD COLUMN y int;
    INSERT INTO post VALUES (-1, 'x');
    INSERT INTO parted VALUES (1, '2025-02-01');
    DO $$ BEGIN
        IF (SELECT string_agg(tgname::text || tgenabled::text, ' ' ORDER BY tgname, tgrelid) FROM pg_trigger
             WHERE tgname IN ('Is counted', 'noted', 'off')) COLLATE \"C\" <> 'Is countedA notedO notedO offD'
        THEN RAISE 'a trigger has changed'; END IF;
    END $$;";

/// The tables whose rows a statement changed.
fn written(outcome: &Outcome, number: usize) -> Vec<&str> {
    let works = outcome.statements[number - 1].found.iter().flat_map(|found| &found.works);
    let mut written: Vec<&str> =
        works.filter(|work| work.kind == WorkKind::Rows).map(|work| work.relation.as_str()).collect();
    written.sort_unstable();
    written
}

#[test]
fn triggers_run_in_the_migration_and_not_in_the_fill() {
    for release in RELEASES {
        let server = server(release);
        let outcome = measured(&server, &request(SCHEMA, MIGRATION, Amount::Rows(100))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        for number in [1, 2, 3] {
            assert_eq!(outcome.statements[number - 1].largest().unwrap().rows, 100, "{release}: {number}");
        }
        assert_eq!(written(&outcome, 4), ["post", "post_agg"], "{release}");
        assert_eq!(written(&outcome, 5), ["noted", "parted_2025"], "{release}");
    }
}

/// Their names tell with which statements the times are too short.
#[test]
fn triggers_of_an_original_that_would_fire_are_named() {
    let on_original = "
        INSERT INTO parted VALUES (1, '2025-02-01');
        UPDATE post SET title = 'x';
        ALTER TABLE post ADD COLUMN y int;
        BEGIN;
        INSERT INTO noted VALUES (1);
        INSERT INTO post VALUES (-1, 'x');
        COMMIT;
        DROP TRIGGER IF EXISTS \"Is counted\" ON post;
        INSERT INTO post VALUES (-2, 'x');";
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(SCHEMA).await.unwrap();
            Schema::of_database(&connection, "blog").await.unwrap()
        });
        let warnings = |schema: &Schema| {
            let request = request("", on_original, Amount::Rows(100));
            let mut warned = Warned::default();
            let request = Request { schema: schema.clone(), ..request };
            let outcome = measured_by(&server, &request, &mut warned).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {failed:#?}");
            warned.0.into_iter().filter(|warning| warning.contains("may fire")).collect::<Vec<_>>()
        };
        let found = warnings(&schema);
        let [warning] = &found[..] else { panic!("{release}: {found:?}") };
        let named = "in database blog, triggers that the copy lacks may fire for each row of statement 1 (noted on parted), \
                     statement 6 (\"Is counted\" on post): there";
        assert_says(warning, &[named, "--schema-file"]);
        // With a file, the copy has them.
        assert!(warnings(&Schema::of_script(SCHEMA, "blog.sql").unwrap()).is_empty(), "{release}");
    }
}

/// A foreign key fires the triggers of its table: those of the event that it causes there, and only if the statement changes what it references.
#[test]
fn triggers_of_an_original_that_foreign_keys_would_fire_are_named() {
    let tables = "
        CREATE TABLE accounts (id int PRIMARY KEY, name text);
        CREATE TABLE orders (id int PRIMARY KEY, account_id int REFERENCES accounts ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE lines (id int PRIMARY KEY, order_id int REFERENCES orders ON DELETE SET NULL);
        CREATE TABLE others (id int PRIMARY KEY, account_id int REFERENCES accounts);
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER changed AFTER UPDATE ON lines FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER gone AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER moved AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER other AFTER DELETE OR UPDATE ON others FOR EACH ROW EXECUTE FUNCTION nothing();";
    let migration = "
        UPDATE accounts SET name = 'x';
        DELETE FROM lines WHERE id < 0;
        DELETE FROM accounts WHERE id < 3;
        UPDATE accounts SET id = id + 100000 WHERE id > 190;
        DO $$ DECLARE one record; BEGIN FOR one IN SELECT id FROM others LOOP DELETE FROM orders WHERE id = one.id; END LOOP; END $$;";
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(tables).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let mut warned = Warned::default();
        let request = Request { schema, ..request("", migration, Amount::Rows(100)) };
        measured_by(&server, &request, &mut warned).unwrap();
        let found: Vec<_> = warned.0.iter().filter(|warning| warning.contains("may fire")).collect();
        let [warning] = &found[..] else { panic!("{release}: {found:?}") };
        let named = "for each row of statement 3 (changed on lines, gone on orders), statement 4 (moved on orders), \
                     statement 5 (changed on lines, gone on orders): there";
        assert_says(warning, &[named]);
    }
}

/// The statement rewrites the table, and fires none; the batches of its better way do.
#[test]
fn a_better_way_names_the_triggers_that_its_updates_fire() {
    let tables = "CREATE TABLE orders (id int PRIMARY KEY, n int);
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER made AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER once AFTER UPDATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION nothing();";
    let migration = "ALTER TABLE orders ADD COLUMN tag uuid DEFAULT md5(random()::text)::uuid";
    for release in RELEASES {
        let server = server(release);
        let way = |request: &Request| {
            let outcome = measured(&server, request).unwrap();
            let one = &outcome.statements[0];
            better_way(one.found.as_ref().unwrap(), &one.statement).unwrap()
        };
        let of_schema = way(&request(tables, migration, Amount::Rows(100)));
        assert_says(&of_schema, &["for each row (touch on orders): if they must not fire"]);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(tables).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let of_original = way(&Request { schema, ..request("", migration, Amount::Rows(100)) });
        assert_says(&of_original, &["for each row (touch on orders), which the copy lacks"]);
    }
}

/// A statement may remove rows of one table, and insert them into another.
#[test]
fn triggers_of_an_original_are_named_by_the_event_of_their_own_table() {
    let on = |name: &str, event: &str, table: &str| {
        format!("CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION nothing();")
    };
    let triggers = [
        on("job_gone", "DELETE", "jobs"),
        on("job_made", "INSERT", "jobs"),
        on("done_gone", "DELETE", "done"),
        on("done_made", "INSERT", "done"),
    ];
    let tables = format!(
        "CREATE TABLE jobs (id int PRIMARY KEY, n int);
        CREATE TABLE done (id int PRIMARY KEY, n int);
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        {}",
        triggers.concat()
    );
    let migration = "WITH gone AS (DELETE FROM jobs WHERE id < 50 RETURNING *) INSERT INTO done SELECT id + 1000, n FROM gone;";
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(&tables).await.unwrap();
            Schema::of_database(&connection, "queue").await.unwrap()
        });
        let mut warned = Warned::default();
        let request = Request { schema, ..request("", migration, Amount::Rows(100)) };
        measured_by(&server, &request, &mut warned).unwrap();
        let found: Vec<_> = warned.0.iter().filter(|warning| warning.contains("may fire")).collect();
        let [warning] = &found[..] else { panic!("{release}: {found:?}") };
        assert_says(warning, &["job_gone on jobs", "done_made on done"]);
        assert!(!warning.contains("job_made") && !warning.contains("done_gone"), "{release}: {warning}");
    }
}
