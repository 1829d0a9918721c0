//! The JSON messages of the socket: requests, leases, refusals. Client and keeper share these types.

use failure::{Class, Classified};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::owner::Owner;
use server::quote;

/// The request for a database: the body of `POST /databases`. All fields may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LendRequest {
    /// A script or dump to make the template from: an absolute path on the keeper's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// A database of the server to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Tables of the script become unlogged.
    pub unlogged: bool,
    /// The process; the database is dropped after it exits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerName>,
    /// Length of the lease, seconds. By default an hour without an owner, and without limit with
    /// one.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Whether the database stays until it is dropped by name.
    pub keep: bool,
}

/// A process, by its id alone or identified uniquely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OwnerName {
    /// The process that has this id now.
    Pid(u32),
    /// This process, and no other that gets the same id later.
    Exactly(Owner),
}

/// A database that is lent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Name of the database.
    pub name: String,
    /// Its connection URI.
    pub url: String,
    /// The server's host, or its socket's directory.
    pub host: String,
    /// The server's port.
    pub port: String,
    /// The role to connect as.
    pub user: String,
    /// Its password, if it needs one. Never sent over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Time at which it is dropped, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// Text form of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `export DATABASE_URL=…`, for a shell's eval.
    Shell,
    /// All fields, as JSON.
    #[default]
    Json,
    /// The connection URI alone.
    Url,
    /// `DATABASE_URL=…` and the others, a line each, unquoted: for env files.
    Env,
}

impl Lease {
    /// The text, without a line's end.
    ///
    /// # Panics
    /// Never: its fields can always be written as JSON.
    pub fn told(&self, format: Format) -> String {
        let variables = self.variables();
        match format {
            Format::Json => serde_json::to_string(self).expect("plain fields"),
            Format::Url => self.url.clone(),
            // One line: without double quotes around it, eval joins lines with blanks.
            Format::Shell => variables
                .iter()
                .fold("export".to_owned(), |text, (name, value)| format!("{text} {name}={}", quoted(value))),
            Format::Env => {
                let lines = variables.iter().map(|(name, value)| format!("{name}={value}"));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The connection URI for others to see.
    pub fn url_without_password(&self) -> String {
        let parts = self.url.split_once('@');
        match parts.and_then(|(role, rest)| Some((role, role.rfind(':')?, rest))) {
            // The scheme's colon is not it.
            Some((role, colon, rest)) if !role[colon..].starts_with("://") => {
                format!("{}@{rest}", &role[..colon])
            }
            _ => self.url.clone(),
        }
    }

    fn variables(&self) -> Vec<(&'static str, &str)> {
        let mut variables = vec![
            ("DATABASE_URL", self.url.as_str()),
            ("PGHOST", &self.host),
            ("PGPORT", &self.port),
            ("PGUSER", &self.user),
            ("PGDATABASE", &self.name),
        ];
        variables.extend(self.password.as_deref().map(|password| ("PGPASSWORD", password)));
        variables
    }
}

/// The text, quoted for POSIX shells.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A database of pgrig's, in the answer of `GET /databases`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Name of the database.
    pub name: String,
    /// State of the database.
    pub state: ListedState,
    /// Its content: the template's source.
    pub source: String,
    /// Whether the answering keeper made it. Otherwise a keeper of another PGRIG_HOME or machine
    /// did.
    pub own: bool,
    /// The process that it is lent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ListedOwner>,
    /// Time of its creation, seconds since 1970.
    pub created: u64,
    /// Its size on disk, bytes; none if it has been dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Time at which it is dropped, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// State of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListedState {
    /// It is lent.
    Lent,
    /// It stays until it is dropped by name.
    Kept,
    /// It is ready to be lent.
    Spare,
    /// It is a template, of which the others are copies.
    Template,
    /// It is not finished.
    Making,
}

impl fmt::Display for ListedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lent => "lent",
            Self::Kept => "kept",
            Self::Spare => "spare",
            Self::Template => "template",
            Self::Making => "making",
        })
    }
}

/// A process that a database is lent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedOwner {
    /// ID of the process.
    pub pid: u32,
    /// Its command line; none if it is gone, or on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The answer of `GET /databases`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The databases, by state and age.
    pub databases: Vec<Listed>,
    /// Durability settings, as SHOW gives them.
    pub settings: Vec<(String, String)>,
}

/// The answer of `GET /status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The keeper's process.
    pub pid: u32,
    /// Addresses besides its own socket; none if it runs in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<String>,
    /// Whether the server ends with the keeper.
    pub owns_server: bool,
    /// The number in `version()`, for instance `18.6`.
    pub server_version: String,
    /// Durability settings, as SHOW gives them.
    pub settings: Vec<(String, String)>,
    /// Number of lent databases, which are dropped at the end.
    pub lent: usize,
    /// Number of kept databases.
    pub kept: usize,
    /// Number of spare databases.
    pub spare: usize,
    /// Number of templates that the spare databases are copies of.
    pub templates: usize,
    /// Number of waiting requests.
    pub waiting: usize,
    /// The fastest way to copy each template.
    pub strategies: Vec<(String, String)>,
}

/// The databases to drop: the parameter `which` of `DELETE /databases`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// All of pgrig's, kept ones and other keepers' too; the keeper then ends.
    All,
    /// Templates and their spares.
    Templates,
    /// Databases of keepers of other machines or homes that no longer run, but not kept ones.
    Orphans,
}

/// Result of dropping databases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Databases that were dropped.
    pub dropped: Vec<String>,
    /// Databases that could not be dropped, and why.
    pub failed: Vec<(String, String)>,
}

/// Why a request was not fulfilled: the body of every answer that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error}{}", .remedy.as_ref().map_or_else(String::new, |remedy| format!("; {remedy}")))]
pub struct Refusal {
    /// The HTTP status; not in the body.
    #[serde(skip)]
    pub status: u16,
    /// The error, without its remedy.
    pub error: String,
    /// The remedy, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// HTTP status: the keeper is ending, and the next one will answer.
pub(super) const ENDING: u16 = 503;

impl Refusal {
    /// A refusal with this HTTP status, the error, and the remedy.
    pub fn new(status: u16, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status, error: error.into(), remedy: Some(remedy.into()) }
    }

    /// The server or the machine failed; its message contains the remedy.
    pub(super) fn failed(error: impl fmt::Display) -> Self {
        Self { status: 500, error: error.to_string(), remedy: None }
    }

    pub(super) fn ending() -> Self {
        Self::new(ENDING, "this keeper is shutting down", "ask again")
    }

    pub(super) fn too_many(most: usize) -> Self {
        let error = format!("the maximum number of databases ({most}) is lent or requested");
        Self::new(
            429,
            error,
            "return some (DELETE /databases/NAME, pgrig testdb drop), or borrow them for a shorter time",
        )
    }

    pub(super) fn unknown(name: &str) -> Self {
        let error = format!("{} is not a pgrig database of this role", quote::identifier(name));
        Self::new(
            404,
            error,
            "pgrig testdb list shows the databases of this role; pgrig never changes others",
        )
    }

    pub(super) fn not_lent(name: &str) -> Self {
        let error =
            format!("{} is not lent: it is a template, a spare, or will be dropped", quote::identifier(name));
        Self::new(
            409,
            error,
            "only a lent database can be kept or renewed: pgrig testdb list shows the lent databases",
        )
    }
}

impl Classified for Refusal {
    fn class(&self) -> Class {
        match self.status {
            400..500 => Class::Request,
            _ => Class::Machine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Lease {
        Lease {
            name: "db".to_owned(),
            url: "postgresql://me@/db?host=%2Fa%20b&port=5433".to_owned(),
            host: "/a b".to_owned(),
            port: "5433".to_owned(),
            user: "me".to_owned(),
            password: None,
            expires: None,
        }
    }

    #[test]
    fn leases_are_printed_for_shells_and_programs() {
        let shell = "export DATABASE_URL='postgresql://me@/db?host=%2Fa%20b&port=5433' PGHOST='/a b' \
                     PGPORT='5433' PGUSER='me' PGDATABASE='db'";
        assert_eq!(lease().told(Format::Shell), shell);
        assert_eq!(lease().told(Format::Url), "postgresql://me@/db?host=%2Fa%20b&port=5433");
        assert_eq!(lease().told(Format::Env).lines().last(), Some("PGDATABASE=db"));
        let with_password = Lease { password: Some("it's".to_owned()), ..lease() };
        assert!(with_password.told(Format::Shell).ends_with(r"PGPASSWORD='it'\''s'"));
        assert_eq!(serde_json::from_str::<Lease>(&with_password.told(Format::Json)).unwrap(), with_password);
    }

    #[test]
    fn others_see_no_password() {
        assert_eq!(lease().url_without_password(), lease().url);
        let url = "postgresql://a%3Ab:p%40%3A@[::1]:5432/db%40?host=%2Fa%40b%3Ac".to_owned();
        let told = Lease { url, ..lease() }.url_without_password();
        assert_eq!(told, "postgresql://a%3Ab@[::1]:5432/db%40?host=%2Fa%40b%3Ac");
    }

    #[test]
    fn requests_with_misspelt_fields_are_refused() {
        assert!(serde_json::from_str::<LendRequest>(r#"{"form": "/a.sql"}"#).is_err());
        let request: LendRequest = serde_json::from_str(r#"{"owner": 12, "for": 60}"#).unwrap();
        assert_eq!((request.owner, request.seconds), (Some(OwnerName::Pid(12)), Some(60)));
    }
}
