//! Columns of ranges.

use std::fs;

use super::captured;
use crate::support::{Rig, Server};

/// Stays of 1 to 14 days, a tenth of them empty and a fifth NULL; shifts of whole hours, a quarter without an end.
const STAYS: &str = "
    create table stays (id int primary key, days daterange, shift tstzrange, price numrange, slots int4range[]);
    insert into stays
    select i, case when i % 5 = 0 then null when i % 10 = 1 then 'empty'
                   else daterange(date '2020-01-01' + i % 1000, date '2020-01-01' + i % 1000 + 1 + i % 14) end,
        tstzrange('2024-01-01 00:00Z'::timestamptz + i % 2000 * interval '1 hour',
            case when i % 4 > 0 then '2024-01-01 08:00Z'::timestamptz + i % 2000 * interval '1 hour' end),
        numrange(i % 500, i % 500 + 2.5), array[int4range(i, i + 5)]
      from generate_series(1, 20000) i;
    analyze stays";

/// The model's path, and original and copy.
fn copied<'a>(rig: &'a Rig, version: &str, method: &str) -> (String, Server<'a>, Server<'a>) {
    let server = rig.server(version);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(STAYS);
    let model = captured(rig, "");
    rig.done(&format!("fill --model {model} --instance default -d copy -q --method {method}"));
    (model, original, copy)
}

fn copies_ranges(method: &str) {
    let rig = Rig::new();
    let (model, original, copy) = copied(&rig, "--pg-version 18", method);
    for (condition, tolerance) in [
        ("days IS NULL", 200),
        ("isempty(days)", 200),
        ("NOT isempty(days) AND upper(days) - lower(days) <= 7", 700),
        ("lower(days) < '2021-01-01'", 500),
        ("days && daterange('2021-06-01', '2021-06-11')", 150),
        ("upper_inf(shift)", 500),
        ("lower(shift) < '2024-02-01 00:00Z'", 700),
        ("upper(shift) - lower(shift) = interval '8 hours'", 500),
        ("price && numrange(100, 150)", 400),
        ("date_part('minute', lower(shift)) > 0", 0),
        ("lower(days) NOT BETWEEN '2020-01-01' AND '2022-09-27'", 0),
    ] {
        let query = format!("SELECT count(*) FROM stays WHERE {condition}");
        let (ours, theirs) = (original.number(&query), copy.number(&query));
        assert!((ours - theirs).abs() <= tolerance, "{condition}: {ours} {theirs}");
    }
    let different = copy.number("SELECT count(DISTINCT days) FROM stays");
    assert!((900..=1_001).contains(&different), "{different}");
    let written = fs::read_to_string(&model).unwrap();
    assert!(written.contains("from = \"ranges\""), "{written}");
}

#[test]
fn ranges_have_the_bounds_lengths_and_empty_share_of_the_original_by_copy() {
    copies_ranges("copy");
}

#[test]
fn ranges_have_the_bounds_lengths_and_empty_share_of_the_original_as_pages() {
    copies_ranges("direct");
}

/// `pg_stats` does not show the statistics of ranges.
#[test]
fn ranges_of_an_older_server_are_random_and_the_capture_says_so() {
    let rig = Rig::new();
    let (_model, _original, copy) = copied(&rig, "--pg-version 13", "copy");
    let said = rig.run("model capture --instance default -d original -o - -q").stderr;
    assert!(
        said.contains("these columns get random ranges in the copy") && said.contains(": days, shift"),
        "{said}"
    );
    let nulls = copy.number("SELECT count(*) FROM stays WHERE days IS NULL");
    assert!((nulls - 4_000).abs() <= 200, "{nulls}");
}
