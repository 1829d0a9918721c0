//! Keys and foreign keys of every form, described and filled on real servers: the server itself enforces that they hold.

use crate::support::on_each_release;
use catalog::{DescribeRequest, Scope, TableInfo, describe};
use testkit::assert_says;

const SHOP: &str = "
    CREATE SCHEMA shop;
    CREATE TYPE shop.status AS ENUM ('new', 'paid', 'shipped', 'cancelled');
    CREATE DOMAIN shop.email AS text CHECK (VALUE <> '');
    CREATE TABLE shop.customers (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        email shop.email NOT NULL UNIQUE,
        name varchar(40) NOT NULL,
        referred_by bigint REFERENCES shop.customers,
        created timestamptz NOT NULL DEFAULT now()
    );
    CREATE UNIQUE INDEX customers_email_lower ON shop.customers (lower(email));
    CREATE TABLE shop.profiles (
        customer_id bigint PRIMARY KEY REFERENCES shop.customers,
        born date CHECK (born BETWEEN '1920-01-01' AND '2006-12-31'),
        newsletter bool NOT NULL DEFAULT true
    );
    CREATE TABLE shop.products (
        sku char(8) PRIMARY KEY,
        name text NOT NULL CHECK (char_length(name) BETWEEN 3 AND 60),
        price numeric(10,2) NOT NULL CHECK (price > 0 AND price < 1000),
        tags text[] NOT NULL DEFAULT '{}',
        weight real CHECK (weight > 0 AND weight <= 30)
    );
    CREATE TABLE shop.orders (
        id serial PRIMARY KEY,
        customer_id bigint NOT NULL REFERENCES shop.customers,
        status shop.status NOT NULL,
        channel text NOT NULL CHECK (channel IN ('web', 'shop', 'phone')),
        placed timestamptz NOT NULL,
        shipped timestamptz,
        CHECK (shipped IS NULL OR shipped >= placed)
    );
    CREATE TABLE shop.order_items (
        order_id int REFERENCES shop.orders,
        line smallint NOT NULL CHECK (line > 0),
        sku char(8) NOT NULL REFERENCES shop.products,
        quantity int NOT NULL CHECK (quantity BETWEEN 1 AND 100),
        price numeric(10,2) NOT NULL CHECK (price > 0),
        total numeric(12,2) GENERATED ALWAYS AS (quantity * price) STORED,
        PRIMARY KEY (order_id, line)
    );
    CREATE TABLE shop.stock (
        sku char(8) REFERENCES shop.products,
        day date,
        pieces int NOT NULL CHECK (pieces >= 0),
        UNIQUE (sku, day)
    );
    CREATE TABLE shop.likes (
        customer_id bigint REFERENCES shop.customers,
        sku char(8) REFERENCES shop.products,
        PRIMARY KEY (customer_id, sku)
    );";

#[test]
fn a_shop() {
    on_each_release(async |database| {
        database.sql(SHOP).await;
        let rows = [
            ("customers", 3_000),
            ("profiles", 3_000),
            ("products", 500),
            ("orders", 10_000),
            ("order_items", 25_000),
            ("stock", 5_000),
            ("likes", 20_000),
        ];
        for (table, rows) in rows {
            database.fill(&format!("shop.{table}"), rows).await.unwrap();
        }
        // All orders have lines, counted from 1.
        assert_eq!(database.value("SELECT count(DISTINCT order_id) FROM shop.order_items").await, "10000");
        assert_eq!(database.value("SELECT max(line) FROM shop.order_items").await, "3");
        assert_eq!(database.value("SELECT count(DISTINCT status) FROM shop.orders").await, "4");
        assert_eq!(database.value("SELECT count(DISTINCT channel) FROM shop.orders").await, "3");
        let shipped = "SELECT count(*) > 5000 FROM shop.orders WHERE shipped >= placed";
        assert_eq!(database.value(shipped).await, "true");
        // One profile for each customer, and no more.
        let error = database.fill("shop.profiles", 1).await.unwrap_err().to_string();
        assert_says(
            &error,
            &[
                "customer_id of shop.profiles can reference no more rows of shop.customers",
                "profiles_customer_id_fkey",
                "more rows first",
            ],
        );
        let error = database.fill("shop.likes", 2_000_000).await.unwrap_err().to_string();
        assert_says(
            &error,
            &["shop.likes has room for 1500000 rows, not 2000000", "3000 values of", "500 values of"],
        );
        // Sequences continue after these values.
        let next = "INSERT INTO shop.orders (customer_id, status, channel, placed)
                    VALUES (1, 'new', 'web', now()) RETURNING id::text";
        let row = database.client().query_one(next, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "10001");
    });
}

#[test]
fn foreign_keys_of_every_form() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE tenants (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text NOT NULL);
                 CREATE TABLE products (tenant uuid REFERENCES tenants, code varchar(12), PRIMARY KEY (tenant, code));
                 CREATE TABLE buyers (tenant uuid REFERENCES tenants, id int, PRIMARY KEY (tenant, id));
                 -- Foreign keys that share a column; with gaps in the keys.
                 CREATE TABLE sales (
                     id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                     tenant uuid NOT NULL REFERENCES tenants, code varchar(12) NOT NULL, buyer int NOT NULL,
                     FOREIGN KEY (tenant, code) REFERENCES products,
                     FOREIGN KEY (tenant, buyer) REFERENCES buyers
                 );
                 CREATE TABLE maybe (
                     tenant uuid, code varchar(12), whole int,
                     FOREIGN KEY (tenant, code) REFERENCES products MATCH FULL
                 );
                 -- References to itself, optional and not.
                 CREATE TABLE tree (
                     id serial PRIMARY KEY, parent int REFERENCES tree, root int NOT NULL REFERENCES tree,
                     level int NOT NULL DEFAULT 0
                 );
                 CREATE TABLE months (month date PRIMARY KEY) PARTITION BY RANGE (month);
                 CREATE TABLE months_1 PARTITION OF months FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
                 CREATE TABLE bills (month date REFERENCES months, cents int CHECK (cents % 2 >= 0));
                 CREATE TABLE defaulted (
                     tenant uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000' REFERENCES tenants
                 );",
            )
            .await;
        for (table, rows) in [
            ("tenants", 10),
            ("products", 1_000),
            ("buyers", 1_000),
            ("sales", 3_000),
            ("maybe", 1_000),
            ("tree", 1_000),
            ("months", 100),
            ("bills", 1_000),
            ("defaulted", 100),
        ] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        assert_eq!(database.value("SELECT count(DISTINCT tenant) FROM sales").await, "10");
        assert_eq!(database.value("SELECT count(*) > 0 FROM maybe WHERE tenant IS NULL").await, "true");
        assert_eq!(database.value("SELECT bool_and(root < id OR root = 1) FROM tree").await, "true");
        let tree = "SELECT bool_and(parent < id) AND count(DISTINCT parent) > 300 AND count(*) FILTER (WHERE parent IS NULL)
            BETWEEN 20 AND 90 AND bool_or(parent IS NULL) FILTER (WHERE id = 1) FROM tree";
        assert_eq!(database.value(tree).await, "true");
        // Only some months are there to be referenced.
        database.sql("DELETE FROM bills; DELETE FROM months WHERE extract(day FROM month) <> 1").await;
        database.fill("bills", 1_000).await.unwrap();
        assert_eq!(database.value("SELECT max(extract(day FROM month)) FROM bills").await, "1");
    });
}

#[test]
fn keys_of_every_form() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TYPE size AS ENUM ('s', 'm', 'l');
                 CREATE TABLE k_text (a varchar(6) UNIQUE, b text UNIQUE, c char(3) PRIMARY KEY);
                 CREATE TABLE k_other (a uuid UNIQUE, b timestamptz(0) UNIQUE, c numeric(12,3) UNIQUE, d float8 UNIQUE,
                     e bytea UNIQUE, f inet UNIQUE, g date UNIQUE, h int[] UNIQUE, i bit(16) UNIQUE, j int8range UNIQUE,
                     k time UNIQUE, l macaddr UNIQUE, m jsonb UNIQUE, n oid UNIQUE, o interval UNIQUE);
                 CREATE TABLE k_few (a size, b bool, c int CHECK (c BETWEEN 10 AND 19), PRIMARY KEY (a, b, c));
                 CREATE TABLE k_small (a smallint, b smallint, PRIMARY KEY (a, b));
                 CREATE TABLE k_expression (a text NOT NULL, b text NOT NULL, active bool NOT NULL);
                 CREATE UNIQUE INDEX ON k_expression (upper(a));
                 CREATE UNIQUE INDEX ON k_expression (b) WHERE active;
                 CREATE UNIQUE INDEX ON k_expression (active, length(b), a);
                 CREATE TABLE k_range (a int CHECK (a >= 100 AND a < 5000) UNIQUE, b date CHECK (b > '2024-05-17') UNIQUE);
                 CREATE TABLE k_default (a int DEFAULT 7 UNIQUE, b text DEFAULT 'x');
                 CREATE TABLE k_defaults (a int DEFAULT 7, b text DEFAULT 'x', PRIMARY KEY (a, b));
                 CREATE TABLE k_folded (a int DEFAULT 7, b varchar(80) NOT NULL DEFAULT ''::character varying, c text DEFAULT 'x');
                 CREATE UNIQUE INDEX ON k_folded (lower((b)::text));
                 CREATE UNIQUE INDEX ON k_folded (a, upper(c));
                 CREATE TABLE k_nodes (id int PRIMARY KEY);
                 INSERT INTO k_nodes SELECT generate_series(1, 20);
                 CREATE TABLE k_tags (node int NOT NULL REFERENCES k_nodes, k varchar(50) NOT NULL DEFAULT '', PRIMARY KEY (node, k));
                 CREATE TABLE k_members (node int NOT NULL REFERENCES k_nodes, place int NOT NULL DEFAULT 0, UNIQUE (node, place));
                 CREATE TABLE k_length (a text UNIQUE CHECK (char_length(a) = 5), b text UNIQUE CHECK (length(b) <= 4));
                 CREATE TABLE k_serial (a smallserial PRIMARY KEY, b uuid DEFAULT gen_random_uuid() UNIQUE);
                 CREATE TABLE k_exclusion (room int, during tsrange NOT NULL, UNIQUE (room),
                     EXCLUDE USING gist (int4range(room, room, '[]') WITH =, during WITH &&));",
            )
            .await;
        for (table, rows) in [
            ("k_text", 3_000),
            ("k_other", 3_000),
            ("k_few", 60),
            ("k_small", 100_000),
            ("k_expression", 3_000),
            ("k_range", 3_000),
            ("k_default", 3_000),
            ("k_defaults", 3_000),
            ("k_folded", 3_000),
            ("k_tags", 3_000),
            ("k_members", 3_000),
            ("k_length", 3_000),
            ("k_serial", 3_000),
        ] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        let error = database.fill("k_few", 1).await.unwrap_err().to_string();
        assert_says(&error, &["has room for 0 rows", "k_few_pkey", "0 values of c"]);
        database.sql("TRUNCATE k_few").await;
        let error = database.fill("k_few", 61).await.unwrap_err().to_string();
        assert_says(
            &error,
            &["public.k_few has room for 60 rows, not 61", "3 values of a × 2 values of b × 10 values of c"],
        );
        let info = TableInfo::read(database.client(), "k_few", Scope::Idle).await.unwrap();
        let described =
            describe(database.client(), &info, &DescribeRequest::default(), Scope::Idle).await.unwrap();
        assert_eq!(described.most_rows.unwrap().rows, 60);
        if database.release >= 18 {
            database
                .sql(
                    "CREATE EXTENSION IF NOT EXISTS btree_gist;
                     CREATE TABLE k_18 (id int, valid daterange NOT NULL, note text UNIQUE NULLS NOT DISTINCT,
                         twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, doubted int CHECK (doubted < 0) NOT ENFORCED,
                         PRIMARY KEY (id, valid WITHOUT OVERLAPS))",
                )
                .await;
            database.fill("k_18", 1_000).await.unwrap();
        }
    });
}

/// Texts and bytes that all differ are as long as CHECKs want them, whatever is appended later.
#[test]
fn unique_values_of_a_certain_length() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE DOMAIN ulid AS text CHECK (char_length(VALUE) = 26);
                 CREATE TABLE documents (
                     id text PRIMARY KEY CHECK (length(id) = 26), other ulid NOT NULL UNIQUE,
                     token varchar(64) NOT NULL UNIQUE CHECK (char_length(token) >= 40), code char(30) NOT NULL UNIQUE CHECK (length(code) = 30),
                     digest bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), salt bytea UNIQUE CHECK (length(salt) BETWEEN 4 AND 16),
                     short varchar(20) NOT NULL UNIQUE CHECK (length(short) <= 5)
                 );
                 CREATE TABLE pages (
                     document text NOT NULL REFERENCES documents, number int, PRIMARY KEY (document, number), CHECK (length(document) = 26)
                 );",
            )
            .await;
        for rows in [3_000, 500] {
            let described = database.fill("documents", rows).await.unwrap();
            assert_eq!(described.warnings, Vec::<String>::new());
        }
        database.fill("pages", 10_000).await.unwrap();
        let lengths = "SELECT (min(length(id)), max(length(other)), min(length(token)), min(octet_length(digest))) FROM documents";
        assert_eq!(database.value(lengths).await, "(26,26,40,32)");
        assert_eq!(database.value("SELECT count(DISTINCT id) FROM documents").await, "3500");
        // They are random but for their beginning.
        assert_eq!(database.value("SELECT count(DISTINCT right(id, 10)) FROM documents").await, "3500");
    });
}

/// Networks of single addresses do not overlap each other.
#[test]
fn networks_that_must_not_overlap() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE EXTENSION IF NOT EXISTS btree_gist;
                 CREATE TABLE networks (net cidr NOT NULL, note text, EXCLUDE USING gist (net inet_ops WITH &&));
                 CREATE TABLE pools (site int NOT NULL, addresses inet,
                     CONSTRAINT apart EXCLUDE USING gist (site WITH =, addresses inet_ops WITH &&));",
            )
            .await;
        for table in ["networks", "pools"] {
            database.fill(table, 2_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        let error = database.refused("networks", &[]).await;
        assert_says(
            &error,
            &["public.networks has rows, and pgrig cannot find values of", "networks_net_excl"],
        );
    });
}
