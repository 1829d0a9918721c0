//! `pgrig fill --triggers off`: part of the request, and refused where it means nothing or the role may not do it.

use std::fs;

use crate::support::{NEWEST, OLDEST, Rig};

/// Rows that only COPY loads, with a trigger and a foreign key.
const WATCHED: &str = "
    CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents SELECT generate_series(1, 6000);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''seen''; END';
    CREATE TABLE t (id int PRIMARY KEY, parent int NOT NULL CONSTRAINT has_parent REFERENCES parents, note text);
    ALTER TABLE t ALTER note SET STORAGE PLAIN;
    CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse();";

#[test]
fn an_interrupted_fill_is_completed_by_the_same_request_only() {
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(WATCHED);
        // Row 6501, which is none of those that are tried beforehand, references nothing.
        let parents = format!("cycle({}6001{})", "3,".repeat(6500), ",3".repeat(3499));
        let fill = &format!("fill --table t --rows 10000 --streams 1 --chunk 36kB --column parent={parents}");
        let off = format!("{fill} --triggers off");
        let ran = rig.run(&off);
        assert_eq!(ran.code, Some(1), "{version}: {ran:#?}");
        assert!(ran.stderr.contains("violates has_parent"), "{version}: {ran:#?}");
        let committed = server.number("SELECT count(*) FROM t");
        assert!((1000..=6500).contains(&committed), "{version}: {committed}");
        let other = rig.run(fill);
        assert_eq!(other.code, Some(2), "{version}: {other:#?}");
        assert!(other.stderr.contains("--no-resume"), "{version}: {other:#?}");
        server.execute("INSERT INTO parents SELECT generate_series(6001, 6001)");
        let document = rig.document(&off);
        let reasons = document["plan"]["reasons"].to_string();
        assert!(reasons.contains("--triggers off: these do not run"), "{version}: {reasons}");
        let whole = "SELECT count(*) FROM (SELECT DISTINCT id FROM t WHERE id BETWEEN 1 AND 10000) t";
        assert_eq!(server.number(whole), 10_000, "{version}");
        assert_eq!(server.number("SELECT count(*) FROM t"), 10_000, "{version}");
    }
}

/// A fill that a trigger ends is not completed by the same command, unless the cause is removed.
#[test]
fn an_error_of_a_row_is_told_with_what_helps() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(WATCHED);
    let ran = rig.run("fill --table t --rows 3");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("To complete the fill, remove the cause and repeat the command"), "{ran:#?}");
    let ran = rig.run("fill --table t --rows 4");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let said = "public.t has an unfinished fill that another command began (different: the amount (SIZE, --scale or \
                --rows)): repeat that command to complete it, or give --no-resume";
    assert!(ran.stderr.contains(said) && !ran.stderr.contains("--drop"), "{ran:#?}");
    server.execute("DROP TRIGGER refuse ON t");
    rig.done("fill --table t --rows 3");
}

/// The tables that are filled before stay.
#[test]
fn a_fill_of_a_schema_that_a_trigger_ends_is_completed_without_triggers() {
    let rig = Rig::new();
    let server = rig.server("");
    let path = rig.home.path().join("watched.sql");
    fs::write(
        &path,
        "CREATE TABLE parents (id int PRIMARY KEY);
         CREATE TABLE t (id int PRIMARY KEY, parent int NOT NULL REFERENCES parents);
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''seen''; END';
         CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse();",
    )
    .unwrap();
    let fill = format!("fill --ddl {} --rows 300 --method copy -q", path.display());
    let ran = rig.run(&fill);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("if a trigger refuses rows, give --triggers off, too"), "{ran:#?}");
    assert_eq!(server.number("SELECT count(*) FROM parents"), 300);
    rig.done(&format!("{fill} --triggers off"));
    assert_eq!(server.number("SELECT count(*) FROM t"), 300);
}

#[test]
fn it_is_refused_where_the_role_may_not_or_nothing_has_triggers() {
    for (version, remedy) in [
        (OLDEST, "connect as a superuser"),
        (NEWEST, "run GRANT SET ON PARAMETER session_replication_role TO clerk"),
    ] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(WATCHED);
        server.execute(
            "CREATE ROLE clerk LOGIN; GRANT CREATE ON SCHEMA public TO clerk; ALTER TABLE t OWNER TO clerk; \
             GRANT SELECT, TRUNCATE ON parents TO clerk",
        );
        let clerk = server.url.replace("postgres@", "clerk@");
        let ran = rig.run(&format!("fill --table t --rows 100 --triggers off -d {clerk}"));
        assert_eq!(ran.code, Some(2), "{version}: {ran:#?}");
        let why = format!(
            "for public.t, which pgrig fills by COPY: role clerk may not set session_replication_role: {remedy}"
        );
        assert!(ran.stderr.contains(&why), "{version}: {ran:#?}");
        assert_eq!(server.number("SELECT count(*) FROM t"), 0);
        let ran = rig.run("fill --rows 100 --triggers off");
        assert_eq!(ran.code, Some(2), "{version}: {ran:#?}");
        assert!(ran.stderr.contains("--triggers is for tables of your own"), "{version}: {ran:#?}");
    }
}

#[test]
fn a_schema_is_filled_by_pages() {
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(&WATCHED.replace("ALTER TABLE t ALTER note SET STORAGE PLAIN;", ""));
        server.execute("TRUNCATE parents CASCADE");
        let document = rig.document("fill --all-tables --rows 2000 --triggers off");
        let tables = document["plan"]["tables"].to_string();
        assert!(tables.contains("these do not run for the rows: refuse"), "{version}: {tables}");
        assert!(!tables.contains("chunked-copy"), "{version}: {tables}");
        assert_eq!(server.number("SELECT count(*) FROM t"), 2000);
    }
}
