//! Files of goose, dbmate and sql-migrate, which also have the statements that take a migration back.

use ddl::find::Class;
use ddl::{Amount, Script};
use testkit::RELEASES;

use crate::support::{measured, request, server};

const SCHEMA: &str = "CREATE TABLE orders (id int PRIMARY KEY, n int);";

#[test]
fn the_part_that_takes_a_migration_back_is_not_measured() {
    let up = "ALTER TABLE orders ADD a int;\nCREATE INDEX orders_n ON orders (n);\n";
    for release in RELEASES {
        let server = server(release);
        for (begin, down) in [
            ("-- +goose Up", "-- +goose Down"),
            ("-- migrate:up", "-- migrate:down"),
            ("-- +migrate Up", "-- +migrate Down"),
        ] {
            let text = format!("{begin}\n{up}\n{down}\nDROP TABLE orders CASCADE;\n");
            let script = Script::read(&text, Some("1.sql")).unwrap().in_one_transaction().unwrap();
            let mut request = request(SCHEMA, "SELECT 1", Amount::Rows(300));
            request.script = Script::of([script]).unwrap();
            let notes = &request.script.notes;
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].starts_with("1.sql, line 5: ") && notes[0].contains(down), "{notes:?}");
            let outcome = measured(&server, &request).unwrap();
            assert_eq!(outcome.failed().count(), 0, "{release}: {:#?}", outcome.statements);
            let found = outcome.statements.iter().filter_map(|one| one.found.as_ref());
            let classes: Vec<Class> = found.map(|found| found.class).collect();
            assert_eq!(classes, [Class::CatalogOnly, Class::IndexBuild], "{release}: {begin}");
        }
    }
}
