//! A target for other programs: as a URI, and as the environment variables of libpq ("34.15. Environment Variables").

use super::target::{Address, Target};
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
        let list = |part: &dyn Fn(&super::target::Host) -> String| {
            self.hosts.iter().map(part).collect::<Vec<_>>().join(",")
        };
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

    /// Whether a program that is to connect to this target must not inherit this environment
    /// variable: libpq reads the variable, and it may name another server.
    pub fn is_in_the_way(variable: &str) -> bool {
        variable.starts_with("PG")
            && !variable.starts_with("PGRIG_")
            && !KEPT.iter().any(|kept| variable.starts_with(kept))
    }

    /// The sslmode, if it was given and matters.
    fn ssl_mode(&self) -> Option<&'static str> {
        let is_tcp = |address: &Address| matches!(address, Address::Tcp { .. });
        let matters = self.hosts.iter().any(|host| is_tcp(&host.address)) && self.tls.mode != SslMode::Prefer;
        matters.then(|| self.tls.mode.name())
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
    fn what_names_another_server_is_in_the_way() {
        for name in ["PGHOST", "PGHOSTADDR", "PGSERVICE", "PGOPTIONS", "PGPASSFILE", "PGDATABASE"] {
            assert!(Target::is_in_the_way(name), "{name}");
        }
        for name in ["PGSSLROOTCERT", "PGRIG_HOME", "PATH", "DATABASE_URL"] {
            assert!(!Target::is_in_the_way(name), "{name}");
        }
    }
}
