//! Copies of tables whose key consists of two foreign keys, and of tables that refer to each other.

use super::captured;
use crate::support::Rig;

/// The first list and the eighth have nearly all tracks, others few, and some none. Popular products are on many orders.
const LISTS: &str = "
    create table lists(id int primary key);
    create table tracks(id int primary key);
    create table entries(list_id int references lists, track_id int references tracks, primary key (list_id, track_id));
    insert into lists select generate_series(1, 18);
    insert into tracks select generate_series(1, 3500);
    insert into entries select l, t from generate_series(1, 18) l, generate_series(1, 3500) t
        where l in (1, 8) and t % 16 > 0 or l = 5 and t % 3 = 0 or l in (9, 11, 14) and t % 100 = l or l = 17 and t = 700;
    create table products(id int primary key);
    create table orders(id int primary key);
    create table tags(product_id int references products, order_id int references orders, unique (order_id, product_id));
    insert into products select generate_series(1, 2000);
    insert into orders select generate_series(1, 20000);
    select setseed(0.5);
    insert into tags select distinct least(1 + floor(2000 * random() ^ 3), 2000)::int, o
        from generate_series(1, 20000) o, generate_series(1, 3) order by o;
    analyze";

/// The share of the rows that the most common keys have, at these ranks.
fn shares(server: &crate::support::Server<'_>, table: &str, column: &str) -> Vec<f64> {
    let query = format!(
        "SELECT count(*)::float8 / sum(count(*)) OVER ()::float8 FROM {table} GROUP BY {column} ORDER BY 1 DESC LIMIT 14"
    );
    server.rows(&query).iter().map(|row| row.get(0)).collect()
}

fn keeps_frequencies(version: &str, method: &str, options: &str) {
    let rig = Rig::new();
    let server = rig.server(&format!("{version} --set autovacuum=off"));
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(LISTS);
    let model = captured(&rig, options);
    rig.done(&format!("fill --model {model} --instance default -d copy -q --method {method}"));
    for (table, column, near) in [
        ("entries", "list_id", 0.002),
        ("entries", "track_id", 0.002),
        ("tags", "order_id", 0.002),
        ("tags", "product_id", 0.004),
    ] {
        let (theirs, ours) = (shares(&original, table, column), shares(&copy, table, column));
        for (at, share) in theirs.iter().enumerate() {
            let found = ours.get(at).copied().unwrap_or_default();
            assert!(
                (found - share).abs() < near,
                "{table}.{column}, rank {at}: {found}, not {share}: {ours:?}"
            );
        }
    }
    let lists = "SELECT count(DISTINCT list_id) FROM entries";
    assert_eq!(copy.number(lists), original.number(lists));
    // The same list is the largest one, and keys ascend as they do in the original.
    let whole = "SELECT count(*) FROM entries WHERE list_id IN (1, 8)";
    assert!((copy.number(whole) - original.number(whole)).abs() < 40, "{}", copy.number(whole));
    let disordered = "SELECT count(*) FROM (SELECT (list_id, track_id) < lag((list_id, track_id)) OVER (ORDER BY ctid) AS is_less
        FROM entries) x WHERE is_less";
    assert_eq!(copy.number(disordered), 0);
}

#[test]
fn keys_of_pairs_come_as_often_as_in_the_original_by_copy_13() {
    keeps_frequencies("--pg-version 13", "copy", "");
}

#[test]
fn keys_of_pairs_come_as_often_as_in_the_original_as_pages_18() {
    keeps_frequencies("--pg-version 18", "direct", "--aggregates");
}

/// Each house has one owner, and four fifths of the owners have a house.
const CYCLE: &str = "
    create table owners(id int primary key, house int);
    create table houses(id int primary key, owner int not null);
    insert into owners select i, case when i % 5 > 0 then i end from generate_series(1, 500) i;
    insert into houses select i, i from generate_series(1, 500) i;
    alter table owners add foreign key (house) references houses;
    alter table houses add foreign key (owner) references owners;
    analyze";

#[test]
fn keys_of_a_cycle_are_those_of_the_model() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    server.database("original").execute(CYCLE);
    let model = captured(&rig, "");
    for method in ["direct", "copy"] {
        server.execute(&format!("CREATE DATABASE {method}"));
        rig.done(&format!("fill --model {model} --instance default -d {method} -q --method {method}"));
        let copy = server.database(method);
        let owners = copy.number("SELECT count(DISTINCT owner) FROM houses");
        assert!(owners > 480, "{method}: {owners}");
        let ascends: f64 = copy.row("SELECT corr(id, owner)::float8 FROM houses").get(0);
        assert!(ascends > 0.95, "{method}: {ascends}");
        let houses = copy.number("SELECT count(DISTINCT house) FROM owners");
        assert!((380..=420).contains(&houses), "{method}: {houses}");
        let homeless = copy.number("SELECT count(*) FROM owners WHERE house IS NULL");
        assert!((80..=120).contains(&homeless), "{method}: {homeless}");
    }
}

/// A part of the orders has one to four lines each.
const LINES: &str = "
    create table orders (id int primary key, at date);
    insert into orders select i, date '2024-01-01' + i / 100 from generate_series(1, 20000) i;
    create table lines (order_id int not null references orders, no int not null, q int, primary key (order_id, no));
    insert into lines
    select o.id, g, 1 + g % 3 from orders o, generate_series(1, 1 + (hashint4(o.id) & 3)) g where o.id % 20 < {twentieths};
    analyze";

#[test]
fn orders_without_lines_stay_without() {
    for (twentieths, options) in [(5, ""), (12, "--aggregates"), (18, ""), (20, "")] {
        let rig = Rig::new();
        let server = rig.server("");
        server.execute("CREATE DATABASE original");
        server.execute("CREATE DATABASE copy");
        let (original, copy) = (server.database("original"), server.database("copy"));
        original.execute(&LINES.replace("{twentieths}", &twentieths.to_string()));
        let model = captured(&rig, options);
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        for lines in 1..=4 {
            let query = format!(
                "SELECT count(*) FROM (SELECT FROM lines GROUP BY order_id HAVING count(*) = {lines}) x"
            );
            let (ours, theirs) = (original.number(&query), copy.number(&query));
            assert!((ours - theirs).abs() <= 60 + ours / 20, "{twentieths} {lines}: {ours} {theirs}");
        }
    }
}
