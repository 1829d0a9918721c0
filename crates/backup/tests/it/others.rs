//! The other databases of a server: a base backup contains all of them, and each is read in the restored server.

use std::path::Path;

use backup::{BackupError, Outcome, Trial};
use testkit::{Need, Server, assert_says, block_on, require};

use crate::support::{programs_with, rehearsed, rehearsed_by, server};

const RELEASE: u16 = 13;

/// A server with the databases `shop` and `other`, each with a table.
fn with_two_databases() -> Server {
    let server = server(RELEASE);
    block_on(async {
        let postgres = server.connect("postgres").await;
        for name in ["shop", "other"] {
            postgres.client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
            let create = "CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 3000) i; ALTER TABLE t ADD PRIMARY KEY (i)";
            run(&server, name, create).await;
        }
        postgres.close().await;
    });
    server
}

async fn run(server: &Server, database: &str, sql: &str) {
    let connection = server.connect(database).await;
    connection.client.batch_execute(sql).await.unwrap();
    connection.close().await;
}

/// The file of a table or index of the database `other`, below the data directory.
async fn file_of(server: &Server, relation: &str) -> String {
    let other = server.connect("other").await;
    let query = "SELECT pg_relation_filepath($1::text::regclass)";
    let path = other.client.query_one(query, &[&relation]).await.unwrap().get(0);
    other.close().await;
    path
}

fn of<'a>(outcome: &'a Outcome, way: &str) -> &'a Trial {
    let found = outcome.trials.iter().find(|trial| trial.way.to_string() == way);
    found.unwrap_or_else(|| panic!("{way}: {outcome:#?}"))
}

#[test]
fn other_databases_of_a_base_backup_are_read_and_named() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_two_databases();
    // Nobody can connect to this one.
    server.sql("CREATE DATABASE closed ALLOW_CONNECTIONS false");
    block_on(async {
        let target = server.target("shop");
        let outcome = rehearsed(&server, &target, &["custom:none", "base", "base-tar:none"]).await.unwrap();
        assert!(outcome.failed.is_empty() && outcome.notes.is_empty(), "{outcome:#?}");
        for way in ["base", "base-tar:none"] {
            assert_eq!(
                of(&outcome, way).verified.other_databases,
                ["other", "postgres", "template1"],
                "{way}"
            );
        }
        assert!(of(&outcome, "custom:none").verified.other_databases.is_empty());
    });
}

/// Why a base backup of the database `shop` fails, if the header of this block of a relation of `other` is overwritten in the unpacked copy
/// after it was checked against the manifest.
async fn failure_with(directory: &Path, server: &Server, (relation, block): (&str, u32)) -> String {
    let file = file_of(server, relation).await;
    let script = format!(
        "\"$REAL/pg_verifybackup\" \"$@\" || exit\n\
         for word; do\n\
         case $word in /*) place=$word ;; esac\n\
         done\n\
         printf 'xxxxxxxxxxxxxxxxxxxxxxxx' | dd of=\"$place/{file}\" bs=8192 seek={block} conv=notrunc 2>/dev/null\n"
    );
    let bin = programs_with(directory, RELEASE, "pg_verifybackup", &script);
    let outcome = rehearsed_by(Some(bin), server, &server.target("shop"), &["base"]).await.unwrap();
    assert!(outcome.trials.is_empty(), "{outcome:#?}");
    let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    why.clone()
}

#[test]
fn a_damaged_table_of_another_database_is_found() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (with_two_databases(), testkit::directory());
    block_on(async {
        let why = failure_with(directory.path(), &server, ("t", 0)).await;
        assert_says(
            &why,
            &[
                "another database of the restored server is damaged, or cannot be read: ",
                "database other: table \"public\".\"t\" cannot be read",
                "invalid page in block 0",
            ],
        );
        assert!(!why.contains("database shop") && !why.contains("database postgres"), "{why}");
    });
}

/// The rows can be read without this leaf of the index.
#[test]
fn a_damaged_index_of_another_database_is_found() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (with_two_databases(), testkit::directory());
    block_on(async {
        let why = failure_with(directory.path(), &server, ("t_pkey", 1)).await;
        assert_says(&why, &["database other: index t_pkey of table t is damaged"]);
    });
}

/// Settings of databases and roles stay in force in the restored server, which lacks the libraries that they name.
#[test]
fn libraries_that_only_the_original_has_and_timeouts_are_no_damage() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_two_databases();
    server.sql("CREATE ROLE second SUPERUSER LOGIN");
    for setting in [
        "ALTER DATABASE other SET session_preload_libraries = 'pgrig_absent'",
        "ALTER DATABASE other SET statement_timeout = 1",
        "ALTER ROLE postgres IN DATABASE shop SET local_preload_libraries = 'pgrig_absent'",
    ] {
        server.sql(setting);
    }
    block_on(async {
        let target = server.target("shop").with_user("second");
        let outcome = rehearsed(&server, &target, &["base"]).await.unwrap();
        assert!(outcome.failed.is_empty() && outcome.notes.is_empty(), "{outcome:#?}");
        assert_eq!(of(&outcome, "base").verified.other_databases, ["other", "postgres", "template1"]);
    });
}

/// Its tables may have types of the extension, which the scratch server cannot read.
#[test]
fn a_database_with_an_extension_that_the_scratch_server_lacks_is_named_in_a_note() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_two_databases();
    block_on(async {
        let rename = "CREATE EXTENSION pg_trgm; UPDATE pg_extension SET extname = 'pgrig_absent' WHERE extname = 'pg_trgm'";
        run(&server, "other", rename).await;
        let outcome = rehearsed(&server, &server.target("shop"), &["base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{outcome:#?}");
        assert_eq!(of(&outcome, "base").verified.other_databases, ["postgres", "template1"]);
        let [note] = &outcome.notes[..] else { panic!("{outcome:#?}") };
        assert_says(note, &["database other was not read", "the extension pgrig_absent", "--bin DIR"]);
    });
}

/// Only dumps create the extension.
#[test]
fn dumps_of_a_database_with_an_extension_that_the_scratch_server_lacks_have_no_result() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_two_databases();
    block_on(async {
        let rename = "CREATE EXTENSION pg_trgm; UPDATE pg_extension SET extname = 'pgrig_absent' WHERE extname = 'pg_trgm'";
        run(&server, "shop", rename).await;
        let target = server.target("shop");
        let outcome = rehearsed(&server, &target, &["custom:none", "base", "plain:none"]).await.unwrap();
        let failed: Vec<String> = outcome.failed.iter().map(|(way, _)| way.to_string()).collect();
        assert_eq!(failed, ["custom:none", "plain:none"], "{outcome:#?}");
        for (_, why) in &outcome.failed {
            assert_says(why, &["the extension pgrig_absent", "give --bin DIR"]);
        }
        assert_eq!(outcome.trials.len(), 1, "{outcome:#?}");
        assert_eq!(of(&outcome, "base").verified.rows, 3000);
        let refused = rehearsed(&server, &target, &["custom:none", "plain:none"]).await.unwrap_err();
        assert!(matches!(refused, BackupError::Extensions { .. }), "{refused}");
        assert_says(&refused.to_string(), &["the extension pgrig_absent", "give --bin DIR"]);
    });
}

/// As if this machine lacked its locale. Dumps do not depend on that.
#[test]
fn a_base_backup_whose_database_cannot_be_opened_fails_alone() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (with_two_databases(), testkit::directory());
    block_on(async {
        let shop = server.connect("shop").await;
        let query = "SELECT oid::text FROM pg_database WHERE datname = current_database()";
        let oid: String = shop.client.query_one(query, &[]).await.unwrap().get(0);
        shop.close().await;
        let script = format!(
            "\"$REAL/pg_verifybackup\" \"$@\" || exit\n\
             for word; do\n\
             case $word in /*) place=$word ;; esac\n\
             done\n\
             rm \"$place/base/{oid}/PG_VERSION\"\n"
        );
        let bin = programs_with(directory.path(), RELEASE, "pg_verifybackup", &script);
        let target = server.target("shop");
        let outcome = rehearsed_by(Some(bin), &server, &target, &["base", "custom:none"]).await.unwrap();
        let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
        assert!(way.is_base(), "{outcome:#?}");
        assert_says(why, &["the restored database cannot be read: ", "is not a valid data directory"]);
        assert_eq!(of(&outcome, "custom:none").verified.rows, 3000);
    });
}
