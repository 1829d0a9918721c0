//! Migrations that could go wrong, on one server of the newest release; and the databases that are left of them.

use std::time::Duration;

use ddl::find::Class;
use ddl::{Amount, DdlError, Observer, Plan, Request, Script, ScriptError, Site, Statement, TableSize};
use server::DataDirectory;
use testkit::{RELEASES, Server, assert_says, block_on, spec};
use tokio::sync::oneshot;

use crate::support::{classes, left, measured, of_shop, request, server};

/// --size and --rows take the same names, with and without quotes.
#[test]
fn a_table_is_named_with_quotes_or_without() {
    let server = server(18);
    let schema = "CREATE TABLE \"Orders\" (id int PRIMARY KEY, note text);";
    let of = |amount: Amount| {
        let request =
            Request { up_to: 1_000_000, ..request(schema, "ALTER TABLE \"Orders\" ADD a int", amount) };
        measured(&server, &request).map(|outcome| outcome.statements[0].forecast.as_ref().unwrap().bytes)
    };
    let size =
        |table: &str| of(Amount::Sizes(vec![TableSize { table: table.to_owned(), bytes: 20_000_000 }]));
    let rows = |table: &str| of(Amount::Rules(vec![format!("{table}=1000000").parse().unwrap()]));
    for name in ["Orders", "\"Orders\"", "public.\"Orders\""] {
        assert_eq!(size(name).unwrap(), 20_000_000, "{name}");
        assert!(rows(name).unwrap() > 20_000_000, "{name}");
    }
    assert!(matches!(size("orders").unwrap_err(), DdlError::NoSuchTable { .. }));
    assert!(matches!(rows("orders").unwrap_err(), DdlError::NoSuchTable { .. }));
}

#[test]
fn odd_migrations_are_measured_and_leave_nothing() {
    let server = server(18);
    let outcome = measured(
        &server,
        &of_shop("
        SET lock_timeout = '2s';
        CREATE TABLE fresh (id int PRIMARY KEY, a text);
        INSERT INTO fresh SELECT i, ';' FROM generate_series(1, 50) i;
        ALTER TABLE fresh ALTER a TYPE varchar(10);
        DO $do$ BEGIN EXECUTE 'UPDATE orders SET note = '';'''; COMMIT; EXECUTE 'ALTER TABLE orders ALTER id TYPE bigint'; END $do$;
        CREATE TYPE mood AS ENUM ('a;b');
        BEGIN; ALTER TYPE mood ADD VALUE 'c'; COMMIT;
        DROP TABLE orders_log;
        BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; ALTER TABLE orders RENAME TO purchases; ROLLBACK;
        SELECT count(*) FROM orders;
        DISCARD ALL;
        COMMENT ON TABLE customers IS 'x';"),
    )
    .unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let found: Vec<Class> = classes(&outcome).into_iter().flatten().collect();
    let wanted = [
        Class::CatalogOnly, // CREATE TABLE
        Class::Rows,
        Class::Rewrite,
        Class::Rewrite, // DO: it commits, so it runs outside of a transaction
        Class::CatalogOnly,
        Class::CatalogOnly,
        Class::CatalogOnly, // DROP
        Class::CatalogOnly, // RENAME, rolled back
        Class::Scan,
        Class::CatalogOnly,
    ];
    assert_eq!(found, wanted);
    // Every statement was timed, too, and what rewrites writes WAL.
    assert!(outcome.statements.iter().all(|one| one.largest().is_some()));
    let rewrite = &outcome.statements[4];
    assert!(rewrite.found.as_ref().unwrap().is_alone && rewrite.largest().unwrap().runs[0].wal > 8192);
    assert_eq!(left(&server), Vec::<String>::new());

    // Databases of a killed run are dropped; those without a mark are not pgrig's.
    block_on(async {
        let connection = server.connect("postgres").await;
        for create in [
            "CREATE DATABASE pgrig_ddl_0123456789abcdef CONNECTION LIMIT 1885827689",
            "CREATE DATABASE pgrig_ddl_0123456789abcdef_look CONNECTION LIMIT 1885827689",
            "CREATE DATABASE pgrig_ddl_0123456789abcde0",
        ] {
            connection.client.batch_execute(create).await.unwrap();
        }
    });
    // One fails, because of its rows or of the server: the others are measured.
    for (migration, says, has_remedy) in [
        (
            "SELECT 1; DO $$ BEGIN EXECUTE 'ALTER TABLE elsewhere ADD a int'; END $$; SELECT 1",
            "elsewhere",
            true,
        ),
        ("SELECT 1; GRANT SELECT ON orders TO somebody; SELECT 1", "role \"somebody\"", true),
        // Rows whose column the migration sets itself do not suit a rule on it that comes after.
        (
            "BEGIN; UPDATE orders SET note = 'x'; ALTER TABLE orders ADD CHECK (note <> 'x'); COMMIT",
            "is violated by some row",
            true,
        ),
        ("SELECT 1; SET ROLE pg_read_all_data; ALTER TABLE orders ADD a int", "must be owner", true),
        ("SELECT 1; SET statement_timeout = '50ms'; SELECT pg_sleep(60)", "statement timeout", true),
    ] {
        let outcome = measured(&server, &of_shop(migration)).unwrap();
        let (one, failed) = outcome.failed().next().unwrap();
        assert_says(&failed.message, &[says]);
        assert!(failed.remedy.is_some() || !has_remedy, "{failed:?}");
        assert!(one.largest().is_none());
        let others = outcome.statements.iter().filter(|other| other.number != one.number);
        assert!(others.clone().all(|other| other.largest().is_some()), "{:#?}", others.collect::<Vec<_>>());
        assert_eq!(left(&server), ["pgrig_ddl_0123456789abcde0"]);
    }

    interrupted(&server);
    assert_eq!(left(&server), ["pgrig_ddl_0123456789abcde0"]);
}

/// The user interrupts it in the middle of a statement.
fn interrupted(server: &Server) {
    struct Interrupting(Option<oneshot::Sender<()>>);
    impl Observer for Interrupting {
        fn planned(&mut self, _: &Plan) {}
        fn stage(&mut self, _: &str) {}
        fn left(&mut self, _: Duration) {}
        fn statement(&mut self, number: usize, _: usize, _: &Statement) {
            if number == 2 {
                self.0.take().unwrap().send(()).unwrap();
            }
        }
    }
    let (stop, stopped) = oneshot::channel();
    let ended = block_on(async {
        let target = server.target("postgres");
        let site = Site { target: &target, directory: &DataDirectory::Asked, restarter: None, pgrig: "test" };
        let request = of_shop("SELECT 1; DO $$ BEGIN PERFORM pg_sleep(3600); END $$");
        let interrupt = Box::pin(async {
            stopped.await.unwrap();
        });
        ddl::run(&site, &request, &mut Interrupting(Some(stop)), interrupt).await
    });
    assert!(matches!(ended, Err(DdlError::Interrupted)), "{ended:?}");
}

/// Names and syntax are tried on the tables without rows, before any fill.
#[test]
fn a_statement_that_cannot_succeed_is_refused_before_the_fill() {
    for release in RELEASES {
        let server = server(release);
        for (migration, number, says) in [
            ("ALTER TABLE customers ADD a int; ALTER TABLE elsewhere ADD a int; SELECT 1", 2, "elsewhere"),
            ("SELECT 1; ALTER TABEL orders ADD a int", 2, "syntax error"),
            ("ALTER TABLE orders ALTER missing SET NOT NULL", 1, "missing"),
            ("UPDATE orders SET missing = 1", 1, "missing"),
            ("BEGIN; CREATE INDEX CONCURRENTLY ON orders (note); COMMIT", 2, "transaction block"),
            ("SELECT 1; LOCK TABLE orders", 2, "LOCK TABLE can only be used in transaction blocks"),
            ("DECLARE c CURSOR FOR SELECT * FROM orders", 1, "can only be used in transaction blocks"),
            ("SELECT 1; SAVEPOINT a", 2, "SAVEPOINT can only be used in transaction blocks"),
            ("CREATE TABLE orders (id int)", 1, "already exists"),
            ("DROP TABLE customers", 1, "depend"),
            (
                "CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY); ALTER TABLE made ALTER id TYPE numeric",
                2,
                "identity column type must be smallint, integer, or bigint",
            ),
        ] {
            let error = measured(&server, &of_shop(migration)).unwrap_err();
            assert!(
                matches!(&error, DdlError::Statement { number: found, .. } if *found == number),
                "{release}: {error}"
            );
            assert_says(&error.to_string(), &[says]);
            assert!(!error.to_string().contains("--column"), "{release}: {error}");
            assert_eq!(failure::Classified::class(&error), failure::Class::Request);
        }
        assert_eq!(left(&server), Vec::<String>::new());
    }
}

#[test]
fn all_statements_that_fail_on_empty_tables_are_named() {
    let migration = "ALTER TABLE orders ADD a int; ALTER TABLE elsewhere ADD a int; ALTER TABEL orders ADD b int; \
                     UPDATE orders SET missing = 1";
    let error = measured(&server(18), &of_shop(migration)).unwrap_err().to_string();
    let [third, fourth] = ["statement 3 (line 1): syntax error", "statement 4 (line 1): column \"missing\""];
    assert_says(&error, &["statement 2 (line 1) fails", "Later statements fail, too", third, fourth]);
}

#[test]
fn a_name_in_several_schemas_is_refused_and_with_its_schema_means_one() {
    let server = server(18);
    let schema = "CREATE SCHEMA old; CREATE TABLE \"Orders\" (id int PRIMARY KEY); CREATE TABLE old.\"Orders\" (id int PRIMARY KEY);";
    let migration = "ALTER TABLE \"Orders\" ADD a int; ALTER TABLE old.\"Orders\" ADD a int";
    let of = |rule: &str| request(schema, migration, Amount::Rules(vec![rule.parse().unwrap()]));
    for name in ["\"Orders\"", "Orders"] {
        let error = measured(&server, &of(&format!("{name}=500"))).unwrap_err();
        assert_says(&error.to_string(), &["several schemas", "\"old\".\"Orders\""]);
    }
    for name in ["public.\"Orders\"", "\"public\".\"Orders\""] {
        let outcome = measured(&server, &of(&format!("{name}=500"))).unwrap();
        let rows = |place: usize| outcome.statements[place].largest().unwrap().rows;
        assert_eq!(rows(0), 500);
        assert_ne!(rows(1), 500);
    }
}

#[test]
fn a_server_that_writes_no_wal_is_refused() {
    let server = Server::start(spec(18, &[("wal_level", "minimal"), ("max_wal_senders", "0")]));
    let error = measured(&server, &of_shop("SELECT 1")).unwrap_err();
    assert!(matches!(error, DdlError::WalLevel), "{error}");
    assert_eq!(left(&server), Vec::<String>::new());
    assert!(matches!(Script::of([]), Err(ScriptError::Empty)));
}
