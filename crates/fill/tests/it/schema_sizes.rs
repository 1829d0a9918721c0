//! Rows of a schema that together take a size: how near the plan comes to it, and how often it describes them.

use std::cell::RefCell;

use fill::{SchemaAmount, SchemaPlan, SchemaRequest, plan_schema};
use server::{DataDirectory, Survey};
use testkit::{RELEASES, block_on};

use crate::support::Tables;

const SIZE: u64 = 100_000_000;

/// Keys limit three of the tables: to two rows, to the accounts, and to two rows for each account.
const SCHEMA: &str = "
    CREATE TABLE kinds (active boolean PRIMARY KEY);
    CREATE TABLE accounts (id serial PRIMARY KEY, label text NOT NULL);
    CREATE TABLE profiles (account_id int PRIMARY KEY REFERENCES accounts, bio text NOT NULL);
    CREATE TABLE members (account_id int REFERENCES accounts, active boolean REFERENCES kinds, PRIMARY KEY (account_id, active));
    CREATE TABLE posts (
        id bigserial PRIMARY KEY, account_id int NOT NULL REFERENCES accounts, a int, b int, body text NOT NULL CHECK (body <> ''),
        CHECK (num_nonnulls(a, b) = 1)
    );";

/// The plan for the size, and its steps.
async fn planned(tables: &Tables) -> (SchemaPlan, Vec<String>) {
    let directory = DataDirectory::Own(tables.server.data_dir());
    let survey = Survey::for_tables(&tables.connection, &directory, "test").await.unwrap();
    let request = SchemaRequest::of_script(SCHEMA.to_owned(), SchemaAmount::Size(SIZE));
    let told = RefCell::new(Vec::new());
    let steps = |text: &str| told.borrow_mut().push(text.to_owned());
    let plan = plan_schema(&survey, &tables.connection, &request, None, false, &steps).await.unwrap();
    (plan.unwrap(), told.into_inner())
}

#[test]
fn tables_that_keys_limit_take_no_further_rounds() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, "").await;
            let (plan, told) = planned(&tables).await;
            let rows = |name: &str| plan.tables.iter().find(|table| table.name == name).unwrap().rows;
            let accounts = rows("accounts");
            assert_eq!((rows("kinds"), rows("profiles"), rows("members")), (2, accounts, 2 * accounts));
            assert!(rows("posts").abs_diff(3 * accounts) <= 2, "{major}: {} posts", rows("posts"));
            let predicted = plan.predicted();
            assert!(predicted.abs_diff(SIZE) < SIZE / 50, "{major}: {predicted}");
            let times = |doing: &str| {
                told.iter().filter(|step| step.contains(doing) && step.contains("posts")).count()
            };
            assert_eq!(times("describing sample rows of"), 1, "{told:#?}");
            assert_eq!(times("choosing the rows of"), 1, "{told:#?}");
            assert_eq!(times("adjusting the rows of"), 0, "{told:#?}");
        });
    }
}
