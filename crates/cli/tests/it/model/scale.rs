//! Numbers of different values in a copy that is smaller than the original.

use super::captured;
use crate::support::{Rig, Server};

/// `kind` has 50 different values, `amount` one for two rows, and each parent has 20 children.
const FAMILIES: &str = "
    create table parents (id int primary key, note text);
    create table children (id int primary key, parent_id int not null references parents, kind int not null, amount int not null);
    insert into parents select i, 'note ' || i from generate_series(1, 1000) i;
    insert into children
    select i, 1 + i % 1000, i % 50 * 3, i::int8 * 7919 % 10007 * 5 from generate_series(1, 20000) i;
    analyze";

const STATED: &str = "children: the number of different values stays the same for kind; scales with the rows for amount; scales with \
                      the referenced rows for parent_id";

#[test]
fn the_plan_states_how_numbers_of_values_scale_and_column_overrides_it() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    server.execute("CREATE DATABASE other");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(FAMILIES);
    let model = captured(&rig, "");
    let fill = format!("fill --model {model} --instance default -d copy");
    let as_large = rig.done(&format!("{fill} --explain")).stdout;
    assert!(!as_large.contains("number of different values"), "{as_large}");

    let explained = rig.done(&format!("{fill} --scale 0.2 --explain")).stdout;
    assert!(explained.contains(STATED), "{explained}");
    let filled = rig.done(&format!("{fill} --scale 0.2"));
    assert!(filled.stderr.contains(STATED), "{filled:#?}");
    let different = |server: &Server<'_>, column: &str| {
        server.number(&format!("SELECT count(DISTINCT {column}) FROM children"))
    };
    assert_eq!((different(&original, "kind"), different(&copy, "kind")), (50, 50));
    assert_eq!(different(&original, "amount"), 10_007);
    let amounts = different(&copy, "amount");
    assert!((1_850..2_150).contains(&amounts), "{amounts}");
    let parents = different(&copy, "parent_id");
    assert!((150..=200).contains(&parents), "{parents}");

    // Both by the user: a number that stays the same, and one that does not scale with the rows.
    let other = server.database("other");
    let fill = format!("fill --model {model} --instance default -d other");
    let chosen = "--column children.kind=uniform(1,10) --column children.amount=uniform(1,10007)";
    let explained = rig.done(&format!("{fill} --scale 0.2 {chosen} --explain")).stdout;
    assert!(
        explained.contains(
            "children: the number of different values scales with the referenced rows for parent_id"
        ),
        "{explained}"
    );
    rig.done(&format!("{fill} --scale 0.2 {chosen} -q"));
    assert_eq!(different(&other, "kind"), 10);
    let amounts = different(&other, "amount");
    assert!((3_000..=4_000).contains(&amounts), "{amounts}");
}

/// The lower a key is, the more rows it has.
const SKEWED: &str = "
    create table par (id int primary key, n text);
    create table ch (id int primary key, par int not null references par);
    insert into par select i, 'note ' || i from generate_series(1, 20000) i;
    select setseed(0.5);
    insert into ch select i, 1 + floor(19999 * power(random(), 3))::int from generate_series(1, 60000) i;
    analyze";

#[test]
fn a_smaller_copy_keeps_the_skew_of_a_foreign_key() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(SKEWED);
    for options in ["", "--aggregates"] {
        let model = captured(&rig, options);
        copy.execute("DROP TABLE IF EXISTS ch, par");
        rig.done(&format!("fill --model {model} --scale 0.1 --instance default -d copy -q"));
        let counts = "SELECT count(*) FROM ch GROUP BY par ORDER BY 1 DESC";
        let counts: Vec<i64> = copy.rows(counts).iter().map(|row| row.get(0)).collect();
        // In the original, 3.7 % of the rows, then 0.9 %. A key beside the frequent ones stands for several.
        assert!(counts[0] < 400 && counts[1] < 250, "{options}: {:?}", &counts[..10]);
        let (tenth, median, most) = (counts[counts.len() / 10], counts[counts.len() / 2], counts[0]);
        assert!(2 * tenth >= 3 * median, "{options}: {tenth} {median} {most}");
    }
}
