//! New values of enums, which no statement of the same transaction can use.

use ddl::Amount;
use failure::{Class, Classified};
use testkit::{RELEASES, assert_says};

use crate::support::{left, measured, request, server};

const SCHEMA: &str = "
    CREATE TYPE status AS ENUM ('new', 'paid');
    CREATE TABLE orders (id int PRIMARY KEY, state status NOT NULL);
";
const ADD: &str = "ALTER TYPE status ADD VALUE 'sent'";

#[test]
fn a_new_enum_value_in_its_own_transaction_is_refused_with_the_remedy() {
    for release in RELEASES {
        let server = server(release);
        for use_it in [
            "UPDATE orders SET state = 'sent'",
            "ALTER TABLE orders ALTER state SET DEFAULT 'sent'",
            "SELECT count(*) FROM orders WHERE state = 'sent'",
        ] {
            let migration = format!("BEGIN; {ADD}; {use_it}; COMMIT;");
            let error = measured(&server, &request(SCHEMA, &migration, Amount::Rows(100))).unwrap_err();
            assert_says(
                &error.to_string(),
                &["statement 3 ", "unsafe use of new value", "ADD VALUE into a migration of its own"],
            );
            assert_eq!(error.class(), Class::Request);
        }
        let migration = format!("{ADD}; BEGIN; UPDATE orders SET state = 'sent'; COMMIT;");
        let outcome = measured(&server, &request(SCHEMA, &migration, Amount::Rows(100))).unwrap();
        assert_eq!(outcome.failed().count(), 0, "{release}: {:#?}", outcome.statements);
        assert_eq!(left(&server), Vec::<String>::new());
    }
}

#[test]
fn a_text_gets_the_labels_that_the_enum_has_when_the_column_changes() {
    const TEXTS: &str = "CREATE TABLE orders (id int PRIMARY KEY, state text NOT NULL)";
    const CAST: &str = "ALTER TABLE orders ALTER state TYPE status USING state::status";
    for release in RELEASES {
        let server = server(release);
        for migration in [
            format!("CREATE TYPE status AS ENUM ('new', 'paid'); {CAST}; {ADD}"),
            format!(
                "CREATE TYPE status AS ENUM ('new'); {ADD}; {CAST}; ALTER TYPE status RENAME VALUE 'new' TO 'open'"
            ),
            format!(
                "BEGIN; CREATE TYPE status AS ENUM ('new'); {CAST}; COMMIT; ALTER TYPE status RENAME TO phase"
            ),
        ] {
            let outcome = measured(&server, &request(TEXTS, &migration, Amount::Rows(100))).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {migration}: {failed:#?}");
        }
    }
}
