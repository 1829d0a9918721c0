//! Copies of small tables: sizes in bytes, groups of values far from each other, numbers of rows for each key, and prices of lines
//! that are those of the media.

use std::collections::HashSet;
use std::fs;

use super::captured;
use crate::support::{Rig, Server};

/// Songs with 6 % of films, which are larger, longer and dearer; playlists, of which two have all of them; and lines of invoices with the prices.
const STORE: &str = "
    create table media(id int primary key, bytes int8 not null, length int not null, price numeric(6,2) not null);
    create table lists(id int primary key);
    create table entries(list_id int references lists, medium_id int references media, primary key (list_id, medium_id));
    create table invoices(id int primary key);
    create table lines(id int primary key, invoice_id int references invoices, medium_id int references media, price numeric(6,2) not null);
    select setseed(0.25);
    insert into media
    select i, size, size * (0.9 + 0.2 * random()) / case when is_film then 60 else 30 end, case when is_film then 1.99 else 0.99 end
    from (select i, is_film, (case when is_film then 4e8 * exp(0.15 * ln(x / (1 - x))) else 7e6 * exp(0.25 * ln(x / (1 - x))) end)::int8 as size
          from (select i, i between 2801 and 3010 as is_film, 0.0005 + 0.999 * random() as x from generate_series(1, 3500) i) y) z;
    insert into lists select generate_series(1, 12);
    insert into entries select l, m from generate_series(1, 12) l, generate_series(1, 3500) m
        where l in (1, 8) or l = 5 and m % 7 < 3 or l in (9, 11) and m % 40 = l order by l, m;
    insert into invoices select generate_series(1, 400);
    insert into lines
    select row_number() over (order by i, n), i, m, price
    from (select i, n, 1 + floor(3500 * random())::int as m
            from generate_series(1, 400) i, generate_series(1, (array[1, 2, 2, 4, 6, 9, 14])[1 + i % 7]) n) x
    join media on media.id = m;
    analyze";

fn keeps_groups_and_rows(version: &str, method: &str) {
    let rig = Rig::new();
    let server = rig.server(&format!("{version} --set autovacuum=off"));
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let (original, copy) = (server.database("original"), server.database("copy"));
    original.execute(STORE);
    let model = captured(&rig, "--aggregates");
    rig.done(&format!("fill --model {model} --instance default -d copy -q --method {method}"));

    keeps_sizes(&original, &copy);
    // About as many media are in two, three and four lists. Exactly as many are, unless the histogram would be off by 1.5 %.
    let of_media = "SELECT n, count(*) AS media FROM (SELECT count(*) AS n FROM entries GROUP BY medium_id) x GROUP BY n";
    for lists in 2..=4 {
        let media = format!("SELECT coalesce(sum(media), 0)::bigint FROM ({of_media}) y WHERE n = {lists}");
        let (theirs, ours) = (original.number(&media), copy.number(&media));
        assert!((theirs - ours).abs() <= 50, "{lists}: {theirs} {ours}");
    }
    // Lines with the higher price refer to films, or to media near them.
    let near = "SELECT count(*) FROM lines WHERE price > 1 AND medium_id BETWEEN 2500 AND 3300";
    let (theirs, ours) = (original.number(near), copy.number(near));
    assert!(theirs > 100 && (theirs - ours).abs() < 30, "{theirs} {ours}");

    keeps_no_size(&original, &copy, &fs::read_to_string(&model).unwrap());
}

/// Sizes in bytes are amounts, not codes; and the groups of the two prices stay apart.
fn keeps_sizes(original: &Server<'_>, copy: &Server<'_>) {
    let shares = [0.1, 0.3, 0.5, 0.7, 0.9];
    let quantiles =
        format!("SELECT percentile_disc(ARRAY{shares:?}) WITHIN GROUP (ORDER BY bytes) FROM media");
    let bounds: Vec<i64> = original.row(&quantiles).get(0);
    for (share, bound) in shares.into_iter().zip(bounds) {
        let below: f64 = copy.row(&format!("SELECT avg((bytes <= {bound})::int)::float8 FROM media")).get(0);
        assert!((below - share).abs() < 0.02, "{bound}: {below}, not {share}");
    }
    let films = "SELECT count(*) FROM media WHERE price > 1 AND bytes > 80000000";
    assert_eq!(original.number(films), 210);
    assert!(copy.number(films) > 170, "{}", copy.number(films));
    for (other, most) in [("price", 130), ("length", 250)] {
        let correlation = format!("SELECT (1000 * corr(bytes, {other}))::bigint FROM media");
        let (theirs, ours) = (original.number(&correlation), copy.number(&correlation));
        assert!((theirs - ours).abs() < most, "{other}: {theirs} {ours}");
    }
}

/// No size of the statistics is in the model, and sizes are in the copy by chance at most.
fn keeps_no_size(original: &Server<'_>, copy: &Server<'_>, model: &str) {
    let sizes = |server: &Server<'_>, query: &str| -> HashSet<i64> {
        server.rows(query).iter().map(|row| row.get(0)).collect()
    };
    let bounds = "SELECT unnest(histogram_bounds::text::int8[]) FROM pg_stats WHERE tablename = 'media' AND attname = 'bytes'";
    let bounds = sizes(original, bounds);
    assert!(bounds.len() > 90, "{}", bounds.len());
    let told: Vec<&i64> = bounds.iter().filter(|size| model.contains(&format!("\"{size}\""))).collect();
    assert!(told.is_empty(), "{told:?}");
    let all = "SELECT bytes FROM media";
    let (before, after) = (sizes(original, all), sizes(copy, all));
    let common = before.intersection(&after).count();
    assert!(before.len() > 3_400 && after.len() > 3_400 && common < 10, "{common}");
}

#[test]
fn small_tables_keep_groups_of_values_and_rows_for_each_key_by_copy_13() {
    keeps_groups_and_rows("--pg-version 13", "copy");
}

#[test]
fn small_tables_keep_groups_of_values_and_rows_for_each_key_as_pages_18() {
    keeps_groups_and_rows("--pg-version 18", "direct");
}
