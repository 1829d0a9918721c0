//! Columns whose values or constraints pgrig leaves to the server in part.

use crate::support::on_each_release;
use testkit::assert_says;

/// Some types of extensions have no binary form, not even for NULL.
#[test]
fn types_without_binary_form() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TYPE code;
                 CREATE FUNCTION code_in(cstring) RETURNS code LANGUAGE internal IMMUTABLE STRICT AS 'textin';
                 CREATE FUNCTION code_out(code) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
                 CREATE TYPE code (INPUT = code_in, OUTPUT = code_out);
                 CREATE TABLE coded (id int PRIMARY KEY, code code)",
            )
            .await;
        let described = database.fill("coded", 500).await.unwrap();
        assert_says(&described.warnings.join(""), &["code"]);
        assert_eq!(database.value("SELECT count(*) || ' ' || count(code) FROM coded").await, "500 0");
    });
}

/// Conditions that NULL would fulfil hold for the values that another condition orders.
#[test]
fn a_column_that_is_ordered_and_may_be_null() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE terms (begins date NOT NULL, ends date,
                     CONSTRAINT ordered CHECK (ends IS NULL OR ends > begins),
                     CONSTRAINT short CHECK (ends IS NULL OR ends - begins <= 365))",
            )
            .await;
        let described = database.fill("terms", 1_000).await.unwrap();
        assert_says(&described.warnings.join(""), &["combinations that satisfy", "short"]);
        assert_eq!(database.value("SELECT count(ends) > 100 FROM terms").await, "true");
    });
}

/// A generated column with a text around a unique one is unique.
#[test]
fn a_unique_generated_text_around_a_unique_number() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE invoices (number bigint GENERATED ALWAYS AS IDENTITY,
                     label text GENERATED ALWAYS AS ('INV-' || number) STORED UNIQUE, note text)",
            )
            .await;
        database.fill("invoices", 500).await.unwrap();
        assert_eq!(database.value("SELECT count(DISTINCT label) FROM invoices").await, "500");
    });
}

/// Types of extensions by their text input. The type `vector` stands for that of pgvector.
#[test]
fn types_of_extensions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE EXTENSION ltree; CREATE EXTENSION hstore; CREATE EXTENSION cube; CREATE EXTENSION seg;
                 CREATE TABLE rich (id int PRIMARY KEY, path ltree NOT NULL, attributes hstore, place cube NOT NULL, span seg NOT NULL);
                 CREATE TYPE vector;
                 CREATE FUNCTION vector_in(cstring) RETURNS vector LANGUAGE internal IMMUTABLE STRICT AS 'textin';
                 CREATE FUNCTION vector_out(vector) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
                 CREATE FUNCTION vector_typmod_in(cstring[]) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'varchartypmodin';
                 CREATE FUNCTION vector_typmod_out(int) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'varchartypmodout';
                 CREATE TYPE vector (INPUT = vector_in, OUTPUT = vector_out, TYPMOD_IN = vector_typmod_in,
                     TYPMOD_OUT = vector_typmod_out);
                 CREATE TABLE items (id int PRIMARY KEY, embedding vector(4) NOT NULL,
                     CHECK (cardinality(translate(embedding::text, '[]', '{}')::float4[]) = 4))",
            )
            .await;
        for table in ["rich", "items"] {
            let described =
                database.fill(table, 2_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!(described.warnings, Vec::<String>::new(), "{table}");
        }
        let various =
            "SELECT count(DISTINCT path) > 500 AND count(attributes) BETWEEN 1800 AND 1999 FROM rich";
        assert_eq!(database.value(various).await, "true");
        assert_eq!(database.value("SELECT count(DISTINCT embedding::text) > 100 FROM items").await, "true");
    });
}

/// pgrig does not judge values of types of extensions: a column that may be NULL is NULL if the server evaluates an expression of it.
#[test]
fn types_of_extensions_under_conditions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE EXTENSION ltree; CREATE EXTENSION hstore;
                 CREATE DOMAIN tagged AS hstore CHECK (VALUE ? 'language');
                 CREATE TABLE trees (id int PRIMARY KEY, deep ltree CHECK (nlevel(deep) > 5), tags tagged, long ltree, free ltree,
                     tail ltree GENERATED ALWAYS AS (subpath(free, 5, 1)) STORED, plain ltree);
                 CREATE INDEX ON trees (subpath(long, 5, 1));",
            )
            .await;
        let described = database.fill("trees", 1_000).await.unwrap();
        let warnings = described.warnings.join("\n");
        for name in ["deep", "tags", "long", "free"] {
            let reason = format!("column {name} is NULL, because a condition or an expression uses it");
            assert_says(&warnings, &[&reason]);
        }
        assert!(!warnings.contains("plain"), "{warnings}");
        let values = "SELECT count(deep) + count(tags) + count(long) + count(free) || ' ' || count(tail)
                             || ' ' || (count(plain) > 800) FROM trees";
        assert_eq!(database.value(values).await, "0 0 true");
    });
}

/// pgrig makes addresses of version 4, points anywhere and ranges of any numbers, unless a condition asks for others.
#[test]
fn addresses_points_and_ranges_under_conditions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE hosts (address inet NOT NULL CHECK (family(address) = 6), network cidr NOT NULL CHECK (masklen(network) = 24))",
            )
            .await;
        database.fill("hosts", 1_000).await.unwrap();
        database
            .sql(
                "CREATE TABLE places (place point NOT NULL CHECK (place[0] BETWEEN -180 AND 180 AND place[1] BETWEEN -90 AND 90));
                 CREATE TABLE shares (part int4range NOT NULL CHECK (lower(part) >= 0 AND upper(part) <= 100));",
            )
            .await;
        database.fill("places", 1_000).await.unwrap();
        database.fill("shares", 1_000).await.unwrap();
        let various = "SELECT count(DISTINCT place::text) > 50 FROM places";
        assert_eq!(database.value(various).await, "true");
        let various = "SELECT count(DISTINCT address) > 100 AND count(DISTINCT network) > 100 FROM hosts";
        assert_eq!(database.value(various).await, "true");
    });
}

/// Values between the constants of a condition make keys for many rows.
#[test]
fn keys_under_a_condition_on_their_sum() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE sums (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a, b), CHECK (a <> b), CHECK (a + b < 1000))",
            )
            .await;
        database.fill("sums", 2_000).await.unwrap();
    });
}
