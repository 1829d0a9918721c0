//! Partitions without generated rows, writes that change no row, and unknown time zones, in the output and the gates of `pgrig ddl`.

use std::fs;

use testkit::assert_says;

use crate::support::Rig;

/// pgrig chooses no values outside of bounds for a column with a CHECK.
const SCHEMA: &str = "
    CREATE TABLE events (id int NOT NULL, at date NOT NULL, CONSTRAINT late CHECK (at > '2000-01-01')) PARTITION BY RANGE (at);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE events_default PARTITION OF events DEFAULT;
";
const ADD: &str =
    "CREATE TABLE events_2027 PARTITION OF events FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')";

#[test]
fn the_plan_names_the_share_of_a_default_partition() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, SCHEMA.replace(", CONSTRAINT late CHECK (at > '2000-01-01')", "")).unwrap();
    let mut command = rig.command("ddl --quick --rows 1000 --instance ddl");
    command.args(["-c", ADD, "--schema-file"]).arg(&schema);
    let ran = command.output().unwrap();
    let text = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_says(&text, &["10 % of the rows of events in events_default (assumed share)"]);
    assert!(!text.contains("has no generated rows"), "{text}");
}

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
    assert_says(
        &stderr,
        &[
            "counts as true, because pgrig could not check it:",
            reason,
            "statement 1 works on a partition without rows",
        ],
    );
    assert_says(&stderr, &["--column 'events.at=SPEC'"]);
    let (status, _, stderr) = told("class=rewrite");
    assert_eq!(status, Some(0), "{stderr}");
}

/// It passes no gate of the class that it would have if it changed rows, and none of waits.
#[test]
fn an_update_that_changes_no_row_is_not_measured() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    let posts = "CREATE TABLE posts (id int PRIMARY KEY, root text); CREATE INDEX ON posts (root);";
    fs::write(&schema, posts).unwrap();
    let told = |gate: &str| {
        let mut command = rig.command("ddl --quick --rows 1000 --instance ddl -c");
        command.args(["UPDATE posts SET id = id WHERE root = ''", "--fail-if", gate, "--schema-file"]);
        let ran = command.arg(&schema).output().unwrap();
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let reason = "it changes no row of posts, because no generated row satisfies its conditions";
    for gate in ["class=rows", "stall>3600s"] {
        let (status, stdout, stderr) = told(gate);
        assert_eq!(status, Some(3), "{gate}: {stderr}");
        assert_says(&stdout, &["at any size not known:", reason]);
        let warning = "the class and the time of statement 1 in the original are not measured:";
        assert_says(
            &stderr,
            &[warning, &format!("{gate} counts as true, because pgrig could not check it:"), reason],
        );
        assert_says(&stderr, &["--column 'posts.COLUMN=SPEC'"]);
    }
    let (status, _, stderr) = told("class=rewrite");
    assert_eq!(status, Some(0), "{stderr}");
}

/// In UTC, the server does not rewrite the table. The time zone in production may be another one.
#[test]
fn a_change_to_timestamptz_passes_no_gate_of_rewrites_without_a_time_zone() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE orders (id int PRIMARY KEY, placed timestamp)").unwrap();
    let told = |options: &str| {
        let mut command = rig.command(&format!("ddl --quick --rows 1000 --instance ddl {options} --fail-if"));
        command.args(["class=rewrite", "-c", "ALTER TABLE orders ALTER placed TYPE timestamptz"]);
        let ran = command.arg("--schema-file").arg(&schema).output().unwrap();
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let (status, stdout, stderr) = told("");
    assert_eq!(status, Some(3), "{stderr}");
    // The instance has the time zone of the machine.
    if !stderr.contains("its class is rewrite") {
        let reason = "the time zone decides whether PostgreSQL rewrites the table (orders.placed)";
        assert_says(
            &stderr,
            &[
                "class=rewrite counts as true, because pgrig could not check it:",
                reason,
                "--set TimeZone=ZONE",
            ],
        );
        assert_says(&stdout, &["at any size not known:", reason]);
    }
    let (status, _, stderr) = told("--set TimeZone=UTC");
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
fn a_step_of_a_better_way_on_a_partition_without_rows_says_so() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, SCHEMA).unwrap();
    let mut command = rig.command("ddl --quick --rows 1000 --alternatives --instance ddl");
    command.args(["-c", "CREATE INDEX ON events (id)", "--schema-file"]).arg(&schema);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:#?}");
    let text = String::from_utf8_lossy(&ran.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = "the default partition events_default has no generated rows";
    assert_says(&text, &["CREATE INDEX CONCURRENTLY events_default_id_idx ON"]);
    assert_eq!(text.matches(&format!("time in the original not known: {reason}")).count(), 1, "{text}");
}
