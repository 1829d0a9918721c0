//! Defaults that the table's own constraints refuse.

use crate::support::on_each_release;
use catalog::DescribeRequest;
use testkit::assert_says;

#[test]
fn a_default_that_violates_a_check_is_not_used() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE DOMAIN grade AS int CHECK (VALUE BETWEEN 1 AND 5);
                 CREATE TABLE t (
                     id int PRIMARY KEY,
                     token_type int NOT NULL DEFAULT 0, kind text DEFAULT 'zz' CHECK (kind IN ('a', 'b')),
                     share int DEFAULT 0 CHECK (share > 0 AND share <= 100), grade grade DEFAULT 0,
                     slug text NOT NULL DEFAULT '' CHECK (slug <> ''), state text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'old')),
                     n int NOT NULL DEFAULT 7 CHECK (n > 5)
                 );
                 ALTER TABLE t ADD CONSTRAINT types CHECK (token_type = 1 OR token_type = 2);",
            )
            .await;
        for takes_defaults in [false, true] {
            let request =
                DescribeRequest { rows: Some(1_000), seed: 42, takes_defaults, ..DescribeRequest::default() };
            database.fill_requested("t", &request).await.unwrap();
            let values = "SELECT count(DISTINCT token_type) = 2 AND count(DISTINCT kind) = 2 AND count(DISTINCT share) > 20
                                 AND count(DISTINCT grade) = 5 AND bool_and(state = 'new' AND n = 7) FROM t";
            assert_eq!(database.value(values).await, "true", "{takes_defaults}");
            database.sql("TRUNCATE t").await;
        }
        // The user decides.
        let error = database.refused("t", &["token_type=default"]).await;
        assert_says(&error, &["the rows would violate types, CHECK ", "--column 'token_type=SPEC'"]);
    });
}
