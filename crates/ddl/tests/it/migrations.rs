//! Migrations that could go wrong, on one server of the newest release; and what is left of them.

use std::time::Duration;

use ddl::find::{Class, Kind, LockMode};
use ddl::{
    Amount, DdlError, Observer, Outcome, Plan, Request, Script, ScriptError, Site, Statement, TableSize,
};
use server::DataDirectory;
use testkit::{RELEASES, Server, assert_says, block_on, spec};
use tokio::sync::oneshot;

use crate::support::{Unwatched, measured, request, server};

const SHOP: &str = "
    CREATE TABLE customers (id int PRIMARY KEY, name text);
    CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, note text);
    CREATE TABLE orders_log (id int, at timestamptz);
";

fn of(migration: &str) -> Request {
    request(SHOP, migration, Amount::Rows(100))
}

fn classes(outcome: &Outcome) -> Vec<Option<Class>> {
    outcome.statements.iter().map(|one| one.found.as_ref().map(|found| found.class)).collect()
}

fn databases(server: &Server) -> Vec<String> {
    block_on(async {
        let query = "SELECT datname::text FROM pg_database WHERE datname LIKE 'pgrig%' ORDER BY 1";
        let rows = server.connect("postgres").await.client.query(query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}

/// The look runs the body of a DO that commits twice, and its open transactions keep rows that UPDATE could replace, and VACUUM from
/// truncating a table for 5 s.
#[test]
fn what_the_look_disturbs_is_measured_apart() {
    let server = server(18);
    let costs = |migration: &str| {
        let outcome = measured(&server, &request(SHOP, migration, Amount::Rows(3000))).unwrap();
        let last = outcome.statements.last().unwrap();
        assert!(last.failed.is_none(), "{last:#?}");
        last.largest().unwrap().runs[0]
    };
    // A page that was written since the checkpoint needs no full image.
    let plain = costs("UPDATE orders SET note = 'new'").wal;
    let committing = costs("DO $$ BEGIN UPDATE orders SET note = 'new'; COMMIT; END $$").wal;
    assert!(committing * 10 > plain * 9, "{committing} B of {plain} B");
    // Each UPDATE puts its rows where those of the one before were: their page has space, and no snapshot is older.
    let space = |migration: &str| {
        let schema = "CREATE TABLE wide (id int, note text) WITH (fillfactor = 40)";
        let outcome = measured(&server, &request(schema, migration, Amount::Rows(20_000))).unwrap();
        outcome.statements[0].found.as_ref().unwrap().space.files
    };
    let once = space("DO $$ BEGIN UPDATE wide SET note = 'a'; COMMIT; END $$");
    let often =
        space("DO $$ BEGIN FOR i IN 1..8 LOOP UPDATE wide SET note = i::text; COMMIT; END LOOP; END $$");
    assert!(often < once + (1 << 20), "{often} B of eight transactions, {once} B of one");
    let vacuum = costs("DELETE FROM orders_log; VACUUM orders_log");
    assert!(vacuum.seconds < 5.0, "{vacuum:?}");
}

/// With a lock of somebody else on the table, it would wait for 5 s to truncate it.
#[test]
fn a_vacuum_with_a_limit_of_its_time_is_measured() {
    for release in RELEASES {
        let migration = "SET statement_timeout = '3s'; DELETE FROM orders_log; VACUUM orders_log";
        let outcome = measured(&server(release), &request(SHOP, migration, Amount::Rows(20_000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = outcome.statements[2].found.as_ref().unwrap();
        let of_vacuum = (Class::Scan, Some(LockMode::ShareUpdateExclusive));
        assert_eq!((found.class, found.strongest()), of_vacuum, "{release}: {found:?}");
    }
}

/// Its transactions end with their own counters; the server's have the same work.
#[test]
fn what_a_statement_that_commits_does_to_rows_is_counted() {
    let of = |body: &str| format!("DO $$ BEGIN {body}; COMMIT; END $$;");
    let migration = [
        "UPDATE orders SET note = 'old';".to_owned(),
        of("CREATE TABLE made (a int)"),
        of("UPDATE orders SET note = 'new'"),
        of("PERFORM count(note) FROM orders"),
        of("UPDATE orders SET note = 'one' WHERE id = (SELECT min(id) FROM orders)"),
        of("ALTER TABLE made ADD b int"),
        "SET track_counts = off;".to_owned(),
        of("UPDATE orders SET note = 'newest'"),
        of("DROP TABLE made"),
    ]
    .concat();
    for release in RELEASES {
        let outcome = measured(&server(release), &request(SHOP, &migration, Amount::Rows(3000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found: Vec<_> = outcome.statements.iter().filter_map(|one| one.found.as_ref()).collect();
        let classes: Vec<Class> = found.iter().map(|found| found.class).collect();
        let wanted = [
            Class::Rows,
            Class::CatalogOnly,
            Class::Rows,
            Class::Scan,
            Class::Rows,
            Class::CatalogOnly,
            // Not counted, but it took the lock.
            Class::Rows,
            Class::CatalogOnly,
        ];
        assert_eq!(classes, wanted, "{release}: {found:#?}");
        let updated = |place: usize| {
            let read = found[place].works[0].proof.read;
            read.map(|read| (read.inserted, read.updated, read.deleted))
        };
        assert_eq!(updated(2), Some((0, 3000, 0)), "{release}");
        assert_eq!(updated(4), Some((0, 1, 0)), "{release}");
        assert_eq!(updated(6), None, "{release}");
        // Its cost is that of the table's rows.
        assert_eq!(outcome.statements[2].tables, ["public.orders"], "{release}");
    }
}

/// pgrig's own locks, with which it sees those of others, would make it do nothing.
#[test]
fn a_vacuum_that_skips_locked_tables_finds_none() {
    for release in RELEASES {
        let migration =
            "DELETE FROM orders_log; VACUUM (SKIP_LOCKED) orders_log; VACUUM(SKIP_LOCKED,ANALYZE) orders;";
        let outcome = measured(&server(release), &of(migration)).unwrap();
        let wanted = [Class::Rows, Class::Scan, Class::Scan].map(Some);
        assert_eq!(classes(&outcome), wanted, "{release}: {:#?}", outcome.statements);
    }
}

/// VACUUM goes from table to table, each in a transaction of its own.
#[test]
fn a_vacuum_of_several_tables_locks_each() {
    let several = ["orders", "orders_log"];
    let all = ["customers", "orders", "orders_log"];
    for release in RELEASES {
        let migration = "
            VACUUM orders, orders_log;
            VACUUM (SKIP_LOCKED) orders, orders_log;
            VACUUM;
            VACUUM FULL orders, orders_log;";
        let outcome = measured(&server(release), &of(migration)).unwrap();
        for (place, mode, wanted) in [
            (0, LockMode::ShareUpdateExclusive, &several[..]),
            (1, LockMode::ShareUpdateExclusive, &several),
            (2, LockMode::ShareUpdateExclusive, &all),
            (3, LockMode::AccessExclusive, &several),
        ] {
            let found = outcome.statements[place].found.as_ref().unwrap();
            let locks = found.locks.iter().filter(|lock| lock.kind == Kind::Table && lock.mode == mode);
            let mut names: Vec<&str> = locks.map(|lock| lock.relation.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, wanted, "{release}, {place}: {found:#?}");
            assert_eq!(found.unknown_locks, None, "{release}, {place}");
        }
    }
}

/// DefineIndex (indexcmds.c) waits twice for lockers and once for older snapshots; ReindexRelationConcurrently (indexcmds.c) twice for lockers,
/// once for older snapshots, and twice before it drops the old index; index_drop (index.c) twice for lockers.
#[test]
fn each_phase_of_a_concurrent_statement_waits() {
    for release in RELEASES {
        let migration = "
            CREATE INDEX CONCURRENTLY i ON orders (note);
            REINDEX INDEX CONCURRENTLY i;
            DROP INDEX CONCURRENTLY i;";
        let outcome = measured(&server(release), &of(migration)).unwrap();
        let waits = outcome.statements.iter().map(|one| one.found.as_ref().unwrap().waits);
        assert_eq!(waits.collect::<Vec<_>>(), [3, 5, 2], "{release}: {:#?}", outcome.statements);
    }
}

/// The role may not lock one of the tables. What names its own table does not need that one.
#[test]
fn locks_that_pgrig_cannot_see_are_not_known() {
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE ROLE creator LOGIN CREATEDB");
        let schema = format!(
            "{SHOP} CREATE TABLE secret (id int); REVOKE ALL ON secret FROM creator; GRANT INSERT ON secret TO creator;"
        );
        let migration = "
            CREATE INDEX CONCURRENTLY i ON orders (note);
            DO $$ BEGIN UPDATE orders_log SET at = now(); COMMIT; END $$;";
        let outcome = block_on(async {
            let target = server.target("postgres").with_user("creator");
            let directory = &DataDirectory::Asked;
            let site = Site { target: &target, directory, restarter: None, pgrig: "test" };
            let request = request(&schema, migration, Amount::Rows(300));
            let interrupt = Box::pin(std::future::pending());
            ddl::run(&site, &request, &mut Unwatched, interrupt).await.unwrap()
        });
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let found = |place: usize| outcome.statements[place].found.as_ref().unwrap();
        assert_eq!(found(0).unknown_locks, None, "{release}");
        assert_eq!(found(0).strongest(), Some(LockMode::ShareUpdateExclusive), "{release}");
        assert_eq!(found(0).waits, 3, "{release}");
        let why = found(1).unknown_locks.as_deref().unwrap();
        assert_says(why, &["permission denied for table secret", "as a role that may lock all tables"]);
        // Its text names the table, which has rows therefore.
        assert_eq!(found(1).class, Class::Rows, "{release}");
        assert_eq!(outcome.statements[1].tables, ["public.orders_log"], "{release}");
    }
}

/// The run for what the look disturbs has a stage of its own.
#[test]
fn a_run_that_the_look_needs_has_a_stage() {
    struct Stages(Vec<String>);
    impl Observer for Stages {
        fn planned(&mut self, _: &Plan) {}
        fn stage(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn left(&mut self, _: Duration) {}
        fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    }
    let server = server(18);
    for (migration, is_disturbed) in
        [("VACUUM orders_log", true), ("ALTER TABLE orders_log ADD a int", false)]
    {
        let mut stages = Stages(Vec::new());
        block_on(async {
            let target = server.target("postgres");
            let directory = &DataDirectory::Asked;
            let site = Site { target: &target, directory, restarter: None, pgrig: "test" };
            let interrupt = Box::pin(std::future::pending());
            ddl::run(&site, &of(migration), &mut stages, interrupt).await.unwrap();
        });
        let is_told = stages.0.iter().any(|stage| stage == "timing the statements that the look disturbed");
        assert_eq!(is_told, is_disturbed, "{migration}: {:?}", stages.0);
    }
}

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
        &of("
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
    assert_eq!(databases(&server), Vec::<String>::new());

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
        // Rows of a table that the migration changes itself do not suit what it adds.
        (
            "BEGIN; UPDATE orders SET note = 'x'; ALTER TABLE orders ADD CHECK (id < 0); COMMIT",
            "is violated by some row",
            true,
        ),
        ("SELECT 1; SET ROLE pg_read_all_data; ALTER TABLE orders ADD a int", "must be owner", true),
        ("SELECT 1; SET statement_timeout = '50ms'; SELECT pg_sleep(60)", "statement timeout", true),
    ] {
        let outcome = measured(&server, &of(migration)).unwrap();
        let (one, failed) = outcome.failed().next().unwrap();
        assert_says(&failed.message, &[says]);
        assert!(failed.remedy.is_some() || !has_remedy, "{failed:?}");
        assert!(one.largest().is_none());
        let others = outcome.statements.iter().filter(|other| other.number != one.number);
        assert!(others.clone().all(|other| other.largest().is_some()), "{:#?}", others.collect::<Vec<_>>());
        assert_eq!(databases(&server), ["pgrig_ddl_0123456789abcde0"]);
    }

    interrupted(&server);
    assert_eq!(databases(&server), ["pgrig_ddl_0123456789abcde0"]);
}

/// The server names the column only for NOT NULL.
#[test]
fn the_remedy_names_the_columns_whose_values_do_not_suit() {
    let schema = "
        CREATE SCHEMA app;
        CREATE TABLE app.events (id int, at date, kind text, note text) PARTITION BY RANGE (at);
        CREATE TABLE app.events_2025 PARTITION OF app.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
        CREATE TABLE orders (id int PRIMARY KEY, state text, note text, at date);
        CREATE TABLE states (state text PRIMARY KEY);
    ";
    let server = server(18);
    // Rows that a migration changes itself do not suit.
    for (change, statement, says) in [
        (
            "UPDATE orders SET note = NULL",
            "ALTER TABLE orders ALTER note SET NOT NULL",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ADD CHECK (note <> 'x')",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ADD CHECK (note <> 'x' OR state = 'y')",
            "with --column 'orders.note=SPEC', or for orders.state",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "CREATE UNIQUE INDEX ON orders (note, upper(note))",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET note = 'x'",
            "ALTER TABLE orders ALTER note TYPE int USING note::int",
            "with --column 'orders.note=SPEC'",
        ),
        (
            "UPDATE orders SET state = 'x'",
            "ALTER TABLE orders ADD FOREIGN KEY (state) REFERENCES states",
            "with --column 'orders.state=SPEC'",
        ),
        (
            "UPDATE app.events SET note = 'x'",
            "ALTER TABLE app.events ADD CHECK (note <> 'x')",
            "with --column 'app.events.note=SPEC'",
        ),
        (
            "UPDATE app.events SET kind = NULL",
            "ALTER TABLE app.events_2025 ALTER kind SET NOT NULL",
            "with --column 'app.events.kind=SPEC'",
        ),
    ] {
        let request = request(schema, &format!("{change}; {statement}"), Amount::Rows(300));
        let outcome = measured(&server, &request).unwrap();
        let (_, failed) = outcome.failed().next().unwrap();
        let remedy = failed.remedy.as_deref().unwrap();
        assert!(remedy.ends_with(says), "{statement}: {remedy}");
    }
}

/// The rows before the migration do not have it, so no values of theirs help.
#[test]
fn a_new_column_that_existing_rows_cannot_have_is_told() {
    for release in RELEASES {
        let server = server(release);
        for (migration, says) in [
            (
                "ALTER TABLE orders ADD a int NOT NULL",
                "fails on every table with rows: give the new column a DEFAULT, or add it without NOT NULL",
            ),
            (
                "ALTER TABLE orders ADD slug text UNIQUE DEFAULT ''",
                "fill it with different values, then add the constraint",
            ),
            (
                "ALTER TABLE orders ADD c int DEFAULT 0 CHECK (c > 0)",
                "a DEFAULT that satisfies the constraint",
            ),
            (
                "ALTER TABLE orders ADD r int DEFAULT -1 REFERENCES customers",
                "a value that the other table lacks: give the new column another DEFAULT",
            ),
            (
                "ALTER TABLE orders ADD a int; ALTER TABLE orders ALTER a SET NOT NULL",
                "the migration itself adds a, for which --column gives no values: give it a DEFAULT, or fill it",
            ),
        ] {
            let outcome = measured(&server, &of(migration)).unwrap();
            let (_, failed) = outcome.failed().next().unwrap_or_else(|| panic!("{release}: {migration}"));
            let remedy = failed.remedy.as_deref().unwrap();
            assert_says(remedy, &[says]);
            assert!(!remedy.contains("=SPEC"), "{release}: {migration}: {remedy}");
        }
    }
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
        let request = of("SELECT 1; DO $$ BEGIN PERFORM pg_sleep(3600); END $$");
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
            ("CREATE TABLE orders (id int)", 1, "already exists"),
            ("DROP TABLE customers", 1, "depend"),
            (
                "CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY); ALTER TABLE made ALTER id TYPE numeric",
                2,
                "identity column type must be smallint, integer, or bigint",
            ),
        ] {
            let error = measured(&server, &of(migration)).unwrap_err();
            assert!(
                matches!(&error, DdlError::Statement { number: found, .. } if *found == number),
                "{release}: {error}"
            );
            assert_says(&error.to_string(), &[says]);
            assert!(!error.to_string().contains("--column"), "{release}: {error}");
            assert_eq!(failure::Classified::class(&error), failure::Class::Request);
        }
        assert_eq!(databases(&server), Vec::<String>::new());
    }
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
    let error = measured(&server, &of("SELECT 1")).unwrap_err();
    assert!(matches!(error, DdlError::WalLevel), "{error}");
    assert_eq!(databases(&server), Vec::<String>::new());
    assert!(matches!(Script::of([]), Err(ScriptError::Empty)));
}

#[test]
fn tables_that_the_migration_uses_get_rows_that_suit_it() {
    let server = server(18);
    let schema = "
        CREATE TABLE regions (id int PRIMARY KEY);
        CREATE TABLE customers (id int PRIMARY KEY, region_id int NOT NULL REFERENCES regions, email text, age text, code varchar(40));
        CREATE TABLE orders (id int PRIMARY KEY, customer_id int, state text);
        CREATE TABLE lines (order_id int NOT NULL REFERENCES orders ON DELETE CASCADE, n int);
        CREATE TABLE audit (id int, at timestamptz);
        CREATE TABLE xml_only (x xml NOT NULL CHECK (x IS DOCUMENT AND x::text ~ 'never'));
        CREATE TYPE mood AS ENUM ('good', 'bad');
        CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE audit SET at = now(); RETURN OLD; END';
        CREATE TRIGGER noted AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION noted();
    ";
    let migration = "
        ALTER TABLE customers ALTER email SET NOT NULL;
        ALTER TABLE customers ADD UNIQUE (email);
        ALTER TABLE customers ADD CHECK (length(code) > 0);
        ALTER TABLE customers ALTER age TYPE int USING age::int, ALTER code TYPE varchar(8);
        DELETE FROM orders WHERE id < 10;
        SET search_path = pg_catalog;
        ALTER TABLE public.customers ADD CONSTRAINT made CHECK (age >= 0);
    ";
    let outcome = measured(&server, &request(schema, migration, Amount::Rows(500))).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let rows = |number: usize| outcome.statements[number - 1].largest().unwrap().rows;
    assert_eq!((rows(1), rows(2)), (500, 500));
    // Deleting an order also deletes its lines; the trigger's table was found too late.
    assert!(
        outcome.statements[4].tables.contains(&"public.lines".to_owned()),
        "{:?}",
        outcome.statements[4].tables
    );
    assert_eq!(outcome.unfilled, [("public.audit".to_owned(), 5)]);
}

/// Rules of columns that the migration renames, of domains, and with EXCLUDE.
#[test]
fn rows_suit_rules_of_renamed_columns_and_of_domains() {
    struct Suited(Vec<String>);
    impl Observer for Suited {
        fn planned(&mut self, plan: &Plan) {
            self.0.clone_from(&plan.suited);
        }
        fn stage(&mut self, _: &str) {}
        fn left(&mut self, _: Duration) {}
        fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    }
    let schema = "
        CREATE DOMAIN grade AS int;
        CREATE TABLE orders (id int PRIMARY KEY, amount int, note text, grade grade, code int, CHECK (amount < 1000000));";
    let migration = "
        ALTER TABLE orders RENAME amount TO total;
        ALTER TABLE orders ADD CHECK (total > 0);
        ALTER TABLE orders RENAME note TO remark;
        ALTER TABLE orders ALTER remark SET NOT NULL;
        ALTER TABLE orders ADD UNIQUE (remark);
        ALTER DOMAIN grade ADD CHECK (VALUE BETWEEN 1 AND 5);
        ALTER DOMAIN grade SET NOT NULL;
        ALTER TABLE orders ADD EXCLUDE USING btree (code WITH =);";
    for release in RELEASES {
        let server = server(release);
        let mut suited = Suited(Vec::new());
        let outcome = block_on(async {
            let target = server.target("postgres");
            let directory = &DataDirectory::Asked;
            let site = Site { target: &target, directory, restarter: None, pgrig: "test" };
            let request = request(schema, migration, Amount::Rows(500));
            let interrupt = Box::pin(std::future::pending());
            ddl::run(&site, &request, &mut suited, interrupt).await.unwrap()
        });
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        // Not the rule that the table had before.
        assert_eq!(suited.0.len(), 6, "{release}: {:#?}", suited.0);
        for part in
            ["(total > 0)", "remark SET NOT NULL", "UNIQUE (remark)", "ALTER DOMAIN public.grade", "EXCLUDE"]
        {
            assert!(suited.0.iter().any(|one| one.contains(part)), "{release}: {part}: {:#?}", suited.0);
        }
    }

    // A remedy has the name that --column takes.
    let migration = "
        UPDATE orders SET note = NULL;
        ALTER TABLE orders RENAME note TO remark;
        ALTER TABLE orders ALTER remark SET NOT NULL;";
    let outcome = measured(&server(18), &request(schema, migration, Amount::Rows(300))).unwrap();
    let (_, failed) = outcome.failed().next().unwrap();
    assert_says(failed.remedy.as_deref().unwrap(), &["with --column 'orders.note=SPEC'"]);
}
