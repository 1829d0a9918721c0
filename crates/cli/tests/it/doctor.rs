//! `pgrig doctor`: what works is what other tests show to work, for a superuser and for a role with few rights.

use testkit::until;

use crate::support::{Ran, Rig};

/// The answer for a verb.
fn answer<'a>(shown: &'a str, name: &str) -> &'a str {
    let line = shown.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line {name}: {shown}")).trim()
}

#[test]
fn it_creates_and_starts_nothing() {
    let rig = Rig::new();
    let shown = rig.done("doctor").stdout;
    assert!(answer(&shown, "server").contains("not created yet"), "{shown}");
    assert!(answer(&shown, "verbs").starts_with("not checked"), "{shown}");
    assert_eq!(rig.status()["state"], "not-created");
    rig.done("fill 5MB");
    let shown = rig.done("doctor").stdout;
    assert!(answer(&shown, "server").contains("stopped"), "{shown}");
    assert!(answer(&shown, "programs").starts_with("PostgreSQL 18.6 runs on this machine"), "{shown}");
    assert_eq!(rig.status()["state"], "stopped");
    assert!(shown.lines().count() <= 12, "{shown}");
}

#[test]
fn an_instance_of_another_pgrig_process_is_in_use() {
    let rig = Rig::new();
    rig.done("fill --scale 1");
    let running = rig.spawn("tps -T 600");
    let pid = running.pid().as_raw();
    until("pgrig tps owns the server", || rig.status()["owner_pid"] == pid);
    let shown = rig.done("doctor").stdout;
    let server = answer(&shown, "server");
    assert!(server.starts_with("pgrig's own PostgreSQL, version 18."), "{shown}");
    assert!(server.ends_with(&format!("in use by pgrig process {pid}")), "{shown}");
    let ran = rig.run("fill 5MB --schema other");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let why = answer(&shown, "verbs").strip_prefix("not checked: ").unwrap();
    assert!(why.contains("run pgrig server start before") && ran.stderr.contains(why), "{shown}{ran:#?}");
    assert!(!shown.contains("testdb"), "no verb works now: {shown}");
}

#[test]
fn programs_that_are_missing_or_do_not_run_are_named() {
    let rig = Rig::new();
    let none = rig.home.path().join("none");
    for (fetch, answered) in [("", "the first command downloads it"), ("never", "server fetch --from FILE")] {
        let mut command = rig.command("doctor");
        command.env("PGRIG_POSTGRESQL_CACHE", &none).env("PGRIG_FETCH", fetch);
        let shown = Ran::from(command.output().unwrap()).stdout;
        assert!(answer(&shown, "programs").contains(answered), "{shown}");
    }
    assert!(!none.exists());
    let bin = rig.home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["postgres", "initdb"] {
        std::fs::write(bin.join(program), "").unwrap();
    }
    let ran = rig.run(&format!("doctor --pg-bin {}", bin.display()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("postgres does not run"), "{ran:#?}");
}

#[test]
fn each_verb_works_as_it_says() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let shown = rig.done("doctor").stdout;
        assert_eq!(answer(&shown, "fill"), "yes, by writing pages directly", "{shown}");
        server.execute(
            "REVOKE CREATE ON SCHEMA public FROM public; CREATE SCHEMA desk; CREATE ROLE reader LOGIN; \
             CREATE ROLE writer LOGIN; GRANT CREATE, USAGE ON SCHEMA desk TO writer; CREATE ROLE maker LOGIN CREATEDB; \
             CREATE ROLE builder LOGIN; GRANT CREATE ON DATABASE postgres TO builder",
        );
        let url = |role: &str| server.url.replace("postgres@", &format!("{role}@"));
        for (role, said) in [
            ("reader", "no: run GRANT CREATE ON SCHEMA public TO reader"),
            (
                "builder",
                "only with --schema NAME, which pgrig creates; to use it without --schema, run GRANT CREATE ON SCHEMA public TO builder",
            ),
        ] {
            let shown = rig.done(&format!("doctor -d {}", url(role))).stdout;
            assert_eq!(answer(&shown, "fill"), said, "{shown}");
        }
        for (role, command, verb) in [
            ("reader", "fill 5MB", "fill"),
            ("writer", "fill 5MB --schema desk", "fill"),
            ("reader", "testdb new --keep", "testdb"),
            ("maker", "testdb new --keep", "testdb"),
            ("reader", "micro 1+i --budget 1s", "micro"),
            ("reader", "blockio 10MB --trials 1", "blockio"),
            ("writer", "blockio 10MB --trials 1 --schema desk", "blockio"),
            ("writer", "backup rehearse --explain", "backup"),
        ] {
            let shown = rig.done(&format!("doctor -d {}", url(role))).stdout;
            let works = !answer(&shown, verb).starts_with("no");
            let ran = rig.run(&format!("{command} -d {}", url(role)));
            assert_eq!(ran.code == Some(0), works, "{version} {role} {command}: {shown}{ran:#?}");
        }
        rig.done("testdb drop --all");
        // The client programs of the distribution may be older than version 18, and not than 13.
        for (role, said) in [
            ("reader", "no: reader lacks SELECT on 4 of 4 tables"),
            (
                "writer",
                "yes, with pg_dump; not with pg_basebackup: role writer may not replicate: run ALTER ROLE writer REPLICATION",
            ),
        ] {
            let shown = rig.done(&format!("doctor -d {}", url(role))).stdout;
            let (backup, old) = (answer(&shown, "backup"), "cannot read a server of version 18");
            assert!(backup.starts_with(said) || version.ends_with("18") && backup.contains(old), "{shown}");
        }
        // A table that a role may not read has no statistics for it. `fill` has made four that it may read.
        server.execute(
            "CREATE TABLE desk.hidden AS SELECT generate_series(1, 100) AS n; \
             CREATE TABLE desk.seen AS TABLE desk.hidden; GRANT SELECT ON desk.seen TO writer; ANALYZE",
        );
        let shown = rig.done(&format!("doctor -d {}", url("writer"))).stdout;
        let lacks = "yes, without statistics of 1 of 6 tables, for which writer lacks SELECT";
        assert_eq!(answer(&shown, "model"), lacks, "{shown}");
        let captured = rig.done(&format!("model capture -d {} -o -", url("writer")));
        let lacks = |table: &str| captured.stderr.contains(&format!("can read no statistics of {table}"));
        assert!(lacks("desk.hidden") && !lacks("desk.seen"), "{captured:#?}");
        assert!(!captured.stderr.contains("--model -"), "no hints that do not work: {captured:#?}");
        assert_eq!(answer(&rig.done("doctor").stdout, "model"), "yes");
        let refused = |command: &str, said: &str| {
            let ran = rig.run(&format!("{command} -d {}", url("reader")));
            assert_eq!(ran.code, Some(2), "{ran:#?}");
            assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
        };
        let shown = rig.done(&format!("doctor -d {}", url("reader"))).stdout;
        for (verb, command) in [("model", "model capture -o -"), ("ddl", "ddl -c SELECT")] {
            let grant = "run GRANT USAGE ON SCHEMA desk TO reader";
            assert_eq!(answer(&shown, verb), format!("no: {grant}"), "{shown}");
            refused(command, grant);
        }
        server.execute("GRANT USAGE ON SCHEMA desk TO reader");
        let shown = rig.done(&format!("doctor -d {}", url("reader"))).stdout;
        assert!(
            answer(&shown, "model").starts_with("no: reader may SELECT from no table: run GRANT "),
            "{shown}"
        );
        assert!(answer(&shown, "ddl").starts_with("yes"), "{shown}");
        refused("model capture -o -", "no table has statistics");
    }
}

#[test]
fn a_wrong_environment_is_a_wrong_request() {
    let rig = Rig::new();
    for (name, value, said) in [
        ("PGRIG_HOME", "/proc/version", "home /proc/version is not a directory; set PGRIG_HOME"),
        ("PGRIG_HOME", "here/there", "home here/there is not an absolute path; set PGRIG_HOME"),
        ("PGRIG_FETCH", "Never", "PGRIG_FETCH is \"Never\": set it to never"),
    ] {
        let ran = Ran::from(rig.command("server status").env(name, value).output().unwrap());
        assert_eq!(ran.code, Some(2), "{name}={value}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{name}={value}: {ran:#?}");
    }
    let shown = rig.done("doctor --instance other").stdout;
    assert!(answer(&shown, "verbs").ends_with("pgrig doctor --instance other"), "{shown}");
}

/// The instance that the command would have created is not left behind.
#[test]
fn a_wrong_setting_is_a_wrong_request() {
    let rig = Rig::new();
    for setting in ["nosuch=1", "work_mem=banana"] {
        let ran = rig.run(&format!("server start --instance odd --set {setting}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("correct that setting. No instance was created"), "{ran:#?}");
        let shown = rig.done("server status").stdout;
        assert!(!shown.contains("odd"), "{shown}");
        assert!(!rig.home.path().join("instances/odd").exists(), "{setting}");
    }
}
