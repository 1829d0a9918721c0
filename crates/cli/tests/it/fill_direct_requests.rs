//! Requests for `pgrig fill --method direct`: how it carries them out, and which it refuses before the first byte.

use std::process::Command;

use crate::support::proof::Proof;
use crate::support::{Ran, Rig, Server};

fn tables(server: &Server) -> i64 {
    server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%' OR relname LIKE 'pgrig%'")
}

#[test]
fn what_is_not_possible_is_refused_with_the_reason() {
    let rig = Rig::new();
    let server = rig.server("--profile stock");
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    server.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    let latin = server.url.replace("@/postgres?", "@/latin?");
    let others = Rig::new().of_others();
    let other = others.server("");
    other.execute("CREATE ROLE guest LOGIN");
    other.execute("GRANT CREATE ON SCHEMA public TO guest");
    let guest = other.url.replace("postgres@", "guest@");
    for (arguments, said) in [
        ("5MB".to_owned(), "wal_level is replica"),
        ("5MB".to_owned(), "give --unlogged, or set wal_level = minimal"),
        ("5MB --partitions 2".to_owned(), "wal_level is replica"),
        (format!("5MB --unlogged -d {guest}"), "cannot see the server's data directory"),
        (format!("5MB --unlogged -d {latin}"), "encoding is LATIN1"),
    ] {
        let ran = rig.run(&format!("fill --method direct {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains("--method direct is not possible"), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
        assert_eq!(tables(&server), 0, "{arguments}");
    }
    rig.done("fill 5MB --method direct --unlogged");
    // pgbench's tables hold ASCII only, so any encoding is possible.
    rig.done(&format!(
        "fill 5MB --method direct --unlogged -d {}",
        server.url.replace("@/postgres?", "@/ascii?")
    ));
}

#[test]
fn a_data_directory_that_is_named_has_to_be_the_server_s() {
    let rig = Rig::new().of_others();
    let server = rig.server("");
    server.execute("CREATE ROLE guest LOGIN");
    server.execute("GRANT CREATE ON SCHEMA public TO guest");
    let guest = server.url.replace("postgres@", "guest@");
    let places = tempfile::tempdir().unwrap();
    let place = |name: &str| places.path().join(name);
    std::os::unix::fs::symlink(rig.data(), place("mounted")).unwrap();
    std::fs::create_dir_all(place("other/global")).unwrap();
    std::fs::write(place("other/global/pg_control"), [0; 512]).unwrap();
    let copied = std::process::Command::new("cp").arg("-r").args([rig.data(), place("copy")]).status();
    assert!(copied.unwrap().success());
    let fill = |options: &str, name: &str| {
        rig.run(&format!("fill 5MB --method direct {options} --data-directory {}", place(name).display()))
    };
    let as_guest = format!("-d {guest}");
    for (options, name, code, said) in [
        ("", "mounted", 2, "leave it out"),
        (&*as_guest, "other", 2, "another server (its system identifier differs); give the path of the data"),
        (&as_guest, "missing", 2, "pg_control cannot be read"),
        (&as_guest, "copy", 1, "the directory is a copy of its data directory"),
    ] {
        let ran = fill(options, name);
        assert_eq!(ran.code, Some(code), "{name}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{name}: {ran:#?}");
        assert_eq!(tables(&server), 0, "{name}");
    }
    let ran = fill(&as_guest, "mounted");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains(", direct;"), "{ran:#?}");
}

#[test]
fn what_cannot_go_with_it_is_refused_before_a_server_is_started() {
    let rig = Rig::new();
    for arguments in [
        "5MB --chunk 1MB",
        "--brim",
        "--until-free 1GB",
        "--for 1s",
        "5MB --probe lookup",
        "5MB -I dtpgv",
        "5MB --append",
    ] {
        let ran = rig.run(&format!("fill --method direct {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains("writes a whole table in the transaction"), "{arguments}: {ran:#?}");
        assert!(!ran.stderr.contains("instance"), "{arguments} started a server: {ran:#?}");
    }
}

#[test]
fn where_nobody_asked_for_it_copy_does_instead_and_the_plan_says_why() {
    let rig = Rig::new();
    let server = rig.server("--profile stock");
    for (options, method, said) in [
        ("--unlogged", "direct", "on its own server"),
        ("", "frozen-copy", "method direct is not possible: wal_level is replica"),
        (
            "--chunk 1MB --unlogged",
            "chunked-copy",
            "method direct is not possible: pgrig writes pages for a whole table at a time, and --chunk is given",
        ),
        ("--method copy --unlogged", "copy", "stream"),
    ] {
        let explained = rig.done(&format!("fill 5MB --explain {options}")).stdout;
        assert!(explained.contains(said), "{options}: {explained}");
        let line = explained.lines().find(|line| line.trim_start().starts_with("method")).unwrap();
        assert!(line.contains(method), "{options}: {explained}");
        assert_eq!(tables(&server), 0);
        rig.done(&format!("fill 5MB --schema s --drop {options}"));
        server.execute("DROP SCHEMA s CASCADE");
    }
    rig.done("fill 5MB --schema s");
    let explained = rig.done("fill 5MB --schema s --append --explain").stdout;
    let appends = "it fills only new or empty tables, and --append adds to tables that have rows";
    assert!(explained.contains(&format!("method direct is not possible: {appends}")), "{explained}");
    assert_eq!(
        explained.matches("--append adds").count(),
        1,
        "the reason for chunks is the same: {explained}"
    );
    // Somebody's server is filled as ever, unless that is asked for.
    let rig = Rig::new().of_others();
    let server = rig.server("");
    let explained = rig.done(&format!("fill 5MB --unlogged --explain -d {}", server.url)).stdout;
    assert!(explained.contains("frozen-copy") && !explained.contains("direct"), "{explained}");
    rig.done(&format!("fill 5MB --unlogged --method direct -d {}", server.url));
}

#[test]
fn tables_of_another_engine_are_left_to_copy() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler; \
         ALTER DATABASE postgres SET default_table_access_method = other",
    );
    let refused = rig.run("fill 5MB --method direct");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("access method is other"), "{refused:#?}");
    assert_eq!(tables(&server), 0);
    let ran = rig.done("fill 5MB");
    assert!(ran.stderr.contains("method direct is not possible: the tables' access method"), "{ran:#?}");
}

#[test]
fn a_role_that_may_see_the_settings_is_enough() {
    let rig = Rig::new();
    let server = rig.server("");
    let data = rig.data();
    server.execute(
        "CREATE ROLE clerk LOGIN; GRANT pg_read_all_settings TO clerk; CREATE SCHEMA desk AUTHORIZATION clerk",
    );
    let clerk = server.url.replace("postgres@", "clerk@");
    for options in ["", "--partitions 2 --unlogged --drop"] {
        rig.done(&format!("fill --rows 20000 --method direct --schema desk -d {clerk} {options}"));
        let proof = Proof::of(&server, &data, "desk");
        proof.assert_sound();
        proof.assert_settled();
    }
}

#[test]
fn all_other_options_give_what_copy_gives() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(&format!("{version} --set autovacuum=off"));
        let data = rig.data();
        let client = rig.connect(&format!("{}&options=-c%20allow_in_place_tablespaces%3Don", server.url));
        for name in ["one", "two"] {
            rig.block_on(client.batch_execute(&format!("CREATE TABLESPACE {name} LOCATION ''"))).unwrap();
        }
        for options in [
            "--tablespace one --index-tablespace two",
            "--tablespace one --index-tablespace two --partitions 3 --unlogged",
            "--index brin",
            "--index none --no-autovacuum",
            "--payload text",
            "--payload random --fillfactor 37",
            "-I dtg",
            "-I dtgp --partitions 2 --partition-method hash",
        ] {
            rig.done(&format!("fill --rows 12000 --method direct --schema d --drop {options}"));
            rig.done(&format!("fill --rows 12000 --method copy --schema c --drop {options}"));
            let (direct, copied) = (Proof::of(&server, &data, "d"), Proof::of(&server, &data, "c"));
            direct.assert_sound();
            direct.assert_files();
            direct.assert_same(&copied);
            assert_eq!(placed(&server, "d"), placed(&server, "c"), "{options}");
        }
    }
}

/// Relations of a schema, the tablespaces that they are in, and what holds of them.
fn placed(server: &Server, schema: &str) -> Vec<String> {
    let query = format!(
        "SELECT concat_ws(' ', c.relname, c.relkind, c.relpersistence, c.reloptions::text, spcname, \
                          (SELECT string_agg(conname || contype::text, ',' ORDER BY conname) FROM pg_constraint \
                            WHERE conrelid = c.oid), \
                          (SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid)) \
           FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = reltablespace \
          WHERE relnamespace = '{schema}'::regnamespace ORDER BY relname"
    );
    let rows = server.rows(&query);
    rows.iter().map(|row| row.get::<_, String>(0).replace(&format!("{schema}."), "")).collect()
}

#[test]
fn its_own_server_is_recognised_however_it_is_named() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE shop");
    let own = "on its own server, pgrig writes pages";
    let shop = server.url.replace("/postgres?", "/shop?");
    let explained = rig.done(&format!("fill 5MB --explain -d {shop}"));
    assert!(explained.stdout.contains("direct") && explained.stdout.contains(own), "{explained:#?}");
    let socket = rig.data().with_file_name("socket");
    let mut command = rig.command("fill 5MB --explain");
    command.env("PGHOST", &socket).env("PGDATABASE", "shop").env("PGUSER", "postgres");
    let named = Ran::from(command.output().unwrap());
    assert!(named.stdout.contains("database     shop") && named.stdout.contains(own), "{named:#?}");
    rig.done(&format!("fill --scale 1 -q -d {shop}"));
    let matrix = format!("tps --matrix durability -t 10 --explain -d {shop}");
    assert_eq!(rig.run(&matrix).code, Some(0), "settings of its own server may be dangerous");

    // A copy has the same system identifier.
    rig.done("server stop");
    let [original, copy] = ["instances", "others/instances"].map(|path| rig.home.path().join(path));
    std::fs::create_dir(rig.home.path().join("others")).unwrap();
    let copied = Command::new("cp").arg("-a").args([&original, &copy]).status().unwrap();
    assert!(copied.success());
    testkit::open_to_all(&rig.home.path().join("others"));
    let rig = rig.of_others();
    let copy = rig.server("");
    let explained = rig.done(&format!("fill 5MB --explain --drop -d {}", copy.url)).stdout;
    assert!(!explained.contains(own), "{explained}");
    rig.done("server stop");
    std::fs::remove_dir_all(rig.home.path().join("others")).unwrap();
}
