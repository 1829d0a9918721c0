//! NULLs of columns whose values `fill` chooses.

use super::captured;
use crate::support::Rig;

/// Columns under CHECKs, a domain and the bounds of partitions: with NULLs and without.
const CHOSEN: &str = "
    create domain mail as text check (value ~ '^[a-z]+@[a-z]+$');
    create table chosen(id int primary key, code varchar(20) check (code ~ '^[A-Z]{3}-[0-9]+$'), state text check (state in ('a', 'b')),
        address mail, often varchar(20) check (often ~ '^[A-Z]{3}-[0-9]+$'), rest text check (rest in ('a', 'b')),
        low int, high int, check (low < high), parent int references chosen) ;
    insert into chosen select i, 'ABC-' || i, 'a', 'me@home', case when i % 10 < 3 then 'ABC-' || i end, case when i % 5 = 0 then 'b' end,
        i, i + 1, case when i > 1 then 1 end from generate_series(1, 3000) i;
    create table parted(region text, note text) partition by list (region);
    create table parted_1 partition of parted for values in ('eu', 'us', null);
    insert into parted select case when i % 4 > 0 then 'eu' end, 'note' from generate_series(1, 3000) i;
    analyze";

#[test]
fn columns_that_fill_chooses_have_the_share_of_nulls() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    server.database("original").execute(CHOSEN);
    let model = captured(&rig, "");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    let copy = server.database("copy");
    for (table, column, wanted) in [
        ("chosen", "code", 0),
        ("chosen", "state", 0),
        ("chosen", "address", 0),
        ("chosen", "often", 2_100),
        ("chosen", "rest", 2_400),
        ("chosen", "low", 0),
        ("parted", "region", 750),
    ] {
        let nulls = copy.number(&format!("SELECT count(*) FROM {table} WHERE {column} IS NULL"));
        assert!((nulls - wanted).abs() <= wanted / 8, "{column}: {nulls} NULLs, not {wanted}");
    }
    assert!(copy.number("SELECT count(*) FROM chosen WHERE parent IS NULL") < 60);
}
