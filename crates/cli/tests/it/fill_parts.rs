//! A fill that several processes share: the same data as that of one process, whoever comes late, is killed, or resumes.

use nix::sys::signal::Signal;
use testkit::until_some as until;

use crate::support::victims::{Ledger, kill_server};
use crate::support::{Ran, Rig, Running, Server};

/// Where pgbench's chunks are recorded.
const LEDGER: &str = "pgrig_chunks_pgbench_accounts";
/// Advisory locks of all sessions.
const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
/// A fill of many small chunks.
const SMALL: &str = "--rows 434567 --chunk 400kB --streams 2";

/// A fill in parts, and its server.
struct Parts<'a> {
    rig: &'a Rig,
    server: Server<'a>,
    options: String,
}

impl<'a> Parts<'a> {
    fn new(rig: &'a Rig, version: &str, options: &str) -> Self {
        Self { rig, server: rig.server(version), options: options.to_owned() }
    }

    fn start(&self, part: u32, of: u32) -> Running {
        self.rig.spawn(&format!("fill {} --part {part}/{of}", self.options))
    }

    fn start_all(&self, of: u32) -> Vec<Running> {
        (1..=of).map(|part| self.start(part, of)).collect()
    }

    /// Runs all parts at once; returns how each ended.
    fn run_all(&self, of: u32) -> Vec<Ran> {
        let ran: Vec<Ran> = self.start_all(of).into_iter().map(Running::end).collect();
        for each in &ran {
            assert_eq!(each.code, Some(0), "{each:#?}");
        }
        ran
    }

    /// Holds the fill once more chunks than now are recorded, and so many sessions want to record more.
    fn hold(&self, more: i64, sessions: i64) -> Ledger<'_> {
        let mut ledger = Ledger::of(self.rig, &self.server.url, LEDGER);
        let before = ledger.chunks().unwrap_or(0);
        until("chunks are loaded", || ledger.hold(before + more));
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";
        until("sessions wait", || (self.server.number(waits) >= sessions).then_some(()));
        ledger
    }

    /// A number for all rows of a table, whatever their order.
    fn checksum(&self, table: &str) -> (i64, String) {
        let row = self.server.row(&format!(
            "SELECT count(*), coalesce(sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint), 0)::text FROM {table} t"
        ));
        (row.get(0), row.get(1))
    }

    /// The four tables are those that one process makes with these options, and nothing of pgrig's is left.
    fn assert_as_of_one(&self) {
        self.rig.done(&format!("fill --schema single {}", self.options));
        for table in ["accounts", "branches", "tellers", "history"] {
            let [many, one] =
                ["public", "single"].map(|schema| self.checksum(&format!("{schema}.pgbench_{table}")));
            assert_eq!(many, one, "{table}");
        }
        let of_schema = |query: &str| {
            let of = |schema| {
                self.server.rows(&query.replace("$1", schema)).iter().map(|row| row.get(0)).collect()
            };
            ["'public'", "'single'"].map(of)
        };
        let [many, one]: [Vec<String>; 2] = of_schema(
            "SELECT format('%s %s %s', r.relname, c.conname, replace(pg_get_constraintdef(c.oid), 'single.', '')) FROM pg_constraint c \
               JOIN pg_class r ON r.oid = c.conrelid WHERE r.relnamespace = $1::regnamespace AND c.contype <> 'n' ORDER BY 1",
        );
        assert_eq!(many, one);
        let [many, one]: [Vec<String>; 2] = of_schema(
            "SELECT format('%s %s %s', relname, reloptions, reltuples) FROM pg_class \
              WHERE relnamespace = $1::regnamespace AND relkind = 'r' ORDER BY 1",
        );
        assert_eq!(many, one);
        let defaults = "SELECT count(*) FROM pg_attrdef";
        assert_eq!(self.server.number(defaults), 0);
        self.assert_nothing_left();
    }

    fn assert_nothing_left(&self) {
        until("locks are gone", || (self.server.number(LOCKS) == 0).then_some(()));
        assert_eq!(self.server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
    }
}

fn assert_failed(ran: &Ran, code: i32, text: &str) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    assert!(ran.stderr.contains(text), "{ran:#?}");
}

/// How many of them ran the last steps.
fn last(ran: &[Ran]) -> usize {
    let is_last =
        |ran: &&Ran| ran.stdout.contains("The fill is complete") && !ran.stdout.contains("another part ran");
    ran.iter().filter(is_last).count()
}

fn assert_same(version: &str, options: &str, of: u32) {
    let rig = Rig::new();
    let parts = Parts::new(&rig, version, options);
    let ran = parts.run_all(of);
    assert_eq!(last(&ran), 1, "{ran:#?}");
    parts.assert_as_of_one();
    rig.done("server stop");
}

#[test]
fn four_parts_make_the_data_of_one_process() {
    assert_same("--pg-version 18", "--rows 434567 --foreign-keys", 4);
}

#[test]
fn so_they_do_on_the_oldest_version() {
    assert_same("--pg-version 13", "--rows 434567 --unlogged", 4);
}

#[test]
fn parts_load_leaves_of_their_own() {
    assert_same("--pg-version 18", "--rows 434567 --partitions 5 --partition-method hash", 3);
    // More parts than leaves.
    assert_same("--pg-version 13", "--rows 434567 --partitions 2", 4);
}

#[test]
fn the_server_makes_the_rows_of_parts() {
    assert_same("--pg-version 18", "--rows 434567 --server-side", 3);
}

#[test]
fn keys_may_come_first() {
    assert_same("--pg-version 18", "--rows 234567 -I tpgv --streams 2", 3);
}

#[test]
fn parts_that_start_late_are_waited_for() {
    let rig = Rig::new();
    let parts = Parts::new(&rig, "", "--rows 60000");
    let first = parts.start(3, 5).end();
    assert!(first.stdout.contains("left, and parts 1, 2, 4, 5 have not ended"), "{first:#?}");
    let keys =
        "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid = 'pgbench_accounts'::regclass";
    assert_eq!((first.code, parts.server.number(keys)), (Some(0), 0));
    // The table has fewer chunks than parts: the fill still ends with the last part.
    for part in [1, 2, 4] {
        let ran = parts.start(part, 5).end();
        assert_eq!((ran.code, last(&[ran])), (Some(0), 0));
    }
    // Once more, because its queue says so.
    let again = parts.start(3, 5).end();
    assert!(again.stdout.contains("0 chunks left, and part 5 has not ended"), "{again:#?}");
    let end = parts.start(5, 5).end();
    assert_eq!(last(&[end]), 1);
    parts.assert_as_of_one();
    assert_failed(&parts.start(5, 5).end(), 2, "already has");
}

#[test]
fn any_number_of_processes_completes_what_killed_parts_began() {
    let rig = Rig::new();
    let parts = Parts::new(&rig, "--pg-version 18", SMALL);
    let mut running = parts.start_all(4);
    let held = parts.hold(20, 1);
    for killed in [1, 2] {
        running[killed].signal(Signal::SIGKILL);
    }
    held.release();
    let ran: Vec<Ran> = running.drain(..).map(Running::end).collect();
    assert_eq!((ran[0].code, ran[3].code, last(&ran)), (Some(0), Some(0), 0), "{ran:#?}");
    assert!(ran.iter().any(|ran| ran.stdout.contains("parts 2, 3 have not ended")), "{ran:#?}");
    // Three parts go on, and the last of them dies within the last steps.
    parts.server.execute(
        "CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%ADD PRIMARY KEY%' THEN PERFORM pg_advisory_xact_lock(1, 1); END IF; END $$; \
         CREATE EVENT TRIGGER wait ON ddl_command_start EXECUTE FUNCTION wait()",
    );
    let holder = rig.connect(&parts.server.url);
    rig.block_on(holder.execute("SELECT pg_advisory_lock(1, 1)", &[])).unwrap();
    let running = parts.start_all(3);
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    until("the last steps have begun", || (parts.server.number(waits) == 1).then_some(()));
    let killed: i32 =
        parts.server.row("SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory'").get(0);
    for part in &running {
        part.signal(Signal::SIGKILL);
    }
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert_eq!(last(&ran), 0);
    // One of them alone is enough, as all had ended.
    let end = parts.start(2, 3);
    // The session of the killed part ends by itself, although its statement waits.
    let of = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    until("another part runs the last steps", || {
        parts.server.rows(of).first().map(|row| row.get::<_, i32>(0)).filter(|pid| *pid != killed)
    });
    drop(holder);
    let end = end.end();
    assert_eq!((end.code, last(&[end])), (Some(0), 1));
    parts.server.execute("DROP EVENT TRIGGER wait; DROP FUNCTION wait");
    parts.assert_as_of_one();
}

#[test]
fn parts_complete_what_one_process_began() {
    let rig = Rig::new();
    let parts = Parts::new(&rig, "--pg-version 13", SMALL);
    let one = rig.spawn(&format!("fill {SMALL}"));
    let held = parts.hold(10, 1);
    one.signal(Signal::SIGKILL);
    one.end();
    held.release();
    let running = parts.start_all(2);
    // More than one part has.
    let held = parts.hold(5, 3);
    running[1].signal(Signal::SIGINT);
    held.release();
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert_eq!((ran[0].code, ran[1].code), (Some(0), Some(130)), "{ran:#?}");
    // And one process completes what parts began.
    rig.done(&format!("fill {SMALL}"));
    parts.assert_as_of_one();
}

#[test]
fn a_crash_of_the_server_empties_unlogged_tables_and_their_records() {
    let rig = Rig::new();
    let parts = Parts::new(&rig, "", "--rows 434567 --chunk 400kB --unlogged");
    let running = parts.start_all(3);
    let held = parts.hold(10, 1);
    kill_server(&rig);
    held.release();
    let ran: Vec<Ran> = running.into_iter().map(Running::end).collect();
    assert!(ran.iter().all(|ran| ran.code == Some(1)), "{ran:#?}");
    assert!(
        ran.iter().any(|ran| ran.stderr.contains("its recovery empties these unlogged tables")),
        "{ran:#?}"
    );
    let parts = Parts::new(&rig, "", &parts.options);
    assert_eq!(parts.server.number("SELECT count(*) FROM pgbench_accounts"), 0);
    assert_eq!(last(&parts.run_all(2)), 1);
    parts.assert_as_of_one();
}

#[test]
fn wrong_parts_are_refused() {
    let rig = Rig::new();
    let refused = rig.run("fill --rows 1000 --part 1/2");
    assert_failed(&refused, 2, "run pgrig server start before the parts start");
    let parts = Parts::new(&rig, "", SMALL);
    for (options, text) in [
        ("1MB --drop", "Run DROP TABLE"),
        ("1MB --append", "Leave out --part"),
        ("--brim", "known number of rows"),
        ("1MB --until-free 1GB", "known number of rows"),
        ("1MB --for 5s", "known number of rows"),
        ("1MB --probe scan", "known number of rows"),
        ("1MB --method direct", "Give --method copy"),
        ("1MB --method reinsert", "give --method copy"),
        ("1MB --no-resume", "start over"),
        ("-I vp", "generates rows"),
        ("1MB --series", "leave out --part"),
        ("1MB --table t", "give --rows"),
    ] {
        assert_failed(&rig.run(&format!("fill {options} --part 1/2")), 2, text);
    }
    assert_failed(
        &rig.run("fill 1MB --part auto"),
        2,
        "no environment variable gives this process a part number",
    );
    let first = parts.start(1, 2);
    let held = parts.hold(2, 1);
    first.signal(Signal::SIGSTOP);
    held.release();
    let others = [
        rig.spawn(&format!("fill {SMALL} --part 1/2")),
        rig.spawn(&format!("fill {SMALL} --part 2/3")),
        rig.spawn(&format!("fill {SMALL}")),
        rig.spawn("fill --rows 434568 --fillfactor 90 --streams 2 --chunk 400kB --part 2/2"),
    ];
    let others = others.map(Running::end);
    assert_failed(&others[0], 2, "another process is already part 1 of 2 of this fill");
    assert_failed(&others[1], 2, "a running process divides it into 2");
    assert_failed(&others[2], 1, "runs this fill");
    assert_failed(&others[3], 2, "(different: the amount (SIZE, --scale or --rows), --fillfactor)");
    first.signal(Signal::SIGCONT);
    assert_eq!(first.end().code, Some(0));
    assert_eq!(parts.start(2, 2).end().code, Some(0));
    parts.assert_as_of_one();
}

#[test]
fn parts_share_a_table_of_the_user_s() {
    let rig = Rig::new();
    let parts = Parts::new(&rig, "", "--table orders --rows 200000 --seed 5 --method copy");
    let table = "(id bigint PRIMARY KEY, customer int NOT NULL, email text UNIQUE, price numeric(10,2), at timestamptz)";
    parts.server.execute(&format!(
        "CREATE TABLE orders {table}; CREATE SCHEMA single; CREATE TABLE single.orders {table}"
    ));
    assert_failed(
        &rig.run("fill --table orders --rows 200000 --seed 5 --part 1/2 --column customer=9999999999x"),
        2,
        "customer",
    );
    let ran = parts.run_all(3);
    assert_eq!(last(&ran), 1, "{ran:#?}");
    rig.done("fill --table single.orders --rows 200000 --seed 5 --method copy");
    assert_eq!(parts.checksum("orders"), parts.checksum("single.orders"));
    assert_failed(&parts.start(1, 3).end(), 2, "rows");
    parts.assert_nothing_left();
    // Rows that follow others cannot be divided.
    parts.server.execute("CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree)");
    assert_failed(&rig.run("fill --table tree --rows 1000 --part 1/2"), 2, "--column NAME=null");
}
