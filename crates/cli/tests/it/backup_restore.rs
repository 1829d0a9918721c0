//! `pgrig backup check --restore`: exit status, results, and what is left after Ctrl-C and kill -9.

use std::fs;
use std::process::Command;

use testkit::{Need, assert_says, require};

use crate::backup::assert_ends_by_signals;
use crate::support::Rig;

#[test]
fn a_restore_decides_the_exit_status_and_leaves_nothing() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let own = rig.home.path().join("backup");
    let server = rig.server("--pg-version 13 --profile stock");
    server.execute("CREATE ROLE app");
    server.execute("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 3000) i");
    server.execute("ALTER TABLE t ADD PRIMARY KEY (i)");
    server.execute("ALTER TABLE t OWNER TO app");
    let path = |name: &str| rig.home.path().join(name).display().to_string();
    let dump = path("shop.sql");
    let mut made = Command::new("pg_dump");
    assert!(made.args(["--file", &dump, &server.url]).status().unwrap().success());

    let json = path("found.json");
    let found = rig.run(&format!("backup check {dump} --restore --json {json}"));
    assert_eq!(found.code, Some(0), "{found:#?}");
    assert_says(
        &found.stdout,
        &[
            "no damage found: dump as SQL",
            "restored into PostgreSQL 13",
            "3,000 rows in 1 table, 1 valid constraint",
        ],
    );
    assert_says(&found.stdout, &["sound B-tree indexes (amcheck)", "roles that it does not create: app"]);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document["restored"]["rows"], 3000);
    assert!(!own.exists());

    let text = fs::read_to_string(&dump).unwrap();
    let end = "--\n-- PostgreSQL database dump complete";
    let changed = path("changed.sql");
    fs::write(&changed, text.replace(end, &format!("ALTER TABLE missing ADD c int;\n{end}"))).unwrap();
    let failed = rig.run(&format!("backup check {changed} --restore"));
    assert_eq!(failed.code, Some(3), "{failed:#?}");
    assert_says(&failed.stdout, &["with 1 error in ", "relation \"missing\" does not exist"]);
    assert_says(&failed.stderr, &["changed.sql cannot be restored without errors"]);

    // Its name is no option of pg_restore.
    let mut made = Command::new("pg_dump");
    made.args(["--format=custom", "--file", &path("-x.dump"), &server.url]);
    assert!(made.status().unwrap().success());
    let mut command = rig.command("backup check --restore -- -x.dump");
    let output = command.current_dir(rig.home.path()).output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    assert_says(&String::from_utf8_lossy(&output.stdout), &["3,000 rows in 1 table, 1 valid constraint"]);

    // A statement that does not end.
    fs::write(&changed, text.replace(end, &format!("SELECT pg_sleep(100000);\n{end}"))).unwrap();
    assert_ends_by_signals(&rig, &format!("backup check {changed} --restore"), "restoring the dump");

    for (line, says) in [
        ("backup check - --restore", "give it as a file or a directory"),
        ("backup check x.dump --bin /etc", "--bin is for a restore: give --restore, too"),
        ("backup check x.dump --superuser me", "--superuser is for a restore: give --restore, too"),
        ("backup check x.dump --restore --pg-version 12", "give a version from 13 to 18"),
        (&format!("backup check {dump} --restore --bin /etc"), "--bin /etc: it has no pg_dump"),
    ] {
        let mut command = rig.command(line);
        let output = command.stdin(fs::File::open(&dump).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}: the backup is read");
        assert_says(&String::from_utf8_lossy(&output.stderr), &[says]);
    }
    fs::write(&changed, &text[..text.len() / 2]).unwrap();
    let damaged = rig.run(&format!("backup check {changed} --restore"));
    assert_eq!(damaged.code, Some(3), "{damaged:#?}");
    assert_says(&damaged.stderr, &["is damaged, so pgrig did not restore it"]);
    assert!(!own.exists());
}
