//! The settings of a server: a profile, and the user's settings on top.

use crate::files::free_bytes;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// A set of settings with a known durability. Only [`Profile::Dangerous`] reduces it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// PostgreSQL's own defaults: nothing is set.
    Stock,
    /// For loading: fully durable. `wal_level=minimal` and `max_wal_senders=0` (no replicas, no
    /// archive), `checkpoint_timeout=30min`, `max_wal_size` 16 GB but at most a quarter of the free
    /// disk and at least 1 GB, `shared_buffers` a quarter of the memory but at most 8 GB.
    #[default]
    Bulk,
    /// As [`Self::Bulk`], with fsync, full_page_writes and synchronous_commit off: a crash of the
    /// machine may destroy everything in the instance.
    Dangerous,
}

impl Profile {
    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Bulk => "bulk",
            Self::Dangerous => "dangerous",
        }
    }

    /// Its settings for this machine and the disk that `dir` is on, spelled as SHOW does.
    pub(crate) fn settings(self, dir: &Path) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut set = |name: &str, value: &str| settings.push((name.to_owned(), value.to_owned()));
        if self == Self::Stock {
            return settings;
        }
        set("wal_level", "minimal");
        set("max_wal_senders", "0");
        set("max_wal_size", &megabytes(max_wal_size(free_bytes(dir))));
        set("checkpoint_timeout", "30min");
        set("shared_buffers", &megabytes(shared_buffers(memory())));
        if self == Self::Dangerous {
            set("fsync", "off");
            set("full_page_writes", "off");
            set("synchronous_commit", "off");
        }
        settings
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Stock, Self::Bulk, Self::Dangerous]
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| Error::UnknownProfile(text.to_owned()))
    }
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The value for `max_wal_size`, MiB: a quarter of the free disk, so that WAL never takes the space
/// that the data needs.
fn max_wal_size(free: Option<u64>) -> u64 {
    (free.unwrap_or(0) / 4).clamp(GIB, 16 * GIB) / MIB
}

/// The value for `shared_buffers`, MiB. More than 8 GB does not speed up a load, because COPY uses
/// a small ring of buffers. The minimum is PostgreSQL's own default.
fn shared_buffers(memory: u64) -> u64 {
    (memory / 4).clamp(128 * MIB, 8 * GIB) / MIB
}

/// The value as SHOW prints it: in the largest unit that divides it evenly.
fn megabytes(n: u64) -> String {
    match n % 1024 {
        0 => format!("{}GB", n / 1024),
        _ => format!("{n}MB"),
    }
}

/// Memory that this process may use, bytes: the machine's, or the control group's limit if that is
/// less.
fn memory() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let Ok(system) = System::new_with_specifics(what) else {
        return 0;
    };
    let machine = system.total_memory();
    let group = system.cgroup_limits().map(|limits| limits.total_memory);
    group.filter(|limit| *limit > 0).map_or(machine, |limit| limit.min(machine))
}

/// Settings that pgrig chooses, with the alternatives.
const RESERVED: [(&str, &str); 10] = [
    ("port", "for TCP on a free port, run pgrig server start --tcp"),
    ("listen_addresses", "to listen on 127.0.0.1, run pgrig server start --tcp"),
    ("unix_socket_directories", "to see the directory, run pgrig server url"),
    ("data_directory", "set PGRIG_HOME or use --instance"),
    ("config_file", "use --set for each setting"),
    ("hba_file", "edit pg_hba.conf in the data directory"),
    ("ident_file", "edit pg_ident.conf in the data directory"),
    ("logging_collector", "to see the log, run pgrig server logs"),
    ("log_destination", "to see the log, run pgrig server logs"),
    (
        "restart_after_crash",
        "leave it out: a server that pgrig server start keeps running restarts itself after a crash; a server that runs for one \
         command does not",
    ),
];

/// Whether the user may set this.
pub(crate) fn validate(name: &str, value: &str) -> Result<()> {
    let bad = |problem: &str| Error::InvalidSetting { name: name.to_owned(), problem: problem.to_owned() };
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // At most one dot: the prefix is an extension's.
    if !name.split('.').all(part) || name.split('.').count() > 2 {
        return Err(bad("this is not the name of a setting"));
    }
    if value.contains('\0') {
        return Err(bad("its value holds a zero byte"));
    }
    let reserved = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(name);
    match RESERVED.iter().find(reserved) {
        None => Ok(()),
        Some((_, remedy)) => Err(Error::ReservedSetting { name: name.to_owned(), remedy }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(megabytes(max_wal_size(None)), "1GB");
        assert_eq!(megabytes(max_wal_size(Some(10 * GIB))), "2560MB");
        assert_eq!(megabytes(max_wal_size(Some(1 << 50))), "16GB");
        assert_eq!(megabytes(shared_buffers(0)), "128MB");
        assert_eq!(megabytes(shared_buffers(10 * GIB + 3)), "2560MB");
        assert_eq!(megabytes(shared_buffers(1 << 50)), "8GB");
    }

    #[test]
    fn only_dangerous_gives_up_durability() {
        let names = |profile: Profile| -> Vec<String> {
            let settings = profile.settings(Path::new("/"));
            settings.into_iter().map(|(name, _)| name).collect()
        };
        assert!(names(Profile::Stock).is_empty());
        let durable =
            |name: &String| !["fsync", "full_page_writes", "synchronous_commit"].contains(&name.as_str());
        assert!(names(Profile::Bulk).iter().all(durable));
        assert!(!names(Profile::Dangerous).iter().all(durable));
    }

    #[test]
    fn names_are_checked() {
        for name in ["work_mem", "auto_explain.log_min_duration", "_x"] {
            validate(name, "any 'thing'\n").unwrap();
        }
        for name in ["", "a b", "a=b", "a\nfsync", "1a", "a..b", "a.b.c", "a'"] {
            validate(name, "1").unwrap_err();
        }
        validate("work_mem", "\0").unwrap_err();
        let message = validate("Port", "1").unwrap_err().to_string();
        assert!(message.contains("TCP"), "{message}");
    }
}
