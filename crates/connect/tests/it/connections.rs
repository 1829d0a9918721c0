//! Connecting to real servers, and to things that are none.

use connect::SqlState;
use failure::Classified;

use connect::{ConnectError, Transport};
use testkit::tls::{self as server, private_file};
use testkit::{DEADLINE, assert_says, block_on as run, target, until_async};

use crate::support::{connect, impostor, refused};

#[test]
fn unix_socket() {
    let server = server::plain();
    run(async {
        let target = server.target("postgres");
        let connection = tokio::spawn(async move { target.connect().await }).await.unwrap().unwrap();
        let name: String = connection.client.query_one_scalar("SHOW application_name", &[]).await.unwrap();
        assert_eq!(name, "pgrig");
        let path = format!("{}/.s.PGSQL.{}", server.socket_dir(), server.port());
        assert_eq!(connection.transport, Transport::UnixSocket { path: path.into() });
        connection.close().await;

        // The same by URI, with TLS demanded: it does not apply.
        let host = server.socket_dir().replace('/', "%2F");
        let uri = format!("postgresql://postgres@{host}:{}/postgres?sslmode=require", server.port());
        let uri = format!("{uri}&options=-c%20work_mem%3D7MB&application_name=mine");
        let connection = connect(&uri, &[]).await.unwrap();
        let shown: String =
            connection.client.query_one_scalar("SELECT current_setting('work_mem')", &[]).await.unwrap();
        assert_eq!(shown, "7MB");
    });
}

#[test]
fn scram_over_tcp() {
    let server = server::plain();
    run(async {
        let connection = connect(&server.tcp(), &[("PGPASSWORD", "wonder'land")]).await.unwrap();
        assert_eq!(connection.transport.to_string(), format!("tcp localhost:{}", server.port()));
        let address = connection.address().to_string();
        assert_eq!(address, format!("localhost:{} (127.0.0.1)", server.port()));
        let user: String =
            connection.client.query_one_scalar("SELECT current_user::text", &[]).await.unwrap();
        assert_eq!(user, "alice");

        let message = refused(&server.tcp(), &[("PGPASSWORD", "looking-glass")]).await;
        assert_says(&message, &["28P01", "alice", "PGPASSWORD"]);
        assert!(!message.contains("looking-glass"), "{message}");
        let message = refused(&format!("{} password=x", server.tcp()), &[]).await;
        assert_says(&message, &["28P01", "comes from the connection string"]);
        let message = refused(&server.tcp(), &[]).await;
        assert_says(&message, &["asks for a password", "alice", "PGPASSWORD", ".pgpass"]);
    });
}

#[test]
fn password_file() {
    let server = server::plain();
    let directory = tempfile::tempdir().unwrap();
    let lines = format!("localhost:{}:*:alice:wonder'land\n*:*:*:*:wrong\n", server.port());
    let file = private_file(directory.path(), "pgpass", &lines);
    let env = [("PGPASSFILE", file.to_str().unwrap())];
    run(async {
        connect(&server.tcp(), &env).await.unwrap();
        let message = refused(&server.tcp().replace("localhost", "elsewhere"), &env).await;
        assert_says(&message, &["28P01", &format!("comes from {}", file.display())]);
        assert!(!message.contains("wrong"), "{message}");
    });
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let open = target(&server.tcp(), &env).unwrap();
    assert_says(&open.warnings().join(""), &["group or world access", "chmod 0600"]);
    run(async { assert!(matches!(open.connect().await, Err(ConnectError::PasswordMissing { .. }))) });
}

#[test]
fn older_password_methods() {
    let tls = server::tls();
    run(async {
        for (user, password) in [("old", "md5 secret"), ("clear", "clear secret")] {
            let string = tls.server.tcp().replace("alice", user);
            connect(&format!("{string} password='{password}'"), &[]).await.unwrap();
            let message = refused(&format!("{string} password=nothing"), &[]).await;
            assert_says(&message, &["28P01"]);
            let message =
                refused(&format!("{string} password='{password}' channel_binding=require"), &[]).await;
            assert_says(&message, &["channel binding"]);
        }
    });
}

#[test]
fn service_file() {
    let server = server::plain();
    let directory = tempfile::tempdir().unwrap();
    let text = format!("[test]\nhost={}\nport={}\nuser=alice\n", server.socket_dir(), server.port());
    let file = private_file(directory.path(), "services", &text);
    let env = [("PGSERVICEFILE", file.to_str().unwrap()), ("PGSYSCONFDIR", "/nonexistent")];
    run(async {
        let connection = connect("service=test user=postgres", &env).await.unwrap();
        let user: String =
            connection.client.query_one_scalar("SELECT current_user::text", &[]).await.unwrap();
        assert_eq!(user, "postgres");
    });
    let error = target("service=absent", &env).unwrap_err();
    assert!(error.is_usage());
    assert_says(&error.to_string(), &["absent", "services", "/nonexistent/pg_service.conf"]);
}

#[test]
fn what_the_server_refuses() {
    let server = server::plain();
    run(async {
        let missing = server.target("postgres").with_database("nowhere").connect().await.unwrap_err();
        assert_eq!(missing.sqlstate(), Some(&SqlState::UNDEFINED_DATABASE));
        assert!(!missing.is_usage());
        assert_says(
            &missing.to_string(),
            &["nowhere", "3D000", "run createdb -h ", "or give another database with -d"],
        );
        let told = missing.with_creation("a command").with_another_database("give another COPY").to_string();
        assert!(told.ends_with("; run a command, or give another COPY"), "{told}");

        let template = server.target("postgres").with_database("template0").connect().await.unwrap_err();
        let template = template.to_string();
        assert_says(&template, &["55000", "template", "must not change: give another database with -d"]);
        assert!(!template.contains("ALLOW_CONNECTIONS"), "{template}");

        let nobody = server.target("postgres").with_user("nobody at all").connect().await.unwrap_err();
        assert_says(
            &nobody.to_string(),
            &["28000", "nobody at all", "-U", "run CREATE ROLE \"nobody at all\" LOGIN"],
        );

        let admin = server.target("postgres").connect().await.unwrap();
        admin.client.batch_execute("CREATE ROLE group_only").await.unwrap();
        let target = server.target("postgres").with_user("group_only");
        let remedy = "ALTER ROLE \"group_only\" LOGIN";
        assert_says(&target.connect().await.unwrap_err().to_string(), &["28000", &format!("run {remedy}")]);
        admin.client.batch_execute(remedy).await.unwrap();
        target.connect().await.unwrap().close().await;

        let closed =
            server.target("postgres").with_user("alice").with_database("closed").connect().await.unwrap_err();
        assert_says(&closed.to_string(), &["42501", "CONNECT"]);
    });
}

#[test]
fn the_source_of_a_wrong_setting_and_the_port_of_another_socket_are_named() {
    let server = server::plain();
    run(async {
        let socket = format!("host={} port={}", server.socket_dir(), server.port());
        let session = format!("{socket} user=postgres dbname=postgres");
        let message = refused(&session, &[("PGTZ", "Mars")]).await;
        assert_says(&message, &["22023", "Mars", "comes from PGTZ, the options"]);
        let message = refused(&session, &[("PGOPTIONS", "work_mem=1MB")]).await;
        assert_says(&message, &["42601", "write -c before each setting: '-c work_mem=1MB'"]);
        let message = refused(&session.replace("dbname=postgres", "dbname=localhost:1"), &[]).await;
        assert_says(
            &message,
            &["to name a host, give -d postgresql://localhost:1/DBNAME; otherwise run createdb"],
        );

        let elsewhere = session.replace(&format!("port={}", server.port()), "port=1");
        let message = refused(&elsewhere, &[]).await;
        assert_says(&message, &[format!("the socket of port {0}: give -p {0}", server.port()).as_str()]);
    });
}

#[test]
fn tls_modes_with_the_right_authority() {
    let tls = server::tls();
    let root = format!("sslrootcert={}", tls.file("root.crt").display());
    run(async {
        for mode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
            let string = tls.string(&format!("{root} sslmode={mode}"));
            let connection = connect(&string, &[]).await.unwrap();
            let encrypted = mode != "allow";
            assert_eq!(on_tls(&connection.transport), encrypted, "{mode}");
            let said: bool = connection
                .client
                .query_one_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[])
                .await
                .unwrap();
            assert_eq!(said, encrypted, "{mode}");
        }
        let connection = connect(&tls.string("sslmode=require channel_binding=require"), &[]).await.unwrap();
        let json = serde_json::to_value(&connection.transport).unwrap();
        assert_eq!(json["tls"]["protocol"], "TLS 1.3", "{json}");
        assert_says(json["tls"]["cipher"].as_str().unwrap(), &["TLS13_"]);
        let old =
            connect(&tls.string("sslmode=require ssl_max_protocol_version=TLSv1.2"), &[]).await.unwrap();
        assert_says(&old.transport.to_string(), &["localhost", "TLS 1.2"]);
        let direct = format!("{root} sslmode=verify-full sslnegotiation=direct");
        assert!(on_tls(&connect(&tls.string(&direct), &[]).await.unwrap().transport));
    });
}

fn on_tls(transport: &Transport) -> bool {
    matches!(transport, Transport::Tcp { tls: Some(_), .. })
}

#[test]
fn tls_names_and_authorities() {
    let tls = server::tls();
    let root = format!("sslrootcert={}", tls.file("root.crt").display());
    let stranger = format!("sslrootcert={}", tls.file("stranger.crt").display());
    let misnamed = |more: &str| tls.string(more).replace("host=localhost", "host=db.example.com");
    run(async {
        let message = refused(&misnamed(&format!("{root} sslmode=verify-full")), &[]).await;
        assert_says(&message, &["verify-full", "\"localhost\"", "\"db.example.com\"", "verify-ca"]);
        connect(&misnamed(&format!("{root} sslmode=verify-ca")), &[]).await.unwrap();

        for mode in ["verify-full", "verify-ca", "require"] {
            let message = refused(&tls.string(&format!("{stranger} sslmode={mode}")), &[]).await;
            assert_says(&message, &[mode, "stranger.crt", "sslrootcert=FILE"]);
        }
        assert!(on_tls(&connect(&tls.string("sslmode=require"), &[]).await.unwrap().transport));
        assert!(on_tls(
            &connect(&tls.string(&format!("{stranger} sslmode=prefer")), &[]).await.unwrap().transport
        ));
    });
    let error = target(&tls.string("sslmode=verify-full"), &[]).unwrap_err();
    assert_says(&error.to_string(), &["sslrootcert", "does not exist", "sslrootcert=system"]);
}

#[test]
fn tls_or_not_by_pg_hba() {
    let tls = server::tls();
    let as_user = |user: &str, more: &str| format!("{} {more}", tls.server.tcp().replace("alice", user));
    run(async {
        let plain = connect(&as_user("plainonly", "sslmode=prefer"), &[]).await.unwrap();
        assert!(!on_tls(&plain.transport));
        let encrypted = connect(&as_user("tlsonly", "sslmode=allow"), &[]).await.unwrap();
        assert!(on_tls(&encrypted.transport));
        let message = refused(&as_user("tlsonly", "sslmode=disable"), &[]).await;
        assert_says(&message, &["28000", "pg_hba.conf", "sslmode"]);
    });
}

#[test]
fn client_certificate() {
    let tls = server::tls();
    let string = tls.server.tcp().replace("alice", "certified");
    let (certificate, key) = (tls.file("client.crt"), tls.file("client.key"));
    let with = format!("{string} sslmode=require sslcert={} sslkey=", certificate.display());
    run(async {
        connect(&format!("{with}{}", key.display()), &[]).await.unwrap();
        let message = refused(&format!("{string} sslmode=require"), &[]).await;
        assert_says(&message, &["28000", "certificate"]);
    });
    let error = target(&format!("{with}/nonexistent"), &[]).unwrap_err();
    assert!(error.is_usage());
    assert_says(&error.to_string(), &["sslkey", "/nonexistent"]);
}

#[test]
fn a_server_without_tls() {
    let server = server::plain();
    let string = format!("{} password='wonder\\'land'", server.tcp());
    run(async {
        let message = refused(&format!("{string} sslmode=require"), &[]).await;
        assert_says(&message, &["does not support TLS", "sslmode=require", "ssl=on"]);
        let connection = connect(&format!("{string} sslmode=prefer"), &[]).await.unwrap();
        assert!(!on_tls(&connection.transport));
    });
}

#[test]
fn nobody_there() {
    run(async {
        let message = refused(&format!("host=127.0.0.1 port={}", impostor::dead_port()), &[]).await;
        assert_says(&message, &["127.0.0.1:", "refused; check host and port", "listen_addresses"]);
        let message = refused("host=no-such-host.invalid", &[]).await;
        assert_says(&message, &["cannot resolve", "no-such-host.invalid", "-h"]);
        let message = refused("host=/nonexistent", &[]).await;
        assert_says(&message, &["/nonexistent/.s.PGSQL.5432"]);
    });
}

#[test]
fn not_postgresql() {
    let http = impostor::speaks("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    let ssh = impostor::speaks("SSH-2.0-OpenSSH_9.9\r\n");
    let memcached = impostor::speaks("ERROR\r\n");
    run(async {
        for mode in ["disable", "prefer", "require"] {
            let message = refused(&format!("host=127.0.0.1 port={http} sslmode={mode}"), &[]).await;
            assert_says(
                &message,
                &["not as a PostgreSQL server", "HTTP/1.1 400 Bad Request", "check the port"],
            );
            if mode == "disable" {
                // Begins like an ErrorResponse, of 1.4 GB.
                let message = refused(&format!("host=127.0.0.1 port={memcached} sslmode=disable"), &[]).await;
                assert_says(&message, &["not as a PostgreSQL server", "ERROR"]);
            }
            // Begins with the very byte that means "TLS, go ahead".
            let message = refused(&format!("host=127.0.0.1 port={ssh} sslmode={mode}"), &[]).await;
            assert_says(&message, &["not as a PostgreSQL server"]);
        }
    });
}

#[test]
fn connect_timeout() {
    let port = impostor::silent();
    run(async {
        let string = format!("host=127.0.0.1 port={port} connect_timeout=1");
        let message = tokio::time::timeout(DEADLINE, refused(&string, &[])).await.expect("it gives up");
        assert_says(&message, &["within 1 s", "connect_timeout"]);
    });
}

#[test]
fn several_hosts() {
    let server = server::plain();
    let (dead, live) = (impostor::dead_port(), server.port());
    run(async {
        let string = format!("host=127.0.0.1,{} port={dead},{live} user=postgres", server.socket_dir());
        let connection = connect(&string, &[]).await.unwrap();
        assert!(matches!(connection.transport, Transport::UnixSocket { .. }));

        let message = refused(&format!("host=127.0.0.1,/nonexistent port={dead}"), &[]).await;
        assert_says(&message, &["all 2 attempts", "127.0.0.1:", "refused", "/nonexistent"]);

        for attributes in ["any", "read-write", "primary", "prefer-standby"] {
            connect(&format!("{string} target_session_attrs={attributes}"), &[]).await.unwrap();
        }
        for attributes in ["standby", "read-only"] {
            let message = refused(&format!("{string} target_session_attrs={attributes}"), &[]).await;
            assert_says(&message, &["all 2 attempts", &format!("target_session_attrs={attributes}")]);
        }
    });
}

#[test]
fn cancelling() {
    let (plain, tls) = (server::plain(), server::tls());
    run(async {
        let encrypted = tls.string("sslmode=require");
        for connection in
            [plain.target("postgres").connect().await.unwrap(), connect(&encrypted, &[]).await.unwrap()]
        {
            // The query says when it runs, so that the request cannot come too early.
            let sql = "DO $$ BEGIN RAISE NOTICE 'running'; PERFORM pg_sleep(60); END $$";
            let query = connection.client.batch_execute(sql);
            let cancel = async {
                until_async("the query runs", async || !connection.take_notices().is_empty()).await;
                connection.cancel().await.unwrap();
            };
            let (result, ()) = tokio::join!(query, cancel);
            let error = connection.explain(result.unwrap_err()).await;
            assert_eq!(error.sqlstate(), Some(&SqlState::QUERY_CANCELED), "{error}");
        }
    });
}

#[test]
fn notices() {
    let server = server::plain();
    run(async {
        let connection = server.target("postgres").connect().await.unwrap();
        let sql = "DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$";
        connection.client.batch_execute(sql).await.unwrap();
        let notices = connection.take_notices();
        let said: Vec<_> = notices.iter().map(|notice| (notice.severity(), notice.message())).collect();
        assert_eq!(said, [("NOTICE", "one"), ("WARNING", "two")]);
        assert!(connection.take_notices().is_empty());
    });
}

#[test]
fn a_lost_connection_says_why() {
    let server = server::plain();
    run(async {
        let victim = server.target("postgres").connect().await.unwrap();
        let pid: i32 = victim.client.query_one_scalar("SELECT pg_backend_pid()", &[]).await.unwrap();
        let other = server.target("postgres").connect().await.unwrap();
        other.client.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
        let ending = victim.ending().await;
        assert_eq!(ending.sqlstate(), Some(&SqlState::ADMIN_SHUTDOWN), "{ending}");
        let error = victim.client.batch_execute("SELECT 1").await.unwrap_err();
        let error = victim.explain(error).await;
        assert_eq!(error.sqlstate(), Some(&SqlState::ADMIN_SHUTDOWN), "{error}");
        assert_says(&error.to_string(), &["lost", "administrator command"]);
    });
}

#[test]
fn a_session_ended_in_mid_query() {
    let server = server::own();
    run(async {
        let (victim, other) = (
            server.target("postgres").connect().await.unwrap(),
            server.target("postgres").connect().await.unwrap(),
        );
        let pid: i32 = victim.client.query_one_scalar("SELECT pg_backend_pid()", &[]).await.unwrap();
        let kill = async {
            let busy = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'";
            until_async("the query runs", async || {
                other.client.query_one_scalar::<i64, _>(busy, &[&pid]).await.unwrap() > 0
            })
            .await;
            other.client.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
        };
        let (result, ()) = tokio::join!(victim.client.batch_execute("SELECT pg_sleep(60)"), kill);
        let error = victim.explain(result.unwrap_err()).await;
        assert!(matches!(error, ConnectError::Lost { .. }), "{error}");
        assert_eq!(error.sqlstate(), Some(&SqlState::ADMIN_SHUTDOWN), "{error}");

        // A backend dies by SIGKILL; the server throws the others out.
        let (victim, witness) = (
            server.target("postgres").connect().await.unwrap(),
            server.target("postgres").connect().await.unwrap(),
        );
        let pid: i32 = victim.client.query_one_scalar("SELECT pg_backend_pid()", &[]).await.unwrap();
        let _ = other.client.batch_execute(&format!("COPY (SELECT 1) TO PROGRAM 'kill -9 {pid}'")).await;
        assert_says(&victim.ending().await.to_string(), &["without a message"]);
        let ending = witness.ending().await;
        assert!(matches!(ending, ConnectError::Lost { .. }), "{ending}");
        // A backend that does not end within 5 s is killed, and cannot say why: so on a busy machine.
        let said = ending.sqlstate();
        assert!(said.is_none_or(|state| *state == SqlState::CRASH_SHUTDOWN), "{ending}");
        // A server of pgrig's own does not restart after that: it ends.
    });
}

#[test]
fn too_many_connections() {
    let server = server::plain();
    run(async {
        let admin = server.target("postgres").connect().await.unwrap();
        admin.client.batch_execute("CREATE ROLE single LOGIN CONNECTION LIMIT 1").await.unwrap();
        let target = server.target("postgres").with_user("single");
        let first = target.connect().await.unwrap();
        let error = target.connect().await.unwrap_err();
        assert_eq!(error.sqlstate(), Some(&SqlState::TOO_MANY_CONNECTIONS));
        // The remedy is about the limit that was reached, and works.
        let remedy = "ALTER ROLE \"single\" CONNECTION LIMIT -1";
        assert_says(&error.to_string(), &[&format!("run {remedy}")]);
        admin.client.batch_execute(remedy).await.unwrap();
        target.connect().await.unwrap().close().await;
        first.close().await;
        admin.client.batch_execute("CREATE DATABASE narrow CONNECTION LIMIT 0").await.unwrap();
        let target = target.with_database("narrow");
        let remedy = "ALTER DATABASE \"narrow\" CONNECTION LIMIT -1";
        assert_says(&target.connect().await.unwrap_err().to_string(), &[&format!("run {remedy}")]);
        admin.client.batch_execute(remedy).await.unwrap();
        target.connect().await.unwrap().close().await;
        admin.client.batch_execute("DROP DATABASE narrow WITH (FORCE)").await.unwrap();
    });
}
