//! Homes of earlier and of later versions. `upgrade/home-1` is as pgrig 0.1.0 wrote it: runs, the record of an instance, and
//! the journal of a process that was killed. Its paths and its machine are made up.

use std::fs;
use std::path::Path;

use crate::support::Rig;

const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/upgrade/home-1");
/// The server in the journal.
const SYSTEM: &str = "7712015814012841880";

fn put(from: &Path, to: &Path, change: impl Fn(String) -> String) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&entry).unwrap();
        fs::write(to.join(entry.file_name().unwrap()), change(text)).unwrap();
    }
}

fn query(rig: &Rig, statement: &str) -> String {
    let mut command = rig.command("server psql -- -XAtqc");
    let output = command.arg(statement).output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_home_of_the_first_format_keeps_its_instance_runs_and_journals() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    // PostgreSQL's own files have their format from PostgreSQL.
    rig.server("");
    let directory = rig.status()["directory"].as_str().unwrap().to_owned();
    let system = query(&rig, "SELECT system_identifier FROM pg_control_system()");
    query(&rig, "CREATE TABLE kept AS SELECT 42 AS answer");
    query(&rig, "ALTER SYSTEM SET fsync = off");
    rig.done("server stop");
    let home = Path::new(HOME);
    put(&home.join("instance"), Path::new(&directory), |text| text);
    put(&home.join("runs"), &rig.home.path().join("runs"), |text| text);
    put(&home.join("journal"), &rig.home.path().join("journal"), |text| text.replace(SYSTEM, &system));

    // A server of its own alone: the process in the journal cannot use it.
    let started = rig.done("micro i --budget 1s");
    assert!(started.stderr.contains("restored now: fsync = on"), "{started:#?}");
    assert_eq!(fs::read_dir(rig.home.path().join("journal")).unwrap().count(), 0);
    rig.done("server start");
    assert_eq!(query(&rig, "SHOW fsync"), "on");
    // The instance's own setting, from its record.
    assert_eq!(query(&rig, "SHOW work_mem"), "8MB");
    assert_eq!(query(&rig, "SELECT answer FROM kept"), "42");

    let listed = rig.done("runs list");
    for id in ["20261125T080010Z-fill-1ca0e0d6e46", "20261125T080011Z-tps-25d0bbc8520"] {
        // The list shortens ids.
        assert!(listed.stdout.contains(&id[..16]) && !listed.stderr.contains("left out"), "{listed:#?}");
        let page = rig.home.path().join("run.html");
        rig.done(&format!("report {id} -o {}", page.display()));
        assert!(fs::read_to_string(page).unwrap().contains(id), "{id}");
    }
    let compared = rig.run("compare 20261125T080011Z-tps-25d0bbc8520 20261125T080011Z-tps-25d0bbc8520");
    assert!(!compared.stderr.contains("format"), "{compared:#?}");
    rig.done("server stop");
}

#[test]
fn what_a_newer_pgrig_wrote_is_refused_with_the_remedy() {
    let rig = Rig::new();
    let directory = rig.status()["directory"].as_str().map(str::to_owned);
    let directory = directory.unwrap_or_else(|| format!("{}/instances/default", rig.home.path().display()));
    let newer = r#"{ "format_version": 2, "layout": "of a later time" }"#;
    let write = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, newer).unwrap();
    };
    let run = rig.home.path().join("runs/20261125T080010Z-fill-1ca0e0d6e46.json");
    write(&run);
    let listed = rig.run("runs list");
    assert!(listed.stderr.contains("has format 2"), "{listed:#?}");
    let reported = rig.run(&format!("report {}", run.display()));
    assert!(reported.code != Some(0) && reported.stderr.contains("has format 2"), "{reported:#?}");

    let record = Path::new(&directory).join("instance.json");
    write(&record);
    for arguments in ["server start", "fill 1MB"] {
        let refused = rig.run(arguments);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        let named = format!("a newer pgrig wrote {} (format 2; this pgrig knows 1)", record.display());
        assert!(refused.stderr.contains(&named) && refused.stderr.contains("PGRIG_HOME"), "{refused:#?}");
    }
    assert_eq!(fs::read_to_string(&record).unwrap(), newer, "it was changed");

    write(&rig.home.path().join("home.json"));
    for arguments in ["runs list", "fill 1MB", "server status", "doctor"] {
        let refused = rig.run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments}: {refused:#?}");
        assert!(refused.stderr.contains("home.json (format 2; this pgrig knows 1)"), "{refused:#?}");
    }
}
