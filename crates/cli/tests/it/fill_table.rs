//! `pgrig fill --table`: tables of the user's own, on real servers of the newest and the oldest version.

use crate::support::victims::{Chance, Victim, killed, killed_while_held};
use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server, observed};

/// Customers, products, orders and their items; three partitioned tables.
const SHOP: &str = include_str!("../data/shop.sql");

/// pgrig with these arguments, split at blanks, and a `--column` for each specification.
fn fill(rig: &Rig, arguments: &str, columns: &[&str]) -> Ran {
    let mut command = rig.command(&format!("fill {arguments}"));
    command.args(columns.iter().flat_map(|column| ["--column", column]));
    Ran::from(command.output().unwrap())
}

/// The same; it must succeed.
fn filled(rig: &Rig, arguments: &str, columns: &[&str]) -> Ran {
    let ran = fill(rig, arguments, columns);
    assert_eq!(ran.code, Some(0), "fill {arguments} {columns:?}: {ran:#?}");
    ran
}

/// A row of texts.
fn texts<const N: usize>(server: &Server, columns: [&str; N], from: &str) -> [String; N] {
    let columns = columns.map(|column| format!("({column})::text"));
    let row = server.row(&format!("SELECT {} FROM {from}", columns.join(", ")));
    std::array::from_fn(|at| row.get::<_, Option<String>>(at).unwrap_or_else(|| "NULL".to_owned()))
}

/// Size of the table with its partitions and indexes, bytes.
fn size(server: &Server, table: &str) -> f64 {
    let query = format!(
        "SELECT sum(pg_total_relation_size(relid))::bigint \
           FROM (SELECT '{table}'::regclass UNION SELECT relid FROM pg_partition_tree('{table}')) part (relid)"
    );
    server.number(&query) as f64
}

/// A checksum of all rows in an order of their own.
fn contents(server: &Server, table: &str) -> (i64, String) {
    let row = server.row(&format!(
        "SELECT count(*), coalesce(md5(string_agg(t::text, ',' ORDER BY t::text COLLATE \"C\")), '') FROM {table} t"
    ));
    (row.get(0), row.get(1))
}

fn assert_shop(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(SHOP);
    // Everything that the schema says is enforced by the server while rows come in.
    for (table, rows) in [
        ("customers", 5_000),
        ("products", 800),
        ("orders", 20_000),
        ("order_items", 60_000),
        ("visits", 20_000),
        ("returns", 3_000),
        ("carts", 3_000),
    ] {
        let document = rig.document(&format!("fill --table {table} --rows {rows} --method copy"));
        assert_eq!(document["plan"]["method"], "chunked-copy");
        assert!((observed(&document, "rows") - f64::from(rows)).abs() < 0.5, "{table}");
        assert_eq!(server.number(&format!("SELECT count(*) FROM {table}")), i64::from(rows), "{table}");
    }
    let customers = ["count(DISTINCT email)", "min(id)", "max(id)", "min(born) >= '1930-01-01'"];
    assert_eq!(texts(&server, customers, "customers"), ["5000", "1", "5000", "true"]);
    let nulls = "count(*) FILTER (WHERE born IS NULL) BETWEEN 150 AND 350";
    assert_eq!(texts(&server, [nulls], "customers"), ["true"]);
    let orders = ["count(DISTINCT id)", "max(id)", "count(DISTINCT customer) > 4500", "max(status::text)"];
    assert_eq!(texts(&server, orders, "orders"), ["20000", "20000", "true", "new"]);
    assert_eq!(server.number("SELECT count(*) FROM orders JOIN customers c ON c.id = customer"), 20_000);
    assert_eq!(
        server.number("SELECT count(*) FROM order_items JOIN products USING (warehouse, sku)"),
        60_000
    );
    let items =
        ["count(DISTINCT \"order\")", "min(line)", "max(line)", "bool_and(amount = quantity * price)"];
    assert_eq!(texts(&server, items, "order_items"), ["20000", "1", "3", "true"]);
    let parts = |table: &str| server.number(&format!("SELECT count(DISTINCT tableoid) FROM {table}"));
    assert_eq!([parts("visits"), parts("returns"), parts("carts")], [2, 2, 3]);
    // Statistics are fresh, and nothing of pgrig's is left.
    assert_eq!(server.number("SELECT reltuples::bigint FROM pg_class WHERE relname = 'order_items'"), 60_000);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

#[test]
fn a_shop_is_filled_table_by_table_on_the_newest() {
    assert_shop(NEWEST);
}

#[test]
fn a_shop_is_filled_table_by_table_on_the_oldest() {
    assert_shop(OLDEST);
}

const SIZED: &str = "
    CREATE TABLE plain (a int, b text);
    CREATE UNLOGGED TABLE ids (id bigint PRIMARY KEY, note text, at timestamptz NOT NULL) WITH (fillfactor = 80);
    CREATE TABLE indexed (id uuid PRIMARY KEY, a int, b int, c date, e text, f timestamptz, g numeric(10,2), h int[]);
    CREATE INDEX ON indexed (a); CREATE INDEX ON indexed (b); CREATE INDEX ON indexed (c, a);
    CREATE INDEX ON indexed (e); CREATE INDEX ON indexed (f); CREATE INDEX ON indexed (lower(e));
    CREATE INDEX ON indexed USING brin (g);
    CREATE TABLE wide (id int PRIMARY KEY, stays text, shrinks text);
    CREATE TABLE many (at timestamp NOT NULL, n int, note text) PARTITION BY RANGE (at);
    DO $$BEGIN
        FOR day IN 0 .. 99 LOOP
            EXECUTE format('CREATE TABLE many_%s PARTITION OF many FOR VALUES FROM (%L) TO (%L)',
                day, date '2024-01-01' + day, date '2024-01-02' + day);
        END LOOP;
    END$$;";

/// Tables of `SIZED`, options and columns.
type Sized = (&'static str, &'static str, &'static [&'static str]);

fn assert_sizes(version: &str, tables: &[Sized]) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(SIZED);
    for (table, options, columns) in tables {
        // The promised 1 % holds from 50 MB up.
        // By COPY: to indexes of packed pages, a few rows more add many pages.
        for (arguments, bytes) in [("50MB --method copy", 50e6), ("20MB --append", 70e6)] {
            filled(&rig, &format!("{arguments} --table {table} {options}"), columns);
            let size = size(&server, table);
            assert!((size / bytes - 1.0).abs() < 0.01, "{version} {table} {arguments}: {size} bytes");
        }
    }
    // Two fills, one sequence of ids; and an unlogged table stays one.
    let ids = ["count(*) = max(id)", "count(DISTINCT id) = max(id)", "min(id)"];
    assert_eq!(texts(&server, ids, "ids"), ["true", "true", "1"]);
    let unlogged = "SELECT count(*) FROM pg_class WHERE relname = 'ids' AND relpersistence = 'u'";
    assert_eq!(server.number(unlogged), 1);
}

/// Unlogged, with a key.
const IDS: Sized = ("ids", "--streams 3", &[]);
const INDEXED: Sized = ("indexed", "--streams 1", &[]);

#[test]
fn the_size_asked_for_is_met_on_the_newest() {
    let wide: Sized = ("wide", "", &["stays=random(10000)", "shrinks=blank(3000, 9000)"]);
    assert_sizes(NEWEST, &[("plain", "", &[]), IDS, INDEXED, wide, ("many", "", &[])]);
}

#[test]
fn the_size_asked_for_is_met_on_the_oldest() {
    assert_sizes(OLDEST, &[IDS, INDEXED]);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let rig = Rig::new();
    let server = rig.server("");
    let table = "CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE, b float8, c timestamptz, d uuid, e jsonb, f int[], \
                 g numeric, h bool, i bytea, j inet, k tsvector, l point, m int4range)";
    for schema in ["one", "two"] {
        server.execute(&format!("CREATE SCHEMA {schema}; SET search_path = {schema}; {table}"));
    }
    server.execute("CREATE DATABASE other");
    let other = server.url.replace("/postgres?", "/other?");
    let client = rig.connect(&other);
    rig.block_on(client.batch_execute(table)).unwrap();
    let specs = ["b=normal(100, 15)"];
    filled(&rig, "--table one.t --rows 30000 --streams 1 --seed 7", &specs);
    filled(&rig, "--table two.t --rows 30000 --streams 3 --seed 7 --chunk 100kB --format text", &specs);
    filled(&rig, &format!("--table t --rows 30000 --streams 3 --seed 7 -d {other}"), &specs);
    let expected = contents(&server, "one.t");
    assert_eq!(expected.0, 30_000);
    assert_eq!(contents(&server, "two.t"), expected);
    let sum = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text COLLATE \"C\")) FROM t";
    let row = rig.block_on(client.query_one(sum, &[])).unwrap();
    assert_eq!(row.get::<_, String>(0), expected.1);
    server.execute("TRUNCATE two.t");
    filled(&rig, "--table two.t --rows 30000 --seed 8", &specs);
    assert_ne!(contents(&server, "two.t"), expected);
}

#[test]
fn every_specification_gives_what_it_says() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE colours (name text PRIMARY KEY); INSERT INTO colours VALUES ('red'), ('green'), ('blue'); \
         CREATE TABLE t (c_any int, c_unique text, c_serial int, c_series timestamptz, c_shuffle int, \
             c_uniform numeric(6,2), c_normal float8, c_exponential int, c_zipf int, c_list text, c_cycle text, \
             c_constant text, c_null int, c_nulls int, c_text text, c_random bytea, c_blank text, c_reference text, \
             c_default int DEFAULT 7, \"odd = name\" int)",
    );
    let specs = [
        "c_any=any",
        "c_unique=unique",
        "c_serial=serial(10, 5)",
        "c_series=timeseries(2024-01-01, 1s)",
        "c_shuffle=shuffle(1, 10000)",
        "c_uniform=uniform(1, 999.99)",
        "c_normal=normal(100, 15)",
        "c_exponential=exponential(50)",
        "c_zipf=zipf(1000)",
        "c_list=list(new*3, 'a, b')",
        "c_cycle=cycle(x, y, z)",
        "c_constant=constant('it''s')",
        "c_null=null",
        "c_nulls=nulls(0.5, uniform(1, 3))",
        "c_text=text(10, 20)",
        "c_random=random(16)",
        "c_blank=blank(5)",
        "c_reference=reference(colours.name)",
        "c_default=default",
        "\"odd = name\"=constant(3)",
    ];
    let ran = filled(&rig, "--table t --rows 10000", &specs);
    assert!(ran.stderr.contains("c_uniform numeric(6,2): evenly from 1.00 to 999.99"), "{ran:#?}");
    for holds in [
        "count(DISTINCT c_any) > 8000",
        "count(DISTINCT c_unique) = 10000",
        "min(c_serial) = 10 AND max(c_serial) = 10 + 5 * 9999 AND count(DISTINCT c_serial) = 10000",
        "min(c_series) = '2024-01-01Z' AND max(c_series) = '2024-01-01 02:46:39Z'",
        "min(c_shuffle) = 1 AND max(c_shuffle) = 10000 AND count(DISTINCT c_shuffle) = 10000",
        "min(c_uniform) >= 1 AND max(c_uniform) <= 999.99 AND avg(c_uniform) BETWEEN 480 AND 520",
        "avg(c_normal) BETWEEN 99 AND 101 AND stddev(c_normal) BETWEEN 14 AND 16",
        "avg(c_exponential) BETWEEN 47 AND 53",
        "min(c_zipf) = 1 AND max(c_zipf) <= 1000 AND mode() WITHIN GROUP (ORDER BY c_zipf) = 1",
        "count(*) FILTER (WHERE c_list = 'new') BETWEEN 7200 AND 7800 AND min(c_list) = 'a, b'",
        "count(*) FILTER (WHERE c_cycle = 'x') = 3334 AND count(DISTINCT c_cycle) = 3",
        "bool_and(c_constant = 'it''s')",
        "count(c_null) = 0",
        "count(c_nulls) BETWEEN 4700 AND 5300 AND max(c_nulls) = 3",
        "min(length(c_text)) = 10 AND max(length(c_text)) = 20",
        "bool_and(length(c_random) = 16) AND count(DISTINCT c_random) = 10000",
        "bool_and(c_blank = '     ')",
        "count(DISTINCT c_reference) = 3",
        "bool_and(c_default = 7)",
        "bool_and(\"odd = name\" = 3)",
    ] {
        assert_eq!(texts(&server, [holds], "t"), ["true"], "{holds}");
    }
}

/// Kills again and again, then lets it end: every row once.
fn assert_survives(seed: u64, version: &str, table: &str) {
    let rig = Rig::new();
    let url = rig.url();
    let ddl = rig.home.path().join("ddl.sql");
    std::fs::write(&ddl, table).unwrap();
    let arguments = format!(
        "fill --ddl {} --rows 150000 --streams 2 --chunk 100kB {version} --set shared_buffers=64MB \
         --set max_wal_size=1GB",
        ddl.display()
    );
    let start = || {
        let mut command = rig.command(&arguments);
        command.args(["--column", "n=uniform(1, 100)"]);
        Running::start(command)
    };
    let mut chance = Chance(seed);
    for _ in 0..8 {
        let chunks = 1 + i64::try_from(chance.below(20)).unwrap();
        if killed(start(), &rig, &url, "pgrig_chunks_t", Victim::any(&mut chance), chunks) {
            break;
        }
    }
    let ran = start().end();
    assert!(ran.code == Some(0) || ran.stderr.contains("already exists"), "seed {seed}: {ran:#?}");
    let server = rig.server("");
    let ids = ["count(*)", "count(DISTINCT id)", "min(id)", "max(id)", "min(n)", "max(n)"];
    assert_eq!(texts(&server, ids, "t"), ["150000", "150000", "1", "150000", "1", "100"]);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

#[test]
fn a_killed_fill_to_a_size_is_completed_without_gaps() {
    for (id, options) in [("bigint", "--streams 2"), ("int", "--streams 1")] {
        let rig = Rig::new();
        let server = rig.server(NEWEST);
        server.execute(&format!("CREATE TABLE t (id {id} PRIMARY KEY, note text)"));
        let fill = format!("fill 60MB --table t --chunk 500kB {options}");
        killed_while_held(rig.spawn(&fill), &rig, &server.url, "pgrig_chunks_t", Victim::Pgrig, 3);
        let plan = rig.done(&format!("{fill} --explain")).stdout;
        assert!(plan.contains("an interrupted fill: ") && !plan.contains(" of 9"), "{plan}");
        rig.done(&fill);
        let ids = ["count(*) = max(id)", "count(DISTINCT id) = max(id)", "min(id)"];
        assert_eq!(texts(&server, ids, "t"), ["true", "true", "1"]);
        let size = size(&server, "t");
        assert!((size / 60e6 - 1.0).abs() < 0.01, "{options}: {size} bytes");
    }
}

#[test]
fn a_killed_fill_is_completed() {
    assert_survives(1, NEWEST, "CREATE TABLE t (id int PRIMARY KEY, a text, n int)");
}

#[test]
fn a_killed_fill_of_an_unlogged_table_is_completed_on_the_oldest() {
    assert_survives(2, OLDEST, "CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY, a text, n int)");
}

#[test]
fn a_killed_fill_of_partitions_is_completed() {
    let partitions = (0..4).map(|part| {
        format!("CREATE TABLE t_{part} PARTITION OF t FOR VALUES WITH (MODULUS 4, REMAINDER {part});")
    });
    let table = "CREATE TABLE t (id int PRIMARY KEY, a text, n int) PARTITION BY HASH (id);".to_owned();
    assert_survives(3, NEWEST, &(table + &partitions.collect::<String>()));
}

#[test]
fn what_a_trigger_refuses_in_the_middle_is_told_and_can_be_completed() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY); \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF new.id = 4567 THEN RAISE 'not this one' USING HINT = 'another'; END IF; RETURN new; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let command = "--table t --rows 10000 --streams 1 --chunk 36kB";
    let ran = fill(&rig, command, &[]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in [
        "these triggers run for each row, may change or refuse rows, and slow the fill: refuse",
        "not this one (SQLSTATE P0001); another; COPY t, line 567",
        "public.t has 4000 new rows, which are committed",
        "run TRUNCATE public.t and give --no-resume; to add to the rows, give --no-resume --append",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    server.execute("ALTER TABLE t DISABLE TRIGGER refuse");
    filled(&rig, command, &[]);
    assert_eq!(texts(&server, ["count(*)", "max(id)"], "t"), ["10000", "10000"]);
}

#[test]
fn probes_look_rows_up_by_their_key() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE t (note text, id bigint GENERATED ALWAYS AS IDENTITY (START 1000) PRIMARY KEY); \
         CREATE TABLE u (id uuid PRIMARY KEY, n int)",
    );
    for probe in ["lookup", "batch"] {
        let document = rig.document(&format!("fill 20MB --append --table t --probe {probe}"));
        let series = document["trials"][0]["series"].as_array().unwrap();
        let found = |name: String| series.iter().find(|series| series["name"] == name.as_str());
        assert!(found(format!("probe-{probe}-p50")).is_some(), "{document:#}");
    }
    let ran = fill(&rig, "--table t --append --rows 1000 --probe lookup", &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let ran = fill(&rig, "--table u --rows 1000 --probe lookup", &[]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("give --probe scan"), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    filled(&rig, "--table u --rows 1000 --probe scan", &[]);
}
