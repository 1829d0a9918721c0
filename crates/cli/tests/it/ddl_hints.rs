//! Hints of `pgrig ddl`.

use std::fs;

use testkit::assert_says;

use crate::support::Rig;

/// A way that failed is not printed to paste, and the hint tells why.
#[test]
fn a_better_way_that_failed_is_no_statement_to_paste() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    // The name that pgrig gives to the constraint of the better way.
    let taken = "CONSTRAINT pgrig_better_1 CHECK (id IS NOT NULL)";
    fs::write(&schema, format!("CREATE TABLE t (id int PRIMARY KEY, n int, {taken});")).unwrap();
    let told = |alternatives: &[&str]| {
        let mut command = rig.command("ddl --quick --rows 100 --instance ddl");
        command.args(["-c", "ALTER TABLE t ADD CHECK (n > -2000000000)", "--schema-file"]).arg(&schema);
        let ran = command.args(alternatives).output().unwrap();
        assert!(ran.status.success(), "{ran:#?}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let pasted = "\n  ALTER TABLE t VALIDATE CONSTRAINT pgrig_better_1;";
    assert_says(&told(&[]), &[pasted]);
    let failed = told(&["--alternatives"]);
    assert_says(
        &failed,
        &["hint: statement 1: add the constraint NOT VALID", "failed when pgrig measured it"],
    );
    assert_says(&failed, &["\" failed: constraint \"pgrig_better_1\" for relation \"t\" already exists"]);
    assert!(!failed.contains(pasted), "{failed}");
}
