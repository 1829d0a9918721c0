//! Errors of rehearsals.

use std::path::PathBuf;

use connect::ConnectError;
use failure::{Class, Classified};
use fill::FillError;
use measure::human::bytes;
use server::SurveyError;
use tps::TpsError;

/// The reason why backups cannot be rehearsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// `--bin` names no client programs.
    #[error("--bin {path}: {problem}; give the directory of pg_dump, pg_restore and psql", path = .path.display())]
    Bin {
        /// The directory.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// There are no client programs.
    #[error("pg_dump, pg_restore and psql are not installed: {}, or give their directory: --bin DIR", install(*server))]
    NoPrograms {
        /// Major version of the server.
        server: u16,
    },
    /// The client programs are older than the server, which they refuse.
    #[error(
        "pg_dump {version} in {path} cannot read a server of version {server}: {}, or give their directory: --bin DIR{}",
        install(*server), of_instead(*instead), path = .path.display()
    )]
    TooOld {
        /// Directory of the programs.
        path: PathBuf,
        /// Their version.
        version: String,
        /// Major version of the server.
        server: u16,
        /// The way to a server that the programs can read, if the version is the user's choice.
        instead: Option<Instead>,
    },
    /// None of the ways is possible.
    #[error("pgrig can make no backup here: {}", .0.join("; "))]
    NoWay(Vec<String>),
    /// pgrig has no server of that version to restore into.
    #[error("pgrig cannot start a scratch server of version {0}: update pgrig")]
    UnknownMajor(u16),
    /// The scratch server lacks extensions of the database.
    #[error(
        "a dump of this database can be restored only on a server with the {}, and the scratch server (PostgreSQL {version}) does \
         not have {}: give --bin DIR, the directory of the programs of a PostgreSQL {major} that has {}",
        extensions(names),
        them(names),
        them(names)
    )]
    Extensions {
        /// Their names.
        names: Vec<String>,
        /// Version of the scratch server.
        version: String,
        /// Major version of the server.
        major: u16,
    },
    /// Another rehearsal runs: its process, if it can be seen from here.
    #[error("another pgrig backup{} is running: wait until it ends", of_process(*.0))]
    Busy(Option<u32>),
    /// A step would leave too little space.
    #[error(
        "{step} needs about {} and a reserve of {}{because}, and {path} has {} free: free some space, or set PGRIG_HOME to a directory on another \
         disk", bytes(*.needs), bytes(*.headroom), bytes(*.free)
    )]
    NoRoom {
        /// The step.
        step: String,
        /// Bytes that it needs, at a guess.
        needs: u64,
        /// The directory.
        path: String,
        /// Its free bytes.
        free: u64,
        /// Bytes that stay free.
        headroom: u64,
        /// Why so many, if the server that is backed up is the reason; empty otherwise.
        because: String,
    },
    /// A step left too little space, and was ended.
    #[error("{step} was ended, because {path} has only {} free{because}: free some space, or set PGRIG_HOME to a directory on another disk", bytes(*.free))]
    Full {
        /// The step.
        step: String,
        /// The directory.
        path: String,
        /// Its free bytes.
        free: u64,
        /// Why more stay free, if the server that is backed up is the reason; empty otherwise.
        because: String,
    },
    /// The sizes to measure are too small.
    #[error("{}", too_small(*size, *up_to, *least))]
    TooSmall {
        /// The size of the forecast.
        size: u64,
        /// The largest size that may be measured.
        up_to: u64,
        /// The least that both may be.
        least: u64,
    },
    /// The data cannot be made.
    #[error("cannot fill a database of {} with {origin}: {}", bytes(*.size), reason(error))]
    Fill {
        /// The data.
        origin: String,
        /// Bytes of its tables.
        size: u64,
        /// The reason.
        error: Box<FillError>,
    },
    /// The load cannot be put on a database.
    #[error("the load {script} failed: {why}")]
    Load {
        /// Its scripts.
        script: String,
        /// The reason.
        why: String,
        /// Whether the script or the server is the cause.
        class: Class,
    },
    /// The load cannot begin.
    #[error(transparent)]
    Transactions(#[from] TpsError),
    /// A server that was started for the data.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The user interrupted it.
    #[error("interrupted: pgrig has removed the backups and the scratch servers")]
    Interrupted,
    /// A table of the original is locked.
    #[error(
        "pgrig could not read a table of database {database}, because it waited 60 s for a lock{}. Wait until the transactions that lock tables have ended, or end them, \
         and run pgrig again", named(.holders)
    )]
    Locked {
        /// The database.
        database: String,
        /// Sessions and prepared transactions with locks, and how to end them.
        holders: Vec<String>,
    },
    /// Tables of the original are dropped again and again.
    #[error(
        "pgrig could not read database {database}, because other sessions drop or rename its tables and sequences ({error}): run pgrig again \
         once they have ended"
    )]
    Changing {
        /// The database.
        database: String,
        /// The last error.
        error: String,
    },
    /// The original has ended a session without which a backup fails.
    #[error("{0}")]
    Lost(String),
    /// A server refused, or is gone.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A scratch server did not start. Its log is deleted with it.
    #[error("a scratch server did not start: {cause}; {remedy}")]
    Start {
        /// The reason, from the log.
        cause: String,
        /// The remedy, or the end of the log.
        remedy: String,
        /// Whether a setting of the user's is the cause.
        class: Class,
    },
    /// A scratch server ended by itself. Its log is deleted with it.
    #[error("a scratch server ended by itself ({how}): {cause}")]
    Ended {
        /// Exit status or signal.
        how: String,
        /// The last lines of the log.
        cause: String,
    },
    /// A scratch server.
    #[error(transparent)]
    Server(#[from] pgserver::Error),
    /// A file.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The way to a server that client programs can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Another instance of pgrig's own PostgreSQL, of this major version.
    Instance(u16),
    /// Leave out this option, which sets the version of the servers of a forecast.
    Without(&'static str),
}

/// The sizes of a forecast that are too small, and the options that set them.
fn too_small(size: u64, up_to: u64, least: u64) -> String {
    let enough = format!("{}MB", least / 1_000_000);
    match (size < least, up_to < least) {
        (true, true) => {
            format!(
                "{} are not enough data for a forecast: give --size and --up-to, each {enough} or more",
                bytes(size.min(up_to))
            )
        }
        (true, false) => {
            format!(
                "tables and indexes of {} are too small for a forecast: give --size {enough} or more",
                bytes(size)
            )
        }
        (false, _) => {
            format!("--up-to {} is too small for a forecast: give --up-to {enough} or more", bytes(up_to))
        }
    }
}

/// How to install client programs of this major version; 0 is any.
fn install(server: u16) -> String {
    if server == 0 {
        return "install PostgreSQL's client programs (Debian: postgresql-client)".to_owned();
    }
    format!(
        "install PostgreSQL's client programs of version {server} or later (Debian: postgresql-client-{server}; if your release \
         lacks this package, it is on apt.postgresql.org)"
    )
}

/// The process of another run.
fn of_process(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

/// The way to a server for these programs.
fn of_instead(instead: Option<Instead>) -> String {
    match instead {
        Some(Instead::Instance(major)) => format!(
            ", or fill another instance of pgrig's own PostgreSQL, and rehearse there: pgrig fill 1GB --pg-version {major} --instance \
             pg{major} --profile stock, then pgrig backup rehearse --instance pg{major} --profile stock"
        ),
        Some(Instead::Without(option)) => {
            format!(
                ", or leave out {option}: pgrig then starts servers of a version that these programs can read"
            )
        }
        None => String::new(),
    }
}

impl BackupError {
    /// The same, where the version of the server is not the user's choice: it has the data to rehearse.
    #[must_use]
    pub fn of_fixed_version(self) -> Self {
        self.with_instead(None)
    }

    /// The same for the servers of a forecast, whose version this option sets.
    pub(crate) fn of_forecast(self, option: &'static str) -> Self {
        self.with_instead(Some(Instead::Without(option)))
    }

    /// Why a server does not start on the files of a backup: the backup is the cause, so the remedies for other servers do not help.
    pub(crate) fn of_restored(&self) -> String {
        match self {
            Self::Start { cause, .. } => format!("the server does not start: {cause}"),
            error => error.to_string(),
        }
    }

    fn with_instead(self, instead: Option<Instead>) -> Self {
        match self {
            Self::TooOld { path, version, server, .. } => Self::TooOld { path, version, server, instead },
            error => error,
        }
    }
}

impl Classified for BackupError {
    fn class(&self) -> Class {
        match self {
            Self::Bin { .. }
            | Self::NoPrograms { .. }
            | Self::TooOld { .. }
            | Self::NoWay(_)
            | Self::UnknownMajor(_)
            | Self::Extensions { .. }
            | Self::TooSmall { .. }
            | Self::Busy(_) => Class::Request,
            Self::NoRoom { .. }
            | Self::Full { .. }
            | Self::Io { .. }
            | Self::Locked { .. }
            | Self::Changing { .. }
            | Self::Ended { .. }
            | Self::Lost(_) => Class::Machine,
            Self::Interrupted => Class::Interrupted,
            Self::Fill { error, .. } if error.lack_of_space().is_some() => Class::Machine,
            Self::Fill { error, .. } => error.class(),
            Self::Load { class, .. } | Self::Start { class, .. } => *class,
            Self::Transactions(error) => error.class(),
            Self::Survey(error) => error.class(),
            Self::Connect(error) => error.class(),
            Self::Server(error) => error.class(),
        }
    }

    fn is_explained_by_log(&self) -> bool {
        false
    }
}

/// The reason of a failed fill, without the advice to complete it: its database is removed. For a full disk with the remedies of a rehearsal.
fn reason(error: &FillError) -> String {
    if let FillError::OfTable { table, source, .. } = error {
        return format!("{table}: {}", reason(source));
    }
    if let Some(lack) = error.lack_of_space() {
        return format!(
            "{lack}. Give a smaller --up-to, free some space, or set PGRIG_HOME to a directory on another disk"
        );
    }
    match error {
        FillError::Step { step, source, .. } => format!("{} failed: {source}", step.name()),
        error => {
            error.of_sql().map_or_else(|| error.to_string(), |problem| format!("--schema-file: {problem}"))
        }
    }
}

/// Those that hold locks, for an error.
fn named(holders: &[String]) -> String {
    if holders.is_empty() { String::new() } else { format!(": {}", holders.join("; ")) }
}

/// Extensions, for an error.
pub(crate) fn extensions(names: &[String]) -> String {
    let noun = if names.len() == 1 { "extension" } else { "extensions" };
    format!("{noun} {}", names.join(", "))
}

/// The pronoun for extensions.
pub(crate) fn them(names: &[String]) -> &'static str {
    if names.len() == 1 { "it" } else { "them" }
}

/// Says which operation on which file failed.
pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: &std::path::Path) -> Result<T, BackupError>;
}

impl<T> OnPath<T> for std::io::Result<T> {
    fn on(self, action: &'static str, path: &std::path::Path) -> Result<T, BackupError> {
        self.map_err(|source| BackupError::Io { action, path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_too_small_name_the_option_that_limits_them() {
        for (size, up_to, said) in [
            (295_000, 10_000_000, ": give --size 10MB or more"),
            (1_000_000_000, 5_000_000, ": give --up-to 10MB or more"),
            (1_000_000, 1_000_000, ": give --size and --up-to, each 10MB or more"),
        ] {
            let told = BackupError::TooSmall { size, up_to, least: 10_000_000 }.to_string();
            assert!(told.ends_with(said), "{told}");
        }
    }

    #[test]
    fn programs_that_are_too_old_get_packages_and_an_instance_that_exist() {
        let old = || BackupError::TooOld {
            path: PathBuf::from("/usr/bin"),
            version: "15.19".to_owned(),
            server: 18,
            instead: Some(Instead::Instance(15)),
        };
        let said = old().to_string();
        assert!(said.contains("postgresql-client-18; if your release lacks"), "{said}");
        // The other instance is empty at first.
        let filled = "pgrig fill 1GB --pg-version 15 --instance pg15 --profile stock, then pgrig backup rehearse --instance pg15 --profile stock";
        assert!(said.contains("apt.postgresql.org") && said.ends_with(filled), "{said}");
        assert!(old().of_fixed_version().to_string().ends_with("--bin DIR"));
        let said = old().of_forecast("--pg-version").to_string();
        assert!(said.contains("or leave out --pg-version: ") && !said.contains("--instance"), "{said}");
        assert!(BackupError::NoPrograms { server: 0 }.to_string().contains("(Debian: postgresql-client),"));
    }
}
