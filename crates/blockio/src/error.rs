//! Errors of a `blockio`.

use failure::{Class, Classified};
use measure::human::bytes;
use thiserror::Error;
use tokio_postgres::error::SqlState;

use crate::plan::SCHEMA;
use connect::ConnectError;
use server::SurveyError;
use server::fault::Panicked;
use server::quote::shown;

/// Why a `blockio` was refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BlockioError {
    /// The server could not be reached or asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server or the schema is not fit for tables.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// A size that `blockio` does not accept.
    #[error("SIZE {size} is out of range: give 10MB to 30TB")]
    Size {
        /// The size that the user gave.
        size: String,
    },
    /// Options that contradict each other.
    #[error("{0}")]
    Combination(&'static str),
    /// More connections than the server takes.
    #[error("--clients {clients} is more than this server's max_connections allows: give at most {most}")]
    Clients {
        /// The number of clients that the user gave.
        clients: u16,
        /// Left of max_connections beside pgrig's other sessions.
        most: u32,
    },
    /// The schema that the request names does not exist.
    #[error(
        "there is no schema {schema}: run CREATE SCHEMA {}, or leave out --schema (pgrig then creates schema {SCHEMA}, and drops \
         it at the end)",
        shown(schema)
    )]
    NoSchema {
        /// Name of the missing schema.
        schema: String,
    },
    /// The role may create tables in the schema but not use them.
    #[error(
        "role {role} may not use schema {schema}: run GRANT USAGE ON SCHEMA {} TO {}, or give another --schema",
        shown(schema),
        shown(role)
    )]
    Usage {
        /// The role that lacks the privilege.
        role: String,
        /// The schema that the role may not use.
        schema: String,
    },
    /// Relations that pgrig did not make have the names.
    #[error("schema {schema} has {} that pgrig did not make: give another --schema", names.join(", "))]
    Taken {
        /// Schema of the existing relations.
        schema: String,
        /// Names of the existing relations.
        names: Vec<String>,
    },
    /// Another role owns the tables of an earlier run.
    #[error(
        "schema {schema} has tables that role {owner} created with an earlier pgrig blockio: run pgrig blockio as \
         {owner}, which drops them, or give another --schema"
    )]
    LeftByAnother {
        /// Schema of the tables.
        schema: String,
        /// The other role.
        owner: String,
    },
    /// The volume is too small.
    #[error(
        "pgrig needs {} of disk space (tables with CLUSTER's second copy {}, sorting {}, WAL {}), and {mount} has {} \
         free. Give a smaller SIZE, or free some space",
        bytes(needed.total()), bytes(needed.tables), bytes(needed.sorting), bytes(needed.wal), bytes(*free)
    )]
    Disk {
        /// Needed space at the peak.
        needed: Needed,
        /// On the volume, bytes.
        free: u64,
        /// The volume's mount point.
        mount: String,
    },
    /// A step failed.
    #[error("{step} failed: {source}{}", remedy(source))]
    Step {
        /// Title of the step.
        step: &'static str,
        /// The server's error.
        source: ConnectError,
    },
    /// The plan of a query is not as expected.
    #[error(
        "{step}: pgrig cannot read the server's EXPLAIN output: {what}. Report this as a bug, with the server's version"
    )]
    Explain {
        /// The step's title.
        step: &'static str,
        /// The unexpected parts of the plan.
        what: String,
    },
    /// The code of pgrig panicked during the run.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The user interrupted it.
    #[error("interrupted in step {step}")]
    Interrupted {
        /// The step's title.
        step: &'static str,
    },
    /// A baseline that cannot be compared with.
    #[error("--baseline: {0}")]
    Baseline(String),
}

impl Classified for BlockioError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::Size { .. }
            | Self::Combination(_)
            | Self::Clients { .. }
            | Self::Usage { .. }
            | Self::NoSchema { .. }
            | Self::Taken { .. }
            | Self::LeftByAnother { .. }
            | Self::Baseline(_) => Class::Request,
            Self::Disk { .. } | Self::Step { .. } | Self::Explain { .. } | Self::Panicked(_) => {
                Class::Machine
            }
            Self::Interrupted { .. } => Class::Interrupted,
        }
    }

    fn is_explained_by_log(&self) -> bool {
        matches!(self, Self::Step { .. })
    }
}

/// Bytes on the volumes at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Needed {
    /// Tables and indexes, twice while CLUSTER runs.
    pub tables: u64,
    /// Temporary files of index builds and CLUSTER.
    pub(crate) sorting: u64,
    /// Most WAL that may exist at once.
    pub wal: u64,
}

impl Needed {
    /// Bytes of tables, temporary files and WAL together.
    pub fn total(&self) -> u64 {
        self.tables + self.sorting + self.wal
    }
}

/// The remedy, where the server reports only the cause.
fn remedy(error: &ConnectError) -> &'static str {
    match error.sqlstate() {
        Some(&SqlState::DISK_FULL) => ". Free some space there, or give a smaller SIZE",
        Some(&SqlState::CONFIGURATION_LIMIT_EXCEEDED) => {
            ". Raise temp_file_limit for this role, or give a smaller SIZE"
        }
        _ => "",
    }
}
