//! Precedence of sources, and meanings of values.

use failure::Classified;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::ConnectOptions;
use super::super::error::ConnectError;
use super::super::target::Target;
use super::super::tls::SslMode;
use super::{Machine, recipe, resolve};

/// A machine with a home, and a directory where a server on port 5432 has its socket.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("run")).unwrap();
        std::fs::write(dir.path().join("run/.s.PGSQL.5432"), "").unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn machine(&self) -> Machine {
        Machine {
            socket_directories: vec![self.path().join("absent"), self.path().join("run")],
            user: Some("osuser".into()),
            home: Some(self.path().to_owned()),
        }
    }

    /// `typed`: the values of -d -h -p -U, "" for none.
    fn resolve(&self, typed: [&str; 4], env: &[(&str, &str)]) -> Result<Target, ConnectError> {
        let [dbname, host, port, user] = typed.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let env: HashMap<&str, &str> = env.iter().copied().collect();
        let options = ConnectOptions { dbname, host, port, user };
        resolve(&options, &|name| env.get(name).map(|value| (*value).to_owned()), &self.machine())
    }
}

#[test]
fn a_recipe_leads_to_the_same_server_and_holds_no_password() {
    let fixture = Fixture::new();
    let services = fixture.path().join("services");
    std::fs::write(&services, "[s]\nhost=service\nport=7\ndbname=service's\npassword=secret\n").unwrap();
    let service = [("PGSERVICEFILE", services.to_str().unwrap()), ("PGSERVICE", "s")];
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("postgresql://me:secret@db:6/shop?sslmode=disable&options=-c%20work_mem%3D1MB", &[]),
        ("host=a,b port=1,2 password=secret target_session_attrs=primary", &[("PGPASSWORD", "secret")]),
        ("", &service),
        ("", &[]),
    ];
    for (dbname, env) in cases {
        let before = fixture.resolve([dbname, "", "", ""], env).unwrap();
        let env: HashMap<&str, &str> = env.iter().copied().collect();
        let options = ConnectOptions { dbname: Some((*dbname).to_owned()), ..ConnectOptions::default() };
        let env = |name: &str| env.get(name).map(|value| (*value).to_owned());
        let text = recipe(&options, &env, &fixture.machine()).unwrap();
        assert!(!text.contains("secret"), "{text}");
        // Later the environment may be another.
        let again = fixture.resolve([&text, "", "", ""], &[("PGHOST", "elsewhere")]).unwrap();
        assert_eq!(again.to_string(), before.to_string(), "{text}");
        assert_eq!(again.options, before.options, "{text}");
        assert_eq!(again.session, before.session, "{text}");
        assert!(again.password.is_none());
    }
}

/// -d -h -p -U; environment; the target.
type Case<'c> = ([&'c str; 4], &'c [(&'c str, &'c str)], &'c str);

#[test]
fn precedence_is_libpqs() {
    let fixture = Fixture::new();
    let services = fixture.path().join("services");
    std::fs::write(&services, "[s]\nhost=service\nport=7\ndbname=servicedb\n").unwrap();
    let service = [("PGSERVICEFILE", services.to_str().unwrap()), ("PGSERVICE", "s"), ("PGUSER", "envuser")];
    let run = fixture.path().join("run").display().to_string();
    let env = [("PGHOST", "envhost"), ("PGPORT", "6"), ("PGDATABASE", "envdb"), ("PGUSER", "envuser")];
    let cases: &[Case<'_>] = &[
        (["", "", "", ""], &[], &format!("host={run} port=5432 dbname=osuser user=osuser")),
        (["db", "", "", "me"], &[], &format!("host={run} port=5432 dbname=db user=me")),
        (["", "", "", "me"], &[], &format!("host={run} port=5432 dbname=me user=me")),
        (["", "", "", ""], &env, "host=envhost port=6 dbname=envdb user=envuser"),
        (["db", "h", "1", "u"], &env, "host=h port=1 dbname=db user=u"),
        // The string in -d is read after the options, as in psql.
        (["host=s user=v", "h", "1", "u"], &env, "host=s port=1 dbname=envdb user=v"),
        (["postgres://v@s:2/d", "h", "1", "u"], &[], "host=s port=2 dbname=d user=v"),
        (["", "", "", ""], &service, "host=service port=7 dbname=servicedb user=envuser"),
        (["port=8", "", "", ""], &service, "host=service port=8 dbname=servicedb user=envuser"),
        // Empty means the default.
        (
            ["host='' port='' dbname=x", "", "", ""],
            &env,
            &format!("host={run} port=5432 dbname=x user=envuser"),
        ),
        (["postgres://a,b:2/d", "", "", ""], &[], "host=a,b port=5432,2 dbname=d user=osuser"),
        (["host=a,b port=3 dbname=d", "", "", ""], &[], "host=a,b port=3,3 dbname=d user=osuser"),
        (["hostaddr=::1 dbname=d", "", "", ""], &[], "host=::1 port=5432 dbname=d user=osuser"),
    ];
    for (typed, env, expected) in cases {
        let target = fixture.resolve(*typed, env).unwrap();
        assert_eq!(target.to_string(), *expected, "{typed:?}");
    }
}

#[test]
fn wrong_requests_name_the_culprit() {
    let fixture = Fixture::new();
    let cases: &[(&str, &[&str])] = &[
        ("hots=x", &["unknown", "\"hots\"", "the connection string"]),
        ("host=x port=http", &["port", "\"http\"", "1 to 65535"]),
        ("host=x port=0", &["port"]),
        ("host=a,b port=1,2,3", &["ports (3)", "hosts (2)"]),
        ("host=a,b hostaddr=::1", &["host names (2)", "hostaddr values (1)"]),
        ("hostaddr=name", &["hostaddr", "\"name\""]),
        ("host=x sslmode=on", &["sslmode", "\"on\"", "verify-full"]),
        ("host=x sslmode=require sslrootcert=system", &["sslmode", "verify-full"]),
        ("host=x sslnegotiation=direct", &["sslnegotiation", "require"]),
        ("host=x gssencmode=require", &["gssencmode=require", "sslmode"]),
        ("host=x require_auth=none", &["require_auth", "not supported"]),
        ("host=x connect_timeout=soon", &["connect_timeout", "\"soon\"", "whole number"]),
        ("host=x target_session_attrs=best", &["target_session_attrs", "prefer-standby"]),
        ("host=@abstract", &["abstract"]),
        ("host=./run", &["\"./run\"", "absolute path"]),
        ("host=[::1]", &["\"[::1]\"", "IPv6 address without brackets"]),
        ("host=/run/.s.PGSQL.5433", &["give host=/run port=5433"]),
        (
            "jdbc:postgresql://h:5432/d?user=u&password=secret",
            &["jdbc:postgresql://… is not", "leave out jdbc:"],
        ),
        ("mysql://u:secret@h/d?x=y", &["mysql://… is not a URI of PostgreSQL"]),
        ("service=nowhere", &["nowhere", "pg_service.conf"]),
        ("host=x sslcert=/nonexistent/a.crt", &["sslcert", "/nonexistent/a.crt"]),
    ];
    for (string, parts) in cases {
        let error = fixture.resolve([string, "", "", ""], &[]).unwrap_err();
        assert!(error.is_usage(), "{string}");
        let message = error.to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{string}: {message}");
    }
    for string in ["postgresql://u:secret@h/d", "jdbc:postgresql://h/d?password=secret"] {
        let error = fixture.resolve(["", string, "", ""], &[]).unwrap_err();
        let message = error.to_string();
        assert_eq!(message, "the host (from -h) cannot be a URI: give the URI with -d");
    }
    let error =
        fixture.resolve(["", "", "", ""], &[("PGDATABASE", "postgresql://u:secret@h/d")]).unwrap_err();
    assert_eq!(error.to_string(), "PGDATABASE cannot be a URI: give the URI with -d");
    for (name, uri) in [
        ("127.0.0.1:5433/shop", "postgresql://127.0.0.1:5433/shop"),
        ("127.0.0.1", "postgresql://127.0.0.1/DBNAME"),
        ("db.example:5433", "postgresql://db.example:5433/DBNAME"),
    ] {
        let error = fixture.resolve([name, "", "1", ""], &[]).unwrap_err();
        assert!(error.is_usage(), "{name}");
        assert_eq!(error.to_string(), format!("-d {name} names a database: to name a host, give -d {uri}"));
    }
    let error = fixture.resolve(["", "x", "", ""], &[("PGSSLMODE", "maybe")]).unwrap_err();
    assert!(error.to_string().contains("PGSSLMODE"), "{error}");
}

#[test]
fn no_local_server() {
    let error = Fixture::new().resolve(["", "", "5433", ""], &[]).unwrap_err();
    assert!(!error.is_usage());
    let message = error.to_string();
    for part in [".s.PGSQL.5433", "absent", "run", "-h HOST", "pgrig's own PostgreSQL"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn values_mean_what_the_documentation_says() {
    let fixture = Fixture::new();
    let text = "host=x connect_timeout=3 keepalives=0 keepalives_idle=9 tcp_user_timeout=1500 \
                fallback_application_name=fallback client_encoding=LATIN1 sslmode=allow krbsrvname=p";
    let target =
        fixture.resolve([text, "", "", ""], &[("PGTZ", "UTC"), ("PGOPTIONS", "-c geqo=off")]).unwrap();
    assert_eq!(target.connect_timeout.unwrap().as_secs(), 3);
    assert!(target.tcp.keepalives.is_none());
    assert_eq!(target.tcp.user_timeout.unwrap().as_millis(), 1500);
    assert!(!target.tcp.is_default);
    assert_eq!(target.application_name, "fallback");
    assert_eq!(target.tls.mode, SslMode::Allow);
    assert_eq!(target.options.as_deref(), Some("-c timezone=UTC -c geqo=off"));
    assert!(target.warnings().iter().any(|warning| warning.contains("LATIN1")));
    assert!(!target.warnings().iter().any(|warning| warning.contains("PGOPTIONS")));
}

#[test]
fn ports_within_hosts_are_told_apart() {
    let fixture = Fixture::new();
    let hosts = [
        ("", "db:5433", &[][..], "-h db -p 5433"),
        ("", "a:1,b:2", &[], "-h a,b -p 1,2"),
        ("", "", &[("PGHOST", "db:5433")], "PGHOST=db and PGPORT=5433"),
        ("host=db:5433", "", &[], "host=db port=5433"),
    ];
    for (dbname, host, env, told) in hosts {
        let error = fixture.resolve([dbname, host, "", ""], env).err().unwrap().to_string();
        assert!(error.ends_with(&format!(": give {told}")), "{error}");
    }
    for host in ["::1", "fe80::1", "/run/a:1", "db"] {
        assert!(fixture.resolve(["", host, "", ""], &[]).is_ok(), "{host}");
    }
}

#[test]
fn options_that_have_no_effect_are_named() {
    let warnings = |text: &str| {
        let target = Fixture::new().resolve([text, "", "", ""], &[("PGOPTIONS", "-c geqo=off")]).unwrap();
        target.warnings().join("\n")
    };
    let said = warnings("host=x options='-c jit=off'");
    assert!(said.contains("replace those of PGOPTIONS, so -c geqo=off has no effect"), "{said}");
    assert!(warnings("host=x options='-c geqo=off'").is_empty());
}

#[test]
fn what_is_dead_is_noticed_within_30_s_unless_the_user_says_otherwise() {
    let fixture = Fixture::new();
    let resolved = |text: &str, env: &[(&str, &str)]| fixture.resolve([text, "", "", ""], env).unwrap();
    for text in ["host=x connect_timeout=0", "host=x connect_timeout=-1"] {
        assert_eq!(resolved(text, &[]).connect_timeout, None, "{text}");
    }
    let seconds = |env: &[(&str, &str)]| resolved("host=x", env).connect_timeout.unwrap().as_secs();
    assert_eq!((seconds(&[]), seconds(&[("PGCONNECT_TIMEOUT", "45")])), (10, 45));
    let patience = |text: &str| {
        let tcp = resolved(text, &[]).tcp;
        let keepalives = tcp.keepalives.and_then(|keepalives| keepalives.patience());
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
        (seconds(keepalives), seconds(tcp.user_timeout), tcp.is_default)
    };
    assert_eq!(patience("host=x"), (Some(25), Some(25), true));
    assert_eq!(patience("host=x keepalives=0"), (None, Some(25), true));
    assert_eq!(patience("host=x keepalives_idle=100"), (Some(115), Some(115), true));
    assert_eq!(patience("host=x keepalives_idle=0"), (None, None, true));
    assert_eq!(patience("host=x tcp_user_timeout=0"), (Some(25), None, false));
    assert_eq!(patience("host=x tcp_user_timeout=9000"), (Some(25), Some(9), false));
}

#[test]
fn passwords_are_found_and_never_shown() {
    let fixture = Fixture::new();
    let pgpass = fixture.path().join(".pgpass");
    std::fs::write(&pgpass, "localhost:5432:*:*:from file\nx:*:db:*:other\n").unwrap();
    std::fs::set_permissions(&pgpass, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let password = |typed: &str, env: &[(&str, &str)]| {
        let target = fixture.resolve([typed, "", "", ""], env).unwrap();
        let shown = format!("{target} {target:?}");
        let secret = target.password_for(&target.hosts[0]);
        if let Some(secret) = &secret {
            assert!(!shown.contains(&secret.value) && !format!("{secret:?}").contains(&secret.value));
        }
        secret.map(|secret| (secret.value, PathBuf::from(secret.source)))
    };
    let found = |value: &str, source: &str| Some((value.to_owned(), PathBuf::from(source)));
    let file = pgpass.to_str().unwrap();
    let env = [("PGPASSWORD", "from env")];
    // The default socket directory is "localhost" to the password file.
    assert_eq!(password("dbname=db", &[]), found("from file", file));
    assert_eq!(password("host=x dbname=db", &[]), found("other", file));
    assert_eq!(password("host=x dbname=other", &[]), None);
    assert_eq!(password("dbname=db", &env), found("from env", "PGPASSWORD"));
    assert_eq!(password("dbname=db password=typed", &env), found("typed", "the connection string"));
}

#[test]
fn require_checks_the_chain_only_if_there_are_roots() {
    let fixture = Fixture::new();
    let string = "host=x sslmode=require sslrootcert=/nonexistent/root.crt";
    let target = fixture.resolve([string, "", "", ""], &[]).unwrap();
    assert!(target.warnings()[0].contains("does not check the server's certificate"));
    let home = fixture.path().join(".postgresql");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("root.crt"), "nothing").unwrap();
    let error = fixture.resolve(["host=x sslmode=require", "", "", ""], &[]).unwrap_err();
    assert!(error.to_string().contains("contains no certificate"), "{error}");
    // Neither a Unix socket nor a mode that promises nothing reads it.
    fixture.resolve(["sslmode=require", "", "", ""], &[]).unwrap();
    fixture.resolve(["host=x", "", "", ""], &[]).unwrap();
}
