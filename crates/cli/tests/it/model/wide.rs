//! Values above 1 kB, which ANALYZE does not keep, and values in TOAST tables.

use std::fs;

use super::captured;
use crate::support::{Rig, Server};

/// Each long text is incompressible: in the row, outside of it, beside short ones, beside frequent ones, and in documents.
const WIDE: &str = "
    create function long(i int, parts int) returns text language sql
        as 'select string_agg(md5(i::text || j), '''') from generate_series(1, $2) j';
    create table inside(id int primary key, body text);
    insert into inside select i, long(i, 35) from generate_series(1, 2000) i;
    create table outside(id int primary key, body text, empty text);
    insert into outside select i, long(i, 200) from generate_series(1, 2000) i;
    create table mixed(id int primary key, body text);
    insert into mixed select i, case when i % 2 = 0 then 'small' || i else long(i, 150) end from generate_series(1, 2000) i;
    create table listed(id int primary key, body text);
    insert into listed select i, case when i % 3 = 0 then 'state ' || i % 2 else long(i, 100) end from generate_series(1, 2000) i;
    create table documents(id int primary key, body jsonb, raw bytea);
    insert into documents select i, jsonb_build_object('text', long(i, 100)), decode(long(-i, 200), 'hex') from generate_series(1, 2000) i;
    analyze";

fn has_as_many_bytes(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(WIDE);
    let model = captured(&rig, "");
    let said = rig.run("model capture --instance default -d original -o - -q").stderr;
    assert!(!said.contains("no statistics"), "{said}");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    let written = fs::read_to_string(&model).unwrap();
    for table in ["inside", "outside", "mixed", "listed", "documents"] {
        let query = format!("SELECT pg_table_size('{table}')::int8");
        let size = |server: &Server<'_>| -> f64 {
            let bytes: i64 = server.row(&query).get(0);
            bytes as f64
        };
        let factor = size(&copy) / size(&original);
        assert!((0.75..1.33).contains(&factor), "{table}: {factor}: {written}");
    }
    // Short values stay short.
    let short = "SELECT count(*) FROM mixed WHERE length(body) < 20";
    let count: i64 = copy.row(short).get(0);
    assert!((700..1300).contains(&count), "{count}: {written}");
}

#[test]
fn long_values_take_the_bytes_of_the_original_13() {
    has_as_many_bytes("--pg-version 13");
}

#[test]
fn long_values_take_the_bytes_of_the_original_18() {
    has_as_many_bytes("--pg-version 18");
}
