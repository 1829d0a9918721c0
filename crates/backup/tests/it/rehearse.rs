//! Each way is restored, and what differs is found.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use backup::{BackupError, Outcome, Witness};
use testkit::{CLIENTS_RELEASE, Need, Server, assert_says, block_on, clients, require, until, until_async};

use crate::support::{rehearsed, rehearsed_by, server};

/// Names to quote, partitions, inheritance, duplicates, unlogged rows, generated columns, owners, extensions.
const SCHEMA: &str = r#"
    CREATE ROLE "Shop Owner" NOLOGIN;
    CREATE SCHEMA "My Shop" AUTHORIZATION "Shop Owner";
    CREATE EXTENSION pg_trgm;
    CREATE TABLE "My Shop"."t" ("T" int PRIMARY KEY, t text, twice int GENERATED ALWAYS AS ("T" * 2) STORED, f float8, at timestamptz);
    INSERT INTO "My Shop".t ("T", t, f, at) SELECT i, repeat(md5(i::text), 3), i / 3.0, now() FROM generate_series(1, 3000) i;
    CREATE INDEX ON "My Shop".t USING gin (t gin_trgm_ops);
    CREATE TABLE parts (id int, v bytea) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
    INSERT INTO parts SELECT i, decode(md5(i::text), 'hex') FROM generate_series(1, 1000) i;
    CREATE TABLE child (more text) INHERITS ("My Shop".t);
    INSERT INTO child ("T", more) VALUES (1, 'x'), (1, 'x'), (1, NULL);
    CREATE UNLOGGED TABLE unlogged AS SELECT i FROM generate_series(1, 500) i;
    CREATE TABLE "order" (id int REFERENCES "My Shop".t, CHECK (id > 0));
    INSERT INTO "order" SELECT 1 + i % 3000 FROM generate_series(1, 5000) i;
    CREATE TABLE no_columns ();
    INSERT INTO no_columns DEFAULT VALUES;
    CREATE MATERIALIZED VIEW counts AS SELECT count(*) FROM parts;
"#;
/// Rows of the tables above.
const ROWS: u64 = 3000 + 1000 + 3 + 500 + 5000 + 1;

fn shop(release: u16) -> Server {
    let server = server(release);
    block_on(async {
        let connection = server.connect("postgres").await;
        connection.client.batch_execute("CREATE DATABASE shop").await.unwrap();
        let shop = server.connect("shop").await;
        shop.client.batch_execute(SCHEMA).await.unwrap();
        shop.close().await;
        connection.close().await;
    });
    server
}

fn of<'a>(outcome: &'a Outcome, way: &str) -> &'a backup::Trial {
    outcome
        .trials
        .iter()
        .find(|trial| trial.way.to_string() == way)
        .unwrap_or_else(|| panic!("{way}: {outcome:#?}"))
}

#[test]
fn every_format_is_restored_with_equal_content_and_the_database_is_not_changed() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop(13);
    let dumps =
        ["plain:none", "plain:gzip=1", "custom:none", "custom:gzip,jobs=2", "directory:gzip=1,jobs=2"];
    let bases = ["base", "base-tar:none", "base-tar:client-gzip=1"];
    let names: Vec<&str> = dumps.iter().chain(&bases).copied().collect();
    block_on(async {
        let watching = server.connect("shop").await;
        let state = "SELECT pg_current_snapshot()::text || pg_database_size('shop')";
        let before: String = watching.client.query_one(state, &[]).await.unwrap().get(0);
        // The dumps' role may write, but does not.
        let outcome = rehearsed(&server, &server.target("shop"), &names).await.unwrap();
        let after: String = watching.client.query_one(state, &[]).await.unwrap().get(0);
        assert_eq!(before, after);
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        for name in dumps {
            let trial = of(&outcome, name);
            let found = &trial.verified;
            assert_eq!(
                (found.witness, found.rows, found.constraints),
                (Witness::SameSnapshot, ROWS, 3),
                "{name}"
            );
            assert!(
                found.indexes > Some(2) && trial.size > 10_000 && trial.peak_disk > trial.size,
                "{trial:?}"
            );
        }
        for name in bases {
            let trial = of(&outcome, name);
            // A base backup has no rows of unlogged tables.
            assert_eq!(
                (trial.verified.witness, trial.verified.rows),
                (Witness::Unchanged, ROWS - 500),
                "{name}"
            );
            assert!(trial.backup > 0.0 && trial.restore > 0.0 && trial.backup_cpu > 0.0, "{trial:?}");
        }
        assert!(of(&outcome, "plain:gzip=1").size < of(&outcome, "plain:none").size);
        assert!(of(&outcome, "base-tar:client-gzip=1").size < of(&outcome, "base-tar:none").size / 2);
        watching.close().await;
    });
}

/// A dump creates the columns of a child in another order than the original has them, and gives other names to the foreign keys that
/// partitions have from their table.
#[test]
fn a_restore_with_another_order_of_columns_and_other_names_of_derived_keys_is_equal() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    let schema = r#"
        CREATE TABLE p (a int);
        CREATE TABLE c (b int, "Gone" int, "B c" text) INHERITS (p);
        ALTER TABLE p ADD d int;
        ALTER TABLE c DROP "Gone";
        INSERT INTO c (a, b, d, "B c") VALUES (1, 2, 3, 'x, "y"'), (4, 5, NULL, '');
        CREATE TABLE one (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE one_1 PARTITION OF one FOR VALUES FROM (0) TO (100);
        CREATE TABLE many (id int REFERENCES one) PARTITION BY RANGE (id);
        CREATE TABLE many_1 PARTITION OF many FOR VALUES FROM (0) TO (100);
        INSERT INTO one VALUES (1);
        INSERT INTO many VALUES (1);
        ALTER TABLE many RENAME TO much;
        ALTER TABLE many_1 RENAME TO much_1;
    "#;
    block_on(async {
        let postgres = server.connect("postgres").await;
        postgres.client.batch_execute(schema).await.unwrap();
        let outcome = rehearsed(&server, &server.target("postgres"), &["plain", "custom"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        for trial in &outcome.trials {
            assert_eq!(trial.verified.rows, 4, "{trial:?}");
        }
        postgres.close().await;
    });
}

/// Only superusers can own such objects, and the original's may have any name.
#[test]
fn an_event_trigger_of_another_superuser_is_restored() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    let schema = "CREATE ROLE \"Boss\" SUPERUSER NOLOGIN; SET ROLE \"Boss\"; CREATE FOREIGN DATA WRAPPER w; \
                  CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; \
                  CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION e(); CREATE TABLE a AS SELECT 1 AS x";
    block_on(async {
        let postgres = server.connect("postgres").await;
        postgres.client.batch_execute(schema).await.unwrap();
        let outcome = rehearsed(&server, &server.target("postgres"), &["plain", "custom"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        postgres.close().await;
    });
}

/// It writes a row when pgrig creates amcheck in a copy.
#[test]
fn rows_of_an_event_trigger_in_a_copy_are_no_difference() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    let schema = "CREATE TABLE log (id serial PRIMARY KEY, tag text); \
                  CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS \
                  'BEGIN INSERT INTO public.log (tag) VALUES (tg_tag); END'; \
                  CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted(); CREATE TABLE a AS SELECT 1 AS x";
    block_on(async {
        let postgres = server.connect("postgres").await;
        postgres.client.batch_execute(schema).await.unwrap();
        let target = server.target("postgres");
        let outcome = rehearsed(&server, &target, &["plain", "custom", "base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        for trial in &outcome.trials {
            assert!(trial.verified.indexes > Some(0) && trial.verified.rows == 2, "{trial:#?}");
        }
        postgres.close().await;
    });
}

/// Its owner may read the table only as a member of another role.
#[test]
fn a_materialized_view_whose_owner_reads_by_membership_is_restored() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    let schema = "CREATE ROLE readers NOLOGIN; CREATE ROLE \"Viewer\" NOLOGIN IN ROLE readers, pg_monitor; \
                  CREATE TABLE a AS SELECT 1 AS x; GRANT SELECT ON a TO readers; \
                  CREATE MATERIALIZED VIEW v AS SELECT x FROM a; ALTER MATERIALIZED VIEW v OWNER TO \"Viewer\"";
    block_on(async {
        let postgres = server.connect("postgres").await;
        postgres.client.batch_execute(schema).await.unwrap();
        let outcome = rehearsed(&server, &server.target("postgres"), &["plain", "custom"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        postgres.close().await;
    });
}

/// The reading of the tables does not wait for ever.
#[test]
fn a_table_that_stays_locked_is_an_error_with_those_that_lock_it() {
    if !require(Need::Clients) {
        return;
    }
    let server = Server::start(testkit::spec(13, &[("max_prepared_transactions", "5")]));
    block_on(async {
        let one = server.connect("postgres").await;
        let prepares = [
            "CREATE TABLE a AS SELECT 1 AS x",
            "CREATE TABLE b AS SELECT 1 AS x",
            "BEGIN",
            "LOCK TABLE a",
            "PREPARE TRANSACTION 'it''s'",
            "BEGIN",
            "LOCK TABLE b",
        ];
        for sql in prepares {
            one.client.batch_execute(sql).await.unwrap();
        }
        let refused = rehearsed(&server, &server.target("postgres"), &["custom"]).await.unwrap_err();
        assert!(matches!(refused, BackupError::Locked { .. }), "{refused}");
        assert_says(
            &refused.to_string(),
            &[
                "prepared transaction 'it''s' holds ACCESS EXCLUSIVE on a (",
                "ROLLBACK PREPARED 'it''s'",
                "holds ACCESS EXCLUSIVE on b (SELECT pg_terminate_backend(",
            ],
        );
        one.client.batch_execute("ROLLBACK").await.unwrap();
        one.client.batch_execute("ROLLBACK PREPARED 'it''s'").await.unwrap();
        one.close().await;
    });
}

/// Rows that come meanwhile are in no dump, and a base backup is not said to be equal.
#[test]
fn a_database_that_changes_meanwhile_is_dumped_in_one_state() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop(13);
    block_on(async {
        let writer = server.connect("shop").await;
        let writing = async {
            loop {
                let insert = "INSERT INTO parts SELECT g, 'x' FROM generate_series(1, 10) g; DELETE FROM \"order\" WHERE ctid = '(0,1)'";
                writer.client.batch_execute(insert).await.unwrap();
            }
        };
        let target = server.target("shop");
        let outcome = tokio::select! {
            () = writing => unreachable!(),
            outcome = rehearsed(&server, &target, &["directory:none,jobs=2", "base"]) => outcome.unwrap(),
        };
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_eq!(of(&outcome, "directory:none,jobs=2").verified.witness, Witness::SameSnapshot);
        assert_eq!(of(&outcome, "base").verified.witness, Witness::Changed);
    });
}

/// A function that claims to be immutable gives another value in the restored database; another one needs a table that is restored
/// later. Base backups are not affected.
#[test]
fn a_restore_that_fails_or_differs_has_no_result() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    block_on(async {
        let postgres = server.connect("postgres").await;
        let create =
            "CREATE FUNCTION liar() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT current_database()::text'";
        postgres.client.batch_execute(create).await.unwrap();
        let table = "CREATE TABLE lies (a int, b text GENERATED ALWAYS AS (liar()) STORED); INSERT INTO lies VALUES (1)";
        postgres.client.batch_execute(table).await.unwrap();
        let target = server.target("postgres");
        let outcome = rehearsed(&server, &target, &["custom", "base"]).await.unwrap();
        let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
        assert_says(
            &format!("{way}: {why}"),
            &[
                "custom:gzip: the restored database differs",
                "\"lies\" has as many rows as the original, but other values",
            ],
        );
        assert_eq!(outcome.trials.len(), 1);

        let check = "DROP TABLE lies; CREATE TABLE b (x int); INSERT INTO b VALUES (1); \
                     CREATE FUNCTION ok() RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN EXISTS (SELECT FROM public.b); END'; \
                     CREATE TABLE a (x int CHECK (ok())); INSERT INTO a VALUES (1)";
        postgres.client.batch_execute(check).await.unwrap();
        let outcome = rehearsed(&server, &target, &["plain", "custom"]).await.unwrap();
        assert!(outcome.trials.is_empty());
        for (way, why) in &outcome.failed {
            assert_says(&format!("{way}: {why}"), &["its restore failed", "violates check constraint"]);
        }
        assert_eq!(outcome.failed.len(), 2);
        postgres.close().await;
    });
}

/// The original's subscription is enabled, but its server runs no workers. A copy that did would connect to the publisher and take
/// the changes that the original waits for.
#[test]
fn no_copy_subscribes_to_the_publisher_of_the_original() {
    if !require(Need::Clients) {
        return;
    }
    let publisher = TcpListener::bind("127.0.0.1:0").unwrap();
    publisher.set_nonblocking(true).unwrap();
    let port = publisher.local_addr().unwrap().port();
    let settings =
        [("wal_level", "replica"), ("max_wal_senders", "5"), ("max_logical_replication_workers", "0")];
    let server = Server::start(testkit::spec(13, &settings));
    server.sql(&format!(
        "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port={port} user=x dbname=x' PUBLICATION p \
         WITH (connect = false, slot_name = 's')"
    ));
    server.sql("ALTER SUBSCRIPTION s ENABLE");
    block_on(async {
        let outcome = rehearsed(&server, &server.target("postgres"), &["custom", "base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    });
    let connected = publisher.accept();
    assert!(connected.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
}

#[test]
fn what_is_not_possible_is_refused_before_anything_is_done() {
    if !require(Need::Clients) {
        return;
    }
    let server = Server::start(testkit::spec(13, &[("wal_level", "minimal"), ("max_wal_senders", "0")]));
    server.sql("CREATE ROLE reader LOGIN");
    block_on(async {
        let target = server.target("postgres");
        let refused = rehearsed(&server, &target, &["base", "base-tar:server-gzip"]).await.unwrap_err();
        assert!(matches!(refused, BackupError::NoWay(_)));
        assert_says(
            &refused.to_string(),
            &["pgrig can make no backup here: base", "max_wal_senders = 0", "wal_level = replica"],
        );
        let refused = rehearsed(&server, &target.clone().with_user("reader"), &["base"]).await.unwrap_err();
        assert_says(&refused.to_string(), &["may not replicate", "REPLICATION"]);
    });
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgrig'";
    until("no session is left", || {
        block_on(async {
            let connection = server.target("postgres").with_application_name("test").connect().await.unwrap();
            let left: i64 = connection.client.query_one(sessions, &[]).await.unwrap().get(0);
            connection.close().await;
            left == 0
        })
    });
}

/// Programs of version 17 set a parameter that earlier servers do not know. Nothing else is ignored.
#[test]
fn newer_programs_dump_an_earlier_server() {
    if !require(Need::Clients17) {
        return;
    }
    let server = shop(13);
    let names = ["plain:zstd=1", "custom:lz4", "directory:gzip=1,jobs=2"];
    block_on(async {
        let target = server.target("shop");
        let outcome = rehearsed_by(Some(clients()), &server, &target, &names).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert!(outcome.trials.iter().all(|trial| trial.verified.rows == ROWS), "{outcome:#?}");

        // The function fails where the restore calls it, with another search path.
        let connection = server.connect("shop").await;
        let breaks = r#"CREATE FUNCTION one() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT min(1) FROM parts); END';
                        ALTER TABLE "order" ADD CHECK (one() = 1)"#;
        connection.client.batch_execute(breaks).await.unwrap();
        let outcome = rehearsed_by(Some(clients()), &server, &target, &names).await.unwrap();
        assert_eq!(outcome.failed.len(), names.len(), "{outcome:#?}");
        for (_, why) in &outcome.failed {
            assert_says(why, &["its restore failed: ", "relation \"parts\" does not exist"]);
        }
        connection.close().await;
    });
}

/// A standby cannot read unlogged tables, and dumps have them without rows.
#[test]
fn a_standby_is_rehearsed() {
    if !require(Need::Clients) {
        return;
    }
    let mut server = shop(13);
    fs::write(server.data_dir().join("standby.signal"), "").unwrap();
    server.restart_with(&[]);
    block_on(async {
        let outcome = rehearsed(&server, &server.target("shop"), &["custom:none", "base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        for trial in &outcome.trials {
            assert_eq!(trial.verified.rows, ROWS - 500, "{trial:#?}");
        }
    });
}

/// Later restores write to files of WAL that earlier ones have left.
#[test]
fn the_peak_of_disk_space_does_not_depend_on_the_order_of_the_ways() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    server.sql("CREATE TABLE t AS SELECT i, repeat(md5(i::text), 3) AS v FROM generate_series(1, 300000) i");
    block_on(async {
        let names = ["plain:none", "custom:none", "custom:gzip=1"];
        let outcome = rehearsed(&server, &server.target("postgres"), &names).await.unwrap();
        let restored = names.map(|name| of(&outcome, name).peak_disk - of(&outcome, name).size);
        let [least, most] = [restored.iter().min(), restored.iter().max()].map(Option::unwrap);
        assert!(*least > 60_000_000 && most - least < least / 4, "{restored:?}");
    });
}

/// pg_hba.conf may allow each database, but no replication.
#[test]
fn refused_replication_leaves_out_base_backups() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop(13);
    fs::write(server.data_dir().join("pg_hba.conf"), "local all all trust\n").unwrap();
    server.sql("SELECT pg_reload_conf()");
    block_on(async {
        let target = server.target("shop");
        until_async("refused replication", async || {
            let outcome = rehearsed(&server, &target, &["base"]).await;
            matches!(outcome, Err(BackupError::NoWay(why)) if why[0].contains("no pg_hba.conf entry"))
        })
        .await;
        let outcome = rehearsed(&server, &target, &[]).await.unwrap();
        assert!(outcome.failed.is_empty() && !outcome.trials.is_empty(), "{outcome:#?}");
    });
}

/// Settings of the database that forbid an extension say nothing of its indexes; money has the locale of the server.
#[test]
fn settings_of_a_database_are_no_damage() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop(13);
    server.sql("ALTER DATABASE shop SET default_transaction_read_only = on");
    block_on(async {
        let outcome = rehearsed(&server, &server.target("shop"), &["base", "custom:none"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    });
}

/// Under another order of characters, a row would be in another partition.
#[test]
fn the_locale_of_the_database_is_that_of_the_restored_one() {
    if !require(Need::Clients17) {
        return;
    }
    let server = server(CLIENTS_RELEASE);
    server.sql("CREATE DATABASE words TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'");
    block_on(async {
        let words = server.connect("words").await;
        let schema = "CREATE TABLE words (word text) PARTITION BY RANGE (word);
                      CREATE TABLE words_a PARTITION OF words FOR VALUES FROM ('a') TO ('n');
                      INSERT INTO words VALUES ('Berlin'), ('aachen')";
        words.client.batch_execute(schema).await.unwrap();
        let target = server.target("words");
        let outcome = rehearsed_by(Some(clients()), &server, &target, &["custom:none"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        words.close().await;
    });
}
