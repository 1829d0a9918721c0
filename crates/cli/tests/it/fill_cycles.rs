//! `pgrig fill --all-tables` of tables that reference each other and were there before, with columns that are NOT NULL.

use nix::sys::signal::Signal;

use crate::support::{Rig, Server};
use testkit::until;

/// As in the schemas of rental shops: a shop has a manager, and the manager works in a shop.
const RENTAL: &str = "
    create table address(id int primary key, street text not null);
    create table store(store_id serial primary key, manager_id int not null, address_id int not null references address);
    create unique index idx_unq_manager on store(manager_id);
    create table staff(staff_id serial primary key, name text not null, active boolean not null default true,
        store_id int not null constraint staff_store references store on update cascade, superior int references staff);
    alter table store add constraint store_manager foreign key (manager_id) references staff;
    comment on constraint store_manager on store is 'the manager';
    create table rental(id int primary key, staff_id int not null references staff, store_id int not null references store);";
/// Three tables in a cycle, one of which references itself; and two cycles that share a table, where one key may be NULL.
const OTHERS: &str = "
    create table one(id int primary key, two int not null);
    create table two(id int primary key, three int not null, up int references two);
    create table three(id int primary key, one int not null references one);
    alter table one add foreign key (two) references two;
    alter table two add foreign key (three) references three;
    create table pair(one int not null references one, three int not null references three);
    create table middle(id int primary key, l int, r int not null);
    create table l(id int primary key, middle int not null references middle);
    create table r(id int primary key, middle int not null references middle);
    alter table middle add foreign key (l) references l, add foreign key (r) references r;";
const TABLES: [&str; 11] =
    ["address", "store", "staff", "rental", "one", "two", "three", "pair", "middle", "l", "r"];
const TRUNCATE: &str = "TRUNCATE address, store, staff, rental, one, two, three, pair, middle, l, r";

/// Every key is there as it was, and the server finds all rows valid.
#[track_caller]
fn assert_kept(server: &Server<'_>) {
    let keys = server.rows(
        "SELECT conrelid::regclass::text AS of, pg_get_constraintdef(oid) AS definition, conname, condeferrable, convalidated
           FROM pg_constraint WHERE contype = 'f' AND conname NOT LIKE 'again%'",
    );
    for (number, key) in keys.iter().enumerate() {
        assert!(key.get::<_, bool>("convalidated") && !key.get::<_, bool>("condeferrable"));
        let (of, definition): (String, String) = (key.get("of"), key.get("definition"));
        server.execute(&format!(
            "BEGIN; ALTER TABLE {of} ADD CONSTRAINT again_{number} {definition}; ROLLBACK"
        ));
    }
    let comments = "SELECT count(*) FROM pg_description WHERE description = 'the manager'";
    assert_eq!(server.number(comments), 1);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

fn rows_of(server: &Server<'_>, table: &str) -> i64 {
    server.number(&format!("SELECT count(*) FROM {table}"))
}

#[test]
fn one_transaction_fills_a_cycle() {
    for version in ["", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(RENTAL);
        server.execute(OTHERS);
        server.execute(
            "CREATE ROLE clerk LOGIN; CREATE ROLE guest LOGIN; GRANT ALL ON SCHEMA public TO clerk, guest;
             GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO guest;
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO clerk, guest",
        );
        for table in TABLES {
            server.execute(&format!("ALTER TABLE {table} OWNER TO clerk"));
        }
        let of = |role: &str| server.url.replace("postgres@", &format!("{role}@"));
        for (role, method) in [("postgres", "direct"), ("postgres", "copy"), ("clerk", "copy")] {
            let fill = format!("fill --all-tables --method {method} -d {}", of(role));
            let plan = rig.done(&format!("{fill} --rows 500 --explain")).stdout;
            let who = if role == "clerk" { "the server" } else { "pgrig" };
            let said =
                format!("one transaction fills staff, store; {who} checks staff_store after their rows");
            assert!(plan.contains(&said), "{plan}");
            rig.done(&format!("{fill} --rows 500"));
            for table in TABLES {
                assert_eq!(rows_of(&server, table), 500, "{method} {table}");
            }
            assert_eq!(server.number("SELECT count(DISTINCT manager_id) FROM store"), 500);
            assert!(server.number("SELECT count(DISTINCT store_id) FROM staff") > 250);
            assert_kept(&server);
            rig.done(&format!("fill --all-tables --append --rows 200 -d {}", of(role)));
            assert_eq!((rows_of(&server, "store"), rows_of(&server, "two")), (700, 700));
            assert!(server.number("SELECT count(DISTINCT store_id) FROM staff WHERE store_id > 500") > 100);
            assert_kept(&server);
            server.execute(TRUNCATE);
        }
        // Fewer rows than those that reference them.
        rig.done("fill --all-tables --rows store=3,staff=70,one=2,two=90,three=4,middle=5,l=40,r=1,pair=9,rental=8,address=2");
        assert_eq!(server.number("SELECT count(DISTINCT store_id) FROM staff"), 3);
        assert_kept(&server);
        server.execute(TRUNCATE);
        // A role that may neither turn triggers off nor change the key.
        let fill = format!(
            "fill --all-tables --exclude-table one --exclude-table two --exclude-table three \
             --exclude-table pair --exclude-table middle --exclude-table l --exclude-table r --rows 100 -d {}",
            of("guest")
        );
        let refused = rig.run(&fill);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for said in [
            "public.staff",
            "public.store",
            "connect as the owner",
            "ALTER CONSTRAINT staff_store DEFERRABLE",
        ] {
            assert!(refused.stderr.contains(said), "{said}: {refused:#?}");
        }
        assert_eq!(rows_of(&server, "address"), 0);
        server.execute("ALTER TABLE staff ALTER CONSTRAINT staff_store DEFERRABLE");
        rig.done(&fill);
        server.execute("ALTER TABLE staff ALTER CONSTRAINT staff_store NOT DEFERRABLE");
        assert_eq!((rows_of(&server, "store"), rows_of(&server, "staff")), (100, 100));
        assert_kept(&server);
        let none = rig.run("fill --all-tables --exclude-table rental --append --rows store=0,staff=5");
        assert_eq!(none.code, Some(2), "{none:#?}");
        assert!(none.stderr.contains("give it at least 1 row with --rows"), "{none:#?}");
    }
}

/// A partitioned table, a table with triggers, and a table outside that references the cycle.
#[test]
fn cycles_with_obstacles() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "create table parts(id int primary key, whole int not null) partition by hash (id);
         create table parts_0 partition of parts for values with (modulus 2, remainder 0);
         create table parts_1 partition of parts for values with (modulus 2, remainder 1);
         create table whole(id int primary key, part int not null references parts);
         alter table parts add foreign key (whole) references whole;
         create table noted(id int primary key, other int not null, at text);
         create table other(id int primary key, noted int not null references noted);
         alter table noted add foreign key (other) references other;
         create function note() returns trigger language plpgsql as 'begin new.at := ''noted''; return new; end';
         create trigger note before insert on noted for each row execute function note();
         create table outside(other int references other);",
    );
    let missing =
        "SELECT (SELECT count(*) FROM parts p WHERE NOT EXISTS (SELECT FROM whole w WHERE w.id = p.whole))
        + (SELECT count(*) FROM whole w WHERE NOT EXISTS (SELECT FROM parts p WHERE p.id = w.part))
        + (SELECT count(*) FROM noted n WHERE NOT EXISTS (SELECT FROM other o WHERE o.id = n.other))
        + (SELECT count(*) FROM other o WHERE NOT EXISTS (SELECT FROM noted n WHERE n.id = o.noted))";
    let (tables, truncate) =
        (["parts", "whole", "noted", "other"], "TRUNCATE parts, whole, noted, other, outside");
    for (options, noted) in
        [("", 300), ("--triggers off", 0), ("--method copy", 300), ("--exclude-table outside", 300)]
    {
        rig.done(&format!("fill --all-tables --rows 300 {options}"));
        for table in tables {
            assert_eq!(rows_of(&server, table), 300, "{options} {table}");
        }
        assert_eq!(server.number(missing), 0, "{options}");
        assert_eq!(server.number("SELECT count(*) FROM noted WHERE at = 'noted'"), noted, "{options}");
        server.execute(truncate);
    }
    // Of two keys that only the server could check at the end, one that is deferrable is checked later.
    server.execute(
        "ALTER TABLE whole ALTER CONSTRAINT whole_part_fkey DEFERRABLE; ALTER TABLE other ALTER CONSTRAINT other_noted_fkey \
         DEFERRABLE; CREATE ROLE guest LOGIN; GRANT ALL ON SCHEMA public TO guest; GRANT SELECT, INSERT ON ALL TABLES IN \
         SCHEMA public TO guest",
    );
    rig.done(&format!("fill --all-tables --rows 300 -d {}", server.url.replace("postgres@", "guest@")));
    assert_eq!((rows_of(&server, "parts"), rows_of(&server, "noted"), server.number(missing)), (300, 300, 0));
}

/// Wherever it is killed, the tables of a cycle have all rows or none, and the same command completes the fill.
#[test]
fn a_cycle_is_completed_after_a_kill() {
    for (version, role, method) in
        [("", "postgres", "direct"), ("", "clerk", "copy"), ("--pg-version 13", "postgres", "copy")]
    {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(RENTAL);
        server.execute("CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA public TO clerk");
        for table in ["address", "store", "staff", "rental"] {
            server.execute(&format!("ALTER TABLE {table} OWNER TO clerk"));
        }
        let url = server.url.replace("postgres@", &format!("{role}@"));
        let fill = format!("fill --all-tables --rows 100000 --method {method} -q -d {url}");
        for kill in [
            "SELECT count(*) FROM pg_class WHERE relname = 'pgrig_chunks_store'",
            // Its transaction has begun to load the cycle.
            "SELECT count(*) FROM pg_locks WHERE relation = 'staff'::regclass AND granted AND pid <> pg_backend_pid()
                AND mode IN ('RowExclusiveLock', 'AccessExclusiveLock')",
            "SELECT count(*) FROM (SELECT FROM staff LIMIT 1) AS loaded",
        ] {
            let pgrig = rig.spawn(&fill);
            until("the cycle is reached", || server.number(kill) > 0);
            pgrig.signal(Signal::SIGKILL);
            pgrig.end();
            let rows = (rows_of(&server, "staff"), rows_of(&server, "store"));
            assert!(rows == (0, 0) || rows == (100_000, 100_000), "{rows:?}");
        }
        rig.done(&fill);
        for table in ["address", "store", "staff", "rental"] {
            assert_eq!(rows_of(&server, table), 100_000, "{table}");
        }
        assert_eq!(server.number("SELECT count(DISTINCT staff_id) FROM staff"), 100_000);
        assert_kept(&server);
    }
}
