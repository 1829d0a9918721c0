//! Settings of the migration that would end pgrig's sessions.

use ddl::{Amount, Probes, Request};
use testkit::{RELEASES, assert_says};

use crate::support::{left, measured, request, server};

/// pgrig reads locks in the open transaction, which takes longer than the limit.
#[test]
fn a_limit_of_idle_transactions_does_not_end_the_run() {
    let schema = "CREATE TABLE orders (id int PRIMARY KEY, n int);";
    let migration = "
        SET idle_in_transaction_session_timeout = '1ms';
        SET lock_timeout = '5s';
        BEGIN;
        SET LOCAL transaction_timeout = '5ms';
        SET LOCAL idle_in_transaction_session_timeout = 1;
        ALTER TABLE orders ADD a int;
        UPDATE orders SET n = n;
        COMMIT;
        SET SESSION idle_session_timeout = '1ms';
        RESET idle_in_transaction_session_timeout;
        SELECT set_config('idle_in_transaction_session_timeout', '1ms', false);
        SELECT pg_catalog.set_config('idle_session_timeout', '1ms', false);
        ALTER TABLE orders ADD b int;";
    for release in RELEASES {
        let server = server(release);
        let request =
            Request { probes: Some(Probes::default()), ..request(schema, migration, Amount::Rows(500)) };
        let warnings = &request.script.warnings;
        assert_eq!(warnings.len(), 7, "{warnings:?}");
        assert_says(&warnings[1], &["line 5: ", "transaction_timeout", "pauses in transactions"]);
        let outcome = measured(&server, &request).unwrap();
        assert_eq!(outcome.failed().count(), 0, "{release}: {:#?}", outcome.statements);
        let sql: Vec<&str> = outcome.statements.iter().map(|one| one.statement.sql.as_str()).collect();
        let wanted = [
            "SET lock_timeout = '5s';",
            "BEGIN;",
            "ALTER TABLE orders ADD a int;",
            "UPDATE orders SET n = n;",
            "COMMIT;",
            "ALTER TABLE orders ADD b int;",
        ];
        assert_eq!(sql, wanted, "{release}");
        assert_eq!(left(&server), Vec::<String>::new());
    }
}
