//! Tables of every kind, described and filled on real servers: the server itself enforces that all
//! constraints hold, so a COPY that succeeds is the proof.

mod catalog_support;

use catalog_support::{assert_says, on_each_release};
use workload::catalog::{TableInfo, Wish, describe};

#[test]
fn every_type() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE SCHEMA \"Odd name\";
                 SET search_path = \"Odd name\", public;
                 CREATE TYPE mood AS ENUM ('sad', 'so so', 'it''s \"fine\"');
                 CREATE DOMAIN positive AS numeric(8,2) NOT NULL CHECK (VALUE > 0);
                 CREATE DOMAIN short AS varchar(9) CHECK (char_length(VALUE) >= 3);
                 CREATE TYPE pair AS (x int, y text);
                 CREATE TABLE \"Every Type\" (
                     a_bool bool NOT NULL, a_int2 int2 NOT NULL, a_int4 int4 NOT NULL, a_int8 int8 NOT NULL,
                     a_float4 float4 NOT NULL, a_float8 float8 NOT NULL, a_numeric numeric NOT NULL,
                     a_price numeric(10,2) NOT NULL, a_share numeric(3,3) NOT NULL, a_money money NOT NULL,
                     a_text text NOT NULL, a_varchar varchar NOT NULL, a_varchar5 varchar(5) NOT NULL,
                     a_char char(7) NOT NULL, a_bpchar bpchar NOT NULL, a_name name NOT NULL, a_single \"char\",
                     a_bytea bytea NOT NULL, a_date date NOT NULL, a_time time NOT NULL, a_timetz timetz NOT NULL,
                     a_timestamp timestamp(3) NOT NULL, a_timestamptz timestamptz NOT NULL, a_interval interval NOT NULL,
                     a_uuid uuid NOT NULL, a_json json NOT NULL, a_jsonb jsonb NOT NULL, a_inet inet NOT NULL,
                     a_cidr cidr NOT NULL, a_macaddr macaddr NOT NULL, a_macaddr8 macaddr8 NOT NULL,
                     a_bit bit(11) NOT NULL, a_varbit varbit(5) NOT NULL, a_point point NOT NULL, a_line line NOT NULL,
                     a_lseg lseg NOT NULL, a_box box NOT NULL, a_path path NOT NULL, a_polygon polygon NOT NULL,
                     a_circle circle NOT NULL, a_tsvector tsvector NOT NULL, a_tsquery tsquery NOT NULL,
                     a_oid oid NOT NULL, a_lsn pg_lsn NOT NULL, a_mood mood NOT NULL, a_positive positive,
                     a_short short NOT NULL, a_pair pair NOT NULL, a_ints int[] NOT NULL, a_texts varchar(3)[] NOT NULL,
                     a_moods mood[] NOT NULL, a_int4range int4range NOT NULL, a_tsrange tstzrange NOT NULL,
                     a_daterange daterange NOT NULL, a_numrange numrange NOT NULL,
                     nullable int, \"with \"\"quotes\"\" and\ttab\" text NOT NULL
                 )",
            )
            .await;
        database.fill("\"Every Type\"", 5_000).await.unwrap();
        assert_eq!(database.value("SELECT count(*) FROM \"Odd name\".\"Every Type\"").await, "5000");
        let nulls =
            database.value("SELECT count(*) FILTER (WHERE nullable IS NULL) FROM \"Every Type\"").await;
        assert!((100..500).contains(&nulls.parse().unwrap()), "{nulls}");
        if database.release >= 14 {
            database.sql("CREATE TABLE m (a int8multirange NOT NULL, b datemultirange NOT NULL)").await;
            database.fill("m", 1_000).await.unwrap();
        }
    });
}

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
            &["no row of shop.customers is left", "profiles_customer_id_fkey", "more rows first"],
        );
        let error = database.fill("shop.likes", 2_000_000).await.unwrap_err().to_string();
        assert_says(&error, &["2000000 rows do not fit shop.likes, at most 1500000 do", "3000 of", "500 of"]);
        // What sequences give goes on after these.
        let next = "INSERT INTO shop.orders (customer_id, status, channel, placed)
                    VALUES (1, 'new', 'web', now()) RETURNING id::text";
        let row = database.client().query_one(next, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "10001");
    });
}
