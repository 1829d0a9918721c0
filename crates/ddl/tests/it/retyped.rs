//! Changes of columns of an original whose statistics tell their values: other types, and unique keys.

use std::time::Duration;

use ddl::{Amount, Observer, Plan, Request, Schema, Statement};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured_by, request, server};

const TABLES: &str = "
    CREATE DOMAIN price AS numeric(12,2) CHECK (VALUE >= 0);
    CREATE TABLE items (id int PRIMARY KEY, n int, price price, phone text, code text, small int);
    INSERT INTO items
        SELECT i, i % 50, i % 99, '+49 30 ' || 10000 + i, 'c' || i % 9, i % 30000 FROM generate_series(1, 40000) i;
    ANALYZE;
";

/// Keeps the plan, and the warnings.
#[derive(Default)]
struct Told {
    suited: Vec<String>,
    warnings: Vec<String>,
}

impl Observer for Told {
    fn planned(&mut self, plan: &Plan) {
        self.suited.clone_from(&plan.suited);
    }
    fn warned(&mut self, warning: &str) {
        self.warnings.push(warning.to_owned());
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

fn original(server: &Server) -> Schema {
    block_on(async {
        let connection = server.database().await.target.connect().await.unwrap();
        connection.client.batch_execute(TABLES).await.unwrap();
        Schema::of_database(&connection, "shop").await.unwrap()
    })
}

/// All statements are measured.
fn told(server: &Server, schema: &Schema, migration: &str) -> Told {
    let asked = Request { schema: schema.clone(), ..request("", migration, Amount::Rows(2000)) };
    let mut told = Told::default();
    let outcome = measured_by(server, &asked, &mut told).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{migration}: {failed:#?}");
    told
}

#[test]
fn rows_keep_the_statistics_where_the_new_type_takes_their_values() {
    for release in RELEASES {
        let server = server(release);
        let schema = original(&server);
        for action in [
            "n TYPE bigint",
            "n TYPE smallint",
            "n TYPE numeric(12,2)",
            "price TYPE numeric(14,2)",
            "price TYPE numeric(8,2)",
            "phone TYPE varchar(40)",
            "code TYPE varchar(10)",
            "small TYPE smallint",
        ] {
            let told = told(&server, &schema, &format!("ALTER TABLE items ALTER {action}"));
            assert_eq!(told.suited, Vec::<String>::new(), "{release}: {action}");
            assert_eq!(told.warnings, Vec::<String>::new(), "{release}: {action}");
        }
    }
}

#[test]
fn a_type_that_does_not_take_the_values_of_the_original_is_warned_of() {
    for release in RELEASES {
        let server = server(release);
        let schema = original(&server);
        let phone = "in database shop, the change of items.phone to character varying(5) fails: by the statistics, the column has texts of \
                     12 characters. pgrig measures the change with other values";
        let price = "in database shop, the change of items.price to numeric(3,2) fails: by the statistics, the column has numbers out of its \
                     range. pgrig measures the change with other values";
        for (action, warnings) in [
            ("phone TYPE varchar(5)", &[phone][..]),
            ("price TYPE numeric(3,2)", &[price][..]),
            ("phone TYPE varchar(5) USING left(phone, 5)", &[][..]),
        ] {
            let told = told(&server, &schema, &format!("ALTER TABLE items ALTER {action}"));
            assert_eq!(told.warnings, warnings, "{release}: {action}");
            assert_eq!(told.suited.len(), 1, "{release}: {action}: {:?}", told.suited);
        }
        // The migration changes the values itself.
        let migration =
            "UPDATE items SET phone = left(phone, 5); ALTER TABLE items ALTER phone TYPE varchar(5)";
        assert_eq!(told(&server, &schema, migration).warnings, Vec::<String>::new(), "{release}");
    }
}

/// By the statistics, all rows differ in these columns, and values that are made by statistics may repeat.
#[test]
fn columns_that_become_unique_differ_in_all_rows() {
    let tables = "
        CREATE TABLE items (id int PRIMARY KEY, n int, small int, at timestamp);
        INSERT INTO items
            SELECT i, i * 7919 % 40009, i % 7, '2025-01-01'::timestamp + i * interval '1 min' FROM generate_series(1, 40000) i;
        ANALYZE;";
    let migration = "ALTER TABLE items ADD UNIQUE (n); CREATE UNIQUE INDEX ON items (small, at);
                     ALTER TABLE items RENAME n TO number; CREATE UNIQUE INDEX ON items (number)";
    for release in RELEASES {
        let server = server(release);
        let schema = block_on(async {
            let connection = server.database().await.target.connect().await.unwrap();
            connection.client.batch_execute(tables).await.unwrap();
            Schema::of_database(&connection, "shop").await.unwrap()
        });
        let asked = Request { schema, ..request("", migration, Amount::Rows(40_000)) };
        let outcome = measured_by(&server, &asked, &mut Told::default()).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(outcome.statements[0].largest().unwrap().rows, 40_000, "{release}");
    }
}
