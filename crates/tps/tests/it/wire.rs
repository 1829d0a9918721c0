//! The protocol of `tps`, spoken with real servers.

use connect::SqlState;
use connect::{ConnectError, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testkit::tls as server;
use testkit::{DEADLINE, Server, assert_says, target, until};
use tps::wire::{Message, Wire};

/// Connects on a runtime that is gone afterwards.
fn open(target: &Target) -> Result<Wire, ConnectError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(target.connect_raw()).map(Wire::new)
}

/// Runs a test over a Unix socket to the oldest and the newest server, and over TLS.
fn everywhere(test: impl Fn(&mut Wire)) {
    let (oldest, newest, tls) = (server::oldest(), server::plain(), server::tls());
    let encrypted = target(&tls.string("sslmode=require"), &[]).unwrap();
    for target in [oldest.target("postgres"), newest.target("postgres"), encrypted] {
        test(&mut open(&target).unwrap());
    }
}

/// A message in a line; rows cut to their first bytes.
fn line(message: &Message<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
    match message {
        Message::RowDescription(columns) => {
            format!("columns {}", columns.names().map(text).collect::<Vec<_>>().join(","))
        }
        Message::DataRow(row) => {
            let values = row.values().map(|value| value.map_or("NULL".to_owned(), text));
            format!("row {}", values.collect::<Vec<_>>().join(","))
        }
        Message::CommandComplete(tag) => text(tag),
        Message::Error(error) => format!("{} {}", error.severity, error.code.code()),
        Message::ReadyForQuery(status) => format!("ready {status:?}"),
        other => format!("{other:?}"),
    }
}

/// Waits until there is something to receive, or room for what could not be sent.
fn wait(wire: &Wire) {
    let room = if wire.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
    let deadline = Timespec::try_from(DEADLINE).unwrap();
    let ready = poll(&mut [PollFd::new(wire, PollFlags::IN | room)], Some(&deadline)).unwrap();
    assert!(ready > 0, "the server does not answer");
}

/// Sends what was composed and hands over what comes, up to the ready-th ReadyForQuery.
fn exchange(wire: &mut Wire, ready: usize, mut take: impl FnMut(Message<'_>)) -> Result<(), ConnectError> {
    let mut left = ready;
    wire.send()?;
    while left > 0 {
        wait(wire);
        wire.receive()?;
        while let Some(message) = wire.next()? {
            left -= usize::from(matches!(message, Message::ReadyForQuery(_)));
            take(message);
        }
    }
    assert!(!wire.has_unsent());
    Ok(())
}

/// All that comes, a line a message.
fn lines(wire: &mut Wire) -> Vec<String> {
    let mut lines = Vec::new();
    exchange(wire, 1, |message| lines.push(line(&message))).unwrap();
    lines
}

fn query(wire: &mut Wire, sql: &str) -> Vec<String> {
    wire.query(|out| out.extend_from_slice(sql.as_bytes()));
    lines(wire)
}

/// The first row's first value.
fn value(wire: &mut Wire, sql: &str) -> String {
    let lines = query(wire, sql);
    let row = lines.iter().find_map(|line| line.strip_prefix("row "));
    row.unwrap_or_else(|| panic!("{lines:?}")).to_owned()
}

fn bind(wire: &mut Wire, statement: &str, parameters: &[Option<&str>]) {
    wire.bind(statement, parameters, |value, out| {
        out.extend(value.unwrap_or_default().bytes());
        value.is_some()
    });
}

fn fails(wire: &mut Wire, sql: &str) -> ConnectError {
    wire.query(|out| out.extend_from_slice(sql.as_bytes()));
    exchange(wire, 1, |_| ()).unwrap_err()
}

#[test]
fn simple_queries() {
    everywhere(|wire| {
        let several = "SELECT 1 AS a, NULL AS \"the b\"; CREATE TEMP TABLE t(i int); INSERT INTO t VALUES (1), (2); \
                       SELECT * FROM t ORDER BY i";
        let expected = [
            "columns a,the b",
            "row 1,NULL",
            "SELECT 1",
            "CREATE TABLE",
            "INSERT 0 2",
            "columns i",
            "row 1",
            "row 2",
            "SELECT 2",
            "ready Idle",
        ];
        assert_eq!(query(wire, several), expected);
        assert_eq!(query(wire, ""), ["EmptyQuery", "ready Idle"]);
        assert_eq!(query(wire, "SELECT FROM t"), ["columns ", "row ", "row ", "SELECT 2", "ready Idle"]);
        assert_eq!(query(wire, "BEGIN"), ["BEGIN", "ready InTransaction"]);
        let failed = ["ERROR 22012", "ready Failed"];
        assert_eq!(query(wire, "SELECT 1/0; SELECT 2"), failed);
        assert_eq!(query(wire, "ROLLBACK"), ["ROLLBACK", "ready Idle"]);
        assert_eq!(value(wire, "SHOW client_encoding"), "UTF8");
        assert_eq!(value(wire, "SHOW application_name"), "pgrig");
    });
}

#[test]
fn parameters_and_prepared_statements() {
    everywhere(|wire| {
        wire.parse("", "SELECT $1::text, $2::int + 1, $3::text");
        bind(wire, "", &[Some("ä"), Some("41"), None]);
        wire.describe();
        wire.execute();
        wire.sync();
        let expected = [
            "ParseComplete",
            "BindComplete",
            "columns text,?column?,text",
            "row ä,42,NULL",
            "SELECT 1",
            "ready Idle",
        ];
        assert_eq!(lines(wire), expected);

        wire.parse("P_0", "SELECT coalesce($1, 'none')");
        wire.sync();
        assert_eq!(lines(wire), ["ParseComplete", "ready Idle"]);
        for (parameter, row) in [(Some("x"), "row x"), (Some(""), "row "), (None, "row none")] {
            bind(wire, "P_0", &[parameter]);
            wire.execute();
            wire.sync();
            assert_eq!(lines(wire), ["BindComplete", row, "SELECT 1", "ready Idle"]);
        }
        wire.parse("", "SET work_mem = '1MB'");
        bind(wire, "", &[]);
        wire.describe();
        wire.execute();
        wire.sync();
        assert_eq!(lines(wire), ["ParseComplete", "BindComplete", "NoData", "SET", "ready Idle"]);
    });
}

#[test]
fn errors_last_until_sync() {
    everywhere(|wire| {
        for (sql, parameter, code) in [
            ("SELEC $1", "1", "42601"),
            ("SELECT $1::int", "one", "22P02"),
            ("SELECT 1 / $1::int", "0", "22012"),
        ] {
            wire.parse("", sql);
            bind(wire, "", &[Some(parameter)]);
            wire.execute();
            wire.parse("never", "SELECT 1");
            wire.sync();
            let lines = lines(wire);
            assert_eq!(lines[lines.len() - 2..], [format!("ERROR {code}"), "ready Idle".to_owned()]);
            assert!(lines.len() <= 4, "{lines:?}");
        }
        bind(wire, "never", &[]);
        wire.sync();
        assert_eq!(lines(wire), ["ERROR 26000", "ready Idle"]);
        assert_eq!(value(wire, "SELECT 1"), "1");

        let mut message = None;
        let raise = "DO $$ BEGIN RAISE 'one' USING DETAIL = 'two', HINT = 'three'; END $$";
        wire.query(|out| out.extend_from_slice(raise.as_bytes()));
        exchange(wire, 1, |said| {
            if let Message::Error(error) = said {
                message = Some(error.to_string());
            }
        })
        .unwrap();
        assert_says(&message.unwrap(), &["ERROR: one (SQLSTATE P0001); two; three"]);
    });
}

#[test]
fn pipelines() {
    everywhere(|wire| {
        // Longer than the buffers of both sides: neither may wait for the other.
        let long = "x".repeat(100_000);
        wire.parse("echo", "SELECT $1, $2::int / $3::int");
        for number in 0..100 {
            bind(
                wire,
                "echo",
                &[Some(&long), Some(&number.to_string()), Some(if number == 50 { "0" } else { "1" })],
            );
            wire.execute();
            wire.sync();
        }
        assert!(wire.has_unsent());
        let (mut rows, mut errors) = (Vec::<i32>::new(), 0);
        exchange(wire, 100, |message| match message {
            Message::DataRow(row) => {
                let values: Vec<_> = row.values().flatten().collect();
                assert_eq!(values[0], long.as_bytes());
                rows.push(String::from_utf8_lossy(values[1]).parse().unwrap());
            }
            Message::Error(_) => errors += 1,
            _ => {}
        })
        .unwrap();
        assert!(rows.into_iter().eq((0..100).filter(|number| *number != 50)));
        assert_eq!(errors, 1);

        // Without a Sync in between nothing needs to come before a Flush.
        bind(wire, "echo", &[Some("a"), Some("1"), Some("1")]);
        wire.execute();
        wire.flush();
        wire.send().unwrap();
        let mut lines = Vec::new();
        while lines.len() < 3 {
            wait(wire);
            wire.receive().unwrap();
            while let Some(message) = wire.next().unwrap() {
                lines.push(line(&message));
            }
        }
        assert_eq!(lines, ["BindComplete", "row a,1", "SELECT 1"]);
        wire.sync();
        assert_eq!(self::lines(wire), ["ready Idle"]);
    });
}

#[test]
fn long_results() {
    everywhere(|wire| {
        for (sql, count) in [
            ("SELECT repeat('x', 10000000)", 1),
            ("SELECT repeat('x', 1000) FROM generate_series(1, 10000)", 10_000),
            ("SELECT repeat('x', 1000000) FROM generate_series(1, 10)", 10),
        ] {
            let (mut rows, mut bytes) = (0, 0);
            wire.query(|out| out.extend_from_slice(sql.as_bytes()));
            exchange(wire, 1, |message| {
                if let Message::DataRow(row) = message {
                    rows += 1;
                    let values = row.values().flatten();
                    bytes += values
                        .map(|value| value.strip_suffix(b"x").map_or(0, |rest| rest.len() + 1))
                        .sum::<usize>();
                }
            })
            .unwrap();
            assert_eq!((rows, bytes), (count, 10_000_000));
        }
        assert_eq!(value(wire, "SELECT 1"), "1");
    });
}

#[test]
fn what_is_passed_over_and_what_is_not() {
    everywhere(|wire| {
        // Notices, a notification, a parameter's new value.
        let sql = "LISTEN news; NOTIFY news; SET application_name = 'other'; DO $$ BEGIN RAISE NOTICE 'n'; END $$; SELECT 1";
        let expected =
            ["LISTEN", "NOTIFY", "SET", "DO", "columns ?column?", "row 1", "SELECT 1", "ready Idle"];
        assert_eq!(query(wire, sql), expected);
        let sql = "COPY (SELECT 1) TO STDOUT";
        assert_eq!(query(wire, sql), ["Copy(Out)", "COPY 1", "ready Idle"]);
        // The server now waits for data; pgrig has none.
        wire.query(|out| out.extend_from_slice(b"CREATE TEMP TABLE t(i int); COPY t FROM STDIN"));
        wire.send().unwrap();
        let mut lines = Vec::new();
        while lines.len() < 2 {
            wait(wire);
            wire.receive().unwrap();
            while let Some(message) = wire.next().unwrap() {
                lines.push(line(&message));
            }
        }
        assert_eq!(lines, ["CREATE TABLE", "Copy(In)"]);
    });
}

#[test]
fn a_session_lives_on_until_it_is_dropped() {
    let (plain, tls) = (server::plain(), server::tls());
    let encrypted = target(&tls.string("sslmode=require target_session_attrs=read-write"), &[]).unwrap();
    for (target, server) in [(plain.target("postgres"), plain), (encrypted, &tls.server)] {
        let mut wire = open(&target).unwrap();
        let mut other = open(&server.target("postgres")).unwrap();
        let pid = value(&mut wire, "SELECT pg_backend_pid()");
        let there = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        assert_eq!(value(&mut other, &there), "1");
        drop(wire);
        gone(&mut other, &pid);
    }
}

#[test]
fn passwords_and_refusals() {
    let server = server::plain();
    let tcp = format!("{} password='wonder\\'land'", server.tcp());
    let mut wire = open(&target(&tcp, &[]).unwrap()).unwrap();
    assert_eq!(wire.transport().to_string(), format!("tcp localhost:{}", server.port()));
    assert_eq!(value(&mut wire, "SELECT current_user"), "alice");
    let error = open(&target(&server.tcp(), &[]).unwrap()).err().unwrap();
    assert_says(&error.to_string(), &["asks for a password"]);
    let error = open(&target(&format!("{tcp} target_session_attrs=standby"), &[]).unwrap()).err().unwrap();
    assert_says(&error.to_string(), &["target_session_attrs=standby"]);
}

#[test]
fn cancelling() {
    let (plain, tls) = (server::plain(), server::tls());
    let encrypted = target(&tls.string("sslmode=require"), &[]).unwrap();
    for (target, server) in [(plain.target("postgres"), plain), (encrypted, &tls.server)] {
        let (mut wire, mut other) = (open(&target).unwrap(), open(&server.target("postgres")).unwrap());
        let pid = value(&mut wire, "SELECT pg_backend_pid()");
        wire.query(|out| out.extend_from_slice(b"SELECT pg_sleep(60)"));
        wire.send().unwrap();
        sleeps(&mut other, &pid);
        testkit::block_on(wire.canceller().cancel()).unwrap();
        assert_eq!(lines(&mut wire)[1..], ["ERROR 57014", "ready Idle"]);
    }
}

/// Waits until the session of this process is in pg_sleep().
fn sleeps(other: &mut Wire, pid: &str) {
    let asleep =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'");
    until("the session sleeps", || value(other, &asleep) == "1");
}

#[test]
fn a_server_that_goes_away_says_why() {
    let mut server = server::own();
    let mut admin = open(&server.target("postgres")).unwrap();
    let lost = |error: ConnectError, code: Option<&str>, says: &str| {
        assert!(matches!(error, ConnectError::Lost { .. }), "{error}");
        assert_eq!(error.sqlstate().map(SqlState::code), code, "{error}");
        assert_says(&error.to_string(), &["lost", says]);
    };

    // While idle, and in the middle of a query.
    let mut victim = open(&server.target("postgres")).unwrap();
    let pid = value(&mut victim, "SELECT pg_backend_pid()");
    assert_eq!(value(&mut admin, &format!("SELECT pg_terminate_backend({pid})")), "t");
    gone(&mut admin, &pid);
    lost(fails(&mut victim, "SELECT 1"), Some("57P01"), "administrator command");

    let mut victim = open(&server.target("postgres")).unwrap();
    let pid = value(&mut victim, "SELECT pg_backend_pid()");
    victim.query(|out| out.extend_from_slice(b"SELECT pg_sleep(60)"));
    victim.send().unwrap();
    sleeps(&mut admin, &pid);
    assert_eq!(value(&mut admin, &format!("SELECT pg_terminate_backend({pid})")), "t");
    lost(exchange(&mut victim, 1, |_| ()).unwrap_err(), Some("57P01"), "administrator command");

    // The whole server stops.
    let mut idle = open(&server.target("postgres")).unwrap();
    drop(admin);
    server.stop();
    lost(fails(&mut idle, "SELECT 1"), Some("57P01"), "administrator command");
}

#[test]
fn a_backend_that_crashes() {
    let server: Server = server::own();
    let mut wires: Vec<Wire> = (0..3).map(|_| open(&server.target("postgres")).unwrap()).collect();
    let pid = value(&mut wires[0], "SELECT pg_backend_pid()");
    let kill = format!("COPY (SELECT 1) TO PROGRAM 'kill -9 {pid}'");
    wires[2].query(|out| out.extend_from_slice(kill.as_bytes()));
    wires[2].send().unwrap();
    let mut endings = wires.into_iter().map(|mut wire| ending(&mut wire));
    let victim = endings.next().unwrap();
    assert_says(&victim.to_string(), &["without a message"]);
    let witness = endings.next().unwrap();
    // On a busy machine the server may end before a session has sent its message.
    let is_silent = witness.to_string().contains("without a message");
    assert!(is_silent || witness.sqlstate() == Some(&SqlState::CRASH_SHUTDOWN), "{witness}");
}

/// Waits for the end of a session that asks nothing.
fn ending(wire: &mut Wire) -> ConnectError {
    loop {
        wait(wire);
        let ended = wire.receive().and_then(|_| {
            while wire.next()?.is_some() {}
            Ok(())
        });
        if let Err(error) = ended {
            return error;
        }
    }
}

/// Waits until there is no such session.
fn gone(other: &mut Wire, pid: &str) {
    let there = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    until("the session has ended", || value(other, &there) == "0");
}
