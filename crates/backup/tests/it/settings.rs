//! Settings of a role and of a database: those of texts do not change what is compared, and none hides damage.

use testkit::{Need, block_on, require};

use crate::support::{rehearsed, server};

/// The function is not as immutable as it says: its index is that of the database's time zone.
const SCHEMA: &str = r#"
    CREATE TABLE "T x" (id int PRIMARY KEY, of regclass, at timestamptz, took interval, part float8, v bytea, names text[]);
    CREATE TABLE lower_case (id int PRIMARY KEY CHECK (id > 0));
    INSERT INTO "T x" SELECT i, 'lower_case', timestamptz '2024-01-01 00:00+00' + i * interval '1 hour', i * interval '1 hour', i / 3.0,
                             decode(md5(i::text), 'hex'), ARRAY[i::text, NULL] FROM generate_series(1, 500) i;
    INSERT INTO lower_case SELECT i FROM generate_series(1, 500) i;
    CREATE FUNCTION day(timestamptz) RETURNS date IMMUTABLE LANGUAGE sql AS 'SELECT $1::date';
"#;
const SETTINGS: [&str; 9] = [
    "quote_all_identifiers = on",
    "DateStyle = 'German'",
    "IntervalStyle = 'sql_standard'",
    "TimeZone = 'America/New_York'",
    "bytea_output = 'escape'",
    "extra_float_digits = -3",
    "array_nulls = off",
    "standard_conforming_strings = off",
    "default_transaction_isolation = 'serializable'",
];

#[test]
fn settings_of_the_role_and_of_the_database_change_no_comparison() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    for sql in ["CREATE DATABASE shop", "CREATE DATABASE plain", "CREATE ROLE odd SUPERUSER LOGIN"] {
        server.sql(sql);
    }
    block_on(async {
        for name in ["shop", "plain"] {
            let connection = server.connect(name).await;
            connection.client.batch_execute(SCHEMA).await.unwrap();
            connection.close().await;
        }
        for setting in SETTINGS {
            server.connect("postgres").await.client.batch_execute(&odd(setting)).await.unwrap();
        }
        let shop = server.connect("shop").await;
        shop.client.batch_execute(r#"CREATE INDEX ON "T x" (day(at))"#).await.unwrap();
        shop.close().await;
        // A setting of the role takes precedence over that of the database, and a dump restores neither.
        let of_database = server.target("shop");
        let of_role = server.target("plain").with_user("odd");
        for target in [of_database, of_role] {
            let outcome = rehearsed(&server, &target, &["custom:none", "base"]).await.unwrap();
            assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
            for trial in &outcome.trials {
                assert_eq!((trial.verified.rows, trial.verified.constraints), (1000, 3), "{trial:#?}");
                assert!(trial.verified.indexes > Some(2), "{trial:#?}");
            }
        }
    });
}

fn odd(setting: &str) -> String {
    format!("ALTER DATABASE shop SET {setting}; ALTER ROLE odd SET {setting}")
}
