//! Resolves options and the environment to a [`Target`].

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::ChannelBinding;

use super::error::ConnectError;
use super::open::new_family;
use super::params::{Origin, Params, Setting, invalid};
use super::passfile::{PassFile, Secret};
use super::target::{
    Address, CONNECT_TIMEOUT, Host, KEEPALIVES_COUNT, KEEPALIVES_IDLE, KEEPALIVES_INTERVAL, Keepalives,
    SessionAttributes, Target, TcpOptions,
};
use super::tls::Tls;
use super::{ConnectOptions, Env, conninfo, service};

/// Facts from the machine; separate from `resolve` so that tests can set them.
pub(super) struct Machine {
    /// Directories where a local server's socket may be, in order.
    pub(super) socket_directories: Vec<PathBuf>,
    /// The operating-system user's name and home directory.
    pub(super) user: Option<String>,
    pub(super) home: Option<PathBuf>,
}

impl Machine {
    /// The machine that pgrig runs on.
    pub(super) fn here(env: Env<'_>) -> Self {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let home = env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        Self {
            // Debian and Red Hat; the same under its old name; PostgreSQL built from source.
            socket_directories: ["/run/postgresql", "/var/run/postgresql", "/tmp"]
                .map(PathBuf::from)
                .to_vec(),
            home: home.or_else(|| user.as_ref().map(|user| user.dir.clone())),
            user: user.map(|user| user.name).or_else(|| env("USER")).or_else(|| env("LOGNAME")),
        }
    }
}

/// Resolves options and environment to a target: collects the values from all sources, then
/// interprets them.
pub(super) fn resolve(
    options: &ConnectOptions,
    env: Env<'_>,
    machine: &Machine,
) -> Result<Target, ConnectError> {
    let params = gather(options, env, machine)?;
    let named =
        options.dbname.as_deref().and_then(|name| Some((name, conninfo::host_in_place_of_name(name)?)));
    interpret(&params, env, machine).map_err(|error| match (error, named) {
        (ConnectError::NoSocket { .. }, Some((name, uri))) => {
            ConnectError::Mismatch(format!("-d {name} names a database: to name a host, give -d {uri}"))
        }
        (error, _) => error,
    })
}

/// See [`super::recipe`].
pub(super) fn recipe(
    options: &ConnectOptions,
    env: Env<'_>,
    machine: &Machine,
) -> Result<String, ConnectError> {
    let params = gather(options, env, machine)?;
    let target = interpret(&params, env, machine)?;
    // A service has been looked up by now; a password stays where it is.
    let told = ["password", "service", "servicefile", "user", "dbname"];
    let mut pairs: Vec<(&str, String)> = vec![("user", target.user), ("dbname", target.dbname)];
    if let (None, None, Some(host)) = (params.get("host"), params.get("hostaddr"), target.hosts.first()) {
        pairs.push(("host", host.address.to_string()));
    }
    let others = params.all().filter(|(keyword, _)| !told.contains(keyword));
    pairs.extend(others.map(|(keyword, value)| (keyword, value.to_owned())));
    let words = pairs.iter().map(|(keyword, value)| conninfo::pair(keyword, value));
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// All sources, the strongest first.
fn gather(options: &ConnectOptions, env: Env<'_>, machine: &Machine) -> Result<Params, ConnectError> {
    let mut params = Params::default();
    for (keyword, value, option) in
        [("host", &options.host, "-h"), ("port", &options.port, "-p"), ("user", &options.user, "-U")]
    {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            params.put(keyword, value.clone(), Origin::Option(option))?;
        }
    }
    options.dbname.as_deref().map_or(Ok(()), refuse_scheme)?;
    match &options.dbname {
        Some(text) if conninfo::is_connection_string(text) => {
            for (keyword, value) in conninfo::parse(text)? {
                params.put(&keyword, value, Origin::ConnectionString)?;
            }
        }
        Some(name) if !name.is_empty() => params.put("dbname", name.clone(), Origin::Option("-d"))?,
        _ => {}
    }
    apply_service(&mut params, env, machine)?;
    params.put_environment(env)?;
    Ok(params)
}

/// Refuses the URI of another program.
fn refuse_scheme(text: &str) -> Result<(), ConnectError> {
    let Some(scheme) = conninfo::foreign_scheme(text) else { return Ok(()) };
    let remedy = match text.strip_prefix("jdbc:") {
        Some(rest) if rest.starts_with("postgresql://") => "leave out jdbc:",
        _ => "give postgresql://HOST/DBNAME",
    };
    Err(ConnectError::Syntax { what: format!("{scheme}… is not a URI of PostgreSQL: {remedy}") })
}

fn apply_service(params: &mut Params, env: Env<'_>, machine: &Machine) -> Result<(), ConnectError> {
    let from_env = |variable| {
        let value = env(variable).filter(|value| !value.is_empty())?;
        Some(Setting { value, origin: Origin::Environment(variable) })
    };
    let Some(service) = params.get("service").cloned().or_else(|| from_env("PGSERVICE")) else {
        return Ok(());
    };
    let user_file = params.get("servicefile").cloned().or_else(|| from_env("PGSERVICEFILE"));
    let user_file = user_file
        .map(|setting| PathBuf::from(setting.value))
        .or_else(|| machine.home.as_ref().map(|home| home.join(".pg_service.conf")));
    let files = service::files(user_file, env("PGSYSCONFDIR"));
    service::apply(params, &service.value, &service.origin, &files)
}

fn interpret(params: &Params, env: Env<'_>, machine: &Machine) -> Result<Target, ConnectError> {
    let user = params.text("user").map(str::to_owned).or_else(|| machine.user.clone());
    let user = user.ok_or(ConnectError::NoUser)?;
    let dbname = params.text("dbname").unwrap_or(&user).to_owned();
    let (passfile, warning) = passfile(params, machine);
    let mut warnings: Vec<String> =
        warning.into_iter().chain(encoding_warning(params)).chain(options_warning(params, env)).collect();
    let hosts = hosts(params, machine)?;
    // Files are not read, nor their faults met, where only Unix sockets are.
    let over_tcp = hosts.iter().any(|host| matches!(host.address, Address::Tcp { .. }));
    let tls =
        if over_tcp { Tls::resolve(params, machine.home.as_deref(), &mut warnings)? } else { Tls::off() };
    let application_name = params
        .text("application_name")
        .or_else(|| params.text("fallback_application_name"))
        .unwrap_or(super::APPLICATION_NAME);
    Ok(Target {
        hosts,
        user,
        dbname,
        password: params
            .get("password")
            .map(|setting| Secret { value: setting.value.clone(), source: setting.origin.to_string() }),
        passfile: Arc::new(passfile),
        connect_timeout: params
            .positive_or("connect_timeout", CONNECT_TIMEOUT)?
            .map(|s| Duration::from_secs(s.into())),
        application_name: application_name.to_owned(),
        options: session_options(params, env),
        tcp: tcp_options(params)?,
        tls,
        channel_binding: params.choice(
            "channel_binding",
            &[
                ("prefer", ChannelBinding::Prefer),
                ("disable", ChannelBinding::Disable),
                ("require", ChannelBinding::Require),
            ],
        )?,
        session: params.choice(
            "target_session_attrs",
            &[
                ("any", SessionAttributes::Any),
                ("read-write", SessionAttributes::ReadWrite),
                ("read-only", SessionAttributes::ReadOnly),
                ("primary", SessionAttributes::Primary),
                ("standby", SessionAttributes::Standby),
                ("prefer-standby", SessionAttributes::PreferStandby),
            ],
        )?,
        shuffle_hosts: params.choice("load_balance_hosts", &[("disable", false), ("random", true)])?,
        warnings,
        embedded: false,
        family: new_family(),
    })
}

fn passfile(params: &Params, machine: &Machine) -> (PassFile, Option<String>) {
    let path = params.text("passfile").map(PathBuf::from);
    match path.or_else(|| machine.home.as_ref().map(|home| home.join(".pgpass"))) {
        // With a password in hand nobody asks the file: no warning about it either.
        Some(path) if params.get("password").is_none() => PassFile::read(&path),
        _ => (PassFile::default(), None),
    }
}

/// The `options` parameter, after the session settings that have variables of their own (34.15).
fn session_options(params: &Params, env: Env<'_>) -> Option<String> {
    let settings = [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];
    let mut options: Vec<String> = settings
        .into_iter()
        .filter_map(|(variable, setting)| {
            let value = env(variable).filter(|value| !value.is_empty())?;
            Some(format!("-c {setting}={}", value.replace('\\', "\\\\").replace(' ', "\\ ")))
        })
        .collect();
    options.extend(params.text("options").map(str::to_owned));
    (!options.is_empty()).then(|| options.join(" "))
}

/// Says that `PGOPTIONS` has no effect: as in libpq, the options of the connection string or of the service replace it.
fn options_warning(params: &Params, env: Env<'_>) -> Option<String> {
    let setting = params.get("options")?;
    let variable = env("PGOPTIONS").filter(|variable| !variable.is_empty() && *variable != setting.value)?;
    (!matches!(setting.origin, Origin::Environment(_))).then(|| {
        format!(
            "the options from {} replace those of PGOPTIONS, so {} has no effect: to use both, write them into one of the two",
            setting.origin,
            variable.trim()
        )
    })
}

fn encoding_warning(params: &Params) -> Option<String> {
    let setting = params.get("client_encoding")?;
    let plain = setting.value.to_ascii_lowercase().replace(['-', '_'], "");
    (!["utf8", "unicode", "auto"].contains(&plain.as_str())).then(|| {
        format!(
            "pgrig ignores client_encoding={} (from {}), because it always uses UTF8",
            setting.value, setting.origin
        )
    })
}

fn tcp_options(params: &Params) -> Result<TcpOptions, ConnectError> {
    let seconds = |keyword, default| {
        let given = params.positive_or(keyword, default)?;
        Ok::<_, ConnectError>(given.map(|seconds| Duration::from_secs(seconds.into())))
    };
    let keepalives = Keepalives {
        idle: seconds("keepalives_idle", KEEPALIVES_IDLE)?,
        interval: seconds("keepalives_interval", KEEPALIVES_INTERVAL)?,
        count: params.positive_or("keepalives_count", KEEPALIVES_COUNT)?,
    };
    let user_timeout = match params.get("tcp_user_timeout") {
        Some(_) => params.positive_or("tcp_user_timeout", 0)?.map(|ms| Duration::from_millis(ms.into())),
        // Not sooner than keepalives that the user has chosen.
        None => keepalives.patience(),
    };
    Ok(TcpOptions {
        keepalives: params.positive_or("keepalives", 1)?.map(|_| keepalives),
        user_timeout,
        is_default: params.get("tcp_user_timeout").is_none(),
    })
}

/// The lists of hosts, addresses and ports, matched as libpq matches them.
fn hosts(params: &Params, machine: &Machine) -> Result<Vec<Host>, ConnectError> {
    refuse_uri(params)?;
    refuse_ports(params)?;
    refuse_socket(params)?;
    let names = list(params.get("host"));
    let addresses = list(params.get("hostaddr"));
    let ports = list(params.get("port"));
    let count = if params.get("hostaddr").is_some() { addresses.len() } else { names.len() };
    if params.get("host").is_some() && names.len() != count {
        return Err(ConnectError::Mismatch(format!(
            "the numbers of host names ({}) and hostaddr values ({count}) differ; give as many of each",
            names.len()
        )));
    }
    if ports.len() != 1 && ports.len() != count {
        return Err(ConnectError::Mismatch(format!(
            "the numbers of ports ({}) and hosts ({count}) differ; give one port for all hosts, or one for each",
            ports.len()
        )));
    }
    (0..count)
        .map(|index| {
            let port = port(params, ports[if ports.len() == 1 { 0 } else { index }])?;
            let name = names.get(index).copied().unwrap_or_default();
            let address =
                address(params, machine, name, addresses.get(index).copied().unwrap_or_default(), port)?;
            Ok(Host { address, port })
        })
        .collect()
}

/// Refuses a URI in the place of a host, or of a database in the environment. It may hold a password, which is not shown.
fn refuse_uri(params: &Params) -> Result<(), ConnectError> {
    if let Some(Setting { value, origin: Origin::Environment(name) }) = params.get("dbname")
        && value.contains("://")
    {
        return Err(ConnectError::Mismatch(format!("{name} cannot be a URI: give the URI with -d")));
    }
    match params.get("host") {
        Some(setting) if setting.value.contains("://") => Err(ConnectError::Mismatch(format!(
            "the host (from {}) cannot be a URI: give the URI with -d",
            setting.origin
        ))),
        _ => Ok(()),
    }
}

/// Refuses the path of a socket in the place of its directory.
fn refuse_socket(params: &Params) -> Result<(), ConnectError> {
    let Some(setting) = params.get("host") else { return Ok(()) };
    let Some((directory, port)) = setting.value.rsplit_once("/.s.PGSQL.") else { return Ok(()) };
    let directory = if directory.is_empty() { "/" } else { directory };
    let expected = match &setting.origin {
        Origin::Option(_) => format!("-h {directory} -p {port}"),
        Origin::Environment(_) => format!("PGHOST={directory} and PGPORT={port}"),
        Origin::ConnectionString | Origin::Service { .. } => format!("host={directory} port={port}"),
    };
    Err(invalid("host", setting, expected))
}

/// Refuses hosts that are all written with their ports, `HOST:PORT`, as in URIs.
fn refuse_ports(params: &Params) -> Result<(), ConnectError> {
    let Some(setting) = params.get("host").filter(|_| params.get("hostaddr").is_none()) else {
        return Ok(());
    };
    let Some(pairs) = list(Some(setting)).into_iter().map(with_port).collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let (hosts, ports): (Vec<&str>, Vec<&str>) = pairs.into_iter().unzip();
    let [hosts, ports] = [hosts, ports].map(|names| names.join(","));
    let expected = match &setting.origin {
        Origin::Option(_) => format!("-h {hosts} -p {ports}"),
        Origin::Environment(_) => format!("PGHOST={hosts} and PGPORT={ports}"),
        Origin::ConnectionString | Origin::Service { .. } => format!("host={hosts} port={ports}"),
    };
    Err(invalid("host", setting, expected))
}

/// A host and its port, if they are written together.
fn with_port(name: &str) -> Option<(&str, &str)> {
    let (host, port) = name.split_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && !host.is_empty() && !host.starts_with(['/', '@'])).then_some((host, port))
}

/// A comma-separated value; unset is one empty entry.
fn list(setting: Option<&Setting>) -> Vec<&str> {
    setting.map_or_else(|| vec![""], |setting| setting.value.split(',').map(str::trim).collect())
}

fn port(params: &Params, text: &str) -> Result<u16, ConnectError> {
    match (text, text.parse::<u16>()) {
        ("", _) => Ok(5432),
        (_, Ok(port)) if port > 0 => Ok(port),
        _ => Err(value_error(params, "port", "a number from 1 to 65535")),
    }
}

fn value_error(params: &Params, keyword: &'static str, expected: &str) -> ConnectError {
    params.get(keyword).map_or_else(
        || ConnectError::Mismatch(format!("{keyword}: give {expected}")),
        |setting| invalid(keyword, setting, expected),
    )
}

fn address(
    params: &Params,
    machine: &Machine,
    name: &str,
    address: &str,
    port: u16,
) -> Result<Address, ConnectError> {
    let address = match address {
        "" => None,
        text => {
            let parsed = text.parse::<IpAddr>();
            Some(parsed.map_err(|_| {
                value_error(params, "hostaddr", "IPv4 or IPv6 addresses; put names into host")
            })?)
        }
    };
    match (name, address) {
        ("", None) => default_socket(machine, port),
        (path, None) if path.starts_with('/') => Ok(Address::Unix {
            directory: path.into(),
            default: machine.socket_directories.iter().any(|dir| dir.as_os_str() == path),
        }),
        (abstract_name, None) if abstract_name.starts_with('@') => Err(value_error(
            params,
            "host",
            "a name, an address or a socket directory; abstract sockets are not supported",
        )),
        (path, None) if path.contains('/') => {
            Err(value_error(params, "host", "an absolute path for the directory of a socket"))
        }
        (bracketed, None) if bracketed.starts_with('[') && bracketed.ends_with(']') => {
            Err(value_error(params, "host", "an IPv6 address without brackets"))
        }
        ("", Some(address)) => Ok(Address::Tcp { name: address.to_string(), address: Some(address) }),
        (name, address) => {
            Ok(Address::Tcp { name: name.to_owned(), address: address.or_else(|| name.parse().ok()) })
        }
    }
}

/// libpq has one compiled-in directory; pgrig does not know which, so it looks where servers put theirs.
fn default_socket(machine: &Machine, port: u16) -> Result<Address, ConnectError> {
    let directories = &machine.socket_directories;
    let found = directories.iter().find(|dir| Host::socket(dir, port).exists());
    found.map(|directory| Address::Unix { directory: directory.clone(), default: true }).ok_or_else(|| {
        ConnectError::NoSocket {
            port,
            directories: directories.clone(),
            own: "give --instance default instead of other connection options".to_owned(),
        }
    })
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
