//! `pgrig fill --table` and `--ddl`: what is asked for, by whom, and what is refused.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Ran, Rig, Server};

const SHOP: &str = include_str!("../data/shop.sql");

/// A file in the rig's home.
fn file(rig: &Rig, name: &str, text: &str) -> PathBuf {
    let path = rig.home.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// pgrig fill with a file as --ddl.
fn fill_new(rig: &Rig, sql: &str, arguments: &str) -> Ran {
    let path = file(rig, "ddl.sql", sql);
    rig.run(&format!("fill --ddl {} {arguments}", path.display()))
}

/// Whatever a refused or failed fill may leave behind.
fn relations(server: &Server) -> Vec<String> {
    let query = "SELECT coalesce(array_agg(oid::regclass::text ORDER BY 1), '{}') FROM pg_class \
                 WHERE relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, \
                                            'pg_toast'::regnamespace)";
    server.row(query).get(0)
}

#[test]
fn ddl_may_begin_with_a_byte_order_mark_and_has_no_nul() {
    let rig = Rig::new();
    let server = rig.server("");
    let ran = fill_new(&rig, "\u{feff}CREATE TABLE things (id int)", "--rows 10");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM things"), 10);
    let ran = fill_new(&rig, "CREATE TABLE other (id int);\0", "--rows 10 -d nowhere");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("byte 29 is NUL") && !ran.stderr.contains("connect"), "{ran:#?}");
}

#[test]
fn an_error_of_the_server_shows_its_message_and_sqlstate() {
    let rig = Rig::new();
    let _server = rig.server("");
    let sql = "CREATE TABLE things (id int, CHECK (id + length(pg_sleep(0.2)::text) >= 0)); SET statement_timeout = 1";
    let ran = fill_new(&rig, sql, "--rows 1000");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let said = "canceling statement due to statement timeout (SQLSTATE 57014)";
    assert!(ran.stderr.contains(said) && !ran.stderr.contains("db error"), "{ran:#?}");
}

/// The SQL is used twice: for one table, and for all of a schema.
#[test]
fn ddl_may_be_standard_input() {
    let rig = Rig::new();
    let server = rig.server("");
    for (name, sql) in [
        ("one", "CREATE TABLE one (id int PRIMARY KEY)"),
        ("two", "CREATE TABLE two (id int PRIMARY KEY); CREATE TABLE three (id int)"),
    ] {
        let input = std::fs::File::open(file(&rig, "input.sql", sql)).unwrap();
        let ran = Ran::from(rig.command("fill --ddl - --rows 10").stdin(input).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(server.number(&format!("SELECT count(*) FROM {name}")), 10);
    }
}

#[test]
fn ddl_creates_a_table_and_fills_it() {
    let rig = Rig::new();
    let server = rig.server("");
    let sql = "-- Mine.\nCREATE TYPE colour AS ENUM ('red', 'green');\n\
               CREATE UNLOGGED TABLE things (id int PRIMARY KEY, colour colour NOT NULL) WITH (fillfactor = 70);\n\
               CREATE INDEX ON things (colour);\nINSERT INTO things VALUES (0, 'red'); DELETE FROM things;";
    let explained = fill_new(&rig, sql, "--rows 1000 --explain");
    assert_eq!(explained.code, Some(0), "{explained:#?}");
    assert!(explained.stdout.contains("public.things, unlogged"), "{explained:#?}");
    assert_eq!(relations(&server), Vec::<String>::new(), "--explain leaves nothing");

    let ran = fill_new(&rig, sql, "--rows 1000");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM things"), 1000);
    for (schema, column) in [("one", "k"), ("two", "t.k"), ("three", "three.t.k")] {
        let sql = "CREATE TABLE t (id int PRIMARY KEY, k int)";
        let ran = fill_new(&rig, sql, &format!("--rows 10 --schema {schema} --column {column}=uniform(7,7)"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(server.number(&format!("SELECT count(*) FROM {schema}.t WHERE k = 7")), 10);
    }
    let ran = fill_new(&rig, "CREATE TABLE t (id int)", "--rows 10 --column other.id=uniform(7,7)");
    assert!(ran.stderr.contains("public.t has no column other.id"), "{ran:#?}");
    let again = fill_new(&rig, sql, "--rows 1000");
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert!(again.stderr.contains("already exists (SQLSTATE 42710)"), "{again:#?}");
    let again = fill_new(&rig, sql, "--rows 1000 --table things");
    assert!(again.stderr.contains("leave out --ddl to fill it as it is"), "{again:#?}");

    let ran = fill_new(&rig, sql, "--rows 500 --schema apart");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM apart.things"), 500);
    // A key to a table of before does not make that one new.
    let ran =
        fill_new(&rig, "CREATE UNLOGGED TABLE parts (thing int NOT NULL REFERENCES things)", "--rows 100");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM parts JOIN things ON id = thing"), 100);
}

#[test]
fn a_limit_needs_the_name_of_one_of_several_tables() {
    let rig = Rig::new();
    let server = rig.server("--pg-version 13");
    let ran = fill_new(&rig, SHOP, "--for 1s");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("it creates customers, products, orders, order_items, visits"), "{ran:#?}");
    assert!(ran.stderr.contains("--table NAME"), "{ran:#?}");
    assert_eq!(relations(&server), Vec::<String>::new());
    let ran = fill_new(&rig, SHOP, "--rows 100 --table customers");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    rig.done("fill --rows 100 --table orders");
    assert_eq!(server.number("SELECT count(*) FROM orders JOIN customers c ON c.id = customer"), 100);
}

#[test]
fn ddl_that_fails_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    for (sql, said) in [
        ("CREATE TABLE a (id int); CREATE TABLE b (id nonsense)", "type \"nonsense\" does not exist"),
        ("CREATE TABLE a (id int); COMMIT; CREATE TABLE b (id nonsense)", "remove BEGIN, COMMIT"),
        ("CREATE TABLE a (id int);\n-- Ä\nSELEC 1", "--ddl: line 3: "),
        ("CREATE TABLE a (id int);\n\nALTER TABLE\n  b ADD y int", "--ddl: line 3: "),
        ("CREATE TABLE a (id int);\n\nDO $$ BEGIN\n  PERFORM 1/0;\nEND $$;\nSELECT 1", "--ddl: line 3: "),
        ("CREATE TABLE a (id int);\n\\connect other\n", "line 2 is the psql command \\connect"),
        ("CREATE TABLE a (id int);\nCOPY a FROM stdin;\n1\n\\.\n", "pg_dump --schema-only"),
        // Not supported, and no extension is missing; the server's detail ends with a full stop.
        (
            "CREATE TABLE a (id int UNIQUE, at date) PARTITION BY RANGE (at)",
            "must include all partitioning columns",
        ),
        ("SELECT 1", "it creates no table"),
        ("CREATE TABLE a (id int NOT NULL CHECK (id % 2 = 3))", "CHECK (((id % 2) = 3))"),
    ] {
        for arguments in ["--rows 100", "--rows 100 --explain", "--rows 100 --schema new"] {
            let ran = fill_new(&rig, sql, arguments);
            assert_eq!(ran.code, Some(2), "{sql}: {ran:#?}");
            assert!(ran.stderr.contains(said), "{sql}: {ran:#?}");
            assert!(!ran.stderr.contains(".. ") && !ran.stderr.contains("Install it"), "{sql}: {ran:#?}");
            assert_eq!(relations(&server), Vec::<String>::new(), "{sql}");
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'new'"), 0);
    let other = fill_new(&rig, "CREATE TABLE a (id int)", "--rows 100 --table b");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("--ddl: it does not create b; it creates"), "{other:#?}");
    let missing = rig.run("fill --rows 1 --ddl /no/such/file");
    assert!(missing.stderr.contains("cannot read --ddl /no/such/file"), "{missing:#?}");
}

/// The oldest release's schema, because every pg_dump knows that.
#[test]
fn a_dump_of_the_schema_is_ddl() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13");
    server.execute(&format!(
        "CREATE SCHEMA shop; SET search_path = shop; {SHOP}; COMMENT ON TABLE orders IS 'its \\d'"
    ));
    let dumped = Command::new("pg_dump").args(["--schema-only", "-d"]).arg(&server.url).output().unwrap();
    assert!(dumped.status.success(), "{dumped:?}");
    server.execute("DROP SCHEMA shop CASCADE");
    let dump = String::from_utf8(dumped.stdout).unwrap();
    assert!(dump.contains("set_config('search_path', '', false)"), "{dump}");

    let ran = fill_new(&rig, &dump, "--rows 1000 --table shop.orders");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("fill shop.customers first"), "{ran:#?}");
    let ran = fill_new(&rig, &dump, "--rows 1000 --table shop.customers --streams 2");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    rig.done("fill --table shop.orders --rows 2000");
    assert_eq!(server.number("SELECT count(*) FROM shop.orders"), 2000);
}

#[test]
fn what_cannot_be_filled_is_refused_with_the_remedy_and_untouched() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(SHOP);
    server.execute(
        "CREATE VIEW v AS SELECT 1; CREATE TABLE odd (n int NOT NULL, CONSTRAINT never CHECK (n % 2 = 5)); \
         CREATE TABLE few (a bool PRIMARY KEY); CREATE TABLE full_ (id int PRIMARY KEY); \
         INSERT INTO full_ VALUES (1); CREATE TABLE plain (id int, t text)",
    );
    let before = relations(&server);
    for (arguments, said) in [
        ("--table custmers --rows 1", "did you mean public.customers?"),
        ("--table item --rows 1", "create it first with --ddl FILE"),
        ("--table nowhere.customers --rows 1", "public.customers"),
        ("--table v --rows 1", "public.v, because it is a view"),
        ("--table pg_class --rows 1", "a system catalog"),
        ("--table plain --rows 1 --column price=any", "price"),
        (
            "--table plain --rows 1 --column id=unifrom(1,2)",
            "there is no specification \"unifrom\" (did you mean uniform?); the specifications are",
        ),
        ("--table plain --rows 1 --column id", "is not of the form column=specification"),
        ("--table plain --rows 1 --column id=timeseries(2024-01-01,1s)", "id"),
        ("--table odd --rows 10", "never, CHECK (((n % 2) = 5))"),
        ("--table orders --rows 10", "rows of public.customers (orders_customer_fkey), which is empty"),
        ("--table few --rows 3", "has room for 2 rows"),
        ("--table few 1GB", "cannot grow to 1.00 GB: its keys allow 2 more rows"),
        ("--table full_ --rows 1", "public.full_ has rows: give --append to add rows"),
        ("--table plain --scale 3", "--scale counts pgbench's accounts"),
        ("--table plain --rows 1 --partitions 3", "--partitions"),
        ("--table plain --rows 1 --fillfactor 50", "Put them into --ddl"),
        ("--table plain --rows 1 --unlogged", "CREATE UNLOGGED TABLE"),
        ("--table plain --rows 1 --payload random", "--column NAME=text(80)"),
        ("--table plain --rows 1 --drop", "drop or TRUNCATE tables of your own yourself"),
        ("--table plain --rows 1 --server-side", "by COPY or by writing pages"),
        ("--table plain --rows 1 --init-steps tg", "give --ddl FILE"),
        ("--table customers --rows 1 --format binary", "--format binary"),
        ("--table plain", "for example: pgrig fill 1GB --table plain"),
        ("--table plain 900TB", "of disk space (tables"),
        ("--column id=any --rows 1", "give --table NAME too"),
    ] {
        let ran = rig.run(&format!("fill {arguments}"));
        // A disk is the machine's.
        let code = if said == "of disk space (tables" { 1 } else { 2 };
        assert_eq!(ran.code, Some(code), "fill {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "fill {arguments}: {ran:#?}");
        assert_eq!(ran.stdout, "", "fill {arguments}");
    }
    assert_eq!(relations(&server), before);
    assert_eq!(server.number("SELECT (SELECT count(*) FROM plain) + (SELECT count(*) FROM full_)"), 1);
}

#[test]
fn roles_fill_what_they_may() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(
            "REVOKE CREATE ON SCHEMA public FROM public; CREATE ROLE clerk LOGIN; CREATE ROLE typist LOGIN; \
             CREATE SCHEMA desk AUTHORIZATION postgres; GRANT CREATE, USAGE ON SCHEMA desk TO clerk; \
             GRANT USAGE ON SCHEMA desk TO typist; CREATE TABLE shared (id int PRIMARY KEY, t text); \
             GRANT SELECT, INSERT ON shared TO typist; CREATE TABLE desk.lent (id serial, t text); \
             GRANT INSERT, SELECT ON desk.lent TO clerk; GRANT USAGE ON SEQUENCE desk.lent_id_seq TO clerk",
        );
        let clerk = server.url.replace("postgres@", "clerk@");
        let typist = server.url.replace("postgres@", "typist@");
        // Nothing but CREATE on a schema, and a table of its own there.
        let ran = fill_new(
            &rig,
            "CREATE TABLE mine (id serial PRIMARY KEY, t text)",
            &format!("--schema desk --rows 100 -d {clerk}"),
        );
        assert_eq!(ran.code, Some(0), "{version} {ran:#?}");
        rig.done(&format!("fill --table desk.mine --append 10MB --streams 2 -d {clerk}"));
        assert_eq!(server.number("SELECT (count(*) = max(id))::int::bigint FROM desk.mine"), 1);
        // Another's table: no statistics, and it says so.
        let ran = rig.done(&format!("fill --table desk.lent --rows 100 -d {clerk}"));
        assert!(ran.stderr.contains("may not run VACUUM ANALYZE"), "{version} {ran:#?}");
        // INSERT alone: nowhere to record what is loaded.
        let ran = rig.run(&format!("fill --table shared --rows 100 -d {typist}"));
        assert_eq!(ran.code, Some(2), "{version} {ran:#?}");
        assert!(ran.stderr.contains("GRANT CREATE ON SCHEMA public TO typist"), "{version} {ran:#?}");
        // None at all.
        let ran = rig.run(&format!("fill --table shared --rows 100 -d {clerk}"));
        assert_eq!(ran.code, Some(2), "{version} {ran:#?}");
        assert!(ran.stderr.contains("GRANT INSERT"), "{version} {ran:#?}");
        assert!(ran.stderr.contains(" and GRANT CREATE ON SCHEMA public TO clerk"), "{version} {ran:#?}");
        assert_eq!(server.number("SELECT count(*) FROM shared"), 0);
    }
}

#[test]
fn more_rows_than_any_disk_holds_are_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE even (id bigint PRIMARY KEY, n int); CREATE TABLE uneven (id bigint PRIMARY KEY, note text)",
    );
    for table in ["even", "uneven"] {
        let refused = rig.run(&format!("fill --rows {} --table {table}", i64::MAX));
        assert_eq!(refused.code, Some(1), "{refused:#?}");
        assert!(refused.stderr.contains("pgrig needs 18446744 TB of disk space"), "{refused:#?}");
    }
}
