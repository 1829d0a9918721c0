//! Types, names and schemas out of the ordinary.

use std::collections::HashSet;
use std::fs;

use super::captured;
use crate::support::{Rig, Server, observed};

/// Types whose values are not in an order that text has, and columns without values.
const ODD: &str = "
    create collation m_de (provider = icu, locale = 'de-DE', deterministic = false);
    create domain m_tags as text[];
    create domain m_mail as text check (value like '%@%');
    create domain m_short as m_mail check (length(value) <= 30);
    create type m_sent as (address m_short, copies m_short[]);
    create table odd(id int primary key, tags text[], more m_tags, numbers int[], hash bytea, name text collate m_de,
        none text, nothing int[], serial int, phone bigint, account numeric, word int[],
        labels text[], scores int[], mail m_short, mails m_short[], sent m_sent, documents jsonb[]);
    create index on odd(name);
    alter table odd alter serial set statistics 1000;
    insert into odd select i, array['topic number ' || i % 3, 'subject ' || i % 4], array['mark ' || i % 5],
        case when i % 7 > 0 then array[i % 2, 10] end, decode(md5(i::text) || md5((-i)::text), 'hex'), 'Straße ' || i, null, null, i,
        4915100000000 + i * 48271 % 9999991 * 17, 1000000000 + i::int8 * 7919 * 104729 % 8999999999, array[i, i + 1],
        array(select 'label no. ' || l from generate_series(1, 40) l where hashint8(i * 1000::int8 + l)::bit(10)::int < 400 / l),
        array(select l from generate_series(1, 30) l where hashint8(-i * 1000::int8 - l)::bit(10)::int < 600 / l),
        i || '@home', array['a@' || i % 3, 'b@c'], row('x@y', array['x@' || i]::m_short[])::m_sent,
        array[jsonb_build_object('number', i)]
      from generate_series(1, 4000) i;
    create table lines(item int references odd, line int, label text, primary key (item, line));
    insert into lines select i, line, 'a line' from odd, generate_series(1, 1 + id % 5) line, lateral (select id) x (i);
    analyze";

fn copies_odd_types(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(ODD);
    let model = captured(&rig, "");
    let written = fs::read_to_string(&model).unwrap();
    let said = rig.run("model capture --instance default -d original -o - -q").stderr;
    assert!(
        said.contains("these arrays get random elements in the copy") && said.contains(": documents"),
        "{said}"
    );
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    let same = |query: &str| {
        let row = |server: &Server<'_>| -> String { server.row(query).get(0) };
        assert_eq!(row(&original), row(&copy), "{query}");
    };
    assert!(written.contains("sampled = 300000"), "ANALYZE reads 300 rows for each unit of the target");
    copy.execute("ANALYZE");
    // As often each element, though all are replaced; numbers that many rows have stay.
    for (column, compared) in [
        ("tags", "array_length(most_common_elems, 1)"),
        // A third of the rows each.
        ("tags", "round(most_common_elem_freqs[2]::numeric, 1)"),
        ("tags", "elem_count_histogram"),
        ("tags", "avg_width"),
        ("more", "n_distinct"),
        ("numbers", "most_common_elems"),
        ("hash", "avg_width"),
        ("hash", "n_distinct"),
        ("none", "null_frac"),
        ("nothing", "null_frac"),
        ("line", "n_distinct"),
        ("line", "most_common_vals"),
    ] {
        let table = if column == "line" { "lines" } else { "odd" };
        same(&format!(
            "SELECT ({compared})::text FROM pg_stats WHERE tablename = '{table}' AND attname = '{column}'"
        ));
    }
    has_elements(&original, &copy);
    let seventh = "SELECT (1000 * null_frac)::int8 FROM pg_stats WHERE attname = 'numbers'";
    let (ours, theirs) = (original.number(seventh), copy.number(seventh));
    assert!((ours - theirs).abs() <= 25, "{ours} {theirs}");
    // The original's indexes grew row by row.
    let is_noted = || {
        let document = rig.document("model check original copy --instance default -q");
        document["notes"].to_string().contains("indexes of these tables are smaller in the copy: public.odd")
    };
    assert!(is_noted());
    original.execute("REINDEX TABLE odd");
    assert!(!is_noted());
    // Of 4,000 numbers in a row, only the ends are cut off.
    assert!(copy.number("SELECT count(DISTINCT serial) FROM odd") > 3_900);
    same("SELECT collprovider::text || collisdeterministic FROM pg_collation WHERE collname = 'm_de'");
    // Items have one to five lines, as in the original.
    let of_items = "SELECT string_agg(n || ': ' || items, ', ' ORDER BY n) FROM (SELECT n, round(count(*) / 100.0) AS items \
                    FROM (SELECT count(*) AS n FROM lines GROUP BY item) x GROUP BY n) y";
    same(of_items);
    // Codes are others, with as many digits.
    for column in ["phone", "account"] {
        let codes = |server: &Server<'_>| -> HashSet<String> {
            let rows = server.rows(&format!("SELECT {column}::text FROM odd"));
            rows.iter().map(|row| row.get(0)).collect()
        };
        let (before, after) = (codes(&original), codes(&copy));
        assert!(before.len() > 3_900 && after.len() > 3_900, "{} {}", before.len(), after.len());
        let length = |codes: &HashSet<String>| codes.iter().map(String::len).collect::<HashSet<_>>();
        assert_eq!(length(&before), length(&after), "{column}");
        // Of ten thousand and more possible ones for each, one may be the same by chance.
        assert!(before.intersection(&after).count() <= 2, "{column}");
        assert!(!before.iter().any(|code| written.contains(code.as_str())), "{column}");
    }
    let words = "SELECT unnest(tags) FROM odd UNION SELECT unnest(more) FROM odd UNION SELECT unnest(labels) FROM odd UNION SELECT name FROM odd";
    let words = |server: &Server<'_>| -> HashSet<String> {
        server.rows(words).iter().map(|row| row.get(0)).collect()
    };
    let (before, after) = (words(&original), words(&copy));
    assert!(before.len() > 4_000 && after.len() > 3_900);
    assert_eq!(before.intersection(&after).count(), 0);
    assert!(!before.iter().any(|word| written.contains(word.as_str())));
}

/// Of arrays that are nearly all different: how often each element comes, and how many elements there are.
fn has_elements(original: &Server<'_>, copy: &Server<'_>) {
    let frequent = |server: &Server<'_>, column: &str| -> Vec<i64> {
        let query =
            format!("SELECT count(*) FROM odd, unnest({column}) AS e GROUP BY e ORDER BY 1 DESC LIMIT 20");
        server.rows(&query).iter().map(|row| row.get(0)).collect()
    };
    for column in ["labels", "scores"] {
        let (ours, theirs) = (frequent(original, column), frequent(copy, column));
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert!((ours - theirs).abs() <= 60 + ours / 20, "{column} {at}: {ours} {theirs}");
        }
        for least in 0..6 {
            let query = format!("SELECT count(*) FROM odd WHERE cardinality({column}) > {least}");
            let (ours, theirs) = (original.number(&query), copy.number(&query));
            assert!((ours - theirs).abs() <= 150, "{column}, more than {least}: {ours} {theirs}");
        }
    }
    // Numbers that many rows have stay.
    for score in 1..=5 {
        let query = format!("SELECT count(*) FROM odd WHERE scores @> array[{score}]");
        let (ours, theirs) = (original.number(&query), copy.number(&query));
        assert!((ours - theirs).abs() <= 60 + ours / 20, "{score}: {ours} {theirs}");
    }
    let twice = "SELECT count(*) FROM odd WHERE cardinality(labels) <> (SELECT count(DISTINCT e) FROM unnest(labels) e)";
    assert!(copy.number(twice) <= 40, "elements that are not frequent may come twice");
}

/// The example of the guide: a model written by hand.
#[test]
fn a_model_written_by_hand_is_filled() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE copy");
    let guide = include_str!("../../../../../docs/src/verbs/model.md");
    let (_, model) = guide.split_once("```toml\n").unwrap();
    let path = rig.home.path().join("shops.model.toml");
    fs::write(&path, model.split_once("```").unwrap().0).unwrap();
    rig.done(&format!("fill --model {} --instance default -d copy -q", path.display()));
    let copy = server.database("copy");
    for (condition, wanted) in [
        ("true", 10_000),
        ("country = 'France'", 5_000),
        ("country NOT IN ('Austria', 'France', 'Spain')", 0),
        ("opened IS NULL", 1_000),
        ("opened < '2020-01-01'", 4_500),
        ("opened < '2015-01-01' OR opened > '2025-01-01'", 0),
    ] {
        let there = copy.number(&format!("SELECT count(*) FROM shops WHERE {condition}"));
        assert!((there - wanted).abs() <= wanted / 10, "{condition}: {there}, not {wanted}");
    }
    // All of its tables are empty.
    let empty = fs::read_to_string(&path).unwrap().replace("rows = 10000", "rows = 0");
    fs::write(&path, empty).unwrap();
    server.execute("CREATE DATABASE blank");
    let refused = rig.run(&format!("fill --model {} --instance default -d blank", path.display()));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("all tables of the model have 0 rows"), "{refused:#?}");
    assert!(
        refused.stderr.contains("run ANALYZE there") && !refused.stderr.contains("--ddl"),
        "{refused:#?}"
    );
}

/// Names with dots and quotes, an empty table, columns without values, domains on enums, generated columns.
const EDGES: &str = r#"
    create type mood as enum ('sad', 'ok', 'happy');
    create domain good as mood check (value <> 'sad');
    create domain must as good not null;
    create schema "Sche.ma ""x""";
    create table "Sche.ma ""x"""."Ta.ble ""q"""("i.d" int primary key, "va""l.ue" int, "sp ace" text, "=a" int, "ümläut" date,
        "," int, "(" text);
    create table zero(id int primary key, a int, b text default 'x', c timestamptz);
    create table nulls(id int primary key, a int, b text, c jsonb, d int[], e numeric, f good, g bytea, h inet);
    create table moods(id int primary key, m good, n must, o mood[], p good[]);
    create table made(id int primary key, a int not null, b int generated always as (a * 2) stored, t text,
        up text generated always as (upper(t)) stored, c int check (c > 0));
    create index on made(b);
    create table own(id bigint generated always as identity, v int);
    create table refers("x.y" int primary key references "Sche.ma ""x"""."Ta.ble ""q""");
    insert into "Sche.ma ""x"""."Ta.ble ""q"""
    select i, i % 10, 'text ' || i % 5, i % 3, date '2024-01-01' + i % 50, i % 4, 'p' || i % 3 from generate_series(1, 2000) i;
    insert into nulls select generate_series(1, 2000);
    insert into moods select i, (array['ok', 'happy'])[1 + i % 2]::good, 'ok', array[(array['sad', 'ok', 'happy'])[1 + i % 3]::mood],
        array['ok']::good[] from generate_series(1, 2000) i;
    insert into made(id, a, t, c) select i, i % 100, 'tt ' || i % 30, 1 + i % 6 from generate_series(1, 2000) i;
    insert into own(v) select i % 9 from generate_series(1, 2000) i;
    insert into refers select generate_series(1, 500);
    analyze"#;

/// A model of one version makes a copy on another one.
#[test]
fn models_move_between_versions_and_keep_odd_names() {
    let (old, new) = (Rig::new(), Rig::new());
    let (on_old, on_new) = (old.server("--pg-version 13"), new.server("--pg-version 18"));
    for server in [&on_old, &on_new] {
        server.execute("CREATE DATABASE original");
        server.execute("CREATE DATABASE copy");
        server.database("original").execute(EDGES);
    }
    let models = [captured(&old, ""), captured(&new, "--aggregates")];
    for (rig, server, model) in [(&old, &on_old, &models[1]), (&new, &on_new, &models[0])] {
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        let copy = server.database("copy");
        for (table, rows) in [
            (r#""Sche.ma ""x"""."Ta.ble ""q""""#, 2_000),
            ("zero", 0),
            ("nulls WHERE num_nulls(a, b, c, d, e, f, g, h) = 8", 2_000),
            ("moods WHERE m::text IN ('ok', 'happy') AND n::text = 'ok' AND p::text = '{ok}'", 2_000),
            ("made WHERE b = 2 * a AND up = upper(t) AND c BETWEEN 1 AND 6", 2_000),
            ("refers", 500),
        ] {
            assert_eq!(copy.number(&format!("SELECT count(*) FROM {table}")), rows, "{table}");
        }
        let document = rig.document("model check original copy --columns --instance default -q");
        let (within, fields) = (observed(&document, "fields-within"), observed(&document, "fields"));
        assert!(fields > 100.0 && within > 0.9 * fields, "{within} of {fields}");
    }
    // A form of statement that the older server does not know.
    on_new
        .database("original")
        .execute("CREATE TABLE newer(a int, b int GENERATED ALWAYS AS (a) VIRTUAL); ANALYZE newer");
    on_old.execute("CREATE DATABASE blank");
    let ran = old.run(&format!("fill --model {} --instance default -d blank -q", captured(&new, "")));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("edit ddl in the model, or fill a server of the original's version"),
        "{ran:#?}"
    );
}

/// Tables that inherit, partitions that are older than the table that they were attached to, a foreign key to a partition.
const HEIRS: &str = "
    create table apart (at date not null, id int, what text);
    create table log(at date not null, id int, what text) partition by range (at);
    create table later partition of log for values from ('2024-02-01') to ('2024-03-01');
    alter table log attach partition apart for values from ('2024-01-01') to ('2024-02-01');
    alter table apart add primary key (id);
    create table entries(id int primary key, log_id int not null references apart, n int);
    create table animals(id int primary key, name text not null, legs int default 4 check (legs >= 0),
        twice int generated always as (legs * 2) stored);
    create table birds(wings int default 2, name text not null) inherits (animals);
    alter table birds alter legs set default 2, alter legs set not null, add primary key (id);
    create table bats(id int not null, name text not null, legs int default 4, twice int generated always as (legs * 2) stored,
        own text, constraint animals_legs_check check (legs >= 0));
    alter table bats inherit animals;
    insert into log select date '2024-01-01' + i % 50, i, 'w ' || i % 9 from generate_series(1, 5000) i;
    insert into entries select i, (select id from apart order by id offset i % 1000 limit 1), i % 7 from generate_series(1, 3000) i;
    insert into animals select i, 'animal ' || i % 100, i % 5 from generate_series(1, 4000) i;
    insert into birds(id, name, legs, wings) select i, 'bird ' || i % 100, 2 - i % 2, 2 from generate_series(10001, 14000) i;
    insert into bats(id, name, legs, own) select i, 'bat ' || i % 100, 1, 'own ' || i % 10 from generate_series(20001, 21000) i;
    analyze";

fn copies_heirs(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(HEIRS);
    let model = captured(&rig, "");
    // The remedy of the message helps.
    let fill = format!("fill --model {model} --instance default -d copy -q");
    let ran = rig.run(&fill);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let remedy = "give --exclude-table public.entries, and fill that table at the end (pgrig fill --table public.entries --rows ";
    assert!(ran.stderr.contains(remedy), "{ran:#?}");
    rig.done(&format!("{fill} --exclude-table public.entries"));
    rig.done("fill --table public.entries --rows 3000 --instance default -d copy -q");
    for query in [
        "SELECT string_agg(inhrelid::regclass || ' ' || inhparent::regclass, ', ' ORDER BY inhrelid::regclass::text) FROM pg_inherits \
           JOIN pg_class c ON c.oid = inhrelid WHERE relkind = 'r'",
        "SELECT string_agg(concat_ws(' ', attrelid::regclass, attname, attnotnull, attgenerated, pg_get_expr(adbin, adrelid)), ', ' \
                  ORDER BY attrelid::regclass::text, attname) FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum) \
          WHERE attrelid IN ('animals'::regclass, 'birds'::regclass, 'bats'::regclass) AND attnum > 0",
        "SELECT string_agg(conrelid::regclass || ' ' || conname, ', ' ORDER BY conrelid::regclass::text, conname) FROM pg_constraint WHERE contype IN ('p', 'c', 'f')",
        "SELECT concat_ws(' ', (SELECT count(*) FROM ONLY animals), (SELECT count(*) FROM birds), (SELECT count(*) FROM bats), \
                (SELECT count(*) FROM animals), (SELECT count(*) FROM entries))",
    ] {
        let row = |server: &Server<'_>| -> String { server.row(query).get(0) };
        assert_eq!(row(&original), row(&copy), "{query}");
    }
}

/// Frequent values far outside of all others, such as a date that means "no end", and infinite ones. By pages and by COPY.
fn copies_values_that_mean_no_end(server: &str, method: &str) {
    let rig = Rig::new();
    let server = rig.server(server);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(
        "CREATE TABLE contracts (id int PRIMARY KEY, until date NOT NULL, price float8, code int, ends timestamptz, since date, far timestamp);
         INSERT INTO contracts
         SELECT i, CASE WHEN i % 3 = 0 THEN date '9999-12-31' ELSE date '2020-01-01' + i % 1500 END,
                CASE WHEN i % 4 = 0 THEN 1e9 ELSE i % 977 END, CASE WHEN i % 5 = 0 THEN -1000000 ELSE i % 1300 END,
                CASE WHEN i % 2 = 0 THEN 'infinity' ELSE timestamptz '2024-01-01 00:00Z' + i % 1500 * interval '1 hour' END,
                CASE WHEN i % 10 = 0 THEN '-infinity' WHEN i = 7 THEN 'infinity' ELSE date '2001-01-01' + i % 900 END,
                CASE WHEN i % 2 = 0 THEN timestamp '20010-02-28 11:00:00' ELSE '9999-12-31 23:59:59' END
           FROM generate_series(1, 20000) i;
         ANALYZE contracts",
    );
    let model = captured(&rig, "--aggregates");
    rig.done(&format!("fill --model {model} --instance default -d copy -q --method {method}"));
    for between in [
        "until > '2024-12-31' AND until < '9999-12-31'",
        "price > 1000 AND price < 1e9",
        "code < -50 AND code > -1000000",
        "isfinite(ends) AND (ends < '2023-12-31' OR ends > '2024-03-05')",
        "isfinite(since) AND since NOT BETWEEN '2000-12-31' AND '2003-07-01'",
        "far NOT IN ('20010-02-28 11:00:00', '9999-12-31 23:59:59')",
    ] {
        let query = format!("SELECT count(*) FROM contracts WHERE {between}");
        assert_eq!(copy.number(&query), 0, "{between}");
    }
    for (condition, wanted) in [
        ("until = '9999-12-31'", 6_667),
        ("ends = 'infinity'", 10_000),
        ("since = '-infinity'", 2_000),
        ("far > '10000-01-01'", 10_000),
    ] {
        let there = copy.number(&format!("SELECT count(*) FROM contracts WHERE {condition}"));
        assert!((there - wanted).abs() <= wanted / 20, "{condition}: {there}, not {wanted}");
    }
}

#[test]
fn values_that_mean_no_end_are_copied_13() {
    copies_values_that_mean_no_end("--pg-version 13", "copy");
}

#[test]
fn values_that_mean_no_end_are_copied_18() {
    copies_values_that_mean_no_end("--pg-version 18", "direct");
}

/// Months, negative intervals, NaN and dates BC.
#[test]
fn values_that_are_no_numbers_on_a_scale_are_copied() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(
        "CREATE TABLE plans (id int PRIMARY KEY, period interval NOT NULL, late interval, age interval, rate float8, born date);
         INSERT INTO plans
         SELECT i, (array['1 mon', '1 year', '7 days', '01:00:00'])[1 + i % 4]::interval, -(i % 500) * interval '1 hour',
                (i % 400 - 200) * interval '1 day' + i % 7 * interval '1 mon', CASE WHEN i % 2 = 0 THEN 'NaN'::float8 ELSE i % 5 END,
                CASE WHEN i % 2 = 0 THEN '0044-03-15 BC' ELSE date '2020-01-01' + i % 10 END
           FROM generate_series(1, 20000) i;
         ANALYZE plans",
    );
    let model = captured(&rig, "");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    for (condition, wanted) in [
        ("period::text = '1 mon'", 5_000),
        ("period::text = '1 year'", 5_000),
        ("period::text = '7 days'", 5_000),
        ("late NOT BETWEEN '-500 hours' AND '0'", 0),
        ("late < '-250 hours'", 9_960),
        ("age NOT BETWEEN '-201 days' AND '6 mons 200 days'", 0),
        ("rate = 'NaN'", 10_000),
        ("born = '0044-03-15 BC'", 10_000),
    ] {
        let there = copy.number(&format!("SELECT count(*) FROM plans WHERE {condition}"));
        assert!((there - wanted).abs() <= wanted / 20, "{condition}: {there}, not {wanted}");
    }
}

#[test]
fn inheritance_and_partitions_are_copied_13() {
    copies_heirs("--pg-version 13");
}

#[test]
fn inheritance_and_partitions_are_copied_18() {
    copies_heirs("--pg-version 18");
}

#[test]
fn arrays_bytes_and_collations_are_copied_13() {
    copies_odd_types("--pg-version 13");
}

#[test]
fn arrays_bytes_and_collations_are_copied_18() {
    copies_odd_types("--pg-version 18");
}
