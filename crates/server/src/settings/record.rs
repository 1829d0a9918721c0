//! The contents of a journal: the state of a server before pgrig changed it, and the process that changed it.

use std::io;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::process::{Process, host};
use crate::quote::qualified;

/// To be increased when an older pgrig would misread the record.
const FORMAT_VERSION: u32 = 1;

/// The server, and the way to reach it. Never holds a password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRef {
    /// pgrig's own instance of this name.
    Own(String),
    /// A connection string from [`connect::recipe`].
    Named(String),
}

/// A setting that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its name as in pg_settings.
    pub name: String,
    /// The value in postgresql.auto.conf; none if it is not set there.
    pub altered: Option<String>,
    /// The value that SHOW gave.
    pub shown: String,
}

/// A table whose persistence is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
}

impl Table {
    /// Schema and name, quoted.
    pub fn qualified(&self) -> String {
        qualified(&self.schema, &self.name)
    }
}

/// Content of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format_version: u32,
    /// Name of the journal's file, and of its sessions in pg_stat_activity.
    pub id: String,
    /// ID of the process that makes the changes.
    pub pid: u32,
    /// The same process, identified uniquely. None if that was not possible, or if an older pgrig
    /// wrote the record.
    #[serde(default)]
    pub process: Option<Process>,
    /// The host of that process, from [`host`].
    #[serde(default)]
    pub host: String,
    /// Why that process ended without restoring the server, if it could record that.
    #[serde(default)]
    pub gave_up: Option<String>,
    /// The server whose settings are changed.
    pub place: ServerRef,
    /// `system_identifier`, where the role may ask for it.
    pub system_identifier: Option<String>,
    /// Settings that are changed by ALTER SYSTEM.
    pub settings: Vec<Before>,
    /// Tables that are made unlogged, in an order in which that is possible. All of them were
    /// logged.
    pub tables: Vec<Table>,
    /// The tables of them that held rows.
    #[serde(default)]
    pub filled: Vec<Table>,
    /// Start of the server's statistics, which a crash of the server resets.
    #[serde(default)]
    pub(crate) statistics_since: Option<String>,
}

impl Record {
    /// A record of this process, without changes yet.
    pub fn new(place: ServerRef, system_identifier: Option<String>) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let pid = std::process::id();
        Self {
            format_version: FORMAT_VERSION,
            id: format!("{:x}-{pid:x}", since.as_nanos()),
            pid,
            process: Process::this(),
            host: host().to_owned(),
            gave_up: None,
            place,
            system_identifier,
            settings: Vec::new(),
            tables: Vec::new(),
            filled: Vec::new(),
            statistics_since: None,
        }
    }

    /// Reads the text that [`Record::text`] wrote.
    pub(super) fn parse(text: &str) -> io::Result<Self> {
        /// The part that no later pgrig changes.
        #[derive(Deserialize)]
        struct Format {
            format_version: u32,
        }
        if serde_json::from_str::<Format>(text).is_ok_and(|format| format.format_version > FORMAT_VERSION) {
            return Err(io::Error::other("a newer pgrig wrote it; use that pgrig"));
        }
        serde_json::from_str(text).map_err(|error| {
            io::Error::other(format!(
                "the journal is damaged ({error}). The changes that it lists are possibly not restored: check \
                 postgresql.auto.conf of the server, then delete the journal"
            ))
        })
    }

    pub(super) fn text(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }

    /// Statements with which a person can restore everything.
    pub fn remedy(&self) -> Vec<String> {
        let logged = self.tables.iter().rev();
        let logged = logged.map(|table| format!("ALTER TABLE {} SET LOGGED;", table.qualified()));
        let settings =
            self.settings.iter().map(|before| super::alter(&before.name, before.altered.as_deref()) + ";");
        let reload = (!self.settings.is_empty()).then(|| "SELECT pg_reload_conf();".to_owned());
        // As [`super::durable`] does.
        let is_fsync = self.settings.iter().any(|before| before.name == "fsync");
        let sync = is_fsync.then(|| "CHECKPOINT; -- and then run sync on the server's machine.".to_owned());
        settings.chain(reload).chain(logged).chain(sync).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::settings) fn record() -> Record {
        let before = |name: &str, altered: Option<&str>| Before {
            name: name.to_owned(),
            altered: altered.map(str::to_owned),
            shown: "on".to_owned(),
        };
        let table = |name: &str| Table { schema: "s".to_owned(), name: name.to_owned() };
        let mut record = Record::new(ServerRef::Own("default".to_owned()), Some("1".to_owned()));
        record.settings = vec![before("fsync", None), before("x.y", Some("it's"))];
        record.tables = vec![table("child"), table("parent")];
        record
    }

    #[test]
    fn the_remedy_is_what_a_person_can_type() {
        let expected = [
            "ALTER SYSTEM RESET \"fsync\";",
            "ALTER SYSTEM SET \"x\".\"y\" = 'it''s';",
            "SELECT pg_reload_conf();",
            "ALTER TABLE \"s\".\"parent\" SET LOGGED;",
            "ALTER TABLE \"s\".\"child\" SET LOGGED;",
            "CHECKPOINT; -- and then run sync on the server's machine.",
        ];
        assert_eq!(record().remedy(), expected);
    }
}
