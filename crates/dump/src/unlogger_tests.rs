//! Tests of the choice of tables that become unlogged.

use failure::Classified;
use proptest::prelude::*;

use crate::{DumpError, Left, Options, Reader, Sequences, Summary, Survey, Unlogger, Why};

const HEADER_15: &str =
    "--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.4 (Debian)\n\n";

fn options(keep: &[&str]) -> Options {
    let keep = keep.iter().map(|name| name.parse().unwrap()).collect();
    Options { keep, sequences: Sequences::AsDumped }
}

fn one_pass(dump: &str, options: Options) -> Result<(String, Summary), DumpError> {
    let mut output = Vec::new();
    let summary = Unlogger::in_one_pass(options).rewrite(dump.as_bytes(), &mut output)?;
    Ok((String::from_utf8(output).unwrap(), summary))
}

fn two_passes(dump: &str, options: Options) -> Result<(String, Summary), DumpError> {
    let survey = Survey::of(dump.as_bytes())?;
    let mut output = Vec::new();
    // A small buffer, so that the second pass reads otherwise than the first.
    let reader = Reader::with_buffer(dump.as_bytes(), 16);
    let summary = Unlogger::after(survey, options)?.rewrite_reader(reader, &mut output)?;
    Ok((String::from_utf8(output).unwrap(), summary))
}

/// With the second pass over another text than the first.
fn changed_between(first: &str, second: &str) -> Result<Summary, DumpError> {
    let survey = Survey::of(first.as_bytes())?;
    Unlogger::after(survey, Options::default())?.rewrite(second.as_bytes(), Vec::new())
}

/// The result, which must be the same in one pass and in two.
fn unlogged(dump: &str) -> String {
    let (once, summary) = one_pass(dump, Options::default()).unwrap();
    assert_eq!((once.clone(), summary), two_passes(dump, Options::default()).unwrap());
    once
}

/// Names of the tables and sequences that two passes make unlogged.
fn chosen(dump: &str, keep: &[&str]) -> (Vec<String>, Summary) {
    let (text, summary) = two_passes(dump, options(keep)).unwrap();
    assert_eq!(text.replace("UNLOGGED ", ""), dump);
    let names = text.split("UNLOGGED ").skip(1).map(|rest| {
        let name = rest.split_whitespace().nth(1).unwrap();
        name.trim_end_matches([';', '(', ')']).to_owned()
    });
    (names.collect(), summary)
}

fn left(table: &str, why: Why) -> Left {
    Left { table: table.to_owned(), why }
}

#[test]
fn tables_are_changed_only_where_they_are_created() {
    let dump = "-- CREATE TABLE a ();\nCREATE TABLE public.a (\n    b text DEFAULT 'CREATE TABLE c ();'::text\n);\n\
        COMMENT ON TABLE public.a IS 'x\nCREATE TABLE d ();\n';\n/*\nCREATE TABLE e ();\n*/\n\
        CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $_$\nBEGIN\nCREATE TABLE g ();\nEND\n$_$;\n\
        COPY public.a (b) FROM stdin;\nCREATE TABLE h ();\n\\.\n\nCREATE /* TABLE */ TABLE \"CREATE TABLE i ();\" ();\n\
        create table IF NOT EXISTS j ()";
    let expected = dump
        .replace("CREATE TABLE public.a", "CREATE UNLOGGED TABLE public.a")
        .replace("CREATE /* TABLE */ TABLE", "CREATE /* TABLE */ UNLOGGED TABLE")
        .replace("create table IF", "create UNLOGGED table IF");
    assert_eq!(unlogged(dump), expected);
}

#[test]
fn other_tables_are_left() {
    let dump = "CREATE FOREIGN TABLE a () SERVER s;CREATE TEMP TABLE b ();CREATE UNLOGGED TABLE c ();\
        CREATE GLOBAL TEMPORARY TABLE d ();CREATE MATERIALIZED VIEW e AS SELECT 1;CREATE VIEW f AS SELECT 1;\
        INSERT INTO g VALUES ('CREATE TABLE h ();');CREATE TABLE_like ();";
    assert_eq!(unlogged(dump), dump);
    let unlogged_already = "CREATE UNLOGGED TABLE c ();CREATE UNLOGGED SEQUENCE d;";
    let (_, summary) = two_passes(unlogged_already, Options::default()).unwrap();
    assert_eq!((summary.tables, summary.unlogged_tables), (0, 1));
}

#[test]
fn partitioned_tables_are_left_and_partitions_are_not() {
    let dump = "CREATE TABLE p (a text DEFAULT ' PARTITION BY ') \nPARTITION BY RANGE (a);\
        CREATE TABLE q PARTITION OF p FOR VALUES FROM ('a') TO ('b') PARTITION BY LIST (b);\
        CREATE TABLE r PARTITION OF q FOR VALUES IN ('PARTITION BY');\
        CREATE TABLE partition (by text, partition text);CREATE TABLE s (a int, CHECK (partition by));";
    let (names, summary) = chosen(dump, &[]);
    assert_eq!(names, ["r", "partition", "s"]);
    assert_eq!(summary.left, [left("public.p", Why::Partitioned), left("public.q", Why::Partitioned)]);
    assert_eq!(summary.tables, 3);
}

#[test]
fn sequences_follow_the_version_that_was_dumped() {
    let sequence = "CREATE SEQUENCE public.s\n    AS integer;\n";
    let changed = format!("{HEADER_15}CREATE UNLOGGED SEQUENCE public.s\n    AS integer;\n");
    assert_eq!(unlogged(&format!("{HEADER_15}{sequence}")), changed);
    for header in ["", &HEADER_15.replace("15.4", "14.9"), &HEADER_15.replace("15.4", "9.6.24")] {
        let dump = format!("{header}{sequence}");
        assert_eq!(unlogged(&dump), dump);
        let undecided = one_pass(&dump, Options::default()).unwrap().1.undecided_sequences;
        assert_eq!(undecided, u64::from(header.is_empty()));
        let always = Options { sequences: Sequences::Unlogged, ..Options::default() };
        assert_eq!(one_pass(&dump, always).unwrap().1.sequences, 1);
    }
    for header in [&HEADER_15.replace("15.4", "18beta1"), &HEADER_15.replace("15.4", "100.1")] {
        assert_eq!(one_pass(&format!("{header}{sequence}"), Options::default()).unwrap().1.sequences, 1);
    }
    let never = Options { sequences: Sequences::Left, ..Options::default() };
    let dump = format!("{HEADER_15}{sequence}");
    assert_eq!(one_pass(&dump, never).unwrap().0, dump);
}

/// A partitioned table that references a table that references another, and one that is of no concern.
const CHAIN: &str = "CREATE TABLE public.far ();CREATE TABLE public.near ();CREATE TABLE public.other ();\
    CREATE TABLE public.parent (a int) PARTITION BY RANGE (a);CREATE TABLE public.leaf (a int);\
    ALTER TABLE ONLY public.parent ATTACH PARTITION public.leaf FOR VALUES FROM (0) TO (9);\
    ALTER TABLE ONLY public.near ADD CONSTRAINT n FOREIGN KEY (a) REFERENCES public.far(a) ON DELETE CASCADE;\
    ALTER TABLE ONLY public.far ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES public.near(a) DEFERRABLE;\
    ALTER TABLE public.parent ADD CONSTRAINT p FOREIGN KEY (a) REFERENCES public.near(a) NOT VALID;\
    ALTER TABLE ONLY public.other ADD CONSTRAINT o FOREIGN KEY (a) REFERENCES public.parent(a);";

#[test]
fn what_a_partitioned_table_references_is_left() {
    let (names, summary) = chosen(CHAIN, &[]);
    assert_eq!(names, ["public.other", "public.leaf"]);
    let by = |table: &str| Why::Referenced { by: table.to_owned() };
    assert_eq!(
        summary.left,
        [
            left("public.far", by("public.near")),
            left("public.near", by("public.parent")),
            left("public.parent", Why::Partitioned)
        ]
    );
}

#[test]
fn one_pass_says_that_it_is_too_late() {
    let error = one_pass(CHAIN, Options::default()).unwrap_err();
    assert!(error.is_usage());
    let told = error.to_string();
    assert!(told.contains("already made table public.near unlogged"), "{told}");
    assert!(told.contains("partitioned table public.parent references it and stays logged"), "{told}");
    assert!(told.contains("--exclude-table 'public.near'"), "{told}");
    let told = one_pass(CHAIN, options(&["near"])).unwrap_err().to_string();
    assert!(
        told.contains(
            "already made table public.far unlogged, but public.near references it and stays logged"
        ),
        "{told}"
    );
    let (text, _) = one_pass(CHAIN, options(&["near", "public.far"])).unwrap();
    assert_eq!(text, two_passes(CHAIN, Options::default()).unwrap().0);
}

#[test]
fn kept_tables_keep_what_they_reference_and_their_partitions() {
    let (names, summary) = chosen(CHAIN, &["parent"]);
    assert_eq!(names, ["public.other"]);
    let partition = left("public.leaf", Why::PartitionOf { kept: "public.parent".to_owned() });
    assert!(summary.left.contains(&partition), "{summary:?}");
    assert!(one_pass(CHAIN, options(&["parent"])).is_err());
    let dump = "CREATE TABLE a.t ();CREATE TABLE b.t ();CREATE TABLE a.\"T\" ();CREATE TABLE a.u (x int REFERENCES a.t);";
    assert_eq!(chosen(dump, &["t"]).0, ["a.\"T\"", "a.u"]);
    assert_eq!(chosen(dump, &["A.T"]).0, ["b.t", "a.\"T\"", "a.u"]);
    assert_eq!(chosen(dump, &["\"T\""]).0, ["a.t", "b.t", "a.u"]);
    assert_eq!(chosen(dump, &["u"]).0, ["b.t", "a.\"T\""]);
}

#[test]
fn partitions_of_partitions_are_kept_too() {
    let dump = "CREATE TABLE p (a int) PARTITION BY LIST (a);CREATE TABLE q (a int) PARTITION BY LIST (a);\
        ALTER TABLE ONLY p ATTACH PARTITION q DEFAULT;CREATE TABLE r PARTITION OF q DEFAULT;";
    assert_eq!(chosen(dump, &[]).0, ["r"]);
    assert_eq!(chosen(dump, &["p"]).0, [""; 0]);
    let told = one_pass(dump, options(&["p"])).unwrap_err().to_string();
    assert!(
        told.contains("already made table public.r unlogged, but it is a partition of public.q"),
        "{told}"
    );
    assert!(one_pass(dump, options(&["p", "r"])).is_ok());
}

#[test]
fn a_table_to_keep_must_be_there() {
    for keep in ["missing", "b.t", "\"A\".t"] {
        let dump = "CREATE TABLE a.t ();";
        for result in [one_pass(dump, options(&[keep])), two_passes(dump, options(&[keep]))] {
            assert!(matches!(result, Err(DumpError::NoSuchTable(name)) if name == keep));
        }
    }
    for name in ["", "a.", ".a", "a b", "'a'", "a;", "\"a", "a.b c"] {
        assert!(matches!(name.parse::<crate::TableName>(), Err(DumpError::Name(_))), "{name}");
    }
}

#[test]
fn published_tables_are_left() {
    let dump = "CREATE TABLE public.a ();CREATE TABLE public.b ();CREATE TABLE public.c ();CREATE TABLE public.d ();\
        CREATE PUBLICATION p WITH (publish = 'insert');ALTER PUBLICATION p ADD TABLE ONLY public.a (x, y) WHERE ((x > 1));\
        CREATE PUBLICATION q FOR TABLE ONLY public.b, TABLE public.c;CREATE PUBLICATION r FOR ALL TABLES;\
        ALTER PUBLICATION s ADD TABLES IN SCHEMA public;";
    let (names, summary) = chosen(dump, &[]);
    assert_eq!(names, ["public.d"]);
    assert_eq!(summary.left[0], left("public.a", Why::Published { publication: "p".to_owned() }));
    assert_eq!(summary.publications_of_all, ["r", "s"]);
    assert!(
        one_pass(dump, Options::default()).unwrap_err().to_string().contains("publication p publishes it")
    );
}

#[test]
fn sequences_of_kept_tables_are_left() {
    let dump = format!(
        "{HEADER_15}CREATE TABLE a ();\nCREATE SEQUENCE a_s;\nALTER SEQUENCE a_s OWNED BY a.x;\nCREATE TABLE b ();\n\
         CREATE SEQUENCE b_s;\nALTER SEQUENCE b_s OWNED BY public.b.x;\nCREATE TABLE c () PARTITION BY LIST (x);\n\
         CREATE SEQUENCE c_s;\nALTER SEQUENCE c_s OWNED BY c.x;\nCREATE SEQUENCE d_s;\nALTER SEQUENCE d_s OWNED BY NONE;\n"
    );
    assert_eq!(chosen(&dump, &["a"]).0, ["b", "b_s", "c_s", "d_s"]);
    let (_, summary) = one_pass(&dump, options(&["a"])).unwrap();
    assert_eq!(summary.lone_sequences, [("public.a_s".to_owned(), "public.a".to_owned())]);
}

/// pg_dump 9.6 to 10.2 set the schema and leave it out of names.
#[test]
fn search_path_is_followed() {
    let dump = "SET search_path = one, pg_catalog;CREATE TABLE t ();CREATE TABLE p () PARTITION BY LIST (a);\
        SET search_path = \"Two\", pg_catalog;CREATE TABLE t ();SET search_path = one, pg_catalog;\
        ALTER TABLE p ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES \"Two\".t(a);";
    let (_, summary) = two_passes(dump, Options::default()).unwrap();
    let by = Why::Referenced { by: "one.p".to_owned() };
    assert_eq!(summary.left, [left("\"Two\".t", by), left("one.p", Why::Partitioned)]);
}

/// pg_dumpall: the same names in several databases.
#[test]
fn databases_are_told_apart() {
    let dump = "\\connect one\n\nCREATE TABLE public.t ();CREATE TABLE public.p () PARTITION BY LIST (a);\n\
        \\connect two\n\nCREATE TABLE public.t ();CREATE TABLE public.p (a int);\n\
        ALTER TABLE public.p ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES public.t(a);\n";
    let (text, summary) = two_passes(dump, Options::default()).unwrap();
    assert_eq!(summary.tables, 3);
    assert_eq!(text, one_pass(dump, Options::default()).unwrap().0);
}

#[test]
fn unicode_names_are_the_names_they_mean() {
    let dump = "CREATE TABLE U&\"d\\0061t\\+000061\" ();CREATE TABLE \"data\\\" ();\
        ALTER PUBLICATION p ADD TABLE ONLY public.data;";
    assert_eq!(two_passes(dump, Options::default()).unwrap().1.left.len(), 1);
    assert_eq!(chosen("CREATE TABLE \"a\"\"b\" ();CREATE TABLE c ();", &["\"a\"\"b\""]).0, ["c"]);
}

/// Until 2016 pg_dump made a view in a cycle of dependencies as a table and a rule.
#[test]
fn tables_that_become_views_are_left() {
    let dump = "CREATE TABLE v (a integer);CREATE TABLE t (a integer);\
        CREATE RULE \"_RETURN\" AS\n    ON SELECT TO public.v DO INSTEAD  SELECT t.a FROM t;";
    assert_eq!(chosen(dump, &[]).0, ["t"]);
    assert!(one_pass(dump, Options::default()).is_err());
}

#[test]
fn a_dump_without_its_end_is_noticed() {
    let whole = format!("{HEADER_15}SELECT 1;\n\n--\n-- PostgreSQL database dump complete\n--\n\n");
    assert!(!one_pass(&whole, Options::default()).unwrap().1.is_cut_off);
    assert!(one_pass(&whole[..whole.len() - 20], Options::default()).unwrap().1.is_cut_off);
    assert!(!one_pass("SELECT 1;", Options::default()).unwrap().1.is_cut_off);
}

#[test]
fn partitions_are_published_with_their_table() {
    let tables = "CREATE TABLE p (a int) PARTITION BY LIST (a);CREATE TABLE q (a int) PARTITION BY LIST (a);\
        CREATE TABLE r (a int);";
    let (attach_p, attach_q) =
        ("ALTER TABLE p ATTACH PARTITION q DEFAULT;", "ALTER TABLE q ATTACH PARTITION r DEFAULT;");
    let publish = "CREATE PUBLICATION x FOR TABLE p;";
    for order in [[attach_p, attach_q, publish], [publish, attach_p, attach_q], [attach_q, publish, attach_p]]
    {
        let dump = format!("{tables}{}", order.concat());
        assert!(matches!(one_pass(&dump, Options::default()), Err(DumpError::TooLate { .. })), "{dump}");
        let (names, summary) = chosen(&dump, &[]);
        assert_eq!(names, [""; 0], "{dump}");
        assert_eq!(one_pass(&dump, options(&["r"])).unwrap().1.left.len(), summary.left.len());
    }
}

#[test]
fn a_table_that_is_made_twice_is_kept_twice() {
    let dump = "CREATE TABLE t ();DROP TABLE t;CREATE TABLE t ();CREATE PUBLICATION p FOR TABLE t;";
    assert_eq!(chosen(dump, &[]).0, [""; 0]);
}

#[test]
fn names_in_comments_are_no_header() {
    let dump = "--\n-- Name: -- Dumped from database version 18; Type: TABLE\n--\nCREATE SEQUENCE s;\n\
        -- Name: -- PostgreSQL database dump complete; Type: TABLE\n";
    assert_eq!(chosen(dump, &[]).0, [""; 0]);
    let cut = format!("{HEADER_15}{dump}");
    assert!(one_pass(&cut, Options::default()).unwrap().1.is_cut_off);
    let windows = cut.replace('\n', "\r\n");
    assert!(one_pass(&windows, Options::default()).unwrap().1.is_cut_off);
    let cluster = format!(
        "--\n-- PostgreSQL database cluster dump\n--\n{HEADER_15}--\n-- PostgreSQL database dump complete\n--\n"
    );
    assert!(one_pass(&cluster, Options::default()).unwrap().1.is_cut_off);
    let whole = format!("{cluster}--\n-- PostgreSQL database cluster dump complete\n--\n");
    assert!(!one_pass(&whole, Options::default()).unwrap().1.is_cut_off);
}

#[test]
fn a_dump_that_changes_between_the_passes_is_noticed() {
    let dump =
        "CREATE TABLE a ();\nINSERT INTO a VALUES (1);\nCREATE TABLE b ();\nINSERT INTO b VALUES (1);\n";
    assert_eq!(changed_between(dump, dump).unwrap().tables, 2);
    for changed in [
        dump.replace("TABLE b", "TABLE bc"),
        dump.replacen("(1)", "(12)", 1),
        dump.replacen("(1)", "(12)", 2),
        format!("{dump};"),
        dump[..dump.len() - 1].to_owned(),
        dump[..30].to_owned(),
        String::new(),
    ] {
        assert!(changed_between(dump, &changed).is_err(), "{changed}");
    }
    assert!(matches!(changed_between("", dump), Err(DumpError::Changed)));
}

/// Fragments of dumps that affect the persistence of tables.
const FRAGMENTS: &[&str] = &[
    "CREATE TABLE a (b text);\n",
    "CREATE SEQUENCE a_b_seq;",
    "CREATE TABLE p (b text DEFAULT ';') PARTITION BY LIST (b);",
    "CREATE TABLE \"a\\';\" ();",
    "ALTER TABLE ONLY public.a ADD FOREIGN KEY (b) REFERENCES public.p(b);",
    "INSERT INTO public.a VALUES (1, 'CREATE TABLE b ();');\n",
    "INSERT INTO public.a VALUES (1, '\\');\n",
    "COPY a FROM stdin;\nCREATE TABLE a ();\n\\.\n",
    "SET standard_conforming_strings = off;\n",
    "SET standard_conforming_strings = off;CREATE TABLE d (b text DEFAULT '\\';', c int);",
    "SET standard_conforming_strings = on;",
    "SET search_path = s;",
    "\\connect other\n",
    "SELECT 'CREATE TABLE c ();\n';",
    "-- a comment\n",
    HEADER_15,
    "--\n-- PostgreSQL database dump complete\n--\n",
    "\n\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The second pass need not look at pieces that it only copies.
    #[test]
    fn two_passes_make_what_one_makes(
        parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..20),
    ) {
        let dump = parts.concat();
        if let Ok(once) = one_pass(&dump, Options::default()) {
            prop_assert_eq!(two_passes(&dump, Options::default()).unwrap(), once);
        }
    }
}
