//! Files that a command cannot read as they are: compressed, for psql, pipes.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::{JoinHandle, spawn};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Ran, Rig};

/// A pipe, as `<(…)` in a shell makes it, and its writer.
fn pipe(path: &Path) -> JoinHandle<()> {
    mkfifo(path, Mode::S_IRWXU).unwrap();
    let path = path.to_owned();
    spawn(move || fs::write(path, "CREATE TABLE piped (id int PRIMARY KEY);\n").unwrap())
}

#[test]
fn files_that_are_not_sql_get_a_remedy() {
    let rig = Rig::new();
    let place = rig.home.path().join("files");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("shop.sql.gz"), b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    fs::write(place.join("inc.sql"), "\\i other.sql\n").unwrap();
    fs::write(place.join("all.sql"), "CREATE TABLE a (id int);\n\\connect other\n").unwrap();
    for (ddl, told) in [
        ("shop.sql.gz", "it is compressed: decompress it (for example with gzip -dk shop.sql.gz)"),
        ("inc.sql", "replace the line by the content of other.sql"),
        ("all.sql", "Give a file for one database"),
        ("CREATE TABLE x (a int)", "there is no file of this name. To give SQL, write it to standard input"),
        (".", "it is a directory; give a file"),
    ] {
        let mut command = rig.command("fill --rows 3");
        command.args(["--ddl", ddl]);
        let ran = Ran::from(command.current_dir(&place).stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ddl}: {ran:#?}");
        assert!(ran.stderr.contains(told), "{ddl}: {ran:#?}");
    }
    let ran = Ran::from(rig.command("tps -f shop.sql.gz").current_dir(&place).output().unwrap());
    assert!(ran.code == Some(2) && ran.stderr.contains("gzip -dk shop.sql.gz"), "{ran:#?}");
}

#[test]
fn a_pipe_is_read_once() {
    let rig = Rig::new();
    let server = rig.server("");
    let path = rig.home.path().join("pipe");
    let writer = pipe(&path);
    rig.done(&format!("fill --ddl {} --rows 3", path.display()));
    writer.join().unwrap();
    assert_eq!(server.number("SELECT count(*) FROM piped"), 3);
    // The keeper reads it later.
    let refused = rig.run(&format!("testdb new --from {}", path.display()));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("is not possible with a pipe or a device: give a file"), "{refused:#?}");
}
