//! Views, rules, policies and triggers of the original, because of which a statement that runs on the copy fails there.

use ddl::{Amount, Outcome, Request, Schema};
use testkit::{RELEASES, Server, assert_says, block_on};

use crate::support::{measured, request, server};

const SHOP: &str = "
    CREATE TABLE customers (id int PRIMARY KEY, name text);
    CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, total int, state text, note text);
    CREATE TABLE secrets (id int PRIMARY KEY, tenant int, body text);
    CREATE TABLE parted (id int, n int, m int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000000);
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE VIEW open_orders AS SELECT id, total FROM orders WHERE state = 'open';
    CREATE VIEW \"Large\" AS SELECT id FROM open_orders WHERE total > 5;
    CREATE MATERIALIZED VIEW counted AS SELECT customer_id, count(*) FROM orders GROUP BY 1;
    CREATE RULE quiet AS ON UPDATE TO customers WHERE NEW.name IS NULL DO INSTEAD NOTHING;
    CREATE POLICY own ON secrets USING (tenant = 1);
    CREATE TRIGGER noted BEFORE UPDATE OF body ON secrets FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE TRIGGER each AFTER UPDATE ON parted FOR EACH ROW WHEN (NEW.n > OLD.n) EXECUTE FUNCTION nothing();
    CREATE VIEW parts AS SELECT m FROM parted_1;
";
/// The server refuses each of them in the original. They run in this order on the copy.
const REFUSED: [(&str, &str); 13] = [
    ("ALTER TABLE orders ALTER total TYPE bigint", "(view open_orders uses orders.total)"),
    (
        "ALTER TABLE orders ALTER COLUMN state SET DATA TYPE varchar(9)",
        "(view open_orders uses orders.state)",
    ),
    ("ALTER TABLE orders DROP COLUMN state", "(view open_orders uses orders.state)"),
    ("ALTER TABLE orders DROP customer_id", "(materialized view counted uses orders.customer_id)"),
    ("ALTER TABLE customers ALTER name TYPE varchar(9)", "(rule quiet on customers uses customers.name)"),
    ("ALTER TABLE secrets ALTER tenant TYPE bigint", "(policy own on secrets uses secrets.tenant)"),
    ("ALTER TABLE secrets DROP COLUMN tenant", "(policy own on secrets uses secrets.tenant)"),
    ("ALTER TABLE secrets ALTER body TYPE varchar(9)", "(trigger noted on secrets uses secrets.body)"),
    ("ALTER TABLE secrets DROP body", "(trigger noted on secrets uses secrets.body)"),
    ("ALTER TABLE parted ALTER n TYPE bigint", "(trigger each on parted uses parted.n)"),
    ("ALTER TABLE parted ALTER m TYPE bigint", "(view parts uses parted_1.m)"),
    (
        "DO $$ BEGIN ALTER TABLE orders ALTER total TYPE numeric; END $$",
        "(view open_orders uses orders.total)",
    ),
    ("DROP TABLE orders", "(materialized view counted, view open_orders use orders)"),
];

/// The schema of a new database with these tables; and for each migration the message with which it fails there, if it does.
fn original(server: &Server, migrations: &[&str]) -> (Schema, Vec<Option<String>>) {
    block_on(async {
        let connection = server.database().await.target.connect().await.unwrap();
        connection.client.batch_execute(SHOP).await.unwrap();
        let schema = Schema::of_database(&connection, "shop").await.unwrap();
        let mut messages = Vec::new();
        for migration in migrations {
            let ran = connection.client.batch_execute(&format!("BEGIN; {migration}")).await;
            messages.push(ran.err().map(|error| error.as_db_error().unwrap().message().to_owned()));
            connection.client.batch_execute("ROLLBACK").await.unwrap();
        }
        (schema, messages)
    })
}

fn outcome(server: &Server, schema: &Schema, migration: &str) -> Outcome {
    let request = Request { schema: schema.clone(), ..request("", migration, Amount::Rows(100)) };
    measured(server, &request).unwrap()
}

/// The message is the server's. A statement that fails on the copy because of one of them is measured without it.
#[test]
fn statements_that_fail_because_of_objects_of_the_original_are_not_measurable() {
    for release in RELEASES {
        let server = server(release);
        let statements = REFUSED.map(|(sql, _)| sql);
        let (schema, messages) = original(&server, &statements);
        let outcome = outcome(&server, &schema, &(statements.join("; ") + "; ALTER TABLE orders ADD a int"));
        let (last, refused) = outcome.statements.split_last().unwrap();
        assert!(last.found.is_some() && last.failed.is_none(), "{release}: {last:#?}");
        for ((one, (_, names)), message) in refused.iter().zip(REFUSED).zip(messages) {
            let message = message.unwrap_or_else(|| panic!("{release}: {one:#?}"));
            let failed = one.failed.as_ref().unwrap_or_else(|| panic!("{release}: {one:#?}"));
            assert_says(&failed.message, &["in database shop, the statement fails: ", &message, names]);
        }
    }
}

/// The remedy is one: the objects are dropped, those that depend on others first, and made again later.
#[test]
fn objects_that_the_migration_drops_are_no_obstacle() {
    let retyped = "ALTER TABLE orders ALTER total TYPE bigint";
    let drops = "DROP VIEW IF EXISTS public.\"Large\"; DROP VIEW IF EXISTS public.open_orders";
    let migrations = [
        format!("{drops}; {retyped}; CREATE VIEW open_orders AS SELECT id, total FROM orders"),
        format!("DROP VIEW IF EXISTS open_orders CASCADE; {retyped}"),
        format!("DO $$ BEGIN DROP VIEW IF EXISTS \"Large\", open_orders; END $$; {retyped}"),
        "DROP TRIGGER IF EXISTS noted ON secrets; ALTER TABLE secrets ALTER body TYPE varchar(9)".to_owned(),
        format!("ALTER TABLE orders DROP COLUMN state CASCADE; {retyped}"),
        "ALTER TABLE orders ALTER note TYPE varchar(9), ADD b int REFERENCES customers ON DELETE CASCADE"
            .to_owned(),
        "ALTER TABLE orders RENAME total TO sum; DROP TABLE orders CASCADE; DROP TABLE secrets".to_owned(),
    ];
    let all: Vec<&str> = migrations.iter().map(String::as_str).collect();
    for release in RELEASES {
        let server = server(release);
        let (schema, messages) = original(&server, &all);
        assert!(messages.iter().all(Option::is_none), "{release}: {messages:?}");
        for migration in &all {
            let outcome = outcome(&server, &schema, migration);
            assert!(outcome.failed().next().is_none(), "{release}: {migration}: {:#?}", outcome.statements);
        }
        let refused = outcome(&server, &schema, retyped);
        let remedy = refused.statements[0].failed.as_ref().and_then(|failed| failed.remedy.clone()).unwrap();
        assert_says(&remedy, &[drops, "create them again later"]);
    }
}

/// Names of tables and columns that the migration has changed before are those of the original in the message.
#[test]
fn columns_are_known_by_their_names_in_the_original() {
    let server = server(RELEASES[0]);
    let (schema, _) = original(&server, &[]);
    let migration = "ALTER TABLE orders RENAME total TO sum; ALTER TABLE orders RENAME TO sales; \
                     BEGIN; ALTER TABLE sales DROP COLUMN note; ROLLBACK; ALTER TABLE sales ALTER sum TYPE bigint";
    let outcome = outcome(&server, &schema, migration);
    let failed: Vec<usize> = outcome.failed().map(|(one, _)| one.number).collect();
    assert_eq!(failed, [6], "{:#?}", outcome.statements);
    let message = &outcome.statements[5].failed.as_ref().unwrap().message;
    assert_says(message, &["(view open_orders uses orders.total)"]);
}
