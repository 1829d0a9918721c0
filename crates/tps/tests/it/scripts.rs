//! Effects of scripts, on real servers, the oldest release and the newest.

use std::time::Duration;

use tps::{End, Length, Protocol};

use crate::support::{Database, Notes, PROTOCOLS, on_newest, on_servers, request};

const EXTENDED: [Protocol; 2] = [Protocol::Extended, Protocol::Prepared];

/// Runs a script once, and fails if a client does not get through.
#[track_caller]
fn run(database: &Database, protocol: Protocol, script: &str) {
    let mut request = request(script);
    (request.length, request.protocol) = (Length::Transactions(1), protocol);
    let outcome = database.run(request);
    assert_eq!((outcome.end, outcome.all.counts.succeeded), (End::Complete, 1), "{:?}", outcome.lost);
}

/// Why a client does not get through this script, and the command at which it ended.
#[track_caller]
fn why_lost(database: &Database, protocol: Protocol, script: &str) -> (usize, String) {
    let mut request = request(script);
    request.protocol = protocol;
    let outcome = database.run(request);
    assert_eq!(outcome.end, End::Lost);
    assert_eq!((outcome.all.counts.failed.other, outcome.all.counts.due()), (1, 1));
    let lost = &outcome.lost[0];
    (lost.at.unwrap().1, lost.why.clone())
}

fn noted(database: &Database) -> Vec<String> {
    let notes = database.column("SELECT note FROM notes ORDER BY ctid");
    database.execute("TRUNCATE notes");
    notes
}

fn with_notes(database: &Database) -> &Database {
    database.execute("CREATE TABLE notes (note text)");
    database
}

#[test]
fn results_become_variables() {
    on_servers(|database| {
        with_notes(database);
        for protocol in PROTOCOLS {
            run(
                database,
                protocol,
                "SELECT 7 AS seven, 'it''s' AS text \\gset\n\
                 SELECT 8 AS eight \\gset p_\n\
                 SELECT i AS last FROM generate_series(1, 3) i \\aset\n\
                 SELECT 5 AS kept \\gset\n\
                 SELECT 6 AS kept WHERE false \\aset\n\
                 \\set sum :seven + :p_eight + :last + :kept\n\
                 INSERT INTO notes VALUES (:sum);",
            );
            assert_eq!(noted(database), ["23"], "{protocol:?}");
        }
        for protocol in EXTENDED {
            // As in pgbench, a NULL is an empty text.
            run(database, protocol, "SELECT NULL AS nothing \\gset\nINSERT INTO notes VALUES (:nothing);");
            assert_eq!(noted(database), [""]);
        }
        // Several statements in one: the last for \gset, each for \aset.
        run(
            database,
            Protocol::Simple,
            "SELECT 1 AS a \\; INSERT INTO notes VALUES ('x') \\; SELECT 2 AS b \\gset\n\
             SELECT 3 AS c \\; SELECT 4 AS d \\; INSERT INTO notes VALUES ('y') \\aset\n\
             INSERT INTO notes VALUES (:b * 100 + :c * 10 + :d);\n",
        );
        assert_eq!(noted(database), ["x", "y", "234"]);
    });
}

#[test]
fn results_that_do_not_fit_end_the_client() {
    on_servers(|database| {
        for protocol in PROTOCOLS {
            let why = |script| why_lost(database, protocol, script);
            let two = why("SELECT 1;\nSELECT generate_series(1, 2) AS a \\gset");
            assert_eq!(two, (1, "query 0: expected one row, got 2".to_owned()));
            let none = why("SELECT 1 AS a WHERE false \\gset");
            assert_eq!(none, (0, "query 0: expected one row, got 0".to_owned()));
            let none = why("CREATE TEMPORARY TABLE t () \\gset");
            assert_eq!(none, (0, "query 0: expected one row, got 0".to_owned()));
            let unnamed = why("SELECT 1 + 1 \\gset");
            assert_eq!(unnamed, (0, "invalid variable name: \"?column?\"".to_owned()));
        }
        let last =
            why_lost(database, Protocol::Simple, "SELECT 1 AS a \\; CREATE TEMPORARY TABLE t () \\gset");
        assert_eq!(last, (0, "query 1: expected one row, got 0".to_owned()));
    });
}

#[test]
fn pipelines_have_the_same_effects() {
    on_servers(|database| {
        with_notes(database);
        for protocol in EXTENDED {
            let mut request = request(
                "\\set a 1\n\
                 \\startpipeline\n\
                 BEGIN ISOLATION LEVEL SERIALIZABLE;\n\
                 INSERT INTO notes VALUES (:a);\n\
                 \\set a 2\n\
                 INSERT INTO notes VALUES (:a);\n\
                 END;\n\
                 \\syncpipeline\n\
                 INSERT INTO notes VALUES ('synced');\n\
                 \\endpipeline\n\
                 INSERT INTO notes VALUES ('after');\n",
            );
            (request.length, request.protocol, request.statements) =
                (Length::Transactions(2), protocol, true);
            let outcome = database.run(request);
            assert_eq!(outcome.all.counts.succeeded, 2, "{:?}", outcome.lost);
            assert_eq!(noted(database), ["1", "2", "synced", "after"].repeat(2));
            let counts = outcome.scripts[0].commands.iter().map(|command| command.latency.count());
            assert!(counts.into_iter().all(|count| count == 2));
        }
    });
}

#[test]
fn pipelines_may_be_longer_than_any_buffer() {
    on_newest(|database| {
        let text = "x".repeat(2000);
        let statement = format!("SELECT '{text}' || repeat('y', 2000);\n");
        let script = format!("\\startpipeline\n{}\\endpipeline\nSELECT 1;\n", statement.repeat(1000));
        for protocol in EXTENDED {
            run(database, protocol, &script);
        }
    });
}

#[test]
fn errors_in_pipelines_end_the_client() {
    on_servers(|database| {
        with_notes(database);
        for protocol in EXTENDED {
            let script = "\\startpipeline\nINSERT INTO notes VALUES ('undone');\nSELECT 1 / 0;\n\
                          INSERT INTO notes VALUES ('passed over');\n\\syncpipeline\n\
                          INSERT INTO notes VALUES ('done');\n\\endpipeline\n";
            let (at, why) = why_lost(database, protocol, script);
            assert_eq!(at, 6);
            assert!(why.contains("division by zero"), "{why}");
            // The server carries out the statements after a Sync, as for pgbench.
            assert_eq!(noted(database), ["done"]);
        }
        let script = "\\if :client_id = 0\n\\startpipeline\n\\endif\nSELECT 1 AS a \\gset\nSELECT 1;";
        let (at, why) = why_lost(database, Protocol::Extended, script);
        assert_eq!((at, why.as_str()), (3, "\\gset and \\aset are not allowed in a pipeline"));
        let script = "\\if :client_id = 0\n\\startpipeline\n\\endif\nSELECT 1;";
        let (_, why) = why_lost(database, Protocol::Extended, script);
        assert!(why.contains("pipeline open"), "{why}");
    });
}

#[test]
fn a_transaction_has_to_be_ended() {
    on_servers(|database| {
        with_notes(database);
        for protocol in PROTOCOLS {
            let (at, why) = why_lost(database, protocol, "BEGIN;\nINSERT INTO notes VALUES ('lost');");
            assert_eq!(at, 1);
            assert!(why.contains("within a transaction block"), "{why}");
            assert_eq!(noted(database), Vec::<String>::new());
        }
    });
}

#[test]
fn copy_has_nothing_to_copy() {
    on_servers(|database| {
        with_notes(database);
        for protocol in PROTOCOLS {
            for (script, said) in [
                ("COPY notes FROM STDIN;", "COPY FROM STDIN is not possible"),
                ("COPY notes TO STDOUT;", "COPY TO STDOUT is not possible"),
            ] {
                let (at, why) = why_lost(database, protocol, script);
                assert_eq!(at, 0);
                assert!(why.starts_with(said), "{why}");
            }
        }
    });
}

#[test]
fn shells_are_asked() {
    on_newest(|database| {
        with_notes(database);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("made");
        let script = format!(
            "\\setshell number expr 6 '*' 7\n\\shell touch {}\nINSERT INTO notes VALUES (:number);",
            file.display()
        );
        run(database, Protocol::Simple, &script);
        assert_eq!(noted(database), ["42"]);
        assert!(file.exists());
        let why = |script| why_lost(database, Protocol::Simple, script).1;
        assert_eq!(why("\\shell exit 3"), "\\shell: the command failed: exit status: 3");
        let printed = why("\\setshell number echo none");
        assert_eq!(printed, "\\setshell: the command must print an integer, not \"none\"");
        let undefined = why("\\setshell number echo :nothing");
        assert!(
            undefined.starts_with("undefined variable \"nothing\": give -D nothing=VALUE"),
            "{undefined}"
        );
    });
}

#[test]
fn values_are_shown_to_who_debugs() {
    on_newest(|database| {
        let mut request = request("\\set a debug(:client_id + 5)\nSELECT :a;");
        request.length = Length::Transactions(2);
        let notes = Notes::default();
        database.run_noting(request, &notes, std::future::pending()).unwrap();
        let debugged = notes.debugged.into_inner().unwrap();
        let shown = debugged.iter().map(|debugged| (debugged.client, debugged.at, debugged.value.as_str()));
        assert_eq!(shown.collect::<Vec<_>>(), [(0, (0, 0), "int 5"); 2]);
    });
}

#[test]
fn expressions_without_a_value_end_the_client() {
    on_newest(|database| {
        let why = |script| why_lost(database, Protocol::Simple, script);
        assert_eq!(why("SELECT 1;\n\\set a 1 / 0"), (1, "division by zero".to_owned()));
        let remedy = "give -D nothing=VALUE, or set it earlier in the script, for example by \\set";
        assert_eq!(why("\\sleep :nothing"), (0, format!("sleep: undefined variable \"nothing\": {remedy}")));
        let (_, unset) = why("SELECT :nothing;");
        let expected = format!("(SQLSTATE 42601); the script sets no variable nothing: {remedy}");
        assert!(unset.ends_with(&expected), "{unset}");
        let (_, other) = why("SELECT ':nothing' +;");
        assert!(!other.contains("the script sets no variable"), "{other}");
        let (_, malformed) = why("SELECT 'x' AS a \\gset\n\\set b :a + 1");
        assert!(malformed.ends_with("must be a number, a boolean or null"), "{malformed}");
    });
}

#[test]
fn sleeping_clients_do_not_keep_others_waiting() {
    on_newest(|database| {
        with_notes(database);
        let mut request = request(
            "\\if :client_id = 0\n\\sleep 500 ms\n\\else\n\\sleep 1 ms\n\\endif\n\
             INSERT INTO notes VALUES (:client_id);",
        );
        request.clients = 3;
        request.length = Length::Transactions(5);
        let outcome = database.run(request);
        assert_eq!(outcome.all.counts.succeeded, 15);
        assert!(outcome.elapsed >= Duration::from_millis(2500));
        // All of the others' were there before the second one of the sleeper.
        let notes = noted(database);
        assert!(notes.iter().rev().take_while(|note| *note == "0").count() >= 4, "{notes:?}");
    });
}
