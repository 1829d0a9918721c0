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

/// As pg_dumpall and pg_dump --create write it.
#[test]
fn statements_of_a_schema_that_concern_the_whole_server_are_skipped() {
    let schema = "
        CREATE ROLE shop_owner;
        ALTER ROLE shop_owner WITH NOSUPERUSER LOGIN;
        CREATE ROLE shop_reader;
        GRANT shop_owner TO shop_reader;
        COMMENT ON ROLE shop_owner IS 'x';
        GRANT CONNECT ON DATABASE shop TO shop_reader;
        COMMENT ON DATABASE shop IS 'x';
        CREATE TABLE orders (id int PRIMARY KEY, note text);
        ALTER TABLE orders OWNER TO shop_owner;
        GRANT SELECT ON orders TO shop_reader;
    ";
    for release in RELEASES {
        let server = server(release);
        let request = request(schema, "ALTER TABLE orders ADD a int", Amount::Rows(100));
        let [warning] = &request.schema.unseen[..] else { panic!("{:?}", request.schema.unseen) };
        assert_says(
            warning,
            &[
                "1 × ALTER ROLE, 1 × COMMENT ON DATABASE, 1 × COMMENT ON ROLE, 2 × CREATE ROLE, 1 × GRANT ON DATABASE, 1 × GRANT of a role",
                "create the role on the server that measures",
            ],
        );
        let outcome = measured(&server, &request).unwrap();
        assert!(outcome.statements[0].largest().is_some(), "{release}: {:#?}", outcome.statements);
        assert_eq!(left(&server), Vec::<String>::new(), "{release}");
    }
}
