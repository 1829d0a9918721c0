//! The session of the snapshot ends during the rehearsal: dumps have no result, and base backups have one.

use backup::Witness;
use testkit::{Need, assert_says, block_on, require};

use crate::support::{programs_with, rehearsed_by, server};

const RELEASE: u16 = 13;
/// Ends the session that holds the snapshot, and waits until it is gone.
const SCRIPT: &str = "
ask() { \"$REAL/psql\" --no-psqlrc --quiet --tuples-only --no-align --command=\"$1\"; }
case \" $*\" in *\" --snapshot=\"*)
ask \"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'\" >&2
while [ \"$(ask \"SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'\")\" != 0 ]; do :; done
;; esac
exec \"$REAL/pg_dump\" \"$@\"
";

#[test]
fn a_lost_snapshot_is_named_with_the_remedy_and_other_ways_go_on() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let bin = programs_with(directory.path(), RELEASE, "pg_dump", SCRIPT);
    let target = server.target("postgres");
    let names = ["custom:none", "plain:none", "base"];
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &names)).unwrap();
    assert_eq!(outcome.failed.len(), 2, "{outcome:#?}");
    for (way, why) in &outcome.failed {
        assert!(!way.is_base(), "{outcome:#?}");
        assert_says(why, &["the session that holds the snapshot of all dumps has ended", "run pgrig again"]);
    }
    let [trial] = &outcome.trials[..] else { panic!("{outcome:#?}") };
    assert_eq!((trial.verified.witness, trial.verified.rows), (Witness::Unchanged, 500));
}
