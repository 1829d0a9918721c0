//! ATTACH PARTITION of a table that takes over keys and foreign keys from its parent.

use ddl::find::{Class, WorkKind};
use ddl::{Amount, Outcome};
use testkit::{RELEASES, Server};

use crate::support::{measured, request, server};

/// Random numbers of so small a type are not unique in 3,000 rows, and no keys of customers.
const ORDERS: &str = "
    CREATE TABLE customers (id int PRIMARY KEY);
    CREATE TABLE orders (
        id smallint, region text, customer int NOT NULL REFERENCES customers, code smallint NOT NULL, PRIMARY KEY (id, region)
    ) PARTITION BY LIST (region);
    CREATE UNIQUE INDEX orders_code ON orders (code, region);
    CREATE TABLE orders_us PARTITION OF orders FOR VALUES IN ('us');
";
const EU: &str = "
    CREATE TABLE orders_eu (id smallint NOT NULL, region text NOT NULL, customer int NOT NULL, code smallint NOT NULL);
";
const ATTACH: &str = "ALTER TABLE orders ATTACH PARTITION orders_eu FOR VALUES IN ('eu')";

fn outcome(server: &Server, table: &str, migration: &str) -> Outcome {
    let schema = format!("{ORDERS} {table}");
    let outcome = measured(server, &request(&schema, migration, Amount::Rows(3000))).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{migration}: {failed:#?}");
    outcome
}

/// Kinds of the work of the statement with this number, with the relations.
fn works(outcome: &Outcome, number: usize) -> Vec<(WorkKind, &str)> {
    let found = outcome.statements[number - 1].found.as_ref().unwrap();
    found.works.iter().map(|work| (work.kind, work.relation.as_str())).collect()
}

#[test]
fn the_rows_keep_the_keys_that_the_table_takes_over() {
    for release in RELEASES {
        let server = server(release);
        let attached = outcome(&server, EU, ATTACH);
        assert_eq!(attached.statements[0].found.as_ref().unwrap().class, Class::IndexBuild, "{release}");
        let works = works(&attached, 1);
        let built = works.iter().filter(|(kind, _)| *kind == WorkKind::IndexBuild).count();
        assert_eq!(built, 2, "{release}: the primary key and the unique index: {works:?}");
        assert!(works.contains(&(WorkKind::Scan, "orders_eu")), "{release}: {works:?}");
        // In a transaction that is rolled back, and of a table that the migration detaches again.
        outcome(&server, EU, &format!("BEGIN; {ATTACH}; ROLLBACK"));
        outcome(&server, EU, &format!("{ATTACH}; ALTER TABLE orders DETACH PARTITION orders_eu"));
    }
}

/// The table has some of them before: the server builds the others alone.
#[test]
fn keys_of_the_table_itself_are_taken_over_as_they_are() {
    let server = server(18);
    let with_keys = format!(
        "{EU} ALTER TABLE orders_eu ADD PRIMARY KEY (id, region), ADD FOREIGN KEY (customer) REFERENCES customers;"
    );
    let attached = outcome(&server, &with_keys, ATTACH);
    let works = works(&attached, 1);
    let built: Vec<_> = works.iter().filter(|(kind, _)| *kind == WorkKind::IndexBuild).collect();
    assert_eq!(built.len(), 1, "the unique index: {works:?}");
    // Before it, the migration builds the keys itself.
    let keys = "CREATE UNIQUE INDEX CONCURRENTLY eu_code ON orders_eu (code, region);
                ALTER TABLE orders_eu ADD PRIMARY KEY (id, region);
                ALTER TABLE orders_eu ADD FOREIGN KEY (customer) REFERENCES customers;";
    let prepared = outcome(&server, EU, &format!("{keys} {ATTACH}"));
    assert_ne!(prepared.statements[3].found.as_ref().unwrap().class, Class::IndexBuild);
}

/// NOT NULL and CHECK are not taken over: the server demands them before.
#[test]
fn a_table_that_lacks_not_null_or_a_check_is_not_attached() {
    let server = server(18);
    for (schema, says) in [
        (ORDERS.to_owned() + &EU.replace("id smallint NOT NULL", "id smallint"), "must be marked NOT NULL"),
        (format!("{ORDERS} {EU} ALTER TABLE orders ADD CHECK (code > 0);"), "is missing constraint"),
    ] {
        let told = match measured(&server, &request(&schema, ATTACH, Amount::Rows(100))) {
            Ok(outcome) => outcome.failed().map(|(_, failed)| failed.message.clone()).collect(),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(says), "{told}");
    }
}
