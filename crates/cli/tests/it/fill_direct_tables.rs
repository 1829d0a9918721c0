//! `pgrig fill --table` and `--ddl` with pages written directly: what comes of it, what is refused, and what is
//! left to COPY instead; on real servers of the newest and the oldest version.

use std::path::PathBuf;

use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server};
use serde_json::Value;
use testkit::until_some as until;

const BLOCK: i64 = 8192;
/// A column of every kind, an index of every sort.
const RICH: &str = include_str!("../data/rich.sql");

/// pgrig fill with these arguments, split at blanks, and a `--column` for each specification.
pub(super) fn fill(rig: &Rig, arguments: &str, columns: &[&str]) -> Ran {
    let mut command = rig.command(&format!("fill {arguments}"));
    command.args(columns.iter().flat_map(|column| ["--column", column]));
    Ran::from(command.output().unwrap())
}

/// The run document of a fill that must succeed.
pub(super) fn filled(rig: &Rig, arguments: &str, columns: &[&str]) -> Value {
    let ran = fill(rig, &format!("{arguments} --json -"), columns);
    assert_eq!(ran.code, Some(0), "fill {arguments} {columns:?}: {ran:#?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A file with this SQL, for --ddl.
fn script(rig: &Rig, sql: &str) -> PathBuf {
    let path = rig.home.path().join("script.sql");
    std::fs::write(&path, sql).unwrap();
    path
}

pub(super) fn method(document: &Value) -> &str {
    document["plan"]["method"].as_str().unwrap()
}

/// A checksum of all rows by their key.
pub(super) fn contents(server: &Server, table: &str) -> String {
    server.row(&format!("SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM {table} t")).get(0)
}

/// Has PostgreSQL's own checkers look at heap, visibility map and every B-tree.
pub(super) fn assert_sound(server: &Server, table: &str) {
    server.execute("CREATE EXTENSION IF NOT EXISTS amcheck; CREATE EXTENSION IF NOT EXISTS pg_visibility");
    if server.number("SELECT current_setting('server_version_num')::bigint") >= 140_000 {
        let query = format!("SELECT count(*) FROM verify_heapam('{table}', check_toast => true)");
        assert_eq!(server.number(&query), 0, "{table}'s heap");
    }
    server.execute(&format!(
        "SELECT bt_index_check(i.indexrelid, heapallindexed => true) \
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam \
          WHERE i.indrelid = '{table}'::regclass AND m.amname = 'btree'"
    ));
    for check in ["pg_check_frozen", "pg_check_visible"] {
        assert_eq!(server.number(&format!("SELECT count(*) FROM {check}('{table}')")), 0, "{table}: {check}");
    }
    let visible =
        format!("SELECT count(*) FROM pg_visibility_map('{table}') WHERE NOT all_visible OR NOT all_frozen");
    assert_eq!(server.number(&visible), 0, "{table}'s visibility map");
}

/// B-trees have the sizes that they have once the server has built them again.
fn assert_built_as_the_server_builds(server: &Server, table: &str) {
    let sizes = || -> Vec<(String, i64)> {
        let rows = server.rows(&format!(
            "SELECT c.relname::text, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid \
               JOIN pg_am m ON m.oid = relam WHERE indrelid = '{table}'::regclass AND amname = 'btree' ORDER BY 1"
        ));
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let written = sizes();
    server.execute(&format!("REINDEX TABLE {table}"));
    assert_eq!(written, sizes());
}

/// Has each condition find so many rows by way of an index.
fn assert_found(rig: &Rig, server: &Server, conditions: &[&str]) {
    let client = rig.connect(&server.url);
    let count = |condition: &str| -> i64 {
        let query = format!("SELECT count(*) FROM rich WHERE {condition}");
        rig.block_on(client.query_one(&query, &[])).unwrap().get(0)
    };
    let counts = || conditions.iter().map(|condition| count(condition)).collect::<Vec<_>>();
    rig.block_on(client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")).unwrap();
    let by_scan = counts();
    assert!(by_scan.iter().all(|rows| *rows > 0), "{by_scan:?}");
    rig.block_on(client.batch_execute("RESET ALL; SET enable_seqscan = off")).unwrap();
    assert_eq!(counts(), by_scan);
}

fn assert_rich(version: &str) {
    const COLUMNS: [&str; 4] =
        ["seq=serial(5,3)", "two=serial(-9000)", "at=timeseries(2024-01-01, 7s)", "k=constant(5)"];
    let rig = Rig::new();
    let server = rig.server(version);
    let ddl = script(&rig, RICH);
    let amount = "--table rich --rows 10000 --seed 4";
    let created = filled(&rig, &format!("{amount} --ddl {}", ddl.display()), &COLUMNS);
    assert_eq!(method(&created), "direct");
    assert_sound(&server, "rich");
    let written = contents(&server, "rich");
    assert_built_as_the_server_builds(&server, "rich");
    let nulls = "SELECT count(*) FROM rich WHERE t IS NULL OR ints IS NULL OR bo IS NULL";
    assert!(server.number(nulls) > 500, "no row with NULLs");
    // The user's default is the user's.
    let default = "SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = '7'";
    assert_eq!(server.number(default), 1);
    let one =
        server.row("SELECT ints::text, bo::text, u::text FROM rich WHERE num_nulls(ints, bo, u) = 0 LIMIT 1");
    let [ints, bo, u] = [0, 1, 2].map(|column| one.get::<_, String>(column));
    let one = [format!("ints @> '{ints}'"), format!("bo && '{bo}'"), format!("u = '{u}'")];
    let mut conditions: Vec<&str> = one.iter().map(String::as_str).collect();
    conditions.extend([
        "id BETWEEN 70 AND 9000",
        "seq > 99",
        "at > '2024-01-01 12:00'",
        "two < -8000",
        "day > '2010-01-01'",
    ]);
    assert_found(&rig, &server, &conditions);

    // The same table, empty: by COPY, and then, truncated, directly again.
    server.execute(
        "CREATE TABLE copied (LIKE rich INCLUDING ALL); DROP TABLE rich; ALTER TABLE copied RENAME TO rich",
    );
    let copied = filled(&rig, &format!("{amount} --method copy"), &COLUMNS);
    assert_eq!(method(&copied), "chunked-copy");
    assert_eq!(contents(&server, "rich"), written);
    server.execute("TRUNCATE rich");
    let again = filled(&rig, &format!("{amount} --method direct"), &COLUMNS);
    assert_eq!(method(&again), "direct");
    assert_sound(&server, "rich");
    assert_eq!(contents(&server, "rich"), written);
    // It is a table like any other, and nothing of pgrig's is left.
    server.execute("UPDATE rich SET t = 'changed' WHERE id % 3 = 0; DELETE FROM rich WHERE id % 3 = 1");
    server.execute("VACUUM rich");
    server.execute(
        "CREATE TEMPORARY TABLE one AS SELECT * FROM rich WHERE id = 2;
         UPDATE one SET id = 1, seq = 1, at = '2023-01-01', u = md5('another')::uuid;
         INSERT INTO rich SELECT * FROM one",
    );
    assert_eq!(server.number("SELECT count(*) FROM rich WHERE lower(t) = 'changed'"), 3333);
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'"), 0);
}

#[test]
fn a_column_of_every_kind_and_an_index_of_every_sort_on_the_newest() {
    assert_rich(NEWEST);
}

#[test]
fn a_column_of_every_kind_and_an_index_of_every_sort_on_the_oldest() {
    assert_rich(OLDEST);
}

const SIZED: &str = "
    CREATE TABLE bare (a int NOT NULL, b timestamp NOT NULL);
    CREATE TABLE keyed (id bigint PRIMARY KEY, at timestamp NOT NULL, note char(40) NOT NULL);
    CREATE INDEX ON keyed (at) WITH (fillfactor = 60);
    CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, n numeric(4,1), filler char(700) NOT NULL) WITH (fillfactor = 40);";

fn assert_sizes(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(SIZED);
    for (table, columns) in [
        ("bare", &[] as &[&str]),
        ("keyed", &["at=timeseries(2024-01-01, 1s)"]),
        ("unlogged", &["n=null", "filler=blank(700)"]),
    ] {
        for megabytes in [1, 15] {
            let document = filled(&rig, &format!("{megabytes}MB --table {table}"), columns);
            assert_eq!(method(&document), "direct", "{table}");
            let size = server.number(&format!("SELECT pg_total_relation_size('{table}')"));
            let off = (size - megabytes * 1_000_000).abs();
            assert!(off <= 2 * BLOCK, "{version} {table}: {size} bytes for {megabytes} MB");
            assert_sound(&server, table);
            server.execute(&format!("TRUNCATE {table}"));
        }
    }
}

#[test]
fn a_size_is_met_to_two_blocks_on_the_newest() {
    assert_sizes(NEWEST);
}

#[test]
fn a_size_is_met_to_two_blocks_on_the_oldest() {
    assert_sizes(OLDEST);
}

const REFUSED: &str = r#"
    CREATE DOMAIN word AS text; CREATE TYPE checked AS (n int, w word);
    CREATE TABLE words (a int, w checked);
    CREATE TABLE letters (a int, l "char");
    CREATE TABLE rounded (a int, at time(3));
    CREATE DOMAIN stamp AS timestamptz(0);
    CREATE TABLE stamped (a int, at stamp);
    CREATE TABLE defaulted (a int, b int DEFAULT 1 + random());
    CREATE TABLE computed (a int, b float GENERATED ALWAYS AS (sqrt(a)) STORED);
    CREATE TABLE dropped (a int, b int, c int); ALTER TABLE dropped DROP COLUMN b;
    CREATE TABLE plain_storage (a int, t text); ALTER TABLE plain_storage ALTER t SET STORAGE PLAIN;
    CREATE TABLE referenced (id int PRIMARY KEY);
    CREATE TABLE referring (id int REFERENCES referenced);
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TABLE triggering (a int);
    CREATE TRIGGER each_row BEFORE INSERT ON triggering FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE TABLE guarded (a int);
    CREATE TRIGGER no_truncate BEFORE TRUNCATE ON guarded EXECUTE FUNCTION nothing();
    CREATE TABLE inherited (a int); CREATE TABLE heir () INHERITS (inherited);
    CREATE TABLE parted (a int) PARTITION BY HASH ((a / 2));
    CREATE TABLE part PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    CREATE TABLE indexed (a int, b int NOT NULL); CREATE INDEX ON indexed (b);
"#;

/// Table, options, a column's specification, why not.
const REASONS: &[(&str, &str, &str, &str)] = &[
    ("words", "--rows 500", "a=serial", "w has type checked, which pgrig writes by COPY only"),
    ("letters", "--rows 500", "a=serial", "l has type \"char\", which pgrig writes by COPY only"),
    ("rounded", "--rows 500", "a=serial", "at has type time(3) without time zone"),
    ("stamped", "--rows 500", "a=serial", "at has type stamp"),
    ("defaulted", "--rows 500", "a=serial", "the server makes the values of b"),
    ("computed", "--rows 500", "a=serial", "the server makes the values of b"),
    ("dropped", "--rows 500", "a=serial", "it has a dropped column"),
    ("plain_storage", "--rows 500", "a=serial", "t has STORAGE PLAIN"),
    ("referenced", "--rows 500", "id=serial", "foreign keys of referring reference it"),
    ("triggering", "--rows 500", "a=serial", "triggers run for its rows: each_row"),
    ("guarded", "--rows 500", "a=serial", "it has TRUNCATE triggers: no_truncate"),
    ("inherited", "--rows 500", "a=serial", "other tables inherit from it"),
    ("parted", "--rows 500", "a=serial", "public.parted is partitioned by an expression"),
];

#[test]
fn what_only_the_server_can_do_is_refused_by_name_or_left_to_copy() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute(REFUSED);
    for (table, options, column, why) in REASONS {
        let asked = fill(&rig, &format!("{options} --table {table} --method direct"), &[column]);
        assert_eq!(asked.code, Some(2), "{table}: {asked:#?}");
        let refusal = "--method direct is not possible: ";
        assert!(asked.stderr.contains(refusal) && asked.stderr.contains(why), "{table}: {asked:#?}");
        let explained = fill(&rig, &format!("{options} --table {table} --explain"), &[column]);
        assert_eq!(explained.code, Some(0), "{table}: {explained:#?}");
        let reason = explained.stdout.lines().find(|line| line.contains("method direct is not possible: "));
        assert!(reason.is_some_and(|line| line.contains(why)), "{table}: {explained:#?}");
        assert!(explained.stdout.contains("chunked-copy"), "{table}: {explained:#?}");
    }
    for options in ["--append", "--chunk 1MB", "--for 1s"] {
        let amount = if options.starts_with("--for") { "" } else { "--rows 500" };
        let ran = fill(&rig, &format!("{amount} --table indexed --method direct {options}"), &[]);
        assert_eq!(ran.code, Some(2), "{options}: {ran:#?}");
        assert!(ran.stderr.contains("--method direct writes a whole table"), "{options}: {ran:#?}");
    }
}

/// Rows of different lengths, and indexes that no calculation tells the size of: keys that repeat a few times or often,
/// composite ones, expressions, GIN; pages that are filled to 60 percent.
const UNEVEN: &str = "
    CREATE TABLE parents (id int PRIMARY KEY);
    INSERT INTO parents SELECT generate_series(1, 40000);
    CREATE TYPE state AS ENUM ('new', 'paid', 'shipped');
    CREATE TABLE uneven (id bigint PRIMARY KEY, parent int NOT NULL REFERENCES parents, state state, title text NOT NULL,
                         price numeric, at timestamptz, tags text[]) WITH (fillfactor = 60);
    CREATE INDEX ON uneven (parent); CREATE INDEX ON uneven (state); CREATE UNIQUE INDEX ON uneven (title);
    CREATE INDEX ON uneven (parent, at); CREATE INDEX ON uneven (lower(title)); CREATE INDEX ON uneven USING gin (tags);
    CREATE TABLE articles (id bigint PRIMARY KEY, body text NOT NULL, data bytea, at timestamptz);
    CREATE INDEX ON articles (at);
";

#[test]
fn a_size_is_met_where_only_a_sample_tells_how_many_rows_take_it() {
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(UNEVEN);
        for wanted in [2e6, 60e6] {
            server.execute("TRUNCATE uneven");
            let filled = filled(&rig, &format!("{wanted}B --table uneven"), &[]);
            assert_eq!(method(&filled), "direct", "{version}");
            let size = server.number("SELECT pg_total_relation_size('uneven')") as f64;
            // A small table ends with a page and pages of the list of pending entries.
            let tolerance = if wanted < 10e6 { 0.06 } else { 0.02 };
            assert!((size / wanted - 1.0).abs() < tolerance, "{version}: {size} bytes for {wanted}");
        }
        assert_sound(&server, "uneven");
        // Values that are compressed or moved to the TOAST table.
        let columns = ["body=text(100,20000)", "data=nulls(0.5,random(1000,5000))"];
        assert_eq!(method(&filled(&rig, "60MB --table articles", &columns)), "direct", "{version}");
        let size = server.number("SELECT pg_total_relation_size('articles')") as f64;
        assert!((size / 60e6 - 1.0).abs() < 0.02, "{version}: {size} bytes of articles");
    }
}

#[test]
fn where_wal_is_needed_only_unlogged_tables_are_written_directly() {
    let rig = Rig::new();
    let server = rig.server(&format!("{NEWEST} --profile stock"));
    server.execute("CREATE TABLE logged (a int); CREATE UNLOGGED TABLE unlogged (a int)");
    let logged = fill(&rig, "--rows 1000 --table logged --method direct", &[]);
    assert_eq!(logged.code, Some(2), "{logged:#?}");
    assert!(logged.stderr.contains("wal_level is replica"), "{logged:#?}");
    assert_eq!(method(&filled(&rig, "--rows 1000 --table logged", &[])), "chunked-copy");
    assert_eq!(method(&filled(&rig, "--rows 1000 --table unlogged", &[])), "direct");
    assert_sound(&server, "unlogged");
}

#[test]
fn rows_are_found_by_indexes_that_the_server_has_read_while_they_were_empty() {
    // To validate a foreign key the server plans a query, and reads the first page of the index for that.
    const SCRIPT: &str = "
        CREATE TABLE parents (id int NOT NULL, code int NOT NULL, name text NOT NULL);
        CREATE TABLE children (parent int);
        ALTER TABLE parents ADD PRIMARY KEY (id);
        CREATE UNIQUE INDEX ON parents (name); CREATE INDEX ON parents (code);
        ALTER TABLE children ADD FOREIGN KEY (parent) REFERENCES parents;";
    for version in [OLDEST, NEWEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        let ddl = script(&rig, SCRIPT);
        let arguments = format!("--rows 3000 --table parents --ddl {}", ddl.display());
        assert_eq!(method(&filled(&rig, &arguments, &[])), "direct", "{version}");
        server.execute("SET enable_seqscan = off");
        for condition in ["id > 0", "name > ''", "code IS NOT NULL"] {
            let count = format!("SELECT count(*) FROM parents WHERE {condition}");
            assert_eq!(server.number(&count), 3000, "{version}: {condition}");
        }
        assert_sound(&server, "parents");
    }
}

#[test]
fn what_a_script_makes_is_filled_as_it_makes_it() {
    const CONSTANT: [&str; 1] = ["b=constant(5)"];
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    let of = |sql: &str, options: &str| {
        server.execute("DROP TABLE IF EXISTS made, other CASCADE");
        let ddl = script(&rig, sql);
        let arguments = format!("--rows 2000 --table made --ddl {} {options}", ddl.display());
        method(&filled(&rig, &arguments, &CONSTANT)).to_owned()
    };
    // A constant is no default of the column's, whatever the method.
    let plain = "CREATE TABLE made (a int PRIMARY KEY, b int DEFAULT 7)";
    for (options, expected) in [("", "direct"), ("--method copy", "chunked-copy")] {
        assert_eq!(of(plain, options), expected);
        assert_eq!(server.number("SELECT count(*) FROM made WHERE b = 5"), 2000, "{expected}");
        server.execute("INSERT INTO made VALUES (3000)");
        assert_eq!(server.number("SELECT b::bigint FROM made WHERE a = 3000"), 7, "{expected}");
    }
    // A table that references it does not prevent the direct method.
    let referenced = format!("{plain}; CREATE TABLE other (made int REFERENCES made)");
    assert_eq!(of(&referenced, ""), "direct");
    assert_eq!(of(&format!("{plain}; INSERT INTO made VALUES (-1)"), ""), "chunked-copy");
    assert_eq!(server.number("SELECT count(*) FROM made"), 2001);
    let caught = format!("DO $$ BEGIN {plain}; EXCEPTION WHEN OTHERS THEN RAISE; END $$");
    assert_eq!(of(&caught, ""), "chunked-copy");
}

/// The planner cannot know whether given values repeat; sorted keys show it.
#[test]
fn rows_that_repeat_a_key_are_found_before_the_commit() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE, n int)");
    let ran = fill(&rig, "--table t --rows 50000", &["name=email"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stderr.contains("two rows have the same key in the unique index public.t_name_key: ("),
        "{ran:#?}"
    );
    assert_eq!(server.number("SELECT count(*) FROM t"), 0);
}

#[test]
fn rows_that_break_a_check_are_found_before_the_commit() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    // Row 2999 is none of those that are tried beforehand.
    server.execute(
        "CREATE DOMAIN odd AS int CONSTRAINT not_3000 CHECK (VALUE <> 3000);
         CREATE TABLE by_domain (a odd);
         CREATE TABLE \"by CHECK\" (\"the A\" int CONSTRAINT also_not_3000 CHECK (\"the A\" <> 3000));
         CREATE TABLE kept (a odd CHECK (a < 1000000), b int);",
    );
    for (table, column, constraint) in
        [("by_domain", "a=serial", "not_3000"), ("\"by\u{a0}CHECK\"", "the A=serial", "also_not_3000")]
    {
        let mut command = rig.command("fill --rows 10000 --method direct");
        command.args(["--table", &table.replace('\u{a0}', " "), "--column", column]);
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(1), "{table}: {ran:#?}");
        assert!(ran.stderr.contains(constraint), "{table}: {ran:#?}");
        let count = format!("SELECT count(*) FROM {}", table.replace('\u{a0}', " "));
        assert_eq!(server.number(&count), 0, "{table}");
    }
    assert_eq!(method(&filled(&rig, "--rows 10000 --table kept", &["a=serial(3001)"])), "direct");
}

#[test]
fn rows_that_others_put_there_meanwhile_are_not_truncated() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute("CREATE TABLE contested (a int PRIMARY KEY)");
    let other = rig.connect(&server.url);
    rig.block_on(other.batch_execute("BEGIN; INSERT INTO contested VALUES (-1)")).unwrap();
    let running = Running::start(rig.command("fill --rows 1000 --table contested --method direct"));
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'contested'::regclass AND NOT granted";
    until("pgrig waits for the lock", || (server.number(waits) > 0).then_some(()));
    rig.block_on(other.batch_execute("COMMIT")).unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("another session inserted"), "{ran:#?}");
    assert_eq!(server.number("SELECT sum(a) FROM contested"), -1);
    // Once they are gone the same command completes it.
    server.execute("TRUNCATE contested");
    assert_eq!(method(&filled(&rig, "--rows 1000 --table contested --method direct", &[])), "direct");
    assert_eq!(server.number("SELECT count(*) FROM contested"), 1000);
    assert_sound(&server, "contested");
}
