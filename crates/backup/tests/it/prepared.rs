//! A transaction that is prepared while a base backup is made: in the restored server, nobody ends it.

use testkit::{Need, Server, assert_says, block_on, require, spec};

use crate::support::{programs_with, rehearsed_by};

const RELEASE: u16 = 13;
/// Locks a table, and then makes the backup.
const SCRIPT: &str = "
\"$REAL/psql\" --no-psqlrc --quiet --command=BEGIN --command='LOCK TABLE t' --command=\"PREPARE TRANSACTION 'kept'\" || exit
exec \"$REAL/pg_basebackup\" \"$@\"
";

#[test]
fn a_table_that_a_prepared_transaction_locks_is_not_waited_for() {
    if !require(Need::Clients) {
        return;
    }
    let settings = [
        ("wal_level", "replica"),
        ("max_wal_senders", "4"),
        ("autovacuum", "off"),
        ("max_prepared_transactions", "2"),
    ];
    let (server, directory) = (Server::start(spec(RELEASE, &settings)), testkit::directory());
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let bin = programs_with(directory.path(), RELEASE, "pg_basebackup", SCRIPT);
    let target = server.target("postgres");
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &["base"])).unwrap();
    let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_says(why, &["a prepared transaction in the backup locks a table", "ROLLBACK PREPARED"]);
}
