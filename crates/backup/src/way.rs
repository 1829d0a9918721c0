//! A way to make a backup: `custom:zstd=3,jobs=4`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::tool::Tool;

/// Most jobs of pg_dump and pg_restore.
const MOST_JOBS: u16 = 256;
/// The forms of a way, for errors.
const FORMS: &str = "give FORMAT[:COMPRESSION[=LEVEL]][,jobs=N], for example custom:gzip=6,jobs=2. FORMAT is plain, custom, directory, base, \
                     base-tar, incremental or pitr; COMPRESSION is none, gzip, lz4 or zstd; for base-tar with client- or server- before it, like server-zstd";

/// A way to make a backup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// Program and format.
    pub format: Format,
    /// Compression.
    pub compression: Compression,
    /// Jobs of pg_dump (for a directory) and of pg_restore.
    pub jobs: u16,
    /// The commands of [`Format::Tool`].
    pub tool: Option<Arc<Tool>>,
}

/// Program and format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `pg_dump --format=plain`: SQL.
    Plain,
    /// `pg_dump --format=custom`: one file for pg_restore.
    Custom,
    /// `pg_dump --format=directory`: a file for each table.
    Directory,
    /// `pg_basebackup --format=plain`: the files of the whole server.
    Base,
    /// `pg_basebackup --format=tar`.
    BaseTar,
    /// `pg_basebackup`, and `pg_basebackup --incremental` upon it; restored by `pg_combinebackup`.
    Incremental,
    /// `pg_basebackup` and `pg_receivewal`; restored to a point in time by replaying WAL.
    Pitr,
    /// Commands of another tool, for example pgBackRest.
    Tool,
}

/// Compression of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// Method.
    pub method: Method,
    /// Level; none for the program's default.
    pub level: Option<u8>,
    /// The process that compresses.
    pub place: CompressedBy,
}

/// Method of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Not compressed.
    None,
    /// gzip.
    Gzip,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

/// The process that compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressedBy {
    /// pg_dump or pg_basebackup.
    Client,
    /// The server, for pg_basebackup.
    Server,
}

impl Way {
    /// The way that runs the commands of another tool.
    pub fn of_tool(tool: Tool) -> Self {
        Self { format: Format::Tool, compression: Compression::NONE, jobs: 1, tool: Some(Arc::new(tool)) }
    }

    /// Whether it backs up the files of the whole server.
    pub fn is_base(&self) -> bool {
        matches!(self.format, Format::BaseTar) || self.format.is_files()
    }

    /// Whether its restore replays the WAL of a load up to a point in time.
    pub fn recovers(&self) -> bool {
        self.format == Format::Pitr || self.tool.as_ref().is_some_and(|tool| tool.recovers())
    }

    /// Whether a trial changes the database, if pgrig has made it.
    pub(crate) fn changes_data(&self) -> bool {
        self.format == Format::Incremental || self.recovers()
    }

    /// Whether it is a dump of `pg_dump`, which holds a snapshot until it ends.
    pub(crate) fn is_dump(&self) -> bool {
        matches!(self.format, Format::Plain | Format::Custom | Format::Directory)
    }

    /// The program that makes it.
    pub fn program(&self) -> &str {
        if let Some(tool) = &self.tool {
            return tool.name();
        }
        if self.is_base() { "pg_basebackup" } else { "pg_dump" }
    }

    fn check(&self) -> Result<(), String> {
        let Compression { method, level, place } = self.compression;
        let format = self.format.name();
        if self.jobs > 1 && !matches!(self.format, Format::Custom | Format::Directory) {
            return Err(format!(
                "{format} has no jobs: give jobs with custom (pg_restore) or directory (pg_dump and pg_restore)"
            ));
        }
        if self.format.is_files() && method != Method::None {
            return Err(format!(
                "pg_basebackup compresses only tar files: give base-tar with a compression, or {format} without one"
            ));
        }
        if place == CompressedBy::Server && !self.is_base() {
            return Err(format!(
                "only pg_basebackup lets the server compress: give {format}:{}",
                method.name()
            ));
        }
        let most = match method {
            Method::None => 0,
            Method::Gzip => 9,
            Method::Lz4 => 12,
            Method::Zstd => 22,
        };
        match level {
            Some(level) if method == Method::None || level == 0 || level > most => Err(format!(
                "{} has no level {level}: give 1 to {most}, or leave out the level",
                method.name()
            )),
            _ => Ok(()),
        }
    }
}

impl Format {
    /// Those that a way names.
    pub(crate) const ALL: [Self; 7] = [
        Self::Plain,
        Self::Custom,
        Self::Directory,
        Self::Base,
        Self::BaseTar,
        Self::Incremental,
        Self::Pitr,
    ];

    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Custom => "custom",
            Self::Directory => "directory",
            Self::Base => "base",
            Self::BaseTar => "base-tar",
            Self::Incremental => "incremental",
            Self::Pitr => "pitr",
            Self::Tool => "tool",
        }
    }

    /// Whether the backup is a copy of the server's files, which pgrig lets no program compress.
    fn is_files(self) -> bool {
        matches!(self, Self::Base | Self::Incremental | Self::Pitr | Self::Tool)
    }
}

impl Method {
    const ALL: [Self; 4] = [Self::None, Self::Gzip, Self::Lz4, Self::Zstd];

    /// As PostgreSQL's programs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The ending that the programs append to the name of a compressed file.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Lz4 => ".lz4",
            Self::Zstd => ".zst",
        }
    }
}

impl Compression {
    /// No compression.
    pub const NONE: Self = Self { method: Method::None, level: None, place: CompressedBy::Client };

    /// pg_dump's own default for the format.
    fn default_of(format: Format) -> Self {
        match format {
            Format::Custom | Format::Directory => Self { method: Method::Gzip, ..Self::NONE },
            _ => Self::NONE,
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, level) = match text.split_once('=') {
            Some((word, level)) => {
                let level = level.parse().map_err(|_| format!("\"{level}\" is not a level: {FORMS}"))?;
                (word, Some(level))
            }
            None => (text, None),
        };
        let (place, name) = match (word.strip_prefix("server-"), word.strip_prefix("client-")) {
            (Some(name), _) => (CompressedBy::Server, name),
            (_, Some(name)) => (CompressedBy::Client, name),
            _ => (CompressedBy::Client, word),
        };
        let method = Method::ALL.into_iter().find(|method| method.name() == name);
        let method = method.ok_or_else(|| format!("\"{word}\" is not a compression: {FORMS}"))?;
        Ok(Self { method, level, place })
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (text, jobs) = match text.split_once(',') {
            Some((rest, jobs)) => {
                let number = jobs.strip_prefix("jobs=").and_then(|number| number.parse().ok());
                let number = number.filter(|jobs| (1..=MOST_JOBS).contains(jobs));
                (
                    rest,
                    number.ok_or_else(|| {
                        format!("\"{jobs}\" is not jobs=N with 1 to {MOST_JOBS} jobs: {FORMS}")
                    })?,
                )
            }
            None => (text, 1),
        };
        let (name, compression) =
            text.split_once(':').map_or((text, None), |(name, word)| (name, Some(word)));
        let format = Format::ALL.into_iter().find(|format| format.name() == name);
        let format = format.ok_or_else(|| format!("\"{name}\" is not a format: {FORMS}"))?;
        let compression = compression.map_or(Ok(Compression::default_of(format)), str::parse)?;
        let way = Self { format, compression, jobs, tool: None };
        way.check()?;
        Ok(way)
    }
}

/// In full: the same way always has the same name.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            return f.write_str(tool.name());
        }
        f.write_str(self.format.name())?;
        let Compression { method, level, place } = self.compression;
        if !self.format.is_files() {
            let place = match (self.is_base() && method != Method::None, place) {
                (false, _) => "",
                (true, CompressedBy::Client) => "client-",
                (true, CompressedBy::Server) => "server-",
            };
            write!(f, ":{place}{}", method.name())?;
            if let Some(level) = level {
                write!(f, "={level}")?;
            }
        }
        if self.jobs > 1 { write!(f, ",jobs={}", self.jobs) } else { Ok(()) }
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_has_one_name() {
        for (text, name) in [
            ("plain", "plain:none"),
            ("custom", "custom:gzip"),
            ("directory:zstd=19,jobs=4", "directory:zstd=19,jobs=4"),
            ("custom:none,jobs=1", "custom:none"),
            ("base", "base"),
            ("base-tar", "base-tar:none"),
            ("incremental", "incremental"),
            ("pitr", "pitr"),
            ("base-tar:gzip", "base-tar:client-gzip"),
            ("base-tar:server-zstd=3", "base-tar:server-zstd=3"),
        ] {
            let way: Way = text.parse().unwrap();
            assert_eq!(way.to_string(), name);
            assert_eq!(name.parse::<Way>().unwrap(), way);
        }
    }

    #[test]
    fn ways_that_no_program_has_are_refused_with_the_remedy() {
        for (text, says) in [
            ("tar", "is not a format"),
            ("plain,jobs=2", "has no jobs"),
            ("base:gzip", "base-tar"),
            ("incremental:gzip", "base-tar"),
            ("incremental,jobs=2", "has no jobs"),
            ("pitr:zstd", "or pitr without one"),
            ("custom:server-gzip", "custom:gzip"),
            ("custom:gzip=10", "1 to 9"),
            ("custom:none=1", "none has no level"),
            ("custom:bzip2", "is not a compression"),
            ("custom:gzip=x", "is not a level"),
            ("custom,jobs=0", "1 to 256"),
            ("custom,threads=2", "jobs=N"),
        ] {
            let error = text.parse::<Way>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
