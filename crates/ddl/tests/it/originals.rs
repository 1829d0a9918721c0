//! Tables that are read from a database.

use ddl::Schema;
use testkit::{RELEASES, block_on};

use crate::support::server;

const SHOP: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, note text);
    CREATE TABLE parted (id int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
";
/// Objects beside the tables.
const OTHERS: &str = "
    CREATE SCHEMA \"Reports\";
    CREATE VIEW v_orders AS SELECT id FROM orders;
    CREATE VIEW \"Reports\".v AS SELECT id FROM v_orders;
    CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM orders;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER audit BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE TRIGGER each AFTER UPDATE ON parted FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE RULE quiet AS ON DELETE TO orders DO INSTEAD NOTHING;
    CREATE POLICY own ON orders;
";

/// The copy has the tables alone: that is told, and nothing where there is nothing else.
#[test]
fn what_a_copy_of_a_database_lacks_is_told() {
    for release in RELEASES {
        let server = server(release);
        block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(SHOP).await.unwrap();
            let schema = Schema::of_database(&connection, "shop").await.unwrap();
            assert_eq!(schema.unseen, Vec::<String>::new(), "{release}");
            connection.client.batch_execute(OTHERS).await.unwrap();
            let schema = Schema::of_database(&connection, "shop").await.unwrap();
            let [told] = &schema.unseen[..] else { panic!("{release}: {:?}", schema.unseen) };
            let lacks = "the copy lacks 2 views, 1 materialized view, 2 triggers, 1 rule and 1 policy of database shop";
            let names = "(\"Reports\".v, v_orders, counted, audit on orders, each on parted, quiet on orders, own on orders)";
            for part in [lacks, names, "pg_dump --schema-only"] {
                assert!(told.contains(part), "{release}: {told}");
            }
            connection.close().await;
        });
    }
}
