//! `testdb::load` on real servers: what psql would do, and errors that say where.

use failure::Classified;
use std::io::Write;

use crate::support::{Database, RICH, assert_same, client, database, on_each_release};
use tempfile::NamedTempFile;
use testdb::load::{LoadError, Loaded, load};
use testdb::source::Source;
use testkit::{Need, Server, require, shared, spec};

fn file(text: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    file
}

async fn run(database: &Database, script: &str) -> Result<Loaded, LoadError> {
    let file = file(script.as_bytes());
    load(&database.target, &Source::file(file.path()).unwrap(), false).await
}

async fn refused(database: &Database, script: &str, parts: &[&str]) {
    let text = run(database, script).await.unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "no \"{part}\" in: {text}");
    }
}

#[test]
fn the_same_as_psql() {
    if !require(Need::Clients) {
        return;
    }
    // A server that this machine's pg_dump is not too old for.
    let old = shared(13);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let original = runtime.block_on(async { database(13).await.rich().await });
    let dump = client("pg_dump", &[&old.conninfo(original.target.dbname())]);
    for script in [dump.as_slice(), RICH.as_bytes()] {
        let file = file(script);
        let path = file.path().to_str().unwrap();
        on_each_release(async |database| {
            let other = crate::support::database(database.server.major()).await;
            let url = other.server.conninfo(other.target.dbname());
            client("psql", &["-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f", path, &url]);
            let source = Source::file(path).unwrap();
            let loaded = load(&database.target, &source, false).await.unwrap();
            assert_same(&database.everything().await, &other.everything().await);
            assert!(loaded.statements > 60, "{loaded:?}");
            assert_eq!(loaded.unlogged, None);
        });
    }
}

#[test]
fn unlogged_on_its_way() {
    if !require(Need::Clients) {
        return;
    }
    let old = shared(13);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let original = runtime.block_on(async { database(13).await.rich().await });
    let dump = file(&client("pg_dump", &[&old.conninfo(original.target.dbname())]));
    on_each_release(async |database| {
        let source = Source::file(dump.path()).unwrap();
        let loaded = load(&database.target, &source, true).await.unwrap();
        let unlogged = database.of_persistence('u').await;
        let tables = loaded.unlogged.unwrap().tables;
        assert!(unlogged.contains(&"sales.orders".to_owned()) && tables > 10, "{tables} {unlogged:?}");
        let is_sequence = |name: &String| name.ends_with("sequence");
        assert_eq!(unlogged.iter().any(is_sequence), database.has_unlogged_sequences(), "{unlogged:?}");
        let logged = database.of_persistence('p').await;
        assert!(logged.contains(&"public.sites".to_owned()), "{logged:?}");
        let rows = "SELECT format('%s %s', (SELECT count(*) FROM sales.orders), (SELECT count(*) FROM measurements))";
        assert_eq!(database.texts(rows).await, ["200 300"]);
    });
}

#[test]
fn each_statement_is_by_itself() {
    on_each_release(async |database| {
        let script = "CREATE TYPE mood AS ENUM ('sad');\n\
                      ALTER TYPE mood ADD VALUE 'glad';\n\
                      CREATE TABLE t (id int, mood mood DEFAULT 'glad');\n\
                      CREATE INDEX CONCURRENTLY ON t (id);\n\
                      VACUUM t;\n\
                      BEGIN;\n\
                      INSERT INTO t VALUES (1);\n\
                      COPY t (id) FROM stdin;\n2\n3\n\\.\n\
                      ROLLBACK;\n\
                      COPY t FROM stdin;\n\\.\n\
                      COPY t FROM stdin WITH (FORMAT csv);\n7,sad\n\\.\n\
                      SET search_path = nowhere;\n\
                      SET work_mem = '3MB';\n\
                      DO $$BEGIN RAISE NOTICE 'a'; RAISE NOTICE 'b'; RAISE WARNING 'c'; END$$;\n\
                      SELECT 1, 2; -- the end";
        let loaded = run(&database, script).await.unwrap();
        assert_eq!((loaded.statements, loaded.notices, loaded.warnings), (15, 2, 1));
        assert_eq!((loaded.copied_rows, loaded.copied_bytes), (3, 4 + 6));
        assert_eq!(database.texts("SELECT id || mood::text FROM t").await, ["7sad"]);
    });
}

#[test]
fn an_error_says_where_and_what_to_do() {
    on_each_release(async |database| {
        let script = "-- a comment\nCREATE TABLE t (id int);\n\nCREATE TABLE u (\n    id int,\n    other nothing\n);\n\
                      CREATE TABLE never ();\n";
        let parts =
            ["line 6", "nothing", "42704", "the statement: CREATE TABLE u ( id int, other nothing );"];
        refused(&database, script, &parts).await;
        // The table before the error exists, the table after it does not.
        assert_eq!(
            database.texts("SELECT relname::text FROM pg_class WHERE relname IN ('t', 'never')").await,
            ["t"]
        );

        refused(&database, "CREATE TABLE t (id int);", &["line 1", "42P07", "empty database"]).await;
        let data = "1\n".repeat(100_000);
        let script = format!("SELECT 1;\nCOPY t FROM stdin;\n{data}x\n{data}\\.\n");
        refused(
            &database,
            &script,
            &["line 100003", "22P02", "COPY t, line 100001", "begins: COPY t FROM stdin;"],
        )
        .await;
        refused(&database, "COPY missing FROM stdin;\n1\n\\.\n", &["line 1", "42P01", "missing"]).await;
        assert_eq!(database.texts("SELECT count(*)::text FROM t").await, ["0"]);

        refused(&database, "BEGIN;\nCREATE TABLE begun (id int);\n", &["within a transaction", "COMMIT"])
            .await;

        refused(&database, "ALTER TABLE t OWNER TO nobody_at_all;", &["role", "--no-owner"]).await;
        refused(&database, "CREATE EXTENSION no_such_extension;", &["install the extension"]).await;
        let long = format!("SELECT nothing, '{}';", "x".repeat(1000));
        let error = run(&database, &long).await.unwrap_err().to_string();
        assert!(error.contains("xxx…") && error.len() < 500, "{error}");
    });
}

#[test]
fn an_ordinary_role_may() {
    on_each_release(async |database| {
        let role = format!("owner_of_{}", database.target.dbname());
        let owned =
            format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {} OWNER TO {role}", database.target.dbname());
        database.sql(&owned).await;
        let script =
            file(b"CREATE SCHEMA own;\nCREATE TABLE own.t (id int);\nCOPY own.t FROM stdin;\n1\n\\.\n");
        let target = database.target.clone().with_user(&role);
        let loaded = load(&target, &Source::file(script.path()).unwrap(), false).await.unwrap();
        assert_eq!(loaded.copied_rows, 1);
        let refusal = file(b"ALTER SYSTEM SET work_mem = '4MB';\n");
        let error = load(&target, &Source::file(refusal.path()).unwrap(), false).await.unwrap_err();
        assert!(error.to_string().contains("42501") && error.to_string().contains("superuser"), "{error}");
    });
}

#[test]
fn what_only_psql_can_do_is_refused_by_name() {
    on_each_release(async |database| {
        let harmless = "\\restrict abc\nSELECT 1;\n\\unrestrict abc\n";
        assert_eq!(run(&database, harmless).await.unwrap().statements, 1);
        refused(&database, "SELECT 1;\n\\connect other\n", &["line 2", "\\connect", "--create"]).await;
        refused(&database, "\\i other.sql\n", &["line 1", "\\i"]).await;
        let latin = file(b"SELECT 1;\nSELECT '\xe4';\n");
        let error = load(&database.target, &Source::file(latin.path()).unwrap(), false).await.unwrap_err();
        assert!(
            error.to_string().contains("line 2") && error.to_string().contains("--encoding=UTF8"),
            "{error}"
        );
        assert!(error.is_usage());
    });
}

#[test]
fn a_newer_pg_dumps_settings_are_passed_over() {
    on_each_release(async |database| {
        let loaded = run(&database, "SET of_a_later_release = 0;\nSELECT 1;\n").await.unwrap();
        assert_eq!(loaded.unknown_settings, ["SET of_a_later_release = 0;"]);
        assert_eq!(loaded.statements, 1);
    });
}

#[test]
fn what_was_loaded_survives_a_crash() {
    for release in [13, 18] {
        let mut server = Server::start(spec(release, &[]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let script = file(b"CREATE TABLE t AS SELECT 1 AS id;\nINSERT INTO t VALUES (2);\n");
        runtime.block_on(async {
            let source = Source::file(script.path()).unwrap();
            load(&server.target("postgres"), &source, false).await.unwrap();
        });
        server.crash();
        runtime.block_on(async {
            let connection = server.target("postgres").connect().await.unwrap();
            let count: i64 = connection.client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
            assert_eq!(count, 2);
        });
    }
}

/// The greatest amount of memory that this process has had, bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn large_data_take_little_memory() {
    const ROWS: usize = 1_500_000;
    let mut script = NamedTempFile::new().unwrap();
    writeln!(script, "CREATE TABLE t (id int, filler text);\nCOPY t FROM stdin;").unwrap();
    let row = format!("1\t{}\n", "x".repeat(97));
    for _ in 0..ROWS / 1000 {
        script.write_all(row.repeat(1000).as_bytes()).unwrap();
    }
    writeln!(script, "\\.").unwrap();
    let size = script.as_file().metadata().unwrap().len();
    assert!(size > 150_000_000);
    on_each_release(async |database| {
        let before = peak_memory();
        let source = Source::file(script.path()).unwrap();
        let loaded = load(&database.target, &source, true).await.unwrap();
        assert_eq!(loaded.copied_rows, ROWS as u64);
        // Other tests in this process have some of it.
        let grown = peak_memory() - before;
        assert!(grown < size / 4, "{grown} bytes");
        database.sql("DROP TABLE t").await;
    });
}
