//! `pgrig fill --ddl` with a dump from elsewhere: it names roles, settings and extensions that the server does not have.

use std::fs;

use crate::support::{Ran, Rig, Server};

const DUMP: &str = "
SET statement_timeout = 0;
SET setting_of_another_release = off;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS nowhere WITH SCHEMA public;
COMMENT ON EXTENSION nowhere IS 'it is not there';
CREATE TABLE public.artist (id integer NOT NULL, name text);
ALTER TABLE public.artist OWNER TO app;
CREATE TABLE public.album (id integer NOT NULL, artist integer NOT NULL);
ALTER TABLE public.album
    OWNER TO app;
ALTER TABLE ONLY public.artist ADD CONSTRAINT artist_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.album ADD CONSTRAINT album_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.album ADD CONSTRAINT album_artist FOREIGN KEY (artist) REFERENCES public.artist(id);
CREATE POLICY own ON public.album FOR SELECT TO \"Reader\" USING (true);
ALTER TABLE public.album ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION public.f() RETURNS text LANGUAGE sql AS $$SELECT 'GRANT ALL TO app;'$$;
ALTER FUNCTION public.f() OWNER TO app;
GRANT SELECT ON TABLE public.artist TO \"Reader\";
GRANT SELECT ON TABLE public.album TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public GRANT SELECT ON TABLES TO \"Reader\";
REVOKE ALL ON TABLE public.artist FROM app;
";

fn script(rig: &Rig, text: &str) -> String {
    let path = rig.home.path().join("dump.sql");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn assert_filled(server: &Server<'_>) {
    for table in ["artist", "album"] {
        assert_eq!(server.number(&format!("SELECT count(*) FROM public.{table}")), 50);
    }
}

fn assert_warned(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
    }
}

#[test]
fn what_the_server_does_not_have_is_left_out_and_listed() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let ran = rig.done(&format!("fill --rows 50 --ddl {}", script(&rig, DUMP)));
        assert_filled(&server);
        assert_warned(
            &ran,
            &[
                "the server has no role Reader, app, so pgrig skipped 1 × ALTER DEFAULT PRIVILEGES, 1 × CREATE POLICY, 1 × \
                 GRANT, 3 × OWNER TO, 1 × REVOKE of --ddl: give --create-roles to create the roles",
                "the server has no setting setting_of_another_release, so pgrig skipped 1 × SET of --ddl",
                "the server has no extension nowhere, so pgrig skipped 1 × COMMENT ON EXTENSION, 1 × CREATE EXTENSION of --ddl",
            ],
        );
        assert_eq!(server.number("SELECT count(*) FROM pg_roles WHERE rolname = 'app'"), 0);
        assert!(
            server.row("SELECT has_table_privilege('public', 'public.album', 'SELECT')").get::<_, bool>(0)
        );
    }
}

#[test]
fn roles_are_created_if_asked_for() {
    let rig = Rig::new();
    let server = rig.server("");
    let dump = script(&rig, DUMP);
    let fill = format!("fill --rows 50 --ddl {dump} --create-roles");
    // Nothing of a plan stays.
    rig.done(&format!("{fill} --explain"));
    let roles = "SELECT count(*) FROM pg_roles WHERE rolname IN ('app', 'Reader') AND NOT rolcanlogin";
    assert_eq!(server.number(roles), 0);
    let ran = rig.done(&fill);
    assert!(!ran.stderr.contains("has no role"), "{ran:#?}");
    assert_filled(&server);
    assert_eq!(server.number(roles), 2);
    let owned = "SELECT count(*) FROM pg_tables WHERE tableowner = 'app' AND schemaname = 'public'";
    assert_eq!(server.number(owned), 2);
    let refused = rig.run("fill 1MB --create-roles");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

#[test]
fn owners_that_the_role_cannot_be_are_left_out() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE ROLE app; CREATE ROLE \"Reader\"; CREATE ROLE clerk LOGIN; GRANT CREATE ON SCHEMA public TO clerk");
    let clerk = server.url.replace("postgres@", "clerk@");
    let plain: String =
        DUMP.lines().filter(|line| !line.contains("DEFAULT PRIVILEGES")).collect::<Vec<_>>().join("\n");
    let ran = rig.done(&format!("fill --rows 50 --ddl {} -d {clerk}", script(&rig, &plain)));
    assert_filled(&server);
    assert_warned(&ran, &["this role may not give objects to app, so pgrig skipped 3 × OWNER TO of --ddl"]);
}

#[test]
fn one_table_of_a_dump() {
    let rig = Rig::new();
    let server = rig.server("");
    let ran = rig.done(&format!("fill --rows 50 --table artist --ddl {}", script(&rig, DUMP)));
    assert_warned(&ran, &["the server has no role Reader, app, so pgrig skipped"]);
    assert_eq!(server.number("SELECT count(*) FROM public.artist"), 50);
    // Lines keep their numbers.
    server.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    let broken = script(&rig, &format!("{DUMP}\nCREATE TABLE public.third (id intger);\n"));
    let refused = rig.run(&format!("fill --rows 50 --ddl {broken}"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let line = format!("line {}: ", DUMP.lines().count() + 2);
    assert!(refused.stderr.contains(&line), "{refused:#?}");
}
