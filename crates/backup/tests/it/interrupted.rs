//! An interruption while a scratch server is initialised: pgrig waits for initdb, and removes its files. Before, while a plan is made: no program
//! is left.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use backup::{BackupError, Request, Site};
use pgserver::Home;
use testkit::{Need, block_on, require, templates, templates_of, until, until_async};

use crate::support::{Unwatched, assert_nothing_is_left, programs_with, server, ways};

const RELEASE: u16 = 13;
/// initdb that tells its beginning, and lasts longer than pgrig waits for other work of an interrupted run.
const SLOW: &str = "#!/bin/sh
: >'TOLD/begun'
sleep 3
exec 'REAL/initdb' \"$@\"
";

/// The server's programs in this directory, with the slow initdb, and the file that tells its beginning.
fn slow_programs(directory: &Path) -> (PathBuf, PathBuf) {
    testkit::open_to_all(directory);
    let (real, bin, told) = (templates_of(RELEASE), directory.join("bin"), directory.join("told"));
    for new in [&bin, &told] {
        fs::create_dir(new).unwrap();
    }
    for name in ["lib", "share"] {
        symlink(real.join(name), directory.join(name)).unwrap();
    }
    for entry in fs::read_dir(real.join("bin")).unwrap().flatten() {
        if entry.file_name() != "initdb" {
            symlink(entry.path(), bin.join(entry.file_name())).unwrap();
        }
    }
    let script = SLOW.replace("TOLD", told.to_str().unwrap());
    let initdb = bin.join("initdb");
    fs::write(&initdb, script.replace("REAL", real.join("bin").to_str().unwrap())).unwrap();
    // The server's account runs it.
    for (path, mode) in [(&bin, 0o755), (&initdb, 0o755), (&told, 0o777)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    (bin, told.join("begun"))
}

#[test]
fn an_interruption_while_a_scratch_server_is_initialised_leaves_no_files() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    let (bin, begun) = slow_programs(directory.path());
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let target = server.target("postgres");
    let version_num = u32::from(RELEASE) * 10_000;
    let pg_bin = Some(bin);
    let site = Site { target: &target, version_num, home: &home, pg_bin, data: None, own: false, cores: 2 };
    let request =
        Request { ways: ways(&["custom:none"]), trials: 1, bin: None, probe: false, network: false };
    let interrupt = until_async("initdb has begun", async || begun.exists());
    let ended = block_on(Box::pin(backup::rehearse(&site, &request, &mut Unwatched, interrupt)));
    assert!(matches!(ended, Err(BackupError::Interrupted)), "{ended:?}");
    assert_nothing_is_left(home.root());
}

/// psql, which asks for a replication connection, gets no answer.
#[test]
fn a_plan_that_is_given_up_leaves_no_program() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    let told = directory.path().join("told");
    let script = format!("echo $$ >'{0}.new'; mv '{0}.new' '{0}'; exec sleep 600", told.display());
    let bin = Some(programs_with(directory.path(), RELEASE, "psql", &script));
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let target = server.target("postgres");
    let version_num = u32::from(RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request { ways: ways(&["base"]), trials: 1, bin, probe: false, network: false };
    block_on(async {
        let mut observer = Unwatched;
        let planned = Box::pin(backup::rehearse(&site, &request, &mut observer, std::future::pending()));
        tokio::select! {
            ended = planned => panic!("{ended:?}"),
            () = until_async("psql has begun", async || told.exists()) => {}
        }
    });
    let pid = fs::read_to_string(&told).unwrap();
    until("psql ends", || !Path::new("/proc").join(pid.trim()).exists());
}
