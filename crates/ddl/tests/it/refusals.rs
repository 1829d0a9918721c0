//! Messages and remedies for statements that the server refuses, because it lacks something or because of the way in which pgrig runs them.

use ddl::{Amount, Outcome};
use testkit::{RELEASES, Server, assert_says, spec};

use crate::support::{Warned, left, measured, measured_by, request, server};

const SHOP: &str = "CREATE TABLE orders (id int PRIMARY KEY, note text);";

/// `pg_stat_activity` has no states then.
#[test]
fn transactions_are_seen_without_track_activities() {
    let transaction = "BEGIN; ALTER TABLE orders ADD a int; ALTER TABLE orders ADD b int; ROLLBACK; ALTER TABLE orders ADD a int";
    let are_seen = |outcome: &Outcome, begin: usize| {
        let found = |place: usize| outcome.statements[begin + place].found.as_ref().unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{failed:#?}");
        // The second statement keeps the lock of the first one.
        assert!(!found(1).locks.is_empty() && found(1).inherited.is_empty(), "{:#?}", found(1));
        assert!(found(2).locks.is_empty() && !found(2).inherited.is_empty(), "{:#?}", found(2));
        let held = |place: usize| outcome.statements[begin + place].largest().unwrap().runs[0];
        assert!(held(1).held >= held(1).seconds + held(2).seconds, "{:?}", held(1));
    };
    for release in RELEASES {
        let off = [("wal_level", "replica"), ("autovacuum", "off"), ("track_activities", "off")];
        let server = Server::start(spec(release, &off));
        are_seen(&measured(&server, &request(SHOP, transaction, Amount::Rows(100))).unwrap(), 0);
    }
    let migration = format!("SET track_activities = off; {transaction}");
    are_seen(&measured(&server(18), &request(SHOP, &migration, Amount::Rows(100))).unwrap(), 1);
}

/// Versions have other SQLSTATEs for the files of an extension.
#[test]
fn a_file_that_the_server_lacks_makes_a_statement_not_measurable() {
    let migration = "
        SELECT 1;
        CREATE EXTENSION pgrig_missing;
        COPY orders FROM '/pgrig-missing/orders.csv';
        CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'pgrig_missing';
        ALTER TABLE orders ADD a int;
    ";
    for release in RELEASES {
        let server = server(release);
        let outcome = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap();
        let failed: Vec<usize> = outcome.failed().map(|(one, _)| one.number).collect();
        assert_eq!(failed, [2, 3, 4], "{release}: {:#?}", outcome.statements);
        for (_, failed) in outcome.failed() {
            let remedy = failed.remedy.as_deref().unwrap();
            assert_says(remedy, &["lacks this file or extension: install it there"]);
        }
        assert!(outcome.statements[4].largest().is_some(), "{release}: {:#?}", outcome.statements);
        assert_eq!(left(&server), Vec::<String>::new());
    }
}

/// They are in the schema, so that the statement cannot succeed.
#[test]
fn objects_that_keep_a_column_as_it_is_get_a_remedy() {
    let schema = format!("{SHOP} CREATE VIEW notes AS SELECT note FROM orders;");
    for release in RELEASES {
        let server = server(release);
        let refused = |migration: &str| {
            measured(&server, &request(&schema, migration, Amount::Rows(10))).unwrap_err().to_string()
        };
        assert_says(
            &refused("ALTER TABLE orders ALTER note TYPE varchar(99)"),
            &[
                "statement 1 (",
                "view notes depends on column \"note\"",
                "; drop the view, rule,",
                "create it again later",
            ],
        );
        for migration in ["ALTER TABLE orders DROP note", "DROP TABLE orders"] {
            assert_says(
                &refused(migration),
                &["; drop these objects earlier in the migration, or write CASCADE"],
            );
        }
    }
}

/// The original's server has the role.
#[test]
fn a_policy_of_a_role_that_the_server_lacks_is_not_refused() {
    let schema = "
        CREATE TABLE orders (id int PRIMARY KEY, note text);
        ALTER TABLE orders OWNER TO app_user;
        ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
        CREATE POLICY tenant ON orders TO app_user USING (id > 0);
    ";
    let create = "create the role on the server that measures (CREATE ROLE app_user)";
    let skipped = "the server has no role app_user, so pgrig skipped 1 × CREATE POLICY, 1 × OWNER TO of the test's schema: ";
    for release in RELEASES {
        let server = server(release);
        for policy in ["DROP POLICY tenant ON orders", "ALTER POLICY tenant ON orders USING (true)"] {
            let migration = format!("{policy}; ALTER TABLE orders ADD a int;");
            let mut warned = Warned::default();
            let request = request(schema, &migration, Amount::Rows(100));
            let outcome = measured_by(&server, &request, &mut warned).unwrap();
            let warnings = warned.0.join("\n");
            assert_eq!(warnings.matches("has no role").count(), 1, "{release}: {warnings}");
            assert_says(&warnings, &[skipped, create]);
            let (one, failed) = outcome.failed().next().unwrap();
            assert_eq!((one.number, outcome.failed().count()), (1, 1), "{release}: {failed:?}");
            assert_says(failed.remedy.as_deref().unwrap(), &["1 × CREATE POLICY", create]);
            assert!(outcome.statements[1].largest().is_some(), "{release}: {:#?}", outcome.statements);
        }
        // No statement that was left out makes a constraint.
        let other = "ALTER TABLE orders DROP CONSTRAINT missing";
        let error = measured(&server, &request(schema, other, Amount::Rows(100))).unwrap_err();
        assert_says(&error.to_string(), &["statement 1 ", "add it to the schema"]);
        let misspelt = "ALTER TABLE ordrs ADD a int";
        let error = measured(&server, &request(schema, misspelt, Amount::Rows(100))).unwrap_err();
        assert_says(&error.to_string(), &["did you mean public.orders? Otherwise: add it to the schema"]);
        server.sql("CREATE ROLE app_user");
        let drop = "DROP POLICY tenant ON orders";
        let outcome = measured(&server, &request(schema, drop, Amount::Rows(100))).unwrap();
        assert_eq!(outcome.failed().count(), 0, "{release}: {:#?}", outcome.statements);
        assert_eq!(left(&server), ["app_user"], "{release}");
    }
}

#[test]
fn an_object_of_an_extension_that_the_server_lacks_is_not_refused() {
    let schema = format!("CREATE EXTENSION IF NOT EXISTS pgrig_missing; {SHOP}");
    let migration =
        "CREATE INDEX ON orders USING gin (note pgrig_missing_ops); ALTER TABLE orders ADD a int;";
    let server = server(18);
    let outcome = measured(&server, &request(&schema, migration, Amount::Rows(100))).unwrap();
    let (one, failed) = outcome.failed().next().unwrap();
    assert_eq!((one.number, outcome.failed().count()), (1, 1), "{failed:?}");
    assert_says(
        failed.remedy.as_deref().unwrap(),
        &["no extension pgrig_missing", "install it on that server"],
    );
    assert_eq!(left(&server), Vec::<String>::new());
}

/// The databases of pgrig's have other names.
#[test]
fn a_name_with_a_database_is_refused_with_the_remedy() {
    for release in RELEASES {
        let server = server(release);
        for migration in [
            "ALTER TABLE shop.public.orders ADD a int",
            "CREATE INDEX ON shop.public.orders (note)",
            "UPDATE shop.public.orders SET note = 'x'",
        ] {
            let error = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap_err();
            assert_says(
                &error.to_string(),
                &["statement 1 ", "shop.public.orders", "leave out the name of the database"],
            );
            assert_eq!(failure::Classified::class(&error), failure::Class::Request);
        }
        assert_eq!(left(&server), Vec::<String>::new());
    }
}

#[test]
fn reindex_of_a_database_by_name_is_refused_with_the_remedy() {
    for release in RELEASES {
        let server = server(release);
        for migration in ["REINDEX DATABASE shop", "REINDEX SYSTEM shop"] {
            let error = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap_err();
            assert_says(&error.to_string(), &["statement 1 ", "currently open database", "REINDEX SCHEMA"]);
        }
        assert_eq!(left(&server), Vec::<String>::new());
    }
}

#[test]
fn a_variable_of_psql_is_named() {
    let server = server(18);
    for (migration, variable) in
        [("ALTER TABLE :name ADD a int", ":name"), ("UPDATE orders SET note = :'note'", ":'note'")]
    {
        let error = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap_err().to_string();
        let remedy =
            format!("pgrig does not replace psql's variables: write the value in place of {variable}");
        assert_says(&error, &["statement 1 ", "syntax error", &remedy]);
    }
    // Those of a slice are none.
    let error = measured(&server, &request(SHOP, "SELECT a[1:n] FROM", Amount::Rows(100))).unwrap_err();
    assert!(!error.to_string().contains("psql"), "{error}");
    assert_eq!(left(&server), Vec::<String>::new());
}

#[test]
fn a_placeholder_or_delimiter_of_a_tool_is_named() {
    let server = server(18);
    let placeholder =
        |name: &str| format!("(of Flyway, Liquibase or goose): write the value in place of {name}");
    for (migration, remedy) in [
        (
            "CREATE FUNCTION ${flyway:defaultSchema}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            placeholder("${flyway:defaultSchema}"),
        ),
        ("ALTER TABLE app_${env}.orders ADD a int", placeholder("${env}")),
        (
            "ALTER TABLE orders ADD a int\n/\nALTER TABLE orders ADD b int\n/\n",
            "remove the lines that are /".to_owned(),
        ),
    ] {
        let error = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap_err().to_string();
        assert_says(&error, &["statement 1 ", "syntax error", &remedy]);
        assert!(!error.contains("psql"), "{error}");
    }
}

#[test]
fn a_search_path_without_a_schema_is_named() {
    let server = server(18);
    server.sql("ALTER ROLE CURRENT_USER SET search_path = nowhere");
    let migration = "ALTER TABLE orders ADD a int";
    let refused = measured(&server, &request(SHOP, migration, Amount::Rows(100))).unwrap_err().to_string();
    assert_says(
        &refused,
        &["no schema has been selected", "search_path of the role", "SET search_path = public"],
    );
    let shop = format!("SET search_path = public; {SHOP}");
    let migration = format!("SET search_path = public; {migration}");
    let outcome = measured(&server, &request(&shop, &migration, Amount::Rows(100))).unwrap();
    assert!(outcome.failed().next().is_none(), "{:#?}", outcome.statements);
}
