//! `pgrig fill` of a schema whose constraints limit the rows or the values of a table.

use crate::fill_schema::{assert_nothing_of_pgrig, assert_valid, rows_of, script};
use crate::support::Rig;

/// By an index on a constant, or by a CHECK on the primary key.
#[test]
fn tables_of_one_row_get_one_row() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table post(id int primary key, title text);
         create table site(id int primary key, n bigint default 0);
         create unique index one_row on site ((true));
         create table site_aggregates(id serial primary key, site int not null references site, posts bigint not null default 0);
         create unique index idx_site_aggregates_1_row_only on site_aggregates ((1));
         create table settings(id boolean primary key default true check (id), n bigint default 0);",
    );
    for method in ["direct", "copy"] {
        let ran = rig.done(&format!("fill --ddl {ddl} --rows 500 --method {method}"));
        let why = "public.site_aggregates: the table gets only 1 row, because idx_site_aggregates_1_row_only";
        assert!(ran.stderr.contains(why), "{ran:#?}");
        assert_eq!(rows_of(&server, "post"), 500);
        for table in ["site", "site_aggregates", "settings"] {
            assert_eq!(rows_of(&server, table), 1, "{method}: {table}");
        }
        assert_valid(&server);
        assert_nothing_of_pgrig(&server);
        server.execute("DROP TABLE post, site, site_aggregates, settings");
    }
}

/// A default that its CHECK refuses is not used. The remedy of another refusal names the table.
#[test]
fn defaults_that_their_checks_refuse() {
    let rig = Rig::new();
    let server = rig.server("");
    let tables =
        "create table b(id int primary key, k text default 'zz' constraint c check (k in ('a','b')));
         create table a(id int primary key, b int references b, token_type int not null default 0);
         alter table a add constraint types check (token_type = 1 or token_type = 2);";
    let ddl = script(&rig, tables);
    for method in ["direct", "copy"] {
        rig.done(&format!("fill --ddl {ddl} --rows 300 --method {method} -q"));
        assert_eq!(server.number("SELECT count(DISTINCT token_type) FROM a"), 2, "{method}");
        assert_eq!(server.number("SELECT count(DISTINCT k) FROM b"), 2, "{method}");
        assert_valid(&server);
        server.execute("DROP TABLE a, b");
    }
    for (column, remedy) in [
        ("a.token_type=default", "would violate types, CHECK "),
        ("a.token_type=default", ". Change --column 'a.token_type=default'"),
        ("a.id=constant(7)", "Give one column of the key unique values with --column 'a.id=unique'"),
    ] {
        let refused = rig.run(&format!("fill --ddl {ddl} --rows 300 --column {column}"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(remedy), "{refused:#?}");
        assert!(!refused.stderr.contains("--column NAME="), "{refused:#?}");
    }
}

/// The other tables are filled.
#[test]
fn a_table_with_a_foreign_partition_is_left_out() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "create foreign data wrapper nowhere; create server elsewhere foreign data wrapper nowhere;
         create table sales(id int, day date) partition by range (day);
         create table sales_2025 partition of sales for values from ('2025-01-01') to ('2026-01-01');
         create foreign table sales_2024 partition of sales for values from ('2024-01-01') to ('2025-01-01') server elsewhere;
         create table shops(id int primary key);",
    );
    let ran = rig.done("fill --all-tables --rows 300");
    let why = "public.sales is left out: its partition public.sales_2024 is a foreign table. To fill public.sales, detach";
    assert!(ran.stderr.contains(why), "{ran:#?}");
    assert_eq!(rows_of(&server, "shops"), 300);
    assert_eq!(rows_of(&server, "sales_2025"), 0);
    // The name alone is refused, as before.
    let refused = rig.run("fill --table sales --rows 300");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

/// Tables of codes and tables of one row stay as they are. Pairs of new keys are new.
#[test]
fn rows_are_added_beside_tables_without_room() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "create table kinds(k text primary key check (k in ('a','b','c')));
         create table site(id int primary key, n bigint); create unique index one_row on site ((true));
         create table people(id bigint generated always as identity primary key, kind text not null references kinds);
         create table clubs(id int primary key);
         create table members(person bigint references people, club int references clubs, primary key (person, club));",
    );
    rig.done("fill --all-tables --rows 200 -q");
    for rows in [400, 600] {
        let ran = rig.done("fill --all-tables --append --rows 200");
        for table in ["kinds", "site"] {
            assert!(ran.stderr.contains(&format!("public.{table} gets no more rows: ")), "{ran:#?}");
        }
        for table in ["people", "clubs", "members"] {
            assert_eq!(rows_of(&server, table), rows, "{table}");
        }
        assert_eq!((rows_of(&server, "kinds"), rows_of(&server, "site")), (3, 1));
        assert_valid(&server);
    }
    // Without new keys, pgrig does not know which pairs are new.
    let refused =
        rig.run("fill --all-tables --append --rows 200 --exclude-table people --exclude-table clubs");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("give --exclude-table public.members, run TRUNCATE"), "{refused:#?}");
}
