//! Why a server, a schema or a role is not fit for a verb that makes tables or databases.

use connect::ConnectError;
use failure::{Class, Classified};
use thiserror::Error;

use crate::info::OLDEST_MAJOR;
use crate::quote::shown;

/// Why a server, a schema or a role was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// The server could not be asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The directory that was named is not the server's.
    #[error(
        "--data-directory {path} is not this server's data directory: {problem}; give the path of the data directory of the \
         server that -d or -h names"
    )]
    DataDirectory {
        /// The directory that the user named.
        path: String,
        /// Why it is not this server's.
        problem: String,
    },
    /// Older than [`OLDEST_MAJOR`].
    #[error(
        "this server is {version}; pgrig works with PostgreSQL {OLDEST_MAJOR} and later: connect to another server, or use \
         pgrig's own"
    )]
    TooOld {
        /// `version()`.
        version: String,
    },
    /// A standby cannot be written to.
    #[error("the server is in recovery (a standby?), and therefore read-only: connect to its primary")]
    InRecovery,
    /// The session is read-only.
    #[error(
        "this session is read-only (default_transaction_read_only is on): {}",
        if *.by_client {
            "the options in the connection string or PGOPTIONS say so: change them there"
        } else {
            "to let pgrig write, set PGOPTIONS='-c default_transaction_read_only=off', or write that into the options of \
             the connection string, if it has any"
        }
    )]
    ReadOnly {
        /// Whether the client's options make it so.
        by_client: bool,
    },
    /// A name that no schema can have.
    #[error("{}", odd_name(schema))]
    SchemaName {
        /// The name that the user gave.
        schema: String,
    },
    /// The session has no schema to create tables in.
    #[error("no schema to create tables in: no schema of search_path exists. Give --schema NAME")]
    NoSchema,
    /// The role may not create tables there.
    #[error(
        "role {role} may not create tables in schema {schema}: run GRANT CREATE ON SCHEMA {} TO {}, or give \
         another --schema",
        shown(schema),
        shown(role)
    )]
    SchemaPrivilege {
        /// The role that lacks the privilege.
        role: String,
        /// Schema of the tables.
        schema: String,
    },
    /// The role may not create the schema.
    #[error(
        "schema {schema} does not exist, and role {role} may not create it in database {database}: have the owner of the \
         database run GRANT CREATE ON DATABASE {database} TO {role}, or a superuser CREATE SCHEMA {schema} AUTHORIZATION {role}",
        schema = shown(schema),
        database = shown(database),
        role = shown(role)
    )]
    CreateSchemaPrivilege {
        /// The role that lacks the privilege.
        role: String,
        /// Name of the missing schema.
        schema: String,
        /// Database of the session.
        database: String,
    },
    /// The role may not create databases.
    #[error("role {role} may not create databases: have a superuser run ALTER ROLE {} CREATEDB", shown(role))]
    CreateDatabasePrivilege {
        /// The role that lacks the privilege.
        role: String,
    },
    /// Another pgrig runs the verb in the same schema.
    #[error(
        "another session (server process {pid}) runs pgrig {verb} in schema {schema}: wait until it ends, or end it \
         with SELECT pg_terminate_backend({pid})"
    )]
    InHand {
        /// Name of the verb.
        verb: &'static str,
        /// The schema that both runs use.
        schema: String,
        /// Server process of the other session; 0 if the role cannot see it.
        pid: i32,
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
            | Self::CreateSchemaPrivilege { .. }
            | Self::CreateDatabasePrivilege { .. }
            | Self::ReadOnly { by_client: true } => Class::Request,
            Self::InRecovery | Self::ReadOnly { by_client: false } | Self::InHand { .. } => Class::Machine,
        }
    }
}

fn odd_name(schema: &str) -> String {
    if schema == "information_schema" || schema.starts_with("pg_") {
        return format!("schema {schema} belongs to the server, as all names with pg_ do: give another one");
    }
    format!("\"{schema}\" is not a schema name: give 1 to 63 bytes")
}
