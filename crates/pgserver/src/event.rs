use std::fmt;

/// A progress message for the user. `Display` is one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// PostgreSQL of this exact version is being downloaded.
    Fetching {
        /// For instance `18.6.0`.
        version: String,
    },
    /// The downloaded archive is being unpacked.
    Unpacking {
        /// For instance `18.6.0`, or `from FILE`.
        version: String,
    },
    /// initdb makes a new data directory.
    Initialising {
        /// The instance's name.
        instance: String,
        /// For instance `18.6`.
        version: String,
    },
    /// The server process is being started.
    Starting {
        /// The instance's name.
        instance: String,
        /// For instance `18.6`.
        version: String,
    },
    /// Another process must finish first; the text names the process and its work.
    Waiting(String),
    /// pgrig repairs the remains of an earlier crash or kill; the text names them.
    Recovering(String),
}

/// The caller's listener. Called on the thread that called into pgserver.
pub type Events<'a> = &'a dyn Fn(Event);

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetching { version } => write!(f, "fetching PostgreSQL {version}"),
            Self::Unpacking { version } => write!(f, "unpacking PostgreSQL {version}"),
            Self::Initialising { instance, version } => {
                write!(f, "initialising instance {instance} (PostgreSQL {version})")
            }
            Self::Starting { instance, version } => {
                write!(f, "starting instance {instance} (PostgreSQL {version})")
            }
            Self::Waiting(what) => write!(f, "waiting: {what}"),
            Self::Recovering(what) => write!(f, "recovering: {what}"),
        }
    }
}
