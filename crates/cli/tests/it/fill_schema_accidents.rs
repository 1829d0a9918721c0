//! `pgrig fill` of a schema that is interrupted, killed or stopped by a limit: the same command completes it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::until;

use crate::fill_schema::{SHOP, assert_nothing_of_pgrig, assert_valid, rows_of, script};
use crate::support::victims::Ledger;
use crate::support::{Ran, Rig, Server};

#[test]
fn a_killed_fill_is_completed_by_the_same_command() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, SHOP);
    let fill = format!(
        "fill --ddl {ddl} --method copy --rows customers=2000,orders=30*customers,order_items=60000 --data-only"
    );
    killed_once(&rig, &server, &fill, "SELECT count(*) FROM pgrig_schema_fill WHERE is_filled");
    let other = rig.run(&format!("fill --ddl {ddl} --rows 10"));
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("unfinished fill") && !other.stderr.contains("--drop"), "{other:#?}");
    let completed = rig.done(&fill);
    assert!(completed.stderr.contains("tables filled"), "{completed:#?}");
    for (table, rows) in [("customers", 2000), ("orders", 60_000), ("order_items", 60_000)] {
        assert_eq!(rows_of(&server, table), rows, "{table}");
    }
    assert_valid(&server);
    assert_nothing_of_pgrig(&server);
}

/// Its session in the server lives on: PostgreSQL 18 gives a second one other names of sequences as long as it does.
#[test]
fn a_fill_that_is_killed_while_it_plans_does_not_disturb_the_next() {
    killed_while_it_plans("");
    killed_while_it_plans("--table customers");
}

fn killed_while_it_plans(options: &str) {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE); \
         CREATE TABLE orders (id serial PRIMARY KEY, customer_id bigint REFERENCES customers); \
         DO $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1, 1); END $$;",
    );
    let holder = rig.connect(&server.url);
    rig.block_on(holder.execute("SELECT pg_advisory_lock(1, 1)", &[])).unwrap();
    let fill = format!("fill --ddl {ddl} --rows 100 {options}");
    let waiting =
        |sessions: i64| server.number("SELECT count(*) FROM pg_locks WHERE NOT granted") == sessions;
    let killed = rig.spawn(&fill);
    until("the first has created its tables", || waiting(1));
    killed.signal(Signal::SIGKILL);
    killed.end();
    let next = rig.spawn(&fill);
    until("the second waits for the first", || waiting(2));
    rig.block_on(holder.execute("SELECT pg_advisory_unlock(1, 1)", &[])).unwrap();
    let ran = next.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(rows_of(&server, "customers"), 100);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'customers_id_seq'"), 1);
    assert_nothing_of_pgrig(&server);
}

/// The rows of a chunk that was rolled back are dead, and their space is used again.
#[test]
fn the_space_of_a_killed_chunk_is_used_again() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE whole (a bigint, b bigint, PRIMARY KEY (a, b)); CREATE TABLE killed (LIKE whole INCLUDING ALL); \
         CREATE SEQUENCE n; \
         CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('n') = 20000 THEN PERFORM pg_advisory_xact_lock(1, 1); END IF; RETURN NEW; END $$; \
         CREATE TRIGGER stop BEFORE INSERT ON killed FOR EACH ROW EXECUTE FUNCTION stop()",
    );
    let fill = |table: &str| format!("fill --table {table} --rows 60000 --method copy --streams 1");
    let heap = |table: &str| server.number(&format!("SELECT pg_relation_size('{table}')"));
    rig.done(&fill("whole"));
    let holder = rig.connect(&server.url);
    rig.block_on(holder.execute("SELECT pg_advisory_lock(1, 1)", &[])).unwrap();
    for _ in 0..2 {
        server.execute("SELECT setval('n', 1, false)");
        let pgrig = rig.spawn(&fill("killed"));
        until("a part of a chunk is in the table", || {
            server.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'") == 1
        });
        pgrig.signal(Signal::SIGKILL);
        pgrig.end();
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'");
        until("its session has ended", || {
            server.number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%'") == 0
        });
    }
    assert!(heap("killed") > 0, "rows of a chunk are in the table");
    server.execute("DROP TRIGGER stop ON killed");
    rig.done(&fill("killed"));
    assert_eq!(rows_of(&server, "killed"), 60_000);
    for size in ["pg_relation_size", "pg_indexes_size"] {
        let of = |table: &str| server.number(&format!("SELECT {size}('{table}')"));
        let (whole, killed) = (of("whole"), of("killed"));
        assert!(killed <= whole + whole / 50, "{size}: {killed} bytes instead of {whole}");
    }
}

/// The other fill may end a table while this one reads the record: then its rows are no reason to empty the table.
#[test]
fn a_fill_beside_another_one_names_its_session() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE first (id int PRIMARY KEY); CREATE TABLE last (id int PRIMARY KEY REFERENCES first); CREATE SEQUENCE n; \
         CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('n') = 20000 THEN PERFORM pg_advisory_xact_lock(1, 1); END IF; RETURN NEW; END $$; \
         CREATE TRIGGER stop BEFORE INSERT ON last FOR EACH ROW EXECUTE FUNCTION stop()",
    );
    let holder = rig.connect(&server.url);
    rig.block_on(holder.execute("SELECT pg_advisory_lock(1, 1)", &[])).unwrap();
    let fill = "fill --all-tables --rows 30000 --method copy";
    let pgrig = rig.spawn(fill);
    until("the last table is being filled", || {
        server.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'") == 1
    });
    server.execute("UPDATE pgrig_schema_fill SET is_filled = false WHERE number = 1");
    let beside = rig.run(fill);
    assert!(beside.stderr.contains("runs this fill: wait until it ends"), "{beside:#?}");
    assert!(!beside.stderr.contains("TRUNCATE"), "{beside:#?}");
    rig.block_on(holder.execute("SELECT pg_advisory_unlock(1, 1)", &[])).unwrap();
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(rows_of(&server, "last"), 30_000);
}

/// The time is that of all tables. What is loaded stays, and neither time nor marks are part of the request.
#[test]
fn a_limit_of_time_ends_the_fill_of_a_schema_and_the_same_command_does_the_rest() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(&rig, SHOP);
    let fill = format!(
        "fill --ddl {ddl} --rows customers=2000,orders=30*customers,order_items=300000 --chunk 1MB --mark 900TB"
    );
    let stopped = rig.done(&format!("{fill} --for 0.1s"));
    assert!(
        stopped.stderr.contains("0.1 s have passed")
            && stopped.stderr.contains("to fill the rest, repeat the command"),
        "{stopped:#?}"
    );
    let marks = |ran: &Ran| ran.stderr.matches("passed before the fill began").count();
    assert!(rows_of(&server, "order_items") < 300_000);
    let done = rig.done(&format!("{fill} --for 1h"));
    assert!(
        done.stderr.contains("an interrupted fill") && !done.stderr.contains("to fill the rest"),
        "{done:#?}"
    );
    // Once for all tables; the first run may be over before its first table.
    assert!(marks(&stopped) <= 1, "{stopped:#?}");
    assert_eq!(marks(&done), 1, "{done:#?}");
    for (table, rows) in [("customers", 2000), ("orders", 60_000), ("order_items", 300_000)] {
        assert_eq!(rows_of(&server, table), rows, "{table}");
    }
    assert_valid(&server);
    assert_nothing_of_pgrig(&server);
}

/// A fill by COPY that is killed again and again: each row is there once, and below a row that references nothing.
#[test]
fn a_tree_is_completed_by_the_same_command() {
    const ROWS: i64 = 120_000;
    let tree = "create table tree(id serial primary key, parent int references tree, t text not null)";
    for (version, options) in
        [("", "--all-tables --chunk 500kB"), ("--pg-version 13", "--table tree --chunk 500kB")]
    {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(tree);
        server.execute("create table twig(id int primary key, tree int not null references tree)");
        let fill = format!("fill {options} --method copy --rows {ROWS} -q");
        for share in [1, 3] {
            let pgrig = rig.spawn(&fill);
            let mut ledger = Ledger::of(&rig, &server.url, "pgrig_chunks_tree");
            until("rows are there", || {
                ledger.hold(1).is_some() && rows_of(&server, "tree") >= ROWS * share / 10
            });
            pgrig.signal(Signal::SIGKILL);
            pgrig.end();
            ledger.release();
            assert!(rows_of(&server, "tree") < ROWS, "it is killed before the end");
        }
        rig.done(&fill);
        assert_eq!(server.number("SELECT count(DISTINCT id) FROM tree"), ROWS);
        let below = "WITH RECURSIVE below AS (SELECT id FROM tree WHERE parent IS NULL UNION ALL
                SELECT t.id FROM tree t JOIN below ON t.parent = below.id) SELECT count(*) FROM below";
        assert_eq!((rows_of(&server, "tree"), server.number(below)), (ROWS, ROWS));
        assert_valid(&server);
        assert_nothing_of_pgrig(&server);
    }
}

/// Wherever it is killed, the same command creates the keys that close the cycle.
#[test]
fn a_cycle_is_completed_by_the_same_command() {
    let cycle = "create table a(id int primary key, b int not null); create table b(id int primary key, a int not null references a, t text);
                alter table a add foreign key (b) references b;";
    for (version, method) in [("", "direct"), ("--pg-version 13", "copy")] {
        let rig = Rig::new();
        let server = rig.server(version);
        let ddl = script(&rig, cycle);
        let fill = format!("fill --ddl {ddl} --rows 150000 --method {method} -q");
        for kill in [
            "SELECT count(*) FROM pgrig_schema_fill",
            "SELECT count(*) FROM pgrig_schema_fill WHERE is_filled",
        ] {
            killed_once(&rig, &server, &fill, kill);
        }
        rig.done(&fill);
        assert_eq!((rows_of(&server, "a"), rows_of(&server, "b")), (150_000, 150_000));
        let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated";
        assert_eq!(server.number(keys), 2);
        assert_valid(&server);
        assert_nothing_of_pgrig(&server);
    }
}

/// Begins a fill and kills it once its record has such rows, and while nobody can write to the record: the fill cannot
/// end before.
fn killed_once(rig: &Rig, server: &Server<'_>, fill: &str, rows: &str) {
    let gate = rig.connect(&server.url);
    let lock = "ROLLBACK; BEGIN; LOCK TABLE pgrig_schema_fill IN SHARE MODE";
    let mut pgrig = rig.spawn(fill);
    until("tables are filled", || {
        assert!(!pgrig.has_ended(), "it ended before");
        rig.block_on(gate.batch_execute(lock)).is_ok()
            && rig.block_on(gate.query_one(rows, &[])).unwrap().get::<_, i64>(0) > 0
    });
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    rig.block_on(gate.batch_execute("ROLLBACK")).unwrap();
}

/// The processes that are killed while orders are being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Pgrig,
    Both,
}

/// Begins a fill and kills it, or pgrig and its server, while it waits for a table that somebody else has locked.
fn killed_while_filling(rig: &Rig, server: &Server<'_>, fill: &str, table: &str, killed: Killed) {
    let gate = rig.connect(&server.url);
    rig.block_on(gate.batch_execute(&format!("BEGIN; LOCK TABLE {table} IN SHARE MODE"))).unwrap();
    let pgrig = rig.spawn(fill);
    until("pgrig waits for the table", || {
        server.number("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted") > 0
    });
    if killed == Killed::Both {
        let postmaster = rig.status()["pid"].as_i64().unwrap();
        kill(Pid::from_raw(i32::try_from(postmaster).unwrap()), Signal::SIGKILL).unwrap();
        until("the server is gone", || rig.status()["state"] == "stopped");
    }
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    if killed == Killed::Both {
        rig.server("");
    }
}

/// The fill is killed at each of the larger tables, and completed by the same command.
fn killed_again_and_again(killed: Killed, sql: &str, options: &str) {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(sql);
    let mut before = 0;
    if options.contains("--append") {
        rig.done("fill --all-tables --rows 50 --data-only -q");
        before = 50;
    }
    let fill = format!("fill --all-tables --rows 4000 --data-only {options}");
    for table in ["customers", "orders", "order_items"] {
        killed_while_filling(&rig, &server, &fill, table, killed);
    }
    let completed = rig.done(&fill);
    assert!(completed.stderr.contains("an interrupted fill"), "{completed:#?}");
    for table in ["customers", "products", "orders", "order_items", "order_items_log"] {
        assert_eq!(rows_of(&server, table), before + 4000, "{table}");
    }
    assert_valid(&server);
    assert_nothing_of_pgrig(&server);
}

#[test]
fn a_fill_by_copy_is_killed_at_every_table() {
    killed_again_and_again(Killed::Pgrig, SHOP, "--method copy");
}

#[test]
fn rows_that_are_added_are_added_once() {
    killed_again_and_again(Killed::Pgrig, SHOP, "--append");
}

#[test]
fn pages_and_the_server_are_killed_at_every_table() {
    killed_again_and_again(Killed::Both, SHOP, "");
}

#[test]
fn unlogged_tables_that_a_crash_has_emptied_are_filled_again() {
    killed_again_and_again(
        Killed::Both,
        &SHOP.replace("create table", "create unlogged table"),
        "--method copy",
    );
}

#[test]
fn an_interrupted_fill_says_how_to_go_on() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(SHOP);
    let gate = rig.connect(&server.url);
    rig.block_on(gate.batch_execute("BEGIN; LOCK TABLE orders IN SHARE MODE")).unwrap();
    let fill = "fill --all-tables --rows 300 --method copy -q";
    let pgrig = rig.spawn(fill);
    until("pgrig waits for the table", || {
        server.number("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted") > 0
    });
    // Another one waits for the first, and gives up.
    let second = rig.run(fill);
    assert_eq!(second.code, Some(1), "{second:#?}");
    assert!(second.stderr.contains("another session"), "{second:#?}");
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    let said = "of 5 tables filled; all rows loaded so far stay. To complete the fill, repeat the command. To start over, run TRUNCATE on \
                the tables, and";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    drop(gate);
    rig.done(fill);
    assert_eq!(rows_of(&server, "order_items"), 300);
    assert_nothing_of_pgrig(&server);
}

#[test]
fn a_fill_that_is_forgotten_leaves_nothing_in_the_way() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(SHOP);
    killed_while_filling(
        &rig,
        &server,
        "fill --all-tables --rows 300 --method copy",
        "orders",
        Killed::Pgrig,
    );
    server.execute("TRUNCATE customers, products, orders, order_items, order_items_log");
    rig.done("fill --all-tables --rows 20 --no-resume -q");
    assert_eq!(rows_of(&server, "orders"), 20);
    assert_nothing_of_pgrig(&server);
}
