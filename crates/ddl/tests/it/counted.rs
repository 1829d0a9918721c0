//! The statement of a transaction for which a wait counts: the one whose locks block the session.

use ddl::{Amount, Outcome, Probes, Probing, Request, Stall, Wait};
use testkit::{RELEASES, Server};

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE audit_log (id int PRIMARY KEY, row_id int);
    CREATE TABLE bookings (id int PRIMARY KEY, n int);
    CREATE TABLE parent (id int PRIMARY KEY, n int);
    CREATE TABLE child (id int PRIMARY KEY, parent_id int);
    CREATE TABLE noted (id int PRIMARY KEY, n int);
    CREATE TABLE notes (noted_id int);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO notes VALUES (NEW.id); RETURN NEW; END';
    CREATE TRIGGER note AFTER UPDATE ON noted FOR EACH ROW EXECUTE FUNCTION note();
";

/// Blocks the writers of one table. The readers and writers of other tables that are due at its end wait for the next statement.
const FIRST: &str = "
    BEGIN;
    DO $$ BEGIN LOCK TABLE audit_log IN SHARE MODE; PERFORM pg_sleep(0.2); END $$;";

fn with_probes(server: &Server, migration: &str, probes: Probes) -> Outcome {
    let request = Request { probes: Some(probes), ..request(SCHEMA, migration, Amount::Rows(500)) };
    let outcome = measured(server, &request).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    outcome
}

fn stall(outcome: &Outcome, number: usize) -> &Stall {
    outcome.statements[number - 1].stall.as_ref().unwrap()
}

/// Seconds of a wait for locks; 0 without one.
fn lock(wait: Option<&Wait>) -> f64 {
    wait.map_or(0.0, |wait| wait.lock)
}

#[test]
fn a_wait_counts_for_the_statement_that_locks_the_table() {
    let migration = format!(
        "{FIRST}
        CREATE INDEX audit_row ON audit_log (row_id);
        ALTER TABLE bookings ADD COLUMN span tsrange;
        SELECT pg_sleep(1);
        COMMIT;"
    );
    for release in RELEASES {
        let outcome = with_probes(&server(release), &migration, Probes::default());
        let [first, index, column, sleep] = [2, 3, 4, 5].map(|number| stall(&outcome, number));
        // SHARE blocks no reader.
        for (other, number) in [(first, 2), (index, 3), (sleep, 5)] {
            assert!(lock(other.read.as_ref()) < 0.5, "{release}: {number}: {other:?}");
        }
        let (read, write) = (&column.read, &column.write);
        assert!(lock(read.as_ref()) > 0.5 && lock(write.as_ref()) > 0.5, "{release}: {column:?}");
        for wait in [read, write].into_iter().flatten() {
            assert_eq!(wait.name, "public.bookings", "{release}: {column:?}");
        }
        // The writer of the other table waits from the first lock on.
        let writer = first.write.as_ref().unwrap();
        assert!(
            writer.lock > lock(write.as_ref()) && writer.name == "public.audit_log",
            "{release}: {first:?}"
        );
        // All waits during the sleep are for the locks of earlier statements.
        assert_eq!(
            (sleep.counts_for, lock(sleep.write.as_ref()) < 0.5),
            (Some(2), true),
            "{release}: {sleep:?}"
        );
    }
}

/// The user's writer, on the second table of a foreign key.
#[test]
fn a_wait_of_the_user_s_statement_counts_by_the_table_that_the_server_names() {
    let migration = format!(
        "{FIRST}
        ALTER TABLE child ADD FOREIGN KEY (parent_id) REFERENCES parent;
        SELECT pg_sleep(1);
        COMMIT;"
    );
    for release in RELEASES {
        let write = Probing::Statement("UPDATE parent SET n = n WHERE id = 7".to_owned());
        let probes = Probes { write: Some(write), ..Probes::default() };
        let outcome = with_probes(&server(release), &migration, probes);
        let [first, key, sleep] = [2, 3, 4].map(|number| stall(&outcome, number));
        assert!(lock(key.write.as_ref()) > 0.5, "{release}: {key:?}");
        assert!(
            lock(first.write.as_ref()) < 0.5 && lock(sleep.write.as_ref()) < 0.5,
            "{release}: {first:?} {sleep:?}"
        );
        assert!([first, key, sleep].iter().all(|one| lock(one.read.as_ref()) < 0.5), "{release}: {key:?}");
        assert_eq!(sleep.counts_for, Some(3), "{release}: {sleep:?}");
    }
}

/// The table that a trigger writes has no reader and no writer of its own.
#[test]
fn a_wait_of_a_trigger_counts_for_the_statement_that_locks_its_table() {
    let migration = format!(
        "{FIRST}
        COMMENT ON TABLE noted IS 'x';
        ALTER TABLE notes ADD COLUMN a int;
        SELECT pg_sleep(1);
        COMMIT;"
    );
    for release in RELEASES {
        let outcome = with_probes(&server(release), &migration, Probes::default());
        let [comment, column, sleep] = [3, 4, 5].map(|number| stall(&outcome, number));
        let write = column.write.as_ref().unwrap();
        assert!(write.lock > 0.5 && write.name == "public.noted", "{release}: {column:?}");
        assert!(
            lock(comment.write.as_ref()) < 0.5 && lock(sleep.write.as_ref()) < 0.5,
            "{release}: {comment:?} {sleep:?}"
        );
    }
}

#[test]
fn a_wait_for_a_row_counts_for_the_statement_that_wrote_it() {
    let migration = format!(
        "{FIRST}
        UPDATE bookings SET n = n;
        SELECT pg_sleep(1);
        ALTER TABLE parent ADD COLUMN a int;
        COMMIT;"
    );
    for release in RELEASES {
        let outcome = with_probes(&server(release), &migration, Probes::default());
        let [update, sleep, column] = [3, 4, 5].map(|number| stall(&outcome, number));
        let write = update.write.as_ref().unwrap();
        assert!(write.lock > 0.5 && write.name == "public.bookings", "{release}: {update:?}");
        assert!(
            lock(sleep.write.as_ref()) < 0.5 && lock(column.write.as_ref()) < 0.5,
            "{release}: {sleep:?} {column:?}"
        );
    }
}
