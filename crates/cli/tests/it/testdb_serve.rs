//! `pgrig testdb serve`: databases for suites that run in parallel.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::docs;
use crate::support::Rig;
use crate::support::lending::{Lending, SCHEMA, Service, name};
use testkit::until_some as until;

#[test]
fn a_port_without_a_server_may_be_meant_as_that_of_the_service() {
    let rig = Rig::new();
    let ran = rig.run("testdb serve -p 59999");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("give --listen 127.0.0.1:59999"), "{ran:#?}");
}

#[test]
fn two_hundred_at_once_get_one_each() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let lending = Lending::new(&rig, version);
        // By a hundred programs, all of which want the keeper and the template to be made, and by a hundred requests.
        let command = format!(
            "testdb new --from {} --owner {} --format json",
            lending.schema.display(),
            std::process::id()
        );
        let programs: Vec<_> = (0..100).map(|_| rig.spawn(&command)).collect();
        let mut names: Vec<String> = programs
            .into_iter()
            .map(|program| {
                let ran = program.end();
                assert_eq!(ran.code, Some(0), "{ran:#?}");
                name(&serde_json::from_str(&ran.stdout).unwrap())
            })
            .collect();
        let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
        let by_http: Vec<String> = std::thread::scope(|scope| {
            let ask = || {
                let answer = service.http().post("/databases", "{}");
                assert_eq!(answer.status, 201, "{answer:?}");
                name(&answer.json())
            };
            let asking: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        names.extend(by_http);
        let different: BTreeSet<String> = names.iter().cloned().collect();
        assert_eq!(different.len(), 200, "none is shared");
        assert_eq!(lending.list("lent"), different, "none is lost");
        assert_eq!(lending.list("template").len(), 1, "made once");
        service.interrupt();
        let left = lending.there();
        assert!(left.is_disjoint(&different), "Ctrl-C drops what is lent");
        rig.done("testdb drop --all");
        assert!(lending.there().is_empty(), "no trace");
    }
}

#[test]
fn serve_lends_keeps_renews_and_takes_back() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let from = lending.schema.display();
    let before = lending.new_database("");
    let ready = rig.home.path().join("ready");
    let service = Service::start(&rig, &format!("--from {from} --ready-file {}", ready.display()));
    assert_eq!(std::fs::read_to_string(&ready).unwrap().trim(), service.url);
    let http = service.http();
    assert_eq!(lending.list("lent"), BTreeSet::from([name(&before)]), "it took over from the keeper before");

    let lease = http.get("/database?for=600").json();
    assert_eq!(lending.items(&lease), 2);
    let renewed = http.post(&format!("/databases/{}/renew", name(&lease)), "{\"for\": 3600}");
    assert!(renewed.json()["expires"].as_i64() > lease["expires"].as_i64(), "{renewed:?}");
    let url = http.get("/database?format=url");
    assert!(url.body.starts_with("postgresql://postgres@/pgrig_testdb_"), "{url:?}");
    let kept = http.get("/database").json();
    let keep = format!("/databases/{}/keep", name(&kept));
    assert_eq!(http.post(&keep, "").status, 403, "anybody could have kept databases without end");
    assert_eq!(http.post("/databases", "{\"keep\": true}").status, 403);
    rig.done(&format!("testdb keep {}", name(&kept)));
    assert_eq!(http.request("DELETE", &format!("/databases/{}?wait", name(&lease)), &[], "").status, 204);
    assert!(!lending.is_there(&name(&lease)));
    assert_eq!(http.request("DELETE", &format!("/databases/{}", name(&lease)), &[], "").status, 404);
    assert_eq!(http.request("DELETE", "/databases/postgres", &[], "").status, 404);

    let status = http.get("/status").json();
    assert_eq!((&status["kept"], &status["templates"]), (&1.into(), &1.into()), "{status:#}");
    let shown: Vec<&str> =
        status["settings"].as_array().unwrap().iter().map(|it| it[0].as_str().unwrap()).collect();
    for setting in ["fsync", "synchronous_commit", "full_page_writes", "wal_level"] {
        assert!(shown.contains(&setting), "{status:#}");
    }
    until("the list is what is there", || {
        let listed = http.get("/databases").json();
        let listed: BTreeSet<String> = listed["databases"].as_array().unwrap().iter().map(name).collect();
        (listed == lending.there()).then_some(())
    });

    // Over TCP, which anybody here can reach, nothing goes but what is lent.
    let template = lending.list("template").pop_first().unwrap();
    for protected in [&name(&kept), &template] {
        let answer = http.request("DELETE", &format!("/databases/{protected}"), &[], "");
        assert_eq!(answer.status, 403, "{answer:?}");
    }

    let second = rig.run("testdb serve");
    assert_eq!(second.code, Some(2), "{second:#?}");
    assert!(second.stderr.contains(&service.url), "{second:#?}");
    let template = lending.list("template");
    service.interrupt();
    // Looked at before there is a next keeper, which fills its pool.
    let kept = BTreeSet::from([name(&kept)]);
    assert_eq!(lending.there(), &kept | &template, "neither what was lent nor spares");
    assert_eq!((lending.list("kept"), lending.list("template").len()), (kept, 1));
}

#[test]
fn serve_is_for_nobody_s_web_page_and_offers_over_tcp_what_it_was_told_to() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let other = rig.home.path().join("other.sql");
    std::fs::write(&other, SCHEMA).unwrap();
    let socket = rig.home.path().join("lend.sock");
    let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
    let http = service.http();
    for (header, value) in
        [("Host", "evil.example"), ("Origin", "http://localhost"), ("Sec-Fetch-Site", "cross-site")]
    {
        let answer = http.request("GET", "/database", &[(header, value)], "");
        assert_eq!(answer.status, 403, "{header}: {answer:?}");
    }
    for (method, path, body, status) in [
        ("GET", format!("/database?from={}", other.display()), "", 403),
        ("GET", "/database?template=postgres".to_owned(), "", 403),
        ("DELETE", "/databases?which=all".to_owned(), "", 403),
        ("POST", "/retire".to_owned(), "", 403),
        ("POST", "/databases".to_owned(), "{\"form\": 1}", 400),
        ("POST", "/databases?for=1".to_owned(), "", 400),
        ("POST", "/databases".to_owned(), "{\"for\": 0}", 422),
        ("POST", "/databases".to_owned(), "{\"for\": 86401}", 422),
        ("GET", "/database?for=18446744073709551615".to_owned(), "", 422),
        ("POST", "/databases/x/renew".to_owned(), "{\"for\": 18446744073709551615}", 422),
        ("GET", "/database?template=a%00b".to_owned(), "", 403),
        ("POST", "/databases".to_owned(), "{\"owner\": 4000000000}", 422),
        ("PUT", "/databases".to_owned(), "", 405),
        ("GET", "/nowhere".to_owned(), "", 404),
    ] {
        let answer = http.request(method, &path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let refusal = answer.json();
        assert!(refusal["error"].is_string() && refusal["remedy"].is_string(), "{refusal}");
    }
    assert!(lending.list("lent").is_empty());
    service.interrupt();

    let service = Service::start(&rig, &format!("--listen unix:{}", socket.display()));
    assert_eq!(service.url, format!("unix:{}", socket.display()));
    let lease = service.http().get(&format!("/database?from={}", other.display()));
    assert_eq!(lending.items(&lease.json()), 2);
    service.interrupt();
    assert!(!socket.exists());

    let refused = rig.run("testdb serve --listen 0.0.0.0:0");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let port = rig.run("testdb serve --listen 7432");
    assert!(port.stderr.contains("give ADDRESS:PORT, for example 127.0.0.1:7432"), "{port:#?}");
}

#[test]
fn serve_is_ready_only_with_what_works() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    std::fs::write(&lending.schema, "CREATE TABLE a (b int);\nCREATE TABLE a (b int);\n").unwrap();
    let ready = rig.home.path().join("ready");
    for (source, told) in [
        (format!("--from {}", lending.schema.display()), "line 2"),
        ("--template nowhere".to_owned(), "there is no database nowhere"),
    ] {
        let ran = rig.run(&format!("testdb serve {source} --ready-file {}", ready.display()));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
        assert!(ran.stderr.contains(told), "{ran:#?}");
        assert!(!ready.exists() && lending.there().is_empty(), "{ran:#?}");
    }
}

/// Connections that send nothing, half of the headers, or no body are closed; meanwhile others are answered.
#[test]
fn slow_requests_are_ended() {
    use std::io::{Read, Write};
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
    let at = service.url.strip_prefix("http://").unwrap();
    let head = "POST /databases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n";
    let slow: Vec<_> = ["", "GET /data", head, &format!("{head}\r\n{{")]
        .iter()
        .map(|text| {
            let mut stream = std::net::TcpStream::connect(at).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream.set_read_timeout(Some(testkit::DEADLINE)).unwrap();
            stream
        })
        .collect();
    assert_eq!(service.http().get("/status").status, 200);
    for (number, mut stream) in slow.into_iter().enumerate() {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // The last one's body does not come.
        assert!(number < 3 || answer.starts_with("HTTP/1.1 408"), "{number}: {answer}");
    }
    // More connections than are served at once wait for those before them.
    let idle: Vec<_> = (0..600).map(|_| std::net::TcpStream::connect(at).unwrap()).collect();
    assert_eq!(service.http().get("/status").status, 200);
    drop(idle);
    service.interrupt();
}

/// The helpers of the how-to page for pytest, node and Go, each in a suite with many tests at a time.
#[test]
fn suites_of_other_languages_run_in_parallel() {
    let needs = [testkit::Need::Pytest, testkit::Need::Node, testkit::Need::Go];
    if !needs.into_iter().all(testkit::require) {
        return;
    }
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
    let clients = tempfile::tempdir().unwrap();
    for suite in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdb_clients")).unwrap() {
        let suite = suite.unwrap();
        fs::copy(suite.path(), clients.path().join(suite.file_name())).unwrap();
    }
    let page = fs::read_to_string(docs::root().join("docs/src/how-to/database-per-test.md")).unwrap();
    let (_, blocks) = docs::blocks(&page);
    for (language, file) in [("python", "conftest.py"), ("js", "database.mjs"), ("go", "database_test.go")] {
        let helper = blocks.iter().find(|block| block.is(language)).unwrap();
        fs::write(clients.path().join(file), &helper.text).unwrap();
    }
    let pgrig = Path::new(env!("CARGO_BIN_EXE_pgrig")).parent().unwrap();
    let path = format!("{}:{}", pgrig.display(), std::env::var("PATH").unwrap());
    let suites: [(&str, &[&str], bool); 4] = [
        ("python3", &["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_items.py"], true),
        ("node", &["--test", "items.test.mjs"], true),
        ("go", &["test", "-count=1", "-parallel=16", "-run=TestItems"], true),
        ("go", &["test", "-count=1", "-run=TestThatFails"], false),
    ];
    for (program, arguments, is_success) in suites {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(clients.path()).env("PGRIG_TESTDB_URL", &service.url);
        command.env("PATH", &path).env("PGRIG_HOME", rig.home.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_success, "{program} {arguments:?}: {text}");
        assert!(is_success || text.contains("3 items expected, found 2"), "{text}");
    }
    until("all was given back", || lending.list("lent").is_empty().then_some(()));
    assert_eq!(lending.list("kept").len(), 3, "the failed test of each suite kept its database");
    service.interrupt();
}
