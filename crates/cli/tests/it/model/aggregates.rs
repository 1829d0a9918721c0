//! Copies of tables whose dependence no statistics object tells.

use std::collections::BTreeMap;
use std::fs;

use super::captured;
use crate::support::{Rig, Server, observed};

/// Tables whose dependence no statistics object tells, and rows that follow Zipf's law.
const MARKET: &str = "
    create schema m;
    create table m.shops(id int primary key, name text);
    create table m.sales(id bigint primary key, shop_id int references m.shops, state text not null, kind text not null,
        placed timestamptz, sent timestamptz, back timestamptz, price numeric(10,2), weight float8, phone text, town text, region text, level int);
    insert into m.shops select i, 'shop number ' || i from generate_series(1, 5000) i;
    select setseed(0.25);
    insert into m.sales
    select i, 1 + floor(5000 * random() ^ 4)::int, state,
        case when random() < 0.9 then 'Kind-of-' || state else 'another one' end,
        timestamptz '2023-12-01' + x * interval '100 days',
        case when state <> 'opened' then timestamptz '2024-01-01' + x * interval '100 days' end,
        case when state = 'returned' then timestamptz '2024-02-01' + x * interval '100 days' end,
        round((exp(5 * size) + random())::numeric, 2), 10 * size + random(), '+49 151 ' || floor(random() * 1e7),
        'Town-' || town, 'Region-' || town % 7, floor(10 * size)
    from (select i, (array['opened', 'sent out', 'returned'])[1 + floor(3 * random() ^ 1.5)::int] as state, random() as x, floor(150 * random() ^ 1.5)::int as town,
              (random() + random()) / 2 as size
          from generate_series(1, 40000) i) y;
";

/// The statements shown are those that read tables, and they run unchanged.
fn shows_its_statements(rig: &Rig, original: &Server<'_>) {
    let explained = rig.done("model capture --instance default -d original --aggregates --explain");
    assert!(explained.stderr.contains("these statements contain values of the original"), "{explained:#?}");
    let explained = explained.stdout;
    for part in
        ["GROUP BY \"shop_id\"", "GROUPING SETS", "HAVING count(*) >= 20", "corr(r1, r2)", "percentile_disc"]
    {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    for statement in explained.split(";\n\n") {
        original.execute(statement.trim_end().trim_end_matches(';'));
    }
}

fn follows_aggregates(version: &str) {
    let rig = Rig::new();
    // An autovacuum during a scan would estimate the rows of pages that the scan holds (before PostgreSQL 15).
    let server = rig.server(&format!("--set autovacuum=off {version}"));
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(MARKET);
    original.execute("ANALYZE");
    shows_its_statements(&rig, &original);
    let model = captured(&rig, "--aggregates --timeout 600s");
    let written = fs::read_to_string(&model).unwrap();
    let columns = written.matches("[[tables.columns]]").count();
    assert!(written.len() < columns * 3_000, "{} bytes, {columns} columns", written.len());
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));

    let both = |query: &str| (original.number(query), copy.number(query));
    let are_close = |query: &str, most: i64| {
        let (ours, theirs) = both(query);
        assert!((ours - theirs).abs() <= most, "{query}: {ours} {theirs}");
    };
    let sales = "SELECT count(*) FROM m.sales WHERE";
    // ANALYZE reads three quarters of the rows: a share of a half varies by 60 rows (standard deviation).
    are_close(&format!("{sales} sent IS NULL AND back IS NULL"), 300);
    are_close(&format!("{sales} sent IS NULL AND back IS NOT NULL"), 40);
    let of_state = "SELECT max(n) FROM (SELECT count(*) AS n FROM m.sales GROUP BY state, kind) AS x";
    are_close(of_state, 300);
    are_close(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM m.sales WHERE sent IS NULL GROUP BY state) AS x",
        300,
    );
    keeps_dependence(&original, &copy);
    // More values than the statistics list: each town is in its region, and as frequent as in the original.
    let towns = "SELECT string_agg(n::text, ' ') FROM (SELECT count(*) AS n FROM m.sales GROUP BY town, region ORDER BY town COLLATE \"C\") AS x";
    let counts = |server: &Server<'_>| -> Vec<i64> {
        let all: String = server.row(towns).get(0);
        all.split(' ').map(|count| count.parse().unwrap()).collect()
    };
    let (ours, theirs) = (counts(&original), counts(&copy));
    assert_eq!((ours.len(), theirs.len()), (150, 150));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        // Towns follow their region, whose share is that of a sample (standard deviation 0.75 %).
        assert!((ours - theirs).abs() <= 3 + ours / 25, "a town: {ours} {theirs}");
    }
    let correlation = "SELECT (1000 * corr(p, w))::bigint FROM (SELECT rank() OVER (ORDER BY price) AS p, \
                       rank() OVER (ORDER BY weight) AS w FROM m.sales) AS x";
    are_close(correlation, 40);
    // Rows for each shop: how many have none, the rows of the median, and the size of a join of the table with itself.
    let without =
        "SELECT count(*) FROM m.shops s WHERE NOT EXISTS (SELECT FROM m.sales WHERE shop_id = s.id)";
    let (ours, theirs) = both(without);
    assert!((ours - theirs).abs() < 150, "{ours} {theirs}");
    for (query, most) in [
        ("SELECT sum(n * n)::bigint FROM (SELECT count(*) AS n FROM m.sales GROUP BY shop_id) AS x", 1.1),
        ("SELECT count(*) FROM (SELECT FROM m.sales GROUP BY shop_id HAVING count(*) > 20) AS x", 1.2),
        ("SELECT max(n) FROM (SELECT count(*) AS n FROM m.sales GROUP BY shop_id) AS x", 1.1),
    ] {
        let (ours, theirs) = both(query);
        let factor = ours as f64 / theirs as f64;
        assert!((1.0 / most..most).contains(&factor), "{query}: {ours} {theirs}");
    }

    let queries = rig.home.path().join("queries");
    fs::create_dir(&queries).unwrap();
    fs::write(queries.join("scan.sql"), "SELECT count(*) FROM m.sales WHERE weight < 5").unwrap();
    let join = "SELECT count(*) FROM m.shops JOIN m.sales s ON s.shop_id = shops.id WHERE s.weight < 5";
    fs::write(queries.join("join.sql"), join).unwrap();
    // One takes too long, one fails in the copy's rows only.
    fs::write(queries.join("slow.sql"), "SELECT count(*), pg_sleep(60) FROM m.shops").unwrap();
    fs::write(queries.join("wrong.sql"), "SELECT sum(1 / (name ~ '^shop')::int) FROM m.shops").unwrap();
    let document = rig.document(&format!(
        "model check original copy --queries {} --execute --execute-timeout 5 --columns --instance default -q",
        queries.display()
    ));
    assert_executed(&document, &original, &copy);
    // Distributions are as near as the original's are to themselves, dependence and rows for each parent included.
    for (name, most) in [("column", 0.02), ("pair", 0.02), ("rows-per-key", 0.03)] {
        let copy = observed(&document, &format!("{name}-distance"));
        let own = observed(&document, &format!("own-{name}-distance"));
        assert!(own > 0.0 && copy < own + most, "{name}: {copy}, the original with itself {own}");
    }
    assert_eq!(
        (observed(&document, "rows-per-key-distances"), observed(&document, "broken-keys")),
        (1.0, 0.0)
    );
    measures_distances(&rig, &server);
    let (scans, joins) =
        (observed(&document, "rows-of-scans-factor-p95"), observed(&document, "rows-of-joins-factor-p90"));
    assert!((1.0..1.2).contains(&scans) && (1.0..1.5).contains(&joins), "{scans} {joins}");

    let words = "SELECT state FROM m.sales UNION SELECT kind FROM m.sales UNION SELECT phone FROM m.sales \
                 UNION SELECT town FROM m.sales UNION SELECT name FROM m.shops";
    let words =
        |server: &Server<'_>| -> Vec<String> { server.rows(words).iter().map(|row| row.get(0)).collect() };
    let (before, after) = (words(&original), words(&copy));
    let after: std::collections::BTreeSet<String> = after.into_iter().collect();
    assert!(before.len() > 35_000);
    let leaked: Vec<&String> = before
        .iter()
        .filter(|word| after.contains(word.as_str()) || written.contains(word.as_str()))
        .take(5)
        .collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}

/// Dependence of NULLs, and of few values with many.
fn keeps_dependence(original: &Server<'_>, copy: &Server<'_>) {
    let are_close = |query: &str, most: i64| {
        let (ours, theirs) = (original.number(query), copy.number(query));
        assert!((ours - theirs).abs() <= most, "{query}: {ours} {theirs}");
    };
    // Which times are NULL follows from the state, though the times themselves follow each other: counted by the places of the
    // replaced states.
    let patterns = "SELECT dense_rank() OVER (ORDER BY state COLLATE \"C\") || ' ' || num_nulls(sent) || num_nulls(back) AS pattern FROM m.sales";
    let patterns = |server: &Server<'_>| -> BTreeMap<String, i64> {
        let rows = server.rows(&format!("SELECT pattern, count(*) FROM ({patterns}) AS x GROUP BY 1"));
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let (ours, theirs) = (patterns(original), patterns(copy));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (pattern, rows) in &ours {
        assert!((rows - theirs[pattern]).abs() <= 300, "{pattern}: {ours:?} {theirs:?}");
    }
    let of_times =
        "SELECT (1000 * corr(extract(epoch FROM placed), extract(epoch FROM sent)))::bigint FROM m.sales";
    are_close(of_times, 10);
    // A column of few values with one of many: a level lies within a tenth of the weights.
    for range in [
        "level = 4 AND weight < 5",
        "level = 4 AND weight < 4",
        "level >= 7 AND weight < 7.5",
        "level < 3 AND price > 10",
    ] {
        are_close(&format!("SELECT count(*) FROM m.sales WHERE {range}"), 350);
    }
}

/// The document tells of the queries that ran, and the errors of the planner's estimates that the server shows.
fn assert_executed(document: &serde_json::Value, original: &Server<'_>, copy: &Server<'_>) {
    assert!((observed(document, "executed") - 2.0).abs() < 1e-9, "{}", document["notes"]);
    let notes = document["notes"].to_string();
    for said in [
        "leave out these queries, because they took longer than 5 s on the original",
        "leave out these queries, because they took longer than 5 s on the copy",
        "leave out query wrong, because it failed on the copy: division by zero",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let scan = "SELECT count(*) FROM m.sales WHERE weight < 5";
    for (name, server) in [("original", original), ("copy", copy)] {
        let plan: serde_json::Value = server.row(&format!("EXPLAIN (FORMAT JSON) {scan}")).get(0);
        // Below the aggregate, perhaps below another one and a Gather.
        let (estimate, rows) =
            (plan[0]["Plan"]["Plans"][0]["Plan Rows"].as_f64().unwrap(), server.number(scan) as f64);
        let events = document["trials"][0]["events"].as_array().unwrap();
        let event = events
            .iter()
            .find(|event| event["what"]["query"] == "scan")
            .unwrap_or_else(|| panic!("{events:#?}"));
        let of_scan = &event["what"][name][1];
        assert_eq!(
            (of_scan["estimate"].as_f64(), of_scan["rows"].as_f64()),
            (Some(estimate), Some(rows)),
            "{event:#}"
        );
        let factor = observed(document, &format!("{name}-estimates-of-scans-factor-p95"));
        assert!(
            factor >= (estimate / rows).max(rows / estimate) - 1e-9,
            "{name}: {factor}, {estimate} of {rows}"
        );
        assert!(factor < 2.0, "{name}: {factor}");
    }
}

/// Distances of tables whose distributions are known to differ, beside what the server counts in the whole tables.
fn measures_distances(rig: &Rig, server: &Server<'_>) {
    let tables = |name: &str, number: &str, label: &str, parent: &str| {
        server.execute(&format!("CREATE DATABASE {name}"));
        let database = server.database(name);
        database.execute(&format!(
            "CREATE TABLE parents(id int PRIMARY KEY);
             CREATE TABLE rows(n float8, at timestamptz, label text, parent int);
             INSERT INTO parents SELECT generate_series(1, 1000);
             INSERT INTO rows SELECT {number}, 'epoch'::timestamptz + i * interval '1 s', {label}, {parent}
               FROM generate_series(1, 20000) i;
             ALTER TABLE rows ADD FOREIGN KEY (parent) REFERENCES parents NOT VALID; ANALYZE"
        ));
        database
    };
    let one = tables("one", "i % 1000", "'label ' || i % 4", "1 + i % 1000");
    let two = tables("two", "(i % 1000) ^ 1.2", "'other ' || (i % 8) / 3", "1 + i % 502 * 2");
    two.execute("INSERT INTO rows(parent) SELECT NULL FROM generate_series(1, 50)");
    let shown = rig.done("model check one two --columns --instance default").stdout;
    let agree =
        shown.lines().find(|line| line.starts_with("statistics  ")).unwrap_or_else(|| panic!("{shown}"));
    let saved = rig.done("runs show latest:model").stdout;
    assert!(saved.lines().any(|line| line == agree), "{saved}");
    let distances = shown.split_once("other distribution").unwrap_or_else(|| panic!("{shown}")).1;
    let distance = |column: &str| -> f64 {
        let line = distances
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{column}  ")))
            .unwrap_or_else(|| panic!("{column}: {shown}"));
        line.split_whitespace().rev().nth(1).unwrap().parse().unwrap()
    };
    let ks = distance("public.rows.n");
    let below: Vec<f64> = (0..=100)
        .map(|tens| {
            let share = |server: &Server<'_>| -> f64 {
                server.row(&format!("SELECT avg((n <= {tens} * 40)::int)::float8 FROM rows")).get(0)
            };
            (share(&one) - share(&two)).abs()
        })
        .collect();
    let counted = below.into_iter().fold(0.0, f64::max);
    assert!((ks - counted).abs() < 0.03, "{ks}, {counted}");
    // A quarter each; three, three and two eighths.
    assert!((distance("public.rows.label") - 0.25).abs() < 0.03, "{shown}");
    // 20 rows each; 502 keys, of which one is none, have 39 or 40.
    assert!((distance("rows for each key: public.rows (parent)") - 0.5).abs() < 0.05, "{shown}");
    let orphans = two.number("SELECT count(*) FROM rows WHERE parent > 1000");
    assert!(
        shown.contains(&format!("public.rows (parent): {orphans} rows without a referenced row")),
        "{shown}"
    );
}

#[test]
fn aggregates_tell_what_statistics_do_not_13() {
    follows_aggregates("--pg-version 13");
}

#[test]
fn aggregates_tell_what_statistics_do_not_18() {
    follows_aggregates("--pg-version 18");
}
