//! `pgrig fill --method direct` on real servers of every version: the files are sound, and hold what COPY
//! would have loaded.

use std::path::Path;
use std::process::Command;

use crate::support::proof::{Proof, Relation, assert_checksums};
use crate::support::{Rig, Server};
use testkit::{Need, does, require, templates_of};

/// A schema that has to be quoted, for what is written directly.
const DIRECT: &str = r#"Dir"ect'"#;
/// The same as SQL.
const QUOTED: &str = r#""Dir""ect'""#;
/// For what COPY loads.
const COPIED: &str = "copied";

/// An instance of this version, with checksums or without, whatever its initdb does by default.
fn server(rig: &Rig, major: u16, checksums: bool) -> Server<'_> {
    let real = templates_of(major);
    let kind = if checksums { "with" } else { "without" };
    server_of(
        rig,
        &real.join("bin"),
        &real.with_file_name(format!("{major}-{kind}-checksums")),
        major,
        checksums,
    )
}

/// The same of an installation whose programs are in `real`; `bin` gets links to them and an initdb of its own.
fn server_of<'a>(rig: &'a Rig, real: &Path, bin: &Path, major: u16, checksums: bool) -> Server<'a> {
    let option = match (checksums, major) {
        (true, _) => "--data-checksums",
        (false, 18..) => "--no-data-checksums",
        (false, _) => "",
    };
    let script = format!(
        "mkdir -p {bin} && ln -sf {real}/postgres {real}/pg_ctl {bin} && \
         printf '#!/bin/sh\nexec {real}/initdb {option} \"$@\"\n' > {bin}/initdb.new && \
         chmod 755 {bin}/initdb.new && mv {bin}/initdb.new {bin}/initdb",
        bin = bin.display(),
        real = real.display()
    );
    assert!(does("sh", &["-c", &script]), "{script}");
    // It would clean up what pgrig is to have done.
    rig.server(&format!("--pg-bin {} --set autovacuum=off", bin.display()))
}

/// The same fill by both methods, in schemas of their own.
fn fill(rig: &Rig, options: &str) {
    rig.done(&format!("fill --method direct --schema {DIRECT} --drop {options}"));
    rig.done(&format!("fill --method copy --schema {COPIED} --drop {options}"));
}

fn assert_proved(rig: &Rig, server: &Server, data: &Path, options: &str) {
    fill(rig, options);
    let proof = Proof::of(server, data, DIRECT);
    proof.assert_sound();
    proof.assert_files();
    if !options.contains("--data-only") {
        proof.assert_settled();
    }
    proof.assert_same(&Proof::of(server, data, COPIED));
}

/// Everything that is done with a table: the one that was written directly goes through it like the other one.
fn assert_lives_on(server: &Server, data: &Path) {
    for schema in [QUOTED, COPIED] {
        server.execute(&format!(
            "SET search_path = {schema}; \
             UPDATE pgbench_accounts SET abalance = abalance + aid WHERE aid % 3 = 0; \
             DELETE FROM pgbench_accounts WHERE aid % 7 = 0; \
             INSERT INTO pgbench_accounts SELECT aid, 1, -1, 'again' FROM generate_series(7, 700, 7) aid"
        ));
    }
    let (direct, copied) = (Proof::of(server, data, DIRECT), Proof::of(server, data, COPIED));
    direct.assert_sound();
    direct.assert_same_unordered(&copied);
    for proof in [&direct, &copied] {
        for table in proof.tables() {
            server.execute(&format!("VACUUM {}", table.name));
        }
    }
    direct.assert_sound();
    direct.assert_same_unordered(&copied);
    for proof in [&direct, &copied] {
        for table in proof.tables().iter().filter(|table| table.name.contains("accounts")) {
            let key = format!(
                "SELECT relname::text FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = '{}'::regclass",
                table.name.replace('\'', "''")
            );
            let key: String = server.row(&key).get(0);
            server.execute(&format!("REINDEX TABLE {}", table.name));
            server.execute(&format!("CLUSTER {} USING {key}", table.name));
        }
    }
    direct.assert_sound();
    direct.assert_same_unordered(&copied);
}

/// The planner takes the key, and finds the row.
fn assert_found_by_key(server: &Server, aid: i64) {
    let query = format!("SELECT (aid + abalance)::bigint FROM {QUOTED}.pgbench_accounts WHERE aid = {aid}");
    let plan = server.rows(&format!("EXPLAIN (COSTS off) {query}"));
    let plan: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("Index Scan using pgbench_accounts")), "{plan:#?}");
    assert_eq!(server.number(&query), aid);
}

fn assert_pgbench_runs(server: &Server) {
    let mut pgbench = Command::new("pgbench");
    pgbench.args(["-n", "-c", "2", "-t", "50"]).arg(&server.url);
    let ran = pgbench.env("PGOPTIONS", format!("-c search_path={QUOTED}")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let sums = format!(
        "SELECT (SELECT sum(delta) FROM {QUOTED}.pgbench_history) = (SELECT sum(bbalance) FROM {QUOTED}.pgbench_branches) \
            AND (SELECT count(*) FROM {QUOTED}.pgbench_history) = 100"
    );
    assert!(server.row(&sums).get::<_, bool>(0), "all transactions are there");
}

/// Every pg_dump that a distribution still has dumps this release; newer releases refuse older programs.
const OLDEST_PG_DUMP: u16 = 14;

/// pg_dump of this schema, under a name that is the same for all.
fn dump(server: &Server, schema: &str) -> String {
    server.execute(&format!("ALTER SCHEMA {schema} RENAME TO dumped"));
    let dump = Command::new("pg_dump").args(["--schema", "dumped", "-d"]).arg(&server.url).output().unwrap();
    server.execute(&format!("ALTER SCHEMA dumped RENAME TO {schema}"));
    assert!(dump.status.success(), "{dump:?}");
    let text = String::from_utf8(dump.stdout).unwrap();
    // Newer ones put a random word around it.
    text.lines().filter(|line| !line.starts_with('\\')).collect::<Vec<_>>().join("\n")
}

fn assert_version(major: u16, checksums: bool) {
    if !require(Need::Pgbench) || !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = server(&rig, major, checksums);
    let data = rig.data();
    let on: String = server.row("SHOW data_checksums").get(0);
    assert_eq!(on == "on", checksums);

    for options in [
        "--rows 1",
        // A page that is full, and a row more.
        "--rows 61",
        "--rows 62 --unlogged",
        "--rows 3 --partitions 7 --partition-method hash",
        "--rows 2 --partitions 3 --partition-method range --unlogged",
        "--rows 12000 --fillfactor 10 --data-only --partitions 2 --unlogged",
    ] {
        assert_proved(&rig, &server, &data, options);
    }
    assert_proved(&rig, &server, &data, "--rows 12000 --unlogged --fillfactor 10");
    assert_found_by_key(&server, 11_999);
    assert_proved(&rig, &server, &data, "--rows 50000 --partitions 4 --partition-method hash --unlogged");
    assert_found_by_key(&server, 37_777);
    assert_lives_on(&server, &data);
    assert_proved(&rig, &server, &data, "--rows 100000 --foreign-keys");
    assert_found_by_key(&server, 1);
    if major <= OLDEST_PG_DUMP {
        assert_eq!(dump(&server, QUOTED), dump(&server, COPIED));
    }
    assert_pgbench_runs(&server);
    if [pgserver::Major::OLDEST.number(), pgserver::Major::NEWEST.number()].contains(&major) {
        assert_proved(&rig, &server, &data, "--rows 100000 --partitions 3 --partition-method range");
        assert_pgbench_runs(&server);
        fill(&rig, "--rows 60000");
        assert_lives_on(&server, &data);
    }
    rig.done(&format!("fill --method direct --drop --rows 120000 --schema {DIRECT}"));

    rig.done("server stop");
    if checksums {
        assert!(assert_checksums(&data) > 5000);
        // The server finds them right too.
        let server = rig.server("");
        let count = format!("SELECT count(*) FROM {QUOTED}.pgbench_accounts");
        assert_eq!(server.number(&count), 120_000);
    }
}

macro_rules! versions {
    ($($name:ident: $major:literal, $checksums:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_version($major, $checksums);
        }
    )*};
}

versions! {
    on_13_with_checksums: 13, true;
    on_14_without_checksums: 14, false;
    on_15_with_checksums: 15, true;
    on_16_without_checksums: 16, false;
    on_17_with_checksums: 17, true;
    on_18_with_checksums: 18, true;
}

#[test]
fn the_installed_pg_checksums_finds_no_fault() {
    if !require(Need::Installation) {
        return;
    }
    let rig = Rig::new();
    let installed = pgserver::Binaries::system().remove(0);
    let (major, real) = (installed.version().major(), installed.dir());
    let bin = testkit::cache().join(format!("installed-{major}-with-checksums"));
    let server = server_of(&rig, real, &bin, major, true);
    let data = rig.data();
    assert_eq!(server.row("SHOW data_checksums").get::<_, String>(0), "on");
    fill(&rig, "--rows 120000 --partitions 3");
    rig.done("server stop");
    let checked =
        Command::new(real.join("pg_checksums")).args(["--check", "-D"]).arg(&data).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let blocks = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(blocks.contains("Bad checksums:  0") && assert_checksums(&data) > 5000, "{blocks}");
}

#[test]
fn more_than_a_segment() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    let data = rig.data();
    // Six a page: 133,334 blocks, of which 131,072 are in the first segment.
    rig.done("fill --method direct --rows 800000 --fillfactor 10 --data-only");
    let proof = Proof::of(&server, &data, "public");
    let bulk = proof.tables().into_iter().find(Relation::is_bulk).unwrap();
    let mut lengths: Vec<u64> = bulk.files().iter().map(|file| file.metadata().unwrap().len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [5 * 8192, 2262 * 8192, 1 << 30]);
    proof.assert_files();
    proof.assert_sound();
    let ids = server.row(
        "SELECT count(*), count(DISTINCT aid), max(aid)::bigint, \
                count(*) FILTER (WHERE ctid <> format('(%s,%s)', (aid - 1) / 6, (aid - 1) % 6 + 1)::tid) \
           FROM pgbench_accounts",
    );
    let ids: [i64; 4] = [0, 1, 2, 3].map(|column| ids.get(column));
    assert_eq!(ids, [800_000, 800_000, 800_000, 0], "each row is where it belongs");
    server.execute("DROP TABLE pgbench_accounts");
    proof.until_no_orphans();
}
