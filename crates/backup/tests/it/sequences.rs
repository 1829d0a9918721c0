//! Sequences and large objects of restored backups.

use std::path::Path;

use backup::{Outcome, Trial, Witness};
use testkit::{CLIENTS_RELEASE, Need, Server, assert_says, block_on, clients, require};

use crate::support::{programs_with, rehearsed, rehearsed_by, server};

const RELEASE: u16 = 13;
/// Large objects with missing pages, without content, and with a short page before others. Sequences of a serial and of an identity
/// column; one that descends, one that was never called, and one that sessions cache.
const SCHEMA: &str = "\
    SELECT lo_from_bytea(0, decode(repeat(md5(i::text), 100), 'hex')) FROM generate_series(1, 3) i; \
    SELECT lo_put(lo_from_bytea(0, ''), 10000, 'x'); \
    SELECT lo_from_bytea(0, ''); \
    SELECT lo_put(lo_from_bytea(0, 'short'), 5000, 'more'); \
    CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, n serial); \
    INSERT INTO t (n) SELECT nextval('t_n_seq') FROM generate_series(1, 100); \
    CREATE SEQUENCE down INCREMENT -5; \
    SELECT count(nextval('down')) FROM generate_series(1, 7); \
    CREATE SEQUENCE fresh START 7; \
    CREATE SEQUENCE cached CACHE 20; \
    SELECT nextval('cached')";
/// Numbers of those.
const SEQUENCES: u64 = 5;
const LARGE_OBJECTS: u64 = 6;

fn of<'a>(outcome: &'a Outcome, way: &str) -> &'a Trial {
    outcome
        .trials
        .iter()
        .find(|trial| trial.way.to_string() == way)
        .unwrap_or_else(|| panic!("{way}: {outcome:#?}"))
}

fn with_schema(release: u16) -> Server {
    let server = server(release);
    server.sql(SCHEMA);
    server
}

#[test]
fn sequences_and_large_objects_are_restored_by_each_way() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_schema(RELEASE);
    block_on(async {
        let names = ["plain:none", "custom:gzip", "base"];
        let outcome = rehearsed(&server, &server.target("postgres"), &names).await.unwrap();
        assert!(outcome.failed.is_empty() && outcome.notes.is_empty(), "{outcome:#?}");
        for name in names {
            let found = &of(&outcome, name).verified;
            assert_eq!((found.sequences, found.large_objects), (SEQUENCES, LARGE_OBJECTS), "{name}");
            assert_says(&found.to_string(), &["; 5 sequences; 6 large objects; "]);
        }
    });
}

/// A base backup has no values of unlogged sequences.
#[test]
fn unlogged_sequences_are_compared_only_in_dumps() {
    if !require(Need::Clients17) {
        return;
    }
    let server = with_schema(CLIENTS_RELEASE);
    server.sql("CREATE UNLOGGED SEQUENCE unlogged; SELECT nextval('unlogged')");
    block_on(async {
        let names = ["plain:none", "base"];
        let target = server.target("postgres");
        let outcome = rehearsed_by(Some(clients()), &server, &target, &names).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_eq!(of(&outcome, "plain:none").verified.sequences, SEQUENCES + 1);
        assert_eq!(of(&outcome, "base").verified.sequences, SEQUENCES);
    });
}

/// No transaction holds the values of sequences: a dump has one of those during the dump, and WAL is ahead of them.
#[test]
fn sequences_that_go_on_meanwhile_are_no_difference() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_schema(RELEASE);
    block_on(async {
        let writer = server.connect("postgres").await;
        let writing = async {
            loop {
                let calls = "SELECT nextval('down'), nextval('cached'), nextval('t_id_seq'); \
                             SELECT count(nextval('t_n_seq')) FROM generate_series(1, 10)";
                writer.client.batch_execute(calls).await.unwrap();
            }
        };
        let target = server.target("postgres");
        let names = ["plain:none", "directory:none,jobs=2", "base", "base-tar:none"];
        let outcome = tokio::select! {
            () = writing => unreachable!(),
            outcome = rehearsed(&server, &target, &names) => outcome.unwrap(),
        };
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        for name in names {
            let found = &of(&outcome, name).verified;
            assert_eq!(found.sequences, SEQUENCES, "{name}");
            let expected = if name.starts_with("base") { Witness::Changed } else { Witness::SameSnapshot };
            assert_eq!(found.witness, expected, "{name}");
        }
    });
}

/// Why the restore of a dump with one more statement differs.
fn difference(directory: &Path, statement: &str) -> String {
    let server = with_schema(RELEASE);
    let script = format!(
        "\"$REAL/pg_dump\" \"$@\" || exit\n\
         for word; do\n\
         if test \"$before\" = --file; then cat >>\"$word\" <<'END'\n{statement};\nEND\nfi\n\
         before=$word\n\
         done\n"
    );
    let bin = programs_with(directory, RELEASE, "pg_dump", &script);
    let target = server.target("postgres");
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &["plain:none"])).unwrap();
    assert!(outcome.trials.is_empty(), "{outcome:#?}");
    let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    why.clone()
}

#[test]
fn a_sequence_that_is_behind_is_found() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let why = difference(directory.path(), "SELECT pg_catalog.setval('public.t_n_seq', 99)");
    assert_says(
        &why,
        &["the restored database differs: sequence \"public\".\"t_n_seq\" has the value 99 instead of 100"],
    );
}

#[test]
fn a_missing_large_object_is_found() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let least = "SELECT pg_catalog.lo_unlink(pg_catalog.min(oid)) FROM pg_catalog.pg_largeobject_metadata";
    let why = difference(directory.path(), least);
    assert_says(&why, &["the restored database differs: it has 5 large objects instead of 6"]);
}

#[test]
fn a_large_object_with_other_content_is_found() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let change =
        "SELECT pg_catalog.lo_put(pg_catalog.max(oid), 5001, 'O') FROM pg_catalog.pg_largeobject_metadata";
    let why = difference(directory.path(), change);
    assert_says(&why, &["it has 6 large objects, as the original, but with other content"]);
}

/// The content of large objects, and sequences that others own.
#[test]
fn a_note_tells_of_parts_that_the_role_may_not_read() {
    if !require(Need::Clients) {
        return;
    }
    let server = with_schema(RELEASE);
    server.sql("CREATE ROLE reader LOGIN REPLICATION; GRANT SELECT ON t, down TO reader");
    block_on(async {
        let target = server.target("postgres").with_user("reader");
        let outcome = rehearsed(&server, &target, &["base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        let found = &outcome.trials[0].verified;
        assert_eq!((found.sequences, found.large_objects), (1, LARGE_OBJECTS), "{outcome:#?}");
        assert_says(
            &outcome.notes.join("\n"),
            &["sequences that the role may not read: ", "\"cached\"", " and 1 more", "not their content"],
        );
    });
}
