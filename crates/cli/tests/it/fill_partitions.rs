//! Partitioned tables filled with pages: to a size, in a schema, and killed in the middle.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

use crate::support::proof::Proof;
use crate::support::victims::kill_server;
use crate::support::{NEWEST, OLDEST, Rig, Server};

/// Orders by month, their items by hash, both with keys to and from partitioned tables.
const SHOP: &str = "
    CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);
    CREATE TABLE orders (
        id bigint NOT NULL, placed_at timestamptz NOT NULL DEFAULT now(), customer_id bigint NOT NULL REFERENCES customers,
        total numeric(10,2) NOT NULL CHECK (total >= 0), PRIMARY KEY (id, placed_at)
    ) PARTITION BY RANGE (placed_at);
    CREATE INDEX ON orders (customer_id);
    CREATE TABLE orders_2024 PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (placed_at);
    CREATE TABLE orders_2024_1 PARTITION OF orders_2024 FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
    CREATE TABLE orders_2024_2 PARTITION OF orders_2024 FOR VALUES FROM ('2024-07-01') TO ('2025-01-01');
    CREATE TABLE orders_2025 PARTITION OF orders FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE orders_rest PARTITION OF orders DEFAULT;
    CREATE TABLE items (
        id bigint PRIMARY KEY, order_id bigint, placed_at timestamptz, quantity int NOT NULL,
        FOREIGN KEY (order_id, placed_at) REFERENCES orders
    ) PARTITION BY HASH (id);
    CREATE TABLE items_0 PARTITION OF items FOR VALUES WITH (MODULUS 3, REMAINDER 0);
    CREATE TABLE items_1 PARTITION OF items FOR VALUES WITH (MODULUS 3, REMAINDER 1);
    CREATE TABLE items_2 PARTITION OF items FOR VALUES WITH (MODULUS 3, REMAINDER 2);";

const ORDERS: &str = "orders.placed_at=uniform(2023-11-01,2025-12-31)";

fn methods(document: &Value) -> Vec<String> {
    let tables = document["plan"]["tables"].as_array().unwrap().iter();
    tables.map(|table| table["state"]["to-fill"]["method"].as_str().unwrap_or("?").to_owned()).collect()
}

fn size(server: &Server, tables: &str) -> f64 {
    let query = format!(
        "SELECT sum(pg_total_relation_size(relid))::bigint \
           FROM unnest(ARRAY[{tables}]::regclass[]) t, pg_partition_tree(t)"
    );
    server.number(&query) as f64
}

#[test]
fn a_schema_with_partitions_is_filled_by_pages() {
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        let ddl = rig.home.path().join("shop.sql");
        std::fs::write(&ddl, SHOP).unwrap();
        let fill = format!(
            "fill --ddl {} --rows customers=2000,orders=10000,items=30000 --column {ORDERS}",
            ddl.display()
        );
        let document = rig.document(&fill);
        let tables = document["plan"]["tables"].to_string();
        assert!(!tables.contains("chunked-copy"), "{version}: {:?} {tables}", methods(&document));
        for (table, rows) in [("orders", 10_000), ("items", 30_000)] {
            assert_eq!(server.number(&format!("SELECT count(*) FROM {table}")), rows, "{version}");
        }
        let parts = "SELECT count(DISTINCT tableoid) FROM orders";
        assert_eq!(server.number(parts), 4, "{version}");
        Proof::of(&server, &rig.data(), "public").assert_sound();
        // All keys hold, and statistics are there for the whole and its parts.
        server.execute(
            "ALTER TABLE items ADD CONSTRAINT again FOREIGN KEY (order_id, placed_at) REFERENCES orders; \
             ALTER TABLE orders ADD CONSTRAINT again FOREIGN KEY (customer_id) REFERENCES customers",
        );
        let statistics = "SELECT count(DISTINCT tablename) FROM pg_stats WHERE tablename LIKE 'orders%' OR tablename LIKE 'items%'";
        assert_eq!(server.number(statistics), 10, "{version}");
        // Emptied, and filled again as it is.
        server.execute("TRUNCATE customers, orders, items");
        let document = rig.document(&format!(
            "fill --all-tables --rows customers=2000,orders=10000,items=30000 --column {ORDERS}"
        ));
        let tables = document["plan"]["tables"].to_string();
        assert!(!tables.contains("chunked-copy"), "{version}: {tables}");
        assert_eq!(server.number("SELECT count(*) FROM items"), 30_000);
        Proof::of(&server, &rig.data(), "public").assert_sound();
    }
}

#[test]
fn sizes_are_met() {
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(SHOP);
        server.execute(
            "INSERT INTO customers (email) SELECT n || '@example.com' FROM generate_series(1, 5000) n",
        );
        server.execute("ALTER TABLE items DROP CONSTRAINT items_order_id_placed_at_fkey");
        for table in ["orders", "items"] {
            let document = rig.document(&format!("fill 30MB --table {table}"));
            assert_eq!(document["plan"]["method"], "direct", "{version}");
            let size = size(&server, &format!("'{table}'"));
            assert!((size / 30e6 - 1.0).abs() < 0.02, "{version}: {table} has {size} bytes");
        }
        server.execute("TRUNCATE customers, orders, items");
        rig.document(&format!("fill 60MB --all-tables --column {ORDERS}"));
        let all = size(&server, "'orders', 'items'")
            + server.number("SELECT pg_total_relation_size('customers')") as f64;
        // Keys that repeat in the sample, which has no partitions, repeat less often within each of them.
        assert!((all / 60e6 - 1.0).abs() < 0.05, "{version}: {all} bytes");
    }
}

/// Rows of 1.5 kB by hash.
const WIDE: &str = "
    CREATE TABLE wide (id int PRIMARY KEY, filler text NOT NULL) PARTITION BY HASH (id);
    CREATE TABLE wide_0 PARTITION OF wide FOR VALUES WITH (MODULUS 3, REMAINDER 0);
    CREATE TABLE wide_1 PARTITION OF wide FOR VALUES WITH (MODULUS 3, REMAINDER 1);
    CREATE TABLE wide_2 PARTITION OF wide FOR VALUES WITH (MODULUS 3, REMAINDER 2);";

/// Bytes in all databases.
fn bytes(data: &Path) -> u64 {
    let below = |directory: &Path| std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = below(&data.join("base")).flat_map(|database| below(&database.path()).collect::<Vec<_>>());
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[test]
fn the_same_command_completes_what_was_killed() {
    for (version, kills_server) in [(OLDEST, false), (NEWEST, false), (OLDEST, true), (NEWEST, true)] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(WIDE);
        let fill = "fill --table wide --rows 150000 --column filler=random(1500)";
        let before = bytes(&rig.data());
        let mut pgrig = rig.spawn(&format!("{fill} {version}"));
        // The second of three leaves is being written.
        until("pages are there", || {
            assert!(!pgrig.has_ended(), "it ended before");
            (bytes(&rig.data()) > before + 100_000_000).then_some(())
        });
        if kills_server {
            kill_server(&rig);
        } else {
            pgrig.signal(Signal::SIGKILL);
        }
        drop(pgrig);
        drop(server);
        let server = rig.server(version);
        rig.done(&format!("{fill} {version}"));
        assert_eq!(
            server.number("SELECT count(DISTINCT id) FROM wide WHERE id BETWEEN 1 AND 150000"),
            150_000
        );
        assert_eq!(server.number("SELECT count(*) FROM wide"), 150_000);
        let data = rig.data();
        let proof = Proof::of(&server, &data, "public");
        proof.assert_sound();
        proof.until_no_orphans();
        assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    }
}
