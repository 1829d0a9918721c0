//! `pgrig fill --ddl` by COPY: foreign keys and indexes are made after the rows, as the SQL has them.

use std::fs;

use nix::sys::signal::Signal;
use testkit::until;

use crate::support::{Rig, Server};

/// Constraints and indexes that can be made again from their definition, and some that cannot.
const SQL: &str = "
    CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE, code int NOT NULL UNIQUE,
        name text, born date, UNIQUE (name, born) DEFERRABLE INITIALLY DEFERRED);
    CREATE UNIQUE INDEX \"Odd \"\"name\" ON customers (name DESC NULLS LAST, email) INCLUDE (born) WITH (fillfactor = 70);
    CREATE INDEX by_lower ON customers (lower(name));
    ALTER INDEX by_lower ALTER COLUMN 1 SET STATISTICS 500;
    CREATE INDEX noted ON customers (born);
    COMMENT ON INDEX noted IS 'kept';
    CREATE INDEX clustered ON customers (born, name);
    ALTER TABLE customers CLUSTER ON clustered;
    CREATE TABLE orders (id int PRIMARY KEY, customer bigint NOT NULL REFERENCES customers ON DELETE CASCADE,
        code int REFERENCES customers (code), before int REFERENCES orders, note text,
        EXCLUDE USING btree (id WITH =));
    CREATE INDEX ON orders (customer) WHERE note IS NOT NULL;
    CREATE INDEX ON orders USING hash (note);
    CREATE INDEX ON orders USING brin (id);
    CREATE UNIQUE INDEX identifying ON orders (id, customer);
    ALTER TABLE orders REPLICA IDENTITY USING INDEX identifying;
    ALTER TABLE orders ADD CONSTRAINT unproved FOREIGN KEY (customer) REFERENCES customers NOT VALID;
    ALTER TABLE orders ADD CONSTRAINT noted FOREIGN KEY (customer) REFERENCES customers;
    COMMENT ON CONSTRAINT noted ON orders IS 'kept too';
    CREATE TABLE items (\"order\" int REFERENCES orders DEFERRABLE, line smallint, customer bigint, amount int, PRIMARY KEY (\"order\", line));
    CREATE INDEX ON items (amount);
    CREATE TABLE one (id uuid PRIMARY KEY, other int);
    CREATE TABLE other (id int PRIMARY KEY, one uuid REFERENCES one);
    ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES other;
    CREATE TABLE visits (at date NOT NULL, customer bigint REFERENCES customers) PARTITION BY RANGE (at);
    CREATE TABLE visits_all PARTITION OF visits DEFAULT;
    CREATE INDEX ON visits (customer);
";

/// All constraints and indexes, and what is said of them.
fn definitions(rig: &Rig, url: &str) -> Vec<String> {
    let query = "
        SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated, condeferred,
                         obj_description(oid, 'pg_constraint'))
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
         UNION ALL
        SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisclustered, indisreplident, indisvalid,
                         obj_description(indexrelid, 'pg_class'),
                         (SELECT string_agg(attstattarget::text, ' ') FROM pg_attribute WHERE attrelid = indexrelid))
          FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
         ORDER BY 1";
    let client = rig.connect(url);
    rig.block_on(client.query(query, &[])).unwrap().iter().map(|row| row.get(0)).collect()
}

/// Constraints and indexes that the SQL alone makes, in a database of its own.
fn expected(rig: &Rig, server: &Server<'_>) -> Vec<String> {
    server.execute("CREATE DATABASE plain");
    let url = server.url.replace("/postgres?", "/plain?");
    rig.block_on(rig.connect(&url).batch_execute(SQL)).unwrap();
    definitions(rig, &url)
}

fn script(rig: &Rig) -> String {
    let path = rig.home.path().join("schema.sql");
    fs::write(&path, SQL).unwrap();
    path.display().to_string()
}

fn assert_filled(rig: &Rig, server: &Server<'_>, expected: &[String]) {
    assert_eq!(definitions(rig, &server.url), expected);
    for table in ["customers", "orders", "items", "one", "other", "visits"] {
        assert_eq!(server.number(&format!("SELECT count(*) FROM {table}")), 20_000, "{table}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

#[test]
fn what_is_made_after_the_rows_is_what_the_sql_says() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let expected = expected(&rig, &server);
        let fill = format!("fill --ddl {} --rows 20000 --method copy", script(&rig));
        let document = rig.document(&fill);
        let reasons = |name: &str| {
            let tables = document["plan"]["tables"].as_array().unwrap();
            let table = tables.iter().find(|table| table["name"] == name).unwrap();
            table["state"]["to-fill"]["reasons"].to_string()
        };
        for table in ["customers", "orders", "items", "one"] {
            let made = "keys, foreign keys and indexes are created after the rows";
            assert!(reasons(table).contains(made), "{}", reasons(table));
        }
        // Those of partitions come from their table.
        assert!(reasons("visits").contains("row by row: the table is partitioned"), "{}", reasons("visits"));
        assert_filled(&rig, &server, &expected);
    }
}

#[test]
fn what_was_not_made_is_made_by_the_same_command() {
    let rig = Rig::new();
    let server = rig.server("");
    let expected = expected(&rig, &server);
    let fill = format!("fill --ddl {} --rows 20000 --method copy", script(&rig));
    let pgrig = rig.spawn(&fill);
    until("rows are there", || server.number("SELECT count(to_regclass('customers'))") > 0);
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    assert!(definitions(&rig, &server.url).len() < expected.len());
    // Whatever would take the tables as they are says what is missing.
    let refused = rig.run("fill --all-tables --rows 10 --no-resume");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    for part in ["public.orders", "foreign keys and indexes of", "repeat the command that began it"] {
        assert!(refused.stderr.contains(part), "{refused:#?}");
    }
    // Keys and indexes wait for locks of other sessions; rows do not.
    for table in ["customers", "orders"] {
        let gate = rig.connect(&server.url);
        rig.block_on(gate.batch_execute(&format!("BEGIN; LOCK TABLE {table} IN ROW EXCLUSIVE MODE")))
            .unwrap();
        let pgrig = rig.spawn(&fill);
        until("a constraint or an index is to be made", || {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ '^(ALTER TABLE .* ADD|CREATE)'";
            server.number(waiting) > 0
        });
        pgrig.signal(Signal::SIGKILL);
        pgrig.end();
    }
    rig.done(&fill);
    assert_filled(&rig, &server, &expected);
}

#[test]
fn a_fill_that_is_given_up_leaves_tables_that_can_be_dropped() {
    let rig = Rig::new();
    let server = rig.server("");
    let expected = expected(&rig, &server);
    let fill = format!("fill --ddl {} --rows 20000 --method copy", script(&rig));
    let pgrig = rig.spawn(&fill);
    until("tables are there", || server.number("SELECT count(to_regclass('customers'))") > 0);
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stderr.contains("To complete the fill, repeat the command"), "{ran:#?}");
    server.execute("DROP TABLE customers, orders, items, one, other, visits CASCADE");
    rig.done(&format!("{fill} --no-resume"));
    assert_filled(&rig, &server, &expected);
}

/// Tables that nothing keeps from being emptied and loaded in one transaction.
const ALONE: &str = "
    CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE NOT NULL, meta jsonb, tags text[]);
    CREATE TABLE products (id int PRIMARY KEY, sku text NOT NULL UNIQUE);
    CREATE TABLE orders (id int PRIMARY KEY, customer bigint NOT NULL REFERENCES customers, before int REFERENCES orders, placed date);
    CREATE INDEX ON orders (placed);
    CREATE TABLE items (\"order\" int REFERENCES orders, line smallint, product int NOT NULL REFERENCES products,
        PRIMARY KEY (\"order\", line));
    CREATE TABLE notes (id int PRIMARY KEY, body text, customer bigint REFERENCES customers ON DELETE SET NULL);
";

/// The rows of all tables.
fn sums(server: &Server<'_>) -> Vec<(i64, i64)> {
    let of = |table| {
        let row = server.row(&format!(
            "SELECT count(*), coalesce(sum(hashtext(t::text)::bigint), 0)::bigint FROM {table} t"
        ));
        (row.get(0), row.get(1))
    };
    ["customers", "products", "orders", "items", "notes"].map(of).to_vec()
}

#[test]
fn tables_that_are_loaded_whole_and_side_by_side_are_those_of_chunks() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let path = rig.home.path().join("alone.sql");
        fs::write(&path, ALONE).unwrap();
        let fill = format!("fill --ddl {} --rows 30000 --method copy", path.display());
        let drop = "DROP TABLE customers, products, orders, items, notes";
        let methods = |document: &serde_json::Value| {
            let tables = document["plan"]["tables"].as_array().unwrap();
            tables.iter().map(|table| table["state"]["to-fill"]["method"].clone()).collect::<Vec<_>>()
        };
        // --streams says how many sessions load a table, so each comes chunk by chunk.
        let chunks = rig.document(&format!("{fill} --streams 2"));
        assert!(methods(&chunks).iter().all(|method| method == "chunked-copy"), "{chunks:#}");
        let (rows, made) = (sums(&server), definitions(&rig, &server.url));
        server.execute(drop);
        let whole = rig.document(&fill);
        assert!(methods(&whole).iter().all(|method| method == "frozen-copy"), "{whole:#}");
        assert_eq!((sums(&server), definitions(&rig, &server.url)), (rows.clone(), made.clone()));
        server.execute(drop);

        // Killed at the beginning, while one table waits to be emptied and all others are filled, and at a foreign key.
        let kill_at = |is_reached: &str| {
            let pgrig = rig.spawn(&fill);
            until("it is where it is killed", || server.number(is_reached) > 0);
            pgrig.signal(Signal::SIGKILL);
            pgrig.end();
        };
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~";
        kill_at("SELECT count(to_regclass('customers'))");
        for (lock, is_reached) in [
            (
                "items IN ACCESS SHARE",
                format!(
                    "{waits} '^(LOCK|ALTER) TABLE' AND (SELECT count(*) FROM pgrig_schema_fill WHERE is_filled) = 4"
                ),
            ),
            ("orders IN ROW EXCLUSIVE", format!("{waits} 'FOREIGN KEY'")),
        ] {
            let gate = rig.connect(&server.url);
            rig.block_on(gate.batch_execute(&format!("BEGIN; LOCK TABLE {lock} MODE"))).unwrap();
            kill_at(&is_reached);
        }
        rig.done(&fill);
        assert_eq!((sums(&server), definitions(&rig, &server.url)), (rows, made));
        assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    }
}
