//! Copies of tables whose rows come in the order of their states, which decide on NULLs.

use super::captured;
use crate::support::{Rig, Server};

/// The first 48 % of the rows are opened, the last 24 % returned; all times ascend.
const ORDERS: &str = "
    create schema m;
    create table m.orders(id bigint primary key, state text not null, placed timestamptz not null, sent timestamptz, back timestamptz);
    select setseed(0.25);
    insert into m.orders
    select i, state, placed, case when state <> 'opened' then placed + random() * interval '3 days' end,
        case when state = 'returned' then placed + interval '4 days' + random() * interval '20 days' end
    from (select i, case when i <= 19200 then 'opened' when i <= 30400 then 'sent out' else 'returned' end as state,
              timestamptz '2020-01-01' + i * interval '54 minutes' as placed
          from generate_series(1, 40000) i) x;
    analyze";

/// States by their places, since the copy has other texts.
const STATES: &str = "(SELECT *, dense_rank() OVER (ORDER BY state COLLATE \"C\") AS place, ntile(5) OVER (ORDER BY placed) AS fifth
    FROM m.orders) AS orders";

#[test]
fn states_and_nulls_in_the_order_of_rows() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(ORDERS);
    let model = captured(&rig, "--aggregates");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    copy.execute("ANALYZE");

    let correlation = |server: &Server<'_>, column: &str| -> f64 {
        let query = "SELECT correlation::float8 FROM pg_stats WHERE schemaname = 'm' AND attname =";
        server.row(&format!("{query} '{column}'")).get(0)
    };
    for column in ["state", "placed", "sent", "back"] {
        let (ours, theirs) = (correlation(&original, column), correlation(&copy, column));
        assert!((ours - theirs).abs() < 0.02, "{column}: {ours} {theirs}");
    }
    for (place, fifth) in (1..=3).flat_map(|place| (1..=5).map(move |fifth| (place, fifth))) {
        let query = format!("SELECT count(*) FROM {STATES} WHERE place = {place} AND fifth = {fifth}");
        let (ours, theirs) = (original.number(&query), copy.number(&query));
        assert!((ours - theirs).abs() < 400, "{query}: {ours} {theirs}");
    }
    // The first state is that of orders that are not sent, the second that of those that are back.
    for wrong in ["(sent IS NULL) <> (place = 1)", "(back IS NULL) <> (place <> 2)"] {
        let rows = copy.number(&format!("SELECT count(*) FROM {STATES} WHERE {wrong}"));
        assert!(rows < 300, "{wrong}: {rows}");
    }
    for column in ["sent", "back"] {
        let shares = [0.1, 0.3, 0.5, 0.7, 0.9];
        let epoch = format!("extract(epoch FROM {column})::float8");
        let bounds: Vec<f64> = original
            .row(&format!(
                "SELECT percentile_cont(ARRAY{shares:?}) WITHIN GROUP (ORDER BY {epoch}) FROM m.orders"
            ))
            .get(0);
        for (share, bound) in shares.into_iter().zip(bounds) {
            let query = format!(
                "SELECT avg(({epoch} <= {bound})::int)::float8 FROM m.orders WHERE {column} IS NOT NULL"
            );
            let below: f64 = copy.row(&query).get(0);
            assert!((below - share).abs() < 0.02, "{column}: {below}, not {share}");
        }
    }
}

#[test]
fn rows_that_copy_loads_keep_their_order() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let original = server.database("original");
    // Without a model, two streams load so many rows.
    original.execute(
        "CREATE TABLE readings (id bigint PRIMARY KEY, seen date NOT NULL);
         INSERT INTO readings SELECT i, date '2020-01-01' + i / 100 FROM generate_series(1, 150000) i;
         ANALYZE",
    );
    let model = captured(&rig, "");
    let filled = rig.done(&format!("fill --model {model} --instance default -d copy --method copy"));
    let reason = "1 stream: the rows keep their order, which the model's correlations need";
    assert!(filled.stderr.contains(reason), "{}", filled.stderr);
    let disordered = "SELECT count(*) FROM (SELECT id < lag(id) OVER (ORDER BY ctid) AS is_less FROM readings) x WHERE is_less";
    assert_eq!(server.database("copy").number(disordered), 0);
}

/// Two CHECKs in a chain.
const CHAIN: &str = "
    create table orders (id int primary key, status text not null, placed timestamptz not null, paid timestamptz, shipped timestamptz,
        check (paid >= placed), check (shipped is null or paid is null or shipped > paid));
    insert into orders
    select i, status, placed, case when status <> 'new' then placed + interval '12 hours' end,
        case when status = 'shipped' then placed + interval '3 days' end
    from (select i, (array['new', 'paid', 'shipped', 'shipped'])[1 + i % 4] as status, timestamptz '2022-01-01' + i * interval '11 minutes' as placed
          from generate_series(1, 20000) i) x;
    analyze";

#[test]
fn times_in_a_chain_of_checks_keep_their_statistics() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(CHAIN);
    for options in ["", "--aggregates"] {
        let model = captured(&rig, options);
        copy.execute("DROP TABLE IF EXISTS orders");
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        for column in ["placed", "paid", "shipped"] {
            let nulls = format!("SELECT count(*) FROM orders WHERE {column} IS NULL");
            let (ours, theirs) = (original.number(&nulls), copy.number(&nulls));
            assert!((ours - theirs).abs() < 300, "{options} {column}: {ours} {theirs}");
            let mean = format!(
                "SELECT (extract(epoch FROM avg({column} - '2022-01-01')) / 86400)::int8 FROM orders"
            );
            let (ours, theirs) = (original.number(&mean), copy.number(&mean));
            assert!((ours - theirs).abs() < 8, "{options} {column}: {ours} {theirs} days");
        }
        let apart = copy.number("SELECT (extract(epoch FROM avg(paid - placed)) / 86400)::int8 FROM orders");
        assert!(apart < 10, "{options}: {apart} days");
    }
}
