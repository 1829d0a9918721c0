//! Why a server or a schema is not fit for a verb that makes tables.

use connect::ConnectError;
use failure::{Class, Classified};
use thiserror::Error;

/// Why a server or a schema was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// The server could not be asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The directory that was named is not the server's.
    #[error("--data-directory {path} is not this server's data directory: {problem}")]
    DataDirectory {
        /// As given.
        path: String,
        /// The problem.
        problem: String,
    },
    /// Older than PostgreSQL 13.
    #[error("this server is {version}; pgrig works with PostgreSQL 13 and later")]
    TooOld {
        /// `version()`.
        version: String,
    },
    /// A standby cannot be written to.
    #[error("the server is in recovery (a standby?) and read-only: connect to its primary")]
    InRecovery,
    /// The session may only read.
    #[error(
        "this session is read-only (default_transaction_read_only is on): if it is meant to be written to, \
         PGOPTIONS='-c default_transaction_read_only=off' lets this session write"
    )]
    ReadOnly,
    /// A name that no schema can have.
    #[error(
        "\"{schema}\" can be no schema's name: give 1 to 63 bytes that do not begin with pg_ (those are the server's)"
    )]
    SchemaName {
        /// Asked for.
        schema: String,
    },
    /// The session has no schema to create tables in.
    #[error("no schema to create tables in: search_path names none that exists. Give --schema NAME")]
    NoSchema,
    /// The role may not create tables there.
    #[error(
        "role {role} may not create tables in schema {schema}: GRANT CREATE ON SCHEMA {schema} TO {role}, \
         or give --schema NAME with one that it may"
    )]
    SchemaPrivilege {
        /// The role.
        role: String,
        /// The schema.
        schema: String,
    },
    /// The role may not create the schema.
    #[error(
        "schema {schema} does not exist and role {role} may not create it in database {database}: \
         have it created, or GRANT CREATE ON DATABASE {database} TO {role}"
    )]
    CreateSchemaPrivilege {
        /// The role.
        role: String,
        /// The schema.
        schema: String,
        /// The database.
        database: String,
    },
}

impl Classified for SurveyError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::DataDirectory { .. }
            | Self::TooOld { .. }
            | Self::SchemaName { .. }
            | Self::NoSchema
            | Self::SchemaPrivilege { .. }
            | Self::CreateSchemaPrivilege { .. } => Class::Request,
            Self::InRecovery | Self::ReadOnly => Class::Machine,
        }
    }
}
