//! The lines that `pgrig fill` shows on a terminal.

use crate::support::{Rig, on_terminal};
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
    let (pgrig, shown) = on_terminal(rig.command("fill --all-tables --rows 10"));
    let mut seen = String::new();
    until("the plan is shown", || {
        seen.extend(shown.try_iter());
        seen.contains("looking for rows in the tables, ")
    });
    rig.block_on(transaction.rollback()).unwrap();
    assert_eq!(pgrig.end().code, Some(0), "{seen}");
    assert_eq!(server.number("SELECT count(*) FROM second"), 10);
    let quick = rig.done("fill --table first --append --rows 10");
    assert!(!quick.stderr.contains(" so far"), "{quick:#?}");
}
