//! The scratch server ends by itself during a restore: the way has no result, and the next dump has a server again. If it cannot start again, the results
//! from before stay.

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
/// The same, and damages the server's files, so that it cannot start again.
const DAMAGE: &str = "
ask() { \"$REAL/psql\" --no-psqlrc --quiet --tuples-only --no-align --command=\"$1\"; }
case \" $*\" in *\" --dbname=\"*)
data=$(ask 'SHOW data_directory')
kill -9 $(ask \"SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'\")
while ask 'SELECT 1' >&2; do :; done
: >\"$data/global/pg_control\"
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

#[test]
fn ways_that_were_measured_keep_their_results_if_the_scratch_server_cannot_start() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let bin = programs_with(directory.path(), RELEASE, "pg_restore", DAMAGE);
    let target = server.target("postgres");
    let names = ["plain:none", "custom:none", "base"];
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &names)).unwrap();
    assert!(outcome.is_lost, "{outcome:#?}");
    let [trial] = &outcome.trials[..] else { panic!("{outcome:#?}") };
    assert_eq!((trial.way.to_string().as_str(), trial.verified.rows), ("plain:none", 500));
    let failed: Vec<String> = outcome.failed.iter().map(|(way, _)| way.to_string()).collect();
    assert_eq!(failed, ["custom:none", "base"]);
    for (_, why) in &outcome.failed {
        assert_says(why, &["it was not measured, because "]);
    }
}
