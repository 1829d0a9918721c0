//! Encodings that a schema sets.

use ddl::{Amount, Schema};
use failure::{Class, Classified};
use testkit::{RELEASES, assert_says, block_on};

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

/// A database with the encoding `SQL_ASCII` takes any bytes, also as values in statistics and in definitions.
#[test]
fn texts_of_an_original_that_are_not_utf_8_are_refused_with_the_remedy() {
    const CREATE: &str = "CREATE DATABASE other ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0";
    for release in RELEASES {
        let server = server(release);
        block_on(async {
            server.connect("postgres").await.client.batch_execute(CREATE).await.unwrap();
            let connection = server.target("other").connect().await.unwrap();
            let run = async |sql: &str| connection.client.batch_execute(sql).await.unwrap();
            run("CREATE TABLE t (n text DEFAULT E'\\xe9')").await;
            let error = Schema::of_database(&connection, "other").await.unwrap_err();
            let says = ["database other has values", "SQL_ASCII", "pg_dump --schema-only", "--schema-file"];
            assert_says(&error.to_string(), &says);
            assert_eq!(error.class(), Class::Request, "{release}");
            // Values of statistics are read as bytes.
            run("DROP TABLE t; CREATE TABLE t (n text)").await;
            run("INSERT INTO t SELECT E'\\xe4' || i % 10 FROM generate_series(1, 1000) i").await;
            run("ANALYZE").await;
            assert!(Schema::of_database(&connection, "other").await.is_ok(), "{release}");
            connection.close().await;
        });
    }
}
