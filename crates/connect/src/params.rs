//! The parameters that libpq knows ("34.1.2 Parameter Key Words"), their environment variables
//! ("34.15 Environment Variables"), and which source wins: the connection string over `-h -p -U`
//! (as in psql, whose `-d` string is read after its options), then the service file, then the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::error::ConnectError;

/// pgrig's support of a parameter.
enum Support {
    /// pgrig obeys it.
    Used,
    /// It concerns only features that pgrig does not have (GSSAPI, compression), so pgrig ignores it.
    Ignored,
    /// pgrig obeys only the values in this list. The text is the remedy for other values.
    Only(&'static [&'static str], &'static str),
    /// pgrig refuses it, because ignoring it would weaken security or do something else than asked.
    /// The text is the remedy.
    Refused(&'static str),
}
use Support::{Ignored, Only, Refused, Used};

const REMOVE: &str = "remove it";

/// Keyword, environment variable ("" for none), support.
const KEYWORDS: &[(&str, &str, Support)] = &[
    ("application_name", "PGAPPNAME", Used),
    ("channel_binding", "PGCHANNELBINDING", Used),
    ("client_encoding", "PGCLIENTENCODING", Used),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Used),
    ("dbname", "PGDATABASE", Used),
    ("fallback_application_name", "", Used),
    ("gssdelegation", "PGGSSDELEGATION", Ignored),
    (
        "gssencmode",
        "PGGSSENCMODE",
        Only(
            &["disable", "prefer"],
            "pgrig has no GSSAPI; use gssencmode=disable, and sslmode for encryption",
        ),
    ),
    ("gsslib", "PGGSSLIB", Ignored),
    ("host", "PGHOST", Used),
    ("hostaddr", "PGHOSTADDR", Used),
    ("keepalives", "", Used),
    ("keepalives_count", "", Used),
    ("keepalives_idle", "", Used),
    ("keepalives_interval", "", Used),
    ("krbsrvname", "PGKRBSRVNAME", Ignored),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Used),
    (
        "max_protocol_version",
        "PGMAXPROTOCOLVERSION",
        Only(&["3.0", "3.2", "latest"], "pgrig uses protocol 3.0: remove this parameter"),
    ),
    (
        "min_protocol_version",
        "PGMINPROTOCOLVERSION",
        Only(&["3.0"], "pgrig uses protocol 3.0: remove this parameter"),
    ),
    ("oauth_client_id", "", Refused("pgrig has no OAuth; use a password")),
    ("oauth_client_secret", "", Refused("pgrig has no OAuth; use a password")),
    ("oauth_issuer", "", Refused("pgrig has no OAuth; use a password")),
    ("oauth_scope", "", Refused("pgrig has no OAuth; use a password")),
    ("options", "PGOPTIONS", Used),
    ("passfile", "PGPASSFILE", Used),
    ("password", "PGPASSWORD", Used),
    ("port", "PGPORT", Used),
    ("replication", "", Refused(REMOVE)),
    (
        "require_auth",
        "PGREQUIREAUTH",
        Refused(
            "pgrig cannot restrict the authentication method: remove this parameter, and use sslmode=verify-full to be sure \
             of the server",
        ),
    ),
    (
        "requirepeer",
        "PGREQUIREPEER",
        Refused(
            "use a socket directory that only the server's account can write to, and remove this parameter",
        ),
    ),
    ("scram_client_key", "", Refused("use password")),
    ("scram_server_key", "", Refused("use password")),
    ("service", "PGSERVICE", Used),
    ("servicefile", "PGSERVICEFILE", Used),
    ("sslcert", "PGSSLCERT", Used),
    ("sslcertmode", "PGSSLCERTMODE", Only(&["disable", "allow"], "use sslcertmode=allow")),
    ("sslcompression", "PGSSLCOMPRESSION", Ignored),
    ("sslcrl", "PGSSLCRL", Refused("pgrig does not read revocation lists: remove this parameter")),
    ("sslcrldir", "PGSSLCRLDIR", Refused("pgrig does not read revocation lists: remove this parameter")),
    ("sslkey", "PGSSLKEY", Used),
    ("sslkeylogfile", "", Refused(REMOVE)),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Used),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Used),
    ("sslmode", "PGSSLMODE", Used),
    ("sslnegotiation", "PGSSLNEGOTIATION", Used),
    ("sslpassword", "", Refused("decrypt the key file first: openssl pkey -in KEY -out PLAINKEY")),
    ("sslrootcert", "PGSSLROOTCERT", Used),
    ("sslsni", "PGSSLSNI", Used),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Used),
    ("tcp_user_timeout", "", Used),
    ("user", "PGUSER", Used),
];

/// Source of a value; named in every error about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A command-line option.
    Option(&'static str),
    /// `-d`'s string.
    ConnectionString,
    /// A section of a service file.
    Service { name: String, file: PathBuf },
    /// An environment variable.
    Environment(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(name) | Self::Environment(name) => f.write_str(name),
            Self::ConnectionString => f.write_str("the connection string"),
            Self::Service { name, file } => write!(f, "service \"{name}\" in {}", file.display()),
        }
    }
}

/// A value and its source. Not `Debug`: it may be a password.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// The given parameters, by keyword.
#[derive(Default)]
pub(super) struct Params(BTreeMap<&'static str, Setting>);

impl Params {
    /// Sets `keyword`, whatever it was before.
    pub(super) fn put(&mut self, keyword: &str, value: String, origin: Origin) -> Result<(), ConnectError> {
        let (name, support) = lookup(keyword, &origin)?;
        check(name, support, &value, &origin)?;
        self.0.insert(name, Setting { value, origin });
        Ok(())
    }

    /// Sets `keyword` unless a stronger source already did.
    pub(super) fn put_weaker(
        &mut self,
        keyword: &str,
        value: String,
        origin: Origin,
    ) -> Result<(), ConnectError> {
        if self.0.contains_key(keyword) {
            return Ok(());
        }
        self.put(keyword, value, origin)
    }

    /// Fills unset parameters from the environment.
    pub(super) fn put_environment(
        &mut self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), ConnectError> {
        for &(keyword, variable, _) in KEYWORDS.iter().filter(|(_, variable, _)| !variable.is_empty()) {
            if let Some(value) = env(variable).filter(|value| !value.is_empty()) {
                self.put_weaker(keyword, value, Origin::Environment(variable))?;
            }
        }
        Ok(())
    }

    /// The setting, unless unset or empty (an empty value means the default, as in libpq).
    pub(super) fn get(&self, keyword: &str) -> Option<&Setting> {
        debug_assert!(KEYWORDS.iter().any(|(name, ..)| *name == keyword), "{keyword}");
        self.0.get(keyword).filter(|setting| !setting.value.is_empty())
    }

    /// All that is set and not empty, by keyword.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let set = self.0.iter().filter(|(_, setting)| !setting.value.is_empty());
        set.map(|(keyword, setting)| (*keyword, setting.value.as_str()))
    }

    /// The parameters about TLS that are set, without sslmode, as environment variables.
    pub(super) fn tls_variables(&self) -> Vec<(&'static str, String)> {
        let is_about_tls = |keyword: &str| keyword.starts_with("ssl") && keyword != "sslmode";
        let about_tls =
            KEYWORDS.iter().filter(|(keyword, variable, _)| is_about_tls(keyword) && !variable.is_empty());
        about_tls
            .filter_map(|(keyword, variable, _)| Some((*variable, self.text(keyword)?.to_owned())))
            .collect()
    }

    /// The value as text.
    pub(super) fn text(&self, keyword: &str) -> Option<&str> {
        self.get(keyword).map(|setting| setting.value.as_str())
    }

    /// The value as one of `choices`, or the first of them.
    pub(super) fn choice<T: Copy>(
        &self,
        keyword: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, ConnectError> {
        let Some(setting) = self.get(keyword) else {
            return Ok(choices[0].1);
        };
        let found = choices.iter().find(|(name, _)| *name == setting.value);
        found.map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
            invalid(keyword, setting, format!("one of {}", names.join(", ")))
        })
    }

    /// The value as a whole number, `default` if unset; zero and less turn it off.
    pub(super) fn positive_or(
        &self,
        keyword: &'static str,
        default: u32,
    ) -> Result<Option<u32>, ConnectError> {
        let Some(setting) = self.get(keyword) else {
            return Ok(Some(default));
        };
        match setting.value.trim().parse::<i32>() {
            Ok(number) => Ok(u32::try_from(number).ok().filter(|&n| n > 0)),
            Err(_) => Err(invalid(keyword, setting, "a whole number")),
        }
    }
}

/// The error for a value outside its type.
pub(super) fn invalid(keyword: &'static str, setting: &Setting, expected: impl Into<String>) -> ConnectError {
    ConnectError::InvalidValue {
        keyword,
        origin: setting.origin.to_string(),
        value: setting.value.clone(),
        expected: expected.into(),
    }
}

fn lookup(keyword: &str, origin: &Origin) -> Result<(&'static str, &'static Support), ConnectError> {
    KEYWORDS.iter().find(|(name, ..)| *name == keyword).map(|(name, _, support)| (*name, support)).ok_or_else(
        || ConnectError::UnknownKeyword { keyword: keyword.to_owned(), origin: origin.to_string() },
    )
}

fn check(name: &str, support: &Support, value: &str, origin: &Origin) -> Result<(), ConnectError> {
    let (keyword, remedy) = match support {
        _ if value.is_empty() => return Ok(()),
        Used | Ignored => return Ok(()),
        Only(values, _) if values.contains(&value) => return Ok(()),
        Only(_, remedy) => (format!("{name}={value}"), remedy),
        Refused(remedy) => (name.to_owned(), remedy),
    };
    Err(ConnectError::Unsupported { keyword, origin: origin.to_string(), remedy: (*remedy).to_owned() })
}
