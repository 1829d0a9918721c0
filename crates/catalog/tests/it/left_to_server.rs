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
