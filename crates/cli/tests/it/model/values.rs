//! `model show --values`: the values of the original that are in the file.

use std::collections::BTreeSet;
use std::fs;

use ::model::{Model, Values};

use super::captured;
use crate::support::{Rig, Server};

/// `points` has 500 values with 40 rows each, `amount` a value for each row, `town` many texts.
const SCORES: &str = "
    create table scores (id int primary key, town text, points int not null, amount int not null);
    insert into scores
    select i, 'Town number ' || i % 3000, i % 500 * 7, i::int8 * 7919 % 200003 * 13
    from generate_series(1, 20000) i;
    analyze";

/// Frequent values and histogram bounds of the original.
fn known(original: &Server<'_>, column: &str) -> BTreeSet<String> {
    let query = format!(
        "SELECT unnest(coalesce(most_common_vals::text::text[], '{{}}') || coalesce(histogram_bounds::text::text[], '{{}}'))
         FROM pg_stats WHERE tablename = 'scores' AND attname = '{column}'"
    );
    original.rows(&query).iter().map(|row| row.get(0)).collect()
}

/// Values of a column that the list contains.
fn listed(shown: &str, column: &str) -> BTreeSet<String> {
    let of_column = |line: &&str| line.starts_with(&format!("public.scores.{column}"));
    let lines = shown.lines().filter(of_column).filter_map(|line| line.split_once(": "));
    lines.flat_map(|(_, values)| values.split(", ")).map(|value| value.trim_matches('"').to_owned()).collect()
}

#[test]
fn each_value_of_the_original_in_the_file_is_listed() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    let original = server.database("original");
    original.execute(SCORES);
    let path = captured(&rig, "--keep-values scores.town");
    let model = Model::read(&fs::read_to_string(&path).unwrap()).unwrap();
    let shown = rig.done(&format!("model show {path} --values")).stdout;
    for column in ["points", "amount", "town"] {
        let values = &model.tables[0].columns.iter().find(|of| of.name == column).unwrap().values;
        let in_file: BTreeSet<String> = match values {
            Values::Statistics { common, bounds, .. } => {
                common.iter().map(|(value, _)| value).chain(bounds).cloned().collect()
            }
            Values::List { values, .. } => values.iter().map(|(value, _)| value.clone()).collect(),
            other => panic!("{column}: {other:?}"),
        };
        let expected: BTreeSet<String> = in_file.intersection(&known(&original, column)).cloned().collect();
        assert_eq!(listed(&shown, column), expected, "{column}: {shown}");
    }
    // The histogram stays where many rows have each value, and with --keep-values.
    assert!(shown.contains("public.scores.points, bounds of the histogram: "), "{shown}");
    assert!(listed(&shown, "points").len() > 30 && listed(&shown, "town").len() > 90, "{shown}");
    // Elsewhere no bound does.
    assert!(listed(&shown, "amount").is_empty(), "{shown}");
    let ddl = "CREATE TABLE scores (points int);";
    let by_hand = rig.home.path().join("by-hand.toml");
    fs::write(&by_hand, format!("format = 5\nddl = \"{ddl}\"\n")).unwrap();
    let shown = rig.done(&format!("model show {} --values", by_hand.display())).stdout;
    assert!(shown.contains("no value of the original"), "{shown}");
}

/// The server checks texts of such a database when it sends them as UTF-8.
#[test]
fn texts_without_an_encoding_are_replaced() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE DATABASE original ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    server.execute("CREATE DATABASE copy");
    server.database("original").execute(
        "CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, town text, region text);
         CREATE STATISTICS of_towns (mcv) ON town, region FROM people;
         INSERT INTO people SELECT i, E'M\\374ller ' || i, E'K\\366ln ' || i % 7, E'Th\\374ringen ' || i % 7 FROM generate_series(1, 2000) i;
         ANALYZE",
    );
    for options in ["", "--aggregates"] {
        let model = captured(&rig, options);
        let copy = server.database("copy");
        copy.execute("DROP TABLE IF EXISTS people");
        rig.done(&format!("fill --model {model} --instance default -d copy -q"));
        assert_eq!(copy.number("SELECT count(DISTINCT town) FROM people"), 7);
        assert_eq!(copy.number("SELECT count(*) FROM people"), 2_000);
    }
}
