//! Partitions without generated rows, in the output and the gates of `pgrig ddl`.

use std::fs;

use testkit::assert_says;

use crate::support::Rig;

/// pgrig chooses no values outside of bounds of this type.
const SCHEMA: &str = "
    CREATE TABLE events (id int NOT NULL, at float8 NOT NULL) PARTITION BY RANGE (at);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (1000);
    CREATE TABLE events_default PARTITION OF events DEFAULT;
";
const ADD: &str = "CREATE TABLE events_4 PARTITION OF events FOR VALUES FROM (3000) TO (4000)";

/// A gate of a time that is not measured does not pass; one of the class is checked.
#[test]
fn a_scan_of_a_default_partition_without_rows_is_not_measured() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, SCHEMA).unwrap();
    let told = |gate: &str| {
        let mut command = rig.command("ddl --quick --rows 1000 --instance ddl");
        command.args(["-c", ADD, "--fail-if", gate, "--schema-file"]).arg(&schema);
        let ran = command.output().unwrap();
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let reason = "the default partition events_default has no generated rows";
    let (status, stdout, stderr) = told("lock=ACCESS EXCLUSIVE>1h");
    assert_eq!(status, Some(3), "{stderr}");
    assert_says(&stdout, &["at any size not known:", reason]);
    assert_says(&stderr, &["was not checked:", reason, "statement 1 works on a partition without rows"]);
    assert_says(&stderr, &["--column 'events.at=SPEC'"]);
    let (status, _, stderr) = told("class=rewrite");
    assert_eq!(status, Some(0), "{stderr}");
}
