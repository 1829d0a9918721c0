//! Requests of `pgrig fill` for all tables of a schema: tables that are left alone, plans, refusals.

use std::fs;

use crate::fill_schema::{SHOP, rows_of, script};
use crate::support::{Ran, Rig};

/// A wrong name would fill a table that was to be left alone.
#[test]
fn tables_that_are_excluded_are_left_alone() {
    let rig = Rig::new();
    let server = rig.server("");
    let single = script(&rig, "CREATE TABLE single (id int PRIMARY KEY);");
    let both = rig.home.path().join("both.sql");
    fs::write(
        &both,
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a);",
    )
    .unwrap();
    let both = both.display();
    for (arguments, said) in [
        (
            format!("--ddl {single} --exclude-table single --rows 5"),
            "--exclude-table single leaves no table to fill",
        ),
        (
            format!("--ddl {single} --exclude-table typo --rows 5"),
            "--exclude-table typo: there is no such table; there are single",
        ),
        (
            format!("--ddl {single} --exclude-table single --for 1s"),
            "Leave out --exclude-table, or these options",
        ),
        (format!("--ddl {both} --exclude-table a --exclude-table b --rows 5"), "leaves no table to fill"),
        (
            format!("--ddl {both} --exclude-table public.c --rows 5"),
            "--exclude-table public.c: there is no such table",
        ),
    ] {
        let ran = rig.run(&format!("fill {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
    }
    rig.done(&format!("fill --ddl {both} --rows 5 -q"));
    for explain in ["--explain", ""] {
        let ran = rig.run(&format!("fill --all-tables --exclude-table aa --rows 3 --append {explain}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("there is no such table; there are public.a, public.b"), "{ran:#?}");
    }
    rig.done("fill --all-tables --exclude-table public.b --rows 3 --append -q");
    assert_eq!((rows_of(&server, "a"), rows_of(&server, "b")), (8, 5));
    // TRUNCATE takes a referenced table only with those that reference it.
    let ran = rig.run("fill --table a --rows 5");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let said = "run pgrig server psql -- -c 'TRUNCATE public.a, public.b' first (this also empties";
    assert!(ran.stderr.contains(said) && !ran.stderr.contains("--exclude-table"), "{ran:#?}");
    server.execute("TRUNCATE public.a, public.b");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, SHOP);
    for (arguments, said) in [
        ("--rows nobody=5".to_owned(), "--rows: nobody is not one of the tables to fill; these are "),
        (
            "--rows 10 --column nobody.age=email".to_owned(),
            "--column nobody.age=email: nobody is not one of the tables to fill; these are ",
        ),
        ("--rows orders=5*".to_owned(), "TABLE=ROWS"),
        (
            "--rows customers=5*orders".to_owned(),
            "pgrig fills customers before orders, because orders references customers: write the rule as --rows orders=",
        ),
        ("--rows customers=5*customers".to_owned(), "a table cannot depend on itself"),
        (
            "--rows customers=5*orders,orders=2*customers".to_owned(),
            "orders itself depends on customers by --rows: give one of them a number",
        ),
        (
            "--rows 10 --exclude-table nobody".to_owned(),
            "--exclude-table nobody: there is no such table; there are ",
        ),
        ("--rows 10 --exclude-table customers".to_owned(), "leave out --exclude-table customers"),
        (
            "--rows 10 --payload text".to_owned(),
            "--payload is for pgbench's tables: leave it out (for a column",
        ),
        ("--rows 10 --column price=null".to_owned(), "TABLE.COLUMN=SPEC"),
        ("--rows 10 --column nobody.price=null".to_owned(), "not one of the tables to fill"),
        ("--rows 10 --column products.price=null".to_owned(), "price"),
        ("--rows 10 --drop".to_owned(), "--drop"),
        ("--rows orders=10 --fillfactor 10".to_owned(), "--fillfactor"),
        ("--rows 10 --brim".to_owned(), "pgrig fills only one table"),
        ("--rows orders=10 -I dtg".to_owned(), "--init-steps"),
        ("--rows orders=10 --server-side".to_owned(), "--method copy or direct"),
        ("--rows orders=10 --append".to_owned(), "leave out --append"),
        ("10MB --rows 10".to_owned(), "give one of them"),
        ("10kB --rows customers=100000".to_owned(), "10.0 kB is too small"),
        (String::new(), "for example: pgrig fill 1GB --ddl "),
    ] {
        let ran: Ran = rig.run(&format!("fill --ddl {ddl} {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
        assert_eq!(
            server.number("SELECT count(*) FROM pg_class WHERE relname = 'customers'"),
            0,
            "{arguments}"
        );
    }
    for (arguments, said) in [
        ("--all-tables --rows 10", "no table to fill"),
        ("--all-tables --rows 10 --schema nosuch", "--schema nosuch: there is no such schema; there are "),
        ("--all-tables --rows 10 --unlogged", "(ALTER TABLE orders SET UNLOGGED)"),
        ("--all-tables --rows 10 --brim", "--table NAME"),
        ("--all-tables --rows 10 --probe scan", "--table NAME"),
        ("--all-tables --for 1s", "no amount is given"),
        ("--rows 10 --exclude-table a", "--all-tables, --ddl or --model"),
    ] {
        let ran = rig.run(&format!("fill {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
    }
    let explained = rig.done(&format!("fill --ddl {ddl} --rows 10 --explain"));
    assert!(
        explained.stdout.contains("order_items") && explained.stdout.contains("one of 10 referenced keys")
    );
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'customers'"), 0);
}

#[test]
fn a_plan_moves_no_sequence() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE SEQUENCE shared; CREATE TABLE a (id int DEFAULT nextval('shared'), t text);
         CREATE TABLE b (id int DEFAULT nextval('shared'), s serial, i int GENERATED ALWAYS AS IDENTITY, t text)",
    );
    rig.done("fill 3MB --all-tables --explain");
    for sequence in ["shared", "b_s_seq", "b_i_seq"] {
        let query = format!("SELECT last_value + is_called::int FROM {sequence}");
        assert_eq!(server.number(&query), 1, "{sequence}");
    }
    rig.done("fill --all-tables --rows 10 -q");
    assert_eq!(server.number("SELECT last_value FROM b_s_seq"), 10);
    assert_eq!(server.number("SELECT nextval('b_i_seq')"), 11);
}
