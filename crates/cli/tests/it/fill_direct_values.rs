//! Values in pages written directly: those of types, generated columns and partitions are the server's own.

use crate::fill_direct_tables::{assert_sound, contents, fill, filled, method};
use crate::support::{NEWEST, OLDEST, Rig, Server};

/// Generated columns of all sorts that pgrig computes.
const GENERATED: &str = "
    CREATE TABLE generated (
        id int PRIMARY KEY,
        quantity int NOT NULL CHECK (quantity BETWEEN -50 AND 50),
        price numeric(10,2) CHECK (price BETWEEN -1000 AND 1000), free numeric,
        first text, last varchar(30), kind char(3), at timestamptz, tags text[], doc jsonb,
        next int GENERATED ALWAYS AS (quantity + 1) STORED,
        half bigint GENERATED ALWAYS AS ((quantity * id / 2) % 1000 - 7) STORED,
        total numeric GENERATED ALWAYS AS (quantity * price) STORED,
        taxed numeric(14,3) GENERATED ALWAYS AS (price * 0.1905 + 2) STORED,
        whole int GENERATED ALWAYS AS (coalesce(price, 2.5) * 1.5) STORED NOT NULL,
        freed numeric GENERATED ALWAYS AS (free - coalesce(price, 0)) STORED,
        name text GENERATED ALWAYS AS (coalesce(first, '?') || ' ' || last) STORED,
        sought varchar(90) GENERATED ALWAYS AS (lower(first) || upper(last)) STORED,
        size smallint GENERATED ALWAYS AS (length(last)) STORED,
        label text GENERATED ALWAYS AS ('no. ' || quantity::text) STORED,
        copied jsonb GENERATED ALWAYS AS (doc) STORED,
        kind_copied char(3) GENERATED ALWAYS AS (kind) STORED,
        tags_copied text[] GENERATED ALWAYS AS (tags) STORED
    );
    CREATE INDEX ON generated (total);
    CREATE INDEX ON generated (sought);";
/// The newest have columns that are not stored.
const VIRTUAL: &str = "
    CREATE TABLE unstored (
        id int PRIMARY KEY, a int, b text NOT NULL,
        twice bigint GENERATED ALWAYS AS (a * 2) VIRTUAL CHECK (twice IS NULL OR twice > 0),
        shouted text GENERATED ALWAYS AS (upper(b)) VIRTUAL NOT NULL,
        day date GENERATED ALWAYS AS ('2024-01-01'::date + a) VIRTUAL,
        c int NOT NULL
    );";

/// A checksum of the tuples' bytes, as they are stored.
fn stored(server: &Server, table: &str) -> String {
    let query = format!(
        "SELECT md5(string_agg(tuple, ',' ORDER BY tuple))
           FROM generate_series(0, pg_relation_size('{table}') / 8192 - 1) block
          CROSS JOIN LATERAL (SELECT concat(t_bits, ' ', encode(t_data, 'hex'))
                                FROM heap_page_items(get_raw_page('{table}', block::int))) items (tuple)"
    );
    server.row(&query).get(0)
}

/// Fills an empty table directly and by COPY, and compares the rows as text and as they are stored.
fn assert_as_by_copy(rig: &Rig, server: &Server, table: &str, columns: &[&str]) {
    let amount = format!("--table {table} --rows 5000 --seed 3");
    assert_eq!(method(&filled(rig, &format!("{amount} --method direct"), columns)), "direct");
    assert_sound(server, table);
    server.execute(&format!("ANALYZE {table}"));
    server.execute("CREATE EXTENSION IF NOT EXISTS pageinspect");
    let written = (contents(server, table), stored(server, table));
    server.execute(&format!("TRUNCATE {table}"));
    assert_eq!(method(&filled(rig, &format!("{amount} --method copy"), columns)), "chunked-copy");
    assert_eq!((contents(server, table), stored(server, table)), written);
}

/// Types whose values hold OIDs of this database, and others of several parts.
const COMPOUND: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    ALTER TYPE mood ADD VALUE 'so-so' BEFORE 'ok';
    CREATE DOMAIN moods AS mood[] CHECK (cardinality(VALUE) < 100);
    CREATE TYPE floats AS RANGE (subtype = float8);
    CREATE DOMAIN stay AS daterange CHECK (NOT isempty(VALUE));
    CREATE TABLE compound (
        id int PRIMARY KEY, mood mood, list mood[], moods moods NOT NULL,
        ints int4range, longs int8range NOT NULL, numbers numrange, days daterange, stay stay,
        times tsrange, zoned tstzrange, floats floats, words tsvector, several tsvector[],
        EXCLUDE USING gist (longs WITH &&)
    );
    CREATE INDEX ON compound USING gin (words);
    CREATE INDEX ON compound USING gist (days);";
/// From 14 on.
const MULTIRANGES: &str = "
    CREATE TABLE multiranges (id int PRIMARY KEY, a int4multirange, b int8multirange NOT NULL, c nummultirange,
        d datemultirange, e tsmultirange, f tstzmultirange);";

#[test]
fn types_of_the_database_are_stored_as_the_server_stores_them_on_the_newest() {
    assert_as_by_copy_of(NEWEST, &[("compound", COMPOUND), ("multiranges", MULTIRANGES)]);
}

#[test]
fn types_of_the_database_are_stored_as_the_server_stores_them_on_the_oldest() {
    assert_as_by_copy_of(OLDEST, &[("compound", COMPOUND)]);
}

fn assert_as_by_copy_of(version: &str, tables: &[(&str, &str)]) {
    let rig = Rig::new();
    let server = rig.server(version);
    for (table, sql) in tables {
        server.execute(sql);
        assert_as_by_copy(&rig, &server, table, &[]);
    }
}

#[test]
fn generated_columns_have_the_values_that_the_server_gives_on_the_newest() {
    assert_as_by_copy_of(NEWEST, &[("generated", GENERATED), ("unstored", VIRTUAL)]);
}

#[test]
fn generated_columns_have_the_values_that_the_server_gives_on_the_oldest() {
    assert_as_by_copy_of(OLDEST, &[("generated", GENERATED)]);
}

#[test]
fn a_generated_value_that_is_not_the_servers_is_found_before_the_commit() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    // Row 2999 is none of those that are tried beforehand.
    server.execute("CREATE TABLE divided (a int, b int GENERATED ALWAYS AS (7 / (a - 3000)) STORED)");
    let ran = fill(&rig, "--rows 10000 --table divided --method direct", &["a=serial"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("division by zero"), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM divided"), 0);
}

const PARTITIONS: &str = "
    CREATE TABLE events (id int, at date NOT NULL, kind text NOT NULL, note text, PRIMARY KEY (id, at, kind))
        PARTITION BY RANGE (at);
    CREATE TABLE events_2023 PARTITION OF events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')
        PARTITION BY LIST (kind);
    CREATE TABLE events_2024_a PARTITION OF events_2024 FOR VALUES IN ('a', 'b');
    CREATE TABLE events_other PARTITION OF events DEFAULT;
    CREATE INDEX ON events (note);
    CREATE TABLE hashed (id int) PARTITION BY HASH (id);
    CREATE TABLE half PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE other_half PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);";

fn assert_partitions(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(PARTITIONS);
    let columns = ["id=serial"];
    for (partition, more) in
        [("events_2023", None), ("events_2024_a", None), ("events_other", Some("at=constant(2025-07-31)"))]
    {
        let columns: Vec<&str> = columns.iter().copied().chain(more).collect();
        assert_as_by_copy(&rig, &server, partition, &columns);
    }
    assert_eq!(server.number("SELECT count(*) FROM events"), 15_000);
    assert_eq!(server.number("SELECT count(*) FROM events WHERE at < '2024-01-01'"), 5_000);
    // Rows of both halves, in one of them.
    let ran = fill(&rig, "--rows 5000 --table half --method direct", &["id=serial"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM hashed"), 0);
}

#[test]
fn a_partition_gets_pages_of_rows_within_its_bounds_on_the_newest() {
    assert_partitions(NEWEST);
}

#[test]
fn a_partition_gets_pages_of_rows_within_its_bounds_on_the_oldest() {
    assert_partitions(OLDEST);
}
