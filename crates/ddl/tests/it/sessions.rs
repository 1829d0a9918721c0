//! Settings of sessions that decide on the work of a statement, and on its text; scans that end early.

use ddl::find::{Class, WorkKind};
use ddl::{Amount, Outcome, Request, Schema, Script};
use testkit::{RELEASES, block_on};

use crate::support::{Warned, measured, measured_by, request, server};

const EVENTS: &str = "CREATE TABLE events (id int PRIMARY KEY, at timestamp, until timestamptz);";

/// Classes of the statements that do something.
fn classes(outcome: &Outcome) -> Vec<Class> {
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    outcome.statements.iter().filter_map(|one| one.found.as_ref().map(|found| found.class)).collect()
}

/// The server rewrites the table, unless local time is UTC.
#[test]
fn timestamps_change_as_in_the_time_zone_of_the_original() {
    let migration = "ALTER TABLE events ALTER at TYPE timestamptz";
    for release in RELEASES {
        let server = server(release);
        for (zone, wanted) in [("Europe/Berlin", Class::Rewrite), ("UTC", Class::CatalogOnly)] {
            let database = format!("of_{}", zone.to_lowercase().replace('/', "_"));
            server.sql(&format!("CREATE DATABASE {database}"));
            server.sql(&format!("ALTER DATABASE {database} SET timezone = '{zone}'"));
            let schema = block_on(async {
                let original = server.connect(&database).await;
                let rows = "INSERT INTO events SELECT i, timestamp '2026-01-01' + i * interval '1 minute' FROM generate_series(1, 300) i";
                original.client.batch_execute(&format!("{EVENTS} {rows}; ANALYZE")).await.unwrap();
                Schema::of_database(&original, &database).await.unwrap()
            });
            assert_eq!(schema.settings.get("TimeZone").map(String::as_str), Some(zone), "{release}");
            let request = Request { schema, ..request("", migration, Amount::AsOriginal) };
            let mut warned = Warned::default();
            let outcome = measured_by(&server, &request, &mut warned).unwrap();
            assert_eq!(classes(&outcome), [wanted], "{release}: {zone}");
            assert!(!warned.0.join(" ").contains("between timestamp"), "{release}: {warned:?}");
        }
    }
}

/// A file does not tell the time zone.
#[test]
fn a_time_zone_of_which_nobody_has_told_is_named() {
    let warning = "the migration changes columns between timestamp and timestamptz (events.at, events.until)";
    let of = |migration: &str| {
        let mut warned = Warned::default();
        let request = request(EVENTS, migration, Amount::Rows(100));
        measured_by(&server(18), &request, &mut warned).unwrap();
        warned.0.join("\n")
    };
    let change = "ALTER TABLE events ALTER at TYPE timestamptz, ALTER until TYPE timestamp";
    let warnings = of(change);
    assert!(warnings.contains(warning) && warnings.contains("--set TimeZone=ZONE"), "{warnings}");
    let with_zone = format!("SET TimeZone = 'Europe/Berlin'; {change}");
    for migration in [with_zone.as_str(), "ALTER TABLE events ADD x timestamptz"] {
        let warnings = of(migration);
        assert!(!warnings.contains("between timestamp"), "{migration}: {warnings}");
    }
}

/// pgrig sends UTF-8, and reads names so.
#[test]
fn names_are_read_whatever_encoding_a_migration_sets() {
    let schema = "CREATE SCHEMA \"Übung\"; CREATE TABLE \"Übung\".\"Größe x\" (id int PRIMARY KEY);";
    let add = |column: &str| format!("ALTER TABLE \"Übung\".\"Größe x\" ADD COLUMN \"{column}\" int;");
    let set = "SET client_encoding = 'LATIN1';";
    let body = "DO $$ BEGIN PERFORM set_config('client_encoding', 'LATIN1', false); END $$;";
    for release in RELEASES {
        let server = server(release);
        for before in [set, body] {
            let migration = format!("{before} {} BEGIN; {} COMMIT;", add("ä"), add("ö"));
            let request = request(schema, &migration, Amount::Rows(100));
            assert_eq!(request.script.warnings.len(), usize::from(before == set), "{before}");
            let outcome = measured(&server, &request).unwrap();
            let classes = classes(&outcome);
            assert!(classes.iter().all(|class| *class == Class::CatalogOnly), "{release}: {classes:?}");
            let found = outcome.statements.iter().filter_map(|one| one.found.as_ref());
            let locked =
                found.flat_map(|found| &found.locks).filter(|lock| lock.relation.contains("Größe x"));
            assert_eq!(locked.count(), 2, "{release}: {before}");
        }
    }
    let only = Script::of([Script::read(set, None).unwrap()]);
    assert!(only.is_err(), "{only:?}");
}

/// A LIMIT or a cursor ends a scan early.
#[test]
fn scans_that_end_early_are_no_scans() {
    // Versions before 15 do not count workers in time.
    let migration = "
        SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0;
        SELECT 1 FROM events LIMIT 1;
        BEGIN;
        DECLARE early CURSOR FOR SELECT * FROM events;
        FETCH 10 FROM early;
        CLOSE early;
        DECLARE whole CURSOR FOR SELECT * FROM events;
        FETCH ALL FROM whole;
        COMMIT;
        SELECT count(at) FROM events;
        TRUNCATE events;
        SELECT count(at) FROM events;
    ";
    for release in RELEASES {
        for rows in [100, 20_000] {
            let request = request(EVENTS, migration, Amount::Rows(rows));
            let outcome = measured(&server(release), &request).unwrap();
            let found: Vec<bool> = outcome
                .statements
                .iter()
                .filter_map(|one| one.found.as_ref())
                .map(|found| found.works.iter().any(|work| work.kind == WorkKind::Scan))
                .collect();
            // The last table has no page: a scan reads all of it.
            let wanted = [false, false, false, false, false, true, true, false, true];
            assert_eq!(found, wanted, "{release}: {rows}");
        }
    }
}
