//! The lines that `pgrig fill` shows on a terminal.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use nix::pty::openpty;

use crate::support::Rig;
use testkit::until;

/// The plan has to wait for a lock here. It is silent as long as it takes no time.
#[test]
fn a_plan_that_takes_time_is_shown() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE first (id int); CREATE TABLE second (id int)");
    let mut holder = rig.connect(&server.url);
    let transaction = rig.block_on(holder.transaction()).unwrap();
    rig.block_on(transaction.batch_execute("LOCK TABLE second IN ACCESS EXCLUSIVE MODE")).unwrap();
    let terminal = openpty(None, None).unwrap();
    let mut command = rig.command("fill --all-tables --rows 10");
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal.slave);
    let mut pgrig = command.spawn().unwrap();
    drop(command);
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let (mut screen, mut buffer) = (File::from(terminal.master), [0; 4096]);
        // Reading fails once the program has ended.
        while let Ok(read) = screen.read(&mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        }
    });
    let mut seen = String::new();
    until("the plan is shown", || {
        seen.extend(receive.try_iter());
        seen.contains("looking for rows in the tables, ")
    });
    rig.block_on(transaction.rollback()).unwrap();
    assert!(pgrig.wait().unwrap().success(), "{seen}");
    assert_eq!(server.number("SELECT count(*) FROM second"), 10);
    let quick = rig.done("fill --table first --append --rows 10");
    assert!(!quick.stderr.contains(" so far"), "{quick:#?}");
}
