//! Values in TOAST tables, of which pg_stats has no lengths.

use super::captured;
use crate::support::{Rig, Server};

/// Texts and documents of 1,920 characters, and a column of which half of the values are as long.
const DOCUMENTS: &str = "
    create table doc(id int primary key, body text, j jsonb, mixed text);
    insert into doc select i, long, jsonb_build_object('text', long), case when i % 2 = 0 then 'small' || i else long end
      from generate_series(1, 1500) i,
           lateral (select string_agg(md5(i::text || part), '') from generate_series(1, 60) part) x (long)";

#[test]
fn values_in_toast_have_their_size() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    let original = server.database("original");
    original.execute(DOCUMENTS);
    original.execute("ANALYZE");
    let path = rig.home.path().join("doc.toml").display().to_string();
    let said = rig.done(&format!("model capture --instance default -d original -o {path}")).stderr;
    assert!(said.contains("of its values are in a TOAST table") && said.contains("--aggregates"), "{said}");
    assert!(!said.contains("no statistics"), "{said}");
    let size = |server: &Server<'_>| server.number("SELECT pg_total_relation_size('doc')");
    let length = |server: &Server<'_>, column: &str| {
        server.number(&format!("SELECT avg(length({column}::text))::int8 FROM doc"))
    };
    let filled = |name: &str, model: &str| {
        server.execute(&format!("CREATE DATABASE {name}"));
        rig.done(&format!("fill --model {model} --instance default -d {name} -q"));
        server.database(name)
    };
    let copy = filled("estimated", &path);
    let (ours, theirs) = (size(&original), size(&copy));
    assert!((ours - theirs).abs() < ours / 5, "{ours} {theirs}");
    // Half of the bodies stay in their rows, because the documents have left them: statistics tell only the mean width there.
    for (column, least) in [("body", 900), ("j", 1_600)] {
        let found = length(&copy, column);
        assert!((least..3_000).contains(&found), "{column}: {found}");
    }
    let copy = filled("measured", &captured(&rig, "--aggregates"));
    for (column, wanted) in [("body", 1_920), ("mixed", 964)] {
        let found = length(&copy, column);
        assert!((found - wanted).abs() < wanted / 5, "{column}: {found}, not {wanted}");
    }
}
