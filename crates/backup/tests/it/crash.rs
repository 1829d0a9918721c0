//! The scratch server ends by itself during a restore: the way has no result, and the next dump has a server again.

use testkit::{Need, assert_says, block_on, require};

use crate::support::{programs_with, rehearsed_by, server};

const RELEASE: u16 = 13;
/// Kills a process of the server into which it would restore, as the kernel does if memory is short. The server then ends.
const SCRIPT: &str = "
ask() { \"$REAL/psql\" --no-psqlrc --quiet --tuples-only --no-align --command=\"$1\"; }
case \" $*\" in *\" --dbname=\"*)
kill -9 $(ask \"SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'\")
while ask 'SELECT 1' >&2; do :; done
;; esac
exec \"$REAL/pg_restore\" \"$@\"
";

#[test]
fn a_scratch_server_that_has_ended_is_started_again_for_the_next_way() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let bin = programs_with(directory.path(), RELEASE, "pg_restore", SCRIPT);
    let target = server.target("postgres");
    let names = ["custom:none", "plain:none", "base"];
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &names)).unwrap();
    let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_eq!(way.to_string(), "custom:none");
    assert_says(why, &["its restore failed, because the scratch server ended: "]);
    assert_eq!(outcome.trials.len(), 2);
    assert!(outcome.trials.iter().all(|trial| trial.verified.rows == 500), "{outcome:#?}");
}
