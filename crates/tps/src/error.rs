//! Errors of a `tps`.

use failure::{Class, Classified};
use script::ScriptError;
use server::quote::{shell_word, shown};
use thiserror::Error;

use connect::ConnectError;

/// Why a `tps` was refused or failed before anything was measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TpsError {
    /// The server could not be reached or asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A script is wrong.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Options that make no sense, or contradict each other.
    #[error("{0}")]
    Request(&'static str),
    /// A pipeline cannot be sent.
    #[error(
        "script \"{script}\" has a pipeline, which the simple query protocol does not support: give --protocol \
         extended or prepared"
    )]
    Pipeline {
        /// The script's name.
        script: String,
    },
    /// pgbench's tables are not there.
    #[error(
        "database {database} has no table pgbench_branches in the search path, which the built-in scripts need: \
         fill it first (pgrig fill --scale 10, with the same server and database)"
    )]
    NoTables {
        /// Name of the database.
        database: String,
    },
    /// pgbench's tables are not there, and the server is a standby.
    #[error(
        "database {database} has no table pgbench_branches in the search path, which the built-in scripts need, and this server is in \
         recovery (a standby?): fill it on the primary, for example pgrig fill --scale 10 -h PRIMARY -d DBNAME"
    )]
    NoTablesOnStandby {
        /// Name of the database.
        database: String,
    },
    /// pgbench's tables are in a schema that is not searched.
    #[error(
        "database {database} has pgbench_branches in schema {schema}, which is not in the search path: {way}, or make other tables \
         (pgrig fill --scale 10, with the same server and database)"
    )]
    OffPath {
        /// The database.
        database: String,
        /// The schema, quoted where SQL needs it.
        schema: String,
        /// How to search the schema.
        way: String,
    },
    /// The role may not read pgbench's tables.
    #[error(
        "role {role} may not read pgbench_branches, which the built-in scripts need: run {grant} TO {role}"
    )]
    Privilege {
        /// The role, quoted where SQL needs it.
        role: String,
        /// The GRANT for the scripts of the request, without the role.
        grant: &'static str,
    },
    /// pgbench's tables are there, and empty.
    #[error(
        "pgbench_branches is empty: fill pgbench's tables first (pgrig fill --drop --scale 10, with the same server and database)"
    )]
    Empty,
    /// More clients than the server has connections for.
    #[error(
        "-c {clients} is more than this server's max_connections ({max_connections}) allows now: give at most {most}, or \
         raise max_connections"
    )]
    Clients {
        /// The number of clients that the user gave.
        clients: usize,
        /// Value of the server's setting.
        max_connections: i64,
        /// Connections that are left for clients.
        most: i64,
    },
    /// Too many connections for one process.
    #[error(
        "{clients} clients need about {needed} open files, and this process may open {most}: raise the limit \
         (ulimit -n), or give fewer clients"
    )]
    Files {
        /// The number of clients that the user gave.
        clients: usize,
        /// Files and sockets.
        needed: u64,
        /// Limit of the process.
        most: u64,
    },
    /// The operating system gives no thread, timer or the like.
    #[error("cannot {what}: {source}")]
    Machine {
        /// The operation, as an infinitive.
        what: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A pooler moves the session by which parts see each other.
    #[error(
        "a pooler between pgrig and the server moves this connection from one session of the server to another, so the parts of a run \
         cannot see each other: connect to the server itself, or to a pool in session mode"
    )]
    PartsPooled,
    /// A standby has no NOTIFY.
    #[error(
        "--merge sends the parts' documents through the server with NOTIFY, which a standby does not have: leave out --merge, and \
         merge the parts' files (pgrig merge)"
    )]
    PartsOnStandby,
    /// Another process is this part.
    #[error(
        "another process is part {number} of {of} of this run: give each part its own number; if the two processes \
         belong to different runs, give each run its own --run-id (if that process was killed, the server notices it within 10 s)"
    )]
    PartTaken {
        /// Number of the part.
        number: usize,
        /// Number of all parts.
        of: usize,
    },
    /// Parts have other options.
    #[error(
        "the parts of this run do not have the same scripts and options: give all parts the same command, except for --part; \
         if the parts belong to different runs, give each run its own --run-id"
    )]
    PartsDiffer,
    /// Parts did not come.
    #[error(
        "{} of {of} did not connect within {} s: start all parts within that time, or give a longer --parts-timeout", parts(.missing), .patience.as_secs()
    )]
    PartsMissing {
        /// Numbers of the missing parts.
        missing: Vec<usize>,
        /// Number of all parts.
        of: usize,
        /// The time limit.
        patience: std::time::Duration,
    },
    /// The server is silent.
    #[error(
        "the server has not answered for {seconds} s: check the network and the server's log, then start all parts again"
    )]
    PartsUnanswered {
        /// Time without an answer.
        seconds: u64,
    },
    /// The user wanted it to stop before anything was measured.
    #[error("interrupted before the first transaction")]
    Interrupted,
}

/// The words after the command that fills pgbench's tables, where the options are not known.
const SAME_SERVER: &str = ", with the same server and database";

impl TpsError {
    /// The error of missing or empty tables, with a command that names the server and the database by these options. None for other
    /// errors.
    pub fn with_server(&self, options: &str) -> Option<String> {
        let is_of_tables = matches!(self, Self::NoTables { .. } | Self::OffPath { .. } | Self::Empty);
        is_of_tables.then(|| self.to_string().replace(SAME_SERVER, options))
    }

    /// The error of tables outside the search path. The variable reaches every server but pgrig's own.
    pub(crate) fn off_path(database: String, schema: String) -> Self {
        let escaped = schema.replace('\\', "\\\\").replace(' ', "\\ ");
        let options = shell_word(&format!("-c search_path={escaped}"));
        Self::OffPath { database, schema, way: format!("write PGOPTIONS={options} before the command") }
    }

    /// The error of tables outside the search path, with the command that runs SQL on pgrig's own server. None for other errors, and
    /// without such a command.
    pub fn searched_by(&self, command: impl FnOnce(&str) -> Option<String>) -> Option<Self> {
        let Self::OffPath { database, schema, .. } = self else { return None };
        let sql = format!("ALTER DATABASE {} SET search_path TO {schema}, public", shown(database));
        let way = format!("run {}", command(&sql)?);
        Some(Self::OffPath { database: database.clone(), schema: schema.clone(), way })
    }
}

impl Classified for TpsError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Script(_)
            | Self::Request(_)
            | Self::Pipeline { .. }
            | Self::NoTables { .. }
            | Self::NoTablesOnStandby { .. }
            | Self::OffPath { .. }
            | Self::Privilege { .. }
            | Self::Empty
            | Self::Clients { .. }
            | Self::Files { .. }
            | Self::PartsPooled
            | Self::PartsOnStandby
            | Self::PartTaken { .. }
            | Self::PartsDiffer => Class::Request,
            Self::Machine { .. } | Self::PartsMissing { .. } | Self::PartsUnanswered { .. } => Class::Machine,
            Self::Interrupted => Class::Interrupted,
        }
    }
}

/// Numbers of parts as a text: `part 3`, `parts 3 and 5`.
pub(crate) fn parts(numbers: &[usize]) -> String {
    let names: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => "no part".to_owned(),
        [one] => format!("part {one}"),
        [others @ .., last] => format!("parts {} and {last}", others.join(", ")),
    }
}
