//! Output files that are inputs, or other outputs: refused before any work.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::lending::inherit;
use crate::support::{Ran, Rig};

const INPUT: &str = "CREATE TABLE t (id int PRIMARY KEY);\n";

/// A directory with an input, and a second name of it.
fn place(rig: &Rig) -> PathBuf {
    let place = rig.home.path().join("files");
    fs::create_dir_all(place.join("base")).unwrap();
    fs::write(place.join("s.sql"), INPUT).unwrap();
    fs::hard_link(place.join("s.sql"), place.join("hard")).unwrap();
    place
}

/// Runs pgrig in that directory, which must refuse, leave all as it is, and start nothing.
#[track_caller]
fn refused(rig: &Rig, place: &Path, arguments: &str, stdin: Stdio, told: &str) {
    let ran = Ran::from(rig.command(arguments).current_dir(place).stdin(stdin).output().unwrap());
    assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
    assert!(ran.stderr.contains(told), "{arguments}: {ran:#?}");
    assert_eq!(fs::read_to_string(place.join("s.sql")).unwrap(), INPUT, "{arguments}");
    let names = |directory: &Path| fs::read_dir(directory).unwrap().count();
    assert_eq!((names(rig.home.path()), names(place)), (1, 3), "{arguments}");
}

#[test]
fn an_input_is_not_overwritten() {
    let rig = Rig::new();
    let place = place(&rig);
    for (arguments, told) in [
        ("backup check s.sql --json hard", "--json hard would overwrite s.sql, which pgrig reads"),
        ("backup rehearse --size 1GB --schema-file s.sql --json s.sql", "overwrite --schema-file s.sql"),
        ("fill --ddl s.sql --rows 3 --json s.sql", "--json s.sql would overwrite --ddl s.sql"),
        ("fill --model s.sql --report ./hard", "--report ./hard would overwrite --model s.sql"),
        ("tps -f s.sql@3 --json s.sql", "overwrite -f s.sql,"),
        ("tps -n -f s.sql --part 1/2 --merge hard", "--merge hard would overwrite -f s.sql"),
        ("ddl s.sql -d shop --json s.sql", "overwrite s.sql"),
        ("ddl -c VACUUM --schema-file s.sql --json s.sql", "overwrite --schema-file s.sql"),
        ("micro --suite s.sql --json s.sql", "overwrite --suite s.sql"),
        ("model check s.sql copy --json s.sql", "overwrite s.sql"),
        ("testdb bench --from s.sql --json s.sql -- true", "overwrite --from s.sql"),
        ("testdb serve --from s.sql --ready-file s.sql", "--ready-file s.sql would overwrite --from s.sql"),
        ("compare s.sql s.sql --json hard", "--json hard would overwrite s.sql"),
        ("merge s.sql -o s.sql", "-o s.sql would overwrite s.sql"),
        ("report s.sql -o s.sql", "-o s.sql would overwrite s.sql"),
        ("runs export s.sql -o s.sql --force", "-o s.sql would overwrite s.sql"),
    ] {
        refused(&rig, &place, arguments, Stdio::null(), told);
    }
    let stdin = || Stdio::from(File::open(place.join("s.sql")).unwrap());
    let told = "--json s.sql would overwrite standard input, which pgrig reads";
    refused(&rig, &place, "fill --ddl - --rows 3 --json s.sql", stdin(), told);
    refused(&rig, &place, "backup check - --json s.sql", stdin(), told);
}

#[test]
fn nothing_is_written_into_a_backup() {
    let rig = Rig::new();
    let place = place(&rig);
    let told = "--json base/found.json is in the directory base, which pgrig reads";
    refused(&rig, &place, "backup check base --json base/found.json", Stdio::null(), told);
}

#[test]
fn two_outputs_have_two_files() {
    let rig = Rig::new();
    let place = place(&rig);
    let told = "--json new and --report ./new are the same file: give two names";
    refused(&rig, &place, "tps --json new --report ./new", Stdio::null(), told);
}

/// Relative paths lead nowhere there.
#[test]
fn a_deleted_working_directory_is_named() {
    let rig = Rig::new();
    let gone = rig.home.path().join("gone");
    for arguments in ["tps --json out.json", "tps --report out.html"] {
        fs::create_dir(&gone).unwrap();
        let pgrig = rig.command("");
        let mut shell = Command::new("sh");
        let script = format!("rmdir \"$PWD\"; exec {} {arguments}", env!("CARGO_BIN_EXE_pgrig"));
        shell.args(["-c", &script]).current_dir(&gone);
        inherit(&mut shell, &pgrig);
        let ran = Ran::from(shell.stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains("the working directory no longer exists"), "{arguments}: {ran:#?}");
    }
}
