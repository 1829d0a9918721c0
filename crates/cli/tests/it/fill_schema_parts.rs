//! All tables of a schema, filled by several processes: the same data as that of one process, whoever comes late, is killed,
//! or resumes.

use std::fs;

use nix::sys::signal::Signal;
use testkit::until_some as until;

use crate::support::victims::{Chance, Ledger};
use crate::support::{Ran, Rig, Running, Server};

/// Foreign keys to one and two tables, a tree, a table without keys, partitions, and a view of rows.
const SHOP: &str = "
    create table customers(id bigint generated always as identity primary key, email text unique not null, credit numeric(10,2));
    create table products(id serial primary key, sku text not null unique, tags text[]);
    create table categories(id int primary key, parent int references categories, title text);
    create table orders(id bigint generated always as identity primary key,
        customer_id bigint not null references customers, placed_at timestamptz not null);
    create index on orders(customer_id);
    create table order_items(order_id bigint references orders, line smallint, product_id int not null references products,
        quantity int not null check (quantity between 1 and 100), primary key(order_id, line));
    create table notes(text varchar(40), at date);
    create table events(id bigint, at date not null, product_id int references products) partition by range (id);
    create table events_1 partition of events for values from (1) to (5000);
    create table events_2 partition of events for values from (5000) to (maxvalue);
    create table flags(code char(2));
    create materialized view sold as select product_id, sum(quantity) from order_items group by 1;
";
const TABLES: [&str; 8] =
    ["customers", "products", "categories", "orders", "order_items", "notes", "events", "flags"];
/// A fill of many small chunks, and of tables with one.
const AMOUNT: &str = "--rows customers=20000,products=3000,categories=700,orders=2*customers,order_items=6*orders,notes=9000,\
                      events=15000,flags=5 --chunk 300kB --streams 1 --seed 3";

/// A fill in parts, and its server.
struct Parts<'a> {
    rig: &'a Rig,
    server: Server<'a>,
    options: String,
}

impl<'a> Parts<'a> {
    /// Of tables that the fill creates.
    fn by_ddl(rig: &'a Rig, version: &str) -> Self {
        let server = rig.server(version);
        let path = rig.home.path().join("shop.sql");
        fs::write(&path, SHOP).unwrap();
        Self { rig, server, options: format!("--ddl {} {AMOUNT}", path.display()) }
    }

    /// Of tables that are there, with their keys.
    fn of_present_tables(rig: &'a Rig, version: &str) -> Self {
        let server = rig.server(version);
        server.execute(SHOP);
        Self { rig, server, options: format!("--all-tables {AMOUNT}") }
    }

    fn start(&self, part: u32, of: u32) -> Running {
        self.rig.spawn(&format!("fill {} --part {part}/{of}", self.options))
    }

    fn start_all(&self, of: u32) -> Vec<Running> {
        (1..=of).map(|part| self.start(part, of)).collect()
    }

    /// Runs all parts at once, of which one must end the fill.
    fn complete(&self, of: u32) -> Vec<Ran> {
        let ran: Vec<Ran> = self.start_all(of).into_iter().map(Running::end).collect();
        assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:#?}");
        assert_eq!(last(&ran), 1, "{ran:#?}");
        ran
    }

    /// Chunks that all ledgers record; none while there is no ledger.
    fn chunks(&self) -> Option<i64> {
        let client = self.rig.connect(&self.server.url);
        let ledgers =
            "SELECT relname::text FROM pg_class WHERE relname LIKE 'pgrig_chunks%' AND relkind = 'r'";
        self.rig.block_on(async {
            let ledgers = client.query(ledgers, &[]).await.ok()?;
            let mut chunks = None;
            for ledger in ledgers {
                let ledger: String = ledger.get(0);
                // The last part may drop it meanwhile.
                let row = client.query_one(&format!("SELECT count(*) FROM {ledger}"), &[]).await;
                chunks = Some(chunks.unwrap_or(0) + row.ok().map_or(0, |row| row.get::<_, i64>(0)));
            }
            chunks
        })
    }

    fn await_chunks(&self, more: i64) {
        let before = self.chunks().unwrap_or(0);
        until("chunks are loaded", || self.chunks().filter(|done| *done >= before + more));
    }

    /// Everything is as one process makes it with these options, and nothing of pgrig's is left.
    fn assert_as_of_one(&self) {
        let whole = "SELECT count(*) FROM pg_database WHERE datname = 'single'";
        if self.server.number(whole) == 0 {
            self.server.execute("CREATE DATABASE single");
            let single = self.server.database("single");
            if self.options.contains("--all-tables") {
                single.execute(SHOP);
            }
            let mut command = self.rig.command(&format!("fill {}", self.options));
            command.args(["-d", &single.url]);
            let ran = Running::start(command).end();
            assert_eq!(ran.code, Some(0), "{ran:#?}");
        }
        let single = self.server.database("single");
        for table in TABLES.iter().chain(&["sold"]) {
            let [many, one] = [&self.server, &single].map(|server| checksum(server, table));
            assert_eq!(many, one, "{table}");
        }
        for query in [
            "SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint \
              WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
            "SELECT format('%s %s', sequencename, last_value) FROM pg_sequences ORDER BY 1",
            "SELECT relname::text FROM pg_class \
              WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND reltuples > 0 ORDER BY 1",
            "SELECT DISTINCT tablename::text FROM pg_stats WHERE schemaname = 'public' AND tablename <> 'sold' ORDER BY 1",
        ] {
            let of = |server: &Server<'_>| {
                server.rows(query).iter().map(|row| row.get(0)).collect::<Vec<String>>()
            };
            assert_eq!(of(&self.server), of(&single));
        }
        self.assert_nothing_left();
        self.assert_valid();
    }

    /// Has the server check all foreign keys again.
    fn assert_valid(&self) {
        let keys = self.server.rows(
            "SELECT format('ALTER TABLE %s ADD %s', conrelid::regclass, pg_get_constraintdef(oid)) \
               FROM pg_constraint WHERE contype = 'f' AND conparentid = 0",
        );
        assert!(keys.len() >= 4, "{keys:?}");
        for key in keys {
            let key: String = key.get(0);
            self.server.execute(&format!("BEGIN; {key}; ROLLBACK"));
        }
    }

    fn assert_nothing_left(&self) {
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
        until("locks are gone", || (self.server.number(locks) == 0).then_some(()));
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                           AND datname = current_database()";
        until("sessions are gone", || (self.server.number(sessions) == 0).then_some(()));
        let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'";
        assert_eq!(self.server.number(left), 0);
        assert_eq!(self.server.number("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgrig%'"), 0);
    }
}

/// A number for all rows of a table, whatever their order.
fn checksum(server: &Server<'_>, table: &str) -> (i64, String) {
    let row = server.row(&format!(
        "SELECT count(*), coalesce(sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint), 0)::text FROM {table} t"
    ));
    (row.get(0), row.get(1))
}

/// How many of them ran the last steps.
fn last(ran: &[Ran]) -> usize {
    let is_last =
        |ran: &&Ran| ran.stdout.contains("The fill is complete") && !ran.stdout.contains("another part ran");
    ran.iter().filter(is_last).count()
}

fn assert_failed(ran: &Ran, code: i32, text: &str) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    assert!(ran.stderr.contains(text), "{ran:#?}");
}

#[test]
fn parts_make_the_tables_of_one_process() {
    let rig = Rig::new();
    let parts = Parts::by_ddl(&rig, "--pg-version 18");
    let ran = parts.complete(4);
    parts.assert_as_of_one();
    // Each has loaded a share of the rows.
    for ran in &ran {
        assert!(ran.stdout.contains("rows of") && !ran.stdout.contains(": 0 rows of"), "{ran:#?}");
    }
    assert_failed(&parts.start(1, 4).end(), 2, "already exists");
}

#[test]
fn so_they_do_on_the_oldest_version_and_unlogged() {
    let rig = Rig::new();
    let mut parts = Parts::by_ddl(&rig, "--pg-version 13");
    // A partitioned table is logged, and may not reference an unlogged one.
    let sql = SHOP.replace("product_id int references products) partition", "product_id int) partition");
    fs::write(rig.home.path().join("shop.sql"), sql).unwrap();
    parts.options += " --unlogged";
    parts.complete(3);
    parts.assert_as_of_one();
}

#[test]
fn tables_with_keys_wait_for_those_that_they_reference() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let parts = Parts::of_present_tables(&rig, version);
        parts.complete(3);
        parts.assert_as_of_one();
        assert_failed(&parts.start(1, 3).end(), 2, "rows");
    }
}

#[test]
fn parts_need_not_be_there_together() {
    let rig = Rig::new();
    let parts = Parts::of_present_tables(&rig, "");
    // The first loads its own chunks, and those of others that its own rows reference.
    let first = parts.start(2, 3).end();
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert!(first.stdout.contains("and parts 1, 3 have not ended"), "{first:#?}");
    let text = "also loaded chunks of parts that did not run (1, 3)";
    assert!(first.stdout.contains(text) || first.stderr.contains(text), "{first:#?}");
    let missing = parts.server.number("SELECT 240000 - count(*) FROM order_items");
    assert!(missing > 120_000, "{missing}");
    let second = parts.start(3, 3).end();
    assert!(second.stdout.contains("and part 1 has not ended"), "{second:#?}");
    assert_eq!(last(&[parts.start(1, 3).end()]), 1);
    parts.assert_as_of_one();
}

#[test]
fn models_are_filled_in_parts() {
    let rig = Rig::new();
    let parts = Parts::by_ddl(&rig, "");
    rig.done(&format!("fill {}", parts.options));
    let model = rig.home.path().join("shop.model");
    rig.done(&format!("model capture -o {}", model.display()));
    let server = parts.server.database("copy");
    parts.server.execute("CREATE DATABASE copy");
    parts.server.execute("CREATE DATABASE single");
    let options = format!("--model {} --scale 0.5 --chunk 300kB --streams 1", model.display());
    let start = |url: &str, part: &str| {
        let mut command = rig.command(&format!("fill {options} {part}"));
        command.args(["-d", url]);
        Running::start(command)
    };
    let running: Vec<Running> = (1..=3).map(|part| start(&server.url, &format!("--part {part}/3"))).collect();
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert_eq!(last(&ran), 1, "{ran:#?}");
    let single = parts.server.database("single");
    let ran = start(&single.url, "").end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for table in TABLES {
        assert_eq!(checksum(&server, table), checksum(&single, table), "{table}");
    }
}

#[test]
fn a_size_is_shared_too() {
    let rig = Rig::new();
    let mut parts = Parts::by_ddl(&rig, "");
    parts.options = parts.options.replace(AMOUNT, "20MB");
    parts.complete(2);
    let bytes = parts.server.number(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'",
    );
    assert!((19_000_000..21_500_000).contains(&bytes), "{bytes}");
    parts.assert_nothing_left();
}

#[test]
fn any_number_of_processes_completes_what_killed_parts_began() {
    for (version, present) in [("--pg-version 18", true), ("--pg-version 13", false)] {
        let rig = Rig::new();
        let parts =
            if present { Parts::of_present_tables(&rig, version) } else { Parts::by_ddl(&rig, version) };
        let running = parts.start_all(4);
        parts.await_chunks(8);
        for killed in [1, 2] {
            running[killed].signal(Signal::SIGKILL);
        }
        let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
        assert_eq!((ran[0].code, ran[3].code, last(&ran)), (Some(0), Some(0), 0), "{ran:#?}");
        assert!(ran.iter().any(|ran| ran.stdout.contains("parts 2, 3 have not ended")), "{ran:#?}");
        // Two parts go on, then one process, and three parts end it. The table that comes late has most chunks.
        let mut ledger = Ledger::of(&rig, &parts.server.url, "pgrig_chunks_order_items");
        let mut await_items = |more: i64| {
            let before = ledger.chunks().unwrap();
            until("chunks are loaded", || ledger.chunks().filter(|done| *done >= before + more));
        };
        let running = parts.start_all(2);
        await_items(3);
        for part in &running {
            part.signal(Signal::SIGKILL);
        }
        for part in running {
            part.end();
        }
        let one = rig.spawn(&format!("fill {}", parts.options));
        await_items(1);
        one.signal(Signal::SIGINT);
        let one = one.end();
        assert_eq!(one.code, Some(130), "{one:#?}");
        // Its session.
        drop(ledger);
        parts.complete(3);
        parts.assert_as_of_one();
    }
}

#[test]
fn the_last_steps_are_repeated_by_any_part() {
    let rig = Rig::new();
    let parts = Parts::by_ddl(&rig, "");
    // The last part waits before an index.
    parts.server.execute(
        "CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%INDEX orders_customer%' THEN PERFORM pg_advisory_xact_lock(1, 1); END IF; END $$; \
         CREATE EVENT TRIGGER wait ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION wait()",
    );
    let holder = rig.connect(&parts.server.url);
    rig.block_on(holder.execute("SELECT pg_advisory_lock(1, 1)", &[])).unwrap();
    let running = parts.start_all(2);
    let waits = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    let killed: i32 = until("the last steps have begun", || {
        parts.server.rows(waits).first().map(|row| row.get::<_, i32>(0))
    });
    // A part that comes now waits until the fill is complete.
    for part in &running {
        part.signal(Signal::SIGKILL);
    }
    for part in running {
        part.end();
    }
    let again = parts.start(2, 2);
    until("another part runs the last steps", || {
        parts.server.rows(waits).first().map(|row| row.get::<_, i32>(0)).filter(|pid| *pid != killed)
    });
    let late = parts.start(1, 2);
    drop(holder);
    let again = again.end();
    assert_eq!((again.code, last(&[again])), (Some(0), 1));
    let late = late.end();
    assert_failed(&late, 2, "already exists");
    assert_failed(&late, 2, "If another pgrig fill creates them at the same time, wait for its end");
    assert!(!late.stderr.contains("pg_advisory"), "{late:#?}");
    parts.server.execute("DROP EVENT TRIGGER wait; DROP FUNCTION wait");
    parts.assert_as_of_one();
}

#[test]
fn a_part_is_killed_at_random_moments() {
    let mut chance = Chance(24);
    let rig = Rig::new();
    let parts = Parts::of_present_tables(&rig, "");
    let empty = format!("TRUNCATE {} RESTART IDENTITY", TABLES.join(", "));
    for _ in 0..4 {
        let victim = usize::try_from(chance.below(3)).unwrap();
        let chunks = i64::try_from(chance.below(40)).unwrap();
        let mut running = parts.start_all(3);
        let before = parts.chunks().unwrap_or(0);
        until("it is where it is killed", || {
            let is_there = parts.chunks().is_some_and(|done| done >= before + chunks);
            (is_there || running[victim].has_ended()).then_some(())
        });
        running[victim].signal(Signal::SIGKILL);
        let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
        if ran[victim].code.is_none() && last(&ran) == 0 {
            // The others have noticed.
            let missing = format!("part {} has not ended", victim + 1);
            assert!(ran.iter().any(|ran| ran.stdout.contains(&missing)), "{ran:#?}");
            let end = parts.start(u32::try_from(victim + 1).unwrap(), 3).end();
            assert_eq!((end.code, last(&[end])), (Some(0), 1));
        }
        parts.assert_as_of_one();
        parts.server.execute(&empty);
    }
}

#[test]
fn requests_that_parts_cannot_share_are_refused() {
    let rig = Rig::new();
    let refused = rig.run("fill --all-tables --rows 1000 --part 1/2");
    assert_failed(&refused, 2, "run pgrig server start before the parts start");
    let parts = Parts::of_present_tables(&rig, "");
    for (options, text) in [
        ("--rows 1000 --append", "Leave out --part"),
        ("--rows 1000 --for 5s", "leave out --for"),
        ("--rows 1000 --method direct", "Give --method copy"),
        ("--rows 1000 --no-resume", "start over"),
        ("1MB --until-free 1GB", "--table NAME"),
    ] {
        assert_failed(&rig.run(&format!("fill --all-tables {options} --part 1/2")), 2, text);
    }
    parts.server.execute(
        "CREATE TABLE chickens(id int PRIMARY KEY, egg int NOT NULL); \
         CREATE TABLE eggs(id int PRIMARY KEY, chicken int NOT NULL REFERENCES chickens); \
         ALTER TABLE chickens ADD FOREIGN KEY (egg) REFERENCES eggs",
    );
    let refused = rig.run(&format!("fill {} --part 1/2", parts.options));
    assert_failed(&refused, 2, "reference each other, so one transaction loads them: leave out --part");
    parts.server.execute("DROP TABLE chickens, eggs CASCADE");
    let first = parts.start(1, 2);
    parts.await_chunks(1);
    first.signal(Signal::SIGSTOP);
    let others = [
        rig.spawn(&format!("fill {} --part 1/2", parts.options)),
        rig.spawn(&format!("fill {} --part 2/3", parts.options)),
        rig.spawn(&format!("fill {}", parts.options)),
        rig.spawn(&format!("fill {} --part 2/2 --plain", parts.options)),
    ];
    let others = others.map(Running::end);
    assert_failed(&others[0], 2, "another process is already part 1 of 2 of this fill");
    assert_failed(&others[1], 2, "a running process divides it into 2");
    assert_failed(&others[2], 1, "runs this fill");
    assert_failed(&others[3], 2, "unfinished");
    first.signal(Signal::SIGCONT);
    assert_eq!(first.end().code, Some(0));
    assert_eq!(last(&[parts.start(2, 2).end()]), 1);
    parts.assert_as_of_one();
}
