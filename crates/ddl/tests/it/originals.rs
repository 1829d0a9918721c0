//! Tables that are read from a database.

use std::time::Duration;

use ddl::find::{Class, LockMode};
use ddl::{Amount, Observer, Plan, Probes, Probing, Request, Schema, Site, Statement, StatementOutcome};
use server::DataDirectory;
use testkit::{RELEASES, Server, assert_says, block_on, spec};

use crate::support::{measured, request, server};

const SHOP: &str = "
    CREATE TYPE state AS ENUM ('new');
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE FUNCTION one() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
    CREATE TABLE orders (id int PRIMARY KEY, note text, state state, n positive DEFAULT one());
    CREATE TABLE lines (id serial, number int GENERATED ALWAYS AS IDENTITY);
    CREATE TABLE parted (id int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
";
/// Objects beside the tables.
const OTHERS: &str = "
    CREATE SCHEMA \"Reports\";
    CREATE VIEW v_orders AS SELECT id FROM orders;
    CREATE VIEW \"Reports\".v AS SELECT id FROM v_orders;
    CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM orders;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER audit BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE TRIGGER each AFTER UPDATE ON parted FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE RULE quiet AS ON DELETE TO orders DO INSTEAD NOTHING;
    CREATE POLICY own ON orders;
";
/// Objects that no table uses.
const UNUSED: &str = "
    CREATE SCHEMA later;
    CREATE FUNCTION nothing() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN NULL; END';
    CREATE PROCEDURE done() LANGUAGE sql AS 'SELECT 1';
    CREATE AGGREGATE total(int) (sfunc = int4pl, stype = int, initcond = '0');
    CREATE TYPE mood AS ENUM ('good');
    CREATE SEQUENCE numbers;
    CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq);
    CREATE COLLATION plain (provider = libc, locale = 'C');
    CREATE TEXT SEARCH DICTIONARY words (template = simple);
    CREATE TEXT SEARCH CONFIGURATION texts (copy = simple);
    CREATE FOREIGN DATA WRAPPER elsewhere;
    CREATE SERVER other FOREIGN DATA WRAPPER elsewhere;
    CREATE PUBLICATION changes FOR TABLE orders;
    CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION nothing();
";

/// The copy has the tables alone.
#[test]
fn objects_that_a_copy_of_a_database_lacks_are_named() {
    for release in RELEASES {
        let server = server(release);
        block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(SHOP).await.unwrap();
            let schema = Schema::of_database(&connection, "shop").await.unwrap();
            assert_eq!(schema.unseen, Vec::<String>::new(), "{release}");
            connection.client.batch_execute(OTHERS).await.unwrap();
            let schema = Schema::of_database(&connection, "shop").await.unwrap();
            let [warning] = &schema.unseen[..] else { panic!("{release}: {:?}", schema.unseen) };
            let lacks = "the copy lacks 2 views, 1 materialized view, 2 triggers, 1 rule, 1 policy and 1 function of database shop";
            let names = "(\"Reports\".v, v_orders, counted, audit on orders, each on parted, quiet on orders, own on orders, nothing)";
            for part in [lacks, names, "pg_dump --schema-only"] {
                assert!(warning.contains(part), "{release}: {warning}");
            }
            connection.close().await;
        });
    }
}

/// A statement that names one of them fails, and says why. The schemas are there.
#[test]
fn a_statement_that_needs_what_the_copy_lacks_says_so() {
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(SHOP).await.unwrap();
            connection.client.batch_execute(UNUSED).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let [warning] = &schema.unseen[..] else { panic!("{release}: {:?}", schema.unseen) };
        let lacks = "1 function, 1 procedure, 1 aggregate, 1 type, 1 sequence, 1 operator, 1 collation, 1 text search configuration, \
                     1 text search dictionary, 1 foreign server, 1 publication and 1 event trigger of database shop";
        assert!(warning.contains(lacks), "{release}: {warning}");
        let of = |migration: &str| {
            let request = Request { schema: schema.clone(), ..request("", migration, Amount::Rows(100)) };
            measured(&server, &request)
        };
        for migration in [
            "ALTER TABLE orders ADD mood mood",
            "ALTER PUBLICATION changes DROP TABLE orders",
            "SELECT nextval('numbers')",
            "CALL done()",
            "ALTER EVENT TRIGGER noted DISABLE",
        ] {
            let error = of(migration).unwrap_err().to_string();
            assert_says(
                &error,
                &["statement 1 ", "pgrig copies only the tables of the original", "pg_dump --schema-only"],
            );
        }
        let made = of("CREATE TABLE later.made (id int)").unwrap();
        assert!(made.failed().next().is_none(), "{release}: {:#?}", made.statements);
    }
}

/// Keeps the plan.
#[derive(Default)]
struct Planned(Option<Plan>);

impl Observer for Planned {
    fn planned(&mut self, plan: &Plan) {
        self.0 = Some(plan.clone());
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

/// Later versions have values that earlier ones do not.
#[test]
fn a_value_that_the_server_does_not_accept_is_left_out() {
    let (original, measuring) = (server(18), server(13));
    original.sql("CREATE DATABASE shop");
    original.sql("ALTER DATABASE shop SET wal_compression = pglz");
    original.sql("ALTER DATABASE shop SET work_mem = '7MB'");
    block_on(async {
        let shop = original.connect("shop").await;
        let schema = "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1); ANALYZE";
        shop.client.batch_execute(schema).await.unwrap();
        let schema = Schema::of_database(&original.connect("shop").await, "shop").await.unwrap();
        let request = Request { schema, ..request("", "ALTER TABLE t ADD a int", Amount::Rows(100)) };
        let target = measuring.target("postgres");
        let site = Site { target: &target, directory: &DataDirectory::Asked, restarter: None, pgrig: "test" };
        let mut planned = Planned::default();
        let outcome =
            ddl::run(&site, &request, &mut planned, Box::pin(std::future::pending())).await.unwrap();
        assert!(outcome.statements[0].found.is_some(), "{outcome:#?}");
        let plan = planned.0.unwrap();
        assert!(plan.settings.contains(&("work_mem".to_owned(), "7MB".to_owned())), "{plan:#?}");
        let warnings = plan.warnings.join(" / ");
        let part = "the server that measures has wal_compression = off, the original pglz: the server that measures does not accept the original's value";
        assert!(warnings.contains(part), "{warnings}");
    });
}

/// An ordinary role measures on a newer server.
#[test]
fn settings_of_the_original_are_taken_over_as_far_as_the_role_may_set_them() {
    let (original, measuring) = (server(13), server(18));
    for sql in [
        "CREATE DATABASE shop",
        "ALTER DATABASE shop SET work_mem = '7MB'",
        "ALTER DATABASE shop SET wal_compression = on",
        "ALTER DATABASE shop SET search_path = '$user', \"My App\", public",
    ] {
        original.sql(sql);
    }
    measuring.sql("CREATE ROLE creator LOGIN CREATEDB");
    block_on(async {
        let shop = original.connect("shop").await;
        let schema = "CREATE SCHEMA \"My App\"; CREATE TABLE \"My App\".t (id int PRIMARY KEY, n int);
                      INSERT INTO \"My App\".t SELECT i, i FROM generate_series(1, 3000) i; ANALYZE";
        shop.client.batch_execute(schema).await.unwrap();
        let again = original.connect("shop").await;
        let schema = Schema::of_database(&again, "shop").await.unwrap();
        let request =
            Request { schema, ..request("", "ALTER TABLE t ADD CHECK (n > 0)", Amount::AsOriginal) };
        let target = measuring.target("postgres").with_user("creator");
        let site = Site { target: &target, directory: &DataDirectory::Asked, restarter: None, pgrig: "test" };
        let mut planned = Planned::default();
        let outcome =
            ddl::run(&site, &request, &mut planned, Box::pin(std::future::pending())).await.unwrap();
        assert_eq!(outcome.statements[0].found.as_ref().unwrap().class, Class::Scan, "{outcome:#?}");
        let plan = planned.0.unwrap();
        // Version 13 had other defaults.
        let taken = [
            ("effective_io_concurrency", "1"),
            ("hash_mem_multiplier", "1"),
            ("maintenance_io_concurrency", "10"),
            ("search_path", "\"$user\", \"My App\", public"),
            ("work_mem", "7MB"),
        ];
        assert_eq!(plan.settings, taken.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let warnings = plan.warnings.join(" / ");
        for part in [
            "the server that measures has wal_compression = off, the original on",
            "the original has PostgreSQL 13",
        ] {
            assert!(warnings.contains(part), "{warnings}");
        }
    });
}

/// Switches of the planner, and a level of WAL with which the server writes more.
#[test]
fn switches_of_the_planner_and_logical_wal_are_those_of_the_original() {
    for release in RELEASES {
        let original = Server::start(spec(release, &[("wal_level", "logical"), ("autovacuum", "off")]));
        let measuring = server(release);
        original.sql("CREATE DATABASE shop; ALTER DATABASE shop SET enable_nestloop = off");
        block_on(async {
            let shop = original.connect("shop").await;
            let table = "CREATE TABLE t (id int PRIMARY KEY, n int);
                         INSERT INTO t SELECT i, i FROM generate_series(1, 300) i; ANALYZE";
            shop.client.batch_execute(table).await.unwrap();
            let schema = Schema::of_database(&shop, "shop").await.unwrap();
            let request = Request { schema, ..request("", "ALTER TABLE t ADD a int", Amount::Rows(100)) };
            let target = measuring.target("postgres");
            let directory = &DataDirectory::Asked;
            let site = Site { target: &target, directory, restarter: None, pgrig: "test" };
            let mut planned = Planned::default();
            ddl::run(&site, &request, &mut planned, Box::pin(std::future::pending())).await.unwrap();
            let plan = planned.0.unwrap();
            let taken = [("enable_nestloop".to_owned(), "off".to_owned())];
            assert_eq!(plan.settings, taken, "{release}");
            let warnings = plan.warnings.join(" / ");
            let part = "the server that measures has wal_level = replica, the original logical";
            assert!(warnings.contains(part), "{release}: {warnings}");
        });
    }
}

/// Sessions of the original have its search_path, also those that read and write.
#[test]
fn readers_and_writers_find_tables_as_in_the_original() {
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE DATABASE shop; ALTER DATABASE shop SET search_path = app");
        let schema = block_on(async {
            let shop = server.connect("shop").await;
            let schema = "CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY, n int);
                          INSERT INTO app.orders SELECT i, i FROM generate_series(1, 3000) i; ANALYZE";
            shop.client.batch_execute(schema).await.unwrap();
            Schema::of_database(&shop, "shop").await.unwrap()
        });
        let statement = |sql: &str| Some(Probing::Statement(sql.to_owned()));
        let probes = Probes {
            read: statement("SELECT * FROM orders WHERE id = 7"),
            write: statement("UPDATE orders SET n = n WHERE id = 8"),
            blocker: None,
        };
        let migration = "BEGIN; ALTER TABLE orders ADD a int; SELECT pg_sleep(1); COMMIT";
        let request = Request { schema, probes: Some(probes), ..request("", migration, Amount::AsOriginal) };
        let outcome = measured(&server, &request).unwrap();
        let seen = outcome.probed.as_ref().unwrap();
        assert!(seen.stopped.is_empty(), "{release}: {seen:?}");
        let stall = outcome.statements[1].stall.as_ref().unwrap();
        let locked = [&stall.read, &stall.write].map(|wait| wait.as_ref().map_or(0.0, |wait| wait.lock));
        assert!(locked.iter().all(|seconds| *seconds > 0.5), "{release}: {stall:?}");
    }
}

/// Texts that replace those of a key would violate the CHECK of its domain, or its own.
#[test]
fn texts_of_keys_are_as_a_check_demands() {
    let original = "
        CREATE DOMAIN email AS text CHECK (VALUE ~ '@');
        CREATE TABLE customers (
            id int PRIMARY KEY, email email NOT NULL UNIQUE, code text UNIQUE CHECK (code ~ '^[A-Z]{2}-[0-9]+$')
        );
        CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers);
        INSERT INTO customers SELECT i, 'user' || i || '@example.com', 'AB-' || i FROM generate_series(1, 3000) i;
        INSERT INTO orders SELECT i, i % 3000 + 1 FROM generate_series(1, 3000) i;
        ANALYZE;
    ";
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(original).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let migration = "ALTER TABLE orders ADD a int; ALTER TABLE customers ADD CHECK (id > 0)";
        let request = Request { schema, ..request("", migration, Amount::AsOriginal) };
        let outcome = measured(&server, &request).unwrap();
        assert!(outcome.failed().next().is_none(), "{release}: {:#?}", outcome.statements);
        let has_rows = |one: &StatementOutcome| one.measured[0].rows > 1000;
        assert!(outcome.statements.iter().all(has_rows), "{release}: {:#?}", outcome.statements);
    }
}

/// NOT NULL of PostgreSQL 18 that is not as that of a column: named, not valid, of parents, of children.
const NOT_NULLS: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, n int, m int CONSTRAINT m_is_there NOT NULL, o int NOT NULL);
    INSERT INTO orders SELECT i, nullif(i % 2, 0), i, i FROM generate_series(1, 3000) i;
    ALTER TABLE orders ADD CONSTRAINT n_is_there NOT NULL n NOT VALID;
    CREATE TABLE ancestor (a int, b int);
    CREATE TABLE heir (c int, a int) INHERITS (ancestor);
    ALTER TABLE heir ADD CONSTRAINT b_is_there NOT NULL b;
    ALTER TABLE heir ADD CONSTRAINT c_is_there NOT NULL c NOT VALID;
    ALTER TABLE ancestor ADD CONSTRAINT a_is_there NOT NULL a NOT VALID;
    CREATE TABLE parted (k int, n int) PARTITION BY RANGE (k);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
    ALTER TABLE parted ADD CONSTRAINT parted_n_is_there NOT NULL n NOT VALID;
    ANALYZE;
";

#[test]
fn not_null_is_copied_with_its_name_and_validity() {
    let server = server(18);
    server.sql("CREATE DATABASE shop; CREATE DATABASE copy");
    let schema = block_on(async {
        let (shop, copy) = (server.connect("shop").await, server.connect("copy").await);
        shop.client.batch_execute(NOT_NULLS).await.unwrap();
        let facts =
            catalog::capture(&shop.client, None, None, catalog::TIMEOUT, &server::unwatched).await.unwrap();
        copy.client
            .batch_execute(&facts.ddl)
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {}", facts.ddl));
        let query = "SELECT string_agg(concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), conislocal, coninhcount),
                                       ' / ' ORDER BY conrelid::regclass::text, conkey)
                       FROM pg_constraint WHERE contype = 'n' AND conrelid >= 16384";
        let original: String = shop.client.query_one(query, &[]).await.unwrap().get(0);
        let copied: String = copy.client.query_one(query, &[]).await.unwrap().get(0);
        // Servers before 18 take no name for it.
        let without_name = original.replace("heir b_is_there", "heir heir_b_not_null");
        assert_ne!(without_name, original);
        assert_eq!(copied, without_name, "{}", facts.ddl);
        assert!(original.contains("orders n_is_there NOT NULL n NOT VALID"), "{original}");
        Schema::of_database(&shop, "shop").await.unwrap()
    });
    let migration =
        "ALTER TABLE orders VALIDATE CONSTRAINT n_is_there; ALTER TABLE orders DROP CONSTRAINT m_is_there";
    let request = Request { schema, ..request("", migration, Amount::AsOriginal) };
    let outcome = measured(&server, &request).unwrap();
    let found = |place: usize| outcome.statements[place].found.as_ref().unwrap();
    let classes = [found(0).class, found(1).class];
    assert_eq!(classes, [Class::Scan, Class::CatalogOnly], "{:#?}", outcome.statements);
    assert_eq!(found(0).strongest(), Some(LockMode::ShareUpdateExclusive));
}

/// NOT NULL of PostgreSQL 18 with a name, of columns that are inherited or not: an earlier server takes the copy.
#[test]
fn valid_not_nulls_with_names_are_copied_to_an_earlier_server() {
    let original = "
        CREATE TABLE orders (id int PRIMARY KEY, m int CONSTRAINT m_is_there NOT NULL);
        CREATE TABLE ancestor (a int, b int);
        CREATE TABLE heir (c int) INHERITS (ancestor);
        ALTER TABLE heir ADD CONSTRAINT b_is_there NOT NULL b;
    ";
    let (newer, earlier) = (server(18), server(RELEASES[0]));
    newer.sql("CREATE DATABASE shop");
    earlier.sql("CREATE DATABASE copy");
    block_on(async {
        let (shop, copy) = (newer.connect("shop").await, earlier.connect("copy").await);
        shop.client.batch_execute(original).await.unwrap();
        let facts =
            catalog::capture(&shop.client, None, None, catalog::TIMEOUT, &server::unwatched).await.unwrap();
        let copied = copy.client.batch_execute(&facts.ddl).await;
        copied.unwrap_or_else(|error| panic!("{error:?}: {}", facts.ddl));
        let query = "SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute \
                     WHERE attrelid IN ('orders'::regclass, 'heir'::regclass) AND attnum > 0 AND attnotnull";
        let columns: String = copy.client.query_one(query, &[]).await.unwrap().get(0);
        assert_eq!(columns, "b id m", "{}", facts.ddl);
    });
}

/// A function of a constraint calls one that no table names.
#[test]
fn a_constraint_with_objects_that_the_copy_lacks_gets_a_remedy() {
    for release in RELEASES {
        for body in
            ["LANGUAGE sql AS 'SELECT positive(x)'", "LANGUAGE plpgsql AS 'BEGIN RETURN positive(x); END'"]
        {
            let server = server(release);
            let schema = block_on(async {
                let connection = server.database().await.target.connect().await.unwrap();
                let tables = format!(
                    "CREATE FUNCTION positive(x int) RETURNS bool LANGUAGE sql AS 'SELECT x > 0';
                    CREATE FUNCTION valid(x int) RETURNS bool {body};
                    CREATE TABLE t (id int PRIMARY KEY, n int CHECK (valid(n)));
                    INSERT INTO t SELECT i, i FROM generate_series(1, 100) i; ANALYZE t;"
                );
                connection.client.batch_execute(&tables).await.unwrap();
                Schema::of_database(&connection, "shop").await.unwrap()
            });
            let request = Request { schema, ..request("", "ALTER TABLE t ADD z int", Amount::Rows(100)) };
            let error = measured(&server, &request).unwrap_err().to_string();
            let missing = "function positive(integer) does not exist";
            let remedy = "give --schema-file with the output of pg_dump --schema-only";
            assert_says(&error, &["database shop: ", missing, remedy]);
            assert!(!error.contains("--column"), "{release}: {error}");
        }
    }
}
