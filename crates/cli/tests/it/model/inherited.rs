//! Tables from which others inherit.

use super::captured;
use crate::support::{Rig, observed};

/// In `base`, `twice` follows from `n`, texts have 5 to 7 characters, and half of the rows are referred to by four rows each. The child has
/// more rows, of other texts and pairs.
const TABLES: &str = "
    create table base (id int primary key, s text, n int, twice int);
    create table sub () inherits (base);
    create table refs (id int primary key, base_id int references base);
    insert into base
    select i, repeat('x', 2 + i % 3) || lpad((i % 700)::text, 3, '0'), i % 7, i % 7 * 2 from generate_series(1, 3000) i;
    insert into sub select i, repeat('y', 40) || i % 1000, i % 7, i % 11 % 7 * 2 from generate_series(10001, 30000) i;
    insert into refs select i, 1 + i % 1500 from generate_series(1, 6000) i;
    analyze";

#[test]
fn aggregates_and_distances_are_those_of_a_table_without_its_children() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(TABLES);
    let model = captured(&rig, "--aggregates");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    for (condition, tolerance) in [("length(s) < 4", 0), ("length(s) > 20", 0), ("twice <> n * 2", 60)] {
        let query = format!("SELECT count(*) FROM ONLY base WHERE {condition}");
        let (ours, theirs) = (original.number(&query), copy.number(&query));
        assert!((ours - theirs).abs() <= tolerance, "{condition}: {ours} {theirs}");
    }
    let without = "SELECT count(*) FROM ONLY base b WHERE NOT EXISTS (SELECT FROM refs WHERE base_id = b.id)";
    let (ours, theirs) = (original.number(without), copy.number(without));
    assert!((ours - theirs).abs() <= 200, "{ours} {theirs}");
    let document = rig.document("model check original copy --columns --instance default -q");
    assert_eq!(observed(&document, "broken-keys").to_string(), "0");
    // A key whose row is in the child alone is broken.
    copy.execute(
        "ALTER TABLE refs DROP CONSTRAINT refs_base_id_fkey;
         INSERT INTO sub SELECT -1, s, n, twice FROM ONLY base LIMIT 1;
         INSERT INTO refs VALUES (-1, -1);
         ALTER TABLE refs ADD CONSTRAINT refs_base_id_fkey FOREIGN KEY (base_id) REFERENCES base NOT VALID",
    );
    let document = rig.document("model check original copy --columns --instance default -q");
    assert_eq!(observed(&document, "broken-keys").to_string(), "1");
}
