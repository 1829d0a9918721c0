//! Values that look like what the column's name says: the same by COPY and by pages.

use testkit::block_on as run;

use crate::support::{Filling, Tables};

const SCRIPT: &str = "
    CREATE TABLE customers (
        id int PRIMARY KEY, email text NOT NULL UNIQUE, login varchar(30) NOT NULL UNIQUE, name varchar(40) NOT NULL,
        first_name varchar(12) NOT NULL, city text NOT NULL UNIQUE, country char(2) NOT NULL, \"zipCode\" text NOT NULL,
        phone varchar(20) NOT NULL, homepage text NOT NULL, bio varchar(60) NOT NULL, ip inet NOT NULL,
        lat double precision NOT NULL, lon numeric(9,6) NOT NULL, balance numeric(10,2) NOT NULL CHECK (balance > 0),
        price numeric(6,2) NOT NULL CHECK (price < 5), age smallint NOT NULL, currency varchar(3) NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL, deleted_at timestamptz
    )";

/// True of every row.
const EXPECTED: &[&str] = &[
    r"email ~ '^[a-z]+\.[a-z]+\d+@example\.(com|net|org)$'",
    r"login ~ '^[a-z]+\d+$'",
    r"name ~ '^[A-Z][A-Za-z'']+ [A-Z][A-Za-z'']+$'",
    r"first_name ~ '^[A-Z][a-z]+$'",
    r"city ~ '^[0-9a-z]{13}$'",
    r"country ~ '^[A-Z]{2}$'",
    r#""zipCode" ~ '^\d{5}$'"#,
    r"phone ~ '^\+1-\d{3}-555-\d{4}$'",
    r"homepage ~ '^https://www\.example\.(com|net|org)/[a-z]+/\d{4}$'",
    r"bio ~ '^[A-Z][a-z ]+\.$'",
    "lat BETWEEN -90 AND 90",
    "lon BETWEEN -180 AND 180",
    "balance BETWEEN 1 AND 999.99",
    "age BETWEEN 18 AND 90",
    "currency ~ '^[A-Z]{3}$'",
    "created_at < updated_at",
    "deleted_at IS NULL OR updated_at < deleted_at",
];

async fn assert_expected(tables: &Tables) {
    for expected in EXPECTED {
        let query = format!("SELECT count(*) FROM customers WHERE ({expected}) IS NOT TRUE");
        assert_eq!(tables.value::<i64>(&query).await, 0, "{expected}");
    }
    let deleted: i64 = tables.value("SELECT count(deleted_at) FROM customers").await;
    assert!((1..1_000).contains(&deleted), "{deleted} of 5000 rows have deleted_at");
}

const ALL: &str = "SELECT md5(string_agg(c::text, '' ORDER BY id)) FROM customers c";

#[test]
fn names_of_columns_decide_by_copy_and_by_pages() {
    for major in [13, 18] {
        run(async {
            let tables = Tables::new(major, SCRIPT).await;
            tables.fill_directly(&Filling::of("customers", 5_000)).await;
            assert_expected(&tables).await;
            let by_pages: String = tables.value(ALL).await;
            // A trigger keeps pages away.
            tables
                .execute(
                    "TRUNCATE customers;
                     CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
                     CREATE TRIGGER same BEFORE INSERT ON customers FOR EACH ROW EXECUTE FUNCTION same()",
                )
                .await;
            let filling = Filling::of("customers", 5_000);
            tables.reason(&filling).await;
            tables.fill(&filling).await.unwrap();
            assert_expected(&tables).await;
            assert_eq!(tables.value::<String>(ALL).await, by_pages, "PostgreSQL {major}");
        });
    }
}
