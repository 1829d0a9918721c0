//! Values that fewer than k rows hold, in tables that try to carry them into the copy.

use std::collections::HashSet;
use std::fs;

use super::captured;
use crate::support::{Rig, Server};

/// `few` has a value in one or two rows of 5,000, or a different one in each of some rows; `target` has statistics of two values.
const ROWS: &str = "
    create table few (id int primary key, bonus int, amt numeric(12,2), un numeric, f float8, f4 real, ts timestamptz, two timestamptz,
        d date, d2 date, tm time, iv interval, r2 daterange, tr tstzrange, nr numrange, note text, uid uuid, arr int[], doc jsonb,
        sal int, often int, started date, ended date, check (ended >= started));
    insert into few (id, often, started) select i, 7 + i % 2, date '2011-01-01' + i * 7919 % 4001 from generate_series(1, 5000) i;
    update few set bonus = 1234567, amt = -98765.43, un = 4711.080001, f = 3.14159265, f4 = 2.71828,
        ts = '1987-06-05 04:03:02.123456+00', d = '1961-08-13', tm = '13:37:42.25', iv = '17 years 5 days', note = 'Notary Bloggs',
        uid = 'b2f7cbe7-6d45-4fd3-9d4b-3f3a4b7e4c11', arr = '{471147,815815}', doc = '{\"ssn\": \"078-05-1120\"}', ended = '2031-12-24'
     where id in (100, 200);
    update few set two = case when id % 2 = 0 then '1987-06-05 04:03:02+00' else '1991-01-02 03:04:05+00' end::timestamptz,
        r2 = daterange('1961-08-13', '1989-11-07'), nr = numrange(10.53, 20.27)
     where id in (7, 8, 4007, 4008);
    update few set d2 = date '1961-08-13' + id, tr = tstzrange(timestamptz '2001-02-03 04:05:06+00' + id * interval '1 us',
        timestamptz '2001-02-03 05:06:07+00' + id * interval '2 us')
     where id in (11, 4011);
    update few set sal = 50700 + 700 * (id / 100) where id % 100 = 0;
    create table target (id int primary key, sal int, born date, amt numeric(12,2));
    insert into target select i, 200000 + i * 13, date '2040-03-09' + i * 5, 11.72 + i * 7.31 from generate_series(1, 5000) i;
    alter table target alter sal set statistics 1, alter born set statistics 1, alter amt set statistics 1;
    analyze";

/// The values of a column as text that fewer than 20 rows hold.
fn rare(server: &Server<'_>, table: &str, column: &str) -> HashSet<String> {
    let query = format!(
        "SELECT {column}::text FROM {table} WHERE {column} IS NOT NULL GROUP BY {column}::text HAVING count(*) < 20"
    );
    server.rows(&query).iter().map(|row| row.get(0)).collect()
}

#[test]
fn no_value_of_few_rows_is_in_the_model_or_in_the_copy() {
    let rig = Rig::new();
    let server = rig.server("--pg-version 18 --set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(ROWS);
    for options in ["", "--aggregates"] {
        let model = captured(&rig, options);
        let written = fs::read_to_string(&model).unwrap();
        copy.execute("DROP TABLE IF EXISTS few, target");
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        let columns = "bonus amt un f f4 ts two d d2 tm iv r2 tr nr note uid arr doc ended";
        for column in columns.split(' ') {
            let (before, after) = (rare(&original, "few", column), rare(&copy, "few", column));
            assert!(!before.is_empty() && before.is_disjoint(&after), "{column}: {before:?}");
            let kept: Vec<&String> = before.iter().filter(|value| written.contains(value.as_str())).collect();
            assert!(kept.is_empty(), "{column}: {kept:?}");
        }
        for bound in ["1961-08", "1989-11", "10.53", "20.27", "2001-02-03", "078-05", "471147"] {
            assert!(!written.contains(bound), "{bound}");
        }
        // Salaries at equal distances: a multiple of 100 is one of theirs by chance.
        let (before, after) = (rare(&original, "few", "sal"), rare(&copy, "few", "sal"));
        assert_eq!(before.len(), 50);
        assert!(before.intersection(&after).count() < 25, "{after:?}");
        assert!(!before.iter().any(|value| written.contains(&format!("\"{value}\""))));
        // The least and the greatest value are of single rows.
        for column in ["sal", "born", "amt"] {
            let both = format!("SELECT min({column})::text, max({column})::text FROM target");
            let row = original.row(&both);
            for extreme in [row.get::<_, String>(0), row.get(1)] {
                assert!(!written.contains(&format!("\"{extreme}\"")), "{column}: {extreme}");
                let there = format!("SELECT count(*) FROM target WHERE {column}::text = '{extreme}'");
                assert_eq!(copy.number(&there), 0, "{column}: {extreme}");
            }
            let different = copy.number(&format!("SELECT count(DISTINCT {column}) FROM target"));
            assert!(different > 4_000, "{column}: {different}");
        }
        // Frequent values, and a column that a CHECK ties to one with few values, stay.
        assert_eq!(copy.number("SELECT count(*) FROM few WHERE often IN (7, 8)"), 5_000);
        let early = "SELECT count(*) FROM few WHERE started < '2015-01-01'";
        assert!((original.number(early) - copy.number(early)).abs() < 300);
    }
}

/// Letters and pairs of digits that use up their alphabet, empty texts, decimals below pgrig's unit, whole minutes, and times with an
/// offset.
const NARROW: &str = "
    create table narrow (id int primary key, grade char(1), st varchar(2), empty text, rate numeric(20,10), un numeric, tm time,
        price numeric(10,2), tz timetz);
    insert into narrow
    select i, chr(97 + i % 26), lpad((i % 100)::text, 2, '0'), case i % 3 when 0 then '' when 1 then ' ' else 'x' end,
        (i % 300)::numeric / 7, (i % 5)::numeric / 7, time '08:00' + i % 300 * interval '1 min', i % 777 * 1.25,
        timetz '08:00+02' + i % 300 * interval '1 min'
      from generate_series(1, 7800) i;
    analyze";

#[test]
fn narrow_columns_keep_their_numbers_of_values_and_their_units() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(NARROW);
    let said = rig.run("model capture --instance default -d original -o - -q");
    assert!(said.stderr.contains("public.narrow.tz (100.0 % of the rows)"), "{}", said.stderr);
    assert!(!said.stderr.contains("--keep-values"), "{}", said.stderr);
    let model = captured(&rig, "");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    for column in ["grade", "st"] {
        let values = |server: &Server<'_>| -> HashSet<String> {
            let rows = server.rows(&format!("SELECT DISTINCT {column}::text FROM narrow"));
            rows.iter().map(|row| row.get(0)).collect()
        };
        let (before, after) = (values(&original), values(&copy));
        assert_eq!(before.len(), after.len(), "{after:?}");
        assert!(before.is_disjoint(&after), "{after:?}");
    }
    for (condition, tolerance) in [
        ("empty = ''", 60),
        ("empty = ' '", 60),
        ("extract(second from tm) <> 0", 0),
        ("price % 1.25 <> 0", 0),
        ("rate > 20", 400),
        ("un BETWEEN 0.14 AND 0.15", 150),
    ] {
        let query = format!("SELECT count(*) FROM narrow WHERE {condition}");
        let (ours, theirs) = (original.number(&query), copy.number(&query));
        assert!((ours - theirs).abs() <= tolerance, "{condition}: {ours} {theirs}");
    }
    assert_eq!(copy.number("SELECT count(*) FROM narrow WHERE empty = 'x'"), 0);
}

#[test]
fn the_low_end_of_skewed_amounts_stays() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(
        "create table skewed (id int primary key, amt numeric(12,2));
         select setseed(0.5);
         insert into skewed select i, floor(100 * exp(random() * 8))::numeric / 100 from generate_series(1, 100000) i",
    );
    let low = "SELECT count(*) FROM skewed WHERE amt < 1.5";
    let ours = original.number(low);
    // ANALYZE's sample decides which amounts count as frequent: often the least ones are among them.
    for _ in 0..4 {
        original.execute("ANALYZE skewed");
        let model = captured(&rig, "");
        copy.execute("DROP TABLE IF EXISTS skewed");
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        let theirs = copy.number(low);
        assert!((ours - theirs).abs() < 1_200, "{ours} {theirs}");
    }
}
