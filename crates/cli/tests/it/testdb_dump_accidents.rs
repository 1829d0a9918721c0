//! Rewriting of dumps that does not come to its end, or has to do with more than fits.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::{Ran, Rig, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Need, require, until_some as until};

/// An interrupted command leaves no incomplete file under any name.
#[test]
fn an_interrupted_rewriting_leaves_nothing() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let output = files.path().join("fast.sql");
    let mut command = rig.command(&format!("testdb unlog -o {}", output.display()));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all("CREATE TABLE t ();\n".repeat(200_000).as_bytes()).unwrap();
    let written = || {
        std::fs::read_dir(files.path()).unwrap().next().map(|file| file.unwrap().metadata().unwrap().len())
    };
    until("a file that is begun", || written().filter(|length| *length > 0));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(stdin);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stderr.contains("interrupted: pgrig wrote nothing"), "{ran:#?}");
    assert_eq!(written(), None);
}

/// Bytes of the large dump's rows.
const LARGE: u64 = 1_000_000_000;
/// Kilobytes of memory that it may take: the program itself, a buffer of 1 MiB, and some.
const MEMORY: u64 = 64 * 1024;

/// A gigabyte passes through in a few megabytes of memory, and the reader may close the pipe early.
#[test]
fn a_gigabyte_takes_no_memory() {
    let rig = Rig::new();
    let mut command = rig.command("testdb unlog");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let written = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).unwrap());
    let rows = "17\tCREATE TABLE t ();\t\\N\t'\n".repeat(40_000);
    let inserts = "INSERT INTO t VALUES (17, 'CREATE TABLE t ();', NULL, E'\\'');\n".repeat(20_000);
    let parts = [
        ("CREATE TABLE t ();\nCOPY t FROM stdin;\n", 1),
        (&rows, LARGE / rows.len() as u64),
        ("\\.\n", 1),
        (&inserts, LARGE / 10 / inserts.len() as u64),
    ];
    let mut length = 0;
    for (text, times) in parts {
        for _ in 0..times {
            stdin.write_all(text.as_bytes()).unwrap();
        }
        length += text.len() as u64 * times;
    }
    // All but what the pipe holds has been read.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak = peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(written.join().unwrap(), length + "UNLOGGED ".len() as u64);
    assert!(peak < MEMORY, "{peak} kB");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let dump = files.path().join("dump.sql");
    std::fs::write(&dump, "INSERT INTO t VALUES (1);\n".repeat(200_000)).unwrap();
    let mut command = rig.command(&format!("testdb unlog {}", dump.display()));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("error"), "{ran:#?}");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// pg_dump of a server's database.
fn dump(server: &Server<'_>, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("pg_dump").args(arguments).args(["-d", &server.url]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// It reads a pipe to which nobody writes.
#[test]
fn an_interrupted_pg_restore_ends() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13");
    server.rows("CREATE TABLE t AS SELECT 1 AS a");
    let files = tempfile::tempdir().unwrap();
    let archive = files.path().join("archive");
    dump(&server, &["-Fd", "-f", archive.to_str().unwrap()]);
    let data = std::fs::read_dir(&archive).unwrap().map(|file| file.unwrap().path());
    for file in data.filter(|path| path.to_str().unwrap().contains(".dat") && !path.ends_with("toc.dat")) {
        std::fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let mut command = rig.command(&format!("testdb unlog {}", archive.display()));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let restorer = until("pg_restore runs", || child_of(child.id(), "--file=-"));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    let command_line = format!("/proc/{restorer}/cmdline");
    until("pg_restore is gone", || std::fs::read(&command_line).unwrap_or_default().is_empty().then_some(()));
}

/// The process that another one started with this argument.
fn child_of(parent: u32, argument: &str) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|text| text.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

/// The new file has the permissions of the file that it replaces.
#[test]
fn a_replaced_file_keeps_its_permissions() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let private = files.path().join("private.sql");
    std::fs::write(&private, "CREATE TABLE t ();\n").unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    rig.done(&format!("testdb unlog {0} -o {0}", private.display()));
    assert_eq!(std::fs::read_to_string(&private).unwrap(), "CREATE UNLOGGED TABLE t ();\n");
    assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_breaks_off_does_not_look_whole() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let dump = files.path().join("dump.sql");
    std::fs::write(&dump, "INSERT INTO t VALUES (1);\n".repeat(200_000) + "SELECT 'x").unwrap();
    let written = files.path().join("dump.sql.gz");
    // Through a pipe, of which something is written before the end is seen.
    let mut command = rig.command("testdb unlog --compress gzip");
    command.stdin(Stdio::piped()).stdout(std::fs::File::create(&written).unwrap()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(&dump).unwrap()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(!testkit::does("gzip", &["-t", written.to_str().unwrap()]), "{ran:#?}");
}

/// In SJIS the second byte of a character may be a backslash, which an escape string must not see.
#[test]
fn dumps_in_client_encodings_are_read_as_psql_reads_them() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13");
    server.rows("CREATE TABLE t (a text)");
    server.rows("COMMENT ON TABLE t IS '表'");
    server.rows("INSERT INTO t VALUES ('表'), ('); CREATE TABLE no (a int); --')");
    for off in ["on", "off"] {
        let options = format!("options=-cstandard_conforming_strings%3D{off}");
        let url = format!("{}{}{options}", server.url, if server.url.contains('?') { "&" } else { "?" });
        let output = Command::new("pg_dump").args(["-E", "SJIS", "--inserts", "-d", &url]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = tempfile::tempdir().unwrap();
        let (plain, fast) = (files.path().join("plain.sql"), files.path().join("fast.sql"));
        std::fs::write(&plain, &output.stdout).unwrap();
        rig.done(&format!("testdb unlog {} -o {}", plain.display(), fast.display()));
        let fast = std::fs::read(&fast).unwrap();
        let at = fast.windows(9).position(|bytes| bytes == b"UNLOGGED ").expect("a table");
        assert_eq!([&fast[..at], &fast[at + 9..]].concat(), output.stdout, "only one place is changed");
    }
}
