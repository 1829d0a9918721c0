//! Elements of arrays that are not frequent.

use super::captured;
use crate::support::{Rig, Server};

/// Arrays with frequent elements beside rare ones; and with rare ones alone.
const ARRAYS: &str = "
    create table lists(id int primary key, numbers int[], days date[], tags text[]);
    insert into lists select i, array[i % 10, 100000 + i, 7], array[date '2020-01-01' + i % 1000], array['tag ' || i % 4, 'word ' || i]
      from generate_series(1, 8000) i;
    analyze";

/// Each frequent element is in its share of the arrays, and the others are as many, and in their range.
#[test]
fn rare_elements_do_not_make_frequent_ones_more_frequent() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    server.database("original").execute(ARRAYS);
    let model = captured(&rig, "");
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    let copy = server.database("copy");
    for digit in [0, 3, 8, 9] {
        let there = copy.number(&format!("SELECT count(*) FROM lists WHERE numbers @> array[{digit}]"));
        assert!((700..900).contains(&there), "{digit}: {there}, not 800");
    }
    assert!(copy.number("SELECT count(*) FROM lists WHERE numbers @> array[7]") > 7_900);
    let elements = |server: &Server<'_>, column: &str, condition: &str| {
        let query = format!("SELECT count(DISTINCT e) FROM lists, unnest({column}) AS e WHERE {condition}");
        server.number(&query)
    };
    // Of 8,000; rows draw them at random.
    assert!(elements(&copy, "numbers", "e BETWEEN 100000 AND 108000") > 4_000);
    assert_eq!(elements(&copy, "numbers", "e NOT BETWEEN 0 AND 9 AND e NOT BETWEEN 100000 AND 108000"), 0);
    assert!(elements(&copy, "tags", "true") > 4_000);
    // Of 1,000 days, each in 8 rows.
    let days = elements(&copy, "days", "true");
    assert!((800..=1_000).contains(&days), "{days}");
    assert_eq!(elements(&copy, "days", "e NOT BETWEEN '2020-01-01' AND '2022-09-26'"), 0);
}
