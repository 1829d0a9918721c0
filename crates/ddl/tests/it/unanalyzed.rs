//! Originals whose tables were not analyzed: pgrig estimates their rows from their sizes.

use std::time::Duration;

use ddl::{Amount, Observer, Plan, Request, Schema, Statement, TableSize};
use fill::{RowsRule, TableRows};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured_by, request, server};

/// Rows that are not in the statistics, some that are, and none.
const TABLES: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY, n int, note varchar(30));
    CREATE TABLE counted (id int PRIMARY KEY);
    CREATE TABLE bare (id int PRIMARY KEY);
    CREATE TABLE parted (id int, n int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (9000);
    INSERT INTO orders SELECT i, i, repeat('x', 30) FROM generate_series(1, 30000) i;
    INSERT INTO counted SELECT generate_series(1, 500);
    INSERT INTO parted SELECT i, i FROM generate_series(0, 3999) i;
    ANALYZE counted;
    ANALYZE parted_1;
";

/// Keeps the plan.
#[derive(Default)]
struct Planned(Option<Plan>);

impl Observer for Planned {
    fn planned(&mut self, plan: &Plan) {
        self.0 = Some(plan.clone());
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

fn original(server: &Server) -> Schema {
    server.sql("CREATE DATABASE shop");
    block_on(async {
        let shop = server.connect("shop").await;
        shop.client.batch_execute(TABLES).await.unwrap();
        Schema::of_database(&shop, "shop").await.unwrap()
    })
}

fn planned(server: &Server, schema: &Schema, amount: Amount) -> Plan {
    let migration = "ALTER TABLE orders ALTER n TYPE bigint; ALTER TABLE bare ADD CHECK (id > 0)";
    let request = Request { schema: schema.clone(), ..request("", migration, amount) };
    let mut planned = Planned::default();
    let outcome = measured_by(server, &request, &mut planned).unwrap();
    assert!(outcome.statements.iter().all(|one| one.found.is_some()), "{outcome:#?}");
    planned.0.unwrap()
}

#[test]
fn rows_of_tables_that_were_not_analyzed_are_estimated() {
    for release in RELEASES {
        let server = server(release);
        let schema = original(&server);
        let rows = |table: &str| schema.rows[&format!("public.{table}")];
        assert!((29_000..31_000).contains(&rows("orders")), "{release}: {:?}", schema.rows);
        assert!((3_500..4_500).contains(&rows("parted")), "{release}: {:?}", schema.rows);
        assert_eq!((rows("counted"), rows("bare")), (500, 0), "{release}");
        assert_eq!(schema.unseen, Vec::<String>::new(), "{release}");
        let asked = |amount| Request { schema: schema.clone(), ..request("", "SELECT", amount) };
        let sentence = "tables of database shop that were not analyzed: public.orders, public.parted. pgrig estimates their rows from \
                        their sizes: for better estimates, run ANALYZE there, or give --rows TABLE=ROWS";
        assert_eq!(asked(Amount::AsOriginal).estimated().as_deref(), Some(sentence), "{release}");
        let rule = |table: &str| RowsRule { table: table.to_owned(), rows: TableRows::Exactly(100) };
        let told = asked(Amount::Rules(vec![rule("orders")])).estimated().unwrap();
        assert!(told.contains("not analyzed: public.parted. "), "{release}: {told}");
        let all = Amount::Rules(vec![rule("orders"), rule("public.parted")]);
        assert_eq!(asked(all).estimated(), None, "{release}");

        let plan = planned(&server, &schema, Amount::AsOriginal);
        let tables: Vec<&str> = plan.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(tables, ["orders"], "{release}");
        assert!(plan.tables[0].rows.abs_diff(rows("orders")) <= 1, "{release}: {plan:?}");
        assert_eq!(plan.without_rows, ["public.bare"], "{release}");
        assert!(!plan.empty.contains(&"public.bare".to_owned()), "{release}: {plan:?}");
        assert!(plan.empty.contains(&"public.counted".to_owned()), "{release}: {plan:?}");
    }
}

/// The user's number of rows, or size, comes before that of the original.
#[test]
fn tables_without_rows_in_the_original_get_those_of_the_user() {
    let server = server(18);
    let schema = original(&server);
    let rule = RowsRule { table: "bare".to_owned(), rows: TableRows::Exactly(100) };
    let size = TableSize { table: "public.bare".to_owned(), bytes: 1 << 20 };
    for amount in [Amount::Rules(vec![rule]), Amount::Sizes(vec![size])] {
        let plan = planned(&server, &schema, amount.clone());
        let bare = plan.tables.iter().find(|table| table.name == "bare");
        let rows = bare.map_or(0, |table| table.rows);
        let expected = if matches!(amount, Amount::Rules(_)) { 99..=101 } else { 1_000..=100_000 };
        assert!(expected.contains(&rows), "{amount:?}: {plan:#?}");
        assert_eq!(plan.without_rows, Vec::<String>::new());
    }
}
