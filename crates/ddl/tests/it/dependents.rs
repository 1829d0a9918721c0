//! Views, rules, policies, triggers, functions and publications of the original, because of which a statement that runs on the copy fails there.

use ddl::{Amount, Outcome, Request, Schema};
use model::{Model, Privacy};
use testkit::{RELEASES, Server, assert_says, block_on};

use crate::support::{Warned, measured, measured_by, request, server};

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
    CREATE TABLE grouped (id int PRIMARY KEY, n int, m int UNIQUE);
    CREATE VIEW by_id AS SELECT id, n FROM grouped GROUP BY id;
    CREATE TABLE lines (id int PRIMARY KEY, note text);
    CREATE FUNCTION newest() RETURNS SETOF lines LANGUAGE sql AS 'SELECT * FROM lines ORDER BY id LIMIT 1';
";
/// Objects of later releases: functions with a body that the server has read (14), and publications with columns or a condition (15).
const LATER: [(u16, &str); 2] = [
    (
        14,
        "CREATE TABLE sales (id int PRIMARY KEY, amount int, region text);
         CREATE FUNCTION sold(int) RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(amount) FROM sales WHERE id > $1; END;
         CREATE VIEW sums AS SELECT sold(1) AS sold;
         CREATE PROCEDURE moved() LANGUAGE sql BEGIN ATOMIC UPDATE sales SET region = 'x'; END;",
    ),
    (
        15,
        "CREATE TABLE news (id int PRIMARY KEY, title text, body text, is_public boolean);
         CREATE PUBLICATION feed FOR TABLE news (id, title);
         CREATE PUBLICATION \"Open\" FOR TABLE news WHERE (is_public);",
    ),
];
/// The server refuses each of them in the original, if that has its objects. They run in this order on the copy.
const REFUSED_LATER: [(u16, &str, &str); 9] = [
    (14, "ALTER TABLE sales ALTER amount TYPE bigint", "(function sold(integer) uses sales.amount)"),
    (14, "ALTER TABLE sales ALTER region TYPE text", "(procedure moved() uses sales.region)"),
    (14, "ALTER TABLE sales DROP COLUMN amount", "(function sold(integer) uses sales.amount)"),
    (14, "DROP TABLE sales", "(function sold(integer), procedure moved() use sales)"),
    (15, "ALTER TABLE news ALTER title TYPE varchar(99)", "(publication feed uses news.title)"),
    (15, "ALTER TABLE news ALTER is_public TYPE text", "(publication \"Open\" uses news.is_public)"),
    (15, "ALTER TABLE news DROP title", "(publication feed uses news.title)"),
    (15, "ALTER TABLE news DROP COLUMN is_public", "(publication \"Open\" uses news.is_public)"),
    (15, "ALTER TABLE news DROP CONSTRAINT news_pkey, DROP id", "(publication feed uses news.id)"),
];
/// The server refuses each of them in the original. They run in this order on the copy.
const REFUSED: [(&str, &str); 19] = [
    // The type that it has.
    ("ALTER TABLE orders ALTER total TYPE int", "(view open_orders uses orders.total)"),
    (
        "ALTER TABLE ONLY orders ALTER COLUMN \"state\" SET DATA TYPE text",
        "(view open_orders uses orders.state)",
    ),
    ("ALTER TABLE parted ALTER m TYPE int", "(view parts uses parted_1.m)"),
    (
        "ALTER TABLE grouped DROP CONSTRAINT grouped_pkey",
        "(view by_id uses constraint grouped_pkey on grouped)",
    ),
    (
        "DO $$ BEGIN ALTER TABLE grouped DROP CONSTRAINT grouped_m_key, DROP CONSTRAINT grouped_pkey; END $$",
        "(view by_id uses constraint grouped_pkey on grouped)",
    ),
    ("DROP TABLE lines", "(function newest() uses lines)"),
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
    original_of(server, SHOP, migrations)
}

/// The same of a database that this SQL makes.
fn original_of(server: &Server, sql: &str, migrations: &[&str]) -> (Schema, Vec<Option<String>>) {
    block_on(async {
        let connection = server.database().await.target.connect().await.unwrap();
        connection.client.batch_execute(sql).await.unwrap();
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
        assert_refused(release, &outcome, &REFUSED.map(|(_, names)| names), messages);
    }
}

/// All but the last statement fail with the server's messages, and name these objects.
fn assert_refused(release: u16, outcome: &Outcome, names: &[&str], messages: Vec<Option<String>>) {
    let (last, refused) = outcome.statements.split_last().unwrap();
    assert!(last.found.is_some() && last.failed.is_none(), "{release}: {last:#?}");
    assert_eq!(refused.len(), names.len(), "{release}");
    for ((one, names), message) in refused.iter().zip(names).zip(messages) {
        let message = message.unwrap_or_else(|| panic!("{release}: {one:#?}"));
        let failed = one.failed.as_ref().unwrap_or_else(|| panic!("{release}: {one:#?}"));
        assert_says(&failed.message, &["in database shop, the statement fails: ", &message, names]);
    }
}

/// A remedy drops the views that call a function first, and leaves other tables in a publication.
#[test]
fn functions_and_publications_of_the_original_are_known() {
    for release in RELEASES.into_iter().filter(|release| *release >= LATER[0].0) {
        let server = server(release);
        let sql: String = LATER.iter().filter(|(since, _)| *since <= release).map(|(_, sql)| *sql).collect();
        let refused: Vec<_> = REFUSED_LATER.into_iter().filter(|(since, ..)| *since <= release).collect();
        let statements: Vec<&str> = refused.iter().map(|(_, sql, _)| *sql).collect();
        let names: Vec<&str> = refused.iter().map(|(.., names)| *names).collect();
        let (schema, messages) = original_of(&server, &sql, &statements);
        let migration = statements.join("; ") + "; ALTER TABLE sales ADD a int";
        let outcome = outcome(&server, &schema, &migration);
        assert_refused(release, &outcome, &names, messages);
        let remedies = [
            "DROP VIEW IF EXISTS public.sums; DROP FUNCTION IF EXISTS public.sold(integer)",
            "DO $$ BEGIN IF EXISTS (SELECT FROM pg_publication WHERE pubname = 'feed') THEN ALTER PUBLICATION feed DROP TABLE public.news; \
             END IF; END $$",
        ];
        for (place, drops) in [0, 4].into_iter().zip(remedies).filter(|(place, _)| *place < refused.len()) {
            let remedy = outcome.statements[place].failed.as_ref().and_then(|failed| failed.remedy.clone());
            assert_says(&remedy.unwrap(), &[drops]);
            let migration = format!("{drops}; {}", statements[place]);
            let (schema, messages) = original_of(&server, &sql, &[&migration]);
            assert_eq!(messages, [None::<String>], "{release}: {migration}");
            let outcome = self::outcome(&server, &schema, &migration);
            assert!(outcome.failed().next().is_none(), "{release}: {migration}: {:#?}", outcome.statements);
        }
    }
}

/// A model has none of these objects: a warning names the statements that they may refuse, and no others.
#[test]
fn statements_that_unknown_objects_may_refuse_are_named() {
    let server = server(RELEASES[0]);
    let schema = block_on(async {
        let connection = server.database().await.target.connect().await.unwrap();
        connection.client.batch_execute(SHOP).await.unwrap();
        let facts =
            catalog::capture(&connection.client, None, None, catalog::TIMEOUT, &server::unwatched).await;
        let model = Model::of(&facts.unwrap(), &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        Schema::of_model(&model, "shop.toml").unwrap()
    });
    let warnings = |migration: &str| {
        let request = Request { schema: schema.clone(), ..request("", migration, Amount::Rows(100)) };
        let mut warned = Warned::default();
        let outcome = measured_by(&server, &request, &mut warned).unwrap();
        assert!(outcome.failed().next().is_none(), "{migration}: {:#?}", outcome.statements);
        warned
            .0
            .into_iter()
            .filter(|warning| warning.contains("in the original if a view"))
            .collect::<Vec<_>>()
    };
    let unchanged = "CREATE TABLE made (a int); ALTER TABLE made DROP a; ALTER TABLE orders ADD b int; \
                     ALTER TABLE orders DROP b; ALTER TABLE orders RENAME note TO text; CREATE INDEX ON orders (total)";
    assert!(warnings(unchanged).is_empty());
    let found = warnings(
        "ALTER TABLE orders ALTER total TYPE int; ALTER TABLE orders ADD b int; \
                          ALTER TABLE grouped DROP CONSTRAINT grouped_pkey; DROP TABLE secrets",
    );
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_says(warning, &["statements 1, 3, 4 drop or retype columns, constraints or tables", "give -d"]);
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
        "ALTER TABLE grouped DROP CONSTRAINT grouped_m_key, ALTER m TYPE int".to_owned(),
        "ALTER TABLE grouped DROP CONSTRAINT grouped_pkey CASCADE, ALTER n TYPE bigint".to_owned(),
        "DROP VIEW IF EXISTS by_id; ALTER TABLE grouped ALTER id TYPE bigint; DROP FUNCTION IF EXISTS newest(); DROP TABLE lines"
            .to_owned(),
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
