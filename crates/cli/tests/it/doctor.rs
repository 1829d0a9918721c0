//! `pgrig doctor`: what works is what other tests show to work, for a superuser and for a role with few rights.

use crate::support::Rig;

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
    assert_eq!(rig.status()["state"], "not-created");
    rig.done("fill 5MB");
    let shown = rig.done("doctor").stdout;
    assert!(answer(&shown, "server").contains("stopped"), "{shown}");
    assert_eq!(rig.status()["state"], "stopped");
    assert!(shown.lines().count() <= 12, "{shown}");
}

#[test]
fn each_verb_works_as_it_says() {
    for version in ["--pg-version 18", "--pg-version 13"] {
        let rig = Rig::new();
        let server = rig.server(version);
        let shown = rig.done("doctor").stdout;
        assert_eq!(answer(&shown, "fill"), "yes, with finished pages", "{shown}");
        server.execute(
            "REVOKE CREATE ON SCHEMA public FROM public; CREATE SCHEMA desk; CREATE ROLE reader LOGIN; \
             CREATE ROLE writer LOGIN; GRANT CREATE, USAGE ON SCHEMA desk TO writer; CREATE ROLE maker LOGIN CREATEDB",
        );
        let url = |role: &str| server.url.replace("postgres@", &format!("{role}@"));
        for (role, command, verb) in [
            ("reader", "fill 5MB", "fill"),
            ("writer", "fill 5MB --schema desk", "fill"),
            ("reader", "testdb new --keep", "testdb"),
            ("maker", "testdb new --keep", "testdb"),
            ("reader", "micro 1+i --budget 1s", "micro"),
            ("reader", "blockio 10MB --trials 1", "blockio"),
            ("writer", "blockio 10MB --trials 1 --schema desk", "blockio"),
        ] {
            let shown = rig.done(&format!("doctor -d {}", url(role))).stdout;
            let works = !answer(&shown, verb).starts_with("no");
            let ran = rig.run(&format!("{command} -d {}", url(role)));
            assert_eq!(ran.code == Some(0), works, "{version} {role} {command}: {shown}{ran:#?}");
        }
        rig.done("testdb drop --all");
    }
}
