//! Why settings or tables cannot be changed, or were not put back.

use failure::{Class, Classified};
use std::path::PathBuf;

use connect::ConnectError;
use measure::human::counted;

/// Why settings or tables cannot be changed, or could not be put back.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No such setting.
    #[error(
        "the server has no setting \"{name}\"{}",
        alike.as_ref().map_or_else(
            || ": give a name from pg_settings".to_owned(),
            |alike| format!("; did you mean {alike}?")
        )
    )]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// A setting of almost this name.
        alike: Option<String>,
    },
    /// The setting cannot be changed.
    #[error("{name} was fixed when the server was built or its cluster was created: leave it out")]
    Fixed {
        /// Name of the setting.
        name: String,
    },
    /// It needs a restart, and the server is not pgrig's to restart.
    #[error("{name} changes only at a server start: {why}")]
    Restart {
        /// Name of the setting.
        name: String,
        /// The reason why a restart is impossible, and the remedy.
        why: &'static str,
    },
    /// The setting is a list, which ALTER SYSTEM would write as one name.
    #[error("pgrig does not change {name}, because it is a list: set it in the server's configuration")]
    List {
        /// Name of the setting.
        name: String,
    },
    /// Another source takes precedence over ALTER SYSTEM.
    #[error("{name} is set {by}, which takes precedence over ALTER SYSTEM: {remedy}")]
    Overridden {
        /// Name of the setting.
        name: String,
        /// The source that takes precedence.
        by: &'static str,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// The role lacks a privilege.
    #[error("role {role} may not change settings of this server ({what}): {remedy}")]
    NotAllowed {
        /// The role connected as.
        role: String,
        /// The missing privilege.
        what: String,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// Another pgrig is changing settings of the server.
    #[error(
        "another pgrig is changing settings of this server (server process {pid}): wait until it ends, then repeat the command"
    )]
    InHand {
        /// The server process of its session.
        pid: i32,
    },
    /// The server refuses the value.
    #[error("the server does not accept {name} = {value}: {error}; give a value that SET accepts")]
    Value {
        /// Name of the setting.
        name: String,
        /// The value that the server refuses.
        value: String,
        /// The server's message.
        error: Box<ConnectError>,
    },
    /// ALTER SYSTEM failed, for another reason than the value.
    #[error("ALTER SYSTEM cannot change {name}: {error}")]
    AlterSystem {
        /// Name of the setting.
        name: String,
        /// The server's words.
        error: Box<ConnectError>,
    },
    /// SHOW gives another value than was set.
    #[error("ALTER SYSTEM set {name} to {wanted}, but a new session has {shown}: {why}")]
    NotInForce {
        /// Name of the setting.
        name: String,
        /// Value that was set.
        wanted: String,
        /// The value in a new session.
        shown: String,
        /// The source that takes precedence, and the remedy.
        why: String,
    },
    /// The server has not read its configuration again.
    #[error("the server did not load its changed configuration within {seconds} s{why}: read its log")]
    NotReloaded {
        /// Seconds waited.
        seconds: u64,
        /// The errors in its files, or nothing.
        why: String,
    },
    /// A table cannot be made unlogged, or back.
    #[error("table {table} cannot be made unlogged: {why}")]
    Table {
        /// The table that the user named.
        table: String,
        /// The reason and the remedy.
        why: String,
    },
    /// The server that answers is not the one whose settings were changed.
    #[error(
        "another server now runs at this address (its system identifier differs): start the former server there, or \
         restore its settings by hand"
    )]
    OtherServer,
    /// Sessions of a pgrig that is gone do not end.
    #[error(
        "pg_terminate_backend did not end {} of the pgrig that made the changes: look with SELECT * FROM pg_stat_activity \
         WHERE application_name LIKE 'pgrig settings %', and repeat the command when no such session is left",
        counted(sessions.unsigned_abs(), "session")
    )]
    Sessions {
        /// Number of sessions.
        sessions: i64,
    },
    /// The journal cannot be written or read.
    #[error("cannot read or write the journal {}: {error}{}", .path.display(), whose(error))]
    Journal {
        /// The file, or the directory of all of them.
        path: PathBuf,
        /// The operating system's reason.
        error: std::io::Error,
    },
    /// A query failed, or there is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Classified for SettingsError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unknown { .. }
            | Self::Fixed { .. }
            | Self::Restart { .. }
            | Self::List { .. }
            | Self::Overridden { .. }
            | Self::NotAllowed { .. }
            | Self::Value { .. }
            | Self::Table { .. } => Class::Request,
            Self::InHand { .. }
            | Self::AlterSystem { .. }
            | Self::NotInForce { .. }
            | Self::NotReloaded { .. }
            | Self::OtherServer
            | Self::Sessions { .. }
            | Self::Journal { .. } => Class::Machine,
        }
    }
}

fn whose(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; set PGRIG_HOME to a directory of your own. If the journal is another user's, that user's pgrig restores the \
             changes in it"
        }
        _ => "",
    }
}

impl SettingsError {
    /// The error of a failed ALTER SYSTEM, unless the connection failed.
    pub(super) fn alter_system(name: &str, error: ConnectError) -> Self {
        match error {
            ConnectError::Query { .. } => Self::AlterSystem { name: name.to_owned(), error: error.into() },
            error => error.into(),
        }
    }
}
