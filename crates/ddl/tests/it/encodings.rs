//! Encodings that a schema sets.

use ddl::Amount;
use testkit::{RELEASES, assert_says};

use crate::support::{measured, request, server};

/// pgrig sends the text as UTF-8: under LATIN1, the server would make other names of it.
#[test]
fn a_schema_that_sets_an_encoding_has_its_own_names() {
    let schema = "SET client_encoding = 'LATIN1';
        BEGIN;
        CREATE TABLE größen (id int PRIMARY KEY, café text);
        COMMIT;
        SELECT pg_catalog.set_config('client_encoding', 'WIN1252', false);
        CREATE TABLE straßen (id int PRIMARY KEY);";
    let migration = "ALTER TABLE größen RENAME café TO thé; ALTER TABLE straßen ADD a int;";
    for release in RELEASES {
        let request = request(schema, migration, Amount::Rows(100));
        let warnings = &request.schema.unseen;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert_says(
            &warnings[0],
            &["the test's schema, line 1: ", "SET client_encoding = 'LATIN1'", "UTF-8"],
        );
        assert_says(&warnings[1], &["the test's schema, line 5: ", "set_config", "UTF-8"]);
        let outcome = measured(&server(release), &request).unwrap();
        assert_eq!(outcome.failed().count(), 0, "{release}: {:#?}", outcome.statements);
        for (one, name) in outcome.statements.iter().zip(["größen", "straßen"]) {
            let locks = &one.found.as_ref().unwrap().locks;
            assert!(locks.iter().any(|lock| lock.relation.contains(name)), "{release}: {locks:?}");
        }
    }
}
