//! Pages of partitioned tables: every row is in the partition that the server would choose.

use fill::Triggers;
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Filling, Tables};

/// Ranges within a list within ranges, one after the other: months of regions, with defaults. A partition has its columns in
/// another order, one another fillfactor, one an index of its own.
const SALES: &str = "
    CREATE TYPE region AS ENUM ('north', 'south', 'east', 'west');
    CREATE TABLE customers (id int PRIMARY KEY);
    INSERT INTO customers SELECT generate_series(1, 1000);
    CREATE TABLE sales (
        id bigint NOT NULL, region region, sold_at timestamptz NOT NULL, customer int NOT NULL REFERENCES customers,
        note text NOT NULL CHECK (length(note) > 0), twice int GENERATED ALWAYS AS (customer * 2) STORED,
        before bigint, before_sold timestamptz,
        UNIQUE (id, sold_at, region, customer)
    ) PARTITION BY RANGE (sold_at);
    CREATE INDEX ON sales (customer); CREATE INDEX ON sales (note); CREATE INDEX ON sales USING brin (sold_at);
    CREATE TABLE sales_2023 PARTITION OF sales FOR VALUES FROM (MINVALUE) TO ('2024-01-01 00:00:00+00');
    CREATE TABLE sales_2024 PARTITION OF sales FOR VALUES FROM ('2024-01-01 00:00:00+00') TO ('2025-01-01 00:00:00+00')
        PARTITION BY LIST (region);
    CREATE TABLE sales_2024_north PARTITION OF sales_2024 FOR VALUES IN ('north', NULL) WITH (fillfactor = 50);
    CREATE TABLE sales_2024_south PARTITION OF sales_2024 FOR VALUES IN ('south', 'east')
        PARTITION BY RANGE (customer, id);
    CREATE TABLE south_1 PARTITION OF sales_2024_south FOR VALUES FROM (MINVALUE, MINVALUE) TO (300, 5000);
    CREATE TABLE south_2 PARTITION OF sales_2024_south FOR VALUES FROM (300, 5000) TO (300, MAXVALUE);
    CREATE TABLE south_3 PARTITION OF sales_2024_south DEFAULT;
    CREATE TABLE sales_2024_rest PARTITION OF sales_2024 DEFAULT;
    CREATE INDEX ON sales_2024_rest (before);
    CREATE TABLE sales_2025 (note text NOT NULL CONSTRAINT sales_note_check CHECK (length(note) > 0), sold_at timestamptz NOT NULL,
        before_sold timestamptz, before bigint, id bigint NOT NULL, customer int NOT NULL REFERENCES customers,
        twice int GENERATED ALWAYS AS (customer * 2) STORED, region region);
    ALTER TABLE sales ATTACH PARTITION sales_2025 FOR VALUES FROM ('2025-01-01 00:00:00+00') TO ('2026-01-01 00:00:00+00');
    CREATE TABLE sales_rest PARTITION OF sales DEFAULT;
    CREATE TABLE refunds (id int PRIMARY KEY, sale bigint, sold_at timestamptz, region region, customer int,
        FOREIGN KEY (sale, sold_at, region, customer) REFERENCES sales (id, sold_at, region, customer));";

const TIMES: &[&str] = &[
    "id=serial",
    "sold_at=timeseries(2023-11-15 00:00:00+00,1h)",
    "region=nulls(0.1,list(north,south*3,west))",
    "before=null",
    "before_sold=null",
];

/// Rows that break the bounds of their partition, as the server evaluates them.
async fn misplaced(tables: &Tables, table: &str) -> i64 {
    let mut all = 0;
    for leaf in tables.leaves(table).await {
        let bounds = format!("SELECT pg_get_partition_constraintdef('{leaf}'::regclass)");
        if let Some(bounds) = tables.value::<Option<String>>(&bounds).await {
            all += tables
                .value::<i64>(&format!("SELECT count(*) FROM {leaf} WHERE ({bounds}) IS NOT TRUE"))
                .await;
        }
    }
    all
}

/// The rows of each partition that has some.
async fn rows_of(tables: &Tables, table: &str) -> String {
    let query = format!(
        "SELECT string_agg(concat(name, ' ', rows), ', ' ORDER BY name)
           FROM (SELECT tableoid::regclass::text AS name, count(*) AS rows FROM {table} GROUP BY 1) t"
    );
    tables.value(&query).await
}

#[test]
fn every_level_finds_the_partition_that_the_server_finds() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, SALES).await;
            // A time zone does not change the bounds.
            let set = "SET timezone = 'America/New_York'; SET datestyle = 'SQL, DMY'; DO $$ BEGIN EXECUTE format(
                           'ALTER DATABASE %I SET timezone = ''Asia/Kathmandu''', current_database()); END $$";
            tables.execute(set).await;
            let together = &["public.refunds"];
            let sales = Filling { columns: TIMES, together, ..Filling::of("sales", 30_000) };
            tables.fill_directly(&sales).await;
            assert_eq!(misplaced(&tables, "sales").await, 0);
            let found = rows_of(&tables, "sales").await;
            let parts = [
                "sales_2023 1128",
                "sales_2024_north ",
                "sales_2024_rest ",
                "south_1 ",
                "south_3 ",
                "sales_2025 8760",
                "sales_rest 11328",
            ];
            assert_says(&found, &parts);
            // INSERT puts the same rows into the same partitions.
            tables
                .execute(
                    "CREATE TABLE placed AS SELECT tableoid::regclass::text AS part, * FROM sales;
                     TRUNCATE sales, refunds;
                     INSERT INTO sales (id, region, sold_at, customer, note) SELECT id, region, sold_at, customer, note FROM placed;",
                )
                .await;
            let same = "SELECT count(*) FROM placed p JOIN sales s USING (id, sold_at)
                         WHERE p.part = s.tableoid::regclass::text AND (p.twice, p.note) = (s.twice, s.note)";
            assert_eq!(tables.value::<i64>(same).await, 30_000);
            // The key from another table is proved against all partitions.
            tables.execute("RESET timezone; RESET datestyle").await;
            tables.fill_directly(&Filling::of("refunds", 500)).await;
            let fillfactor = "SELECT pg_relation_size('sales_2024_north') / count(*) FROM sales_2024_north";
            assert!(tables.value::<i64>(fillfactor).await > 120);
            assert_says(
                &tables.refusal("INSERT INTO sales VALUES (-1, NULL, '2024-01-01', 0, 'x')").await,
                &["foreign key"],
            );
        });
    }
}

/// Keys of every type that is compared or hashed, with moduli that differ.
const KEYS: &str = "
    CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
    CREATE TABLE parts (id int NOT NULL, u uuid, t text, v varchar(20), b bool, d date, s smallint, c time, at timestamp,
                        colour colour, p char(6), n numeric(9,3), m numeric, payload text);";

#[test]
fn keys_of_every_type_are_compared_and_hashed_as_the_server_does() {
    for major in RELEASES {
        for (by, parts) in [
            (
                "HASH (id)",
                &[
                    "WITH (MODULUS 2, REMAINDER 0)",
                    "WITH (MODULUS 4, REMAINDER 1)",
                    "WITH (MODULUS 8, REMAINDER 3)",
                    "WITH (MODULUS 8, REMAINDER 7)",
                ] as &[&str],
            ),
            (
                "HASH (u, t, v, b, d, s, c, at, colour, p, n, m)",
                &[
                    "WITH (MODULUS 3, REMAINDER 0)",
                    "WITH (MODULUS 3, REMAINDER 1)",
                    "WITH (MODULUS 3, REMAINDER 2)",
                ],
            ),
            (
                "RANGE (u)",
                &[
                    "FROM (MINVALUE) TO ('40000000-0000-0000-0000-000000000000')",
                    "FROM ('40000000-0000-0000-0000-000000000000') TO (MAXVALUE)",
                    "DEFAULT",
                ],
            ),
            ("RANGE (t COLLATE \"C\")", &["FROM ('d') TO ('dz')", "FROM ('dz') TO ('m''(x, y)')", "DEFAULT"]),
            (
                "RANGE (s, d)",
                &[
                    "FROM (-30000, '2000-01-01') TO (0, MINVALUE)",
                    "FROM (0, MINVALUE) TO (0, '2020-06-01')",
                    "DEFAULT",
                ],
            ),
            ("RANGE (c, at)", &["FROM ('01:00', MINVALUE) TO ('12:30:00.5', MAXVALUE)", "DEFAULT"]),
            ("LIST (b)", &["IN (true)", "IN (false, NULL)"]),
            ("LIST (colour)", &["IN ('blue', NULL)", "DEFAULT"]),
            ("LIST (t)", &["IN ('a', 'it''s, (so)', NULL)", "IN ('b')", "DEFAULT"]),
            (
                "RANGE (n, m)",
                &[
                    "FROM (MINVALUE, MINVALUE) TO (-0.5, 7)",
                    "FROM (-0.5, 7) TO (12, MINVALUE)",
                    "FROM (12, MINVALUE) TO (500000.125, 3)",
                    "FROM (500000.125, 3) TO ('NaN', 'NaN')",
                ],
            ),
            ("RANGE (m)", &["FROM (-1e20) TO (2.50)", "FROM (2.5) TO (1e9)"]),
            ("HASH (m)", &["WITH (MODULUS 2, REMAINDER 0)", "WITH (MODULUS 2, REMAINDER 1)"]),
            ("LIST (n)", &["IN (0, 1.5, -2)", "IN (999000)", "DEFAULT"]),
            ("RANGE (p COLLATE \"C\")", &["FROM ('d') TO ('dz ')", "FROM ('dz') TO ('m')", "DEFAULT"]),
            ("LIST (p)", &["IN ('a', 'bb ', NULL)", "IN ('ccc')", "DEFAULT"]),
            ("LIST (id)", &["IN (-1, 1, 2, 3)", "IN (4, 50)", "DEFAULT"]),
        ] {
            block_on(async {
                let tables = Tables::new(major, KEYS).await;
                let mut script = format!("CREATE TABLE whole (LIKE parts) PARTITION BY {by};");
                for (number, part) in parts.iter().enumerate() {
                    let values = if *part == "DEFAULT" { "" } else { "FOR VALUES " };
                    script.extend([
                        "CREATE TABLE part_",
                        &number.to_string(),
                        " PARTITION OF whole ",
                        values,
                        part,
                        ";",
                    ]);
                }
                tables.execute(&script).await;
                let columns: &[&str] = match by {
                    "LIST (t)" => &["t=list(a,b,c)"],
                    "RANGE (c, at)" => &["c=uniform(00:00,23:00)"],
                    "LIST (colour)" => &["colour=list(red,green,blue)"],
                    "LIST (id)" => &["id=serial"],
                    "RANGE (s, d)" => &["s=list(0,5,-7)"],
                    "RANGE (n, m)" => {
                        &["n=list(-100.25,-0.5,0,0.001,12,999.999,500000.125)", "m=uniform(0,9)"]
                    }
                    "RANGE (m)" => &["m=list(-100000000000,-0.0001,0,2.4999,2.5,2.50001,10000,99999999.5)"],
                    "HASH (m)" => &["m=uniform(-100000,100000)"],
                    "LIST (n)" => &["n=list(0,1.5,-2,999000,7)"],
                    "LIST (p)" => &["p=list(a,bb,ccc,dddddd)"],
                    _ => &[],
                };
                let filling = Filling { columns, ..Filling::of("whole", 3000) };
                tables.fill_directly(&filling).await;
                assert_eq!(misplaced(&tables, "whole").await, 0, "{by}");
                assert_eq!(tables.value::<i64>("SELECT count(*) FROM whole").await, 3000, "{by}");
                let parts_used = "SELECT count(DISTINCT tableoid) FROM whole";
                assert!(
                    tables.value::<i64>(parts_used).await >= 2,
                    "PostgreSQL {major}, {by}: {}",
                    rows_of(&tables, "whole").await
                );
            });
        }
    }
}

#[test]
fn what_only_the_server_can_sort_out_goes_by_copy() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(
                major,
                "CREATE TABLE computed (a int) PARTITION BY RANGE ((a / 2));
                 CREATE TABLE computed_1 PARTITION OF computed FOR VALUES FROM (0) TO (250);
                 CREATE TABLE computed_2 PARTITION OF computed FOR VALUES FROM (250) TO (2000000000);
                 CREATE TABLE spans (a interval) PARTITION BY RANGE (a);
                 CREATE TABLE spans_1 PARTITION OF spans FOR VALUES FROM (MINVALUE) TO ('20 days');
                 CREATE TABLE spans_2 PARTITION OF spans FOR VALUES FROM ('20 days') TO (MAXVALUE);
                 CREATE TABLE mixed (a int) PARTITION BY LIST (a);
                 CREATE UNLOGGED TABLE mixed_1 PARTITION OF mixed FOR VALUES IN (1);
                 CREATE TABLE mixed_2 PARTITION OF mixed DEFAULT;
                 CREATE TABLE holes (a int, b int) PARTITION BY HASH (a);
                 CREATE TABLE holes_0 (b int, c int, a int); ALTER TABLE holes_0 DROP COLUMN c;
                 ALTER TABLE holes ATTACH PARTITION holes_0 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
                 CREATE TABLE watched (a int) PARTITION BY HASH (a);
                 CREATE TABLE watched_0 PARTITION OF watched FOR VALUES WITH (MODULUS 1, REMAINDER 0);
                 CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''seen''; END';
                 CREATE TRIGGER of_part BEFORE INSERT ON watched_0 FOR EACH ROW EXECUTE FUNCTION refuse()",
            )
            .await;
            for (table, why) in [
                ("computed", "public.computed is partitioned by an expression"),
                ("spans", "public.spans is partitioned by a, of type interval"),
                ("mixed", "some partitions are unlogged, others are not"),
                ("holes", "partition public.holes_0: it has a dropped column"),
                ("watched", "partition public.watched_0: triggers run for its rows: of_part"),
            ] {
                let columns: &[&str] = if table == "mixed" { &["a=serial"] } else { &[] };
                assert_says(&tables.reason(&Filling { columns, ..Filling::of(table, 100) }).await, &[why]);
            }
            for table in ["computed", "spans"] {
                let columns: &[&str] =
                    if table == "computed" { &["a=uniform(0,999)"] } else { &["a=list(1 day,30 days)"] };
                tables.fill(&Filling { columns, ..Filling::of(table, 1000) }).await.unwrap();
                let rows = rows_of(&tables, table).await;
                assert!(rows.contains("_1 ") && rows.contains("_2 "), "{rows}");
            }
            let off = Filling { triggers: Triggers::Off, ..Filling::of("watched", 100) };
            let plan = tables.plan(&off).await.unwrap();
            assert!(plan.reasons.iter().any(|reason| reason.ends_with(": of_part")), "{:?}", plan.reasons);
            tables.fill_directly(&off).await;
        });
    }
}

#[test]
fn rows_that_break_something_leave_nothing() {
    // Row 2500 is none of those that are tried beforehand.
    let cycle = |value: &str| format!("cycle({}{value}{})", "3,".repeat(2499), ",3".repeat(500));
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(
                major,
                "CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents SELECT generate_series(1, 50);
                 CREATE TABLE whole (id int, part int NOT NULL, parent int CONSTRAINT has_parent REFERENCES parents, next int,
                                     PRIMARY KEY (id, part), CONSTRAINT has_next FOREIGN KEY (next, part) REFERENCES whole
                                    ) PARTITION BY RANGE (id);
                 CREATE TABLE low PARTITION OF whole FOR VALUES FROM (1) TO (1000) PARTITION BY LIST (part);
                 CREATE TABLE low_3 PARTITION OF low FOR VALUES IN (3);
                 CREATE TABLE high PARTITION OF whole FOR VALUES FROM (1000) TO (100000) PARTITION BY LIST (part);
                 CREATE TABLE high_3 PARTITION OF high FOR VALUES IN (3);
                 ALTER TABLE high_3 ADD CONSTRAINT of_part FOREIGN KEY (part) REFERENCES parents;
                 CREATE UNIQUE INDEX once ON low_3 (next)",
            )
            .await;
            for (column, value, said) in [
                (
                    "part",
                    "4",
                    "no partition of \"public\".\"whole\" takes the row with the key (2500, 4). Nothing was written",
                ),
                ("parent", "51", "violates has_parent"),
                ("next", "3001", "violates has_next"),
            ] {
                let columns = vec![&*format!("{column}={}", cycle(value)).leak()];
                let others = ["id=serial", "part=constant(3)", "parent=uniform(1,50)", "next=null"];
                let others = others.into_iter().filter(|spec| !spec.starts_with(column));
                let columns = columns.into_iter().chain(others).collect::<Vec<_>>().leak();
                if column == "next" {
                    tables.execute("DROP INDEX once").await;
                }
                let error =
                    tables.fill(&Filling { columns, ..Filling::of("whole", 3000) }).await.unwrap_err();
                assert_says(&error.to_string(), &[said]);
                assert_eq!(tables.value::<i64>("SELECT count(*) FROM whole").await, 0, "{column}");
            }
            // References into partitions that are written later.
            let columns = &["id=serial", "part=constant(3)", "parent=uniform(1,50)", "next=shuffle(1,3000)"];
            tables.fill_directly(&Filling { columns, ..Filling::of("whole", 3000) }).await;
            assert_eq!(rows_of(&tables, "whole").await, "high_3 2001, low_3 999");
        });
    }
}
