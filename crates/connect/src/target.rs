//! The target: every decision about where and how to connect, made before the first packet.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::open;
use super::passfile::{PassFile, Secret};
use super::socket::ResolvedAddress;
use super::tls::Tls;
use super::transport::host_port;

/// A place to connect to and the way to do it. Made by [`super::resolve`] or by one of its constructors;
/// cheap enough to clone per connection. Neither `Display` nor `Debug` shows a password.
#[derive(Clone)]
pub struct Target {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) dbname: String,
    pub(super) password: Option<Secret>,
    pub(super) passfile: Arc<PassFile>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) application_name: String,
    pub(super) options: Option<String>,
    pub(super) tcp: TcpOptions,
    pub(super) tls: Tls,
    pub(super) channel_binding: tokio_postgres::config::ChannelBinding,
    pub(super) session: SessionAttributes,
    pub(super) shuffle_hosts: bool,
    pub(super) warnings: Vec<String>,
    pub(super) embedded: bool,
    /// Sessions of a target and of its clones are cancelled together.
    pub(super) family: u64,
}

/// One host of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) address: Address,
    pub(super) port: u16,
}

/// The values of `host` and `hostaddr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The directory of a Unix-domain socket; whether it is the default one (the password file then
    /// calls it `localhost`).
    Unix { directory: PathBuf, default: bool },
    /// A name or address from the options, and the address to use without asking the DNS.
    Tcp { name: String, address: Option<IpAddr> },
}

/// connect_timeout, where none is given, in seconds. libpq would wait without end.
pub(super) const CONNECT_TIMEOUT: u32 = 10;

/// keepalives_idle, where none is given, in seconds.
pub(super) const KEEPALIVES_IDLE: u32 = 10;
/// keepalives_interval, where none is given, in seconds.
pub(super) const KEEPALIVES_INTERVAL: u32 = 5;
/// keepalives_count, where none is given.
pub(super) const KEEPALIVES_COUNT: u32 = 3;

/// TCP settings ("34.1.2", keepalives*, tcp_user_timeout). Unless the user gives others, a dead network ends a
/// connection within 30 s; the system's defaults would take hours.
#[derive(Debug, Clone)]
pub(super) struct TcpOptions {
    /// Probes of a connection on which nothing is under way; `None` sends none.
    pub(super) keepalives: Option<Keepalives>,
    /// Time that sent bytes may stay without an acknowledgement; `None` is the system's default.
    pub(super) user_timeout: Option<Duration>,
    /// Whether `user_timeout` is pgrig's own choice.
    pub(super) is_default: bool,
}

/// keepalives_idle, _interval and _count; `None` is the system's default.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keepalives {
    pub(super) idle: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) count: Option<u32>,
}

impl Default for Keepalives {
    fn default() -> Self {
        let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
        Self {
            idle: seconds(KEEPALIVES_IDLE),
            interval: seconds(KEEPALIVES_INTERVAL),
            count: Some(KEEPALIVES_COUNT),
        }
    }
}

impl Keepalives {
    /// Time without an answer after which the keepalives end the connection; `None` if the
    /// operating system decides.
    pub(super) fn patience(&self) -> Option<Duration> {
        Some(self.idle? + self.interval? * self.count?)
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        let keepalives = Keepalives::default();
        Self { keepalives: Some(keepalives), user_timeout: keepalives.patience(), is_default: true }
    }
}

/// target_session_attrs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionAttributes {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Target {
    /// The server on the Unix socket in `socket_dir`.
    pub fn unix(socket_dir: impl Into<PathBuf>, port: u16, user: &str, dbname: &str) -> Self {
        Self::new(Address::Unix { directory: socket_dir.into(), default: false }, port, user, dbname)
    }

    /// The embedded server: [`Self::unix`], and [`Self::is_embedded`] says so.
    pub fn embedded(socket_dir: impl Into<PathBuf>, port: u16, user: &str, dbname: &str) -> Self {
        Self { embedded: true, ..Self::unix(socket_dir, port, user, dbname) }
    }

    /// The server at `host` (name or address), without TLS: for servers that pgrig itself started.
    pub fn tcp(host: &str, port: u16, user: &str, dbname: &str) -> Self {
        let address = Address::Tcp { name: host.to_owned(), address: host.parse().ok() };
        Self::new(address, port, user, dbname)
    }

    fn new(address: Address, port: u16, user: &str, dbname: &str) -> Self {
        Self {
            hosts: vec![Host { address, port }],
            user: user.to_owned(),
            dbname: dbname.to_owned(),
            password: None,
            passfile: Arc::default(),
            connect_timeout: Some(Duration::from_secs(CONNECT_TIMEOUT.into())),
            application_name: super::APPLICATION_NAME.to_owned(),
            options: None,
            tcp: TcpOptions::default(),
            tls: Tls::off(),
            channel_binding: tokio_postgres::config::ChannelBinding::Prefer,
            session: SessionAttributes::Any,
            shuffle_hosts: false,
            warnings: Vec::new(),
            embedded: false,
            family: open::new_family(),
        }
    }

    /// The same target, whose sessions are cancelled apart from those of this one.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.family = open::new_family();
        self
    }

    /// Cancels the statements of its sessions and of its clones' sessions, once.
    pub async fn cancel_running(&self) {
        open::cancel_family_once(self.family).await;
    }

    /// The same, again and again: a request that comes between two statements has no effect.
    pub async fn cancel_repeatedly(&self) -> Infallible {
        open::cancel_family(self.family).await
    }

    /// The same target, with only the server at this address, to which it has connected. For later connections, neither the list of
    /// hosts nor the DNS leads to another server. A host that is given by name keeps its name, for the check of the certificate.
    #[must_use]
    pub fn pinned_to(&self, address: &ResolvedAddress) -> Self {
        let found = self.hosts.iter().find(|host| host.is_at(address)).cloned();
        let Some(mut host) = found else { return self.clone() };
        if let (Address::Tcp { address, .. }, ResolvedAddress::Tcp { socket, .. }) =
            (&mut host.address, address)
        {
            // The interface of a link-local address is only in the name.
            let has_interface = matches!(socket, SocketAddr::V6(socket) if socket.scope_id() != 0);
            *address = (!has_interface).then(|| socket.ip());
        }
        Self { hosts: vec![host], ..self.clone() }
    }

    /// The same server and user, another database.
    #[must_use]
    pub fn with_database(mut self, dbname: &str) -> Self {
        dbname.clone_into(&mut self.dbname);
        self
    }

    /// The same server and database, another user. A password given for the first user is forgotten; the
    /// password file is asked again.
    #[must_use]
    pub fn with_user(mut self, user: &str) -> Self {
        if user != self.user {
            self.password = None;
            user.clone_into(&mut self.user);
        }
        self
    }

    /// With this password, instead of any other source's.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.password = Some(Secret { value: password.to_owned(), source: "the program".to_owned() });
        self
    }

    /// With this application_name, as shown in pg_stat_activity.
    #[must_use]
    pub fn with_application_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.application_name);
        self
    }

    /// With this setting in each session, as PGOPTIONS would have it: it takes precedence over settings of the role and the database.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        // pg_split_opts: a backslash quotes, white space ends an option.
        let quoted = value.chars().fold(String::new(), |text, c| match c {
            '\\' => text + "\\\\",
            c if c.is_ascii_whitespace() => text + "\\" + c.encode_utf8(&mut [0; 4]),
            c => text + c.encode_utf8(&mut [0; 4]),
        });
        let option = format!("-c {name}={quoted}");
        self.options = Some(self.options.map_or(option.clone(), |options| options + " " + &option));
        self
    }

    /// Without the settings that [`Self::with_setting`], PGOPTIONS and the like gave it.
    #[must_use]
    pub fn without_settings(mut self) -> Self {
        self.options = None;
        self
    }

    /// The hosts, or the directories of their sockets, separated by commas: as PGHOST has them.
    pub fn host_list(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(|host| host.address.to_string()).collect();
        hosts.join(",")
    }

    /// Their ports, separated by commas: as PGPORT has them.
    pub fn port_list(&self) -> String {
        let ports: Vec<String> = self.hosts.iter().map(|host| host.port.to_string()).collect();
        ports.join(",")
    }

    /// The password that is sent to the first host, if one is known. Do not print it.
    pub fn password(&self) -> Option<String> {
        self.hosts.first().and_then(|host| self.password_for(host)).map(|secret| secret.value)
    }

    /// The application_name that the server shows for the session.
    pub fn application_name(&self) -> &str {
        &self.application_name
    }

    /// Name of the database to connect to.
    pub fn dbname(&self) -> &str {
        &self.dbname
    }

    /// Name of the user to connect as.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether this is pgrig's own embedded server.
    pub fn is_embedded(&self) -> bool {
        self.embedded
    }

    /// Warnings from the resolution of the target, e.g. an ignored password file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The ways to give a password.
    pub(super) fn password_remedy(&self) -> String {
        let path = &self.passfile.path;
        let file =
            if path.as_os_str().is_empty() { "~/.pgpass".to_owned() } else { path.display().to_string() };
        match &self.passfile.problem {
            Some(problem) => format!("{problem}; or set PGPASSWORD, or put it into the connection string"),
            None => format!(
                "set PGPASSWORD, add a line host:port:database:user:password to {file}, or put it into the connection string"
            ),
        }
    }

    /// The password for one host, from the strongest source that has one.
    pub(super) fn password_for(&self, host: &Host) -> Option<Secret> {
        let name = match &host.address {
            Address::Unix { default: true, .. } => "localhost".to_owned(),
            address => address.to_string(),
        };
        self.password
            .clone()
            .or_else(|| self.passfile.find(&name, host.port, &self.dbname, &self.user))
            .filter(|secret| !secret.value.is_empty())
    }
}

impl Host {
    /// The socket's file.
    pub(super) fn socket(directory: &Path, port: u16) -> PathBuf {
        directory.join(format!(".s.PGSQL.{port}"))
    }

    /// Whether this address is one of the host's.
    fn is_at(&self, resolved: &ResolvedAddress) -> bool {
        match (&self.address, resolved) {
            (Address::Unix { directory, .. }, ResolvedAddress::Unix(path)) => {
                Self::socket(directory, self.port) == *path
            }
            (Address::Tcp { name, address }, ResolvedAddress::Tcp { host, socket }) => {
                name == host
                    && self.port == socket.port()
                    && address.is_none_or(|address| address == socket.ip())
            }
            _ => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { directory, .. } => write!(f, "{}", directory.display()),
            Self::Tcp { name, .. } => f.write_str(name),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix { directory, .. } => write!(f, "{}", Self::socket(directory, self.port).display()),
            Address::Tcp { name, .. } => f.write_str(&host_port(name, self.port)),
        }
    }
}

/// `host=… port=… dbname=… user=…`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |part: &dyn Fn(&Host) -> String| self.hosts.iter().map(part).collect::<Vec<_>>().join(",");
        let (hosts, ports) = (list(&|host| host.address.to_string()), list(&|host| host.port.to_string()));
        write!(f, "host={hosts} port={ports} dbname={} user={}", self.dbname, self.user)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}
