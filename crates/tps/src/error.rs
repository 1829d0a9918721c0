//! Errors of a `tps`.

use failure::{Class, Classified};
use script::ScriptError;
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
        /// The database.
        database: String,
    },
    /// The role may not read pgbench's tables.
    #[error(
        "role {role} may not read pgbench_branches, which the built-in scripts need: run GRANT SELECT, INSERT, UPDATE ON \
         pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history TO {role}"
    )]
    Privilege {
        /// The role, quoted where SQL needs it.
        role: String,
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
        /// Asked for.
        clients: usize,
        /// The setting.
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
        /// Asked for.
        clients: usize,
        /// Files and sockets.
        needed: u64,
        /// The limit.
        most: u64,
    },
    /// The operating system gives no thread, timer or the like.
    #[error("cannot {what}: {source}")]
    Machine {
        /// The operation.
        what: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The user wanted it to stop before anything was measured.
    #[error("interrupted before the first transaction")]
    Interrupted,
}

impl Classified for TpsError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Script(_)
            | Self::Request(_)
            | Self::Pipeline { .. }
            | Self::NoTables { .. }
            | Self::Privilege { .. }
            | Self::Empty
            | Self::Clients { .. }
            | Self::Files { .. } => Class::Request,
            Self::Machine { .. } => Class::Machine,
            Self::Interrupted => Class::Interrupted,
        }
    }
}
