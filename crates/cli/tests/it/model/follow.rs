//! Copies of small tables whose columns follow each other.

use super::captured;
use crate::support::{Rig, Server};

/// Invoices of 57 customers, of which only those in two countries have a state; and songs with some videos, which are larger, longer and dearer.
const SMALL: &str = "
    create table invoices(id int primary key, state text, country text not null);
    insert into invoices
    select i, case when n < 13 then 'US-' || greatest(n, 2) when n < 21 then 'CA-' || n end,
        case when n < 13 then 'USA' when n < 21 then 'Canada' else 'Country ' || n end
    from (select i, i * 7 % 57 as n from generate_series(1, 399) i) x;
    create table media(id int primary key, price numeric(6,2) not null, size int not null, length int not null);
    select setseed(0.25);
    insert into media
    select i, case when is_video then 1.99 else 0.99 end, size, size * (0.8 + 0.4 * random()) / case when is_video then 200 else 20 end
    from (select i, is_video, (case when is_video then 100000000 + 900000000 * random() else 1000000 + i * 1000 + 12000000 * random() end)::int as size
          from (select i, i between 2401 and 2600 as is_video from generate_series(1, 3000) i) x) y;
    analyze";

fn keeps_dependence_and_order(version: &str, method: &str) {
    let rig = Rig::new();
    let server = rig.server(&format!("{version} --set autovacuum=off"));
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(SMALL);
    let model = captured(&rig, "--aggregates --keep-values invoices.state --keep-values invoices.country");
    rig.done(&format!("fill --model {model} --instance default -d copy -q --method {method}"));
    copy.execute("ANALYZE");

    // Each country comes as often as in the original, and no state is missing in countries whose customers have one.
    let countries = "SELECT string_agg(country || n, ' ' ORDER BY country COLLATE \"C\")
        FROM (SELECT country, count(*) AS n FROM invoices GROUP BY country) x";
    let frequencies = |server: &Server<'_>| -> String { server.row(countries).get(0) };
    assert_eq!(frequencies(&copy), frequencies(&original));
    let stateless = "SELECT count(*) FROM invoices WHERE country IN ('USA', 'Canada') AND state IS NULL";
    assert_eq!((original.number(stateless), copy.number(stateless)), (0, 0));

    // Videos have the higher price.
    let videos = "SELECT count(*) FROM media WHERE price > 1 AND size > 50000000";
    assert_eq!(original.number(videos), 200);
    assert!(copy.number(videos) > 150, "{}", copy.number(videos));
    let together = "SELECT (1000 * corr(size, length))::bigint FROM media";
    let (theirs, ours) = (original.number(together), copy.number(together));
    assert!((theirs - ours).abs() < 250, "{theirs} {ours}");

    // Columns that follow others keep their correlation with the order of the rows.
    for (table, column) in [
        ("invoices", "state"),
        ("invoices", "country"),
        ("media", "price"),
        ("media", "size"),
        ("media", "length"),
    ] {
        let correlation = format!(
            "SELECT (1000 * correlation)::bigint FROM pg_stats WHERE tablename = '{table}' AND attname = '{column}'"
        );
        let (theirs, ours) = (original.number(&correlation), copy.number(&correlation));
        assert!((theirs - ours).abs() <= 15, "{table}.{column}: {theirs} {ours}");
    }
}

#[test]
fn columns_that_follow_others_keep_values_pairs_and_order_by_copy_13() {
    keeps_dependence_and_order("--pg-version 13", "copy");
}

#[test]
fn columns_that_follow_others_keep_values_pairs_and_order_as_pages_18() {
    keeps_dependence_and_order("--pg-version 18", "direct");
}
