//! Effects outside of pgrig's databases: none stays.

use std::time::Duration;

use ddl::{Amount, DdlError, Effort, Observer, Plan, Request, Schema, Statement};
use testkit::{RELEASES, Server, assert_says, block_on, spec};

use crate::support::{Warned, left, measured, measured_by, request, server};

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

/// The server drops no database that has a prepared transaction, and no template.
#[test]
fn a_prepared_transaction_of_a_killed_run_is_rolled_back() {
    let settings = [("wal_level", "replica"), ("autovacuum", "off"), ("max_prepared_transactions", "5")];
    for release in RELEASES {
        let server = Server::start(spec(release, &settings));
        let (kept, killed) = ("pgrig_ddl_0123456789abcdee_look", "pgrig_ddl_0123456789abcdef_look");
        for name in [kept, killed] {
            server.sql(&format!("CREATE DATABASE {name} CONNECTION LIMIT 1885827689"));
        }
        server.sql(&format!("ALTER DATABASE {kept} IS_TEMPLATE true"));
        // One of somebody else's, too.
        for (database, gid) in [(killed, "of pgrig''s"), ("postgres", "of others")] {
            block_on(async {
                let connection = server.connect(database).await;
                let prepare = format!("PREPARE TRANSACTION '{gid}'");
                for statement in ["BEGIN", "CREATE TABLE prepared (a int)", prepare.as_str()] {
                    connection.client.batch_execute(statement).await.unwrap();
                }
                connection.close().await;
            });
        }
        let mut warned = Warned::default();
        let request = request(SHOP, "ALTER TABLE orders ADD a int", Amount::Rows(100));
        measured_by(&server, &request, &mut warned).unwrap();
        assert_eq!(left(&server), [kept], "{release}");
        let could_not = format!("pgrig could not drop database {kept}, which a killed run left: ");
        assert_says(&warned.0.join("\n"), &[could_not.as_str(), "template"]);
        let prepared: String = block_on(async {
            let query = "SELECT string_agg(gid, ', ') FROM pg_prepared_xacts";
            server.connect("postgres").await.client.query_one(query, &[]).await.unwrap().get(0)
        });
        assert_eq!(prepared, "of others", "{release}");
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

/// A schema with a foreign table of another database on the same server.
fn with_foreign_table(server: &Server, mapping: &str) -> String {
    format!(
        "CREATE EXTENSION postgres_fdw;
         CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname 'elsewhere');
         {mapping};
         CREATE FOREIGN TABLE items (id int, n int) SERVER other;
         CREATE TABLE orders (id int PRIMARY KEY, n int)",
        server.socket_dir(),
        server.port()
    )
}

/// The migration runs several times.
#[test]
fn rows_of_foreign_servers_stay_as_they_are() {
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE DATABASE elsewhere");
        let target = server.target("elsewhere");
        let create = "CREATE TABLE items AS SELECT 1 AS id, 0 AS n";
        block_on(async { server.connect("elsewhere").await.client.batch_execute(create).await.unwrap() });
        let mapping = |role: &str| {
            format!("CREATE USER MAPPING FOR {role} SERVER other OPTIONS (user '{}')", target.user())
        };
        let in_body = format!("DO $do$ BEGIN {}; {}; END $do$", mapping("PUBLIC"), mapping("CURRENT_USER"));
        for (mapping, says) in [
            // Of a role that the server lacks, too.
            (mapping("CURRENT_USER"), "pgrig skipped 1 × CREATE USER MAPPING, so that the migration cannot"),
            (mapping("somebody"), "pgrig skipped 1 × CREATE USER MAPPING, so that the migration cannot"),
            (
                in_body,
                "pgrig dropped the user mappings, so that the migration cannot change data on other servers",
            ),
        ] {
            let schema = with_foreign_table(&server, &mapping);
            let migration = "UPDATE items SET n = n + 1; ALTER TABLE orders ADD a int; \
                             CREATE TABLE copied AS SELECT * FROM items;";
            let request = request(&schema, migration, Amount::Rows(100));
            let mut warned = Warned::default();
            let outcome = measured_by(&server, &request, &mut warned).unwrap();
            let warnings = [request.schema.unseen.join("\n"), warned.0.join("\n")].concat();
            assert_eq!(warnings.matches("data on other servers").count(), 1, "{release}: {warnings}");
            assert_says(&warnings, &[says]);
            let failed: Vec<usize> = outcome.failed().map(|(one, _)| one.number).collect();
            assert_eq!(failed, [1, 3], "{release}: {:#?}", outcome.statements);
            for (_, failed) in outcome.failed() {
                assert_says(&failed.message, &["user mapping not found"]);
                assert_says(failed.remedy.as_deref().unwrap(), &["pgrig drops the user mappings"]);
            }
            assert!(outcome.statements[1].largest().is_some(), "{release}: {:#?}", outcome.statements);
        }
        let changed: i64 = block_on(async {
            let client = server.connect("elsewhere").await.client;
            client.query_one("SELECT sum(n) FROM items", &[]).await.unwrap().get(0)
        });
        assert_eq!(changed, 0, "{release}");
        assert_eq!(left(&server), ["elsewhere"], "{release}");
    }
}

/// The schema's mappings are dropped before the migration.
#[test]
fn to_drop_a_user_mapping_has_a_remedy() {
    for release in RELEASES {
        let server = server(release);
        let schema = with_foreign_table(&server, "CREATE USER MAPPING FOR PUBLIC SERVER other");
        let migration = "DROP USER MAPPING FOR PUBLIC SERVER other; ALTER TABLE orders ADD a int;";
        let outcome = measured(&server, &request(&schema, migration, Amount::Rows(100))).unwrap();
        let (one, failed) = outcome.failed().next().unwrap();
        assert_eq!((one.number, outcome.failed().count()), (1, 1), "{release}: {failed:?}");
        assert_says(&failed.message, &["user mapping for "]);
        assert_says(failed.remedy.as_deref().unwrap(), &["DROP USER MAPPING IF EXISTS"]);
        assert_eq!(left(&server), Vec::<String>::new(), "{release}");
    }
}

/// Many runs on the newest release, few on the oldest.
fn effort(release: u16) -> Effort {
    if release == RELEASES[0] { Effort::Quick } else { Effort::Full }
}

/// Each run of the migration makes them again.
#[test]
fn roles_of_a_do_are_dropped_after_each_run() {
    let migration = "
        DO $$ BEGIN CREATE ROLE app_owner; CREATE ROLE \"App reader\"; GRANT app_owner TO \"App reader\"; END $$;
        ALTER TABLE orders OWNER TO app_owner;
        GRANT SELECT ON orders TO \"App reader\";
        ALTER TABLE orders ADD a int;
    ";
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE ROLE app_before");
        let request = request(SHOP, migration, Amount::Rows(100));
        let mut warned = Warned::default();
        let outcome =
            measured_by(&server, &Request { effort: effort(release), ..request }, &mut warned).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(left(&server), ["app_before"], "{release}");
        assert!(!warned.0.join("\n").contains("role"), "{release}: {warned:?}");
    }
}

/// The tables are created in several databases.
#[test]
fn roles_of_a_schema_are_dropped_with_the_databases() {
    let table = "CREATE TABLE orders (id int PRIMARY KEY, note text); GRANT SELECT ON orders TO app_owner;";
    let if_absent =
        "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app_owner') THEN CREATE ROLE app_owner; END IF";
    let migration = "GRANT INSERT ON orders TO app_owner; ALTER TABLE orders ADD a int;";
    for release in RELEASES {
        let server = server(release);
        let of = |schema: &str| {
            let request = request(schema, migration, Amount::Rows(100));
            measured(&server, &Request { effort: effort(release), ..request })
        };
        let outcome = of(&format!("DO $$ BEGIN {if_absent}; END $$; {table}")).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(left(&server), Vec::<String>::new(), "{release}");

        let error = of(&format!("DO $$ BEGIN CREATE ROLE app_owner; END $$; {table}")).unwrap_err();
        assert!(matches!(error, DdlError::SchemaRoles { .. }), "{release}: {error}");
        assert_says(
            &error.to_string(),
            &["creates roles (app_owner)", "only if the role is not in pg_roles"],
        );
        assert_eq!(failure::Classified::class(&error), failure::Class::Request);
        assert_eq!(left(&server), Vec::<String>::new(), "{release}");
    }
}

/// The server keeps a role on which other objects of its own depend.
#[test]
fn a_role_that_cannot_be_dropped_is_named() {
    let server = server(18);
    let migration = "
        DO $$ BEGIN CREATE ROLE app_stays; GRANT CONNECT ON DATABASE postgres TO app_stays; END $$;
        ALTER TABLE orders ADD a int;
    ";
    let mut warned = Warned::default();
    let outcome = measured_by(&server, &request(SHOP, migration, Amount::Rows(100)), &mut warned).unwrap();
    let (one, failed) = outcome.failed().next().unwrap();
    assert_eq!((one.number, outcome.failed().count()), (1, 1), "{failed:?}");
    assert_says(&failed.message, &["role \"app_stays\" already exists"]);
    assert_says(failed.remedy.as_deref().unwrap(), &["drop the role, or create it only if"]);
    assert_says(
        &warned.0.join("\n"),
        &["could not drop role app_stays, which this run made: ", "privileges for database postgres"],
    );
    assert_eq!(left(&server), ["app_stays"]);
}

/// Somebody else creates a role before the tables are filled.
struct Meanwhile<'a> {
    server: &'a Server,
    role: &'static str,
    warned: Warned,
}

impl Observer for Meanwhile<'_> {
    fn planned(&mut self, _: &Plan) {
        let (server, create) = (self.server, format!("CREATE ROLE {} LOGIN", self.role));
        // This thread is within a runtime.
        std::thread::scope(|scope| scope.spawn(|| server.sql(&create)).join().unwrap());
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
    fn warned(&mut self, warning: &str) {
        self.warned.warned(warning);
    }
}

/// Others may use the same server, and give roles names that the schema or the migration has.
#[test]
fn a_role_that_somebody_else_makes_meanwhile_stays() {
    let owned = format!("{SHOP} ALTER TABLE orders OWNER TO app;");
    let if_absent = "DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') THEN CREATE ROLE app; END IF;
    END $$; ALTER TABLE orders ADD a int;";
    let add = "ALTER TABLE orders ADD a int";
    let server = server(18);
    for (schema, migration, role) in
        [(SHOP, add, "somebody"), (owned.as_str(), add, "app"), (SHOP, if_absent, "app")]
    {
        let mut meanwhile = Meanwhile { server: &server, role, warned: Warned::default() };
        let request = Request { effort: Effort::Full, ..request(schema, migration, Amount::Rows(100)) };
        let outcome = measured_by(&server, &request, &mut meanwhile).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{migration}: {failed:#?}");
        let warnings = meanwhile.warned.0.join("\n");
        let (is_new, remedy) = (format!("role {role} is new on the server"), format!("run DROP ROLE {role}"));
        assert_says(&warnings, &[is_new.as_str(), "pgrig did not drop it", remedy.as_str()]);
        assert_eq!(left(&server), [role], "{migration}");
        server.sql(&format!("DROP ROLE {role}"));
    }
}

/// The transaction that made it is over when pgrig can ask.
#[test]
fn a_role_that_nothing_proves_to_be_of_the_run_stays() {
    let server = server(18);
    let migration = "DO $$ BEGIN CREATE ROLE app_late; COMMIT; END $$; ALTER TABLE orders ADD a int;";
    let mut warned = Warned::default();
    let outcome = measured_by(&server, &request(SHOP, migration, Amount::Rows(100)), &mut warned).unwrap();
    let (one, failed) = outcome.failed().next().unwrap();
    assert_eq!((one.number, outcome.failed().count()), (1, 1), "{failed:?}");
    assert_says(&failed.message, &["role \"app_late\" already exists"]);
    assert_says(failed.remedy.as_deref().unwrap(), &["drop the role, or create it only if"]);
    assert_says(&warned.0.join("\n"), &["role app_late is new on the server", "run DROP ROLE app_late"]);
    assert_eq!(left(&server), ["app_late"]);
}
