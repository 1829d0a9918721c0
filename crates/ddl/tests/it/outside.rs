//! Effects outside of pgrig's databases: none stays.

use ddl::{Amount, DdlError, Schema};
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{left, measured, request, server};

const SHOP: &str = "CREATE TABLE orders (id int PRIMARY KEY, note text);";
/// As pg_dump writes it.
const SUBSCRIPTION: &str = "CREATE SUBSCRIPTION from_elsewhere CONNECTION 'host=elsewhere.invalid dbname=shop' \
                            PUBLICATION changes WITH (connect = false, slot_name = 'from_elsewhere')";

/// The server drops no database that has a subscription.
#[test]
fn subscriptions_are_dropped_with_pgrig_s_databases() {
    for release in RELEASES {
        let server = server(release);
        // Of a killed run.
        let killed = "pgrig_ddl_0123456789abcdef_look";
        server.sql(&format!("CREATE DATABASE {killed} CONNECTION LIMIT 1885827689"));
        block_on(async {
            let connection = server.connect(killed).await;
            connection.client.batch_execute(SUBSCRIPTION).await.unwrap();
            connection.close().await;
        });
        let migration = format!("DO $$ BEGIN {SUBSCRIPTION}; END $$; ALTER TABLE orders ADD a int;");
        let outcome = measured(&server, &request(SHOP, &migration, Amount::Rows(100))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(left(&server), Vec::<String>::new(), "{release}");
    }
}

#[test]
fn a_schema_with_a_subscription_is_refused_with_the_remedy() {
    let schema = format!("{SHOP}\n{SUBSCRIPTION};\n");
    let error = Schema::of_script(&schema, "shop.sql").unwrap_err();
    assert!(matches!(error, DdlError::Subscription { line: 2, .. }), "{error}");
    assert_says(
        &error.to_string(),
        &["shop.sql, line 2: CREATE SUBSCRIPTION", "pg_dump --schema-only --no-subscriptions"],
    );
    assert_eq!(failure::Classified::class(&error), failure::Class::Request);
}
