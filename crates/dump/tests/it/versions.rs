//! Output of versions of pg_dump other than the one that the tests with servers have.

use dump::{Options, Summary, Survey, Unlogger};

/// The dump with its tables unlogged, after a first pass and without one.
fn unlogged(dump: &str) -> (String, Summary) {
    let survey = Survey::of(dump.as_bytes()).unwrap();
    let after = Unlogger::after(survey, Options::default()).unwrap();
    let [twice, once] = [after, Unlogger::in_one_pass(Options::default())].map(|unlogger| {
        let mut output = Vec::new();
        let summary = unlogger.rewrite(dump.as_bytes(), &mut output).unwrap();
        (String::from_utf8(output).unwrap(), summary)
    });
    assert_eq!(once, twice);
    once
}

/// Asserts that exactly these are made unlogged.
fn assert_unlogged(dump: &str, created: &[&str]) -> Summary {
    let expected = created.iter().fold(dump.to_owned(), |text, &created| {
        assert_eq!(text.matches(created).count(), 1, "{created}");
        text.replace(created, &created.replace("CREATE ", "CREATE UNLOGGED "))
    });
    let (text, summary) = unlogged(dump);
    assert_eq!(text, expected);
    summary
}

/// 9.6: a search path instead of schemas, OIDs, tablespaces in comments.
const FROM_9_6: &str = r"--
-- PostgreSQL database dump
--

-- Dumped from database version 9.6.24
-- Dumped by pg_dump version 9.6.24

SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET row_security = off;

CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;

SET search_path = public, pg_catalog;

SET default_tablespace = '';

SET default_with_oids = true;

--
-- Name: old; Type: TABLE; Schema: public; Owner: postgres; Tablespace: CREATE TABLE
--

CREATE TABLE old (
    id integer NOT NULL,
    note text
);


ALTER TABLE old OWNER TO postgres;

SET default_with_oids = false;

CREATE TABLE options (
    id integer
)
WITH (autovacuum_enabled='false', fillfactor='70');
ALTER TABLE ONLY options ALTER COLUMN id SET STATISTICS 500;

CREATE TABLE child (
)
INHERITS (old);

CREATE FOREIGN TABLE remote (
    id integer
)
SERVER s;

CREATE SEQUENCE old_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER SEQUENCE old_id_seq OWNED BY old.id;

COPY old (id, note) WITH OIDS FROM stdin;
16401	1	CREATE TABLE data ();
\.


SELECT pg_catalog.setval('old_id_seq', 1, true);

SET SESSION AUTHORIZATION 'postgres';

ALTER TABLE ONLY child
    ADD CONSTRAINT child_fkey FOREIGN KEY (id) REFERENCES old(id);


--
-- PostgreSQL database dump complete
--

";

#[test]
fn from_9_6() {
    let created = ["CREATE TABLE old (", "CREATE TABLE options (", "CREATE TABLE child ("];
    let summary = assert_unlogged(FROM_9_6, &created);
    assert!(summary.left.is_empty() && !summary.is_cut_off, "{summary:?}");
}

/// 10: partitions are created as such.
const FROM_10: &str = "-- Dumped from database version 10.23

SET search_path = app, pg_catalog;

CREATE TABLE measured (
    day date NOT NULL
)
PARTITION BY RANGE (day);

CREATE TABLE measured_1 PARTITION OF measured
FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');

CREATE TABLE measured_2 PARTITION OF measured (
    CONSTRAINT few CHECK ((day <> '2026-02-03'::date))
)
FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')
PARTITION BY LIST (day);

CREATE TABLE measured_2_1 PARTITION OF app.measured_2
FOR VALUES IN ('2026-02-01');
";

#[test]
fn from_10() {
    let created = ["CREATE TABLE measured_1 PARTITION", "CREATE TABLE measured_2_1 PARTITION"];
    let summary = assert_unlogged(FROM_10, &created);
    let left = summary.left.iter().map(|left| left.table.as_str()).collect::<Vec<_>>();
    assert_eq!(left, ["app.measured", "app.measured_2"]);
}

/// 18: `\restrict` first, NOT NULL as constraints, sequences' own persistence, virtual columns, keys over time,
/// statistics.
const FROM_18: &str = r#"--
-- PostgreSQL database dump
--

\restrict MKoFmAtZ9Tm8CnQfEMuUxrRxUSqAbcq9aSYXTLYLQgPGzbxBLWcnq2PfWYNWEXd

-- Dumped from database version 18.0
-- Dumped by pg_dump version 18.0

SET statement_timeout = 0;
SET transaction_timeout = 0;
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET default_table_access_method = heap;

CREATE TABLE public.rooms (
    id integer CONSTRAINT rooms_id_not_null NOT NULL,
    span tstzrange NOT NULL,
    twice integer GENERATED ALWAYS AS ((id * 2)),
    CONSTRAINT lone NOT NULL span NO INHERIT
);


ALTER TABLE public.rooms ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rooms_id_seq
    UNLOGGED
    START WITH 1
    CACHE 1
);

CREATE TABLE public.parted (
    id integer NOT NULL
)
PARTITION BY HASH (id);
ALTER TABLE ONLY public.parted REPLICA IDENTITY NOTHING;

CREATE UNLOGGED SEQUENCE public.already
    START WITH 1
    CACHE 1;

CREATE SEQUENCE public.lone_seq
    AS integer
    START WITH 1
    CACHE 1;

COPY public.rooms (id, span) FROM stdin;
1	CREATE TABLE x ();
\.

SELECT * FROM pg_catalog.pg_restore_attribute_stats(
	'version', '180000'::integer,
	'schemaname', 'public',
	'relname', 'rooms',
	'most_common_vals', '{"CREATE TABLE y ();",it''s}'
);

ALTER TABLE ONLY public.rooms
    ADD CONSTRAINT rooms_key UNIQUE (id, span WITHOUT OVERLAPS);

ALTER TABLE ONLY public.rooms
    ADD CONSTRAINT rooms_fkey FOREIGN KEY (id, PERIOD span) REFERENCES public.rooms(id, PERIOD span) NOT ENFORCED;

ALTER TABLE public.parted
    ADD CONSTRAINT parted_self FOREIGN KEY (id) REFERENCES public.parted(id) NOT VALID;

--
-- PostgreSQL database dump complete
--

\unrestrict MKoFmAtZ9Tm8CnQfEMuUxrRxUSqAbcq9aSYXTLYLQgPGzbxBLWcnq2PfWYNWEXd

"#;

#[test]
fn from_18() {
    let summary =
        assert_unlogged(FROM_18, &["CREATE TABLE public.rooms (", "CREATE SEQUENCE public.lone_seq"]);
    assert_eq!((summary.tables, summary.sequences, summary.left.len()), (1, 1, 1));
    assert!(!summary.is_cut_off);
}

/// pg_dumpall: roles, then a database after the other, each its own dump, of any name.
const FROM_PG_DUMPALL: &str = r#"--
-- PostgreSQL database cluster dump
--

\restrict a

SET standard_conforming_strings = on;

CREATE ROLE "CREATE TABLE r ();";
ALTER ROLE postgres WITH SUPERUSER PASSWORD 'SCRAM-SHA-256$4096:a==$b=:c=';
ALTER ROLE postgres SET search_path TO 'x', 'y';

\unrestrict a

\connect template1

--
-- PostgreSQL database dump
--

\restrict b

-- Dumped from database version 16.3

CREATE TABLE public.one ();

--
-- PostgreSQL database dump complete
--

\unrestrict b

CREATE DATABASE "it's" WITH TEMPLATE = template0;
\connect -reuse-previous=on "dbname='it\'s; CREATE TABLE s ();'"

CREATE TABLE public.two ();
CREATE SEQUENCE public.three;

--
-- PostgreSQL database cluster dump complete
--
"#;

#[test]
fn from_pg_dumpall() {
    let created = ["CREATE TABLE public.one", "CREATE TABLE public.two", "CREATE SEQUENCE public.three"];
    assert!(!assert_unlogged(FROM_PG_DUMPALL, &created).is_cut_off);
}
