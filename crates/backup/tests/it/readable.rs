//! Tables, sequences and large objects that the role may not read, and tables that are dropped while they are read.

use backup::BackupError;
use testkit::{Need, Server, assert_says, block_on, require, until_async};

use crate::support::{rehearsed, server};

const SCHEMA: &str = "
    CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 2000) i;
    CREATE TABLE parts (id int) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
    INSERT INTO parts SELECT i FROM generate_series(1, 1000) i;
";
/// Rows of the tables above.
const ROWS: u64 = 3000;

fn shop() -> Server {
    let server = server(13);
    server.sql("CREATE DATABASE shop");
    block_on(async {
        let shop = server.connect("shop").await;
        shop.client.batch_execute(SCHEMA).await.unwrap();
        shop.close().await;
    });
    server
}

/// The snapshot sees a table that another session drops before pgrig has locked it.
#[test]
fn a_table_that_is_dropped_meanwhile_is_not_read() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop();
    block_on(async {
        let other = server.connect("shop").await;
        for sql in ["CREATE TABLE gone (id int)", "BEGIN; DROP TABLE gone"] {
            other.client.batch_execute(sql).await.unwrap();
        }
        let dropping = async {
            until_async("pgrig waits for the lock", async || {
                let query = "SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND NOT granted";
                !other.client.query(query, &[]).await.unwrap().is_empty()
            })
            .await;
            other.client.batch_execute("COMMIT").await.unwrap();
        };
        let target = server.target("shop");
        let names = ["custom:none", "base"];
        let (outcome, ()) = tokio::join!(rehearsed(&server, &target, &names), dropping);
        let outcome = outcome.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_eq!(outcome.trials[0].verified.rows, ROWS);
        other.close().await;
    });
}

/// pg_dump refuses tables with row-level security that holds for its role; base backups have their rows.
#[test]
fn tables_with_row_level_security_are_not_compared() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop();
    server.sql("CREATE ROLE app LOGIN REPLICATION");
    block_on(async {
        let shop = server.connect("shop").await;
        let schema = "
            ALTER TABLE parts_1 ENABLE ROW LEVEL SECURITY;
            GRANT SELECT ON ALL TABLES IN SCHEMA public TO app;
        ";
        shop.client.batch_execute(schema).await.unwrap();
        let target = server.target("shop").with_user("app");
        let outcome = rehearsed(&server, &target, &["base"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_says(&outcome.notes.join("\n"), &["did not compare the rows", "\"parts_1\". To compare them"]);
        assert_says(&outcome.trials[0].verified.to_string(), &["equal to the original, except 1 table;"]);
        let Err(BackupError::NoWay(why)) = rehearsed(&server, &target, &["custom:none"]).await else {
            panic!("a dump was made")
        };
        assert_says(&why[0], &["row-level security", "\"parts_1\"", "ALTER ROLE app BYPASSRLS"]);
        shop.client.batch_execute("REVOKE SELECT ON parts FROM app").await.unwrap();
        let Err(BackupError::NoWay(why)) = rehearsed(&server, &target, &["plain"]).await else {
            panic!("a dump was made")
        };
        assert_says(&why[0], &["may not read", "\"parts\"", "GRANT SELECT"]);
        shop.close().await;
    });
}

/// GRANT SELECT ON ALL TABLES grants nothing on sequences, which pg_dump reads, too.
#[test]
fn sequences_and_large_objects_that_the_role_may_not_read_prevent_dumps() {
    if !require(Need::Clients) {
        return;
    }
    let server = shop();
    server.sql("CREATE ROLE app LOGIN");
    block_on(async {
        let shop = server.connect("shop").await;
        let target = server.target("shop").with_user("app");
        let prepare = "
            GRANT SELECT ON ALL TABLES IN SCHEMA public TO app;
            CREATE TABLE own (id int GENERATED ALWAYS AS IDENTITY);
            GRANT SELECT ON own TO app;
            CREATE SEQUENCE numbers;
            SELECT lo_from_bytea(4711, 'x');
        ";
        shop.client.batch_execute(prepare).await.unwrap();
        let Err(BackupError::NoWay(why)) = rehearsed(&server, &target, &["custom:none"]).await else {
            panic!("a dump was made")
        };
        assert_says(
            &why[0],
            &[
                "may not read \"public\".\"numbers\", \"public\".\"own_id_seq\": GRANT SELECT",
                "; role app may not read 1 large object",
            ],
        );
        let grant = "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO app";
        shop.client.batch_execute(grant).await.unwrap();
        let Err(BackupError::NoWay(why)) = rehearsed(&server, &target, &["custom:none"]).await else {
            panic!("a dump was made")
        };
        assert_says(&why[0], &["role app may not read 1 large object: GRANT SELECT ON LARGE OBJECT"]);
        shop.client.batch_execute("GRANT SELECT ON LARGE OBJECT 4711 TO app").await.unwrap();
        let outcome = rehearsed(&server, &target, &["custom:none"]).await.unwrap();
        assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
        assert_eq!((outcome.trials[0].verified.rows, outcome.trials[0].verified.large_objects), (ROWS, 1));
        shop.close().await;
    });
}
