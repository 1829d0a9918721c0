//! Indexes of several columns that ascend with the rows are written with them. Keys that repeat are found.

use fill::Method;
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Filling, Tables};

/// Items and links of all pages of an index but the first.
async fn pages(tables: &Tables, index: &str) -> String {
    let query = format!(
        "SELECT md5(string_agg(concat_ws(' ', block, type, live_items, btpo_prev, btpo_next, free_size, items), ';' ORDER BY block))
           FROM generate_series(1, (pg_relation_size('{index}') / 8192 - 1)::int) block
          CROSS JOIN LATERAL bt_page_stats('{index}', block)
          CROSS JOIN LATERAL (SELECT string_agg(concat_ws(' ', itemoffset, ctid, itemlen, data), ',') AS items
                                FROM bt_page_items('{index}', block)) i"
    );
    tables.value(&query).await
}

#[test]
fn pages_of_composite_keys_are_those_that_the_server_builds() {
    for major in RELEASES {
        block_on(async {
            let script = "
                CREATE EXTENSION pageinspect;
                CREATE TABLE orders (id bigint PRIMARY KEY);
                INSERT INTO orders SELECT n FROM generate_series(11, 60010) n;
                CREATE TABLE items (
                    order_id bigint REFERENCES orders, line smallint, note text,
                    PRIMARY KEY (order_id, line) WITH (fillfactor = 70));
                CREATE TABLE few (order_id bigint REFERENCES orders, line int, PRIMARY KEY (order_id, line));
                CREATE TABLE short (line smallint, order_id int, PRIMARY KEY (order_id, line));";
            let tables = Tables::new(major, script).await;
            for (table, rows) in [("items", 300_000), ("few", 17), ("few", 1)] {
                tables.execute(&format!("TRUNCATE {table}")).await;
                tables.fill_directly(&Filling::of(table, rows)).await;
                let index = format!("{table}_pkey");
                let root = format!("SELECT level::bigint FROM bt_metap('{index}')");
                assert_eq!(tables.value::<i64>(&root).await, if rows == 300_000 { 2 } else { 0 });
                let written = pages(&tables, &index).await;
                tables.execute(&format!("REINDEX INDEX {index}")).await;
                assert_eq!(pages(&tables, &index).await, written, "{table} with {rows} rows on {major}");
            }
            tables.fill_directly(&Filling::of("short", 5000)).await;
            tables.execute("INSERT INTO items SELECT 11, n FROM generate_series(1000, 3000) n").await;
            tables.execute("DELETE FROM items WHERE line = 2").await;
            tables.execute("VACUUM items").await;
            tables.execute("SELECT bt_index_parent_check('items_pkey', true, true)").await;
        });
    }
}

#[test]
fn a_key_that_repeats_is_found_before_the_commit() {
    // Row 1500 is none of those that are tried beforehand.
    let code = |row: u32| if row == 1500 { 1000 } else { row };
    let codes: Vec<String> = (0..5000).map(|row| code(row).to_string()).collect();
    let column: &'static str = format!("code=cycle({})", codes.join(",")).leak();
    let columns: &'static [&'static str] = vec![column].leak();
    for major in RELEASES {
        block_on(async {
            let script = "CREATE TABLE coded (id bigint PRIMARY KEY, code int NOT NULL UNIQUE)";
            let tables = Tables::new(major, script).await;
            let filling = Filling { columns, ..Filling::of("coded", 5000) };
            assert_eq!(tables.plan(&filling).await.unwrap().method, Method::Direct);
            let error = tables.fill(&filling).await.unwrap_err().to_string();
            assert_says(&error, &["same key", "with --column 'code=unique'"]);
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM coded").await, 0);
        });
    }
}
