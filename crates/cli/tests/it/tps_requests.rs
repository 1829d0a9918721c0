//! Requests of `pgrig tps`: shown without a run, or refused with the remedy.

use crate::support::Rig;
use crate::tps::{filled, script};

#[test]
fn what_is_asked_is_shown_without_doing_it() {
    let rig = Rig::new();
    let server = filled(&rig, "");
    let ran = rig.done("tps -c 4 -T 1h -R 100 -L 50ms --warmup 5 --explain");
    for told in ["<builtin: TPC-B (sort of)>", "4 on 1 thread", "warm-up of 5.00 s", "100", "50.0 ms", "seed"]
    {
        assert!(ran.stdout.contains(told), "no {told} in {ran:#?}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pgbench_history"), 0);
    let list = rig.done("tps -b list").stdout;
    assert!(["tpcb-like", "simple-update", "select-only"].iter().all(|name| list.contains(name)), "{list}");
    assert!(rig.done("tps --show-script se").stdout.contains("SELECT abalance"));
}

#[test]
fn what_cannot_work_is_refused_before_a_server_is_started() {
    let rig = Rig::new();
    let path = |name: &str, text: &str| script(&rig, name, text).display().to_string();
    let wrong = path("wrong.sql", "\\set aid random(1, 10\nSELECT 1;\n");
    let empty = path("empty.sql", "-- nothing\n");
    let piped = path("piped.sql", "\\startpipeline\nSELECT 1;\n\\endpipeline\n");
    for (arguments, said) in [
        (format!("-f {wrong}"), "wrong.sql:1: syntax error"),
        (format!("-f {wrong}"), "^ error found here"),
        (format!("-f {empty}"), "empty command list"),
        (format!("-f {piped}"), "--protocol extended or prepared"),
        ("-f /nowhere.sql".to_owned(), "cannot read the script -f /nowhere.sql"),
        ("-f a.sql@x".to_owned(), "invalid weight"),
        ("-f - -f -".to_owned(), "only once"),
        ("-b s".to_owned(), "give simple-update or select-only"),
        ("-b nope".to_owned(), "tpcb-like, simple-update, select-only"),
        ("-S@0".to_owned(), "unexpected argument"),
        ("-b se@0".to_owned(), "weight"),
        ("-c 0".to_owned(), "invalid value"),
        ("-c 99999999999".to_owned(), "262143"),
        ("-T 0".to_owned(), "is zero"),
        ("-T 5 -t 5".to_owned(), "cannot be used with"),
        ("-R 0".to_owned(), "0.000001 to"),
        ("-L 0".to_owned(), "is zero"),
        ("-P 0.5".to_owned(), "a whole number of seconds"),
        ("-t 5 --max-tries 0".to_owned(), "--max-tries"),
        ("-M fast".to_owned(), "[possible values: simple, extended, prepared]"),
        ("-D novalue".to_owned(), "NAME=VALUE"),
        ("--random-seed soon".to_owned(), "time, or rand"),
        ("--fail-if p99=20ms".to_owned(), "p99>20ms"),
        ("--fail-if p99>20".to_owned(), "unit"),
        ("--fail-if late>1%".to_owned(), "late needs a limit (-L)"),
        ("--fail-if lag-p99>1ms".to_owned(), "lag-p99 needs a rate (-R)"),
        ("one -d other".to_owned(), "cannot be used with"),
        // Options of pgbench that pgrig does not have.
        ("-l".to_owned(), "--json FILE"),
        ("-i".to_owned(), "pgrig fill"),
        ("-iI dtg".to_owned(), "pgrig fill"),
        ("--partitions=3".to_owned(), "pgrig fill"),
        ("--aggregate-interval 5".to_owned(), "--json FILE"),
        ("--sampling-rate=0.5".to_owned(), "--json FILE"),
        ("-v".to_owned(), "VACUUM"),
    ] {
        let ran = rig.run(&format!("tps {arguments}"));
        assert_eq!(ran.code, Some(2), "pgrig tps {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig tps {arguments}: {ran:#?}");
        assert!(!ran.stderr.contains("instance"), "pgrig tps {arguments} started a server: {ran:#?}");
    }
    // Other verbs' errors are their own.
    assert!(!rig.run("fill 1GB -l").stderr.contains("--json"));
}

#[test]
fn what_the_server_lacks_is_said_with_the_remedy() {
    let rig = Rig::new();
    let server = rig.server("");
    let ran = rig.run("tps -t 1");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("pgrig fill --scale"), "{ran:#?}");
    let one = script(&rig, "one.sql", "SELECT 1;\n");
    server.execute("CREATE TABLE pgbench_history AS SELECT 1 AS tid");
    for clients in ["-c 2000", "--matrix clients=1,2000"] {
        let ran = rig.run(&format!("tps -t 1 {clients} -f {}", one.display()));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let said = ran.stderr.contains("-c 2000 is more than this server's max_connections");
        assert!(said || ran.stderr.contains("ulimit"), "{ran:#?}");
        assert!(!ran.stderr.contains("trial 1"), "{ran:#?}");
        assert_eq!(server.number("SELECT count(*) FROM pgbench_history"), 1, "{clients}");
    }
    // Errors in the user's own SQL are those of the request.
    for (sql, said) in [
        ("SELEC 1;", "syntax error"),
        ("\\set x 1/0\nSELECT 1;", "division by zero"),
        ("BEGIN;", "end it with COMMIT or ROLLBACK"),
        ("COPY pgbench_history TO STDOUT;", "COPY TO STDOUT is not possible in a script"),
    ] {
        let wrong = script(&rig, "wrong.sql", sql);
        let ran = rig.run(&format!("tps -n -t 1 -f {}", wrong.display()));
        assert_eq!(ran.code, Some(2), "{sql}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{sql}: {ran:#?}");
    }
    let ended = script(&rig, "ended.sql", "SELECT pg_terminate_backend(pg_backend_pid());\n");
    assert_eq!(rig.run(&format!("tps -n -t 1 -f {}", ended.display())).code, Some(1));
    server.execute("CREATE ROLE weak LOGIN; CREATE TABLE pgbench_branches AS SELECT 1 AS bid");
    let mut command = rig.command("tps -n -t 1 -S");
    command.args(["-d", &server.url.replace("postgres@", "weak@")]);
    let ran = crate::support::Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("run GRANT SELECT ON pgbench_accounts, pgbench_branches TO weak"),
        "{ran:#?}"
    );
    let mut command = rig.command("tps -n -t 1 -b select-only -b simple-update");
    command.args(["-d", &server.url.replace("postgres@", "weak@")]);
    let ran = crate::support::Ran::from(command.output().unwrap());
    assert!(ran.stderr.contains("run GRANT SELECT, INSERT, UPDATE ON"), "{ran:#?}");
}

#[test]
fn a_script_with_parameters_is_wrong_in_each_protocol() {
    let rig = Rig::new();
    let _server = filled(&rig, "");
    let file = script(&rig, "p.sql", "SELECT * FROM pgbench_accounts WHERE aid = $1;\n");
    for protocol in ["simple", "extended", "prepared"] {
        let ran = rig.run(&format!("tps -n -t 1 -M {protocol} -f {}", file.display()));
        assert_eq!(ran.code, Some(2), "{protocol}: {ran:#?}");
        let said = "the script has parameters ($1): use :NAME and \\set, or -D NAME=VALUE";
        assert!(ran.stderr.contains(said), "{protocol}: {ran:#?}");
    }
}
