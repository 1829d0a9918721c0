//! The lines that `pgrig ddl` shows on a terminal.

use std::fs;

use crate::support::{Rig, on_terminal};
use testkit::until;

/// The schema takes time here, which its tables take if they are many.
#[test]
fn a_step_that_takes_time_is_shown_below_its_stage() {
    let rig = Rig::new();
    let path = rig.home.path().join("schema.sql");
    fs::write(&path, "CREATE TABLE t (id int PRIMARY KEY); DO $$ BEGIN PERFORM pg_sleep(2); END $$;")
        .unwrap();
    let command = rig.command(&format!("ddl --schema-file {} --rows 10 --quick -c VACUUM", path.display()));
    let (pgrig, shown) = on_terminal(command);
    let mut seen = String::new();
    for stage in [
        "running the migration on tables without rows",
        "choosing the rows of the tables",
        "filling the tables",
    ] {
        let mut before = None;
        until("the step is shown", || {
            seen.extend(shown.try_iter());
            before = before.or_else(|| seen.find(stage));
            before.is_some_and(|before| seen[before..].contains("creating the tables, "))
        });
    }
    assert_eq!(pgrig.end().code, Some(0), "{seen}");
}
