//! `pgrig fill` of all tables of a schema by one command.

use std::fs;

use crate::support::{Rig, Server};
use nix::sys::signal::Signal;
use testkit::until;

pub(super) const SHOP: &str = "
    create type status as enum ('active', 'blocked', 'closed');
    create table order_items_log(note text);
    create table customers(id bigint generated always as identity primary key, email text unique not null,
        name varchar(80) not null, created_at timestamptz not null default now(),
        status status not null default 'active', credit numeric(10,2) check (credit >= 0), meta jsonb);
    create table products(id int primary key, sku text not null unique, title text not null,
        price numeric(8,2) not null check (price > 0), tags text[]);
    create table orders(id bigint generated always as identity primary key,
        customer_id bigint not null references customers, placed_at timestamptz not null default now(),
        shipped_at timestamptz check (shipped_at is null or shipped_at >= placed_at), status status not null);
    create index on orders(customer_id);
    create index on orders(placed_at);
    create table order_items(order_id bigint references orders, line smallint,
        product_id int not null references products, quantity int not null check (quantity between 1 and 100),
        price numeric(8,2) not null, primary key(order_id, line));
    create materialized view revenue as select product_id, sum(quantity * price) from order_items group by 1;
";

/// A file with this SQL.
pub(super) fn script(rig: &Rig, sql: &str) -> String {
    let path = rig.home.path().join("schema.sql");
    fs::write(&path, sql).unwrap();
    path.display().to_string()
}

/// Adds every foreign key again, so that the server looks at all rows.
pub(super) fn assert_valid(server: &Server<'_>) {
    let keys = server.rows(
        "SELECT conrelid::regclass::text AS of, pg_get_constraintdef(oid) AS definition, convalidated
           FROM pg_constraint WHERE contype = 'f'",
    );
    assert!(!keys.is_empty());
    for key in &keys {
        assert!(key.get::<_, bool>("convalidated"));
        let (of, definition): (String, String) = (key.get("of"), key.get("definition"));
        server.execute(&format!("ALTER TABLE {of} ADD CONSTRAINT again {definition}"));
        server.execute(&format!("ALTER TABLE {of} DROP CONSTRAINT again"));
    }
}

pub(super) fn assert_nothing_of_pgrig(server: &Server<'_>) {
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

pub(super) fn rows_of(server: &Server<'_>, table: &str) -> i64 {
    server.number(&format!("SELECT count(*) FROM {table}"))
}

fn shop(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    let ddl = script(&rig, SHOP);
    let rows = "--rows customers=500,products=100,orders=3*customers,order_items=2*orders,order_items_log=7";
    let document = rig.document(&format!("fill --ddl {ddl} {rows} -q"));
    for (table, rows) in [
        ("customers", 500),
        ("products", 100),
        ("orders", 1500),
        ("order_items", 3000),
        ("order_items_log", 7),
    ] {
        assert_eq!(rows_of(&server, table), rows, "{table}");
    }
    assert_valid(&server);
    assert_nothing_of_pgrig(&server);
    assert!(rows_of(&server, "revenue") > 0, "a materialized view is refreshed");
    assert_eq!(
        server.number("SELECT count(DISTINCT order_id) FROM order_items"),
        1500,
        "every order has items"
    );
    let whole = document["trials"].as_array().unwrap().iter().find(|trial| trial["config"] == "all tables");
    assert_eq!(whole.unwrap()["observations"][1]["value"], 5107.0, "{document:#}");
    assert_eq!(document["trials"].as_array().unwrap().len(), 6);

    let again = rig.run("fill --all-tables --rows 10");
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert!(again.stderr.contains("has rows"), "{again:#?}");
    rig.done("fill --all-tables --append --rows 100 --exclude-table products -q");
    assert_eq!(rows_of(&server, "customers"), 600);
    assert_eq!(rows_of(&server, "products"), 100);
    assert_eq!(rows_of(&server, "order_items"), 3100);
}

#[test]
fn all_tables_are_filled_in_the_order_of_their_foreign_keys_13() {
    shop("--pg-version 13");
}

#[test]
fn all_tables_are_filled_in_the_order_of_their_foreign_keys_18() {
    shop("");
}

#[test]
fn a_size_is_met_by_all_tables_together() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, SHOP);
    for method in ["direct", "copy"] {
        let ran = rig.done(&format!("fill 100MB --ddl {ddl} --schema {method} --method {method}"));
        let bytes = server.number(&format!(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
              WHERE relkind = 'r' AND relnamespace = '{method}'::regnamespace"
        ));
        assert!((98_000_000..=102_000_000).contains(&bytes), "{bytes}: {ran:#?}");
        assert!(ran.stdout.contains("% of 100 MB"), "{ran:#?}");
    }
}

/// COPY adds rows to indexes that CREATE INDEX has packed: their leaves split, nearly all at the same time.
fn rows_are_added_until_a_size_is_reached(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    let ddl = script(&rig, SHOP);
    rig.done(&format!("fill 200MB --ddl {ddl} -q"));
    let bytes = || {
        server.number(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
              WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'pgrig%'",
        )
    };
    let before = bytes();
    let fill = "fill 100MB --all-tables --append --exclude-table order_items_log";
    let pgrig = rig.spawn(fill);
    let begun = "SELECT count(*) FROM pg_class WHERE relname = 'pgrig_chunks_order_items'";
    until("the last table is being filled", || server.number(begun) == 1);
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    let completed = rig.done(fill);
    let grown = bytes() - before;
    assert!((98_000_000..=102_000_000).contains(&grown), "{grown}: {completed:#?}");
    // Leaves that have just split take many keys before they split again, and then they split all at once, unless their keys
    // are merged.
    for _ in 0..2 {
        let before = bytes();
        let ran = rig.done(fill);
        let grown = bytes() - before;
        assert!((98_000_000..=102_000_000).contains(&grown), "{grown}: {ran:#?}");
        assert!(ran.stdout.contains("% of 100 MB"), "{ran:#?}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_extension WHERE extname = 'pageinspect'"), 0);
    assert_valid(&server);
    assert_nothing_of_pgrig(&server);
}

#[test]
fn rows_are_added_until_a_size_is_reached_13() {
    rows_are_added_until_a_size_is_reached("--pg-version 13");
}

#[test]
fn rows_are_added_until_a_size_is_reached_18() {
    rows_are_added_until_a_size_is_reached("");
}

#[test]
fn tables_that_reference_each_other() {
    let rig = Rig::new();
    let server = rig.server("");
    let cycle = "create table a(id int primary key, b int{1}); create table b(id int primary key, a int not null references a);
                alter table a add foreign key (b) references b;";
    // A key of the cycle is created after the rows.
    for (method, b, with_b) in
        [("direct", " not null", 50), ("copy", " not null", 50), ("direct", "", 48), ("copy", "", 48)]
    {
        let ddl = script(&rig, &cycle.replace("{1}", b));
        rig.done(&format!("fill --ddl {ddl} --rows 50 --method {method} -q"));
        assert_eq!((rows_of(&server, "a"), rows_of(&server, "b")), (50, 50));
        assert_eq!(server.number("SELECT count(b) FROM a"), with_b);
        let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND confrelid <> conrelid AND convalidated";
        assert_eq!(server.number(keys), 2);
        assert_valid(&server);
        server.execute("DROP TABLE a, b CASCADE");
    }
    // Two tables one to one: the key that comes later takes the other table's keys in turn.
    let one_to_one = script(
        &rig,
        "create table c(id int primary key, d int not null unique);
         create table d(id uuid primary key default gen_random_uuid(), n int unique not null, c int not null unique references c);
         alter table c add foreign key (d) references d(n);",
    );
    for method in ["direct", "copy"] {
        rig.done(&format!("fill --ddl {one_to_one} --rows 50 --method {method} -q"));
        // Once more: the new rows reference new rows.
        rig.done("fill --all-tables --append --rows 30 -q");
        assert_eq!((rows_of(&server, "c"), rows_of(&server, "d")), (80, 80));
        assert_valid(&server);
        server.execute("DROP TABLE c, d CASCADE");
    }
    let refused = rig.run(&format!("fill --ddl {one_to_one} --rows c=60,d=50"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("public.c has room for 50 rows, not 60"), "{refused:#?}");
    // A computed column can neither be NULL nor come later, and two columns of c would have to be copies of one.
    let shared = script(
        &rig,
        "create table c(id int primary key, d int generated always as (id) stored);
         create table d(id int primary key references c);
         alter table c add foreign key (d) references d;",
    );
    let refused = rig.run(&format!("fill --ddl {shared} --rows 50"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(["public.c", "public.d"].iter().all(|name| refused.stderr.contains(name)), "{refused:#?}");
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname IN ('c', 'd')"), 0);
    // Where NULL is not allowed, the first row references itself.
    server.execute("CREATE TABLE nodes (id uuid PRIMARY KEY, parent uuid NOT NULL REFERENCES nodes)");
    for method in ["direct", "copy"] {
        rig.done(&format!("fill --rows 500 --table nodes --method {method} -q"));
        assert_eq!(server.number("SELECT count(*) FROM nodes WHERE parent = id"), 1);
        assert!(server.number("SELECT count(DISTINCT parent) FROM nodes") > 200);
        server.execute("TRUNCATE nodes");
    }
    assert_valid(&server);
}

/// A table that references itself is a forest, whatever its keys: each row is below a row that references nothing.
#[test]
fn rows_reference_earlier_rows() {
    let trees = "create table by_number(id serial primary key, parent int references by_number, t text);
        create table by_identity(id bigint generated always as identity (start 100 increment 5) primary key,
            parent bigint references by_identity on delete cascade);
        create table by_name(code varchar(12) primary key, parent varchar(12) references by_name);
        create table by_both(a uuid, b smallint, a_parent uuid, b_parent smallint, primary key (a, b),
            foreign key (a_parent, b_parent) references by_both match full);
        -- Other constraints decide, so that the column is NULL, or the row's own key.
        create table ordered(id int primary key, parent int references ordered check (parent > 5000));
        create table one_below(id int primary key, parent int unique references one_below);
        create table within(tenant int, id int, parent int, primary key (tenant, id),
            foreign key (tenant, parent) references within);
        create table within_other(tenant int, id int, parent int not null, primary key (tenant, id),
            foreign key (tenant, parent) references within_other);";
    let keys =
        [("by_number", "id", "parent"), ("by_identity", "id", "parent"), ("by_name", "code", "parent")];
    let below = |table: &str, key: &str, parent: &str| {
        format!(
            "WITH RECURSIVE below AS (SELECT {key} AS key FROM {table} WHERE ({parent}) IS NULL UNION ALL
                SELECT {key} FROM {table} t JOIN below ON ({parent}) = below.key) SELECT count(*) FROM below"
        )
    };
    for (version, method, create) in
        [("", "direct", true), ("--pg-version 13", "copy", true), ("", "copy", false), ("", "direct", false)]
    {
        let rig = Rig::new();
        let server = rig.server(version);
        let (from, again) = if create {
            let from = format!("--ddl {}", script(&rig, trees));
            (from, String::from("--all-tables"))
        } else {
            server.execute(trees);
            (String::from("--all-tables"), String::from("--all-tables"))
        };
        rig.done(&format!("fill {from} --rows 4000 --method {method} -q"));
        for more in [0, 1000] {
            if more > 0 {
                rig.done(&format!("fill {again} --rows {more} --append -q"));
            }
            for (table, key, parent) in keys {
                assert_eq!(server.number(&below(table, key, parent)), 4000 + more, "{method} {table}");
                let roots = server.number(&format!("SELECT count(*) FROM {table} WHERE {parent} IS NULL"));
                assert!((100..500).contains(&roots), "{method} {table}: {roots}");
            }
            let both = "WITH RECURSIVE below AS (SELECT a, b FROM by_both WHERE a_parent IS NULL UNION ALL
                    SELECT t.a, t.b FROM by_both t JOIN below ON (a_parent, b_parent) = (below.a, below.b))
                SELECT count(*) FROM below";
            assert_eq!(server.number(both), 4000 + more, "{method}");
        }
        // The next value is not there yet.
        server.execute("INSERT INTO by_number (t) VALUES ('next'); INSERT INTO by_identity DEFAULT VALUES");
        assert_eq!(server.number("SELECT count(parent) FROM ordered"), 0);
        assert_eq!(server.number("SELECT count(*) FROM within_other WHERE parent <> id"), 0);
        assert_valid(&server);
    }
}

#[test]
fn keys_of_all_kinds_are_referenced_before_they_are_there() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table countries(code char(2) primary key);
         create table tenants(id uuid primary key default gen_random_uuid(), name text not null unique);
         create table users(tenant uuid references tenants, number int, primary key (tenant, number));
         create table profiles(tenant uuid, number int, country char(2) references countries,
             primary key (tenant, number), foreign key (tenant, number) references users);
         create table notes(id serial primary key, tenant uuid not null references tenants, number int not null,
             parent int references notes, author text references tenants(name),
             foreign key (tenant, number) references users);",
    );
    rig.done(&format!("fill --ddl {ddl} --rows 300 -q"));
    for table in ["countries", "tenants", "users", "profiles", "notes"] {
        assert_eq!(rows_of(&server, table), 300, "{table}");
    }
    assert_valid(&server);
}

#[test]
fn unlogged_tables_and_a_schema_of_their_own() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, SHOP);
    rig.done(&format!("fill --ddl {ddl} --schema shop --unlogged --rows 100 -q"));
    let logged = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p'
                     AND relnamespace = 'shop'::regnamespace";
    assert_eq!(server.number(logged), 0);
    assert_eq!(rows_of(&server, "shop.orders"), 100);
}

#[test]
fn a_table_that_the_sql_gives_rows_keeps_them() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table schema_migrations(version varchar primary key);
         create table nothing(); create table later(day date) partition by range (day);
         create table countries(code char(2) primary key); create table cities(id int primary key, country char(2) not null references countries);
         insert into countries values ('DE'), ('FR'); insert into schema_migrations values ('1');",
    );
    for (schema, method) in [("pages", "auto"), ("copied", "copy")] {
        let ran = rig.done(&format!("fill --ddl {ddl} --schema {schema} --method {method} --rows 200"));
        let said = format!("{schema}.countries is left out: --ddl inserts its rows");
        assert!(ran.stderr.contains(&said), "{ran:#?}");
        for left_out in ["nothing is left out: it has no columns", "later is left out: it has no partition"] {
            assert!(ran.stderr.contains(left_out), "{ran:#?}");
        }
        assert_eq!(rows_of(&server, &format!("{schema}.schema_migrations")), 1);
        assert_eq!(
            rows_of(&server, &format!("{schema}.cities JOIN {schema}.countries ON code = country")),
            200
        );
    }
}

#[test]
fn a_materialized_view_that_fails_on_the_rows_stays_unpopulated() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table codes(id int primary key, code text not null);
         create materialized view totals as select id, code::int as c from codes;
         create materialized view counted as select count(*) from codes;",
    );
    let ran = rig.done(&format!("fill --ddl {ddl} --rows 200"));
    for said in
        ["materialized view public.totals stays unpopulated", "run REFRESH MATERIALIZED VIEW public.totals"]
    {
        assert!(ran.stderr.contains(said), "{ran:#?}");
    }
    let populated = "SELECT count(*) FROM pg_matviews WHERE ispopulated AND matviewname = ";
    assert_eq!(server.number(&format!("{populated}'totals'")), 0);
    assert_eq!(server.number(&format!("{populated}'counted'")), 1);
    assert_eq!(server.number("SELECT count FROM counted"), 200);
    assert_nothing_of_pgrig(&server);
    rig.done(&format!("fill --ddl {ddl} --schema serial --column codes.code=serial --rows 200"));
    assert_eq!(server.number("SELECT count(c) FROM serial.totals"), 200);
}

#[test]
fn a_sequence_that_partitions_share_is_that_of_the_table() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table events(id serial, day date not null default timezone('utc', now()), primary key (id, day)) partition by range (day);
         create table events_1 partition of events for values from ('2020-01-01') to ('2025-01-01');
         create table notes(id int primary key, event int, day date, foreign key (event, day) references events);
         alter sequence events_id_seq increment 5;",
    );
    rig.done(&format!("fill --ddl {ddl} --rows 20 -q"));
    assert_eq!(server.number("SELECT max(id)::bigint FROM events"), 96);
    assert_eq!(server.number("SELECT nextval('events_id_seq')"), 101);
    assert_valid(&server);
}

#[test]
fn a_table_whose_keys_are_few_leaves_the_size_to_others() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE few (id smallint PRIMARY KEY)");
    let refused = rig.run("fill 50MB --all-tables");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("the keys of these tables allow"), "{refused:#?}");
    server.execute(
        "CREATE TABLE many (id int PRIMARY KEY, few smallint NOT NULL REFERENCES few, filler char(80))",
    );
    let ran = rig.done("fill 50MB --all-tables");
    assert!(
        ran.stderr.contains("warning: public.few: the table gets only 32,767 rows, because few_pkey"),
        "{ran:#?}"
    );
    let bytes = server.number("SELECT pg_total_relation_size('few') + pg_total_relation_size('many')");
    assert!((49_000_000..=51_000_000).contains(&bytes), "{bytes}");
    assert_eq!(rows_of(&server, "few"), 32_767);
    assert_valid(&server);
}
