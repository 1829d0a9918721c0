//! `pgrig fill` of tables that reference each other by columns of their keys: row 1 of each references row 1 of the others.

use crate::fill_schema::{assert_valid, rows_of, script};
use crate::support::{Rig, Server};

/// As in the schema of a chat server: a lock has a mode, and the mode names a lock. All columns are those of unique keys, too.
const LOCKS: &str = "
    create table mode(name text not null, key text not null, is_write boolean not null, token text not null);
    create unique index on mode(name, key);
    create unique index on mode(name, key, is_write);
    create table locks(name text not null, key text not null, instance text not null, is_write boolean not null,
        token text not null, renewed bigint not null,
        foreign key (name, key, is_write) references mode(name, key, is_write));
    create unique index on locks(name, key, token);
    create unique index on locks(name, key) where is_write;
    alter table mode add constraint mode_locks foreign key (name, key, token) references locks(name, key, token);";
/// Tenants have teams and people; a team has a lead, and each person is in a team and may have a boss.
const TENANTS: &str = "
    create table tenants(id int primary key, name text not null);
    create table teams(tenant int not null references tenants, id bigserial, lead bigint not null, name text not null,
        primary key(tenant, id), unique(tenant, name));
    create table people(tenant int not null references tenants, id bigserial, team bigint not null, boss bigint,
        primary key(tenant, id), foreign key (tenant, team) references teams, foreign key (tenant, boss) references people);
    alter table teams add constraint teams_lead foreign key (tenant, lead) references people;
    create table cards(tenant int not null, person bigint not null, foreign key (tenant, person) references people);";
/// Three tables in a cycle; two whose primary keys reference each other; keys of a shared sequence.
const OTHERS: &str = "
    create table x(tenant int, id int, y int not null, primary key (tenant, id));
    create table y(tenant int, id int, z int not null, primary key (tenant, id));
    create table z(tenant int, id int, x int not null, primary key (tenant, id), foreign key (tenant, x) references x);
    alter table x add foreign key (tenant, y) references y;
    alter table y add foreign key (tenant, z) references z;
    create table c(id uuid primary key);
    create table d(id uuid primary key references c);
    alter table c add foreign key (id) references d;
    create sequence ids;
    create table p(id int primary key default nextval('ids'), q int not null);
    create table q(id int primary key default nextval('ids'), p int not null references p);
    alter table p add foreign key (q) references q;";
/// Keys of which one column may be NULL.
const NULLABLE: &str = "
    create table home(tenant int, id int, main int, primary key(tenant, id));
    create table room(tenant int, id int, home int, primary key(tenant, id), foreign key (tenant, home) references home);
    alter table home add foreign key (tenant, main) references room;";
const TABLES: [&str; 13] =
    ["mode", "locks", "tenants", "teams", "people", "cards", "x", "y", "z", "c", "d", "p", "q"];

/// All tables have so many rows, and the server finds their foreign keys valid.
#[track_caller]
fn assert_filled(server: &Server<'_>, rows: i64) {
    for table in TABLES {
        assert_eq!(rows_of(server, table), rows, "{table}");
    }
    assert_valid(server);
    let pairs = "SELECT count(*) FROM mode JOIN locks USING (name, key, token, is_write)";
    assert_eq!(server.number(pairs), rows);
    assert_eq!(server.number("SELECT count(DISTINCT is_write) FROM mode"), 2);
    // More than one team of a tenant; persons of all tenants have cards.
    assert!(server.number("SELECT count(DISTINCT tenant) FROM people") > rows / 4);
    assert!(server.number("SELECT count(DISTINCT person) FROM cards") > rows / 4);
    assert_eq!(server.number("SELECT count(boss) FROM people"), 0);
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND condeferrable";
    assert_eq!(server.number(keys), 0);
    // The next values of the sequences are free.
    for (table, column) in [("teams", "id"), ("people", "id")] {
        let next = format!(
            "SELECT nextval(pg_get_serial_sequence('{table}', '{column}')) - max({column}) FROM {table}"
        );
        assert_eq!(server.number(&next), 1, "{table}");
    }
}

#[test]
fn rows_of_tables_that_were_there_are_paired() {
    for version in ["", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(&[LOCKS, TENANTS, OTHERS].concat());
        server.execute("CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA public TO clerk; GRANT ALL ON SEQUENCE ids TO clerk");
        for table in TABLES {
            server.execute(&format!("ALTER TABLE {table} OWNER TO clerk"));
        }
        // A role that may not turn triggers off: the server checks the rows.
        for (role, method) in [("postgres", "direct"), ("postgres", "copy"), ("clerk", "copy")] {
            let url = server.url.replace("postgres@", &format!("{role}@"));
            let fill = format!("fill --all-tables --method {method} -d {url} --rows 200");
            let plan = rig.done(&format!("{fill} --explain")).stdout;
            assert!(plan.contains("they reference each other"), "{plan}");
            rig.done(&fill);
            assert_filled(&server, 200);
            server.execute(&format!("TRUNCATE {} RESTART IDENTITY", TABLES.join(", ")));
            server.execute(
                "DO $$ DECLARE name text; tab text; BEGIN
                   FOR name, tab IN SELECT conname, conrelid::regclass FROM pg_constraint WHERE conname LIKE 'again%' LOOP
                     EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', tab, name); END LOOP; END $$",
            );
        }
    }
}

#[test]
fn rows_of_new_tables_are_paired() {
    for version in ["", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let ddl = script(&rig, &[LOCKS, TENANTS, OTHERS].concat());
        for method in ["direct", "copy"] {
            rig.done(&format!("fill --ddl {ddl} --rows 200 --method {method} -q"));
            assert_eq!(rows_of(&server, "locks"), 200);
            server.execute(&format!("DROP TABLE {} CASCADE; DROP SEQUENCE ids", TABLES.join(", ")));
        }
        // The number of rows is that of any of them, and the same for all.
        rig.done(&format!("fill --ddl {ddl} --rows locks=70,people=30,tenants=3 -q"));
        for (table, rows) in [("mode", 70), ("locks", 70), ("teams", 30), ("people", 30)] {
            assert_eq!(rows_of(&server, table), rows, "{table}");
        }
        assert_eq!(server.number("SELECT count(DISTINCT tenant) FROM teams"), 3);
        assert_valid(&server);
        server.execute(&format!("DROP TABLE {} CASCADE; DROP SEQUENCE ids", TABLES.join(", ")));
        rig.done(&format!("fill 30MB --ddl {ddl} -q"));
        assert_eq!(rows_of(&server, "mode"), rows_of(&server, "locks"));
        assert_valid(&server);
    }
}

#[test]
fn a_key_is_null_if_one_of_its_columns_may_be() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, NULLABLE);
    for command in [
        "fill --all-tables".to_owned(),
        "fill --all-tables --method copy".to_owned(),
        format!("fill --ddl {ddl}"),
        format!("fill --ddl {ddl} --method copy"),
    ] {
        if command.contains("--all-tables") {
            server.execute(NULLABLE);
        }
        rig.done(&format!("{command} --rows 200 -q"));
        let (homes, rooms) =
            (server.number("SELECT count(main) FROM home"), server.number("SELECT count(home) FROM room"));
        assert!(homes.min(rooms) == 0 && homes.max(rooms) > 150, "{command}: {homes}, {rooms}");
        assert_valid(&server);
        server.execute("DROP TABLE home, room CASCADE");
    }
    // As with MATCH FULL, under which a NULL in one column is not enough.
    let full = NULLABLE.replace("references home", "references home match full");
    let full = full.replace("references room", "references room match full");
    rig.done(&format!("fill --ddl {} --rows 200 -q", script(&rig, &full)));
    assert_eq!(
        server.number("SELECT count(*) FROM home JOIN room ON (main, room.tenant) = (room.id, home.tenant)"),
        200
    );
    assert_valid(&server);
}

#[test]
fn rows_that_cannot_be_paired_are_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, &[LOCKS, TENANTS].concat());
    for (options, said) in [
        ("--rows mode=10,locks=20", "reference each other row by row, so they get the same number of rows"),
        ("--rows 10 --column teams.lead=constant(1)", "give the specification for that one"),
    ] {
        let refused = rig.run(&format!("fill --ddl {ddl} {options}"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:#?}");
    }
    server.execute(LOCKS);
    rig.done("fill --all-tables --rows 20 -q");
    let refused = rig.run("fill --all-tables --append --rows 20");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    for said in ["public.mode", "public.locks", "mode_locks", "--append cannot add such rows"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:#?}");
    }
    assert_eq!(rows_of(&server, "locks"), 20);
    server.execute("DROP TABLE mode, locks CASCADE");
    // A CHECK of a copy that the column with the values does not have.
    let checked = format!(
        "{TENANTS} alter table teams add check (tenant > 5); alter table people add check (tenant > 4);"
    );
    let refused = rig.run(&format!("fill --ddl {} --rows 10", script(&rig, &checked)));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(
        refused.stderr.contains("teams_lead") && refused.stderr.contains("DROP NOT NULL"),
        "{refused:#?}"
    );
    // The remedy is a statement that helps.
    let remedy =
        refused.stderr.split(". Add ").nth(1).and_then(|rest| rest.split(" to the end of the SQL").next());
    let nullable = format!("{checked} {};", remedy.unwrap());
    rig.done(&format!("fill --ddl {} --rows 10 -q", script(&rig, &nullable)));
    assert_eq!(rows_of(&server, "people"), 10);
}
