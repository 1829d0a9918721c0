//! The locale of the original, which `pgrig ddl --model` gives its copy of the tables.

use std::fs;

use super::captured;
use crate::support::Rig;

#[test]
fn a_model_has_the_locale_of_its_original() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-AT'");
    server.execute("CREATE DATABASE copy");
    let original = server.database("original");
    original
        .execute("CREATE TABLE names AS SELECT i AS id, md5(i::text) AS n FROM generate_series(1, 2000) i");
    original.execute("ANALYZE names");
    let model = captured(&rig, "");
    let text = fs::read_to_string(&model).unwrap();
    assert!(text.contains("[locale]\nprovider = \"icu\"\n"), "{text}");
    let shown = rig.done(&format!("model show {model}")).stdout;
    assert!(shown.lines().next().unwrap().ends_with(", k = 20, locale icu:de-AT"), "{shown}");
    // A fill takes the database as it is.
    rig.done(&format!("fill --model {model} --instance default -d copy -q"));
    assert_eq!(server.database("copy").number("SELECT count(*) FROM names"), 2_000);
    // A model of an earlier format has none.
    let (before, rest) = text.split_once("[locale]").unwrap();
    let (_, after) = rest.split_once("[[tables]]").unwrap();
    let earlier = format!("{before}[[tables]]{after}").replacen("format = 7", "format = 6", 1);
    fs::write(&model, earlier).unwrap();
    let shown = rig.done(&format!("model show {model}")).stdout;
    assert!(shown.lines().next().unwrap().ends_with(", k = 20"), "{shown}");
}
