//! A target for other programs: as a URI, and as the environment variables of libpq ("34.15. Environment Variables").

use std::net::IpAddr;

use tokio_postgres::config::ChannelBinding;

use super::target::{Address, Host, Keepalives, Target};
use super::tls::SslMode;

/// Variables that say how to talk to a server, not which one it is.
const KEPT: [&str; 3] = ["PGSSL", "PGREQUIRESSL", "PGCHANNELBINDING"];

impl Target {
    /// `postgresql://role:password@host:port/database`: a Unix socket's directory is the parameter `host`. Holds the
    /// password, if there is one.
    pub fn url(&self) -> String {
        self.url_with(self.password())
    }

    /// The same for others to see: without the password.
    pub fn url_without_password(&self) -> String {
        self.url_with(None)
    }

    /// The same of a relay in front of the server: in this directory of a socket or, with an address, at that address under the name of the
    /// server's host, for the check of the certificate.
    pub fn url_through(&self, host: &str, address: Option<IpAddr>, port: u16) -> String {
        let place = match address {
            Some(_) => Address::Tcp { name: host.to_owned(), address },
            None => Address::Unix { directory: host.into(), default: false },
        };
        let relay = Self { hosts: vec![Host { address: place, port }], ..self.clone() };
        let url = relay.url_without_password();
        let mark = if url.contains('?') { '&' } else { '?' };
        match address {
            Some(address) => format!("{url}{mark}hostaddr={address}"),
            None => url,
        }
    }

    fn url_with(&self, password: Option<String>) -> String {
        let password = password.map_or(String::new(), |password| format!(":{}", encoded(&password)));
        let role = format!("{}{password}", encoded(&self.user));
        let mut parameters = Vec::new();
        let hosts = self.hosts.iter().map(|host| match &host.address {
            Address::Tcp { name, .. } if name.contains(':') => format!("[{name}]:{}", host.port),
            Address::Tcp { name, .. } => format!("{}:{}", encoded(name), host.port),
            // As a host it would need the percent signs that many programs do not expect there.
            Address::Unix { directory, .. } => {
                parameters.push(format!("host={}", encoded(&directory.display().to_string())));
                parameters.push(format!("port={}", host.port));
                String::new()
            }
        });
        let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).collect();
        if let Some(mode) = self.ssl_mode() {
            parameters.push(format!("sslmode={mode}"));
        }
        let parameters =
            if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
        format!("postgresql://{role}@{}/{}{parameters}", hosts.join(","), encoded(&self.dbname))
    }

    /// `PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`, and `PGPASSWORD` and `PGSSLMODE` where there is something to say.
    /// Holds the password.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let list = |part: &dyn Fn(&Host) -> String| self.hosts.iter().map(part).collect::<Vec<_>>().join(",");
        let mut variables = vec![
            ("PGHOST", list(&|host| host.address.to_string())),
            ("PGPORT", list(&|host| host.port.to_string())),
            ("PGUSER", self.user.clone()),
            ("PGDATABASE", self.dbname.clone()),
        ];
        variables.extend(self.password().map(|password| ("PGPASSWORD", password)));
        variables.extend(self.ssl_mode().map(|mode| ("PGSSLMODE", mode.to_owned())));
        variables
    }

    /// The same, and the rest that client programs of PostgreSQL need to connect as pgrig does: addresses, TLS, `options`,
    /// application_name and connect_timeout; the password file, if no password is known. libpq has no variables for parameters about
    /// TCP ([`Self::tcp_parameters`]).
    ///
    /// Not target_session_attrs and load_balance_hosts, which choose among servers: of a target that is
    /// [pinned](Self::pinned_to), there is only one, and pgrig has checked it.
    pub fn client_variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = self.variables();
        let addresses: Vec<String> = self.hosts.iter().map(|host| known_address(&host.address)).collect();
        if addresses.iter().any(|address| !address.is_empty()) {
            variables.push(("PGHOSTADDR", addresses.join(",")));
        }
        if self.hosts.iter().any(|host| is_tcp(&host.address)) {
            variables.retain(|(name, _)| *name != "PGSSLMODE");
            variables.push(("PGSSLMODE", self.tls.mode.name().to_owned()));
            // pgrig has no GSSAPI.
            variables.push(("PGGSSENCMODE", "disable".to_owned()));
            variables.extend(self.tls.variables.iter().cloned());
        }
        let binding = match self.channel_binding {
            ChannelBinding::Disable => Some("disable"),
            ChannelBinding::Require => Some("require"),
            _ => None,
        };
        variables.extend(binding.map(|binding| ("PGCHANNELBINDING", binding.to_owned())));
        variables.extend(self.options.clone().map(|options| ("PGOPTIONS", options)));
        variables.push(("PGAPPNAME", self.application_name.clone()));
        // 0 waits without end.
        let seconds = self.connect_timeout.map_or(0, |time| time.as_secs());
        variables.push(("PGCONNECT_TIMEOUT", seconds.to_string()));
        let passfile = self.passfile.path.display().to_string();
        if self.password().is_none() && !passfile.is_empty() {
            variables.push(("PGPASSFILE", passfile));
        }
        variables
    }

    /// The parameters about TCP, as a connection string that is never empty and does not say which server it is.
    pub fn tcp_parameters(&self) -> String {
        let mut words = vec![format!("keepalives={}", u8::from(self.tcp.keepalives.is_some()))];
        if let Some(Keepalives { idle, interval, count }) = self.tcp.keepalives {
            words.extend(idle.map(|time| format!("keepalives_idle={}", time.as_secs())));
            words.extend(interval.map(|time| format!("keepalives_interval={}", time.as_secs())));
            words.extend(count.map(|count| format!("keepalives_count={count}")));
        }
        words.extend(self.tcp.user_timeout.map(|time| format!("tcp_user_timeout={}", time.as_millis())));
        words.join(" ")
    }

    /// Whether libpq may read this environment variable. A client program that has [`Self::client_variables`] needs no other ones.
    pub fn is_of_libpq(variable: &str) -> bool {
        variable.starts_with("PG") && !variable.starts_with("PGRIG_")
    }

    /// Whether a program that is to connect to this target must not inherit this environment
    /// variable: libpq reads the variable, and it may name another server.
    pub fn is_in_the_way(variable: &str) -> bool {
        Self::is_of_libpq(variable) && !KEPT.iter().any(|kept| variable.starts_with(kept))
    }

    /// The sslmode, if it was given and matters.
    fn ssl_mode(&self) -> Option<&'static str> {
        let matters = self.hosts.iter().any(|host| is_tcp(&host.address)) && self.tls.mode != SslMode::Prefer;
        matters.then(|| self.tls.mode.name())
    }
}

fn is_tcp(address: &Address) -> bool {
    matches!(address, Address::Tcp { .. })
}

/// The IP address of a host; empty if libpq has to ask the DNS, or for a Unix socket.
fn known_address(address: &Address) -> String {
    match address {
        Address::Tcp { address: Some(address), .. } => address.to_string(),
        Address::Tcp { address: None, .. } | Address::Unix { .. } => String::new(),
    }
}

/// Percent-encoded, except for the characters that RFC 3986 calls unreserved.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::super::socket::ResolvedAddress;
    use super::super::{ConnectOptions, resolve};
    use super::*;

    #[test]
    fn a_socket_is_a_parameter() {
        let target = Target::unix("/run/a b", 5433, "al ice", "tests");
        assert_eq!(target.url(), "postgresql://al%20ice@/tests?host=%2Frun%2Fa%20b&port=5433");
        let variables =
            [("PGHOST", "/run/a b"), ("PGPORT", "5433"), ("PGUSER", "al ice"), ("PGDATABASE", "tests")];
        assert_eq!(target.variables(), variables.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_password_is_in_both() {
        let target = Target::tcp("db.example", 5432, "alice", "ü").with_password("p@ss:w/rd");
        assert_eq!(target.url(), "postgresql://alice:p%40ss%3Aw%2Frd@db.example:5432/%C3%BC?sslmode=disable");
        assert!(target.variables().contains(&("PGPASSWORD", "p@ss:w/rd".to_owned())));
        let target = Target::tcp("::1", 5432, "alice", "x");
        assert!(target.url().contains("@[::1]:5432/x"), "{}", target.url());
    }

    #[test]
    fn a_relay_has_the_name_of_the_host_and_another_address() {
        let target = Target::tcp("db.example", 5432, "alice", "shop").with_password("s3cret");
        let here = Some("127.0.0.1".parse().unwrap());
        let expected = "postgresql://alice@db.example:6000/shop?sslmode=disable&hostaddr=127.0.0.1";
        assert_eq!(target.url_through("db.example", here, 6000), expected);
        let socket = Target::unix("/run", 5433, "alice", "shop").url_through("/tmp/relay", None, 5432);
        assert_eq!(socket, "postgresql://alice@/shop?host=%2Ftmp%2Frelay&port=5432");
    }

    /// The target of a connection string in an environment, pinned to this address.
    fn pinned(text: &str, environment: &[(&str, &str)], address: &ResolvedAddress) -> Target {
        let options = ConnectOptions { dbname: Some(text.to_owned()), ..ConnectOptions::default() };
        let variable = |name: &str| {
            let all = environment.iter().chain(&[("HOME", "/nonexistent")]);
            all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        resolve(&options, &variable).unwrap().pinned_to(address)
    }

    fn tcp(host: &str, socket: &str) -> ResolvedAddress {
        ResolvedAddress::Tcp { host: host.to_owned(), socket: socket.parse().unwrap() }
    }

    /// Each once, in any order.
    fn assert_variables(target: &Target, expected: &[(&str, &str)]) {
        let mut found = target.client_variables();
        found.sort();
        let mut expected: Vec<(&str, String)> =
            expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn of_several_hosts_programs_get_the_one_that_was_reached() {
        let uri = "postgresql://al%20ice:secret@a,b:5433,b:5434/shop?target_session_attrs=read-write\
                   &load_balance_hosts=random&options=-c%20work_mem%3D7MB&application_name=mine\
                   &connect_timeout=3&keepalives_idle=60&channel_binding=disable";
        let target = pinned(uri, &[("PGSSLMODE", "prefer")], &tcp("b", "192.0.2.7:5434"));
        let expected = [
            ("PGHOST", "b"),
            ("PGHOSTADDR", "192.0.2.7"),
            ("PGPORT", "5434"),
            ("PGUSER", "al ice"),
            ("PGDATABASE", "shop"),
            ("PGPASSWORD", "secret"),
            ("PGSSLMODE", "prefer"),
            ("PGGSSENCMODE", "disable"),
            ("PGCHANNELBINDING", "disable"),
            ("PGOPTIONS", "-c work_mem=7MB"),
            ("PGAPPNAME", "mine"),
            ("PGCONNECT_TIMEOUT", "3"),
        ];
        assert_variables(&target, &expected);
        assert_eq!(
            target.tcp_parameters(),
            "keepalives=1 keepalives_idle=60 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=75000"
        );
        assert_eq!(
            target.url_without_password().split('?').next(),
            Some("postgresql://al%20ice@b:5434/shop")
        );
        // Another target's address pins nothing.
        let other = pinned(uri, &[], &tcp("c", "192.0.2.7:5434"));
        assert_eq!(other.host_list(), "a,b,b");
    }

    #[test]
    fn settings_of_tls_are_handed_over_from_each_source() {
        let directory = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        let root = directory.path().join("root.crt");
        std::fs::write(&root, certificate.self_signed(&key).unwrap().pem()).unwrap();
        let services = directory.path().join("services");
        std::fs::write(&services, "[s]\nhost=db.example\nsslmode=verify-full\nsslsni=0\n").unwrap();
        let (root, services) = (root.to_str().unwrap(), services.to_str().unwrap());
        let environment = [
            ("PGSERVICEFILE", services),
            ("PGSSLMODE", "disable"),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.3"),
            ("PGTZ", "UTC"),
        ];
        let text =
            format!("service=s user=me dbname=shop hostaddr=192.0.2.9 sslrootcert={root} keepalives=0");
        let target = pinned(&text, &environment, &tcp("db.example", "192.0.2.9:5432"));
        let expected = [
            ("PGHOST", "db.example"),
            ("PGHOSTADDR", "192.0.2.9"),
            ("PGPORT", "5432"),
            ("PGUSER", "me"),
            ("PGDATABASE", "shop"),
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", root),
            ("PGSSLSNI", "0"),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.3"),
            ("PGGSSENCMODE", "disable"),
            ("PGOPTIONS", "-c timezone=UTC"),
            ("PGAPPNAME", "pgrig"),
            ("PGCONNECT_TIMEOUT", "10"),
            ("PGPASSFILE", "/nonexistent/.pgpass"),
        ];
        assert_variables(&target, &expected);
        assert_eq!(target.tcp_parameters(), "keepalives=0 tcp_user_timeout=25000");
    }

    #[test]
    fn a_socket_among_several_hosts_has_neither_address_nor_tls() {
        let text =
            "host=/run/a,db port=5433,5432 user=me dbname=shop sslmode=require passfile=/nonexistent/p";
        let socket = ResolvedAddress::Unix("/run/a/.s.PGSQL.5433".into());
        let target = pinned(text, &[("PGSSLNEGOTIATION", "direct")], &socket);
        let expected = [
            ("PGHOST", "/run/a"),
            ("PGPORT", "5433"),
            ("PGUSER", "me"),
            ("PGDATABASE", "shop"),
            ("PGAPPNAME", "pgrig"),
            ("PGCONNECT_TIMEOUT", "10"),
            ("PGPASSFILE", "/nonexistent/p"),
        ];
        assert_variables(&target, &expected);
    }

    #[test]
    fn an_address_with_an_interface_stays_a_name() {
        let target = pinned("host=fe80::1%2 user=me", &[], &tcp("fe80::1%2", "[fe80::1%2]:5432"));
        let address = target.client_variables().into_iter().find(|(name, _)| *name == "PGHOSTADDR");
        assert_eq!((target.host_list().as_str(), address), ("fe80::1%2", None));
    }

    #[test]
    fn what_names_another_server_is_in_the_way() {
        for name in ["PGHOST", "PGHOSTADDR", "PGSERVICE", "PGOPTIONS", "PGPASSFILE", "PGDATABASE"] {
            assert!(Target::is_in_the_way(name), "{name}");
        }
        for name in ["PGSSLROOTCERT", "PGRIG_HOME", "PATH", "DATABASE_URL"] {
            assert!(!Target::is_in_the_way(name), "{name}");
        }
        for (name, is_of_libpq) in
            [("PGSSLMODE", true), ("PGTARGETSESSIONATTRS", true), ("PGRIG_HOME", false)]
        {
            assert_eq!(Target::is_of_libpq(name), is_of_libpq, "{name}");
        }
    }
}
