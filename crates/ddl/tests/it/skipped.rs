//! Statements that did nothing, because a table is not there.

use testkit::RELEASES;

use crate::support::{measured, of_shop, server};

#[test]
fn a_statement_without_its_table_says_so() {
    for release in RELEASES {
        let server = server(release);
        for (statement, wanted) in [
            ("ALTER TABLE IF EXISTS \"No such\" ADD a int", Some("there is no table \"No such\"")),
            ("ALTER TABLE IF EXISTS orders ADD a int", None),
            (
                "DO $$BEGIN ALTER TABLE missing ADD a int; EXCEPTION WHEN undefined_table THEN NULL; END$$",
                Some("its code catches the error undefined_table"),
            ),
            (
                "DO $$BEGIN ALTER TABLE orders ADD a int; EXCEPTION WHEN undefined_table THEN NULL; END$$",
                None,
            ),
            (
                "DO $$BEGIN CREATE TYPE t AS ENUM ('a'); EXCEPTION WHEN duplicate_object THEN NULL; END$$",
                None,
            ),
            ("DROP TABLE IF EXISTS missing", None),
        ] {
            let outcome = measured(&server, &of_shop(statement)).unwrap();
            assert_eq!(outcome.statements[0].skipped().as_deref(), wanted, "{release}: {statement}");
        }
    }
}
